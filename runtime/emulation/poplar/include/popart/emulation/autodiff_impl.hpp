// Growing the gradient ops of a graph, and the transform that makes a backward graph.
#ifndef POPART_EMULATION_AUTODIFF_IMPL_HPP
#define POPART_EMULATION_AUTODIFF_IMPL_HPP

#include <popart/emulation/autodiff.hpp>
#include <popart/emulation/builtin.hpp>
#include <popart/tensornames.hpp>
#include <popart/transforms/autodiff.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

POPLAR_EMULATION_FUNCTION void GradGrower::findPaths(const std::vector<TensorId> &losses) {
  std::vector<Tensor *> open;
  for (const TensorId &id : losses) open.push_back(fwd.getTensors().get(id));
  while (!open.empty()) {
    Tensor *tensor = open.back();
    open.pop_back();
    if (!tensorsToLoss.insert(tensor->id).second || !tensor->hasProducer()) continue;
    Op *op = tensor->getProducer();
    if (!opsToLoss.insert(op).second) continue;
    for (const auto &entry : op->input->tensorMap()) {
      ++edges[entry.second->id].expected;
      open.push_back(entry.second);
    }
  }
}

POPLAR_EMULATION_FUNCTION TensorId GradGrower::newGradId(const TensorId &fwdId) {
  const TensorId id = addScope(bwd, getGradId(removeScope(fwd, fwdId)));
  // The forward graph may itself hold gradients, under the very names.
  return bwd.getTensors().contains(id) ? bwd.getIr().createIntermediateTensorId(id) : id;
}

POPLAR_EMULATION_FUNCTION void GradGrower::growFromLoss(const TensorId &loss, float value) {
  findPaths({loss});
  Tensor *tensor = fwd.getTensors().get(loss);
  const TensorId id = newGradId(loss);
  if (tensor->info.dataType() == DataType::FLOAT) {
    bwd.getTensors().addConstInit(id, tensor->info, &value);
  } else if (tensor->info.dataType() == DataType::FLOAT16) {
    const Half half(value);
    bwd.getTensors().addConstInit(id, tensor->info, &half);
  } else {
    throw error("The loss {} is of type {}, not of FLOAT or FLOAT16", loss, tensor->info.data_type());
  }
  gradients[loss] = id;
  gradientArrived(*tensor);
  growAll();
}

POPLAR_EMULATION_FUNCTION void GradGrower::growFromProvided(const std::vector<TensorId> &provided) {
  findPaths(provided);
  for (const TensorId &fwdId : provided) {
    const TensorId id = newGradId(fwdId);
    bwd.addInput(id, fwd.getTensors().get(fwdId)->info);
    gradients[fwdId] = id;
  }
  for (const TensorId &fwdId : provided) {
    Edges &part = edges[fwdId];
    if (part.expected == 0) {
      part.done = true;
      gradientArrived(*fwd.getTensors().get(fwdId));
    } else {
      // Other ops add to it, so that what is given becomes one part of the sum.
      ++part.expected;
      part.parts.push_back(gradients[fwdId]);
      gradients.erase(fwdId);
    }
  }
  growAll();
}

POPLAR_EMULATION_FUNCTION void GradGrower::growAll() {
  while (!readyTensors.empty() || !readyOps.empty()) {
    while (!readyTensors.empty()) {
      const TensorId id = readyTensors.front();
      readyTensors.pop_front();
      growSum(id);
    }
    while (!readyOps.empty()) {
      Op *op = readyOps.front();
      readyOps.pop_front();
      growOps(*op);
    }
  }
}

POPLAR_EMULATION_FUNCTION void GradGrower::tryTensor(const TensorId &id) {
  Edges &part = edges[id];
  if (part.done || static_cast<int>(part.parts.size()) < part.expected) return;
  part.done = true;
  readyTensors.push_back(id);
}

