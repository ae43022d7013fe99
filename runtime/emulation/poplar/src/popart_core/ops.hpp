// Relu and Neg of ai.onnx, written as any custom op is: models that hold a custom op hold these beside it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <popart/error.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/tensorinfo.hpp>

#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>

namespace ops {

namespace pe = popops::expr;

static const popart::OperatorIdentifier ReluId("ai.onnx", "Relu", 6, {1, 1}, 1);
static const popart::OperatorIdentifier ReluGradId("ai.graphcore", "ReluGrad", 1, {2, 2}, 1);
static const popart::OperatorIdentifier NegId("ai.onnx", "Neg", 6, {1, 1}, 1);
static const popart::OperatorIdentifier NegGradId("ai.graphcore", "NegGrad", 1, {1, 1}, 1);

// What the four have in common: the output is like the first input, and one gradient goes to input 0.
class LikeInput : public popart::Op {
 public:
  using popart::Op::Op;
  void setup() final { outInfo(0) = inInfo(0); }
  float getSubgraphValue() const final { return getLowSubgraphValue(); }
  const std::map<int, int> &gradOutToNonGradIn() const final {
    static const std::map<int, int> info = {{0, 0}};
    return info;
  }
};

class ReluGradOp : public LikeInput {
 public:
  explicit ReluGradOp(const popart::Op &forward) : LikeInput(ReluGradId, forward.settings) {}
  std::unique_ptr<popart::Op> clone() const final { return std::unique_ptr<popart::Op>(new ReluGradOp(*this)); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const final {
    static const std::vector<popart::GradInOutMapper> info = {{0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::Out}};
    return info;
  }
};

class NegGradOp : public LikeInput {
 public:
  explicit NegGradOp(const popart::Op &forward) : LikeInput(NegGradId, forward.settings) {}
  std::unique_ptr<popart::Op> clone() const final { return std::unique_ptr<popart::Op>(new NegGradOp(*this)); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const final {
    static const std::vector<popart::GradInOutMapper> info = {{0, 0, popart::GradOpInType::GradOut}};
    return info;
  }
};

template <typename Gradient>
class UnaryOp : public LikeInput {
 public:
  using LikeInput::LikeInput;
  std::unique_ptr<popart::Op> clone() const final { return std::unique_ptr<popart::Op>(new UnaryOp(*this)); }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() final {
    std::vector<std::unique_ptr<popart::Op>> ops;
    ops.emplace_back(new Gradient(*this));
    return ops;
  }
};

using ReluOp = UnaryOp<ReluGradOp>;
using NegOp = UnaryOp<NegGradOp>;

class ElementwiseOpx : public popart::popx::Opx {
 public:
  using popart::popx::Opx::Opx;
  void grow(poplar::program::Sequence &prog) const final {
    std::vector<poplar::Tensor> inputs;
    for (int index = 0; hasInput(index); ++index) inputs.push_back(getInTensor(index));
    setOutTensor(0, popops::map(graph(), *expression(), inputs, prog, debugContext("elementwise")));
  }

 protected:
  virtual std::unique_ptr<pe::Expr> expression() const = 0;
};

class ReluOpx : public ElementwiseOpx {
 public:
  using ElementwiseOpx::ElementwiseOpx;

 private:
  std::unique_ptr<pe::Expr> expression() const final { return pe::Max(pe::_1, pe::Const(0.0f)).clone(); }
};

class ReluGradOpx : public ElementwiseOpx {
 public:
  using ElementwiseOpx::ElementwiseOpx;

 private:
  std::unique_ptr<pe::Expr> expression() const final {
    return pe::Select(pe::_1, pe::Mul(pe::_1, pe::Const(0.0f)), pe::Gt(pe::_2, pe::Const(0.0f))).clone();
  }
};

class NegOpx : public ElementwiseOpx {
 public:
  using ElementwiseOpx::ElementwiseOpx;

 private:
  std::unique_ptr<pe::Expr> expression() const final { return pe::Neg(pe::_1).clone(); }
};

static popart::OpCreator<ReluOp> reluCreator(popart::OpDefinitions({{ReluId, popart::OpDefinition()}}));
static popart::OpCreator<NegOp> negCreator(popart::OpDefinitions({{NegId, popart::OpDefinition()}}));
static popart::popx::OpxCreator<ReluOpx> reluOpxCreator(ReluId);
static popart::popx::OpxCreator<ReluGradOpx> reluGradOpxCreator(ReluGradId);
static popart::popx::OpxCreator<NegOpx> negOpxCreator(NegId);
static popart::popx::OpxCreator<NegOpx> negGradOpxCreator(NegGradId);

}  // namespace ops
