/* Kernels of a generated library. Included by opc/adapters/onnxruntime.h. */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_KERNEL_H
#define OPC_ADAPTERS_ONNXRUNTIME_KERNEL_H

namespace opc::ort {

template <typename A>
const Overload<A> *overload_of(const CustomOp *self) {
  return reinterpret_cast<const Overload<A> *>(self);
}

/* The kernel of one node. */
template <typename A>
struct Kernel {
  const Api *api;
  const Overload<A> *overload;
  A attributes;
  Blocks memory;
  bool on_gpu;
  CudaFunctions<A> cuda; /* where it is on a GPU */
  CudaMemory place;
};

struct Pool {
  const Api *api;
  const KernelContext *context;
};

struct Ranges {
  opc_range_body body;
  void *argument;
  int64_t count, length;
};

inline void run_range(void *argument, size_t index) {
  const Ranges &r = *static_cast<const Ranges *>(argument);
  const int64_t begin = static_cast<int64_t>(index) * r.length;
  r.body(r.argument, begin, begin + r.length < r.count ? begin + r.length : r.count);
}

/* opc_context::parallel_for on ONNX Runtime's own threads. */
inline void parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  const Pool &p = *static_cast<const Pool *>(pool);
  constexpr int64_t kMostRanges = 64; /* enough to balance the threads of one machine, few enough to cost nothing */
  const int64_t wanted = grain > 0 ? (count + grain - 1) / grain : count;
  const int64_t ranges = wanted < kMostRanges ? wanted : kMostRanges;
  if (ranges <= 1) {
    if (count > 0) body(argument, 0, count);
    return;
  }
  Ranges r = {body, argument, count, (count + ranges - 1) / ranges};
  const size_t total = static_cast<size_t>((count + r.length - 1) / r.length);
  if (!succeeded(p.api, ParallelFor::call(p.api, p.context, run_range, total, 0, &r))) body(argument, 0, count);
}

struct Tensor {
  DLTensor view;
  int64_t shape[OPC_MAX_RANK];
};

inline Status *view_of(const Api *api, const Value *value, const char *op, const Operand &operand, ElementType type, DLDevice device,
                       Tensor *out) {
  TypeAndShape *info = nullptr;
  size_t rank = 0;
  OPC_ORT_TRY(GetTensorTypeAndShape::call(api, value, &info));
  Status *status = GetDimensionsCount::call(api, info, &rank);
  const bool fits = rank <= OPC_MAX_RANK;
  if (status == nullptr && fits) status = GetDimensions::call(api, info, out->shape, rank);
  ReleaseTypeAndShape::call(api, info);
  OPC_ORT_TRY(status);
  if (!fits) {
    char message[256];
    snprintf(message, sizeof message, "%s: input '%s' has %zu axes, at most %d are supported", op, operand.name, rank, OPC_MAX_RANK);
    return error(api, message);
  }
  out->view = {nullptr, device, static_cast<int32_t>(rank), dlpack_type(type), out->shape, nullptr, 0};
  return GetTensorMutableData::call(api, const_cast<Value *>(value), &out->view.data);
}

