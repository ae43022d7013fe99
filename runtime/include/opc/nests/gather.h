/* Rows of elements that each lie at an index of their own: for the files compiled once for each instruction-set variant. */
#ifndef OPC_NESTS_GATHER_H
#define OPC_NESTS_GATHER_H

#include "opc/nests/rows.h"
#include "opc/nests/points.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace opc {
inline namespace OPC_VARIANT {

/* The index of an element that lies outside of its operand. */
constexpr int64_t nowhere = INT64_MIN;

/* Stored elements of a row, each from its own index; what lies nowhere is `other`. No branch: indices of data follow no pattern. */
template <typename Stored, typename T>
OPC_INLINE bool fetch_stored(const char *data, int64_t offset, const int64_t *indices, int64_t low, int64_t high, T other, T *to) {
  const Stored *const from = reinterpret_cast<const Stored *>(data) + offset;
  const Stored none = {};
  int64_t missing = 0;
  for (int64_t i = low; i < high; ++i) {
    const bool inside = indices[i] != nowhere;
    const T found = T(load(inside ? from + indices[i] : &none));
    to[i] = inside ? found : other;
    missing += !inside;
  }
  return missing == 0;
}

#if defined(__AVX512F__) && defined(__AVX512VL__)
/* Eight elements of 4 bytes, or of 8, at a time. */
template <typename T>
OPC_INLINE bool fetch_vectors(const char *data, int64_t offset, const int64_t *indices, int64_t low, int64_t high, T other, T *to) {
  const T *const from = reinterpret_cast<const T *>(data) + offset;
  const __m512i none = _mm512_set1_epi64(nowhere);
  __mmask8 inside = 0xff;
  int64_t i = low;
  if constexpr (sizeof(T) == 4) {
    int32_t bits;
    memcpy(&bits, &other, sizeof(bits));
    const __m256i outside = _mm256_set1_epi32(bits);
    for (; i + 8 <= high; i += 8) {
      const __m512i at = _mm512_loadu_si512(indices + i);
      const __mmask8 lanes = _mm512_cmpneq_epi64_mask(at, none);
      inside &= lanes;
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), _mm512_mask_i64gather_epi32(outside, lanes, at, from, 4));
    }
  } else {
    int64_t bits;
    memcpy(&bits, &other, sizeof(bits));
    const __m512i outside = _mm512_set1_epi64(bits);
    for (; i + 8 <= high; i += 8) {
      const __m512i at = _mm512_loadu_si512(indices + i);
      const __mmask8 lanes = _mm512_cmpneq_epi64_mask(at, none);
      inside &= lanes;
      _mm512_storeu_si512(to + i, _mm512_mask_i64gather_epi64(outside, lanes, at, from, 8));
    }
  }
  const bool rest = fetch_stored<T>(data, offset, indices, i, high, other, to);
  return rest && inside == 0xff;
}
#endif

/* Fetches the elements [low, high) of a row, each from its own index beyond `offset`, or `other` for one that lies nowhere. Returns
 * whether none does. */
template <typename T>
__attribute__((noinline)) static bool fetch_row(const row_nest &n, int32_t operand, int64_t offset, const int64_t *indices, int64_t low,
                                                int64_t high, T other, T *to) {
  const flat_operand &o = n.operands[operand];
  if constexpr (dtype_for<T> == dtype_float32) {
    bool all = false;
    const auto fetch = [&](auto zero) OPC_INLINED {
      all = fetch_stored<decltype(zero)>(o.data, offset, indices, low, high, other, to);
    };
    if (with_type_of(o.stored, stored_minifloats(), fetch)) return all;
  }
#if defined(__AVX512F__) && defined(__AVX512VL__)
  if constexpr (sizeof(T) >= 4) return fetch_vectors(o.data, offset, indices, low, high, other, to);
#endif
  return fetch_stored<T>(o.data, offset, indices, low, high, other, to);
}

/* Adds terms, each at its own index; those that belong nowhere are thrown away, without a branch that follows no pattern. */
template <typename T>
OPC_INLINE void add_row(T *to, const int64_t *indices, const T *terms, int64_t count) {
  T away[8] = {};
  for (int64_t i = 0; i < count; ++i) {
    T *const at = indices[i] != nowhere ? to + indices[i] : away + i % 8;
    *at += terms[i];
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_GATHER_H
