/* Padded copies of rows of elements, which windows that are cut read as if they were whole: for the files compiled once for each
 * instruction-set variant.
 */
#ifndef OPC_NESTS_PADDED_ROWS_H
#define OPC_NESTS_PADDED_ROWS_H

#include "opc/nests/window_rows.h"

namespace opc {
inline namespace OPC_VARIANT {

constexpr int64_t padded_bytes = 16384; /* rows that are padded take no more */

OPC_INLINE int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/* Copies fewer bytes than two times so many, of elements that have at least 4. */
template <int64_t Bytes>
OPC_INLINE void copy_few(char *to, const char *from, int64_t bytes) {
  if (bytes >= Bytes) {
    memcpy(to, from, Bytes);
    memcpy(to + bytes - Bytes, from + bytes - Bytes, Bytes);
  } else if constexpr (Bytes > 4) {
    copy_few<Bytes / 2>(to, from, bytes);
  }
}

/* How rows of elements are padded with `nothing`: they are `stride` apart in the operand, `pitch` in the copy, and of each elements
 * [low, high) are from the operand. */
template <typename T>
struct padding {
  T nothing;
  int64_t stride, pitch, low, high;

  OPC_INLINED inline bool operator==(const padding &o) const {
    return nothing == o.nothing && stride == o.stride && pitch == o.pitch && low == o.low && high == o.high;
  }
};

/* Copies a row of elements with its padding, which may reach a vector further. */
template <typename T>
OPC_INLINE void pad_row(T *to, const T *from, const padding<T> &how) {
  typedef typename lane_vector<T, vector_bytes>::values values;
  constexpr int64_t lanes = count_lanes<T>();
  const int64_t count = how.high - how.low;
  const values nothings = how.nothing - values{};
  for (int64_t i = 0; i < how.low; i += lanes) *reinterpret_cast<values *>(to + i) = nothings;
  for (int64_t i = how.high; i < how.pitch; i += lanes) *reinterpret_cast<values *>(to + i) = nothings;
  to += how.low;
  from += how.low;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) *reinterpret_cast<values *>(to + i) = *reinterpret_cast<const values *>(from + i);
  if (i == count) return;
  if (count >= lanes) {
    *reinterpret_cast<values *>(to + count - lanes) = *reinterpret_cast<const values *>(from + count - lanes);
  } else {
    copy_few<vector_bytes / 2>(reinterpret_cast<char *>(to), reinterpret_cast<const char *>(from), count * int64_t(sizeof(T)));
  }
}

/* The padded rows of a tile, of which the windows of the next row read most again. */
template <typename T>
struct padded_rows {
  const T *elements = nullptr; /* the first row's */
  padding<T> how;
  int64_t rows;              /* how many there are, */
  int64_t at;                /* which one was asked for last, */
  int64_t distance, advance; /* and how far, in elements and in rows, from the one before it */
  alignas(64) T data[padded_bytes / sizeof(T)];

  /* Whether so many rows fit. */
  OPC_INLINED static inline bool fit(int64_t count, int64_t columns) {
    return count * columns <= padded_bytes / int64_t(sizeof(T)) - count_lanes<T>();
  }

