/* The inner loops of contractions of few rows, whose other factor is read where it lies. For the files compiled once for each instruction-set
 * variant.
 */
#ifndef OPC_CONTRACTION_FEW_ROWS_H
#define OPC_CONTRACTION_FEW_ROWS_H

#include "opc/contraction/pack.h"
#include "opc/contraction/vectors.h"
#include "opc/core/widen.h"

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

/* Whether an instruction or two make a vector of floats of elements as they are stored. */
template <typename Stored>
static constexpr bool widens_at_once() {
  if constexpr (sizeof(compute<Stored>) == sizeof(Stored)) {
    return true;
  } else {
    return (Stored::fraction == 7 && Stored::bias == 127) || has_vectors<Stored>;
  }
}

/* A vector of elements, as they are computed with. */
template <typename T, typename Stored>
OPC_INLINE typename vector_of<T>::type wide_vector(const Stored *from) {
  typedef typename vector_of<T>::type vector;
  if constexpr (sizeof(Stored) == sizeof(T)) {
    return *reinterpret_cast<const vector *>(from);
  } else if constexpr (sizeof(Stored) == 1) {
    return __builtin_convertvector(widen_integers<int32_t>(from), vector);
  } else if constexpr (has_vectors<Stored>) {
    return widen_vector(*reinterpret_cast<const half_vector *>(from));
  } else {
    return reinterpret_cast<vector>(widen_integers<uint32_t>(&from->bits) << 16);
  }
}

/* Four lines at a time, so that the sums are read and written once for four products; the next four are fetched meanwhile. */
template <typename T, typename Stored>
OPC_CONTRACTED static void add_lines_of(int64_t depth, const T *a, const Stored *b, const line_starts &starts, T *c, int64_t count, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  for (int64_t j = 0; j < count && !add; ++j) c[j] = 0;
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const Stored *line[4], *next[4];
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
        sum += factor[i] * wide_vector<T>(line[i] + j);
      }
      *reinterpret_cast<vector *>(c + j) = sum;
    }
    for (; j < count; ++j) {
      for (int i = 0; i < 4; ++i) c[j] += a[k + i] * load(line[i] + j);
    }
  }
  for (; k < depth; ++k) {
    const Stored *const b0 = b + starts[k];
    OPC_SIMD
    for (int64_t j = 0; j < count; ++j) c[j] += a[k] * load(b0 + j);
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
template <typename T, typename Stored>
OPC_CONTRACTED static void add_dots_of(int64_t depth, const T *a, const Stored *b, const line_starts &starts, T *c, int64_t count, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  for (int64_t j = 0; j < count; j += 2) {
    const int64_t columns = count - j < 2 ? 1 : 2;
    const Stored *const from[2] = {b + starts[j], b + starts[j + columns - 1]};
    vector sum[2][2] = {};
    int64_t k = 0;
    for (; k + 2 * lanes <= depth; k += 2 * lanes) {
      const vector low = *reinterpret_cast<const vector *>(a + k);
      const vector high = *reinterpret_cast<const vector *>(a + k + lanes);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        sum[i][0] += low * wide_vector<T>(from[i] + k);
        sum[i][1] += high * wide_vector<T>(from[i] + k + lanes);
      }
    }
    for (int64_t i = 0; i < columns; ++i) {
      const vector both = sum[i][0] + sum[i][1];
      T total = (add ? c[j + i] : T(0)) + total_of<T>(both);
      for (int64_t rest = k; rest < depth; ++rest) total += a[rest] * load(from[i] + rest);
      c[j + i] = total;
    }
  }
}

/* Of elements that are stored as the sums are. */
template <typename T>
static void add_lines(int64_t depth, const void *a, const void *b, dtype, const line_starts &starts, void *c, int64_t count, bool add) {
  add_lines_of(depth, static_cast<const T *>(a), static_cast<const T *>(b), starts, static_cast<T *>(c), count, add);
}

template <typename T>
static void add_dots(int64_t depth, const void *a, const void *b, dtype, const line_starts &starts, void *c, int64_t count, bool add) {
  add_dots_of(depth, static_cast<const T *>(a), static_cast<const T *>(b), starts, static_cast<T *>(c), count, add);
}

enum : int64_t { widened_columns = 512 };

/* As `add_lines`, of lines of a type that takes more to widen: some columns of four of them at a time, which are floats then. */
template <typename Stored>
static void add_widened_lines(int64_t depth, const float *a, const Stored *b, const line_starts &starts, float *c, int64_t count, bool add) {
  constexpr line_starts each = {nullptr, widened_columns};
  float lines[4][widened_columns];
  for (int64_t j = 0; j < count; j += widened_columns) {
    const int64_t columns = count - j < widened_columns ? count - j : widened_columns;
    for (int64_t k = 0; k < depth; k += 4) {
      const int64_t some = depth - k < 4 ? depth - k : 4;
      for (int64_t i = 0; i < some; ++i) widen_row<Stored>(lines[i], b + starts[k + i] + j, columns);
      add_lines_of(some, a + k, lines[0], each, c + j, columns, add || k > 0);
    }
  }
}

/* As `add_dots`, of columns of such a type. */
template <typename Stored>
static void add_widened_dots(int64_t depth, const float *a, const Stored *b, const line_starts &starts, float *c, int64_t count, bool add) {
  constexpr line_starts each = {nullptr, line_points};
  float columns[4][line_points];
  for (int64_t j = 0; j < count; j += 4) {
    const int64_t some = count - j < 4 ? count - j : 4;
    for (int64_t i = 0; i < some; ++i) widen_row<Stored>(columns[i], b + starts[j + i], depth);
    add_dots_of(depth, a, columns[0], each, c + j, some, add);
  }
}

/* `add_lines` of floats, whose lines are `stored` as they are. */
static void add_stored_lines(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                             bool add) {
  const auto narrow = [&](auto zero) {
    const auto *const from = static_cast<const decltype(zero) *>(b);
    const float *const factors = static_cast<const float *>(a);
    if constexpr (widens_at_once<decltype(zero)>()) {
      add_lines_of(depth, factors, from, starts, static_cast<float *>(sums), count, add);
    } else {
      add_widened_lines(depth, factors, from, starts, static_cast<float *>(sums), count, add);
    }
  };
  if (!with_narrow_factor(stored, narrow)) add_lines<float>(depth, a, b, stored, starts, sums, count, add);
}

static void add_stored_dots(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                            bool add) {
  const auto narrow = [&](auto zero) {
    const auto *const from = static_cast<const decltype(zero) *>(b);
    const float *const factors = static_cast<const float *>(a);
    if constexpr (widens_at_once<decltype(zero)>()) {
      add_dots_of(depth, factors, from, starts, static_cast<float *>(sums), count, add);
    } else {
      add_widened_dots(depth, factors, from, starts, static_cast<float *>(sums), count, add);
    }
  };
  if (!with_narrow_factor(stored, narrow)) add_dots<float>(depth, a, b, stored, starts, sums, count, add);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_FEW_ROWS_H
