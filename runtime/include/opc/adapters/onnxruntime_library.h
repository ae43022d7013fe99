/* Shape inference and registration of a generated library. Included by opc/adapters/onnxruntime.h. */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H
#define OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H

namespace opc::ort {

/* ---- Shape inference --------------------------------------------------------------------------------------------------------- */

inline Status *read_shape(const Api *api, const ShapeInferContext *context, size_t index, ElementType *type, SymbolicShape *out) {
  TypeAndShape *info = nullptr; /* the context's own: not to be released */
  OPC_ORT_TRY(InferInputType::call(api, context, index, &info));
  OPC_ORT_TRY(GetElementType::call(api, info, type));
  if (*type == kUndefined) return nullptr;
  size_t rank = 0;
  OPC_ORT_TRY(GetDimensionsCount::call(api, info, &rank));
  if (rank > OPC_MAX_RANK) return error(api, "too many axes");
  out->rank = static_cast<int64_t>(rank);
  OPC_ORT_TRY(GetDimensions::call(api, info, out->sizes, rank));
  return GetSymbolicDimensions::call(api, info, out->names, rank);
}

inline Status *write_shape(const Api *api, const ShapeInferContext *context, size_t index, ElementType type, SymbolicShape &shape) {
  TypeAndShape *info = nullptr;
  OPC_ORT_TRY(CreateTypeAndShape::call(api, &info));
  const size_t rank = static_cast<size_t>(shape.rank);
  Status *status = SetElementType::call(api, info, type);
  if (status == nullptr) status = SetDimensions::call(api, info, shape.sizes, rank);
  if (status == nullptr) status = SetSymbolicDimensions::call(api, info, shape.names, rank);
  if (status == nullptr) status = InferSetOutput::call(api, context, index, info);
  ReleaseTypeAndShape::call(api, info);
  return status;
}

/* The output shapes by the kernel's own inference, where every size is a number. */
template <typename A>
bool concrete_shapes(const Op<A> &op, const ElementType *types, const SymbolicShape *const *shapes, const A &attributes,
                     SymbolicShape *out) {
  if (tells_sizes(op, attributes)) return false;
  DLTensor views[kMaxOperands];
  const DLTensor *inputs[kMaxOperands] = {};
  for (int i = 0; i < op.input_count; ++i) {
    if (shapes[i] == nullptr) continue;
    if (!shapes[i]->concrete()) return false;
    views[i] = {nullptr, {kDLCPU, 0}, static_cast<int32_t>(shapes[i]->rank), dlpack_type(types[i]),
                const_cast<int64_t *>(shapes[i]->sizes), nullptr, 0};
    inputs[i] = &views[i];
  }
  opc_tensor_type results[kMaxOperands];
  const opc_context silent = {};
  if (op.infer(inputs, &attributes, results, &silent) != OPC_OK) return false;
  for (int i = 0; i < op.output_count; ++i) {
    out[i].rank = 0;
    if (results[i].ndim < 0) out[i].append(-1);
    for (int32_t j = 0; j < results[i].ndim; ++j) out[i].append(results[i].shape[j]);
  }
  return true;
}

/* Tells ONNX Runtime the outputs' types and shapes while a model loads. What is not known, or wrong, is left for the kernel to say when
 * it runs: ONNX Runtime drops the status of this function. */
template <typename A>
Status *infer_shapes(const CustomOp *self, ShapeInferContext *context) {
  const Library<A> &library = *overload_of<A>(self)->library;
  const Op<A> &op = *overload_of<A>(self)->op;
  const Api *api = library.api;
  size_t given = 0;
  if (!succeeded(api, InferInputCount::call(api, context, &given))) return nullptr;
  ElementType types[kMaxOperands] = {};
  SymbolicShape shapes[kMaxOperands];
  const SymbolicShape *present[kMaxOperands] = {};
  for (size_t i = 0; i < given && i < static_cast<size_t>(op.input_count); ++i) {
    if (!succeeded(api, read_shape(api, context, i, &types[i], &shapes[i]))) return nullptr;
    if (types[i] == kUndefined) continue;
    present[i] = &shapes[i];
    /* A shape of no axes is also what ONNX Runtime makes of a shape it does not know. */
    if (shapes[i].rank == 0 && !op.inputs[i].scalar) return nullptr;
  }
  A attributes;
  Blocks memory;
  const InferAttributes source = {api, context};
  if (!succeeded(api, read_attributes(library, source, op.type, &attributes, &memory))) return nullptr;

  /* ONNX Runtime calls the first overload's function whatever the types are. */
  const Overload<A> *overload = nullptr;
  for (int i = 0; i < library.overload_count && overload == nullptr; ++i) {
    bool matches = library.overloads[i].op == &op;
    for (int j = 0; j < op.input_count && matches; ++j) matches = !present[j] || types[j] == library.overloads[i].types[j];
    if (matches) overload = &library.overloads[i];
  }
  if (overload == nullptr) return nullptr;

  int64_t axis = 0;
  if (op.axis_offset >= 0) memcpy(&axis, reinterpret_cast<const char *>(&attributes) + op.axis_offset, sizeof axis);
  SymbolicShape results[kMaxOperands];
  const bool concrete = concrete_shapes(op, types, present, attributes, results);
  for (int i = 0; i < op.output_count; ++i) {
    if ((!concrete && !results[i].make(op.shapes[i], present, axis)) || !results[i].complete()) continue;
    succeeded(api, write_shape(api, context, static_cast<size_t>(i), overload->types[op.input_count + i], results[i]));
  }
  return nullptr;
}

/* ---- Registration ------------------------------------------------------------------------------------------------------------ */

template <typename A>
constexpr CustomOp custom_op() {
  CustomOp c = {};
  c.version = kApiVersion;
  c.get_name = [](const CustomOp *self) { return overload_of<A>(self)->op->type; };
  c.get_execution_provider_type = [](const CustomOp *) -> const char * { return nullptr; };
  c.get_input_count = [](const CustomOp *self) { return static_cast<size_t>(overload_of<A>(self)->op->input_count); };
  c.get_output_count = [](const CustomOp *self) { return static_cast<size_t>(overload_of<A>(self)->op->output_count); };
  c.get_input_type = [](const CustomOp *self, size_t i) { return overload_of<A>(self)->types[i]; };
  c.get_output_type = [](const CustomOp *self, size_t i) {
    return overload_of<A>(self)->types[static_cast<size_t>(overload_of<A>(self)->op->input_count) + i];
  };
  c.get_input_characteristic = [](const CustomOp *self, size_t i) {
    return overload_of<A>(self)->op->inputs[i].optional ? kOptional : kRequired;
  };
  c.get_output_characteristic = [](const CustomOp *self, size_t i) {
    return overload_of<A>(self)->op->outputs[i].optional ? kOptional : kRequired;
  };
  c.get_input_memory_type = [](const CustomOp *, size_t) { return 0; };
  c.get_start_version = [](const CustomOp *self) { return overload_of<A>(self)->op->version; };
  c.create_kernel_v2 = create_kernel<A>;
  c.kernel_compute_v2 = compute<A>;
  c.kernel_destroy = destroy_kernel<A>;
  c.infer_output_shape = infer_shapes<A>;
  return c;
}

inline void release_inplace(int *inputs, int *outputs) {
  free(inputs);
  free(outputs);
}

/* Tells ONNX Runtime which output may take which input's memory: `Pairs` are an input, its output, and so on. */
template <int... Pairs>
size_t may_inplace(int **inputs, int **outputs) {
  constexpr int pairs[] = {Pairs...};
  constexpr size_t count = sizeof...(Pairs) / 2;
  *inputs = static_cast<int *>(malloc(count * sizeof(int)));
  *outputs = static_cast<int *>(malloc(count * sizeof(int)));
  if (*inputs == nullptr || *outputs == nullptr) return 0;
  for (size_t i = 0; i < count; ++i) {
    (*inputs)[i] = pairs[2 * i];
    (*outputs)[i] = pairs[2 * i + 1];
  }
  return count;
}

/* An op whose outputs may take inputs' memory. */
template <typename A, int... Pairs>
constexpr CustomOp inplace_op() {
  CustomOp c = custom_op<A>();
  c.get_may_inplace = may_inplace<Pairs...>;
  c.release_may_inplace = release_inplace;
  return c;
}

/* Adds the library's ops to the session options: for CUDA's provider too, where their kernels for GPUs are built.
 *
 * ONNX Runtime refuses a domain that two libraries add, yet ops of one domain come in several libraries. So the first of them leaves
 * the address of its domain object in the options' configuration, where the others find it; and a second registration of one library is
 * none. A domain object lives as long as the process: sessions keep using it, and ONNX Runtime does not report when the last one
 * ends. */
template <typename A>
Status *register_library(Library<A> &library, SessionOptions *options, const ApiBase *base) {
  const Api *api = base->get_api(kApiVersion);
  if (api == nullptr) return CreateStatus::call(base->get_api(1), kFail, "this library needs ONNX Runtime 1.18 or later");
  library.api = api;

  char key[512];
  int found = 0;
  snprintf(key, sizeof key, "opc.library.%s.%s", library.domain, library.family);
  OPC_ORT_TRY(HasSessionConfigEntry::call(api, options, key, &found));
  if (found) return nullptr;
  OPC_ORT_TRY(AddSessionConfigEntry::call(api, options, key, "1"));

  CustomOpDomain *domain = nullptr;
  char address[32] = "";
  snprintf(key, sizeof key, "opc.domain.%s", library.domain);
  OPC_ORT_TRY(HasSessionConfigEntry::call(api, options, key, &found));
  if (found) {
    size_t size = sizeof address;
    OPC_ORT_TRY(GetSessionConfigEntry::call(api, options, key, address, &size));
    domain = reinterpret_cast<CustomOpDomain *>(strtoull(address, nullptr, 16));
  } else {
    OPC_ORT_TRY(CreateCustomOpDomain::call(api, library.domain, &domain));
    snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(domain)));
    OPC_ORT_TRY(AddSessionConfigEntry::call(api, options, key, address));
    OPC_ORT_TRY(AddCustomOpDomain::call(api, options, domain));
  }
  for (int i = 0; i < library.overload_count; ++i)
    OPC_ORT_TRY(CustomOpDomainAdd::call(api, domain, &library.overloads[i].base));
  cuda_library.name(library.family, library.source);
  /* Without kernels there, nodes go to the CPU's provider, and ONNX Runtime copies what they read and write. */
  for (int i = 0; cuda_library.is_there() && i < library.overload_count; ++i)
    if (library.overloads[i].op->told_count == 0) /* what tells a size would have to wait for the device */
      OPC_ORT_TRY(CustomOpDomainAdd::call(api, domain, &library.cuda_overloads[i].base));
  return nullptr;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H */
