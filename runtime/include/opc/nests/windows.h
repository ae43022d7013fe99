/* Reductions over windows, for each lane of a row: for the files compiled once for each instruction-set variant.
 *
 * Register tiles of several vectors of lanes keep their results while they go over the window, where all of it counts. At both ends of
 * the row windows are cut. Few such lanes are computed one by one; many are tiles too, which read a copy of the rows of elements, padded
 * with what changes nothing, so that no lane is tested. A row is copied once, for all rows of windows that it is in.
 */
#ifndef OPC_NESTS_WINDOWS_H
#define OPC_NESTS_WINDOWS_H

#include "opc/nests/padded_rows.h"

namespace opc {
inline namespace OPC_VARIANT {

constexpr int64_t least_tile_bytes = 16; /* rows too short for a vector are computed in vectors of so many */
constexpr int padded_vectors = 2;        /* vectors of lanes that read one padded copy */

/* The lanes of a row that are computed in tiles, and those whose whole window counts. */
struct window_lanes {
  int64_t first, last;
  int64_t whole_first, whole_last;
};

/* Computes `Vectors` vectors of lanes from `first` on, the last of which ends with the last lane; they may overlap. Values that are not
 * NaN are assumed: `seen`, to which all are added, is NaN where one was, and seldom else. */
template <combine C, int64_t Bytes, int Vectors, bool Padded, typename T, int Axes, int Guards, typename S, typename R>
OPC_INLINE void reduce_tile(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, const counted_elements *c,
                            int64_t first, const window_lanes &of, S step, R *to, typename lane_vector<T, Bytes>::values &seen) {
  typedef lane_vector<T, Bytes> vector;
  typedef typename vector::values values;
  typedef R results __attribute__((vector_size(Bytes), aligned(alignof(R)), may_alias));
  int64_t at[Vectors];
  values best[Vectors], sum[Vectors] = {};
  results found[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    at[v] = least(first + v * vector::lanes, of.last - vector::lanes);
    if (Padded) at[v] = greatest(at[v], 0);
    best[v] = empty_window<C, T> - values{};
    found[v] = (p.begin() ? R(0) : limits<R>::lowest) - results{};
    if constexpr (Padded && is_search(C)) {
      const results lane = lane_vector<R, Bytes>::numbers(step) + R(at[v]);
      found[v] = ((lane >= R(c->begin)) & (lane < R(c->end))) ? results{} : limits<R>::lowest - results{};
    }
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
    if (step == 2) found[v] = vector::sorted(found[v]);
    if (!Padded || is_search(C) || of.last >= vector::lanes) {
      *reinterpret_cast<results *>(to + at[v]) = found[v];
    } else {
      R few[vector::lanes];
      memcpy(few, &found[v], sizeof few);
      for (int64_t u = 0; u < of.last; ++u) to[u] = few[u];
    }
  }
}

/* How many vectors of lanes a tile has: as many as registers hold. Of each a search keeps three. */
template <combine C, typename S>
constexpr int tile_vectors = is_constant<S> && (!is_search(C) || vector_bytes == 64) ? 4 : 2;

/* Computes lanes whose whole windows count, at least a vector of them; false where a NaN was met that would be lost. */
template <combine C, int64_t Bytes, typename T, int Axes, int Guards, typename S, typename R>
OPC_INLINE bool reduce_tiles(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, const window_lanes &of, S step,
                             R *to) {
  typedef lane_vector<T, Bytes> vector;
  constexpr int many = tile_vectors<C, S>;
  typename vector::values seen{};
  int64_t first = of.first;
  for (; of.last - first > 2 * vector::lanes; first += many * vector::lanes) {
    reduce_tile<C, Bytes, many, false>(w, p, nullptr, first, of, step, to, seen);
  }
  if (first < of.last) reduce_tile<C, Bytes, 2, false>(w, p, nullptr, first, of, step, to, seen);
  return is_sum(C) || !vector::holds_nan(seen);
}

/* Computes a row of lanes whose windows may be cut, in tiles that read a padded copy where one is; false where a NaN was met. Arguments
 * are copied, so that a caller that seldom comes here keeps them in registers. */
template <combine C, typename T, int Axes, int Guards, typename S, typename R>
__attribute__((noinline)) static bool reduce_padded(const window_row<T, Axes, Guards> w, const window_positions<Axes> p,
                                                    const counted_elements counted, const window_lanes of, S step, R *to,
                                                    padded_windows<T> &memory) {
  typedef lane_vector<T, vector_bytes> vector;
  typename vector::values seen{};
  for (int64_t first = 0; first < of.last; first += padded_vectors * vector::lanes) {
    const int64_t from = greatest(least(first, of.last - vector::lanes), 0);
    const int64_t end = greatest(least(first + padded_vectors * vector::lanes, of.last), vector::lanes);
    const bool cut = from < of.whole_first || end > of.whole_last;
    const window_row<T, Axes, Guards> read = cut ? pad_window<C>(w, p, counted, from, end, from == 0 ? memory.first : memory.last) : w;
    reduce_tile<C, vector_bytes, padded_vectors, true>(read, p, &counted, first, of, step, to, seen);
  }
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

/* Whether zeros times the weights of a window are zeros. */
template <typename T, int Axes, int Guards>
OPC_INLINE bool are_finite(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p) {
  T nothing = 0;
  each_position(w, p, 0, w.first_tap, [&](int64_t, int64_t tap) OPC_INLINED { nothing += w.weights[tap] * 0; });
  return nothing == 0;
}

/* Whether so many lanes take longer one by one than a padded copy does. */
template <int Axes>
OPC_INLINE bool are_long(const window_positions<Axes> &p, int64_t lanes) {
  const int64_t few = 32;
  for (int a = 0; a < Axes; ++a) lanes *= p.high[a] - p.low[a];
  return lanes >= few;
}

/* Computes a row of `count` lanes: of a search, the taps of the best elements, and where nothing was found the least number there is;
 * `to` then has room for a vector. False where that is left to other loops: where lanes lie far apart, where hardly any window is whole
 * and none can be padded, where zeros are multiplied with an infinity or NaN, and where the greatest of NaNs is asked for. `memory` is
 * kept from row to row, as long as what is read stays as it is. */
template <combine C, typename R, typename T, int Axes, int Guards>
OPC_INLINE bool reduce_windows(const window_row<T, Axes, Guards> &w, R *to, int64_t count, padded_windows<T> &memory) {
  constexpr bool search = is_search(C);
  if (!search && count * int64_t(sizeof(T)) < least_tile_bytes) return false;
  window_positions<Axes> p;
  for (int a = 0; a < Axes; ++a) {
    p.low[a] = 0;
    p.high[a] = w.axis[a].count;
  }
  if (C == combine::fma && w.padded && !are_finite(w, p)) return false;
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    if (of.lane == 0) clip(p.low[of.axis], p.high[of.axis], of.position, of.rest);
  }
  window_lanes lanes = {0, count, 0, count};
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    const int64_t least_position = least(of.position * p.low[of.axis], of.position * (p.high[of.axis] - 1));
    if (of.lane != 0) clip(lanes.whole_first, lanes.whole_last, of.lane, of.rest + least_position);
  }
  const int64_t whole = lanes.whole_last - lanes.whole_first, bytes = whole * int64_t(sizeof(T));
  const int64_t single = bytes < least_tile_bytes ? count : count - whole;
  counted_elements counted;
  const bool pads = count * int64_t(sizeof(T)) >= least_tile_bytes && w.lane_step <= 2 && are_long(p, single) &&
                    find_counted(w, p, count, padded_vectors * count_lanes<T>(), counted) &&
                    (C != combine::fma || w.padded || are_finite(w, p));
  if (!pads) {
    lanes.first = lanes.whole_first;
    lanes.last = lanes.whole_last;
  }
  bool done = false;
  if constexpr (sizeof(R) == sizeof(T)) {
    const auto reduce = [&](auto step) OPC_INLINED {
      constexpr bool fixed = is_constant<decltype(step)>;
      if constexpr (fixed || search) {
        if (fixed && pads) {
          if constexpr (fixed) done = reduce_padded<C>(w, p, counted, lanes, step, to, memory);
        } else if (fixed && int64_t(vector_bytes) > least_tile_bytes && bytes >= vector_bytes) {
          done = reduce_tiles<C, fixed ? int64_t(vector_bytes) : least_tile_bytes>(w, p, lanes, step, to);
        } else if (bytes >= least_tile_bytes) {
          done = reduce_tiles<C, least_tile_bytes>(w, p, lanes, step, to);
        }
      }
    };
    if constexpr (C != combine::fma) {
      with_step(w.lane_step, reduce);
    } else if (w.lane_step == 1) { /* seldom else, which is not worth the code */
      reduce(constant<1>());
    }
  }
  if (!done && !search) return false;
  if (!done) lanes.first = lanes.last = count;
  for (int64_t j = lanes.first > 0 ? 0 : lanes.last; j < count; j = j + 1 == lanes.first ? lanes.last : j + 1) {
    to[j] = reduce_lane<C, R>(w, p, j);
  }
  return true;
}

/* How far numbers go that are a step apart. */
OPC_INLINE int64_t reach(int64_t count, int64_t step) { return count * magnitude(step); }

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
