/* The part of tvm-ffi's C ABI that a generated library uses, declared here so that it compiles with no other header. It does not change
 * between versions (tvm/ffi/c_api.h). The functions are those of libtvm_ffi.so, which the process has loaded before such a library. */
#ifndef OPC_ADAPTERS_TVM_FFI_API_H
#define OPC_ADAPTERS_TVM_FFI_API_H

#include <stddef.h>
#include <stdint.h>

#include "opc/core/dlpack.h"

namespace opc {
namespace tvm {

/* What a value is. */
enum : int32_t {
  none = 0,
  whole_number = 1,
  truth = 2,
  real_number = 3,
  data_type = 5,
  tensor_pointer = 7,
  raw_text = 8,
  small_text = 11,
  text_object = 65,
  shape_object = 69,
  tensor_object = 70,
  array_object = 71,
  list_object = 75,
  big_number = 78
};

/* Of an object only the size matters: behind it stands what its kind has. */
struct Object {
  uint64_t references;
  int32_t kind;
  uint32_t padding;
  void (*deleter)(void *, int);
};

struct Value {
  int32_t kind;
  uint32_t length; /* of a small text */
  union {
    int64_t whole;
    double real;
    void *pointer;
    const char *text;
    char small[8];
    DLDataType dtype;
  };
};

struct Bytes {
  const char *data;
  size_t size;
};

struct Shape {
  const int64_t *data;
  size_t size;
};

struct Sequence {
  const Value *data;
  int64_t size;
};

/* What stands behind the head of an object. */
template <class T>
const T *content(const Value &value) {
  return reinterpret_cast<const T *>(static_cast<const Object *>(value.pointer) + 1);
}

/* DLPack's tensor that gives its memory back itself: `DLManagedTensorVersioned` of its versions 1. */
struct Managed {
  struct {
    uint32_t major, minor;
  } version;
  void *context;
  void (*deleter)(Managed *);
  uint64_t flags;
  DLTensor tensor;
};

}  // namespace tvm
}  // namespace opc

extern "C" {
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFITensorFromDLPackVersioned(opc::tvm::Managed *from, int32_t alignment, int32_t contiguous, void **made);
int TVMFFIFunctionGetGlobal(const opc::tvm::Bytes *name, void **function);
int TVMFFIFunctionCall(void *function, opc::tvm::Value *arguments, int32_t count, opc::tvm::Value *result);
int TVMFFIObjectDecRef(void *object);
}

#endif /* OPC_ADAPTERS_TVM_FFI_API_H */
