/* What a generated JAX library is made of: handlers of XLA's foreign functions, over the kernel C ABI of opc/abi.h.
 *
 * They are written on the C API that jaxlib ships (`jax.ffi.include_dir()`), not on the C++ templates around it. A call's one attribute
 * is `opc`, a list of integers: which inputs are given and which outputs are wanted, each as a mask; how many leading axes of every
 * operand are batch axes, for each point of which the kernel is called; then the op's attributes in order.
 */
#ifndef OPC_ADAPTERS_JAX_H
#define OPC_ADAPTERS_JAX_H

#include <stdint.h>
#include <string.h>

#include "opc/abi.h"
#include "opc/adapters/jax_threads.h"
#include "opc/adapters/packed.h"
#include "opc/core/denormals.h"
#include "opc/core/tensor.h"
#include "xla/ffi/api/c_api.h"

namespace opc {
namespace jax {

constexpr dtype_number<int32_t> dtype_numbers[] = {
#define OPC_ROW(name, number) {dtype_##name, number},
    OPC_XLA_DTYPES(OPC_ROW)
#undef OPC_ROW
};

/* The dtypes at XLA's numbers: a call looks one up for each operand. */
struct dtypes_by_number {
  static constexpr uint32_t count = 64;
  dtype at[count] = {};
  constexpr dtypes_by_number() {
    for (uint32_t number = 0; number < count; ++number) at[number] = element_of(dtype_numbers, static_cast<int32_t>(number));
  }
  dtype operator[](uint32_t number) const { return number < count ? at[number] : dtype_unknown; }
};
constexpr dtypes_by_number dtypes;

/* The most operands an op may have on one side. */
constexpr int max_operands = 32;

/* One op; `A` is the family's attribute struct. */
template <class A>
struct Op {
  const char *name;
  int inputs, outputs;
  void (*attributes)(Packed &, A &);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
};

inline XLA_FFI_Error *refuse(const XLA_FFI_CallFrame *frame, const char *message, XLA_FFI_Error_Code code) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

inline XLA_FFI_Error_Code error_code(int32_t code) {
  if (code == OPC_OUT_OF_RANGE) return XLA_FFI_Error_Code_OUT_OF_RANGE;
  if (code == OPC_OUT_OF_MEMORY) return XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
  return code > OPC_OUT_OF_MEMORY ? XLA_FFI_Error_Code_INTERNAL : XLA_FFI_Error_Code_INVALID_ARGUMENT;
}

/* Answers what XLA asks a handler of itself when it is registered: the API that it was compiled against. */
inline bool tell_version(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Extension_Base *extension = frame->extension_start;
  if (extension == nullptr || extension->type != XLA_FFI_Extension_Metadata) return false;
  XLA_FFI_Metadata *metadata = reinterpret_cast<XLA_FFI_Metadata_Extension *>(extension)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  metadata->traits = 0;
  return true;
}

/* The list that the attribute `opc` holds; NULL where the call has another form. */
inline const int64_t *packed_list(const XLA_FFI_Attrs &attributes) {
  if (attributes.size != 1 || attributes.types[0] != XLA_FFI_AttrType_ARRAY) return nullptr;
  const XLA_FFI_Array *array = static_cast<const XLA_FFI_Array *>(attributes.attrs[0]);
  return array->dtype == XLA_FFI_DataType_S64 && array->size >= 3 ? static_cast<const int64_t *>(array->data) : nullptr;
}

/* The operands of a call, without their batch axes. XLA's buffers are dense, the last axis innermost. */
class Operands {
 public:
  explicit Operands(DLDevice device) : device_(device) {}

