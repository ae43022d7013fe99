// Lowering an Ir: inputs with their layouts, then op by op.
#ifndef POPART_EMULATION_LOWERING_IMPL_HPP
#define POPART_EMULATION_LOWERING_IMPL_HPP

#include <cstdlib>

#include <poputil/TileMapping.hpp>

#include <popart/emulation/builtin.hpp>
#include <popart/emulation/checks.hpp>
#include <popart/popx/opxmanager.hpp>

#pragma GCC visibility push(default)
namespace popart {

namespace emulation {
void registerBuiltinOpxs();

/// Whether inputs are laid out as an optimiser could lay them out, instead of in order: POPART_EMULATION_LAYOUT=shuffled. Code that takes
/// an order for granted fails then.
inline bool shuffledLayout() {
  const char *const text = std::getenv("POPART_EMULATION_LAYOUT");
  return text && std::string(text) == "shuffled";
}

/// A variable of which the last dimension is the outermost, rotated by one, and mapped against the order of the tiles.
inline poplar::Tensor addShuffled(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                  const std::string &name) {
  const std::vector<std::size_t> reversed(shape.rbegin(), shape.rend());
  poplar::Tensor out = graph.addVariable(type, reversed, name);
  poputil::mapTensorLinearlyWithOffset(graph, out, 3, false);
  std::vector<unsigned> order;
  for (std::size_t i = shape.size(); i > 0; --i) order.push_back(static_cast<unsigned>(i - 1));
  if (!shape.empty() && reversed[0] > 1) out = poplar::concat(out.slice(1, reversed[0]), out.slice(0, 1));
  return out.dimShuffle(order);
}
}  // namespace emulation

namespace popx {

POPLAR_EMULATION_FUNCTION poplar::Type popType(DataType type) {
  switch (type) {
    case DataType::FLOAT: return poplar::FLOAT;
    case DataType::FLOAT16: return poplar::HALF;
    case DataType::INT32: return poplar::INT;
    case DataType::UINT32: return poplar::UNSIGNED_INT;
    case DataType::INT16: return poplar::SHORT;
    case DataType::UINT16: return poplar::UNSIGNED_SHORT;
    case DataType::INT8: return poplar::SIGNED_CHAR;
    case DataType::UINT8:
    case DataType::FLOAT8_143:
    case DataType::FLOAT8_152: return poplar::UNSIGNED_CHAR;
    case DataType::BOOL: return poplar::BOOL;
    default: throw error("Is there a poplar type for {}?", getDataTypeInfoMap().at(type).name());
  }
}

POPLAR_EMULATION_FUNCTION poplar::Type popType(const TensorInfo &info) { return popType(info.dataType()); }

/// What ops that are outlined together share: the body on tensors of its own.
struct IrLowering::Outlined {
  std::map<InIndex, poplar::Tensor> inputs;
  std::map<OutIndex, poplar::Tensor> outputs;
  poplar::Function body;
};

POPLAR_EMULATION_FUNCTION IrLowering::IrLowering(Ir &ir, const poplar::Target &target, Devicex &device)
    : ir_(ir), device_(device), graph_(target) {
  emulation::registerBuiltinOpxs();
  const SessionOptions &options = ir_.getSessionOptions();
  for (const std::string &path : options.customCodelets) {
    graph_.addCodelets(path, poplar::CodeletFileType::Auto, options.customCodeletCompileFlags);
  }
}

POPLAR_EMULATION_FUNCTION poplar::Tensor IrLowering::getConst(poplar::Graph &graph, const poplar::Type &type,
                                                              const std::vector<std::size_t> &shape, double value,
                                                              const poplar::DebugContext &context) {
  poplar::Tensor out = graph.addConstant(type, shape, value, context);
  graph.setTileMapping(out, constants_++ % graph.getTarget().getNumTiles());
  return out;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor IrLowering::getScalarVariable(poplar::Graph &graph, const poplar::Type &type,
                                                                       const poplar::DebugContext &context) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  poplar::Tensor out = graph.addVariable(type, {}, context);
  graph.setTileMapping(out, (tiles - scalars_++ % tiles) % tiles);
  return out;
}

POPLAR_EMULATION_FUNCTION void IrLowering::prepareGraph() {
  for (const Graph *graph : const_cast<const Ir &>(ir_).getAllGraphs()) {
    for (const auto &entry : graph->getOps()) {
      if (ir_.getSessionOptions().enableOutlining && isOutlined(*entry.second)) ++outlineCounts_[outlineKey(*entry.second)];
    }
  }
  createInputs();
  growGraph(ir_.getMainGraph(), program_);
  for (const TensorId &anchor : ir_.getAnchors()) {
    const TensorInfo &info = ir_.getMainGraphTensors().get(anchor)->info;
    const std::size_t elements = static_cast<std::size_t>(info.nelms());
    const poplar::DataStream stream = graph_.addDeviceToHostFIFO("d2h_" + anchor, popType(info), elements);
    program_.add(poplar::program::Copy(tensors_.get(anchor), stream));
  }
}

POPLAR_EMULATION_FUNCTION void IrLowering::createInputs() {
  for (const Tensor *tensor : ir_.getMainGraphTensors().getAll()) {
    const bool used = tensor->consumers.getTotal() > 0 || ir_.isAnchored(tensor->id);
    if (tensor->hasProducer() || !used || tensor->tensorType() == TensorType::Const) continue;
    if (tensor->tensorType() == TensorType::ActGrad) throw error("The tensor '{}' is read, and no op makes it", tensor->id);
    const std::size_t elements = static_cast<std::size_t>(tensor->info.nelms());
    const poplar::Type type = popType(tensor->info);
    const poplar::Tensor made = createTensor(*tensor);
    tensors_.insert(tensor->id, made);
    const poplar::DataStream in = graph_.addHostToDeviceFIFO("h2d_" + tensor->id, type, elements);
    if (tensor->tensorType() == TensorType::Stream) {
      program_.add(poplar::program::Copy(in, made));
    } else {
      weightsFromHost_.add(poplar::program::Copy(in, made));
      weightsToHost_.add(poplar::program::Copy(made, graph_.addDeviceToHostFIFO("weight_" + tensor->id, type, elements)));
    }
  }
}

POPLAR_EMULATION_FUNCTION poplar::Tensor IrLowering::createTensor(const Tensor &tensor) {
  poplar::Tensor out;
  if (createWithOpx(tensor, out, 0)) return out;
  const poplar::Type type = popType(tensor.info);
  if (emulation::shuffledLayout()) return emulation::addShuffled(graph_, type, tensor.info.shape_szt(), tensor.id);
  out = graph_.addVariable(type, tensor.info.shape_szt(), tensor.id);
  poputil::mapTensorLinearly(graph_, out);
  return out;
}

/// The layout that an Opx wants for `tensor`, found with the first consumer that can say.
POPLAR_EMULATION_FUNCTION bool IrLowering::createWithOpx(const Tensor &tensor, poplar::Tensor &out, int depth) {
  if (depth > 16) return false;
  for (Op *op : tensor.consumers.getOps()) {
    if (op->isConvertibleTo<CallOp>()) continue;
    const Opx &opx = opxOf(*op);
    for (const InIndex in : op->input->indices(const_cast<Tensor *>(&tensor))) {
      const InputCreatorType type = opx.getInputCreatorType(in);
      bool made = false;
      if (type == InputCreatorType::CanCreate || type == InputCreatorType::CanCreateOrUnwind) {
        out = opx.createInputTensor(in, poplar::DebugNameAndId(tensor.id));
        made = true;
      }
      for (const auto &result : op->output->tensorMap()) {
        poplar::Tensor later;
        if (made || !opx.canUnwind(in, result.first) || !createWithOpx(*result.second, later, depth + 1)) continue;
        out = opx.unwindTensorLayout(later, in, result.first);
        made = true;
      }
      if (!made) continue;
      checkTensor(op->debugName() + " lays out its input " + std::to_string(in), tensor.info, out);
      return true;
    }
  }
  return false;
}

/// The tensor of a constant, made in every graph that uses it.
POPLAR_EMULATION_FUNCTION void IrLowering::createConstants(const Graph &graph) {
  for (const Tensor *tensor : graph.getTensors().getOfType(TensorType::Const)) {
    const bool used = tensor->consumers.getTotal() > 0 || graph.hasOutputId(tensor->id) || ir_.isAnchored(tensor->id);
    if (!used || tensors_.contains(tensor->id)) continue;
    const poplar::Type type = popType(tensor->info);
    const std::vector<std::size_t> shape = tensor->info.shape_szt();
    const char *const data = static_cast<const char *>(tensor->tensorData()->data());
    // TypeTraits of the host's types: a half is taken by its bits.
    poplar::Tensor made;
    switch (tensor->info.dataType()) {
      case DataType::FLOAT: made = addConstant<float>(type, shape, data, tensor->id); break;
      case DataType::FLOAT16: made = addConstant<poplar::half_t>(type, shape, data, tensor->id); break;
      case DataType::INT32: made = addConstant<int32_t>(type, shape, data, tensor->id); break;
      case DataType::UINT32: made = addConstant<uint32_t>(type, shape, data, tensor->id); break;
      case DataType::INT16: made = addConstant<int16_t>(type, shape, data, tensor->id); break;
      case DataType::UINT16: made = addConstant<uint16_t>(type, shape, data, tensor->id); break;
      case DataType::INT8: made = addConstant<signed char>(type, shape, data, tensor->id); break;
      case DataType::BOOL: made = addConstant<bool>(type, shape, data, tensor->id); break;
      default: made = addConstant<unsigned char>(type, shape, data, tensor->id); break;
    }
    poputil::mapTensorLinearly(graph_, made);
    tensors_.insert(tensor->id, made);
  }
}

POPLAR_EMULATION_FUNCTION Opx &IrLowering::opxOf(Op &op) {
  std::unique_ptr<Opx> &opx = opxs_[op.id];
  if (!opx) opx = OpxManager::createOpx(&op, &device_);
  if (!opx) throw error("Could not create opx for '{}'. Could not find registered opx for '{}'", op.debugName(), op.opid);
  return *opx;
}

POPLAR_EMULATION_FUNCTION void IrLowering::growGraph(const Graph &graph, poplar::program::Sequence &prog) {
  createConstants(graph);
  for (Op *op : graph.getOpSchedule()) growOp(*op, prog);
}

POPLAR_EMULATION_FUNCTION void IrLowering::growOp(Op &op, poplar::program::Sequence &prog) {
  grown_.push_back(op.debugName());
  if (const CallOp *call = dynamic_cast<const CallOp *>(&op)) {
    growCall(*call, prog);
  } else if (isOutlined(op) && outlineCounts_[outlineKey(op)] > 1) {
    growOutlined(op, prog);
  } else {
    growOpx(op, prog);
  }
}

POPLAR_EMULATION_FUNCTION void IrLowering::growOpx(Op &op, poplar::program::Sequence &prog) {
  poplar::program::Sequence body;
  opxOf(op).grow(body);
  std::vector<std::pair<int, poplar::Tensor>> unchanged;
  for (const auto &entry : op.input->tensorMap()) {
    if (!op.modifiesIndex(entry.first)) unchanged.emplace_back(entry.first, tensors_.get(entry.second->id));
  }
  for (const auto &entry : op.output->tensorMap()) {
    if (!tensors_.contains(entry.second->id)) throw error("The Opx of {} did not set output {}", op.debugName(), entry.first);
  }
  prog.add(emulation::checkUnchanged(op.debugName(), unchanged, body));
}

POPLAR_EMULATION_FUNCTION void IrLowering::checkTensor(const std::string &who, const TensorInfo &info,
                                                       const poplar::Tensor &tensor) const {
  if (!tensor.valid()) throw error("{} as no tensor at all", who);
  if (tensor.shape() != info.shape_szt()) throw error("{} as a tensor of shape {}, not {}", who, tensor.shapeToString(), info.shape());
  if (tensor.elementType() != popType(info)) throw error("{} as a tensor of type {}, not {}", who, tensor.elementType(), popType(info));
  graph_.getTileMapping(tensor);  // Raises what Poplar raises where an element is on no tile.
}

POPLAR_EMULATION_FUNCTION void IrLowering::checkOutput(const Op &op, OutIndex index, const poplar::Tensor &tensor) const {
  checkTensor(op.debugName() + " sets its output " + std::to_string(index), op.outInfo(index), tensor);
  for (const auto &entry : op.input->tensorMap()) {
    if (op.doesAlias(entry.first, index) || !tensor.intersectsWith(tensors_.get(entry.second->id))) continue;
    throw error("Op {} claims input {} -> output {} do not contain aliases, but the Poplar tensors disagree.", op.debugName(),
                entry.first, index);
  }
  for (const auto &entry : op.output->tensorMap()) {
    if (!tensors_.contains(entry.second->id) || !tensor.intersectsWith(tensors_.get(entry.second->id))) continue;
    throw error("Outputs {} and {} of {} share elements", entry.first, index, op.debugName());
  }
}

POPLAR_EMULATION_FUNCTION void IrLowering::growCall(const CallOp &call, poplar::program::Sequence &prog) {
  const Graph &callee = call.getCalledGraph();
  for (const auto &entry : call.input->tensorMap()) tensors_.insert(callee.getInputId(entry.first), tensors_.get(entry.second->id));
  growGraph(callee, prog);
  for (const auto &entry : call.output->tensorMap()) {
    const TensorId inner = callee.getOutputId(entry.first);
    poplar::Tensor out = tensors_.get(inner);
    if (callee.hasInputId(inner) || callee.getTensors().get(inner)->tensorType() == TensorType::Const) {
      const poplar::Tensor copy = graph_.clone(out, entry.second->id);
      prog.add(poplar::program::Copy(out, copy));
      out = copy;
    }
    tensors_.insert(entry.second->id, out);
  }
  // Another call has tensors of its own.
  for (const TensorId &id : callee.getTensors().getAllTensorIds()) tensors_.erase(id);
}

POPLAR_EMULATION_FUNCTION bool IrLowering::isOutlined(const Op &op) const {
  if (!op.isOutlineable() || op.getSubgraphValue() < ir_.getSessionOptions().outlineThreshold) return false;
  return !op.modifies() && !op.doesAlias() && !op.hasSideEffect();
}

/// Ops of one key are outlined together: equal in what they say of themselves, and in which of their inputs are one tensor.
POPLAR_EMULATION_FUNCTION std::string IrLowering::outlineKey(const Op &op) const {
  std::string key = op.getSubgraphEquivId();
  for (const auto &entry : op.input->tensorMap()) {
    key += "," + std::to_string(op.input->indices(entry.second).front());
  }
  return key;
}

POPLAR_EMULATION_FUNCTION void IrLowering::growOutlined(Op &op, poplar::program::Sequence &prog) {
  std::shared_ptr<Outlined> &outlined = outlined_[outlineKey(op)];
  if (!outlined) {
    outlined = std::make_shared<Outlined>();
    std::map<TensorId, poplar::Tensor> outer;
    for (const auto &entry : op.input->tensorMap()) {
      const TensorId &id = entry.second->id;
      if (outer.emplace(id, tensors_.get(id)).second) {
        tensors_.erase(id);
        tensors_.insert(id, graph_.clone(outer.at(id), id + "[outlined]", poplar::TensorCloneMethod::CREATE_NEW_ORDER));
      }
      outlined->inputs[entry.first] = tensors_.get(id);
    }
    poplar::program::Sequence body;
    growOpx(op, body);
    outlined->body = graph_.addFunction(body);
    for (const auto &entry : outer) {
      tensors_.erase(entry.first);
      tensors_.insert(entry.first, entry.second);
    }
    for (const auto &entry : op.output->tensorMap()) {
      outlined->outputs[entry.first] = tensors_.get(entry.second->id);
      tensors_.erase(entry.second->id);
    }
  }
  for (const auto &entry : op.input->tensorMap()) {
    if (op.input->indices(entry.second).front() != entry.first) continue;
    prog.add(poplar::program::Copy(tensors_.get(entry.second->id), outlined->inputs.at(entry.first)));
  }
  prog.add(poplar::program::Call(outlined->body));
  for (const auto &entry : op.output->tensorMap()) {
    const poplar::Tensor out = graph_.clone(outlined->outputs.at(entry.first), entry.second->id);
    prog.add(poplar::program::Copy(outlined->outputs.at(entry.first), out));
    tensors_.insert(entry.second->id, out);
  }
}

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#endif
