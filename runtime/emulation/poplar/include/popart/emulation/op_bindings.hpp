// How an op with a struct of attributes is bound to Python, without its types. A built SDK has the function in its module `popart_core`, so that
// the modules of ops needn't compile it; headers alone compile it once a module.
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
using BindOp = void (*)(PyObject *type, const OpBinding &op);

// What `popart_core` calls the capsule that holds the function.
constexpr const char *kBindOp = "_bind_op";

}  // namespace emulation
}  // namespace popart

#ifdef POPLAR_EMULATION_LIBRARIES
namespace popart {
namespace emulation {

inline void bindOp(pybind11::handle type, const OpBinding &op) {
  const auto core = pybind11::module_::import("popart_core");
  const auto function = pybind11::reinterpret_steal<pybind11::object>(PyObject_GetAttrString(core.ptr(), kBindOp));
  if (!function) throw pybind11::error_already_set();
  void *found = PyCapsule_GetPointer(function.ptr(), kBindOp);
  if (found == nullptr) throw pybind11::error_already_set();
  reinterpret_cast<BindOp>(found)(type.ptr(), op);
}

}  // namespace emulation
}  // namespace popart
#else
#include <popart/emulation/op_bindings_impl.hpp>

namespace popart {
namespace emulation {

inline void bindOp(pybind11::handle type, const OpBinding &op) { bindParameterizedOp(type.ptr(), op); }

}  // namespace emulation
}  // namespace popart
#endif

#endif
