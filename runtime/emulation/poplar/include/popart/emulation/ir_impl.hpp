// The intermediate representation: from a model, and what is done before lowering.
#ifndef POPART_EMULATION_IR_IMPL_HPP
#define POPART_EMULATION_IR_IMPL_HPP

#include <algorithm>
#include <functional>

#include <popart/emulation/autodiff.hpp>
#include <popart/tensornames.hpp>
#include <popart/transforms/autodiff.hpp>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION Ir::Ir() { createGraph(GraphId::root()); }
POPLAR_EMULATION_FUNCTION Ir::~Ir() = default;

POPLAR_EMULATION_FUNCTION Graph &Ir::getGraph(const GraphId &id) const {
  const auto found = graphs.find(id);
  if (found == graphs.end()) throw error("No graph '{}' in this Ir", id);
  return *found->second;
}

POPLAR_EMULATION_FUNCTION Graph &Ir::createGraph(const GraphId &id) {
  if (hasGraph(id)) throw error("Graph '{}' already exists", id);
  graphs[id].reset(new Graph(*this, id));
  return *graphs[id];
}

POPLAR_EMULATION_FUNCTION GraphId Ir::createUniqueSubgraphId(GraphId base) {
  const std::string name = base.str().empty() ? "subgraph" : base.str();
  for (;;) {
    const GraphId id(name + "_subgraph(" + std::to_string(subgraphs++) + ")");
    if (!hasGraph(id)) return id;
  }
}

