/* Searches over windows: for each lane of a row, which of the elements in its window is the greatest or least. For the files compiled
 * once for each instruction-set variant.
 *
 * A strip of lanes keeps its best values and their numbers in vectors while it goes over the window, so that the row is read and
 * nothing else touches memory until the numbers are stored.
 */
#ifndef OPC_NEST_WINDOW_H
#define OPC_NEST_WINDOW_H

#include "opc/nest_strips.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A vector of lanes and what a search has found for each: the best value, and its number, the least there is where nothing was found.
 * Values that are not NaN are assumed: `sum`, of all values, is NaN where one was, and seldom else. */
template <typename T, typename P, int64_t Bytes, bool Greatest>
struct window_lanes : strip_vector<T, Bytes> {
  using strip_vector<T, Bytes>::lanes;
  typedef typename strip_vector<T, Bytes>::values values;
  typedef typename strip_vector<T, Bytes>::mask mask;
  typedef P places __attribute__((vector_size(Bytes / sizeof(T) * sizeof(P)), aligned(alignof(P)), may_alias));

  values best;
  places found;
  values sum;

  OPC_INLINED inline void start() {
    best = (Greatest ? limits<T>::lowest : limits<T>::highest) - values{};
    found = limits<P>::lowest - places{};
  }

  OPC_INLINED inline void keep(mask better, values here, P place) {
    best = better ? here : best;
    if constexpr (sizeof(P) == sizeof(T)) {
      found = better ? place - places{} : found;
    } else {
      for (int64_t u = 0; u < lanes; ++u) found[u] = better[u] ? place : found[u];
    }
  }

  OPC_INLINED inline void take(values here, P place) {
    sum += here;
    keep(Greatest ? here > best : here < best, here, place);
  }
};

/* A strip of `Vectors` vectors of lanes whose whole windows lie inside, a fixed step apart. */
template <typename T, typename P, int64_t Bytes, bool Greatest, int Vectors>
struct whole_windows {
  typedef window_lanes<T, P, Bytes, Greatest> vector;
  static constexpr int64_t lanes = Vectors * vector::lanes;
  vector part[Vectors];
  int64_t first;

  OPC_INLINED inline void clear() {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) part[v].sum = typename vector::values{};
  }

  OPC_INLINED inline typename vector::values sum() const {
    typename vector::values all = part[0].sum;
#pragma GCC unroll 4
    for (int v = 1; v < Vectors; ++v) all += part[v].sum;
    return all;
  }

  /* A window is empty so far, and its first element, whose number is 0, stands for it where that lies inside. */
  OPC_INLINED inline void start(int64_t lane, const window_row &row) {
    first = lane;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      part[v].start();
      if (row.first_low <= lane && lane < row.first_high) part[v].found = typename vector::places{};
    }
  }

  /* Takes in the elements that lie at `row` for lane 0 and at a step for the next ones. */
  template <typename S, typename F>
  OPC_INLINED inline void take(const T *row, S step, P place, F) {
    const T *const from = row + first * step;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) part[v].take(vector::load_mixed(from + v * vector::lanes * step, step), place);
  }

  template <typename S>
  OPC_INLINED inline void put(P *to, S step) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      typename vector::places &found = *reinterpret_cast<typename vector::places *>(to + first + v * vector::lanes);
      found = step == 2 ? vector::sorted(part[v].found) : part[v].found;
    }
  }
};

/* A vector of any lanes; with `exact`, of any values: NaN is better than all, and the first one found stays. */
template <typename T, typename P, int64_t Bytes, bool Greatest>
struct any_windows : window_lanes<T, P, Bytes, Greatest> {
  typedef window_lanes<T, P, Bytes, Greatest> base;
  typedef typename base::number number;
  int64_t first;
  int64_t count;
  bool exact;

  OPC_INLINED static inline typename base::mask numbers() {
    static const number counted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return *reinterpret_cast<const typename base::mask *>(counted);
  }

  /* All ones for the lanes in [low, high) of the row. */
  OPC_INLINED inline typename base::mask within(int64_t low, int64_t high) {
    const typename base::mask lane = numbers();
    return (lane >= number(low - first)) & (lane < number(high - first));
  }

