/* Batched rows: as many short rows at once as a vector has lanes, each row in a lane.
 *
 * A row of a vector or less leaves lanes idle, and each of its reductions ends in joins of the lanes that wait for each other. Turned
 * over, its values stand one below the other: a reduction is then one operation a column for all rows, whatever their length, and
 * nothing is left to join.
 */
#ifndef OPC_ROWS_BATCHED_ROWS_H
#define OPC_ROWS_BATCHED_ROWS_H

#include "opc/core/lanes.h"
#include "opc/core/stage.h"
#include "opc/core/transpose.h"

namespace opc {
inline namespace OPC_VARIANT {

/* The number of columns from which rows are not batched: in rows of several vectors most lanes are in use anyway. Of the widest vectors
 * it is one less, as those take whole lines of many rows at a time, which memory brings slowly. */
template <int Lanes, int Vectors>
constexpr int max_batched_columns = (int(vector_bytes) < int(line_bytes) ? Vectors : Vectors - 1) * Lanes;

/* Whether the rows of a call are batched: short ones, of which its tiles have enough. A last incomplete batch is one too, at any cost:
 * the order of a row's sum may not depend on its neighbours. Rows of whole vectors, which leave no lane idle, only if `Whole` is
 * true. */
template <int Lanes, int Vectors, bool Whole = true>
OPC_INLINE bool batches_rows(const tile &t) {
  const bool is_short = t.columns < max_batched_columns<Lanes, Vectors> && t.segment == 0;
  return is_short && 2 * t.most_rows >= Lanes && (Whole || t.columns % Lanes != 0);
}

/* Rows from `first` on that there are, up to Lanes. */
template <int Lanes>
OPC_INLINE int64_t rows_in_batch(const tile &t, int64_t first) {
  return t.rows - first < Lanes ? t.rows - first : Lanes;
}

/* Loads a batch: transposes rows of an operand from `first` on. */
template <int Lanes, typename T>
OPC_INLINE void load_batch(const tile &t, int operand, int64_t first, T *columns) {
  typedef typename moved_as<sizeof(T)>::type bits;
  if (first > 0 && t.step[operand] == 0) return; /* the same row again */
  const int64_t count = rows_in_batch<Lanes>(t, first);
  transpose_rows<false, bits, Lanes>(columns, row<T>(t, operand, first), t.step[operand], count, t.columns);
}

/* Stores a batch as rows of an operand from `first` on. */
template <int Lanes, typename T>
OPC_INLINE void store_batch(const tile &t, int operand, int64_t first, T *columns) {
  typedef typename moved_as<sizeof(T)>::type bits;
  const int64_t count = rows_in_batch<Lanes>(t, first);
  transpose_rows<true, bits, Lanes>(columns, row<T>(t, operand, first), t.step[operand], count, t.columns);
}

/* Loads the values of an operand that has one a row; the last stands for those that are missing. */
template <int Lanes, typename T>
OPC_INLINE void load_values(const tile &t, int operand, int64_t first, T *values) {
  const int64_t count = rows_in_batch<Lanes>(t, first);
  const T *from = row<T>(t, operand, first);
  for (int64_t i = 0; i < Lanes; ++i) values[i] = from[(i < count ? i : count - 1) * t.step[operand]];
}

template <int Lanes, typename T>
OPC_INLINE void store_values(const tile &t, int operand, int64_t first, const T *values) {
  const int64_t count = rows_in_batch<Lanes>(t, first);
  T *to = row<T>(t, operand, first);
  for (int64_t i = 0; i < count; ++i) to[i * t.step[operand]] = values[i];
}

/* A pointer to an array of columns of which compilers do not know that it is that array: GCC writes the places in one it knows as integers,
 * to which any store may go, and then leaves the partial results of reductions in memory. */
template <typename T>
OPC_INLINE T *columns_at(T *columns) {
  return static_cast<T *>(__builtin_assume_aligned(__builtin_launder(columns), line_bytes));
}

/* Runs `step` at each element of a batch: with the column, the place of the element, the lane, and its partial results. */
template <int Lanes, typename Step, typename... Reductions>
OPC_INLINE void reduce_batch(int64_t columns, const Step &step, Reductions &...reductions) {
  (start_reduction(reductions), ...);
  for (int64_t n = 0; n < columns; ++n) {
    OPC_SIMD_LANES
    for (int lane = 0; lane < Lanes; ++lane) step(n, n * Lanes + lane, lane, reductions.at(lane)...);
  }
}

/* The results of a maximum or minimum of a batch: of keys, or of floating values. */
template <typename Joins, typename Key, int Lanes, typename T>
OPC_INLINE void values_of(const row_reduction<Joins, Key, Lanes> &reduction, T *values) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) values[i] = key_value<T>(reduction.lane[i]);
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void values_of(const row_extreme<Joins, T, Lanes> &reduction, T *values) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) {
    const T value = reduction.lane[i];
    values[i] = reduction.nan[i] < 0 ? T(__builtin_nan("")) : value;
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_BATCHED_ROWS_H
