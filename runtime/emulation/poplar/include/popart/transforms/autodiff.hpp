// The transform that makes the backward graph of a graph.
#ifndef POPART_TRANSFORMS_AUTODIFF_HPP
#define POPART_TRANSFORMS_AUTODIFF_HPP
#define POPART_AUTODIFF_OPEN

#include <string>
#include <vector>

#include <popart/bwdgraphinfo.hpp>
#include <popart/graphid.hpp>
#include <popart/ir.hpp>
#include <popart/names.hpp>
#include <popart/sessionoptions.hpp>
#include <popart/vendored/optional.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Autodiff {
 public:
  using TensorIds = std::vector<TensorId>;

  /// The backward graph of `fwdGraphId`, and of the graphs that it calls: `gradsProvidedForFwdId` (its outputs, unless given) have their
  /// gradients as first inputs, `gradsRequiredForFwdId` (as many of its inputs as there are gradients for, unless given) as outputs. What
  /// the gradient ops read besides are inputs of the forward graph, or are computed again.
  /// Raises popart::error for a required gradient that there is none of.
  FwdGraphToBwdGraphInfo apply(Ir &ir, const GraphId &fwdGraphId, const nonstd::optional<TensorIds> &gradsProvidedForFwdId,
                               const nonstd::optional<TensorIds> &gradsRequiredForFwdId,
                               const FwdGraphToBwdGraphInfo &calledGraphsGradInfo, AutodiffStitchStrategy stitchStrategy);

  IN_LIBRARY std::string getName() const { return "Autodiff"; }
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_AUTODIFF_OPEN
#include <popart/emulation/define.hpp>

#endif
