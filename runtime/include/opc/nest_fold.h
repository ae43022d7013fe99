/* Sums, maxima and minima over windows, for each lane of a row: for the files compiled once for each instruction-set variant.
 *
 * Where all of a window counts, strips of lanes keep their results in registers while they go over it; the other lanes are computed
 * one by one.
 */
#ifndef OPC_NEST_FOLD_H
#define OPC_NEST_FOLD_H

#include "opc/nest_strips.h"

namespace opc {
inline namespace OPC_VARIANT {

/* How two elements, or vectors of them, are joined as a nest does it, where none is NaN; `checked` where a NaN would be lost. */
struct folds_sum {
  static constexpr bool checked = false;
  template <typename T>
  static constexpr T identity = T(0);
  template <typename V>
  OPC_INLINED static inline V join(V a, V b) { return a + b; }
  template <typename T>
  OPC_INLINED static inline T join_any(T a, T b) { return a + b; }
};
struct folds_max {
  static constexpr bool checked = true;
  template <typename T>
  static constexpr T identity = limits<T>::lowest;
  template <typename V>
  OPC_INLINED static inline V join(V a, V b) { return a > b ? a : b; }
  template <typename T>
  OPC_INLINED static inline T join_any(T a, T b) { return maximum(a, b); }
};
struct folds_min {
  static constexpr bool checked = true;
  template <typename T>
  static constexpr T identity = limits<T>::highest;
  template <typename V>
  OPC_INLINED static inline V join(V a, V b) { return a < b ? a : b; }
  template <typename T>
  OPC_INLINED static inline T join_any(T a, T b) { return minimum(a, b); }
};

/* A strip of `Vectors` vectors of lanes whose whole windows lie inside, a fixed step apart. `sum`, of all elements where they are
 * checked, is NaN where one was, and seldom else. */
template <typename T, typename Folds, int64_t Bytes, int Vectors>
struct whole_folds {
  typedef strip_vector<T, Bytes> vector;
  typedef typename vector::values values;
  static constexpr int64_t lanes = Vectors * vector::lanes;
  values part[Vectors], sum[Vectors];
  int64_t first;

  OPC_INLINED inline void clear() {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[v] = values{};
  }

  OPC_INLINED inline bool met_nan() const {
    values all = sum[0];
#pragma GCC unroll 4
    for (int v = 1; v < Vectors; ++v) all += sum[v];
    return Folds::checked && vector::holds_nan(all);
  }

  OPC_INLINED inline void start(int64_t lane, const window_row &) {
    first = lane;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) part[v] = Folds::template identity<T> - values{};
  }

  /* Takes in the elements that lie at `row` for lane 0 and at a step for the next ones. */
  template <typename S, typename F>
  OPC_INLINED inline void take(const T *row, S step, F) {
    const T *const from = row + first * step;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const values here = vector::load_mixed(from + v * vector::lanes * step, step);
      part[v] = Folds::join(part[v], here);
      if constexpr (Folds::checked) sum[v] += here;
    }
  }

  template <typename S>
  OPC_INLINED inline void put(T *to, S step) const {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      *reinterpret_cast<values *>(to + first + v * vector::lanes) = step == 2 ? vector::sorted(part[v]) : part[v];
    }
  }
};

/* One lane, of any values. */
template <typename T, typename Folds>
struct lane_fold {
  T value;
  int64_t lane;

  OPC_INLINED inline void start(int64_t at) {
    value = Folds::template identity<T>;
    lane = at;
  }

  /* Takes in the lane's element if `inside` leaves the lane in a range. */
  template <typename S, typename F>
  OPC_INLINED inline void take(const T *row, S step, F inside) {
    int64_t low = lane, high = lane + 1;
    inside(low, high);
    if (low < high) value = Folds::join_any(value, row[lane * step]);
  }
};

template <typename Folds, int64_t Bytes, typename T, typename S, typename F>
OPC_INLINE bool fold_strips(T *results, const window_row &row, S step, F candidates) {
  whole_folds<T, Folds, Bytes, 4> many;
  whole_folds<T, Folds, Bytes, 1> one;
  lane_fold<T, Folds> single;
  many.clear();
  one.clear();
  for (int64_t i = 0; i < row.count;) {
    int64_t next = i;
    if (row.high - i > one.lanes) next = take_whole(many, results, row, i, step, candidates);
    if (next == i) next = take_whole(one, results, row, i, step, candidates);
    if (next == i) {
      single.start(i);
      candidates(single, step);
      results[next++] = single.value;
    }
    i = next;
  }
  return !many.met_nan() && !one.met_nan();
}

/* Computes the results of a row of windows, if they lie a known step apart and enough of them inside; returns whether all are right.
 * `candidates` takes the elements of the windows in one after the other. */
template <typename Folds, typename T, typename F>
OPC_INLINE bool fold_windows(T *results, const window_row &row, int64_t step, F candidates) {
  bool right = false;
  with_step(step, [&](auto fixed) OPC_INLINED {
    if constexpr (is_fixed<decltype(fixed)>) {
      const int64_t whole = (row.high - row.low) * int64_t(sizeof(T));
      if (strip_bytes > least_strip_bytes && whole >= strip_bytes) {
        right = fold_strips<Folds, strip_bytes>(results, row, fixed, candidates);
      } else if (whole >= least_strip_bytes) {
        right = fold_strips<Folds, least_strip_bytes>(results, row, fixed, candidates);
      }
    }
  });
  return right;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NEST_FOLD_H
