/* The inner loops of contractions of few rows, whose other factor is read where it lies. For the files compiled once for each instruction-set
 * variant.
 */
#ifndef OPC_CONTRACTION_FEW_ROWS_H
#define OPC_CONTRACTION_FEW_ROWS_H

#include "opc/contraction/pack.h"
#include "opc/contraction/vectors.h"

/* Products are added in one rounding where the instruction set can. */
#if defined(__clang__)
#define OPC_CONTRACTED
#define OPC_CONTRACT_PRODUCTS OPC_PRAGMA(clang fp contract(fast))
#else
#define OPC_CONTRACTED __attribute__((optimize("fp-contract=fast")))
#define OPC_CONTRACT_PRODUCTS
#endif

namespace opc {
inline namespace OPC_VARIANT {

/* Four lines at a time, so that the sums are read and written once for four products; the next four are fetched meanwhile. */
template <typename T>
OPC_CONTRACTED static void add_lines(int64_t depth, const void *left, const void *right, dtype, const line_starts &starts, void *sums,
                                     int64_t count, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  const T *a = static_cast<const T *>(left);
  const T *b = static_cast<const T *>(right);
  T *c = static_cast<T *>(sums);
  for (int64_t j = 0; j < count && !add; ++j) c[j] = 0;
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const T *line[4], *next[4];
    vector factor[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      line[i] = b + starts[k + i];
      next[i] = b + starts[k + 8 <= depth ? k + 4 + i : k + i];
      factor[i] = a[k + i] - vector{};
    }
    int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      vector sum = *reinterpret_cast<const vector *>(c + j);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        __builtin_prefetch(next[i] + j);
        sum += factor[i] * *reinterpret_cast<const vector *>(line[i] + j);
      }
      *reinterpret_cast<vector *>(c + j) = sum;
    }
    for (; j < count; ++j) {
      for (int i = 0; i < 4; ++i) c[j] += a[k + i] * line[i][j];
    }
  }
  for (; k < depth; ++k) {
    const T *const b0 = b + starts[k];
    OPC_SIMD
    for (int64_t j = 0; j < count; ++j) c[j] += a[k] * b0[j];
  }
}

/* The sum of the lanes of a vector, halves first. */
template <typename T>
static inline T total_of(const typename vector_of<T>::type &v) {
  typedef T half __attribute__((vector_size(vector_bytes / 2), aligned(alignof(T)), may_alias));
  typedef T pair __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr int pairs = vector_bytes / 32;
  half halves[2];
  memcpy(halves, &v, sizeof v);
  const half both = halves[0] + halves[1];
  pair parts[pairs > 0 ? pairs : 1];
  memcpy(parts, &both, sizeof both);
  for (int i = 1; i < pairs; ++i) parts[0] += parts[i];
  T sum = parts[0][0];
  for (unsigned i = 1; i < (sizeof both < 16 ? sizeof both : 16) / sizeof(T); ++i) sum += parts[0][i];
  return sum;
}

/* Two columns at a time, with two vectors of partial sums each: memory is read from few places at once. */
template <typename T>
OPC_CONTRACTED static void add_dots(int64_t depth, const void *left, const void *right, dtype, const line_starts &starts, void *sums,
                                    int64_t count, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  const T *a = static_cast<const T *>(left);
  const T *b = static_cast<const T *>(right);
  T *c = static_cast<T *>(sums);
  for (int64_t j = 0; j < count; j += 2) {
    const int64_t columns = count - j < 2 ? 1 : 2;
    const T *const from[2] = {b + starts[j], b + starts[j + columns - 1]};
    vector sum[2][2] = {};
    int64_t k = 0;
    for (; k + 2 * lanes <= depth; k += 2 * lanes) {
      const vector low = *reinterpret_cast<const vector *>(a + k);
      const vector high = *reinterpret_cast<const vector *>(a + k + lanes);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        sum[i][0] += low * *reinterpret_cast<const vector *>(from[i] + k);
        sum[i][1] += high * *reinterpret_cast<const vector *>(from[i] + k + lanes);
      }
    }
    for (int64_t i = 0; i < columns; ++i) {
      const vector both = sum[i][0] + sum[i][1];
      T total = (add ? c[j + i] : T(0)) + total_of<T>(both);
      for (int64_t rest = k; rest < depth; ++rest) total += a[rest] * from[i][rest];
      c[j + i] = total;
    }
  }
}

enum : int64_t { widened_columns = 512 };

/* As `add_lines`, of lines of a narrower type: some columns of four of them at a time, which are floats then. */
template <typename Stored>
static void add_widened_lines(int64_t depth, const float *a, const Stored *b, const line_starts &starts, float *c, int64_t count, bool add) {
  constexpr line_starts each = {nullptr, widened_columns};
  float lines[4][widened_columns];
  for (int64_t j = 0; j < count; j += widened_columns) {
    const int64_t columns = count - j < widened_columns ? count - j : widened_columns;
    for (int64_t k = 0; k < depth; k += 4) {
      const int64_t some = depth - k < 4 ? depth - k : 4;
      for (int64_t i = 0; i < some; ++i) widen_row<Stored>(lines[i], b + starts[k + i] + j, columns);
      add_lines<float>(some, a + k, lines, dtype_float32, each, c + j, columns, add || k > 0);
    }
  }
}

/* As `add_dots`, of columns of a narrower type. */
template <typename Stored>
static void add_widened_dots(int64_t depth, const float *a, const Stored *b, const line_starts &starts, float *c, int64_t count, bool add) {
  constexpr line_starts each = {nullptr, line_points};
  float columns[4][line_points];
  for (int64_t j = 0; j < count; j += 4) {
    const int64_t some = count - j < 4 ? count - j : 4;
    for (int64_t i = 0; i < some; ++i) widen_row<Stored>(columns[i], b + starts[j + i], depth);
    add_dots<float>(depth, a, columns, dtype_float32, each, c + j, some, add);
  }
}

/* `add_lines` of floats, whose lines are `stored` as they are. */
static void add_stored_lines(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                             bool add) {
  const auto narrow = [&](auto zero) {
    const auto *const from = static_cast<const decltype(zero) *>(b);
    add_widened_lines(depth, static_cast<const float *>(a), from, starts, static_cast<float *>(sums), count, add);
  };
  if (!with_type_of(stored, stored_minifloats(), narrow)) add_lines<float>(depth, a, b, stored, starts, sums, count, add);
}

static void add_stored_dots(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                            bool add) {
  const auto narrow = [&](auto zero) {
    const auto *const from = static_cast<const decltype(zero) *>(b);
    add_widened_dots(depth, static_cast<const float *>(a), from, starts, static_cast<float *>(sums), count, add);
  };
  if (!with_type_of(stored, stored_minifloats(), narrow)) add_dots<float>(depth, a, b, stored, starts, sums, count, add);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_FEW_ROWS_H
