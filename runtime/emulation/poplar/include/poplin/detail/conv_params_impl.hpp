#ifndef poplin_detail_conv_params_impl_hpp
#define poplin_detail_conv_params_impl_hpp

#include <poplin/ConvParams.hpp>
#include <poputil/exceptions.hpp>
#include <string>

namespace poplin {

namespace detail {

static inline std::size_t transformedSize(std::size_t size, const ConvParams::InputTransform &t, unsigned d) {
  const std::size_t kept = size - t.truncationLower[d] - t.truncationUpper[d];
  return (kept == 0 ? 0 : (kept - 1) * t.dilation[d] + 1) + t.paddingLower[d] + t.paddingUpper[d];
}

} // namespace detail

POPLAR_EMULATION_FUNCTION unsigned ConvParams::getTransformedInputSize(unsigned dim) const {
  return static_cast<unsigned>(detail::transformedSize(inputFieldShape[dim], inputTransform, dim));
}

POPLAR_EMULATION_FUNCTION unsigned ConvParams::getTransformedKernelSize(unsigned dim) const {
  return static_cast<unsigned>(detail::transformedSize(kernelShape[dim], kernelTransform, dim));
}

POPLAR_EMULATION_FUNCTION std::size_t ConvParams::getUntransformedOutputSize(unsigned dim) const {
  return std::size_t(getTransformedInputSize(dim)) + 1 - getTransformedKernelSize(dim);
}

POPLAR_EMULATION_FUNCTION std::size_t ConvParams::getOutputSize(unsigned dim) const {
  const std::size_t kept = getUntransformedOutputSize(dim) - outputTransform.truncationLower[dim] -
                           outputTransform.truncationUpper[dim];
  return (kept + outputTransform.stride[dim] - 1) / outputTransform.stride[dim] + outputTransform.paddingLower[dim] +
         outputTransform.paddingUpper[dim];
}

POPLAR_EMULATION_FUNCTION std::vector<std::size_t> ConvParams::getOutputFieldShape() const {
  std::vector<std::size_t> shape;
  for (unsigned d = 0; d != getNumFieldDims(); ++d)
    shape.push_back(getOutputSize(d));
  return shape;
}

POPLAR_EMULATION_FUNCTION void ConvParams::validate() const {
  const std::size_t rank = inputFieldShape.size();
  if (kernelShape.size() != rank)
    throw poputil::poplibs_error("Number of kernel field dimensions (" + std::to_string(kernelShape.size()) +
                                 ") does not match the number of input field dimensions (" + std::to_string(rank) +
                                 ")");
  for (const InputTransform *t : {&inputTransform, &kernelTransform})
    for (const std::size_t n : {t->truncationLower.size(), t->truncationUpper.size(), t->dilation.size(),
                                t->paddingLower.size(), t->paddingUpper.size(), t->flip.size()})
      if (n != rank)
        throw poputil::poplibs_error("convolution: a transform doesn't have one entry for each field dimension");
  for (const std::size_t n : {outputTransform.truncationLower.size(), outputTransform.truncationUpper.size(),
                              outputTransform.stride.size(), outputTransform.paddingLower.size(),
                              outputTransform.paddingUpper.size()})
    if (n != rank)
      throw poputil::poplibs_error("convolution: a transform doesn't have one entry for each field dimension");
  for (unsigned d = 0; d != rank; ++d) {
    if (outputTransform.stride[d] == 0)
      throw poputil::poplibs_error("Stride must be non zero");
    if (inputTransform.dilation[d] == 0 || kernelTransform.dilation[d] == 0)
      throw poputil::poplibs_error("Input and kernel dilation must be non zero. Dilation = 1 results in no dilation");
    if (std::size_t(inputTransform.truncationLower[d]) + inputTransform.truncationUpper[d] > inputFieldShape[d] ||
        std::size_t(kernelTransform.truncationLower[d]) + kernelTransform.truncationUpper[d] > kernelShape[d])
      throw poputil::poplibs_error("Truncation for dimension " + std::to_string(d) + " is larger than its size");
    const std::size_t in = getTransformedInputSize(d), kernel = getTransformedKernelSize(d);
    if (in + 1 < kernel)
      throw poputil::poplibs_error("Transformed input size for dimension " + std::to_string(d) + " (" +
                                   std::to_string(in) + ") is less than the transformed kernel size (" +
                                   std::to_string(kernel) + ")");
    if (std::size_t(outputTransform.truncationLower[d]) + outputTransform.truncationUpper[d] > in + 1 - kernel)
      throw poputil::poplibs_error("Output truncation for dimension " + std::to_string(d) +
                                   " is larger than the output");
  }
}

} // namespace poplin

#endif
