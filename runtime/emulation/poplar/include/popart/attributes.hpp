// The attributes of a node.
#ifndef POPART_ATTRIBUTES_HPP
#define POPART_ATTRIBUTES_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <popart/emulation/model.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

/// Only the kinds that PopART reads can be asked for: any other T has no definition, so that it is refused at the latest by the linker.
/// As in PopART, an attribute that holds another kind reads as that kind's zero.
class Attributes {
 public:
  using Ints = std::vector<int64_t>;
  using Int = int64_t;
  using Floats = std::vector<float>;
  using Float = float;
  using Strings = std::vector<std::string>;
  using String = std::string;
  using Graph = ONNX_NAMESPACE::GraphProto;
  using Graphs = std::vector<ONNX_NAMESPACE::GraphProto>;

  Attributes() = default;
  /// For the emulation's own use.
  IN_LIBRARY Attributes(const emulation::AttributeMap &map) : attributes(map) {}

  IN_LIBRARY std::vector<std::string> getNames() const {
    std::vector<std::string> out;
    for (const auto &entry : attributes) out.push_back(entry.first);
    return out;
  }
  IN_LIBRARY bool hasAttribute(const std::string &key) const { return attributes.count(key) != 0; }

  /// The value of `key`, or `defaultValue` where it is absent: Ints, Int, Float and String only.
  template <typename T>
  T getAttribute(const std::string &key, const T &defaultValue) const;
  /// The value of `key`: Ints, Int, Floats, Float, Strings and String. Raises popart::error where it is absent.
  template <typename T>
  T getAttribute(const std::string &key) const;
  /// Ints, Int and String only.
  template <typename T>
  void setAttribute(const std::string &key, T &value);
  template <typename T>
  void set(T &value, const std::string &key) const {
    value = getAttribute<T>(key);
  }
  template <typename T>
  void setIfPresent(T &value, const std::string &key) const;

  /// For the emulation's own use.
  IN_LIBRARY const emulation::AttributeMap &map() const { return attributes; }

 private:
  IN_LIBRARY const emulation::Attribute &at(const std::string &key) const {
    const auto found = attributes.find(key);
    if (found == attributes.end()) throw error("no attribute key {}", key);
    return found->second;
  }

  emulation::AttributeMap attributes;
};

IN_LIBRARY bool checkedIntToBool(int64_t x) {
  if (x != 0 && x != 1) throw error("Can not convert int {} to bool. Value needs to be 0 or 1", x);
  return x == 1;
}

template <>
inline Attributes::Ints Attributes::getAttribute(const std::string &key) const {
  return at(key).ints;
}
template <>
inline Attributes::Int Attributes::getAttribute(const std::string &key) const {
  return at(key).i;
}
template <>
inline Attributes::Floats Attributes::getAttribute(const std::string &key) const {
  return at(key).floats;
}
template <>
inline Attributes::Float Attributes::getAttribute(const std::string &key) const {
  return at(key).f;
}
template <>
inline Attributes::Strings Attributes::getAttribute(const std::string &key) const {
  return at(key).strings;
}
template <>
inline Attributes::String Attributes::getAttribute(const std::string &key) const {
  return at(key).s;
}

template <>
inline Attributes::Ints Attributes::getAttribute(const std::string &key, const Ints &defaultValue) const {
  return hasAttribute(key) ? at(key).ints : defaultValue;
}
template <>
inline Attributes::Int Attributes::getAttribute(const std::string &key, const Int &defaultValue) const {
  return hasAttribute(key) ? at(key).i : defaultValue;
}
template <>
inline Attributes::Float Attributes::getAttribute(const std::string &key, const Float &defaultValue) const {
  return hasAttribute(key) ? at(key).f : defaultValue;
}
template <>
inline Attributes::String Attributes::getAttribute(const std::string &key, const String &defaultValue) const {
  // PopART takes an empty string as absent.
  return hasAttribute(key) && !at(key).s.empty() ? at(key).s : defaultValue;
}

template <>
inline void Attributes::setAttribute(const std::string &key, Ints &value) {
  attributes[key] = emulation::Attribute(value);
}
template <>
inline void Attributes::setAttribute(const std::string &key, Int &value) {
  attributes[key] = emulation::Attribute(value);
}
template <>
inline void Attributes::setAttribute(const std::string &key, String &value) {
  attributes[key] = emulation::Attribute(value);
}

template <>
inline void Attributes::setIfPresent(Ints &value, const std::string &key) const {
  value = getAttribute<Ints>(key, value);
}
template <>
inline void Attributes::setIfPresent(Int &value, const std::string &key) const {
  value = getAttribute<Int>(key, value);
}
template <>
inline void Attributes::setIfPresent(Float &value, const std::string &key) const {
  value = getAttribute<Float>(key, value);
}
template <>
inline void Attributes::setIfPresent(String &value, const std::string &key) const {
  value = getAttribute<String>(key, value);
}
template <>
inline void Attributes::setIfPresent(bool &value, const std::string &key) const {
  value = getAttribute<Int>(key, value) != 0;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
