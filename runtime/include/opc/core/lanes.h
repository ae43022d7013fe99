/* What loops along a row are written with, so that compilers vectorise them. */
#ifndef OPC_CORE_LANES_H
#define OPC_CORE_LANES_H

#include "opc/core/math.h"

/* For a lambda: inlined always, as OPC_INLINE. */
#define OPC_INLINED __attribute__((always_inline))

namespace opc {
inline namespace OPC_VARIANT {

template <typename Bits, typename T>
OPC_INLINE T blend_bits(bool condition, T then, T other) {
  const Bits mask = -Bits(condition);
  Bits a, b;
  memcpy(&a, &then, sizeof a);
  memcpy(&b, &other, sizeof b);
  b ^= (a ^ b) & mask;
  memcpy(&other, &b, sizeof b);
  return other;
}

/* One of two floating values, both of which are computed: a choice by bits, which no compiler turns into a branch. */
template <typename T>
OPC_INLINE T blend(bool condition, T then, T other) {
  if constexpr (sizeof(T) == 4) {
    return blend_bits<int32_t>(condition, then, other);
  } else {
    return blend_bits<int64_t>(condition, then, other);
  }
}

/* One of two values, both of which are computed. In a plain choice clang++ moves what only one side needs under the condition, loads too,
 * which are then masked: memory brings these half as fast. */
template <typename T>
OPC_INLINE T choose(bool condition, T then, T other) {
  return condition ? then : other;
}

#if defined(__AVX512F__)
enum : int { vector_bytes = 64 };
#elif defined(__AVX2__)
enum : int { vector_bytes = 32 };
#else
enum : int { vector_bytes = 16 };
#endif

/* Elements of the widest of some types in a vector. */
template <typename... T>
constexpr int count_lanes() {
  int widest = 4;
  ((widest = int(sizeof(T)) > widest ? int(sizeof(T)) : widest), ...);
  return vector_bytes / widest;
}

/* What the maximum or minimum of values of a type is taken of. */
template <typename T>
using key = typename limits<T>::key;

/* How partial results of a reduction are joined. */
#define OPC_JOINS(name, start, joined)     \
  struct joins_##name {                    \
    template <typename T>                  \
    static constexpr T identity = start;   \
    template <typename T>                  \
    OPC_INLINE T join(T a, T b) {          \
      return joined;                       \
    }                                      \
  };
OPC_JOINS(sum, T(0), T(a + b))
OPC_JOINS(prod, T(1), T(a * b))
OPC_JOINS(max, limits<T>::lowest, a > b ? a : b)
OPC_JOINS(min, limits<T>::highest, a < b ? a : b)
OPC_JOINS(any, false, a | b)
OPC_JOINS(all, true, a & b)
#undef OPC_JOINS

/* A reduction along a row: partial results of the lanes of a vector, then the result. */
template <typename Joins, typename T, int Lanes>
struct row_reduction {
  typedef Joins joins;
  T lane[Lanes];
  T value;
  OPC_INLINED T &at(int i) { return lane[i]; }
  OPC_INLINED T &last() { return value; }
};

/* One partial result of a maximum or minimum of floating values: the extreme, and whether there was a NaN, which is then -1 and else 1.
 * To look for NaNs beside the extreme takes half the operations that keys of values do. */
template <typename Joins, typename T>
struct extreme {
  T &value;
  key<T> &nan;
  OPC_INLINED void take(T x) const {
    value = Joins::join(value, x); /* drops a NaN sooner or later */
    nan |= -key<T>(x != x);
  }
};

/* A maximum or minimum of floating values along a row, NaN where one of them is. */
template <typename Joins, typename T, int Lanes>
struct row_extreme {
  typedef Joins joins;
  T lane[Lanes];
  key<T> nan[Lanes];
  T value;
  key<T> any_nan;
  OPC_INLINED extreme<Joins, T> at(int i) { return {lane[i], nan[i]}; }
  OPC_INLINED extreme<Joins, T> last() { return {value, any_nan}; }
  OPC_INLINED T result() const { return any_nan < 0 ? T(__builtin_nan("")) : value; }
};

template <typename Joins, int Lanes, typename T>
OPC_INLINE T join_lanes(T *lane) {
  if constexpr (Lanes == 1) {
    return lane[0];
  } else {
    OPC_SIMD
    for (int i = 0; i < Lanes / 2; ++i) lane[i] = Joins::join(lane[i], lane[i + Lanes / 2]);
    return join_lanes<Joins, Lanes / 2>(lane);
  }
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void start_reduction(row_reduction<Joins, T, Lanes> &reduction) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) reduction.lane[i] = Joins::template identity<T>;
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void start_reduction(row_extreme<Joins, T, Lanes> &reduction) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) reduction.lane[i] = Joins::template identity<T>;
  OPC_SIMD
  /* zeros would be stored by halves of a vector, which no load of it waits for gladly */
  for (int i = 0; i < Lanes; ++i) reduction.nan[i] = 1;
}

