#ifndef poputil_detail_util_impl_hpp
#define poputil_detail_util_impl_hpp

#include <algorithm>
#include <cmath>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>

namespace poputil {

using poplar::Interval;
using Intervals = std::vector<Interval>;

POPLAR_EMULATION_FUNCTION void mergeAdjacentRegions(Intervals &regions) {
  Intervals merged;
  std::sort(regions.begin(), regions.end());
  for (const Interval &region : regions) {
    if (region.size() == 0)
      continue;
    if (!merged.empty() && merged.back().end() == region.begin())
      merged.back() = Interval(merged.back().begin(), region.end());
    else
      merged.push_back(region);
  }
  regions = std::move(merged);
}

POPLAR_EMULATION_FUNCTION void mergeAdjacentRegions(std::vector<Intervals> &mapping) {
  for (Intervals &regions : mapping)
    mergeAdjacentRegions(regions);
}

POPLAR_EMULATION_FUNCTION Intervals flattenIntervals(const std::vector<Intervals> &intervals) {
  Intervals flat;
  for (const Intervals &group : intervals)
    flat.insert(flat.end(), group.begin(), group.end());
  return flat;
}

POPLAR_EMULATION_FUNCTION std::size_t intervalSequenceNumElements(const std::vector<Intervals> &seq) {
  std::size_t n = 0;
  for (const Intervals &group : seq)
    for (const Interval &interval : group)
      n += interval.size();
  return n;
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals> splitRegions(const Intervals &regions, unsigned grainSize,
                                                              unsigned maxPartitions,
                                                              unsigned minElementsPerPartition,
                                                              unsigned maxElementsPerPartition,
                                                              unsigned maxElementsPerRegion) {
  std::size_t total = 0;
  for (const Interval &region : regions)
    total += region.size();
  std::vector<Intervals> parts;
  if (total == 0)
    return parts;
  const auto divideUp = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  const std::size_t grain = std::max(grainSize, 1u), grains = divideUp(total, grain);
  const std::size_t least = std::max<std::size_t>(1, divideUp(minElementsPerPartition, grain));
  std::size_t partitions = std::min<std::size_t>(std::max(maxPartitions, 1u), std::max<std::size_t>(1, grains / least));
  partitions = std::max(partitions, divideUp(total, maxElementsPerPartition));
  auto region = regions.begin();
  std::size_t begin = region->begin(), given = 0;
  for (std::size_t p = 0; p != partitions; ++p) {
    const std::size_t until = std::min(total, (p + 1) * grains / partitions * grain);
    Intervals part;
    while (given < until) {
      if (begin == region->end()) {
        begin = (++region)->begin();
        continue;
      }
      const std::size_t n = std::min({until - given, region->end() - begin, std::size_t(maxElementsPerRegion)});
      part.emplace_back(begin, begin + n);
      begin += n;
      given += n;
    }
    if (!part.empty())
      parts.push_back(std::move(part));
  }
  return parts;
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals>
splitRegionsBetweenWorkers(const poplar::Target &target, const Intervals &regions, unsigned grainSize,
                           unsigned minElementsPerPartition, unsigned maxElementsPerPartition,
                           unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition,
                      maxElementsPerPartition, maxElementsPerRegion);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor duplicate(poplar::Graph &graph, const poplar::Tensor &in,
                                                   poplar::program::Sequence &p,
                                                   const poplar::DebugContext &debugContext,
                                                   poplar::TensorCloneMethod method) {
  poplar::Tensor copy = graph.clone(in, debugContext, method);
  p.add(poplar::program::Copy(in, copy, false, debugContext));
  return copy;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor cloneN(poplar::Graph &graph, const poplar::Tensor &t, unsigned N,
                                                const poplar::DebugContext &debugContext,
                                                poplar::TensorCloneMethod method) {
  std::vector<poplar::Tensor> copies;
  for (unsigned i = 0; i != N; ++i)
    copies.push_back(graph.clone(t, debugContext, method).expand({0}));
  return poplar::concat(copies);
}

POPLAR_EMULATION_FUNCTION std::vector<int> balancedPartition(int rangeUpperBound, int splitCount) {
  std::vector<int> bounds;
  for (int i = 0; i != splitCount; ++i)
    bounds.push_back(rangeUpperBound / splitCount + (i < rangeUpperBound % splitCount));
  return bounds;
}

POPLAR_EMULATION_FUNCTION double castToDeviceHalfValue(const poplar::Target &, double input) {
  return poplar::detail::roundToHalf(static_cast<float>(input));
}

POPLAR_EMULATION_FUNCTION bool checkAccuracyWhenCast(const poplar::Target &target, double input,
                                                     poplar::Type inputType, poplar::Type outputType,
                                                     double tolerance) {
  if (inputType != poplar::FLOAT || outputType != poplar::HALF)
    throw poplibs_error("Can only check casting float to half");
  return std::fabs(input) <= 65504.0 &&
         std::fabs(castToDeviceHalfValue(target, input) - input) <= std::fabs(input) * tolerance;
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals> calcLinearTileMapping(const poplar::Target &target,
                                                                       std::vector<std::size_t> shape,
                                                                       unsigned minElementsPerTile,
                                                                       unsigned grainSize, unsigned offset,
                                                                       bool ascendingOrder) {
  const std::size_t tiles = target.getNumTiles();
  auto parts = splitRegions({Interval(0, poplar::detail::product(shape))}, grainSize, static_cast<unsigned>(tiles),
                            minElementsPerTile);
  if (offset == 0 && ascendingOrder)
    return parts;
  std::vector<Intervals> mapping(tiles);
  for (std::size_t i = 0; i != parts.size(); ++i) {
    const std::size_t place = (i + offset) % tiles;
    mapping[ascendingOrder ? place : tiles - 1 - place] = std::move(parts[i]);
  }
  return mapping;
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals> calcLinearTileMapping(const poplar::Graph &graph,
                                                                       std::vector<std::size_t> shape,
                                                                       unsigned minElementsPerTile,
                                                                       unsigned grainSize, unsigned offset,
                                                                       bool ascendingOrder) {
  return calcLinearTileMapping(graph.getTarget(), std::move(shape), minElementsPerTile, grainSize, offset,
                               ascendingOrder);
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals> calcLinearTileMapping(const poplar::Target &target,
                                                                       const std::vector<std::size_t> shape,
                                                                       poplar::Type elementType, unsigned offset,
                                                                       bool ascendingOrder) {
  const unsigned size = static_cast<unsigned>(target.getTypeSize(elementType));
  return calcLinearTileMapping(target, shape, (128 + size - 1) / size, target.getVectorWidth(elementType), offset,
                               ascendingOrder);
}

POPLAR_EMULATION_FUNCTION std::vector<Intervals> calcLinearTileMapping(const poplar::Graph &graph,
                                                                       const poplar::Tensor &t, unsigned offset,
                                                                       bool ascendingOrder) {
  return calcLinearTileMapping(graph.getTarget(), t.shape(), t.elementType(), offset, ascendingOrder);
}

POPLAR_EMULATION_FUNCTION void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t,
                                                 unsigned minElementsPerTile, unsigned grainSize) {
  mapTensorLinearlyWithOffset(graph, t, minElementsPerTile, grainSize, 0);
}

POPLAR_EMULATION_FUNCTION void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t) {
  mapTensorLinearlyWithOffset(graph, t);
}

POPLAR_EMULATION_FUNCTION void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned minElementsPerTile, unsigned grainSize,
                                                           unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(
      t, calcLinearTileMapping(graph, t.shape(), minElementsPerTile, grainSize, offset, ascendingOrder));
}

POPLAR_EMULATION_FUNCTION void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(t, calcLinearTileMapping(graph, t, offset, ascendingOrder));
}

POPLAR_EMULATION_FUNCTION unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping &mapping,
                                                    unsigned minElementsPerTile, unsigned grainSize) {
  std::size_t most = 0, total = 0;
  for (const Intervals &regions : mapping) {
    std::size_t n = 0;
    for (const Interval &region : regions)
      n += region.size();
    most = std::max(most, n);
    total += n;
  }
  std::size_t even = mapping.empty() ? 0 : (total + mapping.size() - 1) / mapping.size();
  even = std::max<std::size_t>({even, minElementsPerTile, grainSize});
  return static_cast<unsigned>(most > even ? most - even : 0);
}

POPLAR_EMULATION_FUNCTION unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &t,
                                                    unsigned minElementsPerTile, unsigned grainSize) {
  return getTileImbalance(graph.getTileMapping(t), minElementsPerTile, grainSize);
}

} // namespace poputil

#endif
