/* Segments of lines that are packed: elements, or words of two, that lie evenly apart in memory. For the files compiled once for each
 * instruction-set variant.
 */
#ifndef OPC_CONTRACTION_SEGMENTS_H
#define OPC_CONTRACTION_SEGMENTS_H

#include "opc/contraction/contraction.h"
#include "opc/rows/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Copies `count` elements in pieces of Bytes, the last of which may overlap the one before. */
template <int Bytes, typename T>
OPC_INLINE void copy_pieces(T *to, const T *from, int64_t count) {
  constexpr int64_t piece = Bytes / sizeof(T);
  for (int64_t i = 0; i + piece <= count; i += piece) memcpy(to + i, from + i, Bytes);
  memcpy(to + count - piece, from + count - piece, Bytes);
}

template <typename T>
OPC_INLINE void copy_segment(T *to, const T *from, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  if (bytes >= 64) return copy_pieces<64>(to, from, count);
  if (bytes >= 32) return copy_pieces<32>(to, from, count);
  if (bytes >= 16) return copy_pieces<16>(to, from, count);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

template <typename T, typename Stored>
OPC_INLINE void copy_segment(T *to, const Stored *from, int64_t count) {
  OPC_SIMD
  for (int64_t i = 0; i < count; ++i) to[i] = load(from + i);
}

template <typename T, typename Stored>
OPC_INLINE void copy_strided(T *to, const Stored *from, int64_t count, int64_t move) {
  for (int64_t i = 0; i < count; ++i) to[i] = load(from + i * move);
}

/* Every other element: two vectors at a time while there is an element behind them. */
OPC_INLINE void copy_strided(float *to, const float *from, int64_t count, int64_t move) {
  typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
  int64_t i = 0;
  for (; move == 2 && i + 8 < count; i += 8) {
    four part[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) part[k] = *reinterpret_cast<const four *>(from + 2 * i + 4 * k);
    *reinterpret_cast<four *>(to + i) = __builtin_shufflevector(part[0], part[1], 0, 2, 4, 6);
    *reinterpret_cast<four *>(to + i + 4) = __builtin_shufflevector(part[2], part[3], 0, 2, 4, 6);
  }
  for (; i < count; ++i) to[i] = from[i * move];
}

/* The integers that factors of sums of floats may be stored as: each one costs time to compile. */
#ifndef OPC_FACTOR_INTEGERS
#define OPC_FACTOR_INTEGERS
#endif
typedef type_list<OPC_FACTOR_INTEGERS> factor_integers;

/* Calls f(T()) for the type that a factor of floats is stored as, where that is another one; returns whether it is. */
template <typename F>
OPC_INLINE bool with_narrow_factor(dtype stored, F f) {
  return with_type_of(stored, stored_minifloats(), f) || with_type_of(stored, factor_integers(), f);
}

/* The upper half of a float: an integer of 8 bits is one without the lower half. */
template <typename Byte>
OPC_INLINE uint32_t upper_half(Byte value) {
  return bits_of(static_cast<float>(value)) >> 16;
}

/* Where words of two elements begin, of which the other is `second` elements behind the first: halves as they are, or bytes as bfloat16. */
template <typename Stored>
struct word_cursor {
  const Stored *first;
  int64_t second;
  OPC_INLINED word_cursor operator+(int64_t elements) const { return {first + elements, second}; }
};

template <typename Stored>
OPC_INLINE int32_t load(word_cursor<Stored> from) {
  uint32_t low, high;
  if constexpr (sizeof(Stored) == 2) {
    low = static_cast<uint16_t>(from.first[0]);
    high = static_cast<uint16_t>(from.first[from.second]);
  } else {
    low = upper_half(from.first[0]);
    high = upper_half(from.first[from.second]);
  }
  return static_cast<int32_t>(low | high << 16);
}

/* Words whose first elements lie together. */
template <typename Stored>
OPC_INLINE void copy_segment(int32_t *to, word_cursor<Stored> from, int64_t count) {
  int64_t i = 0;
  if constexpr (sizeof(Stored) == 2) {
    typedef int16_t halves __attribute__((vector_size(32), aligned(2), may_alias));
    for (; i + 16 <= count; i += 16) {
      const halves a = *reinterpret_cast<const halves *>(from.first + i);
      const halves b = *reinterpret_cast<const halves *>(from.first + from.second + i);
      halves *const words = reinterpret_cast<halves *>(to + i);
      words[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      words[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  } else {
    const Stored *const low = from.first, *const high = from.first + from.second;
    OPC_SIMD
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<int32_t>(upper_half(low[k]) | upper_half(high[k]) << 16);
    return;
  }
  for (; i < count; ++i) to[i] = load(from + i);
}

/* Words whose first elements lie `move` apart: they are words in memory, too, where the other lies between. */
template <typename Stored>
OPC_INLINE void copy_strided(int32_t *to, word_cursor<Stored> from, int64_t count, int64_t move) {
  if (from.second == 1 && move == 2) {
    if constexpr (sizeof(Stored) == 2) {
      memcpy(to, from.first, static_cast<size_t>(count) * sizeof *to);
    } else {
      typedef uint16_t half __attribute__((may_alias));
      half *const halves = reinterpret_cast<half *>(to);
      OPC_SIMD
      for (int64_t i = 0; i < 2 * count; ++i) halves[i] = static_cast<uint16_t>(upper_half(from.first[i]));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = load(from + i * move);
}

/* Elements as they are stored, or words of two of them; `item` is the size in memory of those that may be read there. */
template <typename Stored>
struct read_from {
  static constexpr bool words = false;
  static constexpr int item = sizeof(Stored);
  static OPC_INLINED const Stored *begin(const char *data, int64_t) { return reinterpret_cast<const Stored *>(data); }
};

template <typename Stored>
struct two_of {};

template <typename Stored>
struct read_from<two_of<Stored>> {
  static constexpr bool words = true;
  static constexpr int item = sizeof(Stored) == 2 ? 2 : 0;
  static OPC_INLINED word_cursor<Stored> begin(const char *data, int64_t second) { return {reinterpret_cast<const Stored *>(data), second}; }
};

template <typename T>
OPC_INLINE void clear_segment(T *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_SEGMENTS_H
