#ifndef popops_Zero_hpp
#define popops_Zero_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

POPLAR_EMULATION_FUNCTION void zero(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog,
                                    const poplar::DebugContext &debugContext = {});

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/fill_impl.hpp>
#endif
#endif
