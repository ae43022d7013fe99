/* Sums over windows with a weight for each place in them, as of a convolution that keeps channels apart: for the files compiled once for
 * each instruction-set variant.
 *
 * Where all of a window counts, strips of lanes keep their sums in registers while they go over it; what is left at both ends of the row
 * is summed up lane by lane.
 */
#ifndef OPC_NEST_TAPS_H
#define OPC_NEST_TAPS_H

#include "opc/nest_lanes.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Rows too short for a vector are computed in vectors of so many. */
enum : int { least_bytes = 16 };

/* A window along one axis: how many places it has, and how far the weights and what they are multiplied with move from one to the next. */
struct tap_axis {
  int64_t count;
  int64_t weight_step;
  int64_t read_step;
};

/* Lane j at place t along an axis of the window counts where tap * t + lane * j + rest is not negative. */
struct tap_guard {
  int32_t axis;
  int64_t tap;
  int64_t lane;
  int64_t rest;
};

/* The sums of weight * element over the places of a window, for each lane of a row. Where `padded`, places that don't count hold zeros; else
 * their products are none. */
template <typename T, int Axes, int Guards>
struct tap_sums {
  const T *weights;
  int64_t first_weight;
  const T *elements;
  int64_t first_element;
  int64_t lane_step;
  bool padded;
  tap_axis axis[Axes];
  tap_guard guard[Guards];
};

/* The places of a window that count, along each axis. */
template <int Axes>
struct tap_ranges {
  int64_t low[Axes];
  int64_t high[Axes];
};

/* Calls f(weight, element), offsets, at each place. */
template <int Axis, typename T, int Axes, int Guards, typename F>
OPC_INLINE void each_tap(const tap_sums<T, Axes, Guards> &s, const tap_ranges<Axes> &r, int64_t weight, int64_t element, const F &f) {
  if constexpr (Axis == Axes) {
    f(weight, element);
  } else {
    const tap_axis &a = s.axis[Axis];
    weight += r.low[Axis] * a.weight_step;
    element += r.low[Axis] * a.read_step;
    for (int64_t t = r.low[Axis]; t < r.high[Axis]; ++t, weight += a.weight_step, element += a.read_step) {
      each_tap<Axis + 1>(s, r, weight, element, f);
    }
  }
}

/* Computes `Vectors` vectors of lanes, of which the last ends at `last`; they may overlap. */
template <int Vectors, int Bytes, typename T, int Axes, int Guards>
OPC_INLINE void sum_strip(const tap_sums<T, Axes, Guards> &s, const tap_ranges<Axes> &r, int64_t first, int64_t last, T *to) {
  typedef T vector __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  constexpr int64_t lanes = Bytes / int64_t(sizeof(T));
  int64_t at[Vectors];
  vector sum[Vectors] = {};
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) at[v] = least(first + v * lanes, last - lanes);
  each_tap<0>(s, r, s.first_weight, s.first_element, [&](int64_t weight, int64_t element) __attribute__((always_inline)) {
    const T factor = s.weights[weight];
    const T *from = s.elements + element;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[v] += factor * *reinterpret_cast<const vector *>(from + at[v]);
  });
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) *reinterpret_cast<vector *>(to + at[v]) = sum[v];
}

/* Computes lanes [first, last), at least a vector of them. */
template <int Bytes, typename T, int Axes, int Guards>
OPC_INLINE void sum_strips(const tap_sums<T, Axes, Guards> &s, const tap_ranges<Axes> &r, int64_t first, int64_t last, T *to) {
  constexpr int64_t lanes = Bytes / int64_t(sizeof(T));
  for (; last - first > 2 * lanes; first += 4 * lanes) sum_strip<4, Bytes>(s, r, first, last, to);
  if (first < last) sum_strip<2, Bytes>(s, r, first, last, to);
}

/* Computes one lane, whose window may be cut. */
template <typename T, int Axes, int Guards>
OPC_INLINE T sum_lane(const tap_sums<T, Axes, Guards> &s, tap_ranges<Axes> r, int64_t lane) {
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const tap_guard &of = s.guard[g];
    if (of.lane != 0) clip(r.low[of.axis], r.high[of.axis], of.tap, of.rest + of.lane * lane);
  }
  T sum = 0;
  each_tap<0>(s, r, s.first_weight, s.first_element + lane * s.lane_step,
              [&](int64_t weight, int64_t element) __attribute__((always_inline)) { sum += s.weights[weight] * s.elements[element]; });
  return sum;
}

