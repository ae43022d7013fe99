/* The inner loops of contractions of two factors of bfloat16, whose sums are float, on machines with AVX512-BF16. For the files compiled
 * once for each instruction-set variant.
 *
 * Factors are packed as they are stored, those of two inner points beside each other: vdpbf16ps multiplies and adds two, each exactly as
 * floats would be, but takes subnormal numbers for 0 and makes 0 of them. So a panel holds the least exponent in it, behind its elements.
 * Products of normal numbers with the biased exponents a and b are multiples of 2^(a + b - 268), as sums of them are, however these are
 * rounded: where that is no less than 2^-126, the least normal float, none of them is subnormal. Other panels are multiplied as floats.
 */
#ifndef OPC_CONTRACTION_BFLOATS_H
#define OPC_CONTRACTION_BFLOATS_H

#include "opc/contraction/few_rows.h"
#include "opc/contraction/pairs.h"

/* No level of the psABI has the instruction, so that its functions alone are compiled for it. */
#if defined(__AVX512BW__) && !defined(__clang__) && __GNUC__ >= 10
#define OPC_HAS_BFLOATS 1
#define OPC_BFLOAT_INSTRUCTIONS __attribute__((target("avx512bf16")))
#define OPC_ADD_BFLOATS __builtin_ia32_dpbf16ps_v16sf
#else
#define OPC_HAS_BFLOATS 0
#endif

namespace opc {
inline namespace OPC_VARIANT {

#if OPC_HAS_BFLOATS
enum : int32_t { never_subnormal = 268 - 126, subnormal = -1024, all_zeros = 1024 };

/* Where a panel of pairs holds the least exponent in it: its room is twice what its pairs take, but for one inner point. */
static inline char *exponent_of(char *panel, int64_t width, int64_t depth) {
  return panel + (width * depth - 1) * static_cast<int64_t>(sizeof(int32_t));
}

static inline void pack_bfloats(const packing &p) {
  pack_pairs<int16_t>(p, [&](const packed_panel<int16_t> &panel) {
    if (p.depth < 2) return;
    const int64_t count = panel.width * ((p.depth + 1) / 2 * 2);
    uint16_t least = UINT16_MAX; /* of the magnitudes less 1, so that a zero is the greatest */
    OPC_PRAGMA(omp simd reduction(min : least))
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t magnitude = static_cast<uint16_t>((panel.to[i] & 0x7fff) - 1);
      least = magnitude < least ? magnitude : least;
    }
    const int32_t exponent = least == UINT16_MAX ? int32_t(all_zeros) : least < 0x7f ? int32_t(subnormal) : (least + 1) >> 7;
    memcpy(exponent_of(reinterpret_cast<char *>(panel.to), panel.width, p.depth), &exponent, sizeof exponent);
  });
}

/* Whether no product of a strip and a panel, and no sum of some of these, is subnormal. */
static inline bool stays_normal(const panel_product &p, int64_t rows, int64_t columns) {
  if (p.depth < 2) return false;
  int32_t a, b;
  memcpy(&a, exponent_of(static_cast<char *>(const_cast<void *>(p.a)), rows, p.depth), sizeof a);
  memcpy(&b, exponent_of(static_cast<char *>(const_cast<void *>(p.b)), columns, p.depth), sizeof b);
  return a + b >= never_subnormal;
}

typedef vector_of<float>::type floats;
#if __GNUC__ < 13
typedef int16_t bfloats __attribute__((vector_size(vector_bytes)));
#else
typedef __bf16 bfloats __attribute__((vector_size(vector_bytes)));
#endif

/* The numbers of the inner point that comes first in each pair, and of the other. */
OPC_INLINE floats first_of(pairs both) { return reinterpret_cast<floats>(both << 16); }
OPC_INLINE floats second_of(pairs both) { return reinterpret_cast<floats>(both & int32_t(0xffff0000)); }

/* c[i * pitch + j] (+)= sum of a[k][i] * b[k][j], both packed. */
template <int Rows, int Vectors, bool AtOnce>
OPC_CONTRACTED OPC_BFLOAT_INSTRUCTIONS static void multiply_bfloats_by(const panel_product &p) {
  constexpr int lanes = vector_bytes / sizeof(float);
  const int64_t depth = (p.depth + 1) / 2;
  const int32_t *strip = static_cast<const int32_t *>(p.a);
  const int32_t *b = static_cast<const int32_t *>(p.b);
  float *const c = static_cast<float *>(p.c);
  floats sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[i][v] = floats{};
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
        if constexpr (AtOnce) {
          sum[i][v] = OPC_ADD_BFLOATS(sum[i][v], reinterpret_cast<bfloats>(column[v]), reinterpret_cast<bfloats>(row));
        } else {
          sum[i][v] += first_of(row) * first_of(column[v]);
          sum[i][v] += second_of(row) * second_of(column[v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      floats *const to = reinterpret_cast<floats *>(c + i * p.pitch + v * lanes);
      *to = p.add ? *to + sum[i][v] : sum[i][v];
    }
  }
}

template <int Rows, int Vectors>
static void multiply_bfloats(const panel_product &p) {
  if (stays_normal(p, Rows, Vectors * vector_bytes / static_cast<int64_t>(sizeof(float)))) return multiply_bfloats_by<Rows, Vectors, true>(p);
  multiply_bfloats_by<Rows, Vectors, false>(p);
}

/* A row that is packed as it is stored, as floats. */
struct widened_line {
  float elements[line_points];
  widened_line(const void *packed, int64_t depth) { widen_row<bfloat16>(elements, packed, depth); }
};

static inline void add_bfloat_lines(int64_t depth, const void *a, const void *b, dtype stored, const int64_t *offsets, void *sums, int64_t count,
                             bool add) {
  /* What is added up in parts is float. */
  if (stored == dtype_float32) return add_lines<float>(depth, a, b, stored, offsets, sums, count, add);
  add_stored_lines(depth, widened_line(a, depth).elements, b, stored, offsets, sums, count, add);
}

static inline void add_bfloat_dots(int64_t depth, const void *a, const void *b, dtype stored, const int64_t *offsets, void *sums, int64_t count,
                            bool add) {
  add_stored_dots(depth, widened_line(a, depth).elements, b, stored, offsets, sums, count, add);
}

template <typename Stored>
static constexpr contraction_functions contraction_bfloats = {
    strip_rows,
    vector_bytes / sizeof(float),
    sizeof(int32_t),
    {{multiply_bfloats<strip_rows, 1>, multiply_bfloats<strip_rows, 2>, multiply_bfloats<strip_rows, 3>},
     {multiply_bfloats<strip_rows / 2, 1>, multiply_bfloats<strip_rows / 2, 2>, multiply_bfloats<strip_rows / 2, 3>}},
    {nullptr, nullptr, nullptr},
    nullptr,
    add_bfloat_lines,
    add_bfloat_dots,
    pack_bfloats,
    nullptr,
    nullptr,
    nullptr};

#endif

/* These functions, where bfloat16 is among the types that operands are stored as and the variant may run on machines that have the
 * instruction. */
template <typename... Stored>
static constexpr const contraction_functions *bfloats_among(type_list<Stored...>) {
  const contraction_functions *found = nullptr;
#if OPC_HAS_BFLOATS
  const auto look = [&](auto stored) {
    if constexpr (dtype_for<decltype(stored)> == dtype_bfloat16) found = &contraction_bfloats<decltype(stored)>;
  };
  (look(Stored()), ...);
#endif
  return found;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_BFLOATS_H
