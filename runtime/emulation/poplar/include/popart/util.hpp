// Small helpers, and the text of containers.
#ifndef POPART_UTIL_HPP
#define POPART_UTIL_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

template <typename X, typename Y>
std::vector<Y> vXtoY(const std::vector<X> &values) {
  std::vector<Y> out;
  out.reserve(values.size());
  for (const X &value : values) out.push_back(static_cast<Y>(value));
  return out;
}

template <typename Y, typename X>
std::vector<Y> vector_cast(const std::vector<X> &values) {
  return vXtoY<X, Y>(values);
}

template <typename T>
bool isOneOf(const T &x, const std::vector<T> &ys) {
  for (const T &y : ys) {
    if (x == y) return true;
  }
  return false;
}

template <class T>
void appendSequence(std::ostream &stream, const T &values) {
  stream << '[';
  bool first = true;
  for (const auto &value : values) {
    if (!first) stream << ' ';
    stream << value;
    first = false;
  }
  stream << ']';
}

/// `axis` counted from the front. Raises popart::error where it is outside of `rank`.
inline int64_t getReduceAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) throw error("Axis {} is out of acceptable range [{}, {}]", axis, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}
inline void normalizeReduceAxes(std::vector<int64_t> &axes, int64_t rank) {
  for (int64_t &axis : axes) axis = getReduceAxis(axis, rank);
}

}  // namespace popart

namespace std {

template <typename T>
ostream &operator<<(ostream &stream, const vector<T> &values) {
  popart::appendSequence(stream, values);
  return stream;
}
template <typename T>
ostream &operator<<(ostream &stream, const set<T> &values) {
  popart::appendSequence(stream, values);
  return stream;
}
template <typename T, typename U>
ostream &operator<<(ostream &stream, const pair<T, U> &value) {
  return stream << '(' << value.first << ", " << value.second << ')';
}

}  // namespace std
#pragma GCC visibility pop

#endif
