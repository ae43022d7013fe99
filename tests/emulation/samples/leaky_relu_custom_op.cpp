// LeakyRelu as a custom op of PopART, with its gradient, written by hand: what a generated package has to amount to.
#include <map>
#include <memory>
#include <vector>

#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/shapeinference.hpp>
#include <popart/tensorinfo.hpp>

#include <poplar/OptionFlags.hpp>
#include <poplar/Tensor.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>

namespace sample {

const popart::OperatorIdentifier LeakyReluId("sample.ops", "LeakyRelu", 1, {1, 1}, 1);
const popart::OperatorIdentifier LeakyReluGradId("sample.ops", "LeakyReluGrad", 1, {2, 2}, 1);

class LeakyReluOp : public popart::Op {
 public:
  LeakyReluOp(const popart::OperatorIdentifier &opid, float alpha, const popart::Op::Settings &settings)
      : popart::Op(opid, settings), alpha_(alpha) {}
  std::unique_ptr<popart::Op> clone() const final { return std::make_unique<LeakyReluOp>(*this); }
  void setup() final {
    const auto type = inInfo(0).dataType();
    if (type != popart::DataType::FLOAT && type != popart::DataType::FLOAT16) {
      throw popart::error("LeakyRelu: x must be FLOAT or FLOAT16, not {}", type);
    }
    outInfo(0) = inInfo(0);
  }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override;
  void appendAttributes(popart::OpSerialiserBase &os) const override {
    popart::Op::appendAttributes(os);
    os.appendAttribute("alpha", alpha_);
  }
  void appendOutlineAttributes(popart::OpSerialiserBase &os) const override {
    popart::Op::appendOutlineAttributes(os);
    os.appendAttribute("alpha", alpha_);
  }
  float getSubgraphValue() const final { return getHighSubgraphValue(); }
  float alpha() const { return alpha_; }

 private:
  float alpha_;
};

class LeakyReluGradOp : public popart::Op {
 public:
  explicit LeakyReluGradOp(const LeakyReluOp &forward) : popart::Op(LeakyReluGradId, forward.settings), alpha_(forward.alpha()) {}
  std::unique_ptr<popart::Op> clone() const final { return std::make_unique<LeakyReluGradOp>(*this); }
  void setup() final { outInfo(0) = inInfo(0); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const final {
    static const std::vector<popart::GradInOutMapper> info = {{0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::In}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const final {
    static const std::map<int, int> info = {{0, 0}};
    return info;
  }
  void appendAttributes(popart::OpSerialiserBase &os) const override {
    popart::Op::appendAttributes(os);
    os.appendAttribute("alpha", alpha_);
  }
  void appendOutlineAttributes(popart::OpSerialiserBase &os) const override {
    popart::Op::appendOutlineAttributes(os);
    os.appendAttribute("alpha", alpha_);
  }
  float getSubgraphValue() const final { return getHighSubgraphValue(); }
  float alpha() const { return alpha_; }

 private:
  float alpha_;
};

std::vector<std::unique_ptr<popart::Op>> LeakyReluOp::getGradOps() {
  std::vector<std::unique_ptr<popart::Op>> ops;
  ops.emplace_back(std::make_unique<LeakyReluGradOp>(*this));
  return ops;
}

namespace pe = popops::expr;

class LeakyReluOpx : public popart::popx::Opx {
 public:
  LeakyReluOpx(popart::Op *op, popart::popx::Devicex *devicex) : popart::popx::Opx(op, devicex) {
    verifyOp<LeakyReluOp>(op, {LeakyReluId});
  }
  void grow(poplar::program::Sequence &prog) const final {
    const float alpha = getOp<LeakyReluOp>().alpha();
    const auto y = pe::Select(pe::Mul(pe::Const(alpha), pe::_1), pe::_1, pe::Lt(pe::_1, pe::Const(0.0f)));
    setOutTensor(0, popops::map(graph(), y, {getInTensor(0)}, prog, debugContext("LeakyRelu"), poplar::OptionFlags()));
  }
};

class LeakyReluGradOpx : public popart::popx::Opx {
 public:
  LeakyReluGradOpx(popart::Op *op, popart::popx::Devicex *devicex) : popart::popx::Opx(op, devicex) {
    verifyOp<LeakyReluGradOp>(op, {LeakyReluGradId});
  }
  void grow(poplar::program::Sequence &prog) const final {
    const float alpha = getOp<LeakyReluGradOp>().alpha();
    const auto dx = pe::Select(pe::Mul(pe::Const(alpha), pe::_1), pe::_1, pe::Lt(pe::_2, pe::Const(0.0f)));
    setOutTensor(0, popops::map(graph(), dx, {getInTensor(0), getInTensor(1)}, prog, debugContext("LeakyReluGrad")));
  }
};

namespace {

const popart::OpDefinition::DataTypes T = {popart::DataType::FLOAT16, popart::DataType::FLOAT};
const popart::OpDefinition definition({popart::OpDefinition::Inputs({{"x", T}}), popart::OpDefinition::Outputs({{"y", T}}),
                                       popart::OpDefinition::Attributes({{"alpha", {"*"}}})});

popart::OpCreator<LeakyReluOp> creator(popart::OpDefinitions({{LeakyReluId, definition}}),
                                       [](const popart::OpCreatorInfo &info) {
                                         const float alpha = info.attributes.getAttribute<popart::Attributes::Float>("alpha", 1e-2f);
                                         if (!(alpha >= 0)) throw popart::error("LeakyRelu: alpha must not be negative, it is {}", alpha);
                                         return std::unique_ptr<popart::Op>(new LeakyReluOp(info.opid, alpha, info.settings));
                                       },
                                       true);
popart::popx::OpxCreator<LeakyReluOpx> opxCreator(LeakyReluId);
popart::popx::OpxCreator<LeakyReluGradOpx> gradOpxCreator(LeakyReluGradId);
popart::RegisterShapeInferenceFunction shapes(LeakyReluId, [](popart::ShapeInferenceContext &ctx) { ctx.outInfo(0) = ctx.inInfo(0); });

}  // namespace
}  // namespace sample