  /* As that of whole windows, lane by lane. */
  OPC_INLINED inline void start_at(int64_t lane, const window_row &row) {
    first = lane;
    this->start();
    this->keep(within(row.first_low, row.first_high), this->best, P(0));
  }

  /* Takes in the elements of those lanes to which `inside` narrows a range. */
  template <typename S, typename F>
  OPC_INLINED inline void take(const T *row, S step, P place, F inside) {
    int64_t low = 0, high = count;
    inside(low, high);
    if (low >= high) return;
    const bool all = low <= first && first + base::lanes <= high;
    if (all && !exact) {
      base::take(base::load(row + first * step, step), place);
      return;
    }
    const typename base::values here = near(row, step, low, high), best = this->best;
    const typename base::mask counted = this->within(low, high);
    if (exact) {
      const typename base::mask worse = Greatest ? here <= best : here >= best;
      this->keep(~worse & (best == best) & counted, here, place);
    } else {
      base::take(counted ? here : best, place);
    }
  }

  OPC_INLINED inline void put(P *to) { memcpy(to + first, &this->found, sizeof this->found); }

  /* The strip's elements; those of lanes outside of [low, high) are not read. */
  template <typename S>
  OPC_INLINED inline typename base::values near(const T *row, S step, int64_t low, int64_t high) {
#if !defined(__clang__)
    if constexpr (is_fixed<S>) {
      if (high - low >= base::lanes) {
        const int64_t from = greatest(low, least(first, high - base::lanes));
        return __builtin_shuffle(base::load(row + from * step, step), numbers() - number(from - first));
      }
    }
#endif
    typename base::values v{};
    for (int64_t u = 0; u < base::lanes; ++u) {
      const int64_t lane = first + u;
      if (lane >= low && lane < high) v[u] = row[lane * step];
    }
    return v;
  }
};

template <typename T, bool Greatest, int64_t Bytes, typename P, typename S, typename F>
OPC_INLINE void search_strips(P *found, const window_row &row, S step, F candidates) {
  whole_windows<T, P, Bytes, Greatest, strip_vectors> many;
  whole_windows<T, P, Bytes, Greatest, 1> one;
  any_windows<T, P, Bytes, Greatest> any;
  many.clear();
  one.clear();
  any.sum = decltype(any.sum){};
  any.count = row.count;
  any.exact = sizeof(P) != sizeof(T) || !is_fixed<S>;
  for (bool again = true; again;) {
    for (int64_t i = 0; i < row.count;) {
      if constexpr (sizeof(P) == sizeof(T) && is_fixed<S>) {
        if (!any.exact) {
          int64_t next = i;
          if (row.high - i > any.lanes) next = take_whole(many, found, row, i, step, candidates);
          if (next == i) next = take_whole(one, found, row, i, step, candidates);
          if (next > i) {
            i = next;
            continue;
          }
        }
      }
      any.start_at(greatest(0, least(i, row.count - any.lanes)), row);
      candidates(any, step);
      any.put(found);
      i = any.first + any.lanes;
    }
    any.sum += many.sum() + one.sum();
    again = !any.exact && any.holds_nan(any.sum);
    any.exact = true;
  }
}

/* Sets the numbers of the best elements of a row of windows; where there is none, to the least there is. `candidates` takes the
 * elements of the windows in one after the other. Room for a strip beyond the lanes must be there. */
template <typename T, bool Greatest, typename P, typename F>
OPC_INLINE void search_windows(P *found, const window_row &row, int64_t step, F candidates) {
  if constexpr (sizeof(P) != sizeof(T)) {
    search_strips<T, Greatest, least_strip_bytes>(found, row, step, candidates);
  } else {
    with_step(step, [&](auto fixed) OPC_INLINED {
      if constexpr (is_fixed<decltype(fixed)> && strip_bytes > least_strip_bytes) {
        if (row.count >= strip_bytes / int64_t(sizeof(T))) {
          search_strips<T, Greatest, strip_bytes>(found, row, fixed, candidates);
          return;
        }
      }
      search_strips<T, Greatest, least_strip_bytes>(found, row, fixed, candidates);
    });
  }
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
#endif  // OPC_NEST_WINDOW_H
