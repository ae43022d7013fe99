// Shape inference in the builder: functions registered for an operator.
#ifndef POPART_SHAPEINFERENCE_HPP
#define POPART_SHAPEINFERENCE_HPP

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

class ShapeInferenceContext {
 public:
  /// An input that nothing is known of is UNDEFINED. There is none that is absent: the builder refuses those before.
  IN_LIBRARY ShapeInferenceContext(const std::map<int, TensorInfo> &inputInfos_, const Attributes &attributes_, int outputSize_)
      : inputInfos(inputInfos_), attributes(attributes_), outputSize(outputSize_) {}

  IN_LIBRARY const TensorInfo &inInfo(int index) const {
    const auto found = inputInfos.find(index);
    if (found == inputInfos.end()) throw error("Could not find input info at index {}", index);
    return found->second;
  }
  IN_LIBRARY const Shape &inShape(int index) const { return inInfo(index).shape(); }
  IN_LIBRARY DataType inType(int index) const { return inInfo(index).dataType(); }
  IN_LIBRARY TensorInfo &outInfo(int index) { return outputInfos[index]; }
  IN_LIBRARY const Shape &outShape(int index) const {
    const auto found = outputInfos.find(index);
    if (found == outputInfos.end()) throw error("Could not find output info at index {}", index);
    return found->second.shape();
  }
  IN_LIBRARY const std::map<int, TensorInfo> &getOutputInfos() const { return outputInfos; }
  IN_LIBRARY const Attributes &getAttributes() const { return attributes; }
  IN_LIBRARY int getNumInputs() const { return static_cast<int>(inputInfos.size()); }
  IN_LIBRARY int getNumOutputs() const { return outputSize; }
  /// As in PopART, one without axes has none.
  IN_LIBRARY bool hasInputShape(std::size_t index) const {
    return index < inputInfos.size() && !inShape(static_cast<int>(index)).empty();
  }
  IN_LIBRARY bool hasNInputShapes(std::size_t count) const {
    for (std::size_t index = 0; index < count; ++index) {
      if (!hasInputShape(index)) return false;
    }
    return true;
  }
  IN_LIBRARY bool hasAttribute(const std::string &key) const { return attributes.hasAttribute(key); }

  template <typename T>
  T getAttribute(const std::string &key) {
    return attributes.getAttribute<T>(key);
  }
  template <typename T>
  T getAttribute(const std::string &key, const T &defaultValue) {
    return attributes.getAttribute<T>(key, defaultValue);
  }

 private:
  std::map<int, TensorInfo> inputInfos;
  std::map<int, TensorInfo> outputInfos;
  Attributes attributes;
  int outputSize;
};

using ShapeInferenceFunction = std::function<void(ShapeInferenceContext &)>;

class ShapeInferenceFunctions {
 public:
  IN_LIBRARY static void registerFunction(const OperatorIdentifier &opid, ShapeInferenceFunction function) {
    if (!getInstance().functions.emplace(opid, function).second) {
      throw error("A shape inference function has already been registered for '{}'.", opid);
    }
  }
  IN_LIBRARY static bool hasFunction(const OperatorIdentifier &opid) { return getInstance().functions.count(opid) != 0; }
  IN_LIBRARY static ShapeInferenceFunction getFunction(const OperatorIdentifier &opid) {
    const auto found = getInstance().functions.find(opid);
    if (found == getInstance().functions.end()) throw error("No shape inference function has been registered for {}", opid);
    return found->second;
  }

 private:
  static ShapeInferenceFunctions &getInstance() {
    static ShapeInferenceFunctions instance;
    return instance;
  }

  std::map<OperatorIdentifier, ShapeInferenceFunction> functions;
};

class RegisterShapeInferenceFunction {
 public:
  IN_LIBRARY RegisterShapeInferenceFunction(const OperatorIdentifier &opid, ShapeInferenceFunction function) {
    ShapeInferenceFunctions::registerFunction(opid, function);
  }
};

IN_LIBRARY void propagateElemTypeFromInputToOutput(ShapeInferenceContext &ctx, std::size_t input, std::size_t output) {
  TensorInfo &info = ctx.outInfo(static_cast<int>(output));
  info.set(ctx.inType(static_cast<int>(input)), info.shape());
}
IN_LIBRARY void propagateShapeFromInputToOutput(ShapeInferenceContext &ctx, std::size_t input, std::size_t output) {
  TensorInfo &info = ctx.outInfo(static_cast<int>(output));
  info.set(info.dataType(), ctx.inShape(static_cast<int>(input)));
}

}  // namespace popart
#pragma GCC visibility pop

#endif
