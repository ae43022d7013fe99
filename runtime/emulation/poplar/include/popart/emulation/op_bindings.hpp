// How an op with a struct of attributes is bound to Python, without its types: compiled once a module, not for each op.
#ifndef POPART_EMULATION_OP_BINDINGS_HPP
#define POPART_EMULATION_OP_BINDINGS_HPP

#include <map>

#include <pybind11/pybind11.h>

#include <popart/graph.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>

namespace popart {
namespace emulation {

using OpInputs = std::map<InIndex, TensorId>;
using OpOutputs = std::map<OutIndex, TensorId>;

// What is known of an op's type: `void *` is the op, or the struct of its attributes.
struct __attribute__((visibility("hidden"))) OpBinding {
  // The struct that a Python object holds; null where it holds none.
  const void *(*load)(pybind11::handle given);
  // The struct of an op as a Python object that keeps `owner`, the op, alive.
  pybind11::object (*params)(const Op &op, pybind11::handle owner);
  OperatorIdentifier (*defaultOpid)();
  void *(*make)(const OperatorIdentifier &opid, const void *params, const Op::Settings &settings);
  Op *(*makeInGraph)(Graph &graph, const OpInputs &inputs, const OpOutputs &outputs, const OperatorIdentifier &opid,
                     const void *params, const Op::Settings &settings);
};

// Adds to a class of Python its constructors, `params`, `default_opid` and the two overloads of `create_op_in_graph`.
inline void bindOp(pybind11::handle type, const OpBinding &op);

}  // namespace emulation
}  // namespace popart

#include <popart/emulation/op_bindings_impl.hpp>

#endif
