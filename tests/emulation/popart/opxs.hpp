// How the test ops are lowered, rightly and wrongly, and who makes them.
#ifndef OPC_TESTS_EMULATION_POPART_OPXS_HPP
#define OPC_TESTS_EMULATION_POPART_OPXS_HPP

#include "ops.hpp"

namespace tests {

using namespace popops::expr;

class ScaleOpx : public popart::popx::Opx {
 public:
  ScaleOpx(popart::Op *op, popart::popx::Devicex *device) : Opx(op, device) { verifyOp<ScaleOp>(op, {ScaleId, ScaleInplaceId}); }

  void grow(poplar::program::Sequence &prog) const override {
    const ScaleOp &op = getOp<ScaleOp>();
    const std::string &fault = op.fault;
    const poplar::Tensor &x = getInTensor(0);
    if (op.opid == ScaleInplaceId || fault == "writes input") {
      popops::mapInPlace(graph(), Mul(_1, Const(op.alpha)), {x}, prog, debugContext("scale"));
      setOutTensor(0, op.opid == ScaleInplaceId ? x : cloneNcopy(prog, x));
      return;
    }
    const poplar::Tensor y = popops::map(graph(), Mul(_1, Const(op.alpha)), {x}, prog, debugContext("scale"));
    if (fault == "no output") return;
    if (fault == "two outputs") setOutTensor(0, y);
    if (fault == "other output") setOutTensor(1, y);
    if (fault == "output shape") return setOutTensor(0, y.expand({0}));
    if (fault == "output type") return setOutTensor(0, popops::map(graph(), Cast(_1, poplar::INT), {x}, prog));
    if (fault == "output unmapped") return setOutTensor(0, graph().addVariable(x.elementType(), x.shape(), "unmapped"));
    if (fault == "output is input") return setOutTensor(0, x);
    if (fault == "output unwritten") {
      const poplar::Tensor other = graph().addVariable(x.elementType(), x.shape(), "unwritten");
      poputil::mapTensorLinearly(graph(), other);
      return setOutTensor(0, other);
    }
    if (fault == "seed") {
      const bool given = inInfo(op.getSeedInIndex()) == popart::TensorInfo(popart::DataType::UINT32, {2});
      return setOutTensor(0, popops::map(graph(), Add(_1, Const(given ? 100.0f : 0.0f)), {y}, prog));
    }
    if (fault == "writes constant") {
      const poplar::Tensor one = getConst(poplar::FLOAT, {2}, 1, "one");
      popops::mapInPlace(graph(), Add(_1, Const(1.0f)), {one}, prog);
    }
    setOutTensor(0, y);
  }

  popart::popx::InputCreatorType getInputCreatorType(popart::InIndex) const override {
    const std::string &fault = getOp<ScaleOp>().fault;
    if (fault == "creates input") return popart::popx::InputCreatorType::CanCreate;
    if (fault == "unwinds") return popart::popx::InputCreatorType::CanUnwind;
    return popart::popx::InputCreatorType::Deadend;
  }
  poplar::Tensor unwindTensorLayout(poplar::Tensor tensor, popart::InIndex, popart::OutIndex) const override {
    return tensor.reverse(0);
  }
  poplar::Tensor createInputTensor(popart::InIndex, const poplar::DebugNameAndId &dnai) const override {
    poplar::Tensor made = graph().addVariable(poplar::FLOAT, inShapeSzt(0), dnai);
    graph().setTileMapping(made, 7);
    return made;
  }
};

class ScaleGradOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    const float alpha = getOp<ScaleGradOp>().alpha;
    setOutTensor(0, popops::map(graph(), Mul(_1, Const(alpha)), {getInTensor(0)}, prog, debugContext("scale")));
  }
};

class CubeOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    setOutTensor(0, popops::map(graph(), Mul(Mul(_1, _1), _1), {getInTensor(0)}, prog, debugContext("cube")));
  }
};

class CubeGradOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    setOutTensor(
        0, popops::map(graph(), Mul(_1, Mul(Const(3.0f), Mul(_2, _2))), {getInTensor(0), getInTensor(1)}, prog, debugContext("grad")));
  }
};

class CubeGradGradOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    const poplar::Tensor &u = getInTensor(0), &g = getInTensor(1), &x = getInTensor(2);
    if (hasOutput(0)) setOutTensor(0, popops::map(graph(), Mul(_1, Mul(Const(3.0f), Mul(_2, _2))), {u, x}, prog, debugContext("dg")));
    if (hasOutput(1))
      setOutTensor(1, popops::map(graph(), Mul(Mul(_1, _2), Mul(Const(6.0f), _3)), {u, g, x}, prog, debugContext("dx")));
  }
};

class SplitOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    setOutTensor(
        0, hasInput(2) ? popops::map(graph(), Add(_1, _2), {getInTensor(0), getInTensor(2)}, prog) : cloneNcopy(prog, getInTensor(0)));
    setOutTensor(1, popops::map(graph(), Mul(_1, Const(2.0f)), {getInTensor(1)}, prog));
  }
};

class SplitGradOpx : public popart::popx::Opx {
 public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &prog) const override {
    const auto zeros = [&](int i) {
      poplar::Tensor zero = graph().addVariable(poplar::FLOAT, outInfo(i).shape_szt(), poplar::VariableMappingMethod::LINEAR, "zero");
      prog.add(poplar::program::Copy(broadcast(outShape(i), getConst(poplar::FLOAT, {}, 0, "0")), zero));
      return zero;
    };
    setOutTensor(0, hasInput(0) ? cloneNcopy(prog, getInTensor(0)) : zeros(0));
    setOutTensor(1, hasInput(1) ? popops::map(graph(), Mul(_1, Const(2.0f)), {getInTensor(1)}, prog) : zeros(1));
    if (hasOutput(2)) setOutTensor(2, hasInput(0) ? cloneNcopy(prog, getInTensor(0)) : zeros(2));
  }
};

namespace {

const popart::OpDefinition::DataTypes T = {popart::DataType::FLOAT16, popart::DataType::FLOAT};
const popart::OpDefinition definition({popart::OpDefinition::Inputs({{"x", T}}), popart::OpDefinition::Outputs({{"y", T}}),
                                       popart::OpDefinition::Attributes({{"alpha", {"*"}}})});

const popart::OpCreator<ScaleOp> scaleCreator(
    popart::OpDefinitions({{ScaleId, definition}}),
    [](const popart::OpCreatorInfo &info) {
      const float alpha = info.attributes.getAttribute<popart::Attributes::Float>("alpha", 0.5f);
      const std::string fault = info.attributes.getAttribute<popart::Attributes::String>("fault", "");
      return std::unique_ptr<popart::Op>(new ScaleOp(info.opid, alpha, fault, info.settings));
    },
    true);
const popart::OpCreator<CubeOp> cubeCreator(popart::OpDefinitions({{CubeId, definition}}));
const popart::OpCreator<SplitOp> splitCreator(
    popart::OpDefinitions({{SplitId, definition}}),
    [](const popart::OpCreatorInfo &info) {
      const bool strict = popart::checkedIntToBool(info.attributes.getAttribute<popart::Attributes::Int>("strict", 0));
      return std::unique_ptr<popart::Op>(new SplitOp(info.opid, strict, info.settings));
    },
    true);

const popart::popx::OpxCreator<ScaleOpx> scaleOpx(std::vector<popart::OperatorIdentifier>{ScaleId, ScaleInplaceId});
const popart::popx::OpxCreator<ScaleGradOpx> scaleGradOpx(ScaleGradId);
const popart::popx::OpxCreator<CubeOpx> cubeOpx(CubeId);
const popart::popx::OpxCreator<CubeGradOpx> cubeGradOpx(CubeGradId);
const popart::popx::OpxCreator<CubeGradGradOpx> cubeGradGradOpx(CubeGradGradId);
const popart::popx::OpxCreator<SplitOpx> splitOpx(SplitId);
const popart::popx::OpxCreator<SplitGradOpx> splitGradOpx(SplitGradId);

const popart::RegisterShapeInferenceFunction scaleInference(ScaleId,
                                                            [](popart::ShapeInferenceContext &ctx) { ctx.outInfo(0) = ctx.inInfo(0); });

}  // namespace
}  // namespace tests

#endif
