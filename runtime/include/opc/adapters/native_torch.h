/* What native code on at::Tensor is called with. */
#ifndef OPC_ADAPTERS_NATIVE_TORCH_H
#define OPC_ADAPTERS_NATIVE_TORCH_H

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "opc/adapters/native.h"

namespace opc {

inline at::ScalarType scalar_type(dtype type) {
  switch (type) {
#define OPC_CASE(name, c, cpp) \
  case dtype_##name: return at::ScalarType::cpp;
    OPC_TORCH_DTYPES(OPC_CASE)
#undef OPC_CASE
    default: return at::ScalarType::Undefined;
  }
}

/* The tensor of an operand, sharing its memory; an undefined one for an optional operand that was not given. */
inline at::Tensor tensor_of(const DLTensor *tensor) {
  if (tensor == nullptr) return {};
  const at::IntArrayRef shape(tensor->shape, static_cast<size_t>(tensor->ndim));
  const at::TensorOptions options(scalar_type(dtype_of(*tensor)));
  if (tensor->strides == nullptr) return at::from_blob(data_of(*tensor), shape, options);
  return at::from_blob(data_of(*tensor), shape, at::IntArrayRef(tensor->strides, shape.size()), options);
}

/* As `guarded`, below autograd, and with torch's errors without their C++ backtraces. */
template <typename Code>
int32_t guarded_torch(const char *op, const opc_context *context, Code code) {
  return guarded(op, context, [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    try {
      code();
    } catch (const c10::Error &thrown) {
      throw error(thrown.what_without_backtrace());
    }
  });
}

}  // namespace opc
#endif  // OPC_ADAPTERS_NATIVE_TORCH_H
