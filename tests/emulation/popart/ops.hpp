// Custom ops for the tests of the emulated PopART: one for each thing that an op can do, and an attribute `fault` to do it wrong.
#ifndef OPC_TESTS_EMULATION_POPART_OPS_HPP
#define OPC_TESTS_EMULATION_POPART_OPS_HPP

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <popart/alias/aliasmodel.hpp>
#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/region.hpp>
#include <popart/shapeinference.hpp>
#include <popart/tensorinfo.hpp>

#include <poplar/OptionFlags.hpp>
#include <poplar/Tensor.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>
#include <poputil/TileMapping.hpp>

namespace tests {

const popart::OperatorIdentifier ScaleId("tests", "Scale", 1, {1, 1}, 1);
const popart::OperatorIdentifier ScaleGradId("tests", "ScaleGrad", 1, {1, 1}, 1);
const popart::OperatorIdentifier ScaleInplaceId("tests", "ScaleInplace", 1, {1, 1}, 1);
const popart::OperatorIdentifier CubeId("tests", "Cube", 1, {1, 1}, 1);
const popart::OperatorIdentifier CubeGradId("tests", "CubeGrad", 1, {2, 2}, 1);
const popart::OperatorIdentifier CubeGradGradId("tests", "CubeGradGrad", 1, {3, 3}, 2);
const popart::OperatorIdentifier SplitId("tests", "Split", 1, {2, 3}, 2);
const popart::OperatorIdentifier SplitGradId("tests", "SplitGrad", 1, {2, 3}, 3);

/// y = alpha * x.
class ScaleOp : public popart::Op {
 public:
  ScaleOp(const popart::OperatorIdentifier &opid, float alpha_, std::string fault_, const popart::Op::Settings &settings)
      : Op(opid, settings), alpha(alpha_), fault(std::move(fault_)) {}

  std::unique_ptr<popart::Op> clone() const override {
    std::unique_ptr<ScaleOp> copy(new ScaleOp(*this));
    if (fault == "clone loses") copy->alpha = 0;
    if (fault == "clone info") copy->setups = 1;
    return copy;
  }
  float getSubgraphValue() const override { return getHighSubgraphValue(); }
  void setup() override {
    popart::Shape shape = inShape(0);
    if (fault == "setup changes" && setups++ > 0) shape.push_back(1);
    if (fault == "clone info" && setups == 1) shape.push_back(1);
    if (fault == "no info") return;
    if (fault == "refuses") throw popart::error("Scale takes rank 1, not {}", inRank(0));
    outInfo(0) = {inInfo(0).dataType(), shape};
  }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override;
  void appendAttributes(popart::OpSerialiserBase &os) const override {
    Op::appendAttributes(os);
    os.appendAttribute("alpha", alpha);
    if (fault == "attributes change") os.appendAttribute("count", static_cast<int64_t>(writes++));
  }
  void appendOutlineAttributes(popart::OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    if (fault != "outline forgets") os.appendAttribute("alpha", alpha);
  }
  bool requiresRandomSeed() const override { return fault == "seed"; }
  popart::InIndex getSeedInIndex() const override { return 1; }
  std::vector<std::tuple<popart::OperatorIdentifier, float>> inplacePriorityDefault() const override {
    return {{ScaleInplaceId, 10.0f}};
  }
  std::unique_ptr<popart::Op> getInplaceVariant(const popart::OperatorIdentifier &opid) const override;
  void growAliasModel(popart::AliasModel &model) const override { model.insertUnaryModifier0(*this); }
  poprithms::memory::inplace::Proposal mapInplaceProposal(const popart::AliasModel &model,
                                                          popart::OperatorIdentifier opid) const override {
    return mapInplaceProposalGate0(model, opid);
  }

  float alpha;
  std::string fault;

 private:
  int setups = 0;
  mutable int writes = 0;
};

class ScaleInplaceOp : public ScaleOp {
 public:
  explicit ScaleInplaceOp(const ScaleOp &op) : ScaleOp(ScaleInplaceId, op.alpha, op.fault, op.settings) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new ScaleInplaceOp(*this)); }
  std::vector<std::tuple<popart::OperatorIdentifier, float>> inplacePriorityDefault() const override { return {}; }
  popart::view::Regions modifies(popart::InIndex index) const override { return {popart::view::Region::getFull(inShape(index))}; }
  popart::view::Regions aliases(popart::InIndex in, popart::OutIndex) const override {
    return {popart::view::Region::getFull(inShape(in))};
  }
};

