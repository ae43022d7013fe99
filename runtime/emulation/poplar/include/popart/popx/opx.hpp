// How an op is lowered to Poplar: what every Opx derives from.
#ifndef POPART_POPX_OPX_HPP
#define POPART_POPX_OPX_HPP
#define POPART_OPX_OPEN

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include <poplar/DebugContext.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>

#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/popx/debugcontextx.hpp>
#include <popart/popx/inputcreatortype.hpp>

#pragma GCC visibility push(default)
namespace poplar {
class Graph;
namespace program {
class Sequence;
}
}  // namespace poplar

namespace popart {

class Tensor;
class TensorInfo;

namespace popx {

class Devicex;

class Opx {
 public:
  IN_LIBRARY Opx(Op *op, Devicex *device) : op_p(op), dv_p(device) {}
  IN_LIBRARY virtual ~Opx() = default;

  /// Adds the op to `prog`. It reads its inputs only, but for those that the op says it modifies, and sets each output once.
  virtual void grow(poplar::program::Sequence &prog) const;

  // Layout: what an Opx knows of how its inputs are best laid out.
  virtual poplar::Tensor createInputTensor(InIndex index, const poplar::DebugNameAndId &dnai) const;
  virtual poplar::Tensor createInput(InIndex index, const poplar::DebugNameAndId &dnai) const;
  virtual InputCreatorType getInputCreatorType(InIndex index) const;
  virtual bool canUnwind(InIndex in, OutIndex out) const;
  virtual poplar::Tensor unwindTensorLayout(poplar::Tensor tensor, InIndex in, OutIndex out) const;
  virtual view::RegMap unwindRegion(InIndex in, OutIndex out) const;
  virtual bool createsEquiv(int index0, const Opx *opx1, int index1) const;
  virtual std::set<TensorId> mustExistBeforeCreate(int index0) const;
  virtual DnfTensorIds mustExistBeforeCreateDNF(int index0) const;
  virtual bool outputCreatedExternally(OutIndex index) const;

  IN_LIBRARY const Devicex *getDevicex() const { return dv_p; }
  IN_LIBRARY int64_t getVirtualGraphId() const { return 0; }
  poplar::Graph &graph() const;
  IN_LIBRARY poplar::Graph &topLevelGraph() const { return graph(); }
  IN_LIBRARY virtual poplar::Graph &srcGraph(InIndex) const { return graph(); }
  IN_LIBRARY virtual poplar::Graph &dstGraph(OutIndex) const { return graph(); }
  IN_LIBRARY poplar::Graph &inGraph(InIndex) const { return graph(); }
  IN_LIBRARY poplar::Graph &outGraph(OutIndex) const { return graph(); }

  const poplar::Tensor &get(TensorId id) const;
  void insert(TensorId id, const poplar::Tensor &tensor) const;
  const poplar::Tensor &getInTensor(InIndex index) const;
  const poplar::Tensor &getOutTensor(OutIndex index) const;
  /// Gives output `index` its tensor. Raises popart::error where it has one already, is none of the op, or differs from what setup() said.
  void setOutTensor(OutIndex index, const poplar::Tensor &tensor) const;

  IN_LIBRARY bool hasInput(InIndex index) const { return op_p->hasInput(index); }
  IN_LIBRARY bool hasOutput(OutIndex index) const { return op_p->hasOutput(index); }
  IN_LIBRARY TensorId inId(InIndex index) const { return op_p->inId(index); }
  IN_LIBRARY TensorId outId(OutIndex index) const { return op_p->outId(index); }
  IN_LIBRARY Tensor *inTensor(InIndex index) const { return op_p->inTensor(index); }
  IN_LIBRARY Tensor *outTensor(OutIndex index) const { return op_p->outTensor(index); }
  IN_LIBRARY const TensorInfo &inInfo(InIndex index) const { return op_p->inInfo(index); }
  IN_LIBRARY const Shape &inShape(InIndex index) const { return op_p->inShape(index); }
  IN_LIBRARY const std::vector<std::size_t> inShapeSzt(InIndex index) const { return inInfo(index).shape_szt(); }
  IN_LIBRARY const TensorInfo &outInfo(OutIndex index) const { return op_p->outInfo(index); }
  IN_LIBRARY const Shape &outShape(OutIndex index) const { return op_p->outShape(index); }

  poplar::Tensor cloneNcopy(poplar::program::Sequence &prog, TensorId id) const;
  poplar::Tensor cloneNcopy(poplar::program::Sequence &prog, const poplar::Tensor &tensor, const std::string name = "") const;
  IN_LIBRARY poplar::Tensor broadcast(const std::vector<int64_t> &shape, TensorId id) const { return broadcast(shape, get(id)); }
  poplar::Tensor broadcast(const std::vector<int64_t> &shape, poplar::Tensor tensor) const;
  poplar::Tensor getConst(const poplar::Type &type, const std::vector<std::size_t> &shape, double value, const std::string &name) const;
  poplar::Tensor getScalarVariable(const poplar::Type &type, const std::string &name) const;
  poplar::Tensor getZerosTensor(std::vector<std::size_t> shape, poplar::Type type, std::string name) const;

  const poplar::DebugNameAndId getDebugNameAndId(const std::string name = "") const;
  poplar::DebugContext debugContext(const std::string name = "") const;

  /// The op as OP. Raises popart::error where it is none.
  template <class OP>
  OP &getOp() const {
    OP *op = dynamic_cast<OP *>(op_p);
    if (!op) isNot(typeid(OP).name());
    return *op;
  }

  template <class OP>
  void verifyOp(Op *op, const OperatorIdentifier &opid) {
    verify(*op, opid);
  }
  template <class OP>
  void verifyOp(Op *op, std::vector<OperatorIdentifier> opids) {
    verify(*op, opids);
  }
  template <class OP>
  void verifyOp(Op *op) {
    if (!op->isConvertibleTo<OP>()) throw error("Cannot create opx type from {}", op->opid);
  }

  double inputCreatorPriority{0.0};
  Op *op_p;

 protected:
  Devicex *dv_p;

 private:
  // What the templates above share.
  IN_LIBRARY static void verify(const Op &op, const OperatorIdentifier &opid) {
    if (op.opid.domain != opid.domain || op.opid.type != opid.type) throw error("Cannot create opx for {} from {}", opid, op.opid);
  }
  IN_LIBRARY static void verify(const Op &op, const std::vector<OperatorIdentifier> &opids) {
    for (const auto &opid : opids) {
      if (op.opid == opid) return;
    }
    throw error("In Opx::verifyOp, for op {}. Failed to verify, as valid opids are : ( {} ).", op.str(),
                logging::join(opids.begin(), opids.end(), ", "));
  }
  IN_LIBRARY void isNot(const char *type) const {
    throw error("Failed to cast to op ({}) derived op ({}), type:{} ", typeid(*op_p).name(), type, op_p->opid);
  }
};

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#undef POPART_OPX_OPEN
#include <popart/emulation/define_popx.hpp>

#endif
