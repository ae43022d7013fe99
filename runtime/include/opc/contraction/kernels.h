/* The inner loops of contractions: register-blocked kernels and the packing of their factors. For the files compiled once for each
 * instruction-set variant.
 *
 * A strip of rows of one factor, packed, is multiplied with panels of up to three vectors of columns of the other. The sums of a
 * panel stay in registers; with 32 registers, as AVX-512 and aarch64 have, there are 24 of them, with 16 there are 12.
 */
#ifndef OPC_CONTRACTION_KERNELS_H
#define OPC_CONTRACTION_KERNELS_H

#include "opc/contraction/bfloats.h"

namespace opc {
inline namespace OPC_VARIANT {

template <product Of, typename T, int Rows, int Vectors, into To = into::sums>
OPC_CONTRACTED static void multiply(const panel_product &p) {
  OPC_CONTRACT_PRODUCTS
  typedef typename vector_of<T>::type vector;
  constexpr int lanes = vector_bytes / sizeof(T);
  constexpr bool windows = Of == product::windows, follow = windows || To == into::results; /* the packed columns of steps */
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
  for (int64_t k = 0; k < depth; ++k, strip += Rows, b += follow ? Vectors * lanes : 0) {
    const T *const row = follow ? b : b + offsets[k];
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
      *to = To == into::results ? sum[i][v] * scale + added : add ? *to + sum[i][v] : sum[i][v];
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
static constexpr contraction_functions contraction_of(void (*pack)(const packing &), void (*copy)(const padded_copy &), contraction_line line,
                                                      contraction_line dots, const contraction_functions *words) {
  constexpr int rows = strip_rows;
  return {rows,
          vector_bytes / sizeof(T),
          sizeof(T),
          {{multiply<product::plain, T, rows, 1>, multiply<product::plain, T, rows, 2>, multiply<product::plain, T, rows, 3>},
           {multiply<product::plain, T, rows / 2, 1>, multiply<product::plain, T, rows / 2, 2>, multiply<product::plain, T, rows / 2, 3>}},
          {multiply<product::windows, T, rows, 1>, multiply<product::windows, T, rows, 2>, multiply<product::windows, T, rows, 3>},
          {nullptr, nullptr, multiply<product::plain, T, rows, strip_vectors, into::results>},
          {},
          {},
          line,
          dots,
          pack,
          copy,
          all_finite<T>,
          words,
          nullptr};
}

static constexpr contraction_functions contraction_float =
    contraction_of<float>(pack_float, copy_float, add_stored_lines, add_stored_dots, words_among(stored_minifloats()));
static constexpr contraction_functions contraction_double =
    contraction_of<double>(pack_double, copy_double, add_lines<double>, add_dots<double>, nullptr);

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_KERNELS_H
