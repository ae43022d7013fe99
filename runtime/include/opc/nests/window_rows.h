/* The windows of a row, whose elements are combined: where they lie, which count, and vectors of lanes of them. For the files compiled once
 * for each instruction-set variant.
 */
#ifndef OPC_NESTS_WINDOW_ROWS_H
#define OPC_NESTS_WINDOW_ROWS_H

#include "opc/core/lanes.h"
#include "opc/nests/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

/* How the elements of a window are joined: fma is the sum of weight * element, and a search finds the tap of the best one. */
enum class combine { fma, add, max, min, argmax, argmin };

constexpr bool is_search(combine c) { return c == combine::argmax || c == combine::argmin; }
constexpr bool is_sum(combine c) { return c == combine::fma || c == combine::add; }
constexpr bool takes_greatest(combine c) { return c == combine::max || c == combine::argmax; }

/* What a window's result is before anything is taken in. */
template <combine C, typename T>
constexpr T empty_window = is_sum(C) ? T(0) : takes_greatest(C) ? limits<T>::lowest : limits<T>::highest;

/* Joins what two parts of a window, or vectors of lanes, were combined to, where none is NaN. */
template <combine C, typename V>
OPC_INLINE V joined(V a, V b) {
  if constexpr (is_sum(C)) return a + b;
  if constexpr (takes_greatest(C)) return a > b ? a : b;
  return a < b ? a : b;
}

/* A window along one axis: how many positions it has, and how far elements and taps lie apart. What a tap is depends on what is
 * combined: the offset of a weight, or the number that a search keeps. */
struct window_axis {
  int64_t count;
  int64_t element_step;
  int64_t tap_step;
};

/* Lane j at position t along an axis of the window counts where position * t + lane * j + rest is not negative. */
struct window_guard {
  int32_t axis;
  int64_t position;
  int64_t lane;
  int64_t rest;
};

/* The windows of a row: where the element of lane 0 at the first position lies, how far the lanes lie apart, and the weights. Where
 * `padded`, positions that don't count hold zeros; else they add nothing. Along the last axis but one positions are `row_step` rows of
 * elements apart, and these `row_stride` elements; 0 where they are no rows. */
template <typename T, int Axes, int Guards>
struct window_row {
  const T *elements;
  int64_t first_element;
  int64_t lane_step;
  const T *weights;
  int64_t first_tap;
  bool padded;
  int64_t row_stride;
  int64_t row_step;
  window_axis axis[Axes];
  window_guard guard[Guards];
};

/* The positions of a window that count, along each axis. */
template <int Axes>
struct window_positions {
  int64_t low[Axes];
  int64_t high[Axes];

  /* Whether the first position of the window does. */
  OPC_INLINED inline bool begin() const {
    bool all = true;
    for (int a = 0; a < Axes; ++a) all &= low[a] == 0 && high[a] > 0;
    return all;
  }
};

/* Calls f(element, tap), offsets, at each position. */
template <int Axis = 0, typename T, int Axes, int Guards, typename F>
OPC_INLINE void each_position(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, int64_t element, int64_t tap,
                              const F &f) {
  if constexpr (Axis == Axes) {
    f(element, tap);
  } else {
    const window_axis &a = w.axis[Axis];
    element += p.low[Axis] * a.element_step;
    tap += p.low[Axis] * a.tap_step;
    for (int64_t t = p.low[Axis]; t < p.high[Axis]; ++t, element += a.element_step, tap += a.tap_step) {
      each_position<Axis + 1>(w, p, element, tap, f);
    }
  }
}

template <typename S>
constexpr bool is_constant = false;
template <int64_t Value>
constexpr bool is_constant<constant<Value>> = true;

/* A vector of lanes. */
template <typename T, int64_t Bytes>
struct lane_vector {
  static constexpr int64_t lanes = Bytes / int64_t(sizeof(T));
  typedef T values __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));

  /* Whether one of the values is NaN. */
  OPC_INLINED static inline bool holds_nan(values v) {
    const auto odd = v != v;
    int64_t parts[Bytes / 8], any = 0;
    memcpy(parts, &odd, sizeof parts);
#pragma GCC unroll 8
    for (int64_t u = 0; u < Bytes / 8; ++u) any |= parts[u];
    return any != 0;
  }

  /* The elements from[0], from[step], ... */
  OPC_INLINED static inline values load(const T *from, constant<1>) { return *reinterpret_cast<const values *>(from); }
  OPC_INLINED static inline values load(const T *from, int64_t step) {
    values v;
    for (int64_t u = 0; u < lanes; ++u) v[u] = from[u * step];
    return v;
  }

  /* Those two apart, in an order of their own, which takes one instruction: within parts of 16 bytes. */
  OPC_INLINED static inline values load(const T *from, constant<2>) {
    const values a = load(from, constant<1>()), b = load(from + lanes - 1, constant<1>());
    if constexpr (Bytes == 16 && lanes == 2) {
      return __builtin_shufflevector(a, b, 0, 3);
    } else if constexpr (Bytes == 16) {
      return __builtin_shufflevector(a, b, 0, 2, 5, 7);
    } else if constexpr (lanes == 4) {
      return __builtin_shufflevector(a, b, 0, 5, 2, 7);
    } else if constexpr (Bytes == 32) {
      return __builtin_shufflevector(a, b, 0, 2, 9, 11, 4, 6, 13, 15);
    } else if constexpr (lanes == 8) {
      return __builtin_shufflevector(a, b, 0, 9, 2, 11, 4, 13, 6, 15);
    } else {
      return __builtin_shufflevector(a, b, 0, 2, 17, 19, 4, 6, 21, 23, 8, 10, 25, 27, 12, 14, 29, 31);
    }
  }

  /* 0, 1, ... in the order of such loads. */
  OPC_INLINED static inline values numbers(constant<2>) {
    static const T halves[] = {0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                               8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
    return load(halves, constant<2>());
  }
  OPC_INLINED static inline values numbers(int64_t) {
    static const T all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load(all, constant<1>());
  }

  /* Puts what is in that order in the lanes' own. */
  template <typename V>
  OPC_INLINED static inline V sorted(V v) {
    if constexpr (Bytes == 16) {
      return v;
    } else if constexpr (lanes == 4) {
      return __builtin_shufflevector(v, v, 0, 2, 1, 3);
    } else if constexpr (Bytes == 32) {
      return __builtin_shufflevector(v, v, 0, 1, 4, 5, 2, 3, 6, 7);
    } else if constexpr (lanes == 8) {
      return __builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7);
    } else {
      return __builtin_shufflevector(v, v, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    }
  }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_WINDOW_ROWS_H
