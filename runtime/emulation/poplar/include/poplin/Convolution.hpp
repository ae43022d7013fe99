#ifndef poplin_Convolution_hpp
#define poplin_Convolution_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/ConvParams.hpp>

namespace poplin {

/// Keeps plans between calls; the emulation makes none.
class PlanningCache {
public:
  std::size_t size() const { return 0; }
};

/// [batch, groups * input channels, field ...]
POPLAR_EMULATION_FUNCTION poplar::Tensor createInput(poplar::Graph &graph, const ConvParams &params,
                                                     const poplar::DebugContext &debugContext = {},
                                                     const poplar::OptionFlags &options = {},
                                                     PlanningCache *cache = nullptr);
/// [groups, output channels, input channels, kernel ...]
POPLAR_EMULATION_FUNCTION poplar::Tensor createWeights(poplar::Graph &graph, const ConvParams &params,
                                                       const poplar::DebugContext &debugContext = {},
                                                       const poplar::OptionFlags &options = {},
                                                       PlanningCache *cache = nullptr);
POPLAR_EMULATION_FUNCTION poplar::Tensor createConvOutput(poplar::Graph &graph, const ConvParams &params,
                                                          const poplar::DebugContext &debugContext = {},
                                                          const poplar::OptionFlags &options = {},
                                                          PlanningCache *cache = nullptr);
/// The sum over input channels and kernel places, in float, as [batch, groups * output channels, field ...]. With
/// `transposeAndFlipWeights` the weights are those of the forward pass whose gradient this is.
POPLAR_EMULATION_FUNCTION poplar::Tensor
convolution(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &weights, const ConvParams &params,
            bool transposeAndFlipWeights, poplar::program::Sequence &prog,
            const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
            PlanningCache *cache = nullptr);
POPLAR_EMULATION_FUNCTION void convolutionWithOutput(poplar::Graph &graph, const poplar::Tensor &in,
                                                     const poplar::Tensor &weights, const poplar::Tensor &out,
                                                     const ConvParams &params, bool transposeAndFlipWeights,
                                                     poplar::program::Sequence &prog,
                                                     const poplar::DebugContext &debugContext = {},
                                                     const poplar::OptionFlags &options = {},
                                                     PlanningCache *cache = nullptr);
/// Gives the weights of the backward pass: channels transposed, kernels flipped.
POPLAR_EMULATION_FUNCTION void weightsTransposeChansFlipXY(poplar::Graph &graph, const poplar::Tensor &weightsIn,
                                                           const poplar::Tensor &weightsOut,
                                                           poplar::program::Sequence &prog,
                                                           const poplar::DebugContext &debugContext = {},
                                                           const poplar::OptionFlags &options = {});

} // namespace poplin

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplin/detail/convolution_impl.hpp>
#endif
#endif
