// Tensors, and the maps from indices to them.
#ifndef POPART_EMULATION_TENSOR_IMPL_HPP
#define POPART_EMULATION_TENSOR_IMPL_HPP

#include <algorithm>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION void TensorIndexMap::insert(int index, Tensor *tensor) {
  if (!tensor_map.emplace(index, tensor).second) throw internal_error("index {} is already in the map", index);
}

POPLAR_EMULATION_FUNCTION Tensor *TensorIndexMap::tensor(int index) {
  const auto found = tensor_map.find(index);
  if (found == tensor_map.end())
    throw internal_error("index {} is not in the map of tensors, which has {} of them", index, tensor_map.size());
  return found->second;
}

POPLAR_EMULATION_FUNCTION const Tensor *TensorIndexMap::tensor(int index) const {
  return const_cast<TensorIndexMap *>(this)->tensor(index);
}

POPLAR_EMULATION_FUNCTION TensorId TensorIndexMap::id(int index) const { return tensor(index)->id; }

POPLAR_EMULATION_FUNCTION std::vector<int> TensorIndexMap::indices(Tensor *tensor) const {
  std::vector<int> out;
  for (const auto &entry : tensor_map) {
    if (entry.second == tensor) out.push_back(entry.first);
  }
  return out;
}

POPLAR_EMULATION_FUNCTION std::map<int, TensorId> TensorIndexMap::tensorIdMap() const {
  std::map<int, TensorId> out;
  for (const auto &entry : tensor_map) out[entry.first] = entry.second->id;
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<Tensor *> TensorIndexMap::tensors() const {
  std::vector<Tensor *> out;
  for (const auto &entry : tensor_map) {
    if (std::find(out.begin(), out.end(), entry.second) == out.end()) out.push_back(entry.second);
  }
  return out;
}

POPLAR_EMULATION_FUNCTION void TensorIndexMap::setInfoIfIndex(const TensorInfo &info, int index) {
  if (hasIndex(index)) tensor(index)->info = info;
}

POPLAR_EMULATION_FUNCTION void Consumers::increment(Op *op) {
  if (++counts[op] == 1) ops.push_back(op);
}

POPLAR_EMULATION_FUNCTION void Consumers::decrement(Op *op) {
  const auto found = counts.find(op);
  if (found == counts.end()) throw internal_error("cannot decrement a consumer that is none");
  if (--found->second == 0) {
    counts.erase(found);
    ops.erase(std::find(ops.begin(), ops.end(), op));
  }
}

POPLAR_EMULATION_FUNCTION int Consumers::getTotal() const {
  int total = 0;
  for (const auto &entry : counts) total += entry.second;
  return total;
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Tensor> Tensor::clone(Graph &graph_) const {
  std::unique_ptr<Tensor> out(new Tensor("clone_" + id, type_, graph_));
  out->info = info;
  if (data_) out->setTensorData(*data_);
  return out;
}

POPLAR_EMULATION_FUNCTION Op *Tensor::getProducer() const {
  if (!producer) throw error("No producer for tensor {} to return", id);
  return producer;
}

POPLAR_EMULATION_FUNCTION void Tensor::setProducer(Op *op) {
  if (producer) throw error("Cannot set a producer for Tensor {} as already one", id);
  producer = op;
}

POPLAR_EMULATION_FUNCTION TensorData *Tensor::tensorData() {
  if (!data_) throw error("Data not set for {}", id);
  return data_.get();
}

POPLAR_EMULATION_FUNCTION const TensorData *Tensor::tensorData() const { return const_cast<Tensor *>(this)->tensorData(); }

POPLAR_EMULATION_FUNCTION bool Tensor::isGraphInput() const { return graph.hasInputId(id); }
POPLAR_EMULATION_FUNCTION InIndex Tensor::getGraphInputIndex() const { return graph.getInputIndex(id); }
POPLAR_EMULATION_FUNCTION bool Tensor::isGraphOutput() const { return graph.hasOutputId(id); }
POPLAR_EMULATION_FUNCTION OutIndex Tensor::getGraphOutputIndex() const { return graph.getOutputIndex(id); }
POPLAR_EMULATION_FUNCTION Ir &Tensor::getIr() { return graph.getIr(); }
POPLAR_EMULATION_FUNCTION const Ir &Tensor::getIr() const { return const_cast<const Graph &>(graph).getIr(); }
POPLAR_EMULATION_FUNCTION bool Tensor::isAnchored() const { return getIr().isAnchored(id); }

POPLAR_EMULATION_FUNCTION Tensor *Tensors::get(TensorId id) const {
  const auto found = tensors.find(id);
  if (found == tensors.end()) throw error("No Ir::Tensor with TensorId '{}' in Tensors::get(..)", id);
  return found->second.get();
}

POPLAR_EMULATION_FUNCTION TensorId Tensors::find(TensorId id, const Scope &scope) const {
  for (Scope s = scope;; s.pop()) {
    const TensorId scoped = s.empty() ? id : (s / id).str();
    if (contains(scoped)) return scoped;
    if (s.empty()) break;
  }
  throw error("Could not find tensor with id '{}' in scope '{}'", id, scope);
}

POPLAR_EMULATION_FUNCTION bool Tensors::contains(TensorId id, const Scope &scope) const {
  for (Scope s = scope;; s.pop()) {
    if (contains(s.empty() ? id : (s / id).str())) return true;
    if (s.empty()) return false;
  }
}

POPLAR_EMULATION_FUNCTION Tensor *Tensors::insert(const TensorId &id, TensorType type) {
  if (contains(id)) throw internal_error("tensor {} already in M", id);
  std::unique_ptr<Tensor> tensor(new Tensor(id, type, graph));
  Tensor *out = tensor.get();
  tensors.emplace(id, std::move(tensor));
  return out;
}

POPLAR_EMULATION_FUNCTION void Tensors::addVarInit(const TensorId &id, const TensorInfo &info, const void *src, const DebugContext &) {
  Tensor *tensor = insert(id, TensorType::Variable);
  tensor->info = info;
  tensor->setTensorDataFromCopyOf(src, static_cast<std::size_t>(info.nbytes()));
}

POPLAR_EMULATION_FUNCTION void Tensors::addConstInit(const TensorId &id, const TensorInfo &info, const void *src,
                                                     const DebugContext &) {
  Tensor *tensor = insert(id, TensorType::Const);
  tensor->info = info;
  tensor->setTensorDataFromCopyOf(src, static_cast<std::size_t>(info.nbytes()));
}

POPLAR_EMULATION_FUNCTION void Tensors::addStream(TensorId id, const TensorInfo &info, const DebugContext &) {
  insert(id, TensorType::Stream)->info = info;
}

POPLAR_EMULATION_FUNCTION void Tensors::addActGrad(TensorId id, const DebugContext &) { insert(id, TensorType::ActGrad); }

POPLAR_EMULATION_FUNCTION TensorId Tensors::moveIntoTensors(std::unique_ptr<Tensor> tensor) {
  const TensorId id = tensor->id;
  if (contains(id)) throw internal_error("tensor {} already in M", id);
  tensors.emplace(id, std::move(tensor));
  return id;
}

POPLAR_EMULATION_FUNCTION std::vector<Tensor *> Tensors::getAll() const {
  std::vector<Tensor *> out;
  for (const auto &entry : tensors) out.push_back(entry.second.get());
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<Tensor *> Tensors::getOfType(TensorType type) const {
  std::vector<Tensor *> out;
  for (Tensor *tensor : getAll()) {
    if (tensor->tensorType() == type) out.push_back(tensor);
  }
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<TensorId> Tensors::getIds(TensorType type) const {
  std::vector<TensorId> out;
  for (Tensor *tensor : getOfType(type)) out.push_back(tensor->id);
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<TensorId> Tensors::getAllTensorIds() const {
  std::vector<TensorId> out;
  for (const auto &entry : tensors) out.push_back(entry.first);
  return out;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
