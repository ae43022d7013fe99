// Graphs: their ops, inputs and outputs, the order of their ops, and copies.
#ifndef POPART_EMULATION_GRAPH_IMPL_HPP
#define POPART_EMULATION_GRAPH_IMPL_HPP

#include <algorithm>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION std::vector<OpId> Graph::getOpIds() const {
  std::vector<OpId> out;
  for (const auto &entry : ops) out.push_back(entry.first);
  return out;
}

POPLAR_EMULATION_FUNCTION Op *Graph::getOp(OpId opId) const {
  const auto found = ops.find(opId);
  if (found == ops.end()) throw error("No Op `{}'", opId);
  return found->second.get();
}

POPLAR_EMULATION_FUNCTION OpId Graph::moveIntoGraph(std::unique_ptr<Op> op) {
  const OpId opId = op->id;
  // A gradient op is made with the settings of the op it differentiates, whose graph may be another.
  op->settings.graph = *this;
  op->settings.scope = getScope();
  ops[opId] = std::move(op);
  return opId;
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> Graph::takeOp(OpId opId) {
  const auto found = ops.find(opId);
  if (found == ops.end()) throw error("No Op `{}'", opId);
  std::unique_ptr<Op> op = std::move(found->second);
  ops.erase(found);
  return op;
}

POPLAR_EMULATION_FUNCTION void Graph::eraseOp(OpId opId) {
  Op *op = getOp(opId);
  op->disconnectAllInputs();
  op->disconnectAllOutputs();
  ops.erase(opId);
}

POPLAR_EMULATION_FUNCTION Op *Graph::growFromNode(const emulation::Node &node) { return OpManager::createOpInGraph(node, *this); }

POPLAR_EMULATION_FUNCTION void Graph::connect(Op &op, const std::map<InIndex, TensorId> &in, const std::map<OutIndex, TensorId> &out) {
  for (const auto &entry : in) op.connectInTensorDispatch(entry.first, entry.second);
  for (const auto &entry : out) {
    if (!tensors.contains(entry.second)) {
      op.createAndConnectOutTensor(entry.first, entry.second);
      continue;
    }
    Tensor *tensor = tensors.get(entry.second);
    if (tensor->hasProducer()) tensor->getProducer()->disconnectOutTensor(tensor);
    op.connectOutTensor(entry.first, entry.second);
  }
  op.setup();
}

POPLAR_EMULATION_FUNCTION void Graph::connectInputs(const std::vector<TensorId> &inputs, OpId opId) {
  Op *op = getOp(opId);
  const std::set<InIndex> optional = op->optionalInputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InIndex index = static_cast<InIndex>(i);
    if (!inputs[i].empty()) {
      op->connectInTensor(index, tensors.find(inputs[i], op->getScope()));
    } else if (!optional.count(index)) {
      throw error("No input found for input {} of {}, but input is not optional", index, op->debugName());
    }
  }
}

POPLAR_EMULATION_FUNCTION void Graph::connectOutputs(const std::vector<TensorId> &outputs, OpId opId) {
  Op *op = getOp(opId);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty()) op->createAndConnectOutTensor(static_cast<OutIndex>(i), outputs[i]);
  }
}

POPLAR_EMULATION_FUNCTION int Graph::indexOf(const std::vector<TensorId> &ids, const TensorId &tensorId, const char *what) const {
  const auto found = std::find(ids.begin(), ids.end(), tensorId);
  if (found == ids.end()) throw error("Could not find {} tensor '{}' in {}", what, tensorId, getGraphString());
  return static_cast<int>(found - ids.begin());
}

POPLAR_EMULATION_FUNCTION bool Graph::hasInputId(const TensorId &tensorId) const {
  return std::find(graph_inputs.begin(), graph_inputs.end(), tensorId) != graph_inputs.end();
}

POPLAR_EMULATION_FUNCTION bool Graph::hasOutputId(const TensorId &tensorId) const {
  return std::find(graph_outputs.begin(), graph_outputs.end(), tensorId) != graph_outputs.end();
}

POPLAR_EMULATION_FUNCTION void Graph::addInput(const TensorId &tensorId, const TensorInfo &info) {
  tensors.addActGrad(tensorId);
  tensors.get(tensorId)->info = info;
  graph_inputs.push_back(tensorId);
}

POPLAR_EMULATION_FUNCTION void Graph::addInput(const InIndex &index, const TensorId &tensorId, const TensorInfo &info, bool overwrite) {
  addInput(tensorId, info);
  graph_inputs.pop_back();
  const std::size_t at = static_cast<std::size_t>(index);
  if (overwrite && at < graph_inputs.size()) {
    graph_inputs[at] = tensorId;
  } else {
    graph_inputs.insert(graph_inputs.begin() + static_cast<std::ptrdiff_t>(std::min(at, graph_inputs.size())), tensorId);
  }
}