template <typename A>
Status *compute(void *kernel, KernelContext *context) {
  const Kernel<A> &k = *static_cast<const Kernel<A> *>(kernel);
  const Op<A> &op = *k.overload->op;
  const ElementType *types = k.overload->types;
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  Pool pool = {k.api, context};
  const opc_context host = {parallel_for, &pool, message, sizeof message};
  CudaCall lent;
  if (k.on_gpu) OPC_ORT_TRY(lent.begin(k.api, context, k.place, {message, sizeof message}));
  const DLDevice device = {k.on_gpu ? kDLCUDA : kDLCPU, k.place.device()};

  size_t given = 0;
  OPC_ORT_TRY(GetInputCount::call(k.api, context, &given));
  Tensor tensors[kMaxOperands];
  const DLTensor *inputs[kMaxOperands] = {};
  for (size_t i = 0; i < given && i < static_cast<size_t>(op.input_count); ++i) {
    const Value *value = nullptr;
    OPC_ORT_TRY(GetInput::call(k.api, context, i, &value));
    if (value == nullptr) continue;
    OPC_ORT_TRY(view_of(k.api, value, op.type, op.inputs[i], types[i], device, &tensors[i]));
    inputs[i] = &tensors[i].view;
  }

  A told;
  const A *attributes = &k.attributes;
  if (op.told_count != 0 && tells_sizes(op, k.attributes)) {
    told = k.attributes;
    attributes = &told;
    OPC_ORT_TRY(status_of(k.api, tell_sizes(op, inputs, &told, &host), message));
  }
  opc_tensor_type results[kMaxOperands];
  const int32_t fits =
      k.on_gpu ? k.cuda.infer(inputs, attributes, results, &lent.context) : op.infer(inputs, attributes, results, &host);
  OPC_ORT_TRY(status_of(k.api, fits, message));
  DLTensor views[kMaxOperands];
  DLTensor *outputs[kMaxOperands] = {};
  for (int i = 0; i < op.output_count; ++i) {
    opc_tensor_type &r = results[i];
    if (r.ndim < 0) continue; /* an optional output whose shape no given input determines */
    Value *value = nullptr;
    OPC_ORT_TRY(GetOutput::call(k.api, context, static_cast<size_t>(i), r.shape, static_cast<size_t>(r.ndim), &value));
    if (value == nullptr && op.outputs[i].optional) continue;
    if (value == nullptr) {
      snprintf(message, sizeof message, "%s: output '%s' is not optional", op.type, op.outputs[i].name);
      return error(k.api, message);
    }
    views[i] = {nullptr, device, r.ndim, r.dtype, r.shape, nullptr, 0};
    OPC_ORT_TRY(GetTensorMutableData::call(k.api, value, &views[i].data));
    outputs[i] = &views[i];
  }
  const int32_t code = k.on_gpu ? k.cuda.run(op, inputs, outputs, attributes, &lent.context)
                                : op.kernel(inputs, outputs, attributes, &host);
  return status_of(k.api, code, message);
}

template <typename A>
void destroy_kernel(void *kernel) {
  if (kernel == nullptr) return;
  static_cast<Kernel<A> *>(kernel)->~Kernel<A>();
  free(kernel);
}

/* Finds what calls on a GPU need. */
template <typename A>
Status *prepare_cuda(Kernel<A> *kernel, const KernelInfo *info) {
  char text[1024] = "";
  if (!kernel->cuda.load(*kernel->overload->op, {text, sizeof text})) return CreateStatus::call(kernel->api, kFail, text);
  return kernel->place.find(kernel->api, info);
}

template <typename A>
Status *create_kernel(const CustomOp *self, const Api *api, const KernelInfo *info, void **out) {
  const Overload<A> &overload = *overload_of<A>(self);
  *out = nullptr;
  void *memory = malloc(sizeof(Kernel<A>));
  if (memory == nullptr) return CreateStatus::call(api, kRuntimeException, "out of memory");
  const bool on_gpu = self->get_execution_provider_type(self) != nullptr;
  Kernel<A> *kernel = new (memory) Kernel<A>{api, &overload, {}, {}, on_gpu, {}, {}};
  const KernelAttributes source = {api, info};
  Status *status = read_attributes(*overload.library, source, overload.op->type, &kernel->attributes, &kernel->memory);
  if (status == nullptr) {
    char message[1024];
    message[0] = '\0'; /* the rest is not worth a call's time */
    const opc_context host = {nullptr, nullptr, message, sizeof message};
    const A known = known_attributes(*overload.op, kernel->attributes);
    status = status_of(api, overload.op->infer(nullptr, &known, nullptr, &host), message);
  }
  if (status == nullptr && on_gpu) status = prepare_cuda(kernel, info);
  if (status == nullptr)
    *out = kernel;
  else
    destroy_kernel<A>(kernel);
  return status;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_KERNEL_H */