/* Computes a row of `count` lanes; false where that is left to other loops: where lanes lie apart, where hardly any window is whole, and
 * where zeros are multiplied with an infinity or NaN. */
template <typename T, int Axes, int Guards>
OPC_INLINE bool sum_taps(const tap_sums<T, Axes, Guards> &s, T *to, int64_t count) {
  constexpr int64_t lanes = vector_bytes / int64_t(sizeof(T));
  constexpr int64_t fewest = least_bytes / int64_t(sizeof(T));
  if (s.lane_step != 1 || count < fewest) return false;
  tap_ranges<Axes> r;
  for (int a = 0; a < Axes; ++a) {
    r.low[a] = 0;
    r.high[a] = s.axis[a].count;
  }
  if (s.padded) {
    T nothing = 0;
    each_tap<0>(s, r, s.first_weight, 0, [&](int64_t weight, int64_t) __attribute__((always_inline)) { nothing += s.weights[weight] * 0; });
    if (!(nothing == 0)) return false;
  }
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const tap_guard &of = s.guard[g];
    if (of.lane == 0) clip(r.low[of.axis], r.high[of.axis], of.tap, of.rest);
  }
  int64_t first = 0, last = count;
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const tap_guard &of = s.guard[g];
    if (of.lane != 0) clip(first, last, of.lane, of.rest + least(of.tap * r.low[of.axis], of.tap * (r.high[of.axis] - 1)));
  }
  if (last - first < fewest) return false;
  for (int64_t j = 0; j < first; ++j) to[j] = sum_lane(s, r, j);
  if (last - first >= lanes) {
    sum_strips<vector_bytes>(s, r, first, last, to);
  } else {
    sum_strips<least_bytes>(s, r, first, last, to);
  }
  for (int64_t j = last; j < count; ++j) to[j] = sum_lane(s, r, j);
  return true;
}

/* The sum of products along many rows: partial sums in the lanes of vectors, which are added up at the end, and of what is left over. */
template <typename T>
struct product_sum {
  typedef T vector __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
  static constexpr int64_t lanes = vector_bytes / int64_t(sizeof(T));
  vector part[2];
  T rest;

  __attribute__((always_inline)) T total() const {
    const vector both = part[0] + part[1];
    T sum = rest;
    for (int64_t l = 0; l < lanes; ++l) sum += both[l];
    return sum;
  }
};

/* Adds the products of neighbouring elements at [low, high). */
template <typename T>
OPC_INLINE void add_products(product_sum<T> &s, const T *a, constant<1>, const T *b, constant<1>, int64_t low, int64_t high) {
  typedef typename product_sum<T>::vector vector;
  constexpr int64_t lanes = product_sum<T>::lanes;
  const auto product = [&](int64_t i) __attribute__((always_inline)) {
    return *reinterpret_cast<const vector *>(a + i) * *reinterpret_cast<const vector *>(b + i);
  };
  int64_t i = low;
  for (; i + 2 * lanes <= high; i += 2 * lanes) {
    s.part[0] += product(i);
    s.part[1] += product(i + lanes);
  }
  if (i + lanes <= high) {
    s.part[0] += product(i);
    i += lanes;
  }
  if (i < high && high - low >= lanes) {
    /* A vector that ends where the row does, without the lanes that are in the sum already. */
    decltype(vector() < vector()) number;
    typedef __typeof__(number[0]) lane;
    for (int64_t l = 0; l < lanes; ++l) number[l] = lane(l);
    s.part[1] += number >= lane(i - (high - lanes)) ? product(high - lanes) : vector{};
    return;
  }
  for (; i < high; ++i) s.rest += a[i] * b[i];
}

/* The same for elements that lie apart. */
template <typename T, typename A, typename B>
OPC_INLINE void add_products(product_sum<T> &s, const T *a, A a_step, const T *b, B b_step, int64_t low, int64_t high) {
  T part = 0;
  OPC_SIMD_REDUCTION(+ : part)
  for (int64_t i = low; i < high; ++i) part += a[i * a_step] * b[i * b_step];
  s.rest += part;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NEST_TAPS_H
