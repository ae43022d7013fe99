// An optional value of a small type; V tells uses of the same type apart.
#ifndef POPART_BASICOPTIONALS_HPP
#define POPART_BASICOPTIONALS_HPP

#include <cstdint>
#include <ostream>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

template <typename T, uint32_t V = 0>
class BasicOptional {
 public:
  BasicOptional() noexcept = default;
  BasicOptional(T t) : isSet(true), value(t) {}

  BasicOptional &operator=(const T &t) {
    isSet = true;
    value = t;
    return *this;
  }

  const T &operator*() const {
    if (!isSet) throw error("Cannot get value of an unset BasicOptional");
    return value;
  }
  explicit operator bool() const { return isSet; }
  void reset() noexcept { isSet = false; }

 private:
  bool isSet = false;
  T value{};
};

template <typename T, uint32_t V>
bool operator==(const BasicOptional<T, V> &a, const BasicOptional<T, V> &b) {
  return static_cast<bool>(a) == static_cast<bool>(b) && (!a || *a == *b);
}
template <typename T, uint32_t V>
bool operator!=(const BasicOptional<T, V> &a, const BasicOptional<T, V> &b) {
  return !(a == b);
}
template <typename T, uint32_t V>
std::ostream &operator<<(std::ostream &stream, const BasicOptional<T, V> &value) {
  return value ? stream << *value : stream << "none";
}

using OptionalVGraphId = BasicOptional<VGraphId, 2>;
using OptionalPipelineStage = BasicOptional<PipelineStage, 3>;
using OptionalExecutionPhase = BasicOptional<ExecutionPhase, 5>;
using OptionalBatchSerializedPhase = BasicOptional<BatchSerializedPhase, 7>;

}  // namespace popart
#pragma GCC visibility pop

#endif
