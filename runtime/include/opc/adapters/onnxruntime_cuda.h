/* Kernels for CUDA's provider of a generated library, which loads in an ONNX Runtime for CPUs all the same: those of `lib<op>_cuda.so`
 * beside the library, which is loaded for the first node that the provider takes. Included by opc/adapters/onnxruntime.h.
 *
 * Stream, device and memory between kernels are ONNX Runtime's, so that a run can be captured in a CUDA graph. Nothing waits for the
 * device. All operands lie in its memory: no op's shapes depend on what tensors hold. Kernels that may find an index outside its axis
 * are called by `opc_array_call` of their library, which stops the GPU then; see opc/adapters/cuda_call.h.
 */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_CUDA_H
#define OPC_ADAPTERS_ONNXRUNTIME_CUDA_H

namespace opc::ort {

static CudaLibrary cuda_library;

/* The functions of an op for GPUs; `call` is NULL where its kernels find no mistakes in data. */
template <typename A>
struct CudaFunctions {
  using Kernel = int32_t(const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *);

  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_cuda_context *);
  Kernel *kernel;
  int32_t (*call)(Kernel *, const char *op, const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *);

  bool load(const Op<A> &op, const Message &message) {
    if (!cuda_library.load(op.type, dlsym(RTLD_DEFAULT, "ort_cuda_is_emulated") != nullptr, message)) return false;
    void *found[] = {cuda_library.function(op.name, "_cuda_infer"), cuda_library.function(op.name, "_cuda"),
                     cuda_library.function("array_call", "")};
    static_assert(sizeof found == sizeof *this);
    memcpy(static_cast<void *>(this), found, sizeof found);
    return (found[0] != nullptr && found[1] != nullptr) || message.refuse("%s: there is no kernel of it for GPUs", op.type);
  }

  int32_t run(const Op<A> &op, const DLTensor *const *inputs, DLTensor *const *outputs, const A *attributes,
              const opc_cuda_context *lent) const {
    return call == nullptr ? kernel(inputs, outputs, attributes, lent) : call(kernel, op.type, inputs, outputs, attributes, lent);
  }
};

/* The memory of the provider's GPU. */
class CudaMemory {
 public:
  CudaMemory() = default;
  CudaMemory(const CudaMemory &) = delete;
  CudaMemory &operator=(const CudaMemory &) = delete;
  ~CudaMemory() {
    if (allocator_ != nullptr) ReleaseAllocator::call(api_, allocator_);
  }

  Status *find(const Api *api, const KernelInfo *info) {
    api_ = api;
    OPC_ORT_TRY(KernelInfoGetAllocator::call(api, info, 0, &allocator_));
    OPC_ORT_TRY(AllocatorGetInfo::call(api, allocator_, &place_));
    return MemoryInfoGetId::call(api, place_, &device_);
  }

  int device() const { return device_; }

  /* Memory for kernels of a stream. What is given back is theirs again at once, and that of other streams when these have waited for
   * it. ONNX Runtime keeps no such order where it has no stream, nor has it scratch memory then. */
  void *take(const KernelContext *context, void *stream, size_t size) const {
    void *memory = nullptr;
    return succeeded(api_, stream == nullptr ? AllocatorAlloc::call(api_, allocator_, size, &memory)
                                             : GetScratchBuffer::call(api_, context, place_, size, &memory))
               ? memory
               : nullptr;
  }
  void give_back(void *memory) const { succeeded(api_, AllocatorFree::call(api_, allocator_, memory)); }

 private:
  const Api *api_ = nullptr;
  Allocator *allocator_ = nullptr;
  const MemoryInfo *place_ = nullptr;
  int device_ = 0;
};

/* What ONNX Runtime lends to one call. */
class CudaCall {
 public:
  opc_cuda_context context = {};

  CudaCall() = default;
  CudaCall(const CudaCall &) = delete;
  CudaCall &operator=(const CudaCall &) = delete;

  Status *begin(const Api *api, KernelContext *of, const CudaMemory &memory, const Message &message) {
    of_ = of;
    memory_ = &memory;
    context = {nullptr, memory.device(), take, give_back, this, nullptr, message.text, static_cast<int64_t>(message.size)};
    return GetGpuComputeStream::call(api, of, &context.stream);
  }

 private:
  static void *take(void *call, int64_t bytes, void *stream) {
    const CudaCall &own = *static_cast<const CudaCall *>(call);
    return own.memory_->take(own.of_, stream, static_cast<size_t>(bytes));
  }
  static void give_back(void *call, void *memory, int64_t, void *) { static_cast<const CudaCall *>(call)->memory_->give_back(memory); }

  KernelContext *of_ = nullptr;
  const CudaMemory *memory_ = nullptr;
};

template <typename A, int Count>
struct CudaOverloads {
  Overload<A> all[Count];
};

/* The same ops for CUDA's provider. */
template <typename A, int Count>
constexpr CudaOverloads<A, Count> on_cuda(const Overload<A> (&of)[Count]) {
  CudaOverloads<A, Count> made = {};
  for (int i = 0; i < Count; ++i) {
    made.all[i] = of[i];
    made.all[i].base.get_execution_provider_type = [](const CustomOp *) -> const char * { return "CUDAExecutionProvider"; };
  }
  return made;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_CUDA_H */
