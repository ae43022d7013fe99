// Python bindings of an op that derives from popart::ParameterizedOp.
#pragma once

#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <popart/names.hpp>
#include <popart/op.hpp>

// Files that include this header use the short name, as they do in an SDK.
namespace py = pybind11;

namespace popart {
namespace ir {
namespace op {

// Binds `OpType` in `module` under `name`: its constructors, `params`, `default_opid` and the two overloads of `create_op_in_graph`.
template <typename OpType>
py::class_<OpType, popart::Op, std::shared_ptr<OpType>> makeParameterizedOpBindings(pybind11::module_ module, const char *name) {
  using Params = typename std::decay<decltype(std::declval<const OpType &>().params())>::type;
  using Inputs = std::map<popart::InIndex, popart::TensorId>;
  using Outputs = std::map<popart::OutIndex, popart::TensorId>;
  using Identifier = popart::OperatorIdentifier;
  using Settings = popart::Op::Settings;

  py::class_<OpType, popart::Op, std::shared_ptr<OpType>> binding(module, name);
  binding.def(py::init<const Identifier &, const Params &, const Settings &>(),
              py::arg("opid"), py::arg("params"), py::arg("settings"));
  binding.def(py::init<const Params &, const Settings &>(), py::arg("params"), py::arg("settings"));
  binding.def_property_readonly("params", &OpType::params);
  binding.def_static("default_opid", &OpType::defaultOperatorId);
  // The graph owns what is made: Python is given a reference.
  binding.def_static(
      "create_op_in_graph",
      static_cast<OpType *(*)(popart::Graph &, const Inputs &, const Outputs &, const Identifier &, const Params &, const Settings &)>(
          &OpType::createOpInGraph),
      py::arg("graph"), py::arg("inputs"), py::arg("outputs"), py::arg("opid"), py::arg("params"), py::arg("settings"),
      py::return_value_policy::reference);
  binding.def_static(
      "create_op_in_graph",
      static_cast<OpType *(*)(popart::Graph &, const Inputs &, const Outputs &, const Params &, const Settings &)>(
          &OpType::createOpInGraph),
      py::arg("graph"), py::arg("inputs"), py::arg("outputs"), py::arg("params"), py::arg("settings"),
      py::return_value_policy::reference);
  return binding;
}

} // namespace op
} // namespace ir
} // namespace popart
