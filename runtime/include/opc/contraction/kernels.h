/* The inner loops of contractions: register-blocked kernels and the packing of their factors. For the files compiled once for each
 * instruction-set variant.
 *
 * A strip of rows of one factor, packed, is multiplied with panels of up to three vectors of columns of the other. The sums of a
 * panel stay in registers; with 32 registers, as AVX-512 and aarch64 have, there are 24 of them, with 16 there are 12.
 */
#ifndef OPC_CONTRACTION_KERNELS_H
#define OPC_CONTRACTION_KERNELS_H

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

/* What a kernel multiplies: packed rows, rows that lie anywhere with packed columns, or packed ones whose sums are results but for a factor
 * and a zero of either sign that is added: so it makes no difference whether products are rounded before. */
enum class product { plain, windows, scaled };

template <product Of, typename T, int Rows, int Vectors>
OPC_CONTRACTED static void multiply(const panel_product &p) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int lanes = vector_bytes / sizeof(T);
  constexpr bool windows = Of == product::windows;
  const int64_t depth = p.depth, pitch = p.pitch;
  const bool add = p.add;
  const T scale = T(p.scale), added = T(p.added);
  const int64_t *const offsets = p.offsets, *const inner = p.inner;
  const T *b = static_cast<const T *>(p.b);
  T *const c = static_cast<T *>(p.c);
  const T *strip = static_cast<const T *>(p.a), *a[Rows];
  vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    if constexpr (windows) a[i] = strip + p.rows[i];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[i][v] = vector{};
  }
  for (int64_t k = 0; k < depth; ++k, strip += Rows, b += Of == product::plain ? 0 : Vectors * lanes) {
    const T *const row = Of == product::plain ? b + offsets[k] : b;
    const int64_t at = windows ? inner[k] : 0;
    vector column[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) column[v] = *reinterpret_cast<const vector *>(row + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[i][v] += (windows ? a[i][at] : strip[i]) * column[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      vector *to = reinterpret_cast<vector *>(c + i * pitch + v * lanes);
      *to = Of == product::scaled ? sum[i][v] * scale + added : add ? *to + sum[i][v] : sum[i][v];
    }
  }
}

/* Four lines at a time, so that the sums are read and written once for four products; the next four are fetched meanwhile. */
template <typename T>
OPC_CONTRACTED static void add_lines(int64_t depth, const void *left, const void *right, dtype, const int64_t *offsets, void *sums,
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
      line[i] = b + offsets[k + i];
      next[i] = b + offsets[k + 8 <= depth ? k + 4 + i : k + i];
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
    const T *const b0 = b + offsets[k];
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

/* Four columns at a time, with two vectors of partial sums each; the next four are fetched meanwhile. */
template <typename T>
OPC_CONTRACTED static void add_dots(int64_t depth, const void *left, const void *right, dtype, const int64_t *offsets, void *sums,
                                    int64_t count, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  const T *a = static_cast<const T *>(left);
  const T *b = static_cast<const T *>(right);
  T *c = static_cast<T *>(sums);
  for (int64_t j = 0; j < count; j += 4) {
    const int64_t columns = count - j < 4 ? count - j : 4;
    const T *from[4], *next[4];
    for (int64_t i = 0; i < 4; ++i) {
      from[i] = b + offsets[j + (i < columns ? i : 0)];
      next[i] = b + offsets[j + 8 <= count ? j + 4 + i : j];
    }
    vector sum[4][2] = {};
    int64_t k = 0;
    for (; k + 2 * lanes <= depth; k += 2 * lanes) {
      const vector low = *reinterpret_cast<const vector *>(a + k);
      const vector high = *reinterpret_cast<const vector *>(a + k + lanes);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        __builtin_prefetch(next[i] + k);
        __builtin_prefetch(next[i] + k + lanes);
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

/* Whether no element is infinite or NaN. */
template <typename T>
static bool all_finite(const void *elements, int64_t count) {
  typedef typename vector_of<T>::type vector;
  constexpr int64_t lanes = vector_bytes / sizeof(T);
  const T *from = static_cast<const T *>(elements);
  vector nothing[4] = {};
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) nothing[v] += *reinterpret_cast<const vector *>(from + i + v * lanes) * T(0);
  }
  const vector all = nothing[0] + nothing[1] + nothing[2] + nothing[3];
  T sum = 0;
  for (int64_t l = 0; l < lanes; ++l) sum += all[l];
  for (; i < count; ++i) sum += from[i] * T(0);
  return sum == T(0);
}

template <typename T>
static constexpr contraction_functions contraction_of(void (*pack)(const packing &), void (*copy)(const padded_copy &)) {
  constexpr int rows = strip_rows;
  return {rows,
          vector_bytes / sizeof(T),
          sizeof(T),
          {{multiply<product::plain, T, rows, 1>, multiply<product::plain, T, rows, 2>, multiply<product::plain, T, rows, 3>},
           {multiply<product::plain, T, rows / 2, 1>, multiply<product::plain, T, rows / 2, 2>, multiply<product::plain, T, rows / 2, 3>}},
          {multiply<product::windows, T, rows, 1>, multiply<product::windows, T, rows, 2>, multiply<product::windows, T, rows, 3>},
          multiply<product::scaled, T, rows, strip_vectors>,
          add_lines<T>,
          add_dots<T>,
          pack,
          copy,
          all_finite<T>};
}

static constexpr contraction_functions contraction_float = contraction_of<float>(pack_float, copy_float);
static constexpr contraction_functions contraction_double = contraction_of<double>(pack_stored<double, double>, copy_box<double, double>);

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_KERNELS_H