POPLAR_EMULATION_FUNCTION std::vector<const Graph *> Ir::getAllGraphs() const {
  std::vector<const Graph *> out;
  for (const auto &entry : graphs) out.push_back(entry.second.get());
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<Op *> Ir::getAllOps() const {
  std::vector<Op *> out;
  for (const auto &graph : graphs) {
    for (const auto &entry : graph.second->getOps()) out.push_back(entry.second.get());
  }
  return out;
}

POPLAR_EMULATION_FUNCTION Tensor *Ir::getTensor(const TensorId &id) const {
  for (const auto &graph : graphs) {
    if (graph.second->getTensors().contains(id)) return graph.second->getTensors().get(id);
  }
  throw error("No Ir::Tensor with TensorId '{}' in this Ir", id);
}

POPLAR_EMULATION_FUNCTION bool Ir::containsTensor(const TensorId &id) const {
  return std::any_of(graphs.begin(), graphs.end(), [&](const std::pair<const GraphId, std::unique_ptr<Graph>> &graph) {
    return graph.second->getTensors().contains(id);
  });
}

POPLAR_EMULATION_FUNCTION std::set<TensorId> Ir::getAllTensorIds() const {
  std::set<TensorId> out;
  for (const auto &graph : graphs) {
    for (const TensorId &id : graph.second->getTensors().getAllTensorIds()) out.insert(id);
  }
  return out;
}

POPLAR_EMULATION_FUNCTION int Ir::getOpSetVersionFromModel(const std::string &domain) const {
  const auto found = opsets.find(domain.empty() ? std::string(Domain::ai_onnx) : domain);
  if (found == opsets.end()) throw error("No opset version defined for domain \'{}\'", domain);
  return found->second;
}

POPLAR_EMULATION_FUNCTION void Ir::setOpsets(const std::map<std::string, int> &versions) {
  for (const auto &entry : versions) opsets[entry.first.empty() ? std::string(Domain::ai_onnx) : entry.first] = entry.second;
}

POPLAR_EMULATION_FUNCTION void Ir::prepare(const emulation::Model &model, const TensorId &loss) {
  setOpsets(model.opsets);
  constructForwards(model);
  for (const TensorId &anchor : dataFlow.anchors()) addAnchor(anchor);
  if (!loss.empty()) constructBackwards(loss);
  finalise();
}

POPLAR_EMULATION_FUNCTION void Ir::constructForwards(const emulation::Model &model) {
  Graph &graph = getMainGraph();
  for (const auto &value : model.initialisers) {
    const void *data = value.second.data.data();
    if (isTesting() && userOptions.constantWeights) {
      graph.getTensors().addConstInit(value.first, value.second.info, data);
    } else {
      graph.getTensors().addVarInit(value.first, value.second.info, data);
    }
  }
  for (const auto &in : model.inputs) {
    if (graph.getTensors().contains(in.first)) continue;
    const TensorInfo &info = in.second.isSet() ? in.second : inputShapeInfo.get(in.first);
    graph.getTensors().addStream(in.first, info);
  }
  for (const emulation::Node &node : model.nodes) {
    const bool onnx = node.domain.empty() || node.domain == Domain::ai_onnx;
    if (onnx && node.type == "Constant") {
      const auto found = node.attributes.find("value");
      if (found == node.attributes.end()) throw error("The node that makes the constant '{}' has no value", node.outputs.at(0));
      graph.getTensors().addConstInit(node.outputs.at(0), found->second.t.info, found->second.t.data.data());
    } else {
      graph.growFromNode(node);
    }
  }
}

POPLAR_EMULATION_FUNCTION void Ir::constructBackwards(const TensorId &loss) {
  Graph &graph = getMainGraph();
  if (!graph.getTensors().contains(loss)) throw error("Could not find loss tensor '{}' in main graph tensors", loss);
  Tensor *tensor = graph.getTensors().get(loss);
  if (tensor->info.nelms() > 1) throw error("Loss tensor, '{}', must be a scalar tensor", loss);
  tensor->getProducer();

  FwdGraphToBwdGraphInfo called;
  for (const Graph *other : graph.getCalledGraphs()) {
    if (called.count(other->id)) continue;
    called = Autodiff().apply(*this, other->id, nonstd::nullopt, nonstd::nullopt, called, userOptions.autodiffSettings.stitchStrategy);
  }
  emulation::GradGrower(graph, graph, called).growFromLoss(loss, optimizer ? optimizer->getFinalLossScalingVal() : 1.0f);
  growVariableUpdates();
}

POPLAR_EMULATION_FUNCTION void Ir::growVariableUpdates() {
  Graph &graph = getMainGraph();
  if (!optimizer) return;
  for (const Tensor *variable : graph.getTensors().getOfType(TensorType::Variable)) {
    const TensorId grad = getGradId(variable->id);
    if (!graph.getTensors().contains(grad)) continue;
    const float rate = optimizer->learningRate() / optimizer->getFinalLossScalingVal();
    graph.createConnectedOp<SGD0VarUpdateOp>({{0, variable->id}, {1, grad}}, {{0, reservedUpdatedVarPrefix() + variable->id}}, rate,
                                             Op::Settings(graph, "Update_" + variable->id));
  }
}

POPLAR_EMULATION_FUNCTION void Ir::finalise() {
  if (prepared) throw error("The Ir is already prepared");
  for (const TensorId &anchor : dataFlow.anchors()) addAnchor(anchor);
  for (const TensorId &anchor : anchors) {
    if (!getMainGraph().getTensors().contains(anchor)) {
      throw error("Anchor tensor `{}' not in Ir Tensors", anchor);
    }
  }
  for (auto &graph : graphs) {
    for (const OpId opId : graph.second->getOpIds()) {
      Op *op = graph.second->getOp(opId);
      connectSeed(*op);
      verifyOp(*op);
      replaceByClone(*graph.second, *op);
    }
  }
  prune(getMainGraph());
  if (patterns.isInPlaceEnabled()) {
    for (auto &graph : graphs) applyInplacePattern(*graph.second);
  }
  prepared = true;
}

POPLAR_EMULATION_FUNCTION void Ir::connectSeed(Op &op) {
  if (!op.requiresRandomSeed()) return;
  setRequiresRandomSeed();
  if (op.hasInput(op.getSeedInIndex())) return;
  const TensorId id = addScope(op.getGraph(), std::string(reservedRandomSeedPrefix()) + std::to_string(op.id));
  const uint32_t seed[] = {42, static_cast<uint32_t>(op.id)};
  op.getGraph().getTensors().addConstInit(id, TensorInfo(DataType::UINT32, {2}), seed);
  op.connectInTensor(op.getSeedInIndex(), id);
  op.setup();
}

/// What an op says of itself, in text.
POPLAR_EMULATION_FUNCTION std::string Ir::describe(const Op &op) {
  OpEquivIdCreator os(&op);
  op.appendAttributes(os);
  return os.str();
}

POPLAR_EMULATION_FUNCTION void Ir::verifyOp(Op &op) const {
  std::map<OutIndex, TensorInfo> infos;
  for (const auto &entry : op.output->tensorMap()) {
    if (!entry.second->info.isSet()) throw error("The setup() of {} did not set the info of output {}", op.debugName(), entry.first);
    for (const int64_t size : entry.second->info.shape()) {
      if (size < 0) throw error("The setup() of {} gave output {} the shape {}", op.debugName(), entry.first, entry.second->info);
    }
    infos[entry.first] = entry.second->info;
  }
  const std::string text = describe(op);
  op.setup();
  for (const auto &entry : op.output->tensorMap()) {
    if (entry.second->info != infos[entry.first]) {
      throw error("The setup() of {} gave output {} the info {}, and {} when called again", op.debugName(), entry.first,
                  infos[entry.first], entry.second->info);
    }
  }
  if (describe(op) != text) throw error("The attributes of {} are written in two ways: {} and {}", op.debugName(), text, describe(op));
}

POPLAR_EMULATION_FUNCTION void Ir::replaceByClone(Graph &graph, Op &op) {
  const std::map<int, TensorId> inputs = op.input->tensorIdMap(), outputs = op.output->tensorIdMap();
  const std::string text = describe(op);
  std::map<int, TensorInfo> infos;
  for (const auto &entry : op.output->tensorMap()) infos[entry.first] = entry.second->info;

  std::unique_ptr<Op> made = op.clone();
  if (!made || typeid(*made) != typeid(op)) throw error("The clone of {} is of another class", op.debugName());
  if (made->opid != op.opid) throw error("The clone of {} is a {}", op.debugName(), made->opid);
  op.disconnectAllInputs();
  op.disconnectAllOutputs();
  retired.push_back(graph.takeOp(op.id));
  Op *clone = graph.getOp(graph.moveIntoGraph(std::move(made)));
  for (const auto &entry : inputs) clone->connectInTensor(entry.first, entry.second);
  for (const auto &entry : outputs) clone->connectOutTensor(entry.first, entry.second);
  clone->setup();
  for (const auto &entry : clone->output->tensorMap()) {
    if (entry.second->info != infos[entry.first]) {
      throw error("The clone of {} gives output {} the info {}, not {}", clone->debugName(), entry.first, entry.second->info,
                  infos[entry.first]);
    }
  }
  if (describe(*clone) != text)
    throw error("The clone of {} has other attributes: {}, not {}", clone->debugName(), describe(*clone), text);
}

POPLAR_EMULATION_FUNCTION void Ir::prune(Graph &graph) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const OpId opId : graph.getOpIds()) {
      Op *op = graph.getOp(opId);
      const std::vector<Tensor *> outputs = op->output->tensors();
      const auto used = [&](Tensor *tensor) {
        return tensor->consumers.getTotal() > 0 || isAnchored(tensor->id) || graph.hasOutputId(tensor->id);
      };
      if (!op->pruneable || op->hasSideEffect() || std::any_of(outputs.begin(), outputs.end(), used)) continue;
      op->disconnectAllInputs();
      op->disconnectAllOutputs();
      retired.push_back(graph.takeOp(opId));
      changed = true;
    }
  }
}

POPLAR_EMULATION_FUNCTION std::size_t Ir::getHash() const {
  std::string text;
  for (const auto &graph : graphs) {
    for (const auto &entry : graph.second->getOps()) {
      text += describe(*entry.second);
      for (const TensorIndexMap *map : {entry.second->input.get(), entry.second->output.get()}) {
        for (const auto &tensor : map->tensorIdMap()) text += std::to_string(tensor.first) + tensor.second + ";";
      }
    }
  }
  return std::hash<std::string>()(text);
}

}  // namespace popart
#pragma GCC visibility pop

#endif
