/* The inner loops of contractions of 8-bit numbers, whose sums are int64. For the files compiled once for each instruction-set variant.
 *
 * Factors are packed as 16-bit numbers, those of two inner points beside each other, so that one instruction multiplies and adds two:
 * a vector of pairs of columns times a pair of a row. A panel has twice the room that takes, for an inner point that is
 * missing in the last pair, which is 0. The sums of a step are 32 bits wide, which hold the products of `inner_block` points; those of all are 64.
 */
#ifndef OPC_CONTRACTION_WHOLE_NUMBERS_H
#define OPC_CONTRACTION_WHOLE_NUMBERS_H

#include "opc/contraction/pack.h"
#include "opc/contraction/vectors.h"
#include "opc/core/widen.h"

namespace opc {
inline namespace OPC_VARIANT {

/* sum + the product of both halves of each lane of a and b. */
OPC_INLINE pairs add_pairs(pairs sum, pairs a, pairs b) {
#if defined(__AVX512BW__)
  typedef int16_t halves __attribute__((vector_size(64)));
#if defined(__clang__)
  return sum + reinterpret_cast<pairs>(__builtin_ia32_pmaddwd512(reinterpret_cast<halves>(a), reinterpret_cast<halves>(b)));
#else
  const auto both = __builtin_ia32_pmaddwd512_mask(reinterpret_cast<halves>(a), reinterpret_cast<halves>(b), pairs{}, -1);
  return sum + reinterpret_cast<pairs>(both);
#endif
#elif defined(__AVX2__)
  typedef int16_t halves __attribute__((vector_size(32)));
  return sum + reinterpret_cast<pairs>(__builtin_ia32_pmaddwd256(reinterpret_cast<halves>(a), reinterpret_cast<halves>(b)));
#elif defined(__SSE2__)
  typedef int16_t halves __attribute__((vector_size(16)));
  return sum + reinterpret_cast<pairs>(__builtin_ia32_pmaddwd128(reinterpret_cast<halves>(a), reinterpret_cast<halves>(b)));
#else
  return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* Whether one instruction of the machine adds such products to a sum: vpdpwssd of AVX512-VNNI, which no level of the psABI has. It is
 * written as assembly, so that the functions here stay those of their variant, and for g++ alone: clang++ refuses it there. */
#if defined(__AVX512BW__) && defined(__GNUC__) && !defined(__clang__)
OPC_INLINE bool adds_pairs_at_once() { return __builtin_cpu_supports("avx512vnni"); }
OPC_INLINE pairs add_pairs_at_once(pairs sum, pairs a, pairs b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
#else
OPC_INLINE bool adds_pairs_at_once() { return false; }
OPC_INLINE pairs add_pairs_at_once(pairs sum, pairs a, pairs b) { return add_pairs(sum, a, b); }
#endif

/* As `multiply_pairs`; `AtOnce` on machines of which `adds_pairs_at_once` tells. */
template <int Rows, int Vectors, bool AtOnce>
OPC_INLINE void multiply_pairs_by(const panel_product &p) {
  typedef int64_t wide __attribute__((vector_size(2 * vector_bytes), aligned(8), may_alias));
  constexpr int lanes = vector_bytes / sizeof(int32_t);
  const int64_t depth = (p.depth + 1) / 2;
  const int32_t *strip = static_cast<const int32_t *>(p.a);
  const int32_t *b = static_cast<const int32_t *>(p.b);
  int64_t *const c = static_cast<int64_t *>(p.c);
  pairs sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[i][v] = pairs{};
  }
  for (int64_t k = 0; k < depth; ++k, strip += Rows, b += Vectors * lanes) {
    pairs column[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) column[v] = *reinterpret_cast<const pairs *>(b + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const pairs row = strip[i] - pairs{};
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) {
        sum[i][v] = AtOnce ? add_pairs_at_once(sum[i][v], row, column[v]) : add_pairs(sum[i][v], row, column[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      wide *const to = reinterpret_cast<wide *>(c + i * p.pitch + v * lanes);
      const wide total = __builtin_convertvector(sum[i][v], wide);
      *to = p.add ? *to + total : total;
    }
  }
}

/* c[i * pitch + j] (+)= sum of a[k][i] * b[k][j], both packed. */
template <int Rows, int Vectors>
static void multiply_pairs(const panel_product &p) {
  if (adds_pairs_at_once()) return multiply_pairs_by<Rows, Vectors, true>(p);
  multiply_pairs_by<Rows, Vectors, false>(p);
}

/* Brings the elements of two lines of a panel, which are whole or 0, beside each other; where the last line is alone, zeros. */
static void pair_lines(int16_t *lines, int64_t width, int64_t depth) {
  constexpr int64_t widest = 3 * vector_bytes / sizeof(int32_t);
  int16_t both[2 * widest];
  for (int64_t k = 0; k < depth; k += 2, lines += 2 * width) {
    const bool alone = k + 1 == depth;
    OPC_SIMD
    for (int64_t i = 0; i < width; ++i) {
      both[2 * i] = lines[i];
      both[2 * i + 1] = alone ? int16_t(0) : lines[width + i];
    }
    memcpy(lines, both, static_cast<size_t>(2 * width) * sizeof(int16_t));
  }
}

template <typename Stored>
static void pack_pairs(const packing &p) {
  pack_panels<Stored, int16_t, sizeof(int32_t)>(p, [&](const packed_panel<int16_t> &panel) { pair_lines(panel.to, panel.width, p.depth); });
}

static void pack_whole(const packing &p) {
  if (p.stored == dtype_int8) return pack_pairs<int8_t>(p);
  if (p.stored == dtype_int16) return pack_pairs<int16_t>(p);
  pack_pairs<uint8_t>(p);
}

/* Adds lines of sums, whose factors are 1. */
static void join_lines(int64_t depth, const void *lines, const line_starts &starts, int64_t *to, int64_t count, bool add) {
  for (int64_t j = 0; j < count && !add; ++j) to[j] = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t *const from = static_cast<const int64_t *>(lines) + starts[k];
    OPC_SIMD
    for (int64_t j = 0; j < count; ++j) to[j] += from[j];
  }
}

/* As many columns at a time as a cache line has bytes; a factor stands in the lower half of a pair, whose upper half is 0. */
template <typename Stored>
static void add_narrow_lines(int64_t depth, const int16_t *a, const Stored *b, const line_starts &starts, int64_t *to, int64_t count, bool add) {
  constexpr int64_t lanes = vector_bytes / sizeof(int32_t), columns = 64, vectors = columns / lanes;
  int64_t j = 0;
  for (; j + columns <= count; j += columns) {
    pairs sum[vectors] = {};
    for (int64_t k = 0; k < depth; ++k) {
      const Stored *const line = b + starts[k] + j;
      const pairs factor = int32_t(uint16_t(a[k])) - pairs{};
#pragma GCC unroll 16
      for (int64_t v = 0; v < vectors; ++v) {
        sum[v] = add_pairs(sum[v], widen_integers<int32_t>(line + v * lanes), factor);
      }
    }
    for (int64_t i = 0; i < columns; ++i) to[j + i] = (add ? to[j + i] : 0) + sum[i / lanes][i % lanes];
  }
  for (; j < count; ++j) {
    int32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += a[k] * b[starts[k] + j];
    to[j] = (add ? to[j] : 0) + sum;
  }
}

template <typename Stored>
static void add_narrow_dots(int64_t depth, const int16_t *a, const Stored *b, const line_starts &starts, int64_t *to, int64_t count, bool add) {
  constexpr int64_t halves = vector_bytes / sizeof(int16_t);
  for (int64_t j = 0; j < count; ++j) {
    const Stored *const from = b + starts[j];
    pairs sum = {};
    int64_t k = 0;
    for (; k + halves <= depth; k += halves) {
      pairs right;
      if constexpr (sizeof(Stored) == 2) {
        right = *reinterpret_cast<const pairs *>(from + k);
      } else {
        right = reinterpret_cast<pairs>(widen_integers<int16_t>(from + k));
      }
      sum = add_pairs(sum, *reinterpret_cast<const pairs *>(a + k), right);
    }
    int32_t total = 0;
    for (unsigned i = 0; i < sizeof sum / sizeof total; ++i) total += sum[i];
    for (; k < depth; ++k) total += a[k] * from[k];
    to[j] = (add ? to[j] : 0) + total;
  }
}

static void add_whole_lines(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                            bool add) {
  int64_t *const to = static_cast<int64_t *>(sums);
  if (stored == dtype_int64) return join_lines(depth, b, starts, to, count, add);
  const int16_t *const row = static_cast<const int16_t *>(a);
  if (stored == dtype_int8) return add_narrow_lines(depth, row, static_cast<const int8_t *>(b), starts, to, count, add);
  if (stored == dtype_int16) return add_narrow_lines(depth, row, static_cast<const int16_t *>(b), starts, to, count, add);
  add_narrow_lines(depth, row, static_cast<const uint8_t *>(b), starts, to, count, add);
}

static void add_whole_dots(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *sums, int64_t count,
                           bool add) {
  int64_t *const to = static_cast<int64_t *>(sums);
  const int16_t *const row = static_cast<const int16_t *>(a);
  if (stored == dtype_int8) return add_narrow_dots(depth, row, static_cast<const int8_t *>(b), starts, to, count, add);
  if (stored == dtype_int16) return add_narrow_dots(depth, row, static_cast<const int16_t *>(b), starts, to, count, add);
  add_narrow_dots(depth, row, static_cast<const uint8_t *>(b), starts, to, count, add);
}

static constexpr contraction_functions contraction_whole = {
    strip_rows,
    vector_bytes / sizeof(int32_t),
    sizeof(int32_t),
    {{multiply_pairs<strip_rows, 1>, multiply_pairs<strip_rows, 2>, multiply_pairs<strip_rows, 3>},
     {multiply_pairs<strip_rows / 2, 1>, multiply_pairs<strip_rows / 2, 2>, multiply_pairs<strip_rows / 2, 3>}},
    {},
    {},
    {},
    {},
    add_whole_lines,
    add_whole_dots,
    pack_whole,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_WHOLE_NUMBERS_H
