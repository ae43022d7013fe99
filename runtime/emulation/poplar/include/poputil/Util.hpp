#ifndef poputil_Util_hpp
#define poputil_Util_hpp

#include <climits>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poputil/exceptions.hpp>
#include <vector>

namespace poputil {

POPLAR_EMULATION_FUNCTION void mergeAdjacentRegions(std::vector<poplar::Interval> &regions);
POPLAR_EMULATION_FUNCTION void mergeAdjacentRegions(std::vector<std::vector<poplar::Interval>> &mapping);
POPLAR_EMULATION_FUNCTION std::vector<poplar::Interval>
flattenIntervals(const std::vector<std::vector<poplar::Interval>> &intervals);
/// Splits regions between at most `maxPartitions` parts of about equal size, in whole grains.
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
splitRegions(const std::vector<poplar::Interval> &regions, unsigned grainSize, unsigned maxPartitions,
             unsigned minElementsPerPartition = 0, unsigned maxElementsPerPartition = UINT_MAX,
             unsigned maxElementsPerRegion = UINT_MAX);
POPLAR_EMULATION_FUNCTION std::vector<std::vector<poplar::Interval>>
splitRegionsBetweenWorkers(const poplar::Target &target, const std::vector<poplar::Interval> &regions,
                           unsigned grainSize, unsigned minElementsPerPartition = 0,
                           unsigned maxElementsPerPartition = UINT_MAX, unsigned maxElementsPerRegion = UINT_MAX);
POPLAR_EMULATION_FUNCTION std::size_t
intervalSequenceNumElements(const std::vector<std::vector<poplar::Interval>> &seq);
/// A copy of the tensor, in variables of its own.
POPLAR_EMULATION_FUNCTION poplar::Tensor
duplicate(poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &p,
          const poplar::DebugContext &debugContext = {},
          poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
POPLAR_EMULATION_FUNCTION poplar::Tensor
cloneN(poplar::Graph &graph, const poplar::Tensor &t, unsigned N, const poplar::DebugContext &debugContext = {},
       poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
POPLAR_EMULATION_FUNCTION std::vector<int> balancedPartition(int rangeUpperBound, int splitCount);
POPLAR_EMULATION_FUNCTION double castToDeviceHalfValue(const poplar::Target &target, double input);
POPLAR_EMULATION_FUNCTION bool checkAccuracyWhenCast(const poplar::Target &target, double input,
                                                     poplar::Type inputType, poplar::Type outputType,
                                                     double tolerance);

} // namespace poputil

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poputil/detail/util_impl.hpp>
#endif
#endif
