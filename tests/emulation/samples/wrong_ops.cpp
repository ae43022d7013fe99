// Custom ops that each do one thing wrong. The wrong thing is the op's type; what the emulation says to it is in the tests.
#include <memory>
#include <string>

#include <popart/datatype.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/tensorinfo.hpp>

#include <poplar/Tensor.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>

namespace wrong {

namespace pe = popops::expr;

class WrongOp : public popart::Op {
 public:
  using popart::Op::Op;
  std::unique_ptr<popart::Op> clone() const final { return std::make_unique<WrongOp>(*this); }
  void setup() final {
    outInfo(0) = inInfo(0);
    if (opid.type == "OtherType") outInfo(0).set(popart::DataType::INT32);
    if (opid.type == "NoPoplarType") outInfo(0).set(popart::DataType::INT64);
  }
  float getSubgraphValue() const final { return getLowSubgraphValue(); }
};

class WrongOpx : public popart::popx::Opx {
 public:
  WrongOpx(popart::Op *op, popart::popx::Devicex *devicex) : popart::popx::Opx(op, devicex) {}
  void grow(poplar::program::Sequence &prog) const final {
    const std::string type = op_p->opid.type;
    poplar::Tensor x = getInTensor(0);
    if (type == "WritesInput") {
      popops::mapInPlace(graph(), pe::Add(pe::_1, pe::Const(1)), {x}, prog, debugContext("y"));
      setOutTensor(0, x);
    } else if (type == "ReturnsInput") {
      setOutTensor(0, x);
    } else if (type == "OtherShape") {
      setOutTensor(0, popops::map(graph(), pe::Neg(pe::_1), {x.flatten()}, prog, debugContext("y")));
    } else if (type == "Unmapped") {
      setOutTensor(0, graph().addVariable(x.elementType(), x.shape(), debugContext("y")));
    } else if (type == "Unwritten") {
      setOutTensor(0, graph().clone(x, debugContext("y")));
    } else if (type == "SelectsConstants") {
      const auto scale = pe::Select(pe::Const(0.5f), pe::Const(1.f), pe::Lt(pe::_1, pe::Const(0.f)));
      setOutTensor(0, popops::map(graph(), pe::Mul(scale, pe::_1), {x}, prog, debugContext("y")));
    } else if (type != "NoOutput") {
      setOutTensor(0, popops::map(graph(), pe::Neg(pe::_1), {x}, prog, debugContext("y")));
    }
  }
};

namespace {

struct Registered {
  explicit Registered(const char *type)
      : id("wrong.ops", type, 1), op(popart::OpDefinitions({{id, popart::OpDefinition()}})), opx(id) {}
  popart::OperatorIdentifier id;
  popart::OpCreator<WrongOp> op;
  popart::popx::OpxCreator<WrongOpx> opx;
};

Registered ops[] = {Registered("Right"),      Registered("WritesInput"), Registered("ReturnsInput"), Registered("OtherShape"),
                    Registered("OtherType"),  Registered("NoPoplarType"), Registered("Unmapped"),     Registered("Unwritten"),
                    Registered("NoOutput"),   Registered("SelectsConstants")};
popart::OpCreator<WrongOp> withoutOpx(popart::OpDefinitions({{{"wrong.ops", "NoOpx", 1}, popart::OpDefinition()}}));

}  // namespace
}  // namespace wrong
