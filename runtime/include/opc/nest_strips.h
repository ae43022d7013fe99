/* Strips of the lanes of a row, in vectors: for the files compiled once for each instruction-set variant. */
#ifndef OPC_NEST_STRIPS_H
#define OPC_NEST_STRIPS_H

#include "opc/lanes.h"
#include "opc/nest_lanes.h"

namespace opc {
inline namespace OPC_VARIANT {

constexpr int64_t least_strip_bytes = 16;
constexpr int strip_vectors = 3; /* of a strip: 16 registers hold what is kept of so many */
#if defined(__AVX512F__)
constexpr int64_t strip_bytes = 64;
#elif defined(__AVX__)
constexpr int64_t strip_bytes = 32;
#else
constexpr int64_t strip_bytes = least_strip_bytes;
#endif

/* The lanes of a row: in [low, high) the whole window lies inside of what is searched, in [first_low, first_high) its first element. */
struct window_row {
  int64_t count;
  int64_t low;
  int64_t high;
  int64_t first_low;
  int64_t first_high;
};

template <typename S>
constexpr bool is_fixed = false;
template <int64_t Value>
constexpr bool is_fixed<constant<Value>> = true;

/* Integers as wide as T, which comparisons of vectors give. */
template <size_t Size>
struct mask_element {
  typedef int32_t type;
};
template <>
struct mask_element<8> {
  typedef int64_t type;
};

/* A vector of lanes. */
template <typename T, int64_t Bytes>
struct strip_vector {
  static constexpr int64_t lanes = Bytes / int64_t(sizeof(T));
  typedef typename mask_element<sizeof(T)>::type number;
  typedef T values __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  typedef number mask __attribute__((vector_size(Bytes), aligned(alignof(number)), may_alias));

  /* Whether one of the values is NaN. */
  OPC_INLINED static inline bool holds_nan(values v) {
    const mask odd = v != v;
    int64_t parts[Bytes / 8], any = 0;
    memcpy(parts, &odd, sizeof parts);
#pragma GCC unroll 8
    for (int64_t u = 0; u < Bytes / 8; ++u) any |= parts[u];
    return any != 0;
  }

  /* The elements from[0], from[step], ... */
  OPC_INLINED static inline values load(const T *from, constant<1>) { return *reinterpret_cast<const values *>(from); }
  OPC_INLINED static inline values load(const T *from, constant<2>) { return sorted(load_mixed(from, constant<2>())); }
  OPC_INLINED static inline values load(const T *from, int64_t step) {
    values v;
    for (int64_t u = 0; u < lanes; ++u) v[u] = from[u * step];
    return v;
  }

  /* The same in an order of its own, which takes one instruction: within parts of 16 bytes. */
  OPC_INLINED static inline values load_mixed(const T *from, constant<1>) { return load(from, constant<1>()); }
  OPC_INLINED static inline values load_mixed(const T *from, constant<2>) {
    const values a = load(from, constant<1>()), b = load(from + lanes - 1, constant<1>());
    if constexpr (Bytes == 16 && lanes == 2) {
      return __builtin_shufflevector(a, b, 0, 3);
    } else if constexpr (Bytes == 16) {
      return __builtin_shufflevector(a, b, 0, 2, 5, 7);
    } else if constexpr (lanes == 4) {
      return __builtin_shufflevector(a, b, 0, 5, 2, 7);
    } else if constexpr (Bytes == 32) {
      return __builtin_shufflevector(a, b, 0, 2, 9, 11, 4, 6, 13, 15);
    } else if constexpr (lanes == 8) {
      return __builtin_shufflevector(a, b, 0, 9, 2, 11, 4, 13, 6, 15);
    } else {
      return __builtin_shufflevector(a, b, 0, 2, 17, 19, 4, 6, 21, 23, 8, 10, 25, 27, 12, 14, 29, 31);
    }
  }

  /* Puts what is in that order in the lanes' own. */
  template <typename V>
  OPC_INLINED static inline V sorted(V v) {
    if constexpr (Bytes == 16) {
      return v;
    } else if constexpr (lanes == 4) {
      return __builtin_shufflevector(v, v, 0, 2, 1, 3);
    } else if constexpr (Bytes == 32) {
      return __builtin_shufflevector(v, v, 0, 1, 4, 5, 2, 3, 6, 7);
    } else if constexpr (lanes == 8) {
      return __builtin_shufflevector(v, v, 0, 2, 4, 6, 1, 3, 5, 7);
    } else {
      return __builtin_shufflevector(v, v, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    }
  }
};

/* Searches, or folds, a strip of lanes from lane i on whose whole windows lie inside, or, near their end, one that ends there; returns the
 * lane behind it, or i where more lanes are needed. */
template <typename Whole, typename R, typename S, typename F>
OPC_INLINE int64_t take_whole(Whole &whole, R *results, const window_row &row, int64_t i, S step, F candidates) {
  const int64_t first = least(i, row.high - Whole::lanes);
  if (first < row.low || i >= row.high) return i;
  whole.start(first, row);
  candidates(whole, step);
  whole.put(results, step);
  return first + Whole::lanes;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NEST_STRIPS_H
