// Names of basic types and of the attributes that PopART itself puts on nodes.
#ifndef POPART_NAMES_HPP
#define POPART_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <poplar/detail/config.hpp>

#ifndef ONNX_NAMESPACE
#error "PopART's headers want -DONNX_NAMESPACE=onnx"
#endif

// Everything of the emulation has default visibility: a custom op may be compiled with -fvisibility=hidden (cppimport does so), and its
// registries must still be those of the process.
#pragma GCC visibility push(default)
namespace ONNX_NAMESPACE {
class GraphProto;
class TensorProto;
class AttributeProto;
}  // namespace ONNX_NAMESPACE

namespace popart {

using Shape = std::vector<int64_t>;
using Rank = int;
using TensorId = std::string;
using DnfTensorIds = std::vector<std::set<TensorId>>;
using OpName = std::string;
using OpDomain = std::string;
using OpType = std::string;
using OpVersion = unsigned;
using OpId = int;
using SubgraphIndex = int;
using OpxGrowPartId = int;
using InIndex = int;
using OutIndex = int;
using VGraphId = int64_t;
using PipelineStage = int64_t;
using ExecutionPhase = int64_t;
using BatchSerializedPhase = int64_t;
using ReplicatedTensorShardingIndices = std::set<std::pair<std::set<InIndex>, std::set<OutIndex>>>;

static constexpr const VGraphId unusedVGraphId = -1;
static constexpr const OpxGrowPartId unusedGrowPartId = -1;

class Op;
class Graph;

namespace view {
class Region;
using Regions = std::vector<Region>;
using RegMap = std::function<Regions(const Region &)>;
using LowBounds = std::vector<int64_t>;
using UppBounds = std::vector<int64_t>;
}  // namespace view

static constexpr const char *sVirtualGraphAttribute = "__ipu_number";
static constexpr const char *sExecutionPhaseAttribute = "__execution_phase";
static constexpr const char *sExecutionContextAttribute = "__execution_context";
static constexpr const char *sInplaceOpNames = "__inplace_op_names";
static constexpr const char *sInplaceOpPriorities = "__inplace_op_priorities";
static constexpr const char *sRecomputeOutputAttribute = "__recompute_output_in_backward_pass";
static constexpr const char *sAvailMemAttribute = "__available_memory";
static constexpr const char *sPartialsTypeAttribute = "__partials_type";
static constexpr const char *sPipelineStageAttribute = "__pipeline_stage";
static constexpr const char *sExcludePatternsAttribute = "__exclude_patterns";
static constexpr const char *sSchedulePriority = "__schedule_priority";
static constexpr const char *sTileSetAttribute = "__tile_set";
static constexpr const char *sOutlineAttribute = "__outline";
static constexpr const char *sDebugInfoId = "__debug_info_id";
static constexpr const char *sNameDelimiter = "/";

}  // namespace popart
#pragma GCC visibility pop

#endif