  /* Makes sure that there are `count` rows, the first of which lies at `from`; returns its number. */
  __attribute__((noinline)) int64_t hold(const T *from, int64_t count, const padding<T> &wanted) {
    if (elements == nullptr || !(how == wanted)) {
      how = wanted;
      elements = from;
      rows = at = distance = 0;
    }
    const int64_t moved = from - (elements + at * how.stride);
    if (moved != 0) {
      if (moved != distance) {
        distance = moved;
        advance = moved / how.stride;
      }
      at += advance;
      if (advance * how.stride != moved || at < 0 || at > rows || at > 4 * count || !fit(at + count, how.pitch)) {
        elements = from;
        rows = at = 0;
      }
    }
    for (; rows < at + count; ++rows) pad_row(data + rows * how.pitch, elements + rows * how.stride, how);
    return at;
  }
};

/* The rows of the first tile of a row of windows, and those of the last one. */
template <typename T>
struct padded_windows {
  padded_rows<T> first, last;
};

/* Which elements of a row its lanes read, as offsets from lane 0's at the first position along the window's last axis; the least and
 * greatest offset of that axis's positions; and the lanes [begin, end) for which a window's first position counts. */
struct counted_elements {
  int64_t low, high;
  int64_t least_position, greatest_position;
  int64_t begin, end;
};

/* How many elements of a row so many lanes read, in whole vectors. */
template <typename T, int Axes, int Guards>
OPC_INLINE int64_t padded_pitch(const window_row<T, Axes, Guards> &w, const counted_elements &c, int64_t lanes) {
  const int64_t whole = count_lanes<T>();
  return (c.greatest_position - c.least_position + (lanes - 1) * w.lane_step + whole) / whole * whole;
}

/* Finds which elements count. False where it takes more than the element to know whether a lane counts at a position, and where there is
 * no room to pad what a tile of so many lanes reads. */
template <typename T, int Axes, int Guards>
OPC_INLINE bool find_counted(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p, int64_t count, int64_t tile,
                             counted_elements &c) {
  constexpr int along = Axes - 1;
  const int64_t step = w.axis[along].element_step;
  const int64_t ends[] = {p.low[along] * step, (p.high[along] - 1) * step};
  c.least_position = least(ends[0], ends[1]);
  c.greatest_position = greatest(ends[0], ends[1]);
  c.low = c.least_position;
  c.high = c.greatest_position + (count - 1) * w.lane_step + 1;
  bool alike = w.lane_step > 0 && p.high[along] > p.low[along];
  c.begin = 0;
  c.end = p.begin() ? count : 0;
#pragma GCC unroll 8
  for (int g = 0; g < Guards; ++g) {
    const window_guard &of = w.guard[g];
    if (of.lane == 0) continue;
    clip(c.begin, c.end, of.lane, of.rest);
    if (of.axis == along && of.lane == w.lane_step && of.position == step) {
      c.low = greatest(c.low, -of.rest);
    } else if (of.axis == along && of.lane == -w.lane_step && of.position == -step) {
      c.high = least(c.high, of.rest + 1);
    } else {
      alike = false;
    }
  }
  int64_t rows = 1;
  for (int a = 0; a < along; ++a) rows *= (p.high[a] - 1 - p.low[a]) * (Axes == 2 ? magnitude(w.row_step) : 1) + 1;
  return alike && rows > 0 && (Axes != 2 || w.row_stride != 0) && padded_rows<T>::fit(rows, padded_pitch(w, c, tile));
}

/* Pads the rows of elements that lanes [first, last) read; returns their windows in the copy. */
template <combine C, typename T, int Axes, int Guards>
OPC_INLINE window_row<T, Axes, Guards> pad_window(const window_row<T, Axes, Guards> &w, const window_positions<Axes> &p,
                                                  const counted_elements &c, int64_t first, int64_t last, padded_rows<T> &rows) {
  constexpr int along = Axes - 1;
  const int64_t begin = c.least_position + first * w.lane_step;
  const int64_t pitch = padded_pitch(w, c, last - first);
  const int64_t low = least(greatest(c.low - begin, 0), pitch);
  const padding<T> how = {empty_window<C, T>, w.row_stride, pitch, low, greatest(least(c.high - begin, pitch), low)};
  window_row<T, Axes, Guards> padded = w;
  padded.elements = rows.data;
  padded.first_element = -begin;
  const T *from = w.elements + w.first_element + begin;
  if constexpr (Axes == 2) {
    const int64_t first_row = w.row_step > 0 ? p.low[0] : p.high[0] - 1;
    from += first_row * w.axis[0].element_step;
    const int64_t row = rows.hold(from, (p.high[0] - 1 - p.low[0]) * magnitude(w.row_step) + 1, how);
    padded.axis[0].element_step = w.row_step * pitch;
    padded.first_element += row * pitch - first_row * padded.axis[0].element_step;
  } else {
    T *to = rows.data;
    window_positions<Axes> outer = p;
    outer.low[along] = 0;
    outer.high[along] = 1;
    each_position(w, outer, 0, 0, [&](int64_t element, int64_t) OPC_INLINED {
      pad_row(to, from + element, how);
      to += pitch;
    });
    int64_t size = pitch;
#pragma GCC unroll 4
    for (int a = along - 1; a >= 0; --a) {
      padded.axis[a].element_step = size;
      padded.first_element -= p.low[a] * size;
      size *= p.high[a] - p.low[a];
    }
  }
  return padded;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_PADDED_ROWS_H
