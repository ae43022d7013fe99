// cppimport
// LeakyRelu as an op of PopXL, with its gradient and the gradient's gradient, written by hand.
#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <vector>

#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/op.hpp>
#include <popart/op/custom/parameterizedop.hpp>
#include <popart/op/custom/parameterizedopbinder.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/tensorinfo.hpp>

#include <poplar/OptionFlags.hpp>
#include <poplar/Tensor.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>

namespace py = pybind11;

namespace sample_popxl {

struct LeakyReluParams {
  float alpha = 0.01f;
  void appendAttributes(popart::OpSerialiserBase &os) const { os.appendAttribute("alpha", alpha); }
  static LeakyReluParams makeFromAttributes(const popart::Attributes &attributes) {
    LeakyReluParams params;
    params.alpha = attributes.getAttribute<popart::Attributes::Float>("alpha", params.alpha);
    return params;
  }
};

// The gradient in `d`, the cotangent, is the op itself: what it is for is said by GradOut and In.
class LeakyReluGradGradOp : public popart::ParameterizedOp<LeakyReluGradGradOp, LeakyReluParams> {
 public:
  using ParameterizedOp::ParameterizedOp;
  static popart::OperatorIdentifier defaultOperatorId() { return {"sample.popxl", "LeakyReluGradGrad", 1, {2, 2}, 1}; }
  void setup() override { outInfo(0) = inInfo(0); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info = {{0, 0, popart::GradOpInType::GradOut}, {1, 1, popart::GradOpInType::In}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info = {{0, 0}};
    return info;
  }
};

class LeakyReluGradOp : public popart::ParameterizedOp<LeakyReluGradOp, LeakyReluParams> {
 public:
  using ParameterizedOp::ParameterizedOp;
  static popart::OperatorIdentifier defaultOperatorId() { return {"sample.popxl", "LeakyReluGrad", 1, {2, 2}, 1}; }
  void setup() override { outInfo(0) = inInfo(0); }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override {
    std::vector<std::unique_ptr<popart::Op>> ops;
    ops.emplace_back(new LeakyReluGradGradOp(*this));
    return ops;
  }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const override {
    static const std::vector<popart::GradInOutMapper> info = {{0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::In}};
    return info;
  }
  const std::map<int, int> &gradOutToNonGradIn() const override {
    static const std::map<int, int> info = {{0, 0}};
    return info;
  }
};

class LeakyReluOp : public popart::ParameterizedOp<LeakyReluOp, LeakyReluParams> {
 public:
  using ParameterizedOp::ParameterizedOp;
  static popart::OperatorIdentifier defaultOperatorId() { return {"sample.popxl", "LeakyRelu", 1, {1, 1}, 1}; }
  void setup() override {
    const auto type = inInfo(0).dataType();
    if (type != popart::DataType::FLOAT && type != popart::DataType::FLOAT16) {
      throw popart::error("LeakyRelu: x must be FLOAT or FLOAT16, not {}", type);
    }
    outInfo(0) = inInfo(0);
  }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() override {
    std::vector<std::unique_ptr<popart::Op>> ops;
    ops.emplace_back(new LeakyReluGradOp(*this));
    return ops;
  }
};

const popart::OperatorIdentifier LeakyReluId = LeakyReluOp::defaultOperatorId();
const popart::OperatorIdentifier LeakyReluGradId = LeakyReluGradOp::defaultOperatorId();
const popart::OperatorIdentifier LeakyReluGradGradId = LeakyReluGradGradOp::defaultOperatorId();

namespace {

const popart::OpDefinition::DataTypes T = {popart::DataType::FLOAT16, popart::DataType::FLOAT};
const popart::OpDefinition definition({popart::OpDefinition::Inputs({{"x", T}}), popart::OpDefinition::Outputs({{"y", T}}),
                                       popart::OpDefinition::Attributes({{"alpha", {"*"}}})});
popart::OpCreator<LeakyReluOp> creator(popart::OpDefinitions({{LeakyReluId, definition}}), &LeakyReluOp::createOpFromCreatorInfo, true);

}  // namespace

namespace pe = popops::expr;

// The op takes `alpha` times its first input where its last one is negative: its input, or the cotangent and the input.
template <typename OpType>
class LeakyReluOpx : public popart::popx::Opx {
 public:
  LeakyReluOpx(popart::Op *op, popart::popx::Devicex *devicex) : popart::popx::Opx(op, devicex) {
    verifyOp<OpType>(op, {OpType::defaultOperatorId()});
  }
  void grow(poplar::program::Sequence &prog) const override {
    const float alpha = getOp<OpType>().params().alpha;
    const poplar::Tensor value = getInTensor(0);
    const poplar::Tensor x = hasInput(1) ? getInTensor(1) : value;
    const auto y = pe::Select(pe::Mul(pe::Const(alpha), pe::_1), pe::_1, pe::Lt(pe::_2, pe::Const(0.0f)));
    setOutTensor(0, popops::map(graph(), y, {value, x}, prog, debugContext("LeakyRelu"), poplar::OptionFlags()));
  }
};

namespace {

popart::popx::OpxCreator<LeakyReluOpx<LeakyReluOp>> opx(LeakyReluId);
popart::popx::OpxCreator<LeakyReluOpx<LeakyReluGradOp>> gradOpx(LeakyReluGradId);
popart::popx::OpxCreator<LeakyReluOpx<LeakyReluGradGradOp>> gradGradOpx(LeakyReluGradGradId);

}  // namespace
}  // namespace sample_popxl

PYBIND11_MODULE(sample_leaky_relu_impl, m) {
  py::class_<sample_popxl::LeakyReluParams>(m, "LeakyReluParams")
      .def(py::init<float>(), py::arg("alpha") = 0.01)
      .def_readwrite("alpha", &sample_popxl::LeakyReluParams::alpha);
  popart::ir::op::makeParameterizedOpBindings<sample_popxl::LeakyReluOp>(m, "LeakyRelu");
}

/*
<%
cfg['extra_compile_args'] = ['-std=c++14', '-fPIC', '-shared', '-O0', '-g0', '-DONNX_NAMESPACE=onnx']
cfg['libraries'] = ['popart']
setup_pybind11(cfg)
%>
*/
