#ifndef popops_Fill_hpp
#define popops_Fill_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/TypeTraits.hpp>
#include <popops/ElementWise.hpp>

namespace popops {

namespace detail {
POPLAR_EMULATION_FUNCTION void fillWith(poplar::Graph &graph, const poplar::Tensor &t,
                                        poplar::program::Sequence &prog, const expr::Const &value,
                                        const poplar::DebugContext &debugContext);
}

/// Writes the value to every element of the tensor.
template <class FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog, FillValueType fillValue,
          const poplar::DebugContext &debugContext = {}) {
  detail::fillWith(graph, t, prog, expr::Const(fillValue), debugContext);
}

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/fill_impl.hpp>
#endif
#endif
