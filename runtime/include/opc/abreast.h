/* Short rows abreast: as many as a vector has lanes go along their columns at once, a row a lane.
 *
 * A row of a vector or less leaves lanes idle, and each of its folds ends in joins of the lanes that wait for each other. Turned over,
 * its values stand one below the other: a fold is then one operation a column for all rows, whatever their length, and nothing is left
 * to join. Rows are turned over block by block, by shuffles of registers.
 */
#ifndef OPC_ABREAST_H
#define OPC_ABREAST_H

#include "opc/lanes.h"
#include "opc/stage.h"

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
OPC_INLINE void turn_columns(T *columns, T *rows, int64_t step, int64_t count, int64_t column) {
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
OPC_INLINE void turn_blocks(T *columns, T *rows, int64_t step, int64_t count, int64_t length) {
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
    if (length < Width) return turn_blocks<ToRows, T, Rows, Width / 2>(columns, rows, step, count, length);
    for (int64_t column = 0; column < length; column += Width) {
      turn_columns<ToRows, T, Rows, Width>(columns, rows, step, count, column + Width <= length ? column : length - Width);
    }
  }
}

template <bool ToRows, typename T, int Rows>
__attribute__((noinline)) static void turn_rows(void *columns, void *rows, int64_t step, int64_t count, int64_t length) {
  turn_blocks<ToRows, T, Rows, Rows>(static_cast<T *>(columns), static_cast<T *>(rows), step, count, length);
}

/* From how many columns on rows don't go abreast: in ones some vectors long most lanes are in use as they lie. Of the widest vectors it
 * is one less, as those take whole lines of many rows at a time, which memory brings slowly. */
template <int Lanes, int Vectors>
constexpr int columns_abreast = (int(vector_bytes) < int(line_bytes) ? Vectors : Vectors - 1) * Lanes;

/* Whether the rows of a call go abreast: short ones, of which its tiles have enough. What is left over does too, whatever it costs: the
 * order of a row's sum may not depend on its neighbours. Rows of whole vectors, which leave no lane idle, only where these go too. */
template <int Lanes, int Vectors, bool Whole = true>
OPC_INLINE bool goes_abreast(const tile &t) {
  const bool is_short = t.columns < columns_abreast<Lanes, Vectors> && t.stretch == 0;
  return is_short && 2 * t.most_rows >= Lanes && (Whole || t.columns % Lanes != 0);
}

/* Rows from `first` on that there are, up to Lanes. */
template <int Lanes>
OPC_INLINE int64_t count_abreast(const tile &t, int64_t first) {
  return t.rows - first < Lanes ? t.rows - first : Lanes;
}

/* Turns over rows of an operand from `first` on. */
template <int Lanes, typename T>
OPC_INLINE void take_abreast(const tile &t, int operand, int64_t first, T *columns) {
  typedef typename moved_as<sizeof(T)>::type bits;
  if (first > 0 && t.step[operand] == 0) return; /* the same row again */
  const int64_t count = count_abreast<Lanes>(t, first);
  turn_rows<false, bits, Lanes>(columns, row<T>(t, operand, first), t.step[operand], count, t.columns);
}

/* Puts rows of an operand from `first` on. */
template <int Lanes, typename T>
OPC_INLINE void put_abreast(const tile &t, int operand, int64_t first, T *columns) {
  typedef typename moved_as<sizeof(T)>::type bits;
  const int64_t count = count_abreast<Lanes>(t, first);
  turn_rows<true, bits, Lanes>(columns, row<T>(t, operand, first), t.step[operand], count, t.columns);
}

/* Takes the values of an operand that has one a row; the last stands for those that are missing. */
template <int Lanes, typename T>
OPC_INLINE void take_values(const tile &t, int operand, int64_t first, T *values) {
  const int64_t count = count_abreast<Lanes>(t, first);
  const T *from = row<T>(t, operand, first);
  for (int64_t i = 0; i < Lanes; ++i) values[i] = from[(i < count ? i : count - 1) * t.step[operand]];
}

template <int Lanes, typename T>
OPC_INLINE void put_values(const tile &t, int operand, int64_t first, const T *values) {
  const int64_t count = count_abreast<Lanes>(t, first);
  T *to = row<T>(t, operand, first);
  for (int64_t i = 0; i < count; ++i) to[i * t.step[operand]] = values[i];
}

/* A pointer to an array of columns of which compilers do not know that it is that array: GCC writes the places in one it knows as integers,
 * to which any store may go, and then leaves the partial results of folds in memory. */
template <typename T>
OPC_INLINE T *columns_at(T *columns) {
  return static_cast<T *>(__builtin_assume_aligned(__builtin_launder(columns), line_bytes));
}

/* Runs `step` at each element of rows abreast: with the column, the place of the element, the lane, and its partial results. */
template <int Lanes, typename Step, typename... Folds>
OPC_INLINE void fold_abreast(int64_t columns, const Step &step, Folds &...folds) {
  (start_fold(folds), ...);
  for (int64_t n = 0; n < columns; ++n) {
    OPC_SIMD_LANES
    for (int lane = 0; lane < Lanes; ++lane) step(n, n * Lanes + lane, lane, folds.at(lane)...);
  }
}

/* The results of a maximum or minimum of rows abreast: of keys, or of floating values. */
template <typename Joins, typename Key, int Lanes, typename T>
OPC_INLINE void values_of(const row_fold<Joins, Key, Lanes> &fold, T *values) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) values[i] = key_value<T>(fold.lane[i]);
}

template <typename Joins, typename T, int Lanes>
OPC_INLINE void values_of(const row_extreme<Joins, T, Lanes> &fold, T *values) {
  OPC_SIMD
  for (int i = 0; i < Lanes; ++i) {
    const T value = fold.lane[i];
    values[i] = fold.nan[i] < 0 ? T(__builtin_nan("")) : value;
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ABREAST_H
