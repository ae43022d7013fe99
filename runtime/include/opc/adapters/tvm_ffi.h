/* What a generated library for tvm-ffi is made of: functions that take tensors of any framework, over the kernel C ABI of opc/abi.h.
 *
 * A call's arguments are the inputs, None for one that is not given; the attributes; and, if the caller says what it wants, the outputs:
 * a tensor is written to, True stands for one that is to be made, None for one that is not wanted. Without them all are made whose shapes
 * follow from the inputs. What is made is returned: a tensor, or of an op with several outputs an array of tensors and None. */
#ifndef OPC_ADAPTERS_TVM_FFI_H
#define OPC_ADAPTERS_TVM_FFI_H

#include "opc/adapters/tvm_ffi_arguments.h"
#include "opc/core/aligned.h"
#include "opc/core/denormals.h"

/* Runs a kernel's loop on the library's own threads; defined in threads.c. */
extern "C" void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);

namespace opc {
namespace tvm {

/* The most operands an op may have on one side. */
constexpr int max_operands = 32;

/* One op; `A` is the family's attribute struct, `names` are those of the inputs and then of the outputs. */
template <class A>
struct Op {
  const char *name;
  const char *const *names;
  int inputs, attributes, outputs;
  void (*read)(Arguments &, A &);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
};

/* Raises what a kernel has refused. */
inline int raise(int32_t code, const char *message) {
  const char *kind = code == OPC_OUT_OF_RANGE ? "IndexError" : code == OPC_OUT_OF_MEMORY ? "MemoryError" : "ValueError";
  return TVMFFIErrorSetRaisedFromCStr(kind, message), -1;
}

/* An output that this library makes, in one block with its memory, which the last of its users gives back. */
struct Made {
  Managed managed;
  int64_t shape[OPC_MAX_RANK], strides[OPC_MAX_RANK];

  static constexpr int64_t alignment = 64;

  /* NULL when there is no memory. */
  static Made *of(const opc_tensor_type &type) {
    int64_t bytes = itemsize(type.dtype);
    for (int32_t i = 0; i < type.ndim; ++i)
      if (__builtin_mul_overflow(bytes, type.shape[i], &bytes)) return nullptr;
    constexpr int64_t head = (sizeof(Made) + alignment - 1) / alignment * alignment;
    if (bytes > INT64_MAX - head) return nullptr;
    Made *const made = static_cast<Made *>(allocate_aligned(alignment, head + bytes));
    if (made == nullptr) return nullptr;
    for (int32_t i = 0; i < type.ndim; ++i) made->shape[i] = type.shape[i];
    find_strides(type.ndim, made->shape, nullptr, made->strides);
    made->managed = {{1, 0}, nullptr, release, 0,
                     {reinterpret_cast<char *>(made) + head, {kDLCPU, 0}, type.ndim, type.dtype, made->shape, made->strides, 0}};
    return made;
  }

  static void release(Managed *managed) { free_aligned(managed); }
};

/* The outputs of a call: those that the caller gives, and those that are made for it. */
class Outputs {
 public:
  explicit Outputs(int count) : count_(count) {}
  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  ~Outputs() {
    for (int i = 0; i < count_; ++i)
      if (made_[i] != nullptr) Made::release(&made_[i]->managed);
  }

  DLTensor *tensors[max_operands] = {};

  /* Makes an output; false when there is no memory. */
  bool make(int i, const opc_tensor_type &type) {
    made_[i] = Made::of(type);
    if (made_[i] == nullptr) return false;
    tensors[i] = &made_[i]->managed.tensor;
    any_ = true;
    return true;
  }

  /* Hands over what was made; the result of the call. */
  int give(Value *result) {
    *result = {none, 0, {0}};
    Value values[max_operands];
    int code = 0;
    for (int i = 0; i < count_; ++i) {
      values[i] = {none, 0, {0}};
      if (made_[i] == nullptr || code != 0) continue;
      code = TVMFFITensorFromDLPackVersioned(&made_[i]->managed, 0, 0, &values[i].pointer);
      if (code != 0) continue;
      made_[i] = nullptr;
      values[i].kind = tensor_object;
    }
    if (code == 0 && count_ == 1) return *result = values[0], 0;
    if (code == 0 && any_) code = as_array(values, result);
    for (int i = 0; i < count_; ++i)
      if (values[i].kind == tensor_object) TVMFFIObjectDecRef(values[i].pointer);
    return code;
  }

 private:
  int as_array(Value *values, Value *result) const {
    const Bytes name = {"ffi.Array", 9};
    void *function = nullptr;
    if (TVMFFIFunctionGetGlobal(&name, &function) != 0) return -1;
    const int code = TVMFFIFunctionCall(function, values, count_, result);
    TVMFFIObjectDecRef(function);
    return code;
  }

  const int count_;
  bool any_ = false;
  Made *made_[max_operands] = {};
};

/* The function of an op. */
template <class A>
int run(const Op<A> &op, const Value *given, int32_t count, Value *result) {
  Arguments arguments(op.name, given + op.inputs);
  const int least = op.inputs + op.attributes;
  if (count != least && count != least + op.outputs) {
    arguments.refuse("TypeError", "takes %d inputs, %d attributes, and %d outputs or none of these, but was given %d arguments",
                     op.inputs, op.attributes, op.outputs, static_cast<int>(count));
    return arguments.raise();
  }
  const DLTensor *inputs[max_operands];
  for (int i = 0; i < op.inputs; ++i) inputs[i] = arguments.tensor(op.names[i], given[i]);
  A attributes = {};
  op.read(arguments, attributes);
  Outputs outputs(op.outputs);
  const bool told = count > least;
  uint32_t wanted = 0; /* and not given */
  for (int i = 0; i < op.outputs; ++i) {
    const Value *value = told ? &given[least + i] : nullptr;
    if (value == nullptr || (value->kind == truth && value->whole != 0))
      wanted |= uint32_t{1} << i;
    else
      outputs.tensors[i] = arguments.tensor(op.names[op.inputs + i], *value);
  }
  if (!arguments.fit()) return arguments.raise();

  char message[1024];
  message[0] = '\0';
  const opc_context context = {opc_host_parallel_for, nullptr, message, sizeof message};
  /* Some frameworks' threads take denormal numbers for zero. */
  const KeptDenormals denormals;
  if (wanted != 0) {
    opc_tensor_type types[max_operands];
    const int32_t code = op.infer(inputs, &attributes, types, &context);
    if (code != OPC_OK) return raise(code, message);
    for (int i = 0; i < op.outputs; ++i) {
      if ((wanted >> i & 1) == 0 || types[i].ndim < 0) continue; /* the kernel says which one it must be given */
      if (!outputs.make(i, types[i])) return raise(OPC_OUT_OF_MEMORY, "no memory for an output");
    }
  }
  const int32_t code = op.kernel(inputs, outputs.tensors, &attributes, &context);
  return code != OPC_OK ? raise(code, message) : outputs.give(result);
}

}  // namespace tvm
}  // namespace opc

#endif /* OPC_ADAPTERS_TVM_FFI_H */
