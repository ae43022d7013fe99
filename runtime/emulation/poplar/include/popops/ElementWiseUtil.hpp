#ifndef popops_ElementWiseUtil_hpp
#define popops_ElementWiseUtil_hpp

#include <poplar/Graph.hpp>
#include <vector>

namespace popops {

/// A variable for the result of an elementwise operation, mapped like the first input of its shape that is spread over
/// tiles, or linearly.
POPLAR_EMULATION_FUNCTION poplar::Tensor createOutputForElementWiseOp(poplar::Graph &graph,
                                                                      const std::vector<poplar::Tensor> &inputs,
                                                                      const poplar::Type &outputType,
                                                                      const poplar::DebugContext &debugContext = {});

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/map_impl.hpp>
#endif
#endif
