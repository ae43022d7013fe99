// Options of a session, of those that mean something on the emulation.
#ifndef POPART_SESSIONOPTIONS_HPP
#define POPART_SESSIONOPTIONS_HPP
#define POPART_SESSIONOPTIONS_OPEN

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <popart/names.hpp>
#include <popart/op.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class AutodiffStitchStrategy { RecomputeMinimal = 0, RecomputeAllNonInputs, AddFwdOutputs, SafeAddFwdOutputs, N };

struct AutodiffSettings {
  AutodiffStitchStrategy stitchStrategy = AutodiffStitchStrategy::RecomputeAllNonInputs;
};

enum class VirtualGraphMode { Off = 0, Manual, Auto, ExecutionPhases, N };

struct SessionOptions {
  bool enableOutlining = true;
  float outlineThreshold = 1.0f;
  bool constantWeights = true;
  bool enableFloatingPointChecks = false;
  bool enableStochasticRounding = false;
  bool enableEngineCaching = false;
  std::string cachePath = "session_cache";
  bool opxAliasChecking = false;
  bool opxModifyChecking = false;
  bool strictOpVersions = true;
  bool enableSupportedDataTypeCasting = true;
  bool enableReplicatedGraphs = false;
  int64_t replicatedGraphCount = 1;
  bool enableGradientAccumulation = false;
  int64_t accumulationFactor = 1;
  bool enablePipelining = false;
  VirtualGraphMode virtualGraphMode = VirtualGraphMode::Off;
  ReductionType accumulationAndReplicationReductionType = ReductionType::Sum;
  AutodiffSettings autodiffSettings;
  std::map<std::string, std::string> engineOptions;
  std::map<std::string, std::string> convolutionOptions;
  std::map<std::string, std::string> matmulOptions;
  std::map<std::string, std::string> reportOptions;
  std::vector<std::string> customCodelets;
  std::string customCodeletCompileFlags;
  std::set<std::string> dotChecks;
  std::string logDir;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_SESSIONOPTIONS_OPEN
#include <popart/emulation/define.hpp>

#endif
