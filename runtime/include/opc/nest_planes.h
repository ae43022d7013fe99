/* Sums of products over small planes, such as the images and windows of a convolution that keeps channels apart: for the files compiled
 * once for each instruction-set variant.
 *
 * Rows of such planes are shorter than vectors. So the planes of as many channels as a vector has lanes are taken together: element by
 * element they are put side by side in tiles, and a sum of products over a window is one of vectors, whatever the strides are.
 */
#ifndef OPC_NEST_PLANES_H
#define OPC_NEST_PLANES_H

#include "opc/nest_plane_tables.h"

namespace opc {
inline namespace OPC_VARIANT {

/* One operand: how far apart its channels, its rows and the terms of the sum lie; its columns lie together. */
template <typename T>
struct plane_operand {
  const T *data;
  int64_t channel;
  int64_t row;
  int64_t term;
};

/* The sums, over terms and windows, of element * factor. Where `padded`, the places that don't count hold zeros, which count. */
template <typename T>
struct plane_sums {
  plane_operand<T> element;
  plane_operand<T> factor;
  int64_t terms;
  bool padded;
};

/* The memory of the tiles of one thread, NULL where there is none. */
struct plane_memory {
  char *data;
  explicit plane_memory(bool wanted) : data(wanted ? static_cast<char *>(aligned_alloc(64, static_cast<size_t>(plane_bytes))) : nullptr) {}
  plane_memory(const plane_memory &) = delete;
  plane_memory &operator=(const plane_memory &) = delete;
  ~plane_memory() { free(data); }
};

/* Whether there are channels enough for their planes to be taken together, and vectors wide enough. */
template <typename T>
OPC_INLINE bool are_many(int64_t channels) {
  constexpr int64_t lanes = plane_vector<T>::lanes;
  return lanes >= 4 && 2 * channels >= lanes;
}

/* How many planes begin with the present unit, of no more than `left` units, and are worth being computed together; entry `channel` of
 * the target tells them apart. */
template <typename T>
OPC_INLINE int64_t planes_from(const row_nest &n, const cursor &at, int32_t channel, int64_t left) {
  int64_t units = 1;
  for (int32_t a = channel + 1; a < n.outer; ++a) {
    if (at.index[a] != 0) return 0;
    units *= n.size[a];
  }
  const int64_t count = least(least(left / units, n.size[channel] - at.index[channel]), plane_vector<T>::lanes);
  return are_many<T>(count) ? count : 0;
}

/* Moves to the last unit of `count` planes; returns by how many units. */
OPC_INLINE int64_t to_last_unit(const row_nest &n, cursor &at, int32_t channel, int64_t count) {
  int64_t units = count;
  at.index[channel] += count - 1;
  for (int32_t a = channel + 1; a < n.outer; ++a) {
    at.index[a] = n.size[a] - 1;
    units *= n.size[a];
  }
  return units - 1;
}

/* Calls f with a number of channels that is a constant where they fill a vector. */
template <typename T, typename F>
OPC_INLINE void with_channels(int64_t channels, F f) {
  if (channels == plane_vector<T>::lanes) {
    f(constant<plane_vector<T>::lanes>());
  } else {
    f(channels);
  }
}

/* Turns four vectors of four elements: those at one place into one vector. */
template <typename Quad>
OPC_INLINE void turn(Quad (&v)[4]) {
  const Quad low = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
  const Quad other_low = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Quad high = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Quad other_high = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(low, other_low, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(low, other_low, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(high, other_high, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(high, other_high, 2, 3, 6, 7);
}

/* Puts rows of `count` elements of each channel side by side, `pitch` elements apart; channels that aren't there are as the last one. */
template <typename T>
static void put_together(T *tile, const plane_operand<T> &o, const T *from, int64_t channels, int64_t rows, int64_t count, int64_t pitch) {
  typedef typename plane_vector<T>::quad quad;
  constexpr int64_t lanes = plane_vector<T>::lanes;
  for (int64_t c = 0; c < lanes; c += 4) {
    const T *at[4];
    for (int64_t k = 0; k < 4; ++k) at[k] = from + least(c + k, channels - 1) * o.channel;
    T *to = tile + c;
    for (int64_t r = 0; r < rows; ++r, to += pitch * lanes) {
      for (int64_t next = 0; next < count; next += 4) {
        if (count < 4) {
          for (int64_t i = 0; i < count; ++i) {
            for (int64_t k = 0; k < 4; ++k) to[i * lanes + k] = at[k][i];
          }
          break;
        }
        const int64_t i = least(next, count - 4);
        quad v[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) v[k] = *reinterpret_cast<const quad *>(at[k] + i);
        turn(v);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) *reinterpret_cast<quad *>(to + (i + k) * lanes) = v[k];
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) at[k] += o.row;
    }
  }
}

/* The other way round: `count` elements to each of the channels. */
template <typename T>
static void take_apart(T *to, int64_t channel, int64_t channels, const T *tile, int64_t count) {
  typedef typename plane_vector<T>::quad quad;
  constexpr int64_t lanes = plane_vector<T>::lanes;
  for (int64_t c = 0; c < channels; c += 4) {
    if (count < 4 || c + 4 > channels) {
      for (int64_t k = 0; k < least(4, channels - c); ++k) {
        for (int64_t i = 0; i < count; ++i) to[(c + k) * channel + i] = tile[i * lanes + c + k];
      }
      continue;
    }
    for (int64_t next = 0; next < count; next += 4) {
      const int64_t i = least(next, count - 4);
      quad v[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) v[k] = *reinterpret_cast<const quad *>(tile + (i + k) * lanes + c);
      turn(v);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) *reinterpret_cast<quad *>(to + (c + k) * channel + i) = v[k];
    }
  }
}

/* Puts rows of all channels side by side, with zeros before and behind each. */
template <typename T>
static void put_rows_together(T *tile, const plane_operand<T> &o, const T *from, int64_t channels, int64_t rows, int64_t columns, int64_t before,
                              int64_t after) {
  constexpr int64_t lanes = plane_vector<T>::lanes;
  const int64_t pitch = before + columns + after;
  if (o.row == columns && pitch == columns) return put_together(tile, o, from, channels, 1, rows * columns, pitch);
  for (int64_t r = 0; r < rows; ++r) {
    T *row = tile + r * pitch * lanes;
    memset(row, 0, static_cast<size_t>(before * lanes) * sizeof(T));
    memset(row + (before + columns) * lanes, 0, static_cast<size_t>(after * lanes) * sizeof(T));
  }
  put_together(tile + before * lanes, o, from, channels, rows, columns, pitch);
}

/* Whether all elements of a tile are finite, so that zeros times them are zeros. */
template <typename T>
static bool are_finite(const T *tile, int64_t count) {
  typedef typename plane_vector<T>::type vector;
  constexpr int64_t lanes = plane_vector<T>::lanes;
  vector nothing = {};
  for (int64_t i = 0; i < count; ++i) nothing += reinterpret_cast<const vector *>(tile)[i] * T(0);
  bool all = true;
  for (int64_t l = 0; l < lanes; ++l) all = all && nothing[l] == 0;
  return all;
}

/* Adds the sums of a group of columns in one row to the results; two places at a time, whose sums don't wait for one another. */
template <int Count, typename T>
OPC_INLINE void add_columns(const plane_tables &t, const plane_columns &g, int32_t row, const T *elements, int64_t low, int64_t line,
                            const T *factors, T *to) {
  typedef typename plane_vector<T>::type vector;
  constexpr int64_t lanes = plane_vector<T>::lanes;
  vector sum[2][Count] = {};
  const int64_t move = g.move * lanes;
  for (int32_t r = t.begin[row]; r < t.begin[row + 1]; ++r) {
    const T *from = elements + (t.row[r].element - low) * line;
    const T *by = factors + int64_t(t.row[r].factor) * t.window_columns * lanes;
    const auto add = [&](int which, int32_t c) __attribute__((always_inline)) {
      const vector factor = *reinterpret_cast<const vector *>(by + t.column[c].factor * lanes);
      const T *at = from + t.column[c].element * lanes;
#pragma GCC unroll 4
      for (int k = 0; k < Count; ++k) sum[which][k] += factor * *reinterpret_cast<const vector *>(at + k * move);
    };
    int32_t c = g.begin;
    for (; c + 2 <= g.end; c += 2) {
      add(0, c);
      add(1, c + 1);
    }
    if (c < g.end) add(0, c);
  }
#pragma GCC unroll 4
  for (int k = 0; k < Count; ++k) *reinterpret_cast<vector *>(to + (g.first + k * g.step) * lanes) += sum[0][k] + sum[1][k];
}

/* Adds the sums of rows [first, last) to the results; rows of elements are `line` apart, and the first one is row `low`. */
template <typename T>
static void add_rows(const plane_tables &t, int32_t first, int32_t last, const T *elements, int64_t low, int64_t line, const T *factors,
                     T *results) {
  constexpr int64_t lanes = plane_vector<T>::lanes;
  for (int32_t u = first; u < last; ++u) {
    T *to = results + int64_t(u - first) * t.columns * lanes;
    for (int32_t n = 0; n < t.groups; ++n) {
      const plane_columns &g = t.group[n];
      switch (g.count) {
        case 1: add_columns<1>(t, g, u, elements, low, line, factors, to); break;
        case 2: add_columns<2>(t, g, u, elements, low, line, factors, to); break;
        case 3: add_columns<3>(t, g, u, elements, low, line, factors, to); break;
        default: add_columns<plane_group>(t, g, u, elements, low, line, factors, to);
      }
    }
  }
}

/* Rows of results, and the rows [low, high) of elements that they need. */
struct plane_slab {
  int32_t first, last;
  int64_t low, high;
};

/* Finds as many rows from `first` on as there is memory for, which `room` tells in vectors. */
static plane_slab find_slab(const plane_tables &t, int32_t first, int64_t element_columns, int64_t result_columns, int64_t room) {
  plane_slab s = {first, first, 0, 0};
  for (int32_t u = first; u < t.rows; ++u) {
    int64_t low = s.low, high = s.high;
    for (int32_t r = t.begin[u]; r < t.begin[u + 1]; ++r) {
      const int64_t place = t.row[r].element;
      low = high == 0 || place < low ? place : low;
      high = place >= high ? place + 1 : high;
    }
    if ((high - low) * element_columns + (u + 1 - first) * result_columns > room) break;
    s = {first, u + 1, low, high};
  }
  return s;
}

/* Computes the planes of channels, no more than a vector has lanes; `finish` makes results of sums in their tile. False where that is
 * left to other loops: where there is no memory, and where zeros are multiplied with an infinity or NaN. */
template <typename T, typename Finish>
OPC_INLINE bool sum_planes(const row_nest &n, const plane_tables &t, const plane_sums<T> &s, const plane_memory &memory, int64_t channels,
                           int64_t target, const Finish &finish) {
  constexpr int64_t lanes = plane_vector<T>::lanes;
  const int64_t window = int64_t(t.window_rows) * t.window_columns;
  const bool staged = sizeof(T) == 4 && is_minifloat(n.stored);
  const bool zeros = s.padded || t.before > 0 || t.after > 0;
  T *const factors = reinterpret_cast<T *>(memory.data);
  T *const results = factors + window * lanes;
  const int64_t room = plane_bytes / int64_t(vector_bytes) - window;
  const int64_t pitch = t.before + t.held + t.after;
  for (int32_t first = 0; first < t.rows;) {
    const plane_slab slab = find_slab(t, first, pitch, staged ? 2 * t.columns : t.columns, room);
    const int64_t count = int64_t(slab.last - slab.first) * t.columns;
    if (count == 0 || (s.terms != 1 && slab.last - slab.first < t.rows)) return false;
    T *const elements = results + count * (staged ? 2 : 1) * lanes;
    memset(results, 0, static_cast<size_t>(count * lanes) * sizeof(T));
    for (int64_t term = 0; term < s.terms; ++term) {
      if (first == 0) {
        put_rows_together(factors, s.factor, s.factor.data + term * s.factor.term, channels, t.window_rows, t.window_columns, 0, 0);
        if (zeros && !are_finite(factors, window)) return false;
      }
      const T *from = s.element.data + term * s.element.term + slab.low * s.element.row;
      put_rows_together(elements, s.element, from, channels, slab.high - slab.low, t.held, t.before, t.after);
      add_rows(t, slab.first, slab.last, elements + t.before * lanes, slab.low, pitch * lanes, factors, results);
    }
    finish(results, count);
    const int64_t plane = int64_t(t.rows) * t.columns;
    const int64_t at = target + int64_t(first) * t.columns;
    if (staged) {
      T *const rows = results + count * lanes;
      take_apart(rows, count, channels, results, count);
      for (int64_t c = 0; c < channels; ++c) finish_row(n, at + c * plane, rows + c * count, count);
    } else {
      take_apart(reinterpret_cast<T *>(n.target) + at, plane, channels, results, count);
    }
    first = slab.last;
  }
  return true;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NEST_PLANES_H
