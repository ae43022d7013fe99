/* Reductions over windows, for each lane of a row: for the files compiled once for each instruction-set variant.
 *
 * Register tiles of several vectors of lanes keep their results while they go over the window, where all of it counts. The lanes at both
 * ends of the row, whose windows are cut, are computed one by one.
 */
#ifndef OPC_NESTS_WINDOWS_H
#define OPC_NESTS_WINDOWS_H

#include "opc/core/lanes.h"
#include "opc/nests/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

constexpr int64_t least_tile_bytes = 16; /* rows too short for a vector are computed in vectors of so many */

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
 * `padded`, positions that don't count hold zeros; else they add nothing. */
template <typename T, int Axes, int Guards>
struct window_row {
  const T *elements;
  int64_t first_element;
  int64_t lane_step;
  const T *weights;
  int64_t first_tap;
  bool padded;
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

/* Computes `Vectors` vectors of lanes, the last of which ends at `last`; they may overlap. Values that are not NaN are assumed: `seen`, to
 * which all are added, is NaN where one was, and seldom else. */
template <combine C, int64_t Bytes, int Vectors, typename T, int Axes, int Guards, typename S, typename R>
OPC_INLINE void reduce_tile(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, int64_t first, int64_t last, S step,
                            R *to, typename lane_vector<T, Bytes>::values &seen) {
  typedef lane_vector<T, Bytes> vector;
  typedef typename vector::values values;
  typedef R results __attribute__((vector_size(Bytes), aligned(alignof(R)), may_alias));
  int64_t at[Vectors];
  values best[Vectors], sum[Vectors] = {};
  results found[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    at[v] = least(first + v * vector::lanes, last - vector::lanes);
    best[v] = empty_window<C, T> - values{};
    found[v] = (p.begin() ? R(0) : limits<R>::lowest) - results{};
  }
  each_position(w, p, w.first_element, w.first_tap, [&](int64_t element, int64_t tap) OPC_INLINED {
    const T *from = w.elements + element;
    T weight = 0;
    if constexpr (C == combine::fma) weight = w.weights[tap];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const values here = vector::load(from + at[v] * step, step);
      if constexpr (C == combine::fma) {
        best[v] += weight * here;
      } else {
        if constexpr (is_search(C)) found[v] = (takes_greatest(C) ? here > best[v] : here < best[v]) ? R(tap) - results{} : found[v];
        if constexpr (!is_sum(C)) sum[v] += here;
        best[v] = joined<C>(here, best[v]);
      }
    }
  });
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    seen += sum[v];
    if constexpr (!is_search(C)) found[v] = best[v];
    *reinterpret_cast<results *>(to + at[v]) = step == 2 ? vector::sorted(found[v]) : found[v];
  }
}

/* Computes lanes [first, last), at least a vector of them, whose whole windows count; false where a NaN was met that would be lost. Tiles
 * are as large as registers hold: of each of its vectors a search keeps three. */
template <combine C, int64_t Bytes, typename T, int Axes, int Guards, typename S, typename R>
OPC_INLINE bool reduce_tiles(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, int64_t first, int64_t last, S step,
                             R *to) {
  typedef lane_vector<T, Bytes> vector;
  constexpr int many = is_constant<S> && (!is_search(C) || vector_bytes == 64) ? 4 : 2;
  typename vector::values seen{};
  for (; last - first > 2 * vector::lanes; first += many * vector::lanes) reduce_tile<C, Bytes, many>(w, p, first, last, step, to, seen);
  if (first < last) reduce_tile<C, Bytes, 2>(w, p, first, last, step, to, seen);
  return is_sum(C) || !vector::holds_nan(seen);
}

