#ifndef popops_detail_fill_impl_hpp
#define popops_detail_fill_impl_hpp

#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/Broadcast.hpp>

namespace popops {

namespace detail {

POPLAR_EMULATION_FUNCTION void fillWith(poplar::Graph &graph, const poplar::Tensor &t,
                                        poplar::program::Sequence &prog, const expr::Const &value,
                                        const poplar::DebugContext &debugContext) {
  poplar::detail::requireWriteable(t, "fill");
  const poplar::Tensor source = graph.addConstant(t.elementType(), {}, static_cast<const void *>(value.getData()),
                                                  value.getTypeTraits(), true, debugContext);
  graph.setTileMapping(source, 0);
  poplar::Tensor wide = source;
  poputil::broadcastToMatch(wide, t.shape());
  prog.add(poplar::program::Copy(wide, t, false, debugContext));
}

} // namespace detail

POPLAR_EMULATION_FUNCTION void zero(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog,
                                    const poplar::DebugContext &debugContext) {
  fill(graph, t, prog, 0, debugContext);
}

} // namespace popops

#endif
