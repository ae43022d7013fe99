/* What the loops of a kernel are built from: included by the files that are compiled once for each instruction-set variant. */
#ifndef OPC_ROWS_LOOPS_H
#define OPC_ROWS_LOOPS_H

#include "opc/rows/batched_rows.h"
#include "opc/core/lanes.h"
#include "opc/core/math.h"
#include "opc/core/minifloat.h"
#include "opc/core/stage.h"
#include "opc/rows/converted_rows.h"
#include "opc/rows/minifloat_rows.h"
#include "opc/core/variant.h"

namespace opc {
inline namespace OPC_VARIANT {

/* An element in the type it is computed in. */
template <typename Stored>
OPC_INLINE compute<Stored> load(const Stored *element) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    return widen(*element);
  } else {
    return *element;
  }
}

/* Rounds a value to an element. */
template <typename Stored>
OPC_INLINE void store(Stored *element, compute<Stored> value) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    *element = narrow<Stored>(value);
  } else {
    *element = value;
  }
}

/* Adds what changes no zero's sign where nothing else is added to it. */
struct joins_terms : joins_sum {
  template <typename T>
  static constexpr T identity = -T(0);
};

/* The sum of a row. */
template <typename T>
static T sum_row(const void *from, int64_t count) {
  const T *values = static_cast<const T *>(from);
  row_reduction<joins_terms, T, count_lanes<T>()> sum;
  reduce_row<count_lanes<T>(), true>(count, nothing_ahead{}, [=](int64_t i, T &to) OPC_INLINED { to += values[i]; }, sum);
  return sum.value;
}

/* Adds the sums over `rows` rows, `pitch` apart, to `to`: strips of columns stay in registers. */
template <typename T>
static void sum_columns(void *to, const void *from, int64_t pitch, int64_t rows, int64_t columns) {
  constexpr int64_t strip = 256 / sizeof(T);
  const T *values = static_cast<const T *>(from);
  T *totals = static_cast<T *>(to);
  int64_t c = 0;
  for (; c + strip <= columns; c += strip) {
    T sums[strip];
    for (int64_t i = 0; i < strip; ++i) sums[i] = -T(0);
    for (int64_t r = 0; r < rows; ++r) {
      OPC_SIMD
      for (int64_t i = 0; i < strip; ++i) sums[i] += values[r * pitch + c + i];
    }
    for (int64_t i = 0; i < strip; ++i) totals[c + i] += sums[i];
  }
  for (; c < columns; ++c) {
    T sum = -T(0);
    for (int64_t r = 0; r < rows; ++r) sum += values[r * pitch + c];
    totals[c] += sum;
  }
}

/* Combines extremes: to[i] with from[i]. */
template <typename T, bool Greatest>
static void extreme_columns(void *to, const void *from, int64_t count) {
  T *extremes = static_cast<T *>(to);
  const T *values = static_cast<const T *>(from);
  OPC_SIMD
  for (int64_t i = 0; i < count; ++i) extremes[i] = Greatest ? maximum(extremes[i], values[i]) : minimum(extremes[i], values[i]);
}

static float sum_row_float(const void *from, int64_t count) { return sum_row<float>(from, count); }
static double sum_row_double(const void *from, int64_t count) { return sum_row<double>(from, count); }

template <typename T>
static void fill_row(void *to, const void *value, int64_t count) {
  const T one = *static_cast<const T *>(value);
  T *values = static_cast<T *>(to);
  OPC_SIMD
  for (int64_t i = 0; i < count; ++i) values[i] = one;
}

/* Sets `count` elements of `size` bytes to one value. */
static void fill_elements(void *to, const void *value, int64_t size, int64_t count) {
  switch (size) {
    case 1: return fill_row<uint8_t>(to, value, count);
    case 2: return fill_row<uint16_t>(to, value, count);
    case 4: return fill_row<uint32_t>(to, value, count);
    default: return fill_row<uint64_t>(to, value, count);
  }
}

template <typename... Stored>
static constexpr row_functions row_functions_for(type_list<Stored...>) {
  row_functions f = {{}, {}, sum_row_float, sum_row_double, sum_columns<float>, sum_columns<double>,
                     extreme_columns<float, true>, extreme_columns<double, true>, extreme_columns<float, false>,
                     extreme_columns<double, false>, fill_elements};
  ((f.widen[Stored::type] = widen_row<Stored>, f.narrow[Stored::type] = narrow_row_anywhere<Stored>), ...);
  return f;
}

static constexpr row_functions rows = row_functions_for(stored_minifloats());

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_LOOPS_H
