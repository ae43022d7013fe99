// How the operators of the emulation itself are lowered.
#ifndef POPART_EMULATION_BUILTIN_OPX_HPP
#define POPART_EMULATION_BUILTIN_OPX_HPP

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>

#include <popart/emulation/builtin.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

class BuiltinOpx : public popx::Opx {
 public:
  using Opx::Opx;

 protected:
  /// All inputs, one after the other, through `op`; a new tensor always.
  poplar::Tensor fold(popops::expr::BinaryOpType op, poplar::program::Sequence &prog) const {
    poplar::Tensor out;
    for (const auto &entry : op_p->input->tensorMap()) {
      const poplar::Tensor &next = getInTensor(entry.first);
      out = out.valid() ? popops::map(graph(), op, out, next, prog, debugContext("fold")) : next;
    }
    return out;
  }

  /// `tensor` summed along `axes`, which vanish.
  poplar::Tensor reduce(const poplar::Tensor &tensor, const std::vector<int64_t> &axes, poplar::program::Sequence &prog) const {
    const std::vector<std::size_t> dimensions(axes.begin(), axes.end());
    return popops::reduce(graph(), tensor, dimensions, popops::ReduceParams(popops::Operation::ADD), prog, debugContext("reduce"));
  }

  /// A new tensor of the values of `tensor`, in the shape of output 0.
  void copyOut(const poplar::Tensor &tensor, poplar::program::Sequence &prog) const {
    poplar::Tensor out =
        graph().addVariable(tensor.elementType(), outInfo(0).shape_szt(), poplar::VariableMappingMethod::LINEAR, debugContext("out"));
    prog.add(poplar::program::Copy(tensor, out, false, debugContext("copy")));
    setOutTensor(0, out);
  }
};

class ProductOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    poplar::Tensor product = fold(popops::expr::BinaryOpType::MULTIPLY, prog);
    const std::vector<std::size_t> shape = product.shape();
    const Shape full(shape.begin(), shape.end()), wanted = outShape(0);
    std::vector<int64_t> axes;
    if (wanted.size() <= full.size()) {
      const std::size_t lead = full.size() - wanted.size();
      for (std::size_t i = 0; i < full.size(); ++i) {
        if (i < lead || (wanted[i - lead] == 1 && full[i] != 1)) axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (!axes.empty()) {
      // Dimensions of size 1 that stay are put back.
      Shape kept(wanted);
      for (const int64_t axis : axes) {
        const std::size_t lead = full.size() - wanted.size();
        if (static_cast<std::size_t>(axis) >= lead) kept[static_cast<std::size_t>(axis) - lead] = 1;
      }
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::size_t at = i + full.size() - wanted.size();
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(at)) == axes.end()) kept[i] = full[at];
      }
      product = reduce(product, axes, prog).reshape(std::vector<std::size_t>(kept.begin(), kept.end()));
    }
    copyOut(broadcast(wanted, product), prog);
  }
};

class SumOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override { copyOut(fold(popops::expr::BinaryOpType::ADD, prog), prog); }
};

class CastOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    copyOut(popops::cast(graph(), getInTensor(0), popx::popType(outInfo(0)), prog, debugContext("cast")), prog);
  }
};

class ReduceSumOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    const ReduceSumOp &op = getOp<ReduceSumOp>();
    if (!op.isSpread()) {
      copyOut(reduce(getInTensor(0), op.getAxes(), prog).reshape(outInfo(0).shape_szt()), prog);
      return;
    }
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < op.getShape().size(); ++i) {
      kept.push_back(isOneOf(static_cast<int64_t>(i), op.getAxes()) ? 1 : static_cast<std::size_t>(op.getShape()[i]));
    }
    copyOut(broadcast(op.getShape(), getInTensor(0).reshape(kept)), prog);
  }
};

class IdentityLossOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    const IdentityLossOp &op = getOp<IdentityLossOp>();
    if (op.getReduction() == ReductionType::NoReduction) {
      copyOut(getInTensor(0), prog);
      return;
    }
    poplar::Tensor sum = reduce(getInTensor(0).flatten(), {0}, prog);
    if (op.getReduction() == ReductionType::Mean) {
      const float count = static_cast<float>(inInfo(0).nelms());
      sum = popops::map(graph(), popops::expr::Divide(popops::expr::_1, popops::expr::Const(count)), {sum}, prog, debugContext("mean"));
    }
    copyOut(sum, prog);
  }
};

class IdentityLossGradOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    const float scale = static_cast<float>(getOp<IdentityLossGradOp>().scale());
    const poplar::Tensor scaled = popops::map(graph(), popops::expr::Mul(popops::expr::_1, popops::expr::Const(scale)),
                                              {getInTensor(0)}, prog, debugContext("scale"));
    copyOut(broadcast(outShape(0), scaled), prog);
  }
};

class SGD0VarUpdateOpx : public BuiltinOpx {
 public:
  using BuiltinOpx::BuiltinOpx;
  void grow(poplar::program::Sequence &prog) const override {
    using namespace popops::expr;
    const float rate = getOp<SGD0VarUpdateOp>().getRate();
    const poplar::Tensor &variable = getInTensor(0);
    popops::mapInPlace(graph(), Sub(_1, Mul(_2, Const(rate))), {variable, getInTensor(1)}, prog, debugContext("update"));
    setOutTensor(0, variable);
  }
};

template <typename OPX>
void registerBuiltinOpx(const char *domain, const char *type, std::initializer_list<unsigned> versions) {
  for (const unsigned version : versions) popx::OpxCreator<OPX>(OperatorIdentifier(domain, type, version));
}

POPLAR_EMULATION_FUNCTION void registerBuiltinOpxs() {
  static const bool once = [] {
    const char *const onnx = Domain::ai_onnx, *const own = Domain::ai_graphcore;
    registerBuiltinOpx<ProductOpx>(onnx, "Identity", {1});
    registerBuiltinOpx<ProductOpx>(onnx, "Mul", {6, 7});
    registerBuiltinOpx<ProductOpx>(own, "ProductGrad", {1});
    registerBuiltinOpx<ProductOpx>(own, "SumArgGrad", {1});
    registerBuiltinOpx<SumOpx>(onnx, "Add", {6, 7});
    registerBuiltinOpx<SumOpx>(onnx, "Sum", {6, 8});
    registerBuiltinOpx<CastOpx>(onnx, "Cast", {6, 9});
    registerBuiltinOpx<CastOpx>(own, "CastGrad", {1});
    registerBuiltinOpx<ReduceSumOpx>(onnx, "ReduceSum", {1, 11});
    registerBuiltinOpx<ReduceSumOpx>(own, "ReduceSumGrad", {1});
    registerBuiltinOpx<ReduceSumOpx>(own, "ReduceSumSpreadGrad", {1});
    registerBuiltinOpx<IdentityLossOpx>(own, "IdentityLoss", {1});
    registerBuiltinOpx<IdentityLossGradOpx>(own, "IdentityLossGrad", {1});
    registerBuiltinOpx<SGD0VarUpdateOpx>(own, "SGD0VarUpdate", {1});
    return true;
  }();
  (void)once;
}

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#endif