template <typename Joins, int Lanes, typename T>
OPC_INLINE void join_vectors(T *a, const T *b, const T *c, const T *d) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) a[i] = Joins::join(Joins::join(a[i], b[i]), Joins::join(c[i], d[i]));
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void join_reductions(row_reduction<Joins, T, Lanes> &a, const row_reduction<Joins, T, Lanes> &b,
                                const row_reduction<Joins, T, Lanes> &c, const row_reduction<Joins, T, Lanes> &d) {
  join_vectors<Joins, Lanes>(a.lane, b.lane, c.lane, d.lane);
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void join_reductions(row_extreme<Joins, T, Lanes> &a, const row_extreme<Joins, T, Lanes> &b,
                                const row_extreme<Joins, T, Lanes> &c, const row_extreme<Joins, T, Lanes> &d) {
  join_vectors<Joins, Lanes>(a.lane, b.lane, c.lane, d.lane);
  join_vectors<joins_any, Lanes>(a.nan, b.nan, c.nan, d.nan);
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void join_reduction(row_reduction<Joins, T, Lanes> &reduction) {
  reduction.value = join_lanes<Joins, Lanes>(reduction.lane);
}

/* Joins keys, in which NaNs come first: one join, not two. */
template <typename Joins, typename T, int Lanes>
OPC_INLINE void join_reduction(row_extreme<Joins, T, Lanes> &reduction) {
  constexpr key<T> first = Joins::template identity<T> < T(0) ? limits<key<T>>::highest : limits<key<T>>::lowest;
  key<T> keys[Lanes];
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) keys[i] = reduction.nan[i] < 0 ? first : order_key(reduction.lane[i]);
  const key<T> joined = join_lanes<Joins, Lanes>(keys);
  reduction.any_nan = joined == first ? key<T>(-1) : key<T>(1);
  reduction.value = key_value<T>(joined);
}

/* Asks memory for what a pointer points to. It must not be a call: a loop with one is not vectorised. */
OPC_INLINE void prefetch(const void *pointer) { __builtin_prefetch(pointer); }

/* What a loop along a row does about rows it will come to: nothing. */
struct nothing_ahead {
  OPC_INLINED void operator()(int64_t) const {}
};

template <typename Ahead>
constexpr bool looks_ahead = true;
template <>
inline constexpr bool looks_ahead<nothing_ahead> = false;

enum : int { line_bytes = 64 };

/* Calls `ahead` at the elements of a vector, the `nth` of some that lie side by side, unless the one before was in the same line. */
template <int Lanes, typename Ahead>
OPC_INLINE void look_ahead(const Ahead &ahead, int64_t i, int nth) {
  if (nth * int(vector_bytes) % int(line_bytes) == 0) ahead(i + nth * Lanes);
}

/* Runs `step` with four vectors of partial results in turn, so that no step waits for the one before. */
template <int Lanes, typename Ahead, typename Step, typename... Reductions>
struct unrolled_reduction {
  OPC_INLINE int64_t run(int64_t columns, const Ahead &ahead, const Step &step, Reductions &...a, Reductions... b, Reductions... c,
                         Reductions... d) {
    int64_t i = 0;
    for (; i + 4 * Lanes <= columns; i += 4 * Lanes) {
      for (int nth = 0; nth < 4; ++nth) look_ahead<Lanes>(ahead, i, nth);
      OPC_SIMD_PARTS
      for (int lane = 0; lane < Lanes; ++lane) step(i + lane, a.at(lane)...);
      OPC_SIMD_PARTS
      for (int lane = 0; lane < Lanes; ++lane) step(i + Lanes + lane, b.at(lane)...);
      OPC_SIMD_PARTS
      for (int lane = 0; lane < Lanes; ++lane) step(i + 2 * Lanes + lane, c.at(lane)...);
      OPC_SIMD_PARTS
      for (int lane = 0; lane < Lanes; ++lane) step(i + 3 * Lanes + lane, d.at(lane)...);
    }
    (join_reductions(a, b, c, d), ...);
    return i;
  }
};

/* Runs `step` at elements [i, columns) and joins the partial results. */
template <int Lanes, typename Ahead, typename Step, typename... Reductions>
OPC_INLINE void finish_row(int64_t i, int64_t columns, const Ahead &ahead, const Step &step, Reductions &...reductions) {
  for (; i + Lanes <= columns; i += Lanes) {
    ahead(i);
    OPC_SIMD_PARTS
    for (int lane = 0; lane < Lanes; ++lane) step(i + lane, reductions.at(lane)...);
  }
  (join_reduction(reductions), ...);
  for (; i < columns; ++i) step(i, reductions.last()...);
}

/* Runs `step` at each element of a row with the partial results it adds to. Unlike those of an OpenMP reduction, these start and end
 * in vectors, which matters in short rows. A step that is `quick` takes less time than adding up. */
template <int Lanes, bool Quick = false, typename Ahead, typename Step, typename... Reductions>
OPC_INLINE void reduce_row(int64_t columns, const Ahead &ahead, const Step &step, Reductions &...reductions) {
  (start_reduction(reductions), ...);
  if constexpr (Quick) {
    /* An end of its own: else the partial results of short rows, too, would be kept in memory from their start on. */
    if (columns >= 64 * Lanes) {
      const int64_t done =
          unrolled_reduction<Lanes, Ahead, Step, Reductions...>::run(columns, ahead, step, reductions..., reductions..., reductions...,
                                                                     reductions...);
      return finish_row<Lanes>(done, columns, ahead, step, reductions...);
    }
  }
  finish_row<Lanes>(0, columns, ahead, step, reductions...);
}

/* The most rows that are interleaved. */
enum : int64_t { max_interleaved_rows = 8 };

/* How many rows go through a pass before the next pass begins: several short ones. A pass over a short row begins with the result of a
 * reduction and ends in one; while a row waits for that, the other rows have work. */
OPC_INLINE int64_t interleaved_rows(int64_t columns) {
  const int64_t vectors = columns * 4 / vector_bytes;
  return vectors <= 4 ? max_interleaved_rows : vectors <= 8 ? max_interleaved_rows / 2 : 1;
}

/* The index of a row that is peeled off, as a range: empty, at the end, where the row has no such index. */
struct peeled_range {
  int64_t begin, end;
  peeled_range(int64_t index, int64_t columns)
      : begin(index >= 0 && index < columns ? index : columns), end(begin < columns ? begin + 1 : columns) {}
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_LANES_H