/* Computes one lane, whose window may be cut, of any values: NaN is better than all others, and the first one found stays. */
template <combine C, typename R, typename T, int Axes, int Guards>
OPC_INLINE R reduce_lane(const window_row<T, Axes, Guards> &w, window_positions<Axes> p, int64_t lane) {
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    if (of.lane != 0) clip(p.low[of.axis], p.high[of.axis], of.position, of.rest + of.lane * lane);
  }
  T best = empty_window<C, T>;
  R found = p.begin() ? R(0) : limits<R>::lowest;
  each_position(w, p, w.first_element + lane * w.lane_step, w.first_tap, [&](int64_t element, int64_t tap) OPC_INLINED {
    const T here = w.elements[element];
    if constexpr (C == combine::fma) {
      best += w.weights[tap] * here;
    } else if constexpr (C == combine::add) {
      best += here;
    } else {
      /* A choice by bits, since no branch on what is found is foreseen. */
      const bool better = !(takes_greatest(C) ? here <= best : here >= best) & (best == best);
      if constexpr (is_search(C)) found = blend(better, R(tap), found);
      best = takes_greatest(C) ? maximum(best, here) : minimum(best, here);
    }
  });
  return is_search(C) ? found : R(best);
}

/* Computes a row of `count` lanes: of a search, the taps of the best elements, and where nothing was found the least number there is. False
 * where that is left to other loops: where lanes lie far apart, where hardly any window is whole, where zeros are multiplied with an
 * infinity or NaN, and where the greatest of NaNs is asked for. */
template <combine C, typename R, typename T, int Axes, int Guards>
OPC_INLINE bool reduce_windows(const window_row<T, Axes, Guards> &w, R *to, int64_t count) {
  constexpr bool search = is_search(C);
  if (!search && count * int64_t(sizeof(T)) < least_tile_bytes) return false;
  window_positions<Axes> p;
  for (int a = 0; a < Axes; ++a) {
    p.low[a] = 0;
    p.high[a] = w.axis[a].count;
  }
  if constexpr (C == combine::fma) {
    T nothing = 0;
    if (w.padded) each_position(w, p, 0, w.first_tap, [&](int64_t, int64_t tap) OPC_INLINED { nothing += w.weights[tap] * 0; });
    if (!(nothing == 0)) return false;
  }
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    if (of.lane == 0) clip(p.low[of.axis], p.high[of.axis], of.position, of.rest);
  }
  int64_t first = 0, last = count;
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    const int64_t least_position = least(of.position * p.low[of.axis], of.position * (p.high[of.axis] - 1));
    if (of.lane != 0) clip(first, last, of.lane, of.rest + least_position);
  }
  const int64_t whole = (last - first) * int64_t(sizeof(T));
  bool done = false;
  if constexpr (sizeof(R) == sizeof(T)) {
    const auto reduce = [&](auto step) OPC_INLINED {
      constexpr bool fixed = is_constant<decltype(step)>;
      if constexpr (fixed && int64_t(vector_bytes) > least_tile_bytes) {
        if (whole >= vector_bytes) {
          done = reduce_tiles<C, vector_bytes>(w, p, first, last, step, to);
          return;
        }
      }
      if constexpr (fixed || search) {
        if (whole >= least_tile_bytes) done = reduce_tiles<C, least_tile_bytes>(w, p, first, last, step, to);
      }
    };
    if constexpr (C != combine::fma) {
      with_step(w.lane_step, reduce);
    } else if (w.lane_step == 1) { /* seldom else, which is not worth the code */
      reduce(constant<1>());
    }
  }
  if (!done && !search) return false;
  if (!done) first = last = count;
  for (int64_t j = first > 0 ? 0 : last; j < count; j = j + 1 == first ? last : j + 1) to[j] = reduce_lane<C, R>(w, p, j);
  return true;
}

/* How far numbers go that are a step apart. */
OPC_INLINE int64_t reach(int64_t count, int64_t step) { return count * (step < 0 ? -step : step); }

/* Fetches the lines of memory that a loop will read next. */
template <typename T>
OPC_INLINE void fetch_ahead(const T *from, int64_t count) {
  constexpr int64_t line = 64 / sizeof(T), most = 64 * line;
  for (int64_t i = 0; i < least(count, most); i += line) __builtin_prefetch(from + i);
}

/* Fetches a share, one of several, of the lines of memory that will be written next. */
template <typename T>
OPC_INLINE void fetch_share(const T *from, int64_t count, int64_t share, int64_t shares) {
  constexpr int64_t line = 64 / sizeof(T);
  const int64_t lines = (count / line + shares - 1) / shares;
  for (int64_t i = share * lines; i < (share + 1) * lines; ++i) __builtin_prefetch(from + i * line, 1);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_WINDOWS_H