POPLAR_EMULATION_FUNCTION void GradGrower::growSum(const TensorId &id) {
  Tensor &tensor = *fwd.getTensors().get(id);
  const Edges &part = edges[id];
  if (part.parts.empty()) {
    gradientFailed(tensor);
    return;
  }
  std::map<InIndex, TensorId> inputs;
  for (std::size_t i = 0; i < part.parts.size(); ++i) inputs[static_cast<InIndex>(i)] = part.parts[i];
  const TensorId grad = newGradId(id);
  bwd.createConnectedOp<SumOp>(inputs, {{0, grad}}, OperatorIdentifier(Domain::ai_onnx, "Sum", 8, {1, -1}, 1),
                               Op::Settings(bwd, "GradSum_" + grad));
  gradients[id] = grad;
  gradientArrived(tensor);
}

POPLAR_EMULATION_FUNCTION void GradGrower::gradientArrived(Tensor &tensor) {
  if (!tensor.hasProducer()) return;
  Op &op = *tensor.getProducer();
  for (const OutIndex index : op.output->indices(&tensor)) arrived[op.id].insert(index);
  tryOp(op);
}

POPLAR_EMULATION_FUNCTION void GradGrower::gradientFailed(Tensor &tensor) {
  if (!tensor.hasProducer()) return;
  Op &op = *tensor.getProducer();
  if (!tensorsToLoss.count(tensor.id) || !done.insert(op.id).second) return;
  lackGradients(op, {});
}

POPLAR_EMULATION_FUNCTION void GradGrower::tryOp(Op &op) {
  if (done.count(op.id) || !opsToLoss.count(&op)) return;
  for (const auto &entry : op.output->tensorMap()) {
    if (tensorsToLoss.count(entry.second->id) && !arrived[op.id].count(entry.first)) return;
  }
  done.insert(op.id);
  readyOps.push_back(&op);
}

POPLAR_EMULATION_FUNCTION TensorId GradGrower::inputOf(const Op &grad, Op &op, const GradInOutMapper &mapper) {
  if (mapper.type == GradOpInType::In) {
    if (op.hasInput(mapper.iNonGrad)) return cloneOf(op.inId(mapper.iNonGrad));
    if (op.optionalInputs().count(mapper.iNonGrad)) return "";
    throw error("Invalid configuration of gradOp {}. nonGradOp ({}) INPUT {} is not marked as optional, but is not defined",
                grad.debugName(), op.debugName(), mapper.iNonGrad);
  }
  if (!op.hasOutput(mapper.iNonGrad)) {
    throw error("Invalid configuration of gradOp {}. nonGradOp ({}) OUTPUT {} is not defined ", grad.debugName(), op.debugName(),
                mapper.iNonGrad);
  }
  const TensorId id = op.outId(mapper.iNonGrad);
  return mapper.type == GradOpInType::Out ? cloneOf(id) : gradientOf(id);
}

POPLAR_EMULATION_FUNCTION void GradGrower::growOps(Op &op) {
  if (!op.getCalledGraphs().empty()) op.setCalledSubgraphGradInfo(calledInfo);
  std::vector<Op *> grads;
  for (std::unique_ptr<Op> &made : op.getGradOps()) {
    const OpId opId = bwd.moveIntoGraph(std::move(made));
    Op *grad = bwd.getOp(opId);
    grad->settings.recomputeType = RecomputeType::Checkpoint;

    std::vector<TensorId> inputs;
    for (const GradInOutMapper &mapper : grad->gradInputInfo()) {
      const std::size_t at = static_cast<std::size_t>(mapper.iGrad);
      if (inputs.size() <= at) inputs.resize(at + 1);
      inputs[at] = inputOf(*grad, op, mapper);
    }
    bwd.connectInputs(inputs, opId);

    std::vector<TensorId> outputs;
    for (const auto &entry : grad->gradOutToNonGradIn()) {
      const std::size_t at = static_cast<std::size_t>(entry.first);
      if (outputs.size() <= at) outputs.resize(at + 1);
      if (op.hasInput(entry.second)) outputs[at] = addScope(bwd, getEdgeGradId(op.id, entry.second));
    }
    // Two gradient ops may each give a part for one input.
    for (TensorId &output : outputs) {
      if (!output.empty() && bwd.getTensors().contains(output)) output = bwd.getIr().createIntermediateTensorId(output);
    }
    bwd.connectOutputs(outputs, opId);
    grad->setup();
    grads.push_back(grad);
  }

  for (Op *grad : grads) {
    for (const auto &entry : grad->output->tensorMap()) {
      Tensor *tensor = op.inTensor(grad->getNonGradInIndex(entry.first));
      if (entry.second->info.shape() != tensor->info.shape() || entry.second->info.dataType() != tensor->info.dataType()) {
        throw error("{} gives a gradient of {} for the tensor '{}' of {}", grad->debugName(), entry.second->info, tensor->id,
                    tensor->info);
      }
      edges[tensor->id].parts.push_back(entry.second->id);
      tryTensor(tensor->id);
    }
  }
  lackGradients(op, grads);
}

