/* Sizes that data tells, where a node's attributes do not. Included by opc/adapters/onnxruntime.h. */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_SIZES_H
#define OPC_ADAPTERS_ONNXRUNTIME_SIZES_H

namespace opc::ort {

constexpr int64_t kTold = -1;

template <typename A>
int64_t &told_size(const Op<A> &op, A *attributes, int i) {
  return *reinterpret_cast<int64_t *>(reinterpret_cast<char *>(attributes) + op.told[i]);
}

template <typename A>
bool tells_sizes(const Op<A> &op, const A &attributes) {
  A given = attributes;
  for (int i = 0; i < op.told_count; ++i)
    if (told_size(op, &given, i) == kTold) return true;
  return false;
}

/* Attributes as far as they are known before there is data: sizes that it tells are 0. */
template <typename A>
A known_attributes(const Op<A> &op, const A &attributes) {
  A known = attributes;
  for (int i = 0; i < op.told_count; ++i)
    if (told_size(op, &known, i) == kTold) told_size(op, &known, i) = 0;
  return known;
}

/* Computes the sizes that data tells into `attributes`, those of one call. */
template <typename A>
int32_t tell_sizes(const Op<A> &op, const DLTensor *const *inputs, A *attributes, const opc_context *host) {
  const A given = known_attributes(op, *attributes);
  opc_tensor_type types[kMaxOperands];
  const int32_t fits = op.sizes->infer(inputs, &given, types, host);
  if (fits != OPC_OK) return fits;
  int64_t values[kMaxOperands];
  DLTensor views[kMaxOperands];
  DLTensor *outputs[kMaxOperands];
  for (int i = 0; i < op.told_count; ++i) {
    views[i] = {&values[i], {kDLCPU, 0}, 0, types[i].dtype, types[i].shape, nullptr, 0};
    outputs[i] = &views[i];
  }
  const int32_t code = op.sizes->kernel(inputs, outputs, &given, host);
  if (code != OPC_OK) return code;
  for (int i = 0; i < op.told_count; ++i)
    if (told_size(op, attributes, i) == kTold) told_size(op, attributes, i) = values[i];
  return OPC_OK;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_SIZES_H */
