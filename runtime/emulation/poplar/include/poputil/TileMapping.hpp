#ifndef poputil_TileMapping_hpp
#define poputil_TileMapping_hpp

#include <poplar/Graph.hpp>
#include <poputil/exceptions.hpp>
#include <utility>
#include <vector>

namespace poputil {

/// Elements in order, spread evenly: whole grains, at least `minElementsPerTile` on a tile.
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
calcLinearTileMapping(const poplar::Target &target, std::vector<std::size_t> shape, unsigned minElementsPerTile,
                      unsigned grainSize, unsigned offset = 0, bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
calcLinearTileMapping(const poplar::Graph &graph, std::vector<std::size_t> shape, unsigned minElementsPerTile,
                      unsigned grainSize, unsigned offset = 0, bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
calcLinearTileMapping(const poplar::Target &target, const std::vector<std::size_t> shape, poplar::Type elementType,
                      unsigned offset = 0, bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
calcLinearTileMapping(const poplar::Graph &graph, const poplar::Tensor &t, unsigned offset = 0,
                      bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t,
                                                 unsigned minElementsPerTile, unsigned grainSize);
POPLAR_EMULATION_FUNCTION void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t);
POPLAR_EMULATION_FUNCTION void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned minElementsPerTile, unsigned grainSize,
                                                           unsigned offset, bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned offset = 0, bool ascendingOrder = true);
POPLAR_EMULATION_FUNCTION unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping &mapping,
                                                    unsigned minElementsPerTile = 0, unsigned grainSize = 1);
POPLAR_EMULATION_FUNCTION unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &t,
                                                    unsigned minElementsPerTile = 0, unsigned grainSize = 1);

} // namespace poputil

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poputil/detail/util_impl.hpp>
#endif
#endif
