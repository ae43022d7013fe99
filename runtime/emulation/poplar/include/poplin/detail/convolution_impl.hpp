#ifndef poplin_detail_convolution_impl_hpp
#define poplin_detail_convolution_impl_hpp

#include <poplin/Convolution.hpp>
#include <poplin/detail/conv_params_impl.hpp>
#include <poplin/detail/products.hpp>
#include <poputil/exceptions.hpp>
#include <string>

namespace poplin {

namespace detail {

/// Where index `i` of the transformed field comes from, or -1 where it is a zero of padding or dilation.
static inline std::int64_t sourceIndex(std::size_t i, std::size_t size, const ConvParams::InputTransform &t,
                                       unsigned d) {
  std::int64_t at = static_cast<std::int64_t>(t.flip[d] ? transformedSize(size, t, d) - 1 - i : i);
  at -= t.paddingLower[d];
  if (at < 0 || at % t.dilation[d] != 0)
    return -1;
  at = at / t.dilation[d] + t.truncationLower[d];
  return at < static_cast<std::int64_t>(size) - t.truncationUpper[d] ? at : -1;
}

/// The next coordinate in row-major order; false after the last.
static inline bool advance(std::vector<std::size_t> &at, const std::vector<std::size_t> &shape) {
  for (std::size_t d = shape.size(); d-- != 0;) {
    if (++at[d] != shape[d])
      return true;
    at[d] = 0;
  }
  return false;
}

struct ConvolutionNode : ProductNode {
  ConvParams params;
  std::string user() const override { return "convolution" + (name.empty() ? name : " '" + name + "'"); }

  /// The place in the field that output place `o` reads with kernel place `k`, or -1.
  std::int64_t fieldPlace(const std::vector<std::size_t> &o, const std::vector<std::size_t> &k,
                          std::int64_t &kernelPlace) const {
    std::int64_t place = 0;
    kernelPlace = 0;
    for (unsigned d = 0; d != params.getNumFieldDims(); ++d) {
      const ConvParams::OutputTransform &t = params.outputTransform;
      const std::size_t strided = params.getOutputSize(d) - t.paddingLower[d] - t.paddingUpper[d];
      if (o[d] < t.paddingLower[d] || o[d] - t.paddingLower[d] >= strided)
        return -1;
      const std::size_t untransformed = (o[d] - t.paddingLower[d]) * t.stride[d] + t.truncationLower[d];
      const std::int64_t i = sourceIndex(untransformed + k[d], params.inputFieldShape[d], params.inputTransform, d);
      const std::int64_t j = sourceIndex(k[d], params.kernelShape[d], params.kernelTransform, d);
      if (i < 0 || j < 0)
        return -1;
      place = place * static_cast<std::int64_t>(params.inputFieldShape[d]) + i;
      kernelPlace = kernelPlace * static_cast<std::int64_t>(params.kernelShape[d]) + j;
    }
    return place;
  }

