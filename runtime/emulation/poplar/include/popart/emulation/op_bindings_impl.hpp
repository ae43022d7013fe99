// What binds an op, as op_bindings.hpp says.
#ifndef POPART_EMULATION_OP_BINDINGS_IMPL_HPP
#define POPART_EMULATION_OP_BINDINGS_IMPL_HPP

#include <memory>

#include <pybind11/stl.h>

#include <popart/emulation/op_bindings.hpp>

namespace popart {
namespace emulation {

inline void bindParameterizedOp(PyObject *type, const OpBinding &op) {
  namespace py = pybind11;
  using Settings = Op::Settings;
  using Identifier = OperatorIdentifier;

  // Where an argument is something else, pybind11 says so, as it does of any argument.
  const auto load = [op](py::handle given) -> const void * {
    const void *params = op.load(given);
    if (params == nullptr) throw py::reference_cast_error();
    return params;
  };
  const py::detail::is_new_style_constructor constructor;
  // The graph owns what is made: Python is given a reference.
  const auto reference = py::return_value_policy::reference;

  // Only its methods are used, which don't depend on the type.
  auto binding = py::reinterpret_borrow<py::class_<Op, std::shared_ptr<Op>>>(type);
  binding.def(
      "__init__",
      [op, load](py::detail::value_and_holder &self, const Identifier &opid, py::handle params, const Settings &settings) {
        self.value_ptr() = op.make(opid, load(params), settings);
      },
      constructor, py::arg("opid"), py::arg("params"), py::arg("settings"));
  binding.def(
      "__init__",
      [op, load](py::detail::value_and_holder &self, py::handle params, const Settings &settings) {
        self.value_ptr() = op.make(op.defaultOpid(), load(params), settings);
      },
      constructor, py::arg("params"), py::arg("settings"));
  binding.def_property_readonly("params", [op](py::handle self) { return op.params(self.cast<const Op &>(), self); });
  binding.def_static("default_opid", op.defaultOpid);
  binding.def_static(
      "create_op_in_graph",
      [op, load](Graph &graph, const OpInputs &inputs, const OpOutputs &outputs, const Identifier &opid, py::handle params,
                 const Settings &settings) { return op.makeInGraph(graph, inputs, outputs, opid, load(params), settings); },
      py::arg("graph"), py::arg("inputs"), py::arg("outputs"), py::arg("opid"), py::arg("params"), py::arg("settings"), reference);
  binding.def_static(
      "create_op_in_graph",
      [op, load](Graph &graph, const OpInputs &inputs, const OpOutputs &outputs, py::handle params, const Settings &settings) {
        return op.makeInGraph(graph, inputs, outputs, op.defaultOpid(), load(params), settings);
      },
      py::arg("graph"), py::arg("inputs"), py::arg("outputs"), py::arg("params"), py::arg("settings"), reference);
}

}  // namespace emulation
}  // namespace popart

#endif
