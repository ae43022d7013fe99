/* The inner loops of contractions: register-blocked kernels and the packing of their factors. For the files compiled once for each
 * instruction-set variant.
 *
 * A strip of rows of one factor, packed, is multiplied with panels of up to three vectors of columns of the other. The sums of a
 * panel stay in registers; with 32 registers there are 24 of them, with 16 there are 12.
 */
#ifndef OPC_CONTRACTION_KERNELS_H
#define OPC_CONTRACTION_KERNELS_H

#include "opc/contraction.h"
#include "opc/loops.h"

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

#if defined(__AVX512F__)
enum { vector_bytes = 64, strip_rows = 8 };
#elif defined(__AVX__)
enum { vector_bytes = 32, strip_rows = 4 };
#else
enum { vector_bytes = 16, strip_rows = 4 };
#endif

template <typename T>
struct vector_of {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
};

template <typename T, int Rows, int Vectors>
OPC_CONTRACTED static void multiply_panel(int64_t depth, const void *left, const void *right, const int64_t *offsets, void *sums,
                                          int64_t pitch, bool add) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int lanes = vector_bytes / sizeof(T);
  const T *a = static_cast<const T *>(left);
  const T *b = static_cast<const T *>(right);
  T *c = static_cast<T *>(sums);
  vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[i][v] = vector{};
  }
  for (int64_t k = 0; k < depth; ++k, a += Rows) {
    const T *row = b + offsets[k];
    vector column[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) column[v] = *reinterpret_cast<const vector *>(row + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[i][v] += a[i] * column[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      vector *to = reinterpret_cast<vector *>(c + i * pitch + v * lanes);
      *to = add ? *to + sum[i][v] : sum[i][v];
    }
  }
}

OPC_INLINE float element(const float *from) { return *from; }
OPC_INLINE double element(const double *from) { return *from; }
OPC_INLINE float element(const float16 *from) { return widen(*from); }
OPC_INLINE float element(const bfloat16 *from) { return widen(*from); }

static inline bool consecutive(const int64_t *offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[i - 1] + 1) return false;
  }
  return true;
}

template <typename Stored, typename T>
static void pack_plain(const packing &p) {
  const Stored *from = reinterpret_cast<const Stored *>(p.from);
  T *to = static_cast<T *>(p.to);
  enum : int64_t { block = 32 };
  if (consecutive(p.point, p.count)) {
    for (int64_t k = 0; k < p.depth; ++k) {
      const Stored *row = from + p.point[0] + p.inner[k];
      OPC_SIMD
      for (int64_t i = 0; i < p.count; ++i) to[k * p.width + i] = element(row + i);
    }
  } else if (consecutive(p.inner, p.depth)) {
    for (int64_t k = 0; k < p.depth; k += block) {
      const int64_t depth = p.depth - k < block ? p.depth - k : block;
      for (int64_t i = 0; i < p.count; ++i) {
        const Stored *row = from + p.point[i] + p.inner[k];
        for (int64_t j = 0; j < depth; ++j) to[(k + j) * p.width + i] = element(row + j);
      }
    }
  } else {
    for (int64_t k = 0; k < p.depth; ++k) {
      for (int64_t i = 0; i < p.count; ++i) to[k * p.width + i] = element(from + p.point[i] + p.inner[k]);
    }
  }
}

/* The element of one point where all guards hold, else 0. */
template <typename Stored, typename T>
static T guarded_element(const packing &p, int64_t point, int64_t inner) {
  int64_t at = p.point[point] + p.inner[inner];
  for (int32_t g = 0; g < p.guards; ++g) {
    int64_t index = p.guard[g].base + p.guard[g].point[point] + p.guard[g].inner[inner];
    if (p.guard[g].divisor != 1) {
      if (index % p.guard[g].divisor != 0) return 0;
      index /= p.guard[g].divisor;
    }
    if (index < 0 || index >= p.guard[g].size) return 0;
    at += index * p.guard[g].stride;
  }
  return element(reinterpret_cast<const Stored *>(p.from) + at);
}