  void multiply(const float *x, const float *w, float *z) const override {
    const std::vector<std::size_t> outShape = params.getOutputFieldShape();
    std::vector<std::size_t> kernel;
    for (unsigned d = 0; d != params.getNumFieldDims(); ++d)
      kernel.push_back(params.getTransformedKernelSize(d));
    const std::size_t field = poplar::detail::product(params.inputFieldShape),
                      taps = poplar::detail::product(params.kernelShape), outField = poplar::detail::product(outShape);
    if (outField == 0 || poplar::detail::product(kernel) == 0)
      return;
    const std::size_t ci = params.inputChannelsPerConvGroup, co = params.outputChannelsPerConvGroup,
                      groups = params.numConvGroups;
    std::vector<std::size_t> o(outShape.size(), 0);
    std::size_t outPlace = 0;
    do {
      std::vector<std::size_t> k(kernel.size(), 0);
      do {
        std::int64_t tap;
        const std::int64_t place = fieldPlace(o, k, tap);
        if (place < 0)
          continue;
        for (std::size_t n = 0; n != params.batchSize; ++n)
          for (std::size_t g = 0; g != groups; ++g)
            for (std::size_t c = 0; c != co; ++c) {
              float sum = 0.0f;
              for (std::size_t i = 0; i != ci; ++i)
                sum += x[((n * groups + g) * ci + i) * field + static_cast<std::size_t>(place)] *
                       w[((g * co + c) * ci + i) * taps + static_cast<std::size_t>(tap)];
              z[((n * groups + g) * co + c) * outField + outPlace] += sum;
            }
      } while (advance(k, kernel));
      ++outPlace;
    } while (advance(o, outShape));
  }
};

static inline std::vector<std::size_t> followedBy(std::vector<std::size_t> first,
                                                  const std::vector<std::size_t> &rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

static inline std::vector<std::size_t> inputShape(const ConvParams &p) {
  return followedBy({p.batchSize, p.getNumInputChans()}, p.inputFieldShape);
}
static inline std::vector<std::size_t> weightsShape(const ConvParams &p) {
  return followedBy({p.numConvGroups, p.outputChannelsPerConvGroup, p.inputChannelsPerConvGroup}, p.kernelShape);
}
static inline std::vector<std::size_t> outputShape(const ConvParams &p) {
  return followedBy({p.batchSize, p.getNumOutputChans()}, p.getOutputFieldShape());
}

/// [groups, a, b, kernel ...] as [groups, b, a, flipped kernel ...].
static inline poplar::Tensor transposedAndFlipped(const poplar::Tensor &weights) {
  poplar::Tensor t = weights.dimShufflePartial({1, 2}, {2, 1});
  for (unsigned d = 3; d < t.rank(); ++d)
    t = t.reverse(d);
  return t;
}

static inline void requireShape(const poplar::Tensor &t, const std::vector<std::size_t> &shape,
                                const poplar::Type &type, const char *what) {
  poplar::detail::requireValid(t, std::string("convolution: ") + what);
  if (t.shape() != shape)
    throw poputil::poplibs_error(std::string("convolution: the ") + what + " has shape " + t.shapeToString() +
                                 ", the parameters say " + poplar::detail::text(shape));
  if (t.elementType() != type)
    throw poputil::poplibs_error(std::string("convolution: the ") + what + " has type " +
                                 t.elementType().toString().cloneAsString() + ", the parameters say " +
                                 type.toString().cloneAsString());
}

} // namespace detail

POPLAR_EMULATION_FUNCTION poplar::Tensor createInput(poplar::Graph &graph, const ConvParams &params,
                                                     const poplar::DebugContext &debugContext,
                                                     const poplar::OptionFlags &, PlanningCache *) {
  params.validate();
  return detail::linear(graph, params.inputType, detail::inputShape(params), debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createWeights(poplar::Graph &graph, const ConvParams &params,
                                                       const poplar::DebugContext &debugContext,
                                                       const poplar::OptionFlags &, PlanningCache *) {
  params.validate();
  return detail::linear(graph, params.inputType, detail::weightsShape(params), debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createConvOutput(poplar::Graph &graph, const ConvParams &params,
                                                          const poplar::DebugContext &debugContext,
                                                          const poplar::OptionFlags &, PlanningCache *) {
  params.validate();
  return detail::linear(graph, params.outputType, detail::outputShape(params), debugContext);
}

POPLAR_EMULATION_FUNCTION void convolutionWithOutput(poplar::Graph &, const poplar::Tensor &in,
                                                     const poplar::Tensor &weights, const poplar::Tensor &out,
                                                     const ConvParams &params, bool transposeAndFlipWeights,
                                                     poplar::program::Sequence &prog,
                                                     const poplar::DebugContext &debugContext,
                                                     const poplar::OptionFlags &, PlanningCache *) {
  params.validate();
  auto node = std::make_shared<detail::ConvolutionNode>();
  node->name = debugContext.getPathName();
  node->params = params;
  node->a = in;
  node->b = transposeAndFlipWeights ? detail::transposedAndFlipped(weights) : weights;
  node->out = out;
  detail::requireShape(in, detail::inputShape(params), params.inputType, "input");
  detail::requireShape(node->b, detail::weightsShape(params), params.inputType, "weights");
  detail::requireShape(out, detail::outputShape(params), params.outputType, "output");
  detail::checkOperands(*node);
  prog.add(poplar::program::Program(node));
}

POPLAR_EMULATION_FUNCTION poplar::Tensor
convolution(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &weights, const ConvParams &params,
            bool transposeAndFlipWeights, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
            const poplar::OptionFlags &options, PlanningCache *cache) {
  const poplar::Tensor out = createConvOutput(graph, params, debugContext, options, cache);
  convolutionWithOutput(graph, in, weights, out, params, transposeAndFlipWeights, prog, debugContext, options, cache);
  return out;
}

POPLAR_EMULATION_FUNCTION void weightsTransposeChansFlipXY(poplar::Graph &, const poplar::Tensor &weightsIn,
                                                           const poplar::Tensor &weightsOut,
                                                           poplar::program::Sequence &prog,
                                                           const poplar::DebugContext &debugContext,
                                                           const poplar::OptionFlags &) {
  prog.add(poplar::program::Copy(detail::transposedAndFlipped(weightsIn), weightsOut, false, debugContext));
}

} // namespace poplin

#endif