POPLAR_EMULATION_FUNCTION void GradGrower::lackGradients(Op &op, const std::vector<Op *> &grads) {
  for (const auto &entry : op.input->tensorMap()) {
    bool made = false;
    for (Op *grad : grads) {
      for (const auto &output : grad->gradOutToNonGradIn()) made = made || output.second == entry.first;
    }
    if (made) continue;
    --edges[entry.second->id].expected;
    tryTensor(entry.second->id);
  }
}

/// Removes ops of which nobody reads an output, and inputs after the first `kept` that nobody reads.
inline void pruneBackward(Graph &graph, std::size_t kept) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const OpId opId : graph.getOpIds()) {
      const auto used = [&](Tensor *tensor) { return tensor->consumers.getTotal() > 0 || graph.hasOutputId(tensor->id); };
      const std::vector<Tensor *> outputs = graph.getOp(opId)->output->tensors();
      if (std::any_of(outputs.begin(), outputs.end(), used)) continue;
      graph.eraseOp(opId);
      for (Tensor *tensor : outputs) graph.getTensors().remove(tensor->id);
      changed = true;
    }
  }
  const std::vector<TensorId> inputs = graph.getInputIds();
  for (std::size_t i = kept; i < inputs.size(); ++i) {
    if (graph.getTensors().get(inputs[i])->consumers.getTotal() == 0 && !graph.hasOutputId(inputs[i])) graph.removeInput(inputs[i]);
  }
}

inline bool isCalled(const Ir &ir, const Graph &graph) {
  for (const Op *op : ir.getAllOps()) {
    for (const Graph *called : op->getCalledGraphs()) {
      if (called == &graph) return true;
    }
  }
  return false;
}

/// Whether the tensor is computed again in the backward graph, instead of being one of its inputs.
inline bool recomputed(Graph &forward, const Tensor &tensor, AutodiffStitchStrategy strategy, bool called) {
  if (forward.hasInputId(tensor.id)) return false;
  if (tensor.tensorType() == TensorType::Const) return true;
  switch (strategy) {
    case AutodiffStitchStrategy::RecomputeMinimal: return !forward.hasOutputId(tensor.id);
    case AutodiffStitchStrategy::AddFwdOutputs: return false;
    case AutodiffStitchStrategy::SafeAddFwdOutputs: return called && !forward.hasOutputId(tensor.id);
    default: return true;
  }
}

/// The tensor of the backward graph that stands for `tensor`, made where it is not there.
inline TensorId ensureClone(const Graph &forward, Graph &backward, const Tensor &tensor) {
  const TensorId id = addScope(backward, removeScope(forward, tensor.id));
  if (!backward.getTensors().contains(id)) {
    std::unique_ptr<Tensor> clone = tensor.clone(backward);
    clone->id = id;
    backward.getTensors().moveIntoTensors(std::move(clone));
  }
  if (forward.hasInputId(tensor.id)) backward.markAsInput(id);
  return id;
}

/// Copies into the backward graph the forward ops that make what it reads and does not get as an input.
inline void recompute(const Graph &forward, Graph &backward) {
  std::set<const Op *> needed;
  std::vector<const Tensor *> open;
  for (const Tensor *tensor : forward.getTensors().getAll()) {
    const TensorId id = addScope(backward, removeScope(forward, tensor->id));
    if (backward.getTensors().contains(id) && !backward.hasInputId(id)) open.push_back(tensor);
  }
  while (!open.empty()) {
    const Tensor *tensor = open.back();
    open.pop_back();
    if (!tensor->hasProducer() || !needed.insert(tensor->getProducer()).second) continue;
    for (const auto &entry : tensor->getProducer()->input->tensorMap()) {
      if (!backward.hasInputId(addScope(backward, removeScope(forward, entry.second->id)))) open.push_back(entry.second);
    }
  }
  for (const Op *op : forward.getOpSchedule()) {
    if (!needed.count(op)) continue;
    Op *copy = backward.getOp(backward.moveIntoGraph(op->clone()));
    for (const auto &entry : op->input->tensorMap()) copy->connectInTensor(entry.first, ensureClone(forward, backward, *entry.second));
    for (const auto &entry : op->output->tensorMap())
      copy->connectOutTensor(entry.first, ensureClone(forward, backward, *entry.second));
    copy->setup();
  }
}

}  // namespace emulation

