/* Handlers for XLA's platform CUDA in a generated library, which loads where there is no CUDA all the same: the kernels are those of
 * `lib<op>_cuda.so` beside the library, which is loaded at the first call.
 *
 * Stream, device and memory between kernels are XLA's, and nothing waits for the device. Kernels that may find an index outside its axis
 * are called by `opc_array_call` of their library, which stops the GPU then; see opc/adapters/cuda_call.h. */
#ifndef OPC_ADAPTERS_JAX_CUDA_H
#define OPC_ADAPTERS_JAX_CUDA_H

#include "opc/adapters/cuda_library.h"
#include "opc/adapters/jax.h"
#include "opc/cuda/abi.h"

namespace opc {
namespace jax {

static CudaLibrary cuda_library;

/* What XLA lends to one call. */
class CudaCall {
 public:
  opc_cuda_context context = {};

  explicit CudaCall(XLA_FFI_CallFrame *frame) : pool_{frame->api, frame->ctx} {}
  CudaCall(const CudaCall &) = delete;
  CudaCall &operator=(const CudaCall &) = delete;

  /* False where XLA does not say on which stream, or of which device. */
  bool begin(char *message, size_t size) {
    XLA_FFI_Stream_Get_Args stream = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, nullptr, pool_.context, nullptr};
    XLA_FFI_DeviceOrdinal_Get_Args device = {XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, nullptr, pool_.context, 0};
    if (!pool_.passed(pool_.api->XLA_FFI_Stream_Get(&stream))) return false;
    if (!pool_.passed(pool_.api->XLA_FFI_DeviceOrdinal_Get(&device))) return false;
    context = {stream.stream, device.device_ordinal, take, give_back, this, nullptr, message, static_cast<int64_t>(size)};
    return true;
  }

 private:
  static void *take(void *call, int64_t bytes, void *) {
    const Pool &xla = static_cast<const CudaCall *>(call)->pool_;
    XLA_FFI_DeviceMemory_Allocate_Args args = {
        XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE, nullptr, xla.context, static_cast<size_t>(bytes), 256, nullptr};
    return xla.passed(xla.api->XLA_FFI_DeviceMemory_Allocate(&args)) ? args.data : nullptr;
  }
  static void give_back(void *call, void *memory, int64_t bytes, void *) {
    const Pool &xla = static_cast<const CudaCall *>(call)->pool_;
    XLA_FFI_DeviceMemory_Free_Args args = {
        XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, nullptr, xla.context, static_cast<size_t>(bytes), memory};
    xla.passed(xla.api->XLA_FFI_DeviceMemory_Free(&args));
  }

  const Pool pool_;
};

/* The handler of an op, whose kernel is `opc_<symbol>_cuda`. */
template <class A>
XLA_FFI_Error *run_on_cuda(const Op<A> &op, const char *symbol, XLA_FFI_CallFrame *frame) {
  using Kernel = int32_t(const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *);
  using Caller = int32_t(Kernel *, const char *, const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *);
  if (tell_version(frame)) return nullptr;
  char message[1024];
  message[0] = '\0';
  const Message text = {message, sizeof message};
  if (!cuda_library.load(op.name, dlsym(RTLD_DEFAULT, "jax_cuda_is_emulated") != nullptr, text))
    return refuse(frame, message, XLA_FFI_Error_Code_FAILED_PRECONDITION);
  void *const found[] = {cuda_library.function(symbol, "_cuda"), cuda_library.function("array_call", "")};
  Kernel *kernel;
  Caller *caller;
  memcpy(&kernel, &found[0], sizeof kernel);
  memcpy(&caller, &found[1], sizeof caller);
  if (kernel == nullptr) {
    text.refuse("%s: there is no kernel of it for GPUs", op.name);
    return refuse(frame, message, XLA_FFI_Error_Code_UNIMPLEMENTED);
  }
  CudaCall call(frame);
  if (!call.begin(message, sizeof message)) {
    text.refuse("%s: XLA lends no stream of a GPU", op.name);
    return refuse(frame, message, XLA_FFI_Error_Code_FAILED_PRECONDITION);
  }
  const auto start = [&](const DLTensor *const *inputs, DLTensor *const *outputs, const A &attributes) {
    if (caller == nullptr) return kernel(inputs, outputs, &attributes, &call.context);
    return caller(kernel, op.name, inputs, outputs, &attributes, &call.context);
  };
  return each_point(op, frame, {kDLCUDA, call.context.device}, message, start);
}

}  // namespace jax
}  // namespace opc

#endif /* OPC_ADAPTERS_JAX_CUDA_H */
