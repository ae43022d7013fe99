// The operators that the emulation itself has: infos, gradients, registration.
#ifndef POPART_EMULATION_BUILTIN_IMPL_HPP
#define POPART_EMULATION_BUILTIN_IMPL_HPP

#include <algorithm>

#include <popart/emulation/builtin.hpp>

#pragma GCC visibility push(default)
namespace popart {

namespace emulation {
/// The info that the inputs of an op broadcast to. Unlike npOut(), and so PopART's own operators, it takes dimensions of size 0, so that a
/// custom op on empty tensors can be put between them.
POPLAR_EMULATION_FUNCTION TensorInfo broadcastInputs(const Op &op) {
  TensorInfo out = op.inInfo(0);
  for (const auto &entry : op.input->tensorMap()) {
    const TensorInfo &info = entry.second->info;
    Shape a = out.shape(), b = info.shape();
    if (out.dataType() != info.dataType()) op.prettyNpOut(out, info);
    a.insert(a.begin(), std::max(a.size(), b.size()) - a.size(), 1);
    b.insert(b.begin(), a.size() - b.size(), 1);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i] && a[i] != 1 && b[i] != 1) op.prettyNpOut(out, info);
      if (a[i] == 1) a[i] = b[i];
    }
    out.set(out.dataType(), a);
  }
  return out;
}
}  // namespace emulation

POPLAR_EMULATION_FUNCTION void ProductOp::setup() {
  const TensorInfo info = emulation::broadcastInputs(*this);
  outInfo(0) = {info.dataType(), open ? info.shape() : shape};
}

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> ProductOp::getGradOps() {
  std::vector<std::unique_ptr<Op>> out;
  for (const auto &entry : input->tensorMap()) {
    std::vector<InIndex> others;
    for (const auto &other : input->tensorMap()) {
      if (other.first != entry.first) others.push_back(other.first);
    }
    std::unique_ptr<ProductOp> grad(new ProductOp(emulation::graphcore("ProductGrad"), entry.second->info.shape(), settings));
    grad->differentiates(entry.first, others);
    out.push_back(std::move(grad));
  }
  return out;
}