/* The number of points from `first` on that lie one after the other in memory and, in each guard, at one index or one after the
 * other: `step` tells which. */
static inline int64_t run_of_points(const packing &p, int64_t first, int64_t *step) {
  int64_t count = 1;
  for (int32_t g = 0; g < p.guards; ++g) step[g] = 0;
  for (; first + count < p.count; ++count) {
    const int64_t at = first + count;
    int64_t moved = p.point[at] - p.point[at - 1];
    for (int32_t g = 0; g < p.guards; ++g) {
      const int64_t by = p.guard[g].point[at] - p.guard[g].point[at - 1];
      if (by < 0 || by > 1 || p.guard[g].divisor != 1 || (count > 1 && by != step[g])) return count;
      moved += by * p.guard[g].stride;
    }
    if (moved != 1) return count;
    if (count > 1) continue;
    for (int32_t g = 0; g < p.guards; ++g) step[g] = p.guard[g].point[at] - p.guard[g].point[at - 1];
  }
  return count;
}

template <typename Stored, typename T>
static void pack_guarded(const packing &p) {
  T *to = static_cast<T *>(p.to);
  for (int64_t first = 0; first < p.count;) {
    int64_t step[max_guards];
    const int64_t count = run_of_points(p, first, step);
    if (count == 1) {
      for (int64_t k = 0; k < p.depth; ++k) to[k * p.width + first] = guarded_element<Stored, T>(p, first, k);
    }
    for (int64_t k = 0; k < p.depth && count > 1; ++k) {
      int64_t begin = 0;
      int64_t end = count;
      int64_t at = p.point[first] + p.inner[k];
      for (int32_t g = 0; g < p.guards; ++g) {
        const int64_t index = p.guard[g].base + p.guard[g].point[first] + p.guard[g].inner[k];
        at += index * p.guard[g].stride;
        if (step[g] == 0) {
          if (index < 0 || index >= p.guard[g].size) end = 0;
        } else {
          if (begin < -index) begin = -index;
          if (end > p.guard[g].size - index) end = p.guard[g].size - index;
        }
      }
      if (end < begin) begin = end = 0;
      T *row = to + k * p.width + first;
      const Stored *from = reinterpret_cast<const Stored *>(p.from) + at;
      for (int64_t i = 0; i < begin; ++i) row[i] = 0;
      OPC_SIMD
      for (int64_t i = begin; i < end; ++i) row[i] = element(from + i);
      for (int64_t i = end; i < count; ++i) row[i] = 0;
    }
    first += count;
  }
}

template <typename Stored, typename T>
static void pack_stored(const packing &p) {
  T *to = static_cast<T *>(p.to);
  for (int64_t k = 0; k < p.depth && p.count < p.width; ++k) {
    for (int64_t i = p.count; i < p.width; ++i) to[k * p.width + i] = 0;
  }
  p.guards == 0 ? pack_plain<Stored, T>(p) : pack_guarded<Stored, T>(p);
}

static void pack_float(const packing &p) {
  switch (p.stored) {
    case dtype_float16: return pack_stored<float16, float>(p);
    case dtype_bfloat16: return pack_stored<bfloat16, float>(p);
    default: return pack_stored<float, float>(p);
  }
}

template <typename T>
static constexpr contraction_functions contraction_of(void (*pack)(const packing &)) {
  return {strip_rows,
          vector_bytes / sizeof(T),
          {{multiply_panel<T, strip_rows, 1>, multiply_panel<T, strip_rows, 2>, multiply_panel<T, strip_rows, 3>},
           {multiply_panel<T, strip_rows / 2, 1>, multiply_panel<T, strip_rows / 2, 2>, multiply_panel<T, strip_rows / 2, 3>}},
          pack};
}

static constexpr contraction_functions contraction_float = contraction_of<float>(pack_float);
static constexpr contraction_functions contraction_double = contraction_of<double>(pack_stored<double, double>);

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_KERNELS_H
