#ifndef poplin_ConvParams_hpp
#define poplin_ConvParams_hpp

#include <cstddef>
#include <poplar/Type.hpp>
#include <poplar/detail/config.hpp>
#include <vector>

namespace poplin {

/// A grouped convolution: what happens to input, kernel and output before and after the sum of products.
struct ConvParams {
  /// In this order: truncated, dilated, padded, flipped.
  struct InputTransform {
    std::vector<unsigned> truncationLower, truncationUpper, dilation, paddingLower, paddingUpper;
    std::vector<bool> flip;
    InputTransform() = default;
    explicit InputTransform(std::size_t size)
        : truncationLower(size, 0), truncationUpper(size, 0), dilation(size, 1), paddingLower(size, 0),
          paddingUpper(size, 0), flip(size, false) {}
    InputTransform(std::vector<unsigned> truncateLower, std::vector<unsigned> truncateUpper,
                   std::vector<unsigned> dilate, std::vector<unsigned> padLower, std::vector<unsigned> padUpper,
                   std::vector<bool> flipped)
        : truncationLower(std::move(truncateLower)), truncationUpper(std::move(truncateUpper)),
          dilation(std::move(dilate)), paddingLower(std::move(padLower)), paddingUpper(std::move(padUpper)),
          flip(std::move(flipped)) {}
  };
  /// In this order: truncated, strided, padded.
  struct OutputTransform {
    std::vector<unsigned> truncationLower, truncationUpper, stride, paddingLower, paddingUpper;
    OutputTransform() = default;
    explicit OutputTransform(std::size_t size)
        : truncationLower(size, 0), truncationUpper(size, 0), stride(size, 1), paddingLower(size, 0),
          paddingUpper(size, 0) {}
    OutputTransform(std::vector<unsigned> truncateLower, std::vector<unsigned> truncateUpper,
                    std::vector<unsigned> striding, std::vector<unsigned> padLower, std::vector<unsigned> padUpper)
        : truncationLower(std::move(truncateLower)), truncationUpper(std::move(truncateUpper)),
          stride(std::move(striding)), paddingLower(std::move(padLower)), paddingUpper(std::move(padUpper)) {}
  };

  poplar::Type inputType, outputType;
  std::size_t batchSize = 0;
  std::vector<std::size_t> inputFieldShape, kernelShape;
  std::size_t inputChannelsPerConvGroup = 0, outputChannelsPerConvGroup = 0, numConvGroups = 0;
  InputTransform inputTransform, kernelTransform;
  OutputTransform outputTransform;

  ConvParams() = default;
  ConvParams(poplar::Type dataType, std::size_t batch, std::vector<std::size_t> inputField,
             std::vector<std::size_t> kernel, std::size_t inputChannels, std::size_t outputChannels,
             std::size_t convGroups)
      : ConvParams(dataType, dataType, batch, std::move(inputField), std::move(kernel), inputChannels,
                   outputChannels, convGroups) {}
  ConvParams(poplar::Type in, poplar::Type out, std::size_t batch, std::vector<std::size_t> inputField,
             std::vector<std::size_t> kernel, std::size_t inputChannels, std::size_t outputChannels,
             std::size_t convGroups)
      : inputType(in), outputType(out), batchSize(batch), inputFieldShape(std::move(inputField)),
        kernelShape(std::move(kernel)), inputChannelsPerConvGroup(inputChannels),
        outputChannelsPerConvGroup(outputChannels), numConvGroups(convGroups), inputTransform(inputFieldShape.size()),
        kernelTransform(inputFieldShape.size()), outputTransform(inputFieldShape.size()) {}
  ConvParams(poplar::Type in, poplar::Type out, std::size_t batch, std::vector<std::size_t> inputField,
             std::vector<std::size_t> kernel, std::size_t inputChannels, std::size_t outputChannels,
             std::size_t convGroups, InputTransform input, InputTransform kernelChange, OutputTransform output)
      : inputType(in), outputType(out), batchSize(batch), inputFieldShape(std::move(inputField)),
        kernelShape(std::move(kernel)), inputChannelsPerConvGroup(inputChannels),
        outputChannelsPerConvGroup(outputChannels), numConvGroups(convGroups), inputTransform(std::move(input)),
        kernelTransform(std::move(kernelChange)), outputTransform(std::move(output)) {}

  std::size_t getNumOutputChansPerConvGroup() const { return outputChannelsPerConvGroup; }
  std::size_t getNumOutputChans() const { return outputChannelsPerConvGroup * numConvGroups; }
  std::size_t getInputSize(unsigned dim) const { return inputFieldShape[dim]; }
  std::size_t getNumInputChansPerConvGroup() const { return inputChannelsPerConvGroup; }
  std::size_t getNumInputChans() const { return inputChannelsPerConvGroup * numConvGroups; }
  std::size_t getNumConvGroups() const { return numConvGroups; }
  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::vector<std::size_t> getInputFieldShape() const { return inputFieldShape; }
  std::vector<std::size_t> getKernelShape() const { return kernelShape; }
  std::size_t getBatchSize() const { return batchSize; }
  POPLAR_EMULATION_FUNCTION unsigned getTransformedInputSize(unsigned dim) const;
  POPLAR_EMULATION_FUNCTION unsigned getTransformedKernelSize(unsigned dim) const;
  POPLAR_EMULATION_FUNCTION std::size_t getUntransformedOutputSize(unsigned dim) const;
  POPLAR_EMULATION_FUNCTION std::size_t getOutputSize(unsigned dim) const;
  POPLAR_EMULATION_FUNCTION std::vector<std::size_t> getOutputFieldShape() const;
  /// Throws poplibs_error where the sizes don't go together.
  POPLAR_EMULATION_FUNCTION void validate() const;
};

} // namespace poplin

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplin/detail/conv_params_impl.hpp>
#endif
#endif