class ScaleGradOp : public popart::Op {
 public:
  explicit ScaleGradOp(const ScaleOp &forward) : Op(ScaleGradId, forward.settings), alpha(forward.alpha) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new ScaleGradOp(*this)); }
  float getSubgraphValue() const override { return getHighSubgraphValue(); }
  void setup() override { outInfo(0) = inInfo(0); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info{{0, 0, popart::GradOpInType::GradOut}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info{{0, 0}};
    return info;
  }
  void appendOutlineAttributes(popart::OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    os.appendAttribute("alpha", alpha);
  }
  float alpha;
};

inline std::vector<std::unique_ptr<popart::Op>> ScaleOp::getGradOps() {
  std::vector<std::unique_ptr<popart::Op>> out;
  out.emplace_back(new ScaleGradOp(*this));
  return out;
}
inline std::unique_ptr<popart::Op> ScaleOp::getInplaceVariant(const popart::OperatorIdentifier &opid) const {
  return opid == ScaleInplaceId ? std::unique_ptr<popart::Op>(new ScaleInplaceOp(*this)) : Op::getInplaceVariant(opid);
}

/// y = x^3, differentiable twice.
class CubeBase : public popart::Op {
 public:
  using Op::Op;
  float getSubgraphValue() const override { return getHighSubgraphValue(); }
  void setup() override {
    for (const auto &entry : output->tensorMap()) entry.second->info = inInfo(0);
  }
};

class CubeGradGradOp : public CubeBase {
 public:
  explicit CubeGradGradOp(const popart::Op &op) : CubeBase(CubeGradGradId, op.settings) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new CubeGradGradOp(*this)); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info{
        {0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::In}, {2, 1, popart::GradOpInType::In}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info{{0, 0}, {1, 1}};
    return info;
  }
};

/// Inputs: the gradient of y, and x.
class CubeGradOp : public CubeBase {
 public:
  explicit CubeGradOp(const popart::Op &op) : CubeBase(CubeGradId, op.settings) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new CubeGradOp(*this)); }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override {
    std::vector<std::unique_ptr<popart::Op>> out;
    out.emplace_back(new CubeGradGradOp(*this));
    return out;
  }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info{{0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::In}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info{{0, 0}};
    return info;
  }
};

class CubeOp : public CubeBase {
 public:
  using CubeBase::CubeBase;
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new CubeOp(*this)); }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override {
    std::vector<std::unique_ptr<popart::Op>> out;
    out.emplace_back(new CubeGradOp(*this));
    return out;
  }
};

/// Outputs x + z and y * 2, where z may be absent; its gradient op takes either gradient as absent unless `strict`.
class SplitOp : public popart::Op {
 public:
  SplitOp(const popart::OperatorIdentifier &opid, bool strict_, const popart::Op::Settings &settings)
      : Op(opid, settings), strict(strict_) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new SplitOp(*this)); }
  float getSubgraphValue() const override { return getLowSubgraphValue(); }
  std::set<popart::InIndex> optionalInputs() const override { return {2}; }
  void setup() override {
    outInfo(0) = inInfo(0);
    outInfo(1) = inInfo(1);
  }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override;
  bool strict;
};

class SplitGradOp : public popart::Op {
 public:
  explicit SplitGradOp(const SplitOp &forward)
      : Op(SplitGradId, forward.settings), strict(forward.strict), shape0(forward.inInfo(0)), shape1(forward.inInfo(1)) {}
  std::unique_ptr<popart::Op> clone() const override { return std::unique_ptr<popart::Op>(new SplitGradOp(*this)); }
  float getSubgraphValue() const override { return getLowSubgraphValue(); }
  std::set<popart::InIndex> optionalInputs() const override {
    return strict ? std::set<popart::InIndex>{} : std::set<popart::InIndex>{0, 1};
  }
  void setup() override {
    outInfo(0) = shape0;
    outInfo(1) = shape1;
    if (hasOutput(2)) outInfo(2) = shape0;
  }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info{{0, 0, popart::GradOpInType::GradOut},
                                                           {1, 1, popart::GradOpInType::GradOut}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info{{0, 0}, {1, 1}, {2, 2}};
    return info;
  }
  bool strict;
  popart::TensorInfo shape0, shape1;
};

inline std::vector<std::unique_ptr<popart::Op>> SplitOp::getGradOps() {
  std::vector<std::unique_ptr<popart::Op>> out;
  out.emplace_back(new SplitGradOp(*this));
  return out;
}

}  // namespace tests

#endif
