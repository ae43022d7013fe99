/* Reductions over windows of small planes, such as the images of a convolution that keeps channels apart: for the files compiled once for
 * each instruction-set variant.
 *
 * Rows of such planes are shorter than vectors. So the planes of as many channels as a vector has lanes are taken together: element by
 * element they are put side by side in tiles, and a sum of products over a window is one of vectors, whatever the strides are.
 */
#ifndef OPC_NESTS_CHANNELS_H
#define OPC_NESTS_CHANNELS_H

#include "opc/nests/channel_tables.h"
#include "opc/nests/windows.h"
#include "opc/core/aligned.h"
#include "opc/core/transpose.h"

namespace opc {
inline namespace OPC_VARIANT {

/* One operand: how far apart its channels, its rows and the terms of the sum lie; its columns lie together. */
template <typename T>
struct channel_operand {
  const T *data;
  int64_t channel;
  int64_t row;
  int64_t term;
};

/* The windows of planes, whose elements, and weights if there are some, are combined for each term. Where `padded`, the places that don't
 * count hold zeros, which are multiplied with weights. */
template <typename T>
struct channel_windows {
  int64_t terms;
  bool padded;
  channel_operand<T> element;
  channel_operand<T> weight;
};

/* The memory of the tiles of one thread, NULL where there is none. */
struct channel_memory {
  char *data;
  explicit channel_memory(bool wanted) :
      data(wanted ? static_cast<char *>(allocate_aligned(64, channel_tile_bytes)) : nullptr) {}
  channel_memory(const channel_memory &) = delete;
  channel_memory &operator=(const channel_memory &) = delete;
  ~channel_memory() { free_aligned(data); }
};

/* Whether there are channels enough for their planes to be taken together, and vectors wide enough. */
template <typename T>
OPC_INLINE bool are_many(int64_t channels) {
  constexpr int64_t lanes = count_lanes<T>();
  return lanes >= 4 && 2 * channels >= lanes;
}

/* How many planes begin with the present unit, of no more than `left` units, and are worth being computed together; entry `channel` of
 * the target tells them apart. */
template <typename T>
OPC_INLINE int64_t channels_from(const row_nest &n, const cursor &at, int32_t channel, int64_t left) {
  int64_t units = 1;
  for (int32_t a = channel + 1; a < n.outer; ++a) {
    if (at.index[a] != 0) return 0;
    units *= n.size[a];
  }
  const int64_t count = least(least(left / units, n.size[channel] - at.index[channel]), int64_t(count_lanes<T>()));
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
  if (channels == count_lanes<T>()) {
    f(constant<count_lanes<T>()>());
  } else {
    f(channels);
  }
}

/* Puts rows of all channels side by side, with `nothing` before and behind each; channels that aren't there are as the last one. */
template <typename T>
static void pack_channels(T *tile, const channel_operand<T> &o, const T *from, int64_t channels, int64_t rows, int64_t columns,
                          int64_t before, int64_t after, T nothing) {
  constexpr int lanes = count_lanes<T>();
  const int64_t pitch = before + columns + after;
  if (o.row == columns && pitch == columns) {
    columns *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    T *row = tile + r * pitch * lanes;
    fill(row, before * lanes, nothing);
    transpose_rows<false, T, lanes>(row + before * lanes, const_cast<T *>(from) + r * o.row, o.channel, channels, columns);
    fill(row + (before + columns) * lanes, after * lanes, nothing);
  }
}

/* Whether a tile of weights is finite, so that zeros times them are zeros; and whether one of elements holds no NaN, which a maximum of
 * vectors would lose, nor infinities of either sign. */
template <combine C, typename T>
static bool are_plain(const T *tile, int64_t count) {
  typedef lane_vector<T, vector_bytes> vector;
  typename vector::values sum = {};
  for (int64_t i = 0; i < count; ++i) {
    const auto here = *reinterpret_cast<const typename vector::values *>(tile + i * vector::lanes);
    sum += C == combine::fma ? here * T(0) : here;
  }
  return !vector::holds_nan(sum);
}

/* Combines what a group of columns in one row takes in with the results; two places at a time, which don't wait for one another. */
template <combine C, int Count, typename T>
OPC_INLINE void reduce_columns(const channel_tables &t, const channel_columns &g, int32_t row, const T *elements, int64_t low,
                               int64_t line, const T *weights, T *to) {
  typedef typename lane_vector<T, vector_bytes>::values values;
  constexpr int64_t lanes = count_lanes<T>();
  values best[2][Count];
#pragma GCC unroll 4
  for (int k = 0; k < Count; ++k) best[0][k] = best[1][k] = empty_window<C, T> - values{};
  const int64_t move = g.move * lanes;
  for (int32_t r = t.begin[row]; r < t.begin[row + 1]; ++r) {
    const T *from = elements + (t.row[r].element - low) * line;
    const T *by = weights + int64_t(t.row[r].tap) * t.window_columns * lanes;
    const auto take = [&](int which, int32_t c) OPC_INLINED {
      values weight = {};
      if constexpr (C == combine::fma) weight = *reinterpret_cast<const values *>(by + t.column[c].tap * lanes);
      const T *at = from + t.column[c].element * lanes;
#pragma GCC unroll 4
      for (int k = 0; k < Count; ++k) {
        const values here = *reinterpret_cast<const values *>(at + k * move);
        best[which][k] = C == combine::fma ? best[which][k] + weight * here : joined<C>(here, best[which][k]);
      }
    };
    int32_t c = g.begin;
    for (; c + 2 <= g.end; c += 2) {
      take(0, c);
      take(1, c + 1);
    }
    if (c < g.end) take(0, c);
  }
#pragma GCC unroll 4
  for (int k = 0; k < Count; ++k) {
    values &result = *reinterpret_cast<values *>(to + (g.first + k * g.step) * lanes);
    result = joined<C>(result, joined<C>(best[0][k], best[1][k]));
  }
}

/* Combines rows [first, last) with the results; rows of elements are `line` apart, and the first one is row `low`. */
template <combine C, typename T>
static void reduce_rows(const channel_tables &t, int32_t first, int32_t last, const T *elements, int64_t low, int64_t line,
                        const T *weights, T *results) {
  for (int32_t u = first; u < last; ++u) {
    T *to = results + int64_t(u - first) * t.columns * count_lanes<T>();
    for (int32_t n = 0; n < t.groups; ++n) {
      const channel_columns &g = t.group[n];
      switch (g.count) {
        case 1: reduce_columns<C, 1>(t, g, u, elements, low, line, weights, to); break;
        case 2: reduce_columns<C, 2>(t, g, u, elements, low, line, weights, to); break;
        case 3: reduce_columns<C, 3>(t, g, u, elements, low, line, weights, to); break;
        default: reduce_columns<C, column_group>(t, g, u, elements, low, line, weights, to);
      }
    }
  }
}

/* Rows of results, and the rows [low, high) of elements that they need. */
struct row_range {
  int32_t first, last;
  int64_t low, high;
};

/* Finds as many rows from `first` on as there is memory for, `room` in vectors. */
static row_range find_row_range(const channel_tables &t, int32_t first, int64_t element_columns, int64_t result_columns, int64_t room) {
  row_range s = {first, first, 0, 0};
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

/* Computes the planes of channels, no more than a vector has lanes; `finish` makes results of what was combined, a point at a time. False
 * where that is left to other loops: where there is no memory, where zeros are multiplied with an infinity or NaN, and where the greatest
 * of NaNs is asked for. */
template <combine C, typename T, typename Finish>
OPC_INLINE bool reduce_channels(const row_nest &n, const channel_tables &t, const channel_windows<T> &w, const channel_memory &memory,
                              int64_t channels, int64_t target, const Finish &finish) {
  constexpr int lanes = count_lanes<T>();
  constexpr bool weighted = C == combine::fma;
  const int64_t window = weighted ? int64_t(t.window_rows) * t.window_columns : 0;
  const bool staged = sizeof(T) == 4 && is_minifloat(n.stored);
  const bool zeros = w.padded || t.before > 0 || t.after > 0;
  T *const weights = reinterpret_cast<T *>(memory.data);
  T *const results = weights + window * lanes;
  const int64_t room = channel_tile_bytes / int64_t(vector_bytes) - window;
  const int64_t pitch = t.before + t.held + t.after;
  for (int32_t first = 0; first < t.rows;) {
    const row_range range = find_row_range(t, first, pitch, staged ? 2 * t.columns : t.columns, room);
    const int64_t count = int64_t(range.last - range.first) * t.columns, rows = range.high - range.low;
    if (count == 0 || (w.terms != 1 && range.last - range.first < t.rows)) return false;
    T *const elements = results + count * (staged ? 2 : 1) * lanes;
    fill(results, count * lanes, empty_window<C, T>);
    for (int64_t term = 0; term < w.terms; ++term) {
      if (weighted && first == 0) {
        pack_channels(weights, w.weight, w.weight.data + term * w.weight.term, channels, t.window_rows, t.window_columns, 0, 0, T(0));
        if (zeros && !are_plain<C>(weights, window)) return false;
      }
      const T *from = w.element.data + term * w.element.term + range.low * w.element.row;
      pack_channels(elements, w.element, from, channels, rows, t.held, t.before, t.after, empty_window<C, T>);
      if (!is_sum(C) && !are_plain<C>(elements, rows * pitch)) return false;
      reduce_rows<C>(t, range.first, range.last, elements + t.before * lanes, range.low, pitch * lanes, weights, results);
    }
    with_channels<T>(channels, [&](auto present) OPC_INLINED {
      for (int64_t point = 0; point < count; ++point) finish(results + point * lanes, present);
    });
    const int64_t plane = int64_t(t.rows) * t.columns;
    const int64_t at = target + int64_t(first) * t.columns;
    if (staged) {
      T *const rows_of = results + count * lanes;
      transpose_rows<true, T, lanes>(results, rows_of, count, channels, count);
      for (int64_t c = 0; c < channels; ++c) finish_row(n, at + c * plane, rows_of + c * count, count);
    } else {
      transpose_rows<true, T, lanes>(results, reinterpret_cast<T *>(n.target) + at, plane, channels, count);
    }
    first = range.last;
  }
  return true;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_CHANNELS_H
