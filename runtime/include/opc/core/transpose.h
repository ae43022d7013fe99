/* Rows turned over, so that each becomes a lane of the vectors of columns, and back: block by block, by shuffles of registers. */
#ifndef OPC_CORE_TRANSPOSE_H
#define OPC_CORE_TRANSPOSE_H

#include "opc/core/lanes.h"

namespace opc {
inline namespace OPC_VARIANT {

/* The integers below N, as arguments of a template. */
template <int... I>
struct integers {};
template <int N, int... I>
struct integers_below : integers_below<N - 1, N - 1, I...> {};
template <int... I>
struct integers_below<0, I...> {
  typedef integers<I...> type;
};

/* What elements of some bytes are moved as, whatever their type, and integers that name lanes of a vector of them. Floating values are
 * what instruction sets have most shuffles of. */
template <int Bytes>
struct moved_as;
template <>
struct moved_as<1> {
  typedef uint8_t type;
};
template <>
struct moved_as<2> {
  typedef uint16_t type;
};
template <>
struct moved_as<4> {
  typedef float type;
  typedef uint32_t lane;
};
template <>
struct moved_as<8> {
  typedef double type;
  typedef uint64_t lane;
};

template <typename T, int Lanes>
struct lanes_of {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};

#if defined(__clang__)
#define OPC_SHUFFLE(Names, a, b, lane) __builtin_shufflevector(a, b, (lane)...)
#else
#define OPC_SHUFFLE(Names, a, b, lane) __builtin_shuffle(a, b, Names{(lane)...})
#endif

/* Swaps the elements of `a` whose lane has the bit Distance with those of `b` whose lane lacks it. */
template <int Distance, typename Names, typename Vector, int... I>
OPC_INLINE void swap_lanes(Vector &a, Vector &b, integers<I...>) {
  constexpr int lanes = int(sizeof...(I));
  const Vector first = a, second = b;
  a = OPC_SHUFFLE(Names, first, second, (I & Distance) != 0 ? lanes + I - Distance : I);
  b = OPC_SHUFFLE(Names, first, second, (I & Distance) != 0 ? lanes + I : I + Distance);
}

/* Interleaves the first halves, and the second ones, of each four lanes of two vectors. */
template <typename Names, typename Vector, int... I>
OPC_INLINE void interleave(Vector &a, Vector &b, integers<I...>) {
  constexpr int lanes = int(sizeof...(I));
  const Vector first = a, second = b;
  a = OPC_SHUFFLE(Names, first, second, (I & 1) * lanes + (I & ~3) + (I & 3) / 2);
  b = OPC_SHUFFLE(Names, first, second, (I & 1) * lanes + (I & ~3) + (I & 3) / 2 + 2);
}

/* Transposes a square of elements: halves, then quarters, ...; the last squares of four by four by the shuffles that every x86 has. */
template <typename T, int Width, int Distance = Width / 2>
OPC_INLINE void transpose(typename lanes_of<T, Width>::type *v) {
  typedef typename lanes_of<typename moved_as<sizeof(T)>::lane, Width>::type names;
  const typename integers_below<Width>::type lanes = {};
  constexpr bool four = sizeof(T) == 4 && Distance == 2;
  if constexpr (four) {
#pragma GCC unroll 8
    for (int i = 0; i < Width; i += 2) interleave<names>(v[i], v[i + 1], lanes);
  }
  if constexpr (Distance > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < Width; ++i) {
      if ((i & Distance) == 0) swap_lanes<Distance, names>(v[i], v[i + Distance], lanes);
    }
  }
  if constexpr (four) {
#pragma GCC unroll 4
    for (int i = 0; i < Width; i += 4) {
      const typename lanes_of<T, Width>::type third = v[i + 1];
      v[i + 1] = v[i + 2];
      v[i + 2] = third;
    }
  } else if constexpr (Distance > 1) {
    transpose<T, Width, Distance / 2>(v);
  }
}

/* Copies columns [column, column + Width) of `Rows` rows: to_rows false, from rows `step` apart to columns Rows apart, else back. Of
 * rows there are `count`; the last one stands for those that are missing. */
template <bool ToRows, typename T, int Rows, int Width>
OPC_INLINE void transpose_columns(T *columns, T *rows, int64_t step, int64_t count, int64_t column) {
  typedef typename lanes_of<T, Width>::type vector;
  for (int first = 0; first < Rows; first += Width) {
    vector v[Width];
    if constexpr (ToRows) {
#pragma GCC unroll 16
      for (int i = 0; i < Width; ++i) memcpy(&v[i], columns + (column + i) * Rows + first, sizeof(vector));
      transpose<T, Width>(v);
      if (first + Width <= count) {
#pragma GCC unroll 16
        for (int i = 0; i < Width; ++i) memcpy(rows + (first + i) * step + column, &v[i], sizeof(vector));
      } else {
        for (int i = 0; i < Width && first + i < count; ++i) memcpy(rows + (first + i) * step + column, &v[i], sizeof(vector));
      }
    } else {
      const T *row = rows + (first < count ? first : count - 1) * step + column;
#pragma GCC unroll 16
      for (int i = 0; i < Width; ++i) {
        memcpy(&v[i], row, sizeof(vector));
        row += first + i + 1 < count ? step : 0;
      }
      transpose<T, Width>(v);
#pragma GCC unroll 16
      for (int i = 0; i < Width; ++i) memcpy(columns + (column + i) * Rows + first, &v[i], sizeof(vector));
    }
  }
}

/* Turns rows over in blocks of Width columns, or less where they are shorter. The last block may overlap the one before. */
template <bool ToRows, typename T, int Rows, int Width>
OPC_INLINE void transpose_blocks(T *columns, T *rows, int64_t step, int64_t count, int64_t length) {
  if constexpr (sizeof(T) < 4 || Width * sizeof(T) < 16) {
    for (int64_t r = 0; r < (ToRows ? count : Rows); ++r) {
      T *row = rows + (r < count ? r : count - 1) * step;
      for (int64_t i = 0; i < length; ++i) {
        if constexpr (ToRows) {
          memcpy(row + i, columns + i * Rows + r, sizeof(T));
        } else {
          memcpy(columns + i * Rows + r, row + i, sizeof(T));
        }
      }
    }
  } else {
    if (length < Width) return transpose_blocks<ToRows, T, Rows, Width / 2>(columns, rows, step, count, length);
    for (int64_t column = 0; column < length; column += Width) {
      transpose_columns<ToRows, T, Rows, Width>(columns, rows, step, count, column + Width <= length ? column : length - Width);
    }
  }
}

template <bool ToRows, typename T, int Rows>
__attribute__((noinline)) static void transpose_rows(void *columns, void *rows, int64_t step, int64_t count, int64_t length) {
  transpose_blocks<ToRows, T, Rows, Rows>(static_cast<T *>(columns), static_cast<T *>(rows), step, count, length);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_TRANSPOSE_H
