/* Searches over windows: for each lane of a row, which of the elements in its window is the greatest or least. For the files compiled
 * once for each instruction-set variant.
 *
 * A strip of lanes keeps its best values and their numbers in vectors while it goes over the window, so that the row is read and
 * nothing else touches memory until the numbers are stored.
 */
#ifndef OPC_NEST_WINDOW_H
#define OPC_NEST_WINDOW_H

#include "opc/lanes.h"
#include "opc/nest_lanes.h"

namespace opc {
inline namespace OPC_VARIANT {

constexpr int64_t least_strip_bytes = 16;
constexpr int strip_vectors = 3; /* of a strip: 16 registers hold what is kept of so many */
#if defined(__AVX512F__)
constexpr int64_t strip_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t strip_bytes = 32;
#else
constexpr int64_t strip_bytes = least_strip_bytes;
#endif

/* The lanes of a row: in [low, high) the whole window lies inside of what is searched, in [first_low, first_high) its first element. */
struct window_row {
  int64_t count;
  int64_t low;
  int64_t high;
  int64_t first_low;
  int64_t first_high;
};

template <typename S>
constexpr bool is_fixed = false;
template <int64_t Value>
constexpr bool is_fixed<constant<Value>> = true;

/* Integers as wide as T, which comparisons of vectors give. */
template <size_t Size>
struct mask_element {
  typedef int32_t type;
};
template <>
struct mask_element<8> {
  typedef int64_t type;
};

/* A vector of lanes and what a search has found for each: the best value, and its number, the least there is where nothing was found.
 * Values that are not NaN are assumed: `sum`, of all values, is NaN where one was, and seldom else. */
template <typename T, typename P, int64_t Bytes, bool Greatest>
struct window_lanes {
  static constexpr int64_t lanes = Bytes / int64_t(sizeof(T));
  typedef typename mask_element<sizeof(T)>::type number;
  typedef T values __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  typedef number mask __attribute__((vector_size(Bytes), aligned(alignof(number)), may_alias));
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

  OPC_INLINED inline bool is_unsure() {
    const mask odd = sum != sum;
    int64_t parts[Bytes / 8], any = 0;
    memcpy(parts, &odd, sizeof parts);
#pragma GCC unroll 8
    for (int64_t u = 0; u < Bytes / 8; ++u) any |= parts[u];
    return any != 0;
  }

  /* The elements from[0], from[step], ... */
  OPC_INLINED static inline values load(const T *from, constant<1>) { return *reinterpret_cast<const values *>(from); }
  OPC_INLINED static inline values load(const T *from, constant<2>) { return sorted(load_mixed(from, constant<2>())); }
  OPC_INLINED static inline values load(const T *from, int64_t step) {
    values v;
    for (int64_t u = 0; u < lanes; ++u) v[u] = from[u * step];
    return v;
  }

  /* The same in an order of its own, which takes one instruction: within parts of 16 bytes. */
  OPC_INLINED static inline values load_mixed(const T *from, constant<1>) { return load(from, constant<1>()); }
  OPC_INLINED static inline values load_mixed(const T *from, constant<2>) {
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
      const typename vector::places found = step == 2 ? vector::sorted(part[v].found) : part[v].found;
      memcpy(to + first + v * vector::lanes, &found, sizeof found);
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

/* Searches a strip of whole windows from lane i on, or, near their end, one that ends there; returns the lane behind it, or i where more
 * lanes are needed. */
template <typename Whole, typename P, typename S, typename F>
OPC_INLINE int64_t search_whole(Whole &whole, P *found, const window_row &row, int64_t i, S step, F candidates) {
  const int64_t first = least(i, row.high - Whole::lanes);
  if (first < row.low || i >= row.high) return i;
  whole.start(first, row);
  candidates(whole, step);
  whole.put(found, step);
  return first + Whole::lanes;
}

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
          if (row.high - i > any.lanes) next = search_whole(many, found, row, i, step, candidates);
          if (next == i) next = search_whole(one, found, row, i, step, candidates);
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
    again = !any.exact && any.is_unsure();
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
