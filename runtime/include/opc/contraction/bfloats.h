/* The inner loops of contractions of words of two bfloat16, whose sums are float, on machines with AVX512-BF16; opc/contraction/words.h makes
 * them. For the files compiled once for each instruction-set variant.
 */
#ifndef OPC_CONTRACTION_BFLOATS_H
#define OPC_CONTRACTION_BFLOATS_H

#include "opc/contraction/few_rows.h"

/* No level of the psABI has the instruction, so that its functions alone are compiled for it. */
#if defined(__AVX512BW__) && !defined(__clang__) && __GNUC__ >= 10
#define OPC_HAS_BFLOATS 1
#define OPC_BFLOAT_INSTRUCTIONS __attribute__((target("avx512bf16")))
#define OPC_ADD_BFLOATS __builtin_ia32_dpbf16ps_v16sf
#define OPC_NARROW_FLOATS __builtin_ia32_cvtneps2bf16_v16sf
#else
#define OPC_HAS_BFLOATS 0
#endif

namespace opc {
inline namespace OPC_VARIANT {

#if OPC_HAS_BFLOATS
typedef vector_of<float>::type floats;
#if __GNUC__ < 13
typedef int16_t bfloats __attribute__((vector_size(vector_bytes)));
#else
typedef __bf16 bfloats __attribute__((vector_size(vector_bytes)));
#endif

typedef int32_t loose_word __attribute__((aligned(alignof(uint16_t)), may_alias));
typedef int16_t narrow_floats __attribute__((vector_size(vector_bytes / 2), aligned(alignof(uint16_t)), may_alias));

/* As `multiply` in opc/contraction/kernels.h, of words. Results are narrowed to the nearest by an instruction that makes 0 of subnormal
 * numbers, of which there are none among the sums. */
template <product Of, int Rows, int Vectors, into To = into::sums>
OPC_BFLOAT_INSTRUCTIONS static void multiply_words(const panel_product &p) {
  constexpr int lanes = vector_bytes / sizeof(int32_t);
  constexpr bool windows = Of == product::windows, lines = Of == product::lines;
  constexpr bool follow = windows || To == into::results; /* the packed columns of steps */
  const int64_t depth = p.depth, pitch = p.pitch;
  const int64_t *const offsets = p.offsets, *const inner = p.inner;
  const int32_t *b = static_cast<const int32_t *>(p.b);
  const int32_t *strip = static_cast<const int32_t *>(p.a), *a[Rows];
  const loose_word *line[Rows];
  const float added = static_cast<float>(p.added);
  void *const c = p.c;
  const bool add = p.add;
  floats sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    if constexpr (windows) a[i] = strip + p.rows[i];
    if constexpr (lines) line[i] = reinterpret_cast<const loose_word *>(static_cast<const uint16_t *>(p.a) + p.rows[i] + *inner);
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) sum[i][v] = floats{};
  }
  for (int64_t k = 0; k < depth; ++k, strip += Rows, b += follow ? Vectors * lanes : 0) {
    const int32_t *const from = follow ? b : b + offsets[k];
    const int64_t at = windows ? inner[k] : 0;
    pairs column[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) column[v] = *reinterpret_cast<const pairs *>(from + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const pairs row = (windows ? a[i][at] : lines ? line[i][k] : strip[i]) - pairs{};
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) {
        sum[i][v] = OPC_ADD_BFLOATS(sum[i][v], reinterpret_cast<bfloats>(column[v]), reinterpret_cast<bfloats>(row));
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const int64_t at = i * pitch + v * lanes;
      if constexpr (To == into::results) {
        const floats result = sum[i][v] + added;
        *reinterpret_cast<narrow_floats *>(static_cast<uint16_t *>(c) + at) = reinterpret_cast<narrow_floats>(OPC_NARROW_FLOATS(result));
      } else {
        floats *const to = reinterpret_cast<floats *>(static_cast<float *>(c) + at);
        *to = add ? *to + sum[i][v] : sum[i][v];
      }
    }
  }
}

/* The least biased exponent of `count` elements other than zeros: 0 of a subnormal number, `no_exponent` where all are zeros. */
static inline int32_t least_exponent(const void *elements, int64_t count) {
  const uint16_t *const from = static_cast<const uint16_t *>(elements);
  uint16_t least = UINT16_MAX; /* of the magnitudes less 1, so that a zero is the greatest */
  OPC_PRAGMA(omp simd reduction(min : least))
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t magnitude = static_cast<uint16_t>((from[i] & 0x7fff) - 1);
    least = magnitude < least ? magnitude : least;
  }
  return least == UINT16_MAX ? int32_t(no_exponent) : (least + 1) >> 7;
}

template <typename Stored>
static constexpr contraction_functions contraction_words = {
    strip_rows,
    vector_bytes / sizeof(int32_t),
    sizeof(int32_t),
    {{multiply_words<product::plain, strip_rows, 1>, multiply_words<product::plain, strip_rows, 2>, multiply_words<product::plain, strip_rows, 3>},
     {multiply_words<product::plain, strip_rows / 2, 1>, multiply_words<product::plain, strip_rows / 2, 2>,
      multiply_words<product::plain, strip_rows / 2, 3>}},
    {multiply_words<product::windows, strip_rows, 1>, multiply_words<product::windows, strip_rows, 2>,
     multiply_words<product::windows, strip_rows, 3>},
    {multiply_words<product::plain, strip_rows, 1, into::results>, multiply_words<product::plain, strip_rows, 2, into::results>,
     multiply_words<product::plain, strip_rows, 3, into::results>},
    {multiply_words<product::lines, strip_rows, 1>, multiply_words<product::lines, strip_rows, 2>, multiply_words<product::lines, strip_rows, 3>},
    {multiply_words<product::lines, strip_rows, 1, into::results>, multiply_words<product::lines, strip_rows, 2, into::results>,
     multiply_words<product::lines, strip_rows, 3, into::results>},
    add_lines<float>, /* what is added up in parts is float */
    nullptr,
    pack_words,
    copy_words,
    nullptr,
    nullptr,
    least_exponent};
#endif

/* These functions, where bfloat16 is among the types that operands are stored as and the variant may run on machines that have the
 * instruction. */
template <typename... Stored>
static constexpr const contraction_functions *words_among(type_list<Stored...>) {
  const contraction_functions *found = nullptr;
#if OPC_HAS_BFLOATS
  const auto look = [&](auto stored) {
    if constexpr (dtype_for<decltype(stored)> == dtype_bfloat16) found = &contraction_words<decltype(stored)>;
  };
  (look(Stored()), ...);
#endif
  return found;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_BFLOATS_H
