#ifndef popops_Cast_hpp
#define popops_Cast_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

POPLAR_EMULATION_FUNCTION poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src,
                                              const poplar::Type &dstType, poplar::program::Sequence &prog,
                                              const poplar::DebugContext &debugContext = {});
POPLAR_EMULATION_FUNCTION poplar::program::Program cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst,
                                                        const poplar::DebugContext &debugContext = {});
POPLAR_EMULATION_FUNCTION void castWithOutput(poplar::Graph &graph, const poplar::Tensor &src,
                                              const poplar::Tensor &dst, poplar::program::Sequence &prog,
                                              const poplar::DebugContext &debugContext = {});

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/map_impl.hpp>
#endif
#endif
