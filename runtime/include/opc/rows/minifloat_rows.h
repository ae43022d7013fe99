/* Rows of floats of 16 and 8 bits as floats, and floats as such rows. For the files compiled once for each instruction-set variant.
 *
 * Most are converted by integer arithmetic (opc/core/minifloat.h), float16 by an instruction where the variant has one.
 */
#ifndef OPC_ROWS_MINIFLOAT_ROWS_H
#define OPC_ROWS_MINIFLOAT_ROWS_H

#include "opc/core/minifloat.h"
#include "opc/core/widen.h"
#include "opc/rows/stores.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Elements of a vector of floats. */
enum : int64_t { float_lanes = vector_bytes / sizeof(float) };

/* Elements to what is widened next of a long row: `staged_elements` in opc/rows/plan.h. It is fetched while this block is computed. */
enum : int64_t { next_block = 1024 };

typedef float float_vector __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
typedef int16_t half_vector __attribute__((vector_size(vector_bytes / 2), aligned(2), may_alias));

/* Whether an instruction converts whole vectors of a type: compilers make none of it from a loop. A signalling NaN becomes a quiet one. */
#if defined(__F16C__)
template <typename Stored>
constexpr bool has_vectors = Stored::fraction == 10 && Stored::bias == 15;

OPC_INLINE float_vector widen_vector(half_vector halves) {
#if defined(__AVX512F__)
  return __builtin_ia32_vcvtph2ps512_mask(halves, float_vector{}, -1, 4);
#elif defined(__clang__)
  typedef __fp16 stored __attribute__((vector_size(vector_bytes / 2)));
  return __builtin_convertvector(reinterpret_cast<stored>(halves), float_vector);
#else
  return __builtin_ia32_vcvtph2ps256(halves);
#endif
}

/* Two vectors as one, of whole bytes. */
OPC_INLINE raw_vector join_vectors(half_vector a, half_vector b) {
#if defined(__AVX512F__)
  return reinterpret_cast<raw_vector>(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                              22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
#else
  return reinterpret_cast<raw_vector>(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
#endif
}

/* Rounds to nearest, ties to even. */
OPC_INLINE half_vector narrow_vector(float_vector values) {
#if defined(__AVX512F__)
  return __builtin_ia32_vcvtps2ph512_mask(values, 0, half_vector{}, -1);
#else
  return __builtin_ia32_vcvtps2ph256(values, 0);
#endif
}
#else
template <typename Stored>
constexpr bool has_vectors = false;

OPC_INLINE float_vector widen_vector(half_vector) { return float_vector{}; }
OPC_INLINE half_vector narrow_vector(float_vector) { return half_vector{}; }
OPC_INLINE raw_vector join_vectors(half_vector, half_vector) { return raw_vector{}; }
#endif

template <typename Stored>
__attribute__((noinline)) static void widen_row(float *to, const void *from, int64_t count) {
  const Stored *values = static_cast<const Stored *>(from);
  int64_t i = 0;
  if constexpr (Stored::fraction == 7 && Stored::bias == 127) {
    typedef uint32_t words __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
    for (; i + float_lanes <= count; i += float_lanes) {
      __builtin_prefetch(values + i + next_block);
      *reinterpret_cast<words *>(to + i) = widen_integers<uint32_t>(&values[i].bits) << 16;
    }
  }
  if constexpr (has_vectors<Stored>) {
    for (; i + float_lanes <= count; i += float_lanes) {
      __builtin_prefetch(values + i + next_block);
      *reinterpret_cast<float_vector *>(to + i) = widen_vector(*reinterpret_cast<const half_vector *>(values + i));
    }
  }
  OPC_SIMD
  for (int64_t k = i; k < count; ++k) to[k] = widen(values[k]);
}

template <typename Stored>
__attribute__((noinline)) static void narrow_row(void *to, const float *from, int64_t count) {
  Stored *values = static_cast<Stored *>(to);
  int64_t i = 0;
  if constexpr (has_vectors<Stored>) {
    /* Whole vectors are stored, of two halves: a line that is written at once need not be fetched. */
    for (; i + 2 * float_lanes <= count; i += 2 * float_lanes) {
      const raw_vector both = join_vectors(narrow_vector(*reinterpret_cast<const float_vector *>(from + i)),
                                           narrow_vector(*reinterpret_cast<const float_vector *>(from + i + float_lanes)));
      memcpy(values + i, &both, sizeof both);
    }
  }
#if defined(__aarch64__)
  if constexpr (is_native<Stored>) {
    /* g++ widens four at a time, and would narrow one by one. */
    for (; i + 4 <= count; i += 4) {
      float wide __attribute__((vector_size(16)));
      uint16_t narrow __attribute__((vector_size(8)));
      memcpy(&wide, from + i, sizeof wide);
      __asm__("fcvtn %0.4h, %1.4s" : "=w"(narrow) : "w"(wide));
      memcpy(values + i, &narrow, sizeof narrow);
    }
  }
#endif
  OPC_SIMD
  for (int64_t k = i; k < count; ++k) values[k] = narrow<Stored>(from[k]);
}

/* As `narrow_row`, past the caches: whole vectors of the row are stored so. */
template <typename Stored>
__attribute__((noinline)) static void narrow_row_past(void *to, const float *from, int64_t count) {
  constexpr int64_t lanes = vector_bytes / sizeof(Stored);
  Stored *values = static_cast<Stored *>(to);
  const int64_t before = bytes_to_vector(to) / static_cast<int64_t>(sizeof(Stored));
  int64_t i = before < count ? before : count;
  narrow_row<Stored>(values, from, i);
  for (; i + lanes <= count; i += lanes) {
    raw_vector value;
    if constexpr (has_vectors<Stored>) {
      value = join_vectors(narrow_vector(*reinterpret_cast<const float_vector *>(from + i)),
                           narrow_vector(*reinterpret_cast<const float_vector *>(from + i + float_lanes)));
    } else {
      Stored lane[lanes];
      OPC_SIMD
      for (int64_t k = 0; k < lanes; ++k) lane[k] = narrow<Stored>(from[i + k]);
      memcpy(&value, lane, sizeof value);
    }
    store_nontemporal(values + i, value);
  }
  narrow_row<Stored>(values + i, from + i, count - i);
}

template <typename Stored>
static void narrow_row_anywhere(void *to, const float *from, int64_t count, bool past) {
  if (past) return narrow_row_past<Stored>(to, from, count);
  narrow_row<Stored>(to, from, count);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_MINIFLOAT_ROWS_H
