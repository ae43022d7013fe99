/* Shape inference and registration of a generated library. Included by opc/adapters/onnxruntime.h. */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H
#define OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H

namespace opc::ort {

/* ---- Shape inference --------------------------------------------------------------------------------------------------------- */

/* A shape that may have unknown sizes: -1, with a name where the model gives one. */
struct SymbolicShape {
  size_t rank;
  int64_t sizes[OPC_MAX_RANK];
  const char *names[OPC_MAX_RANK];

  bool known(size_t axis) const { return sizes[axis] >= 0; }
  bool concrete() const {
    for (size_t i = 0; i < rank; ++i)
      if (!known(i)) return false;
    return true;
  }
  bool complete() const {
    for (size_t i = 0; i < rank; ++i)
      if (!known(i) && names[i][0] == '\0') return false;
    return true;
  }
  bool append(int64_t size, const char *name) {
    if (rank == OPC_MAX_RANK) return false;
    sizes[rank] = size;
    names[rank++] = name;
    return true;
  }
};

inline Status *read_shape(const Api *api, const ShapeInferContext *context, size_t index, ElementType *type, SymbolicShape *out) {
  TypeAndShape *info = nullptr; /* the context's own: not to be released */
  OPC_ORT_TRY(InferInputType::call(api, context, index, &info));
  OPC_ORT_TRY(GetElementType::call(api, info, type));
  if (*type == kUndefined) return nullptr;
  OPC_ORT_TRY(GetDimensionsCount::call(api, info, &out->rank));
  if (out->rank > OPC_MAX_RANK) return error(api, "too many axes");
  OPC_ORT_TRY(GetDimensions::call(api, info, out->sizes, out->rank));
  return GetSymbolicDimensions::call(api, info, out->names, out->rank);
}

inline Status *write_shape(const Api *api, const ShapeInferContext *context, size_t index, ElementType type, SymbolicShape &shape) {
  TypeAndShape *info = nullptr;
  OPC_ORT_TRY(CreateTypeAndShape::call(api, &info));
  Status *status = SetElementType::call(api, info, type);
  if (status == nullptr) status = SetDimensions::call(api, info, shape.sizes, shape.rank);
  if (status == nullptr) status = SetSymbolicDimensions::call(api, info, shape.names, shape.rank);
  if (status == nullptr) status = InferSetOutput::call(api, context, index, info);
  ReleaseTypeAndShape::call(api, info);
  return status;
}

/* Broadcasts axes [from, to) of `shape` into the axes of `out` from `base` on, both aligned at their ends. Returns false where an
 * unknown size leaves the result open. */
inline bool broadcast_into(SymbolicShape *out, size_t base, const SymbolicShape &shape, size_t from, size_t to) {
  while (out->rank - base < to - from) {
    if (!out->append(1, "")) return false;
    memmove(out->sizes + base + 1, out->sizes + base, (out->rank - 1 - base) * sizeof *out->sizes);
    memmove(out->names + base + 1, out->names + base, (out->rank - 1 - base) * sizeof *out->names);
    out->sizes[base] = 1;
    out->names[base] = "";
  }
  for (size_t i = 1; i <= to - from; ++i) {
    const size_t source = to - i, target = out->rank - i;
    const bool same = shape.sizes[source] == out->sizes[target] && strcmp(shape.names[source], out->names[target]) == 0;
    if (same || shape.sizes[source] == 1) continue;
    if (out->sizes[target] == 1 || (shape.known(source) && !out->known(target))) {
      out->sizes[target] = shape.sizes[source];
      out->names[target] = shape.names[source];
    } else if (!out->known(target) && !shape.known(source)) {
      return false; /* two names: either may be 1 */
    }
  }
  return true;
}

/* Works out an output's shape from its axes; returns false where it is not known. */
inline bool output_shape(const OutputShape &axes, const SymbolicShape *inputs, const bool *present, int64_t axis, SymbolicShape *out) {
  out->rank = 0;
  size_t base = 0;
  bool continued = false;
  for (int i = 0; i < axes.count; ++i) {
    const Axes &a = axes.axes[i];
    if (a.kind == Axes::kComputed) return false;
    if (a.kind == Axes::kSize) {
      if (!out->append(a.size, "")) return false;
      continue;
    }
    if (!continued) base = out->rank;
    continued = a.kind == Axes::kBroadcast && a.more;
    if (!present[a.input]) {
      if (a.kind == Axes::kBroadcast) continue;
      return false;
    }
    const SymbolicShape &shape = inputs[a.input];
    const int64_t rank = static_cast<int64_t>(shape.rank);
    const int64_t from = axis_of(a.from, rank, axis), to = axis_of(a.to, rank, axis);
    if (from < 0 || to < from || to > rank) return false;
    if (a.kind == Axes::kBroadcast) {
      if (!broadcast_into(out, base, shape, static_cast<size_t>(from), static_cast<size_t>(to))) return false;
      continue;
    }
    for (int64_t j = from; j < to; ++j)
      if (!out->append(shape.sizes[j], shape.names[j])) return false;
  }
  return out->complete();
}

/* The output shapes by the kernel's own inference, where every size is a number. */
template <typename A>
bool concrete_shapes(const Op<A> &op, const ElementType *types, const SymbolicShape *shapes, const bool *present, const A &attributes,
                     SymbolicShape *out) {
  DLTensor views[kMaxOperands];
  const DLTensor *inputs[kMaxOperands] = {};
  for (int i = 0; i < op.input_count; ++i) {
    if (!present[i]) continue;
    if (!shapes[i].concrete()) return false;
    views[i] = {nullptr, {kDLCPU, 0}, static_cast<int32_t>(shapes[i].rank), dlpack_type(types[i]), const_cast<int64_t *>(shapes[i].sizes),
                nullptr, 0};
    inputs[i] = &views[i];
  }
  opc_tensor_type results[kMaxOperands];
  const opc_context silent = {};
  if (op.infer(inputs, &attributes, results, &silent) != OPC_OK) return false;
  for (int i = 0; i < op.output_count; ++i) {
    out[i].rank = 0;
    if (results[i].ndim < 0) out[i].append(-1, "");
    for (int32_t j = 0; j < results[i].ndim; ++j) out[i].append(results[i].shape[j], "");
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
  bool present[kMaxOperands] = {};
  for (size_t i = 0; i < given && i < static_cast<size_t>(op.input_count); ++i) {
    if (!succeeded(api, read_shape(api, context, i, &types[i], &shapes[i]))) return nullptr;
    present[i] = types[i] != kUndefined;
    /* A shape of no axes is also what ONNX Runtime makes of a shape it does not know. */
    if (present[i] && shapes[i].rank == 0 && !op.inputs[i].scalar) return nullptr;
  }
  A attributes;
  Memory memory;
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
  const bool concrete = concrete_shapes(op, types, shapes, present, attributes, results);
  for (int i = 0; i < op.output_count; ++i) {
    if (concrete ? !results[i].complete() : !output_shape(op.shapes[i], shapes, present, axis, &results[i])) continue;
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
    OPC_ORT_TRY(CustomOpDomainAdd::call(api, domain, &library.cuda_overloads[i].base));
  return nullptr;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_LIBRARY_H */
