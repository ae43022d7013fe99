// A model as plain data: what an ONNX file says, in the form that the emulation reads. Python turns ONNX into it and back.
#ifndef POPART_EMULATION_MODEL_HPP
#define POPART_EMULATION_MODEL_HPP

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

struct TensorValue {
  TensorInfo info;
  std::vector<char> data;  // row by row, as the host holds it
};

struct Attribute {
  enum class Kind { Undefined, Int, Ints, Float, Floats, String, Strings, Tensor };

  Attribute() = default;
  IN_LIBRARY Attribute(int64_t v) : kind(Kind::Int), i(v) {}
  IN_LIBRARY Attribute(std::vector<int64_t> v) : kind(Kind::Ints), ints(std::move(v)) {}
  IN_LIBRARY Attribute(float v) : kind(Kind::Float), f(v) {}
  IN_LIBRARY Attribute(std::vector<float> v) : kind(Kind::Floats), floats(std::move(v)) {}
  IN_LIBRARY Attribute(std::string v) : kind(Kind::String), s(std::move(v)) {}
  IN_LIBRARY Attribute(std::vector<std::string> v) : kind(Kind::Strings), strings(std::move(v)) {}
  IN_LIBRARY Attribute(TensorValue v) : kind(Kind::Tensor), t(std::move(v)) {}

  Kind kind = Kind::Undefined;
  int64_t i = 0;
  std::vector<int64_t> ints;
  float f = 0;
  std::vector<float> floats;
  std::string s;
  std::vector<std::string> strings;
  TensorValue t;
};

using AttributeMap = std::map<std::string, Attribute>;

struct Node {
  std::string domain;  // "" is ai.onnx
  std::string type;
  std::string name;
  std::vector<std::string> inputs;  // "" where an optional input is absent
  std::vector<std::string> outputs;
  AttributeMap attributes;
};

struct Model {
  std::vector<std::pair<std::string, TensorInfo>> inputs;  // without the initialisers
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, TensorValue>> initialisers;
  std::vector<Node> nodes;  // in an order in which they can run
  std::map<std::string, int> opsets;  // version of each domain
  std::map<std::string, TensorInfo> values;  // infos that the builder inferred

  /// The model as bytes, and back. `parse` raises popart::error where they are not such bytes.
  std::string serialise() const;
  static Model parse(const std::string &bytes);
};

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#include <popart/emulation/model_bytes.hpp>

#endif
