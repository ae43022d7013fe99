// The operators that the emulation itself has: enough to put a custom op between, to make its gradient a loss's, and to sum gradients.
#ifndef POPART_EMULATION_BUILTIN_HPP
#define POPART_EMULATION_BUILTIN_HPP

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <popart/graph.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>

#pragma GCC visibility push(default)
namespace popart {

namespace emulation {

inline OperatorIdentifier graphcore(const char *type, NumInputs inputs = {}, int outputs = 1) {
  return {Domain::ai_graphcore, type, 1, inputs, outputs};
}

/// Registers the operators below, once; called by whoever looks one up.
void registerBuiltinOps();

/// What all operators here have in common: one output, and gradients of which each has an op of its own.
class BuiltinOp : public Op {
 public:
  using Op::Op;
  float getSubgraphValue() const override { return getLowSubgraphValue(); }
  const std::vector<GradInOutMapper> &gradInputInfo() const override { return gradInputs; }
  const std::map<int, int> &gradOutToNonGradIn() const override { return gradOutputs; }

 protected:
  /// As the gradient of input `index`: input 0 is the gradient of output 0, inputs after it are the inputs `others`.
  void differentiates(InIndex index, const std::vector<InIndex> &others = {}) {
    gradInputs = {{0, 0, GradOpInType::GradOut}};
    for (const InIndex other : others) gradInputs.emplace_back(static_cast<InIndex>(gradInputs.size()), other, GradOpInType::In);
    gradOutputs = {{0, index}};
  }

 private:
  std::vector<GradInOutMapper> gradInputs;
  std::map<int, int> gradOutputs;
};

}  // namespace emulation

/// The product of its inputs by NumPy's rules, summed to, or repeated to, a shape of the same rank or less. Identity and Mul are such
/// products, and so are their gradients, and the gradients of these.
class ProductOp : public emulation::BuiltinOp {
 public:
  ProductOp(const OperatorIdentifier &opid, const Op::Settings &settings) : BuiltinOp(opid, settings), open(true) {}
  ProductOp(const OperatorIdentifier &opid, const Shape &shape_, const Op::Settings &settings)
      : BuiltinOp(opid, settings), shape(shape_) {}

  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new ProductOp(*this)); }
  void setup() override;
  std::vector<std::unique_ptr<Op>> getGradOps() override;
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("shape", shape);
  }
  using BuiltinOp::differentiates;

 private:
  bool open = false;  // whether the shape is that of the product
  Shape shape;
};

/// The sum of its inputs by NumPy's rules: Add, and Sum, which also adds up the parts of a gradient.
class SumOp : public emulation::BuiltinOp {
 public:
  using BuiltinOp::BuiltinOp;
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new SumOp(*this)); }
  void setup() override;
  std::vector<std::unique_ptr<Op>> getGradOps() override;
};

class CastOp : public emulation::BuiltinOp {
 public:
  CastOp(const OperatorIdentifier &opid, DataType to_, const Op::Settings &settings) : BuiltinOp(opid, settings), to(to_) {}
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new CastOp(*this)); }
  void setup() override { outInfo(0) = {to, inShape(0)}; }
  std::vector<std::unique_ptr<Op>> getGradOps() override;
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("to", to);
  }

 private:
  DataType to;
};

/// The sum along axes, or with `spread` its gradient: an input of the reduced shape repeated to `shape`.
class ReduceSumOp : public emulation::BuiltinOp {
 public:
  ReduceSumOp(const OperatorIdentifier &opid, const nonstd::optional<std::vector<int64_t>> &axes_, int64_t keepdims_,
              const Op::Settings &settings)
      : BuiltinOp(opid, settings), everyAxis(!axes_), axes(axes_.value_or({})), keepdims(keepdims_ != 0) {}

  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new ReduceSumOp(*this)); }
  void setup() override;
  std::vector<std::unique_ptr<Op>> getGradOps() override;
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("axes", axes);
    os.appendAttribute("keepdims", keepdims);
    os.appendAttribute("shape", shape);
  }

  bool isSpread() const { return spread; }
  /// The axes that are summed, of the larger shape, and that shape.
  const std::vector<int64_t> &getAxes() const { return axes; }
  const Shape &getShape() const { return shape; }

 private:
  bool everyAxis;
  std::vector<int64_t> axes;
  bool keepdims;
  bool spread = false;
  Shape shape;
};

