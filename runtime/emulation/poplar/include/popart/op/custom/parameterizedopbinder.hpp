// Python bindings of an op that derives from popart::ParameterizedOp.
#pragma once

#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <popart/emulation/op_bindings.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>

// Files that include this header use the short name, as they do in an SDK.
namespace py = pybind11;

namespace popart {
namespace emulation {

// The struct of an op's attributes, from Python and to it.
template <typename Params>
struct ParamsBinding {
  static const void *load(pybind11::handle given) {
    return pybind11::isinstance<Params>(given) ? &given.cast<const Params &>() : nullptr;
  }
  static pybind11::object cast(const Params &params, pybind11::handle owner) {
    return pybind11::cast(&params, pybind11::return_value_policy::reference_internal, owner);
  }
};

template <typename OpType, typename Params>
OpBinding opBinding() {
  OpBinding op;
  op.load = &ParamsBinding<Params>::load;
  op.params = [](const Op &self, pybind11::handle owner) {
    return ParamsBinding<Params>::cast(dynamic_cast<const OpType &>(self).params(), owner);
  };
  op.defaultOpid = &OpType::defaultOperatorId;
  op.make = [](const OperatorIdentifier &opid, const void *params, const Op::Settings &settings) -> void * {
    return new OpType(opid, *static_cast<const Params *>(params), settings);
  };
  op.makeInGraph = [](Graph &graph, const OpInputs &inputs, const OpOutputs &outputs, const OperatorIdentifier &opid,
                      const void *params, const Op::Settings &settings) -> Op * {
    return OpType::createOpInGraph(graph, inputs, outputs, opid, *static_cast<const Params *>(params), settings);
  };
  return op;
}

} // namespace emulation

namespace ir {
namespace op {

// Binds `OpType` in `module` under `name`: its constructors, `params`, `default_opid` and the two overloads of `create_op_in_graph`.
template <typename OpType>
py::class_<OpType, popart::Op, std::shared_ptr<OpType>> makeParameterizedOpBindings(pybind11::module_ module, const char *name) {
  using Params = typename std::decay<decltype(std::declval<const OpType &>().params())>::type;

  py::class_<OpType, popart::Op, std::shared_ptr<OpType>> binding(module, name);
  emulation::bindOp(binding, emulation::opBinding<OpType, Params>());
  return binding;
}

} // namespace op
} // namespace ir
} // namespace popart
