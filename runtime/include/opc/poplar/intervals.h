/* Intervals of integers, and what comes of whole numbers that lie in them. */
#ifndef OPC_POPLAR_INTERVALS_H
#define OPC_POPLAR_INTERVALS_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "opc/poplar/sizes.h"

namespace opc {
namespace ipu {

/* The integers from `low` to `high`, both included. */
struct interval {
  int64_t low, high;

  interval() : low(0), high(0) {}
  interval(int64_t value) : low(value), high(value) {}
  interval(int64_t low_, int64_t high_) : low(low_), high(high_) {}
  int64_t size() const { return high - low + 1; }
};

/* Intervals along the axes of a tensor. */
using box = std::vector<interval>;

inline int64_t points_in(const box &at) {
  int64_t points = 1;
  for (const interval &axis : at) points *= axis.size();
  return points;
}

/* Sums and products that end at the least and greatest int64, which no index is allowed to reach. */
inline int64_t saturated(int64_t value, bool overflows, bool negative) {
  if (!overflows) return value;
  return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
inline int64_t sum(int64_t a, int64_t b) {
  int64_t value = 0;
  const bool overflows = __builtin_add_overflow(a, b, &value);
  return saturated(value, overflows, a < 0);
}
inline int64_t difference(int64_t a, int64_t b) {
  int64_t value = 0;
  const bool overflows = __builtin_sub_overflow(a, b, &value);
  return saturated(value, overflows, a < 0);
}
inline int64_t product(int64_t a, int64_t b) {
  int64_t value = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &value);
  return saturated(value, overflows, (a < 0) != (b < 0));
}

inline interval operator+(const interval &a, const interval &b) { return interval(sum(a.low, b.low), sum(a.high, b.high)); }
inline interval operator-(const interval &a, const interval &b) {
  return interval(difference(a.low, b.high), difference(a.high, b.low));
}
inline interval operator-(const interval &a) { return interval(0) - a; }
inline interval operator*(const interval &a, const interval &b) {
  const auto ends = std::minmax({product(a.low, b.low), product(a.low, b.high), product(a.high, b.low), product(a.high, b.high)});
  return interval(ends.first, ends.second);
}

/* The interval that holds both. */
inline interval hull(const interval &a, const interval &b) { return interval(std::min(a.low, b.low), std::max(a.high, b.high)); }
inline box hull(const box &a, const box &b) {
  box both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(hull(a[i], b[i]));
  return both;
}

inline interval minimum(const interval &a, const interval &b) { return interval(std::min(a.low, b.low), std::min(a.high, b.high)); }

/* Quotients rounded to minus infinity, and remainders. A divisor that differs from point to point may be anything. */
inline interval floordiv(const interval &a, const interval &b) {
  if (b.low <= 0 && b.high >= 0) {
    const int64_t most = std::max(std::max(a.high, difference(0, a.low)), std::max(a.low, difference(0, a.high)));
    return interval(difference(-1, most), most);
  }
  const auto ends = std::minmax({floordiv(a.low, b.low), floordiv(a.low, b.high), floordiv(a.high, b.low), floordiv(a.high, b.high)});
  return interval(ends.first, ends.second);
}
inline interval mod(const interval &a, const interval &b) {
  if (b.low == b.high && b.low != 0 && floordiv(a.low, b.low) == floordiv(a.high, b.low)) {
    const int64_t low = mod(a.low, b.low), high = mod(a.high, b.low);
    return interval(std::min(low, high), std::max(low, high));
  }
  return interval(std::min<int64_t>(0, sum(b.low, 1)), std::max<int64_t>(0, difference(b.high, 1)));
}

/* All points of an axis. */
inline interval whole(int64_t extent) { return interval(0, extent - 1); }
/* What an index of a reduction goes through, as many points as `extent` may be. */
inline interval range(const interval &extent) { return interval(0, std::max<int64_t>(extent.high - 1, 0)); }

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_INTERVALS_H