POPLAR_EMULATION_FUNCTION void SumOp::setup() { outInfo(0) = emulation::broadcastInputs(*this); }

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> SumOp::getGradOps() {
  std::vector<std::unique_ptr<Op>> out;
  for (const auto &entry : input->tensorMap()) {
    std::unique_ptr<ProductOp> grad(new ProductOp(emulation::graphcore("SumArgGrad"), entry.second->info.shape(), settings));
    grad->differentiates(entry.first);
    out.push_back(std::move(grad));
  }
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> CastOp::getGradOps() {
  std::unique_ptr<CastOp> grad(new CastOp(emulation::graphcore("CastGrad"), inInfo(0).dataType(), settings));
  grad->differentiates(0);
  std::vector<std::unique_ptr<Op>> out;
  out.push_back(std::move(grad));
  return out;
}

POPLAR_EMULATION_FUNCTION void ReduceSumOp::setup() {
  if (spread) {
    outInfo(0) = {inInfo(0).dataType(), shape};
    return;
  }
  shape = inShape(0);
  if (everyAxis) {
    axes.clear();
    for (int64_t axis = 0; axis < inRank(0); ++axis) axes.push_back(axis);
  }
  normalizeReduceAxes(axes, inRank(0));
  Shape reduced;
  for (int64_t axis = 0; axis < inRank(0); ++axis) {
    if (!isOneOf(axis, axes)) {
      reduced.push_back(inInfo(0).dim(static_cast<int>(axis)));
    } else if (keepdims) {
      reduced.push_back(1);
    }
  }
  outInfo(0) = {inInfo(0).dataType(), reduced};
}

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> ReduceSumOp::getGradOps() {
  std::unique_ptr<ReduceSumOp> grad(
      new ReduceSumOp(emulation::graphcore(spread ? "ReduceSumSpreadGrad" : "ReduceSumGrad"), axes, keepdims, settings));
  grad->spread = !spread;
  grad->shape = shape;
  grad->differentiates(0);
  std::vector<std::unique_ptr<Op>> out;
  out.push_back(std::move(grad));
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> IdentityLossOp::getGradOps() {
  std::vector<std::unique_ptr<Op>> out;
  out.emplace_back(new IdentityLossGradOp(*this));
  return out;
}

POPLAR_EMULATION_FUNCTION void CallOp::setup() {
  const Graph &graph = callee;
  for (const auto &entry : input->tensorMap()) {
    const TensorInfo &wanted = graph.getInputTensor(entry.first)->info;
    if (entry.second->info != wanted) {
      throw error("Input {} of the call of {} is {}, the graph wants {}", entry.first, graph.getGraphString(), entry.second->info,
                  wanted);
    }
  }
  for (const auto &entry : output->tensorMap()) entry.second->info = graph.getOutputTensor(entry.first)->info;
}

POPLAR_EMULATION_FUNCTION void CallOp::setCalledSubgraphGradInfo(const FwdGraphToBwdGraphInfo &info) {
  const auto found = info.find(getCalledGraph().id);
  if (found == info.end()) throw error("There is no backward graph of {}", getCalledGraph().getGraphString());
  backward = {found->second};
}

POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> CallOp::getGradOps() {
  if (backward.empty()) throw error("There is no backward graph of {}", getCalledGraph().getGraphString());
  std::vector<std::unique_ptr<Op>> out;
  out.emplace_back(new CallGradOp(*this, backward[0]));
  return out;
}

POPLAR_EMULATION_FUNCTION CallGradOp::CallGradOp(const CallOp &forward, const BwdGraphInfo &info)
    : CallOp(emulation::graphcore("CallGrad"), forward.getIr().getGraph(info.bwdGraphId), forward.settings) {
  const Graph &graph = forward.getCalledGraph();
  for (std::size_t i = 0; i < info.expectedInputs.size(); ++i) {
    const ExpectedConnection &wanted = info.expectedInputs[i];
    const InIndex index = static_cast<InIndex>(i);
    if (wanted.type == ExpectedConnectionType::FwdGrad) {
      gradInputs.emplace_back(index, graph.getOutputIndex(wanted.fwdId), GradOpInType::GradOut);
    } else if (graph.hasInputId(wanted.fwdId)) {
      gradInputs.emplace_back(index, graph.getInputIndex(wanted.fwdId), GradOpInType::In);
    } else {
      gradInputs.emplace_back(index, graph.getOutputIndex(wanted.fwdId), GradOpInType::Out);
    }
  }
  for (std::size_t i = 0; i < info.expectedOutputs.size(); ++i) {
    gradOutputs[static_cast<int>(i)] = graph.getInputIndex(info.expectedOutputs[i].fwdId);
  }
}

namespace emulation {

template <typename F>
void registerBuiltin(const char *domain, const char *type, std::initializer_list<unsigned> versions, NumInputs inputs,
                     const F &factory) {
  const OpManager::OpFactoryFunc func = factory;
  for (const unsigned version : versions) OpManager::registerOp({{domain, type, version, inputs, 1}, true, OpDefinition(), func});
}

template <typename OP>
std::unique_ptr<Op> makeBuiltin(const OpCreatorInfo &info) {
  return std::unique_ptr<Op>(new OP(info.opid, info.settings));
}

POPLAR_EMULATION_FUNCTION void registerBuiltinOps() {
  static const bool once = [] {
    const char *const onnx = Domain::ai_onnx;
    registerBuiltin(onnx, "Identity", {1}, 1, &makeBuiltin<ProductOp>);
    registerBuiltin(onnx, "Mul", {6, 7}, 2, &makeBuiltin<ProductOp>);
    registerBuiltin(onnx, "Add", {6, 7}, 2, &makeBuiltin<SumOp>);
    registerBuiltin(onnx, "Sum", {6, 8}, {1, -1}, &makeBuiltin<SumOp>);
    registerBuiltin(onnx, "Cast", {6, 9}, 1, [](const OpCreatorInfo &info) {
      // ONNX numbers its types; the builder, as PopART's, says them by name.
      const std::string name = info.attributes.getAttribute<Attributes::String>("to", "");
      const DataType type = name.empty() ? onnxDataType(info.attributes.getAttribute<Attributes::Int>("to")) : dataTypeFromString(name);
      return std::unique_ptr<Op>(new CastOp(info.opid, type, info.settings));
    });
    registerBuiltin(onnx, "ReduceSum", {1, 11}, 1, [](const OpCreatorInfo &info) {
      nonstd::optional<std::vector<int64_t>> axes;
      if (info.attributes.hasAttribute("axes")) axes = info.attributes.getAttribute<Attributes::Ints>("axes");
      return std::unique_ptr<Op>(
          new ReduceSumOp(info.opid, axes, info.attributes.getAttribute<Attributes::Int>("keepdims", 1), info.settings));
    });
    registerBuiltin(Domain::ai_graphcore, "IdentityLoss", {1}, 1, [](const OpCreatorInfo &info) {
      const int64_t reduction = info.attributes.getAttribute<Attributes::Int>("reduction", static_cast<int64_t>(ReductionType::Mean));
      return std::unique_ptr<Op>(new IdentityLossOp(info.opid, static_cast<ReductionType>(reduction), info.settings));
    });
    return true;
  }();
  (void)once;
}

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#endif