/// A tensor taken as the loss: its sum, its mean, or itself.
class IdentityLossOp : public emulation::BuiltinOp {
 public:
  IdentityLossOp(const OperatorIdentifier &opid, ReductionType reduction_, const Op::Settings &settings)
      : BuiltinOp(opid, settings), reduction(reduction_) {}
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new IdentityLossOp(*this)); }
  void setup() override { outInfo(0) = {inInfo(0).dataType(), reduction == ReductionType::NoReduction ? inShape(0) : Shape{}}; }
  std::vector<std::unique_ptr<Op>> getGradOps() override;
  bool isLossOp() const override { return true; }
  bool canShard() const override { return true; }
  ReductionType getReduction() const { return reduction; }
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("reduction_type", static_cast<int64_t>(reduction));
  }

 private:
  ReductionType reduction;
};

class IdentityLossGradOp : public emulation::BuiltinOp {
 public:
  explicit IdentityLossGradOp(const IdentityLossOp &loss)
      : BuiltinOp(emulation::graphcore("IdentityLossGrad"), loss.settings),
        shape(loss.inShape(0)),
        mean(loss.getReduction() == ReductionType::Mean) {
    differentiates(0);
  }
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new IdentityLossGradOp(*this)); }
  void setup() override { outInfo(0) = {inInfo(0).dataType(), shape}; }
  /// What the gradient of the loss is multiplied with.
  double scale() const { return mean ? 1.0 / static_cast<double>(TensorInfo(DataType::FLOAT, shape).nelms()) : 1.0; }
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("mean", mean);
  }

 private:
  Shape shape;
  bool mean;
};

/// variable -= rate * gradient, in place.
class SGD0VarUpdateOp : public emulation::BuiltinOp {
 public:
  SGD0VarUpdateOp(float rate_, const Op::Settings &settings) : BuiltinOp(emulation::graphcore("SGD0VarUpdate"), settings), rate(rate_) {
    pruneable = false;
  }
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new SGD0VarUpdateOp(*this)); }
  void setup() override { outInfo(0) = inInfo(0); }
  view::Regions modifies(InIndex index) const override {
    return {index == 0 ? view::Region::getFull(inShape(0)) : view::Region::getEmpty(inRank(index))};
  }
  view::Regions aliases(InIndex in, OutIndex) const override { return modifies(in); }
  void growAliasModel(AliasModel &) const override {}
  bool isOptimizerOp() const override { return true; }
  float getRate() const { return rate; }
  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("rate", rate);
  }

 private:
  float rate;
};

/// A call of a graph: inputs and outputs are those of the graph, in order.
class CallOp : public Op {
 public:
  CallOp(const OperatorIdentifier &opid, Graph &callee_, const Op::Settings &settings) : Op(opid, settings), callee(callee_) {}
  CallOp(const OperatorIdentifier &opid, Graph &callee_, std::vector<int>, const Op::Settings &settings)
      : CallOp(opid, callee_, settings) {}

  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new CallOp(*this)); }
  void setup() override;
  float getSubgraphValue() const override { return getLowSubgraphValue(); }
  bool isOutlineable() const override { return false; }
  std::vector<const Graph *> getCalledGraphs() const override { return {&callee.get()}; }
  Graph &getCalledGraph() const { return callee; }
  void setCalledSubgraphGradInfo(const FwdGraphToBwdGraphInfo &info) override;
  std::vector<std::unique_ptr<Op>> getGradOps() override;

 private:
  std::reference_wrapper<Graph> callee;
  std::vector<BwdGraphInfo> backward;  // of the called graph, once it is known
};

/// The call of a backward graph.
class CallGradOp : public CallOp {
 public:
  CallGradOp(const CallOp &forward, const BwdGraphInfo &info);
  std::unique_ptr<Op> clone() const override { return std::unique_ptr<Op>(new CallGradOp(*this)); }
  const std::vector<GradInOutMapper> &gradInputInfo() const override { return gradInputs; }
  const std::map<int, int> &gradOutToNonGradIn() const override { return gradOutputs; }

 private:
  std::vector<GradInOutMapper> gradInputs;
  std::map<int, int> gradOutputs;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