POPLAR_EMULATION_FUNCTION TensorId Graph::addInput(const TensorInfo &info) {
  const TensorId tensorId = addScope(*this, "input_" + std::to_string(graph_inputs.size()));
  addInput(tensorId, info);
  return tensorId;
}

POPLAR_EMULATION_FUNCTION void Graph::markAsInput(const TensorId &tensorId) {
  tensors.get(tensorId);
  if (!hasInputId(tensorId)) graph_inputs.push_back(tensorId);
}

POPLAR_EMULATION_FUNCTION void Graph::removeInput(const TensorId &tensorId) {
  graph_inputs.erase(graph_inputs.begin() + getInputIndex(tensorId));
}

POPLAR_EMULATION_FUNCTION void Graph::markAsOutput(const TensorId &tensorId) {
  tensors.get(tensorId);
  graph_outputs.push_back(tensorId);
}

POPLAR_EMULATION_FUNCTION void Graph::removeOutput(const TensorId &tensorId) {
  graph_outputs.erase(graph_outputs.begin() + getOutputIndex(tensorId));
}

POPLAR_EMULATION_FUNCTION std::vector<const Graph *> Graph::getCalledGraphs() const {
  std::vector<const Graph *> out;
  for (const auto &entry : ops) {
    for (const Graph *called : entry.second->getCalledGraphs()) {
      if (std::find(out.begin(), out.end(), called) == out.end()) out.push_back(called);
    }
  }
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<Op *> Graph::getOpSchedule() const {
  std::map<Op *, std::set<Op *>> after;  // which ops come after an op
  std::map<Op *, int> waiting;
  const auto constrain = [&](Op *first, Op *second) {
    if (first != second && after[first].insert(second).second) ++waiting[second];
  };
  for (const auto &entry : ops) {
    Op *op = entry.second.get();
    for (const auto &in : op->input->tensorMap()) {
      if (in.second->hasProducer()) constrain(in.second->getProducer(), op);
      if (!op->modifiesIndex(in.first)) continue;
      for (Op *reader : in.second->consumers.getOps()) constrain(reader, op);
    }
  }
  std::map<OpId, Op *> ready;
  for (const auto &entry : ops) {
    if (!waiting[entry.second.get()]) ready[entry.first] = entry.second.get();
  }
  std::vector<Op *> out;
  while (!ready.empty()) {
    Op *op = ready.begin()->second;
    ready.erase(ready.begin());
    out.push_back(op);
    for (Op *next : after[op]) {
      if (--waiting[next] == 0) ready[next->id] = next;
    }
  }
  if (out.size() != ops.size()) throw error("The ops of {} can't be put into an order", getGraphString());
  return out;
}

POPLAR_EMULATION_FUNCTION void Graph::copyFrom(const Graph &other, CopyInputMarkings inputs, CopyOutputMarkings outputs) {
  const auto rename = [&](const TensorId &tensorId) { return addScope(*this, removeScope(other, tensorId)); };
  for (const Tensor *tensor : other.getTensors().getAll()) {
    const TensorId copyId = rename(tensor->id);
    if (tensors.contains(copyId)) continue;
    std::unique_ptr<Tensor> copy = tensor->clone(*this);
    copy->id = copyId;
    tensors.moveIntoTensors(std::move(copy));
  }
  for (Op *op : other.getOpSchedule()) {
    Op *copy = getOp(moveIntoGraph(op->clone()));
    for (const auto &entry : op->input->tensorMap()) copy->connectInTensor(entry.first, rename(entry.second->id));
    for (const auto &entry : op->output->tensorMap()) copy->connectOutTensor(entry.first, rename(entry.second->id));
    copy->setup();
  }
  if (inputs == CopyInputMarkings::Yes) {
    for (const TensorId &tensorId : other.getInputIds()) markAsInput(rename(tensorId));
  }
  if (outputs == CopyOutputMarkings::Yes) {
    for (const TensorId &tensorId : other.getOutputIds()) markAsOutput(rename(tensorId));
  }
}

POPLAR_EMULATION_FUNCTION TensorId removeScope(const Graph &graph, const TensorId &id) {
  const std::string prefix = graph.getScope().str() + Scope::delimiter();
  if (graph.getScope().empty()) return id;
  if (id.rfind(prefix, 0) != 0) throw error("Cannot remove scope from {} as it does not start with scope {}", id, graph.getScope());
  return id.substr(prefix.size());
}

}  // namespace popart
#pragma GCC visibility pop

#endif
