// Opxs: what they ask of the lowering, and the defaults of their virtual methods.
#ifndef POPART_EMULATION_OPX_IMPL_HPP
#define POPART_EMULATION_OPX_IMPL_HPP

#include <popart/popx/devicex.hpp>
#include <popart/popx/irlowering.hpp>
#include <popart/popx/opx.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace popx {

POPLAR_EMULATION_FUNCTION void Opx::grow(poplar::program::Sequence &) const {
  throw error("adding poplar::Tensors not implemented for {}", op_p->opid);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::createInput(InIndex index, const poplar::DebugNameAndId &) const {
  throw error("Opx for {} cannot create Input index:{}", op_p->opid, index);
}
POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::createInputTensor(InIndex index, const poplar::DebugNameAndId &dnai) const {
  return createInput(index, dnai);
}
POPLAR_EMULATION_FUNCTION InputCreatorType Opx::getInputCreatorType(InIndex) const { return InputCreatorType::Deadend; }
POPLAR_EMULATION_FUNCTION bool Opx::canUnwind(InIndex in, OutIndex) const {
  const InputCreatorType type = getInputCreatorType(in);
  return type == InputCreatorType::CanUnwind || type == InputCreatorType::CanCreateOrUnwind;
}
POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::unwindTensorLayout(poplar::Tensor, InIndex, OutIndex) const {
  throw error("Opx for {} cannot unwind the tensor layout change between input and output for {}", op_p->opid, op_p->str());
}
POPLAR_EMULATION_FUNCTION view::RegMap Opx::unwindRegion(InIndex, OutIndex) const {
  throw error("Opx cannot unwind the region between input and output for {}", op_p->opid);
}
POPLAR_EMULATION_FUNCTION bool Opx::createsEquiv(int, const Opx *, int) const {
  throw error("No check for equivalent tensor create for type {}", op_p->opid);
}
POPLAR_EMULATION_FUNCTION std::set<TensorId> Opx::mustExistBeforeCreate(int index) const {
  throw error("Opx for {} cannot say which poplar Tensors must exist to create at index {}", op_p->opid, index);
}
POPLAR_EMULATION_FUNCTION DnfTensorIds Opx::mustExistBeforeCreateDNF(int index) const { return {mustExistBeforeCreate(index)}; }
POPLAR_EMULATION_FUNCTION bool Opx::outputCreatedExternally(OutIndex) const { return false; }

POPLAR_EMULATION_FUNCTION poplar::Graph &Opx::graph() const { return dv_p->lowering().graph(); }
POPLAR_EMULATION_FUNCTION const poplar::Tensor &Opx::get(TensorId id) const { return dv_p->lowering().tensors().get(id); }
POPLAR_EMULATION_FUNCTION void Opx::insert(TensorId id, const poplar::Tensor &tensor) const {
  dv_p->lowering().tensors().insert(id, tensor);
}
POPLAR_EMULATION_FUNCTION const poplar::Tensor &Opx::getInTensor(InIndex index) const { return get(inId(index)); }
POPLAR_EMULATION_FUNCTION const poplar::Tensor &Opx::getOutTensor(OutIndex index) const { return get(outId(index)); }

POPLAR_EMULATION_FUNCTION void Opx::setOutTensor(OutIndex index, const poplar::Tensor &tensor) const {
  if (!hasOutput(index)) throw error("The Opx of {} sets output {}, which the op lacks", op_p->debugName(), index);
  dv_p->lowering().checkOutput(*op_p, index, tensor);
  insert(outId(index), tensor);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::cloneNcopy(poplar::program::Sequence &prog, TensorId id) const {
  return cloneNcopy(prog, get(id), id + "[cloned]");
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::cloneNcopy(poplar::program::Sequence &prog, const poplar::Tensor &tensor,
                                                         const std::string name) const {
  poplar::Tensor out = graph().clone(tensor, debugContext(name));
  prog.add(poplar::program::Copy(tensor, out, false, debugContext(name)));
  return out;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::broadcast(const std::vector<int64_t> &shape, poplar::Tensor tensor) const {
  std::vector<std::size_t> own = tensor.shape();
  if (own.size() > shape.size()) throw error("np broadcasting failed, frames are not aligned");
  own.insert(own.begin(), shape.size() - own.size(), 1);
  tensor = tensor.reshape(own);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t wanted = static_cast<std::size_t>(shape[i]);
    if (own[i] == wanted) continue;
    if (own[i] != 1) throw error("np broadcasting failed, frames are not aligned");
    tensor = tensor.broadcast(static_cast<unsigned>(wanted), static_cast<unsigned>(i));
  }
  return tensor;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::getConst(const poplar::Type &type, const std::vector<std::size_t> &shape, double value,
                                                       const std::string &name) const {
  return dv_p->lowering().getConst(graph(), type, shape, value, debugContext(name));
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::getScalarVariable(const poplar::Type &type, const std::string &name) const {
  return dv_p->lowering().getScalarVariable(graph(), type, debugContext(name));
}

POPLAR_EMULATION_FUNCTION poplar::Tensor Opx::getZerosTensor(std::vector<std::size_t> shape, poplar::Type type,
                                                             std::string name) const {
  const poplar::Tensor zero = getScalarVariable(type, name);
  graph().setInitialValue(zero, 0);
  return broadcast({shape.begin(), shape.end()}, zero);
}

POPLAR_EMULATION_FUNCTION const poplar::DebugNameAndId Opx::getDebugNameAndId(const std::string name) const {
  return poplar::DebugNameAndId(name, 0, op_p->debugName());
}
POPLAR_EMULATION_FUNCTION poplar::DebugContext Opx::debugContext(const std::string name) const { return {getDebugNameAndId(name)}; }

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#endif