  /* Takes the next operand of one side, if the mask has it; the result says whether there was one to take. */
  bool take(int64_t mask, int i, void *const *buffers, int64_t count, int64_t &next, int64_t batch_axes, DLTensor *&view) {
    view = nullptr;
    if ((mask >> i & 1) == 0) return true;
    if (next >= count) return false;
    const XLA_FFI_Buffer *buffer = static_cast<const XLA_FFI_Buffer *>(buffers[next++]);
    if (buffer->rank < batch_axes || buffer->rank - batch_axes > OPC_MAX_RANK) return false;
    const DLDataType type = dlpack_of(dtypes[static_cast<uint32_t>(buffer->dtype)]);
    view = &views_[count_];
    *view = {buffer->data, device_, static_cast<int32_t>(buffer->rank - batch_axes), type, buffer->dims + batch_axes, nullptr, 0};
    if (batch_axes > 0) measure(*buffer, batch_axes, itemsize(type));
    ++count_;
    return true;
  }

  int64_t points() const { return points_; }

  void move_to(int64_t point) {
    for (int i = 0; i < count_; ++i) views_[i].byte_offset = size_[i] * static_cast<uint64_t>(point);
  }

 private:
  void measure(const XLA_FFI_Buffer &buffer, int64_t batch_axes, int64_t item) {
    int64_t points = 1, elements = 1;
    for (int64_t axis = 0; axis < buffer.rank; ++axis) (axis < batch_axes ? points : elements) *= buffer.dims[axis];
    size_[count_] = static_cast<uint64_t>(elements * item);
    points_ = points; /* the same for all: the primitive's batching rule gives all of them the same axes */
  }

  const DLDevice device_;
  DLTensor views_[2 * max_operands];
  uint64_t size_[2 * max_operands];
  int count_ = 0;
  int64_t points_ = 1;
};

/* Takes a call apart and has `start` run the kernel for each point of the batch axes: start(inputs, outputs, attributes) returns a code,
 * and has written a message to `message` where it is not OPC_OK. Operands lie in the memory of `device`. */
template <class A, class Start>
XLA_FFI_Error *each_point(const Op<A> &op, XLA_FFI_CallFrame *frame, DLDevice device, const char *message, const Start &start) {
  const int64_t *const list = packed_list(frame->attrs);
  if (list == nullptr) return refuse(frame, "the attribute opc must be a list of integers", XLA_FFI_Error_Code_INVALID_ARGUMENT);
  Packed packed(list + 3);
  A attributes = {};
  op.attributes(packed, attributes);
  Operands operands(device);
  DLTensor *inputs[max_operands], *outputs[max_operands];
  int64_t next_input = 0, next_output = 0;
  bool whole = true;
  for (int i = 0; i < op.inputs; ++i)
    whole = operands.take(list[0], i, frame->args.args, frame->args.size, next_input, list[2], inputs[i]) && whole;
  for (int i = 0; i < op.outputs; ++i)
    whole = operands.take(list[1], i, frame->rets.rets, frame->rets.size, next_output, list[2], outputs[i]) && whole;
  if (!whole || next_input != frame->args.size || next_output != frame->rets.size)
    return refuse(frame, "other operands than the attribute opc says", XLA_FFI_Error_Code_INVALID_ARGUMENT);
  for (int64_t point = 0; point < operands.points(); ++point) {
    if (point > 0) operands.move_to(point);
    const int32_t code = start(inputs, outputs, attributes);
    if (code != OPC_OK) return refuse(frame, message, error_code(code));
  }
  return nullptr;
}

/* The handler of an op on the CPU. */
template <class A>
XLA_FFI_Error *run(const Op<A> &op, XLA_FFI_CallFrame *frame) {
  if (tell_version(frame)) return nullptr;
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  Pool pool = {frame->api, frame->ctx};
  const opc_context context = {Pool::parallel_for, &pool, message, sizeof message};
  /* XLA's threads take denormal numbers for zero. */
  const KeptDenormals denormals;
  const auto start = [&](const DLTensor *const *inputs, DLTensor *const *outputs, const A &attributes) {
    return op.kernel(inputs, outputs, &attributes, &context);
  };
  return each_point(op, frame, {kDLCPU, 0}, message, start);
}

}  // namespace jax
}  // namespace opc

#endif /* OPC_ADAPTERS_JAX_H */