POPLAR_EMULATION_FUNCTION FwdGraphToBwdGraphInfo Autodiff::apply(Ir &ir, const GraphId &fwdGraphId,
                                                                 const nonstd::optional<TensorIds> &gradsProvidedForFwdId,
                                                                 const nonstd::optional<TensorIds> &gradsRequiredForFwdId,
                                                                 const FwdGraphToBwdGraphInfo &calledGraphsGradInfo,
                                                                 AutodiffStitchStrategy stitchStrategy) {
  Graph &forward = ir.getGraph(fwdGraphId);
  FwdGraphToBwdGraphInfo infos = calledGraphsGradInfo;
  for (const Graph *called : forward.getCalledGraphs()) {
    if (!infos.count(called->id)) infos = apply(ir, called->id, nonstd::nullopt, nonstd::nullopt, infos, stitchStrategy);
  }

  const bool isCalled = emulation::isCalled(ir, forward);
  Graph &backward = ir.createGraph(ir.createUniqueSubgraphId(GraphId(fwdGraphId.str() + "_bwd")));
  std::map<TensorId, const Tensor *> clones;
  for (const Tensor *tensor : forward.getTensors().getAll()) {
    std::unique_ptr<Tensor> clone = tensor->clone(backward);
    clone->id = addScope(backward, removeScope(forward, tensor->id));
    clones[clone->id] = tensor;
    backward.getTensors().moveIntoTensors(std::move(clone));
  }

  const TensorIds provided = gradsProvidedForFwdId ? *gradsProvidedForFwdId : forward.getOutputIds();
  emulation::GradGrower grower(forward, backward, infos);
  grower.growFromProvided(provided);
  std::map<TensorId, ExpectedConnection> meaning;
  for (std::size_t i = 0; i < provided.size(); ++i) {
    meaning.emplace(backward.getInputIds()[i], ExpectedConnection{provided[i], ExpectedConnectionType::FwdGrad});
  }

  TensorIds outputs;
  for (const TensorId &id : gradsRequiredForFwdId ? *gradsRequiredForFwdId : forward.getInputIds()) {
    const TensorId grad = grower.gradientOf(id);
    if (grad.empty() && gradsRequiredForFwdId) {
      throw error("[Autodiff] Unable to provide required gradient output for fwd id '{}' in bwd graph {}", id,
                  backward.getGraphString());
    }
    if (grad.empty()) continue;
    outputs.push_back(id);
    backward.markAsOutput(grad);
  }

  for (const auto &entry : clones) {
    Tensor *tensor = backward.getTensors().get(entry.first);
    meaning.emplace(entry.first, ExpectedConnection{entry.second->id, ExpectedConnectionType::Fwd});
    if (tensor->consumers.getTotal() == 0) {
      backward.getTensors().remove(entry.first);
    } else if (!emulation::recomputed(forward, *entry.second, stitchStrategy, isCalled)) {
      backward.markAsInput(entry.first);
      if (!forward.hasInputId(entry.second->id) && !forward.hasOutputId(entry.second->id)) forward.markAsOutput(entry.second->id);
    }
  }
  emulation::recompute(forward, backward);
  emulation::pruneBackward(backward, gradsProvidedForFwdId ? provided.size() : 0);

  BwdGraphInfo info{backward.id, {}, {}};
  for (const TensorId &id : backward.getInputIds()) info.expectedInputs.push_back(meaning.at(id));
  for (const TensorId &id : outputs) info.expectedOutputs.push_back({id, ExpectedConnectionType::FwdGrad});
  infos.emplace(fwdGraphId, info);
  return infos;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
