/* What of a window counts at each row and column of a plane: for the files compiled once for each instruction-set variant.
 *
 * It is the same for all channels, so it is looked up, and strides, dilation and padding take no time inside.
 */
#ifndef OPC_NESTS_CHANNEL_TABLES_H
#define OPC_NESTS_CHANNEL_TABLES_H

#include "opc/core/lanes.h"
#include "opc/nests/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

enum : int {
  channel_taps = 1024, /* of a window in all rows, or all columns, of a plane */
  column_group = 4, /* columns that are summed up side by side */
  farthest_column = 4,
  column_margin = 8,
  small_window = 16
};
enum : int64_t { channel_tile_bytes = 1 << 17 };

/* A row or column of a window that counts: its weight, and where it lies in the plane. */
struct channel_tap {
  int32_t tap;
  int32_t element;
};

/* Columns of a plane of results that are summed up side by side: `count` of them, `step` apart, whose elements lie `move` apart. */
struct channel_columns {
  int32_t first, step, count, move;
  int32_t begin, end; /* of their taps */
};

/* What of its window counts in each row, and in each column, of a plane of results. Where a tap counts for one column of a group and
 * lies outside for another, zeros are put there: `before` and `after` the elements of each row. */
struct channel_tables {
  int32_t rows, columns;               /* of the results */
  int32_t window_rows, window_columns;
  int32_t before, held, after;         /* columns of elements */
  int32_t begin[channel_taps + 1];     /* of the taps of each row */
  int32_t groups;
  channel_tap row[channel_taps];
  channel_tap column[channel_taps];
  channel_columns group[channel_taps];
};

/* Looks whether the windows of a group's columns are alike, of which `tap` tells what counts in the first one and, `apart` further
 * on, in the next; then sets how far apart their elements are, and adds what counts in any of them to the taps. */
static inline bool join_columns(channel_tables &t, channel_columns &g, const int32_t *tap, int64_t apart) {
  bool known = g.count == 1;
  g.move = 0;
  for (int32_t a = 0; a < t.window_columns && !known; ++a) {
    for (int32_t k = 1; k < g.count && !known; ++k) {
      const int32_t last = tap[(k - 1) * apart + a], next = tap[k * apart + a];
      if (last < 0 || next < 0) continue;
      g.move = next - last;
      known = true;
    }
  }
  if (!known) return false;
  g.end = g.begin;
  for (int32_t a = 0; a < t.window_columns; ++a) {
    bool counts = false;
    int32_t first = 0;
    for (int32_t k = 0; k < g.count; ++k) {
      const int32_t here = tap[k * apart + a];
      if (here < 0) continue;
      if (counts && here - k * g.move != first) return false;
      first = here - k * g.move;
      counts = true;
    }
    if (!counts) continue;
    for (int32_t k = 0; k < g.count; ++k) {
      const int32_t here = first + k * g.move;
      if (tap[k * apart + a] >= 0) continue;
      if ((here >= 0 && here < t.held) || here < -column_margin || here >= t.held + column_margin) return false;
    }
    t.column[g.end++] = {a, first};
  }
  return true;
}

/* Finds the groups of columns: as many columns at a time as there are alike. */
static void group_columns(channel_tables &t, const int32_t *tap) {
  bool done[channel_taps] = {};
  t.groups = t.before = t.after = 0;
  int32_t found = 0;
  for (int32_t u = 0; u < t.columns; ++u) {
    if (done[u]) continue;
    channel_columns g = {u, 1, 0, 0, found, found};
    for (int32_t count = column_group; g.count == 0; --count) {
      for (int32_t step = 1; step <= farthest_column && g.count == 0; ++step) {
        bool left = u + (count - 1) * step < t.columns;
        for (int32_t k = 1; left && k < count; ++k) left = !done[u + k * step];
        channel_columns tried = {u, step, count, 0, found, found};
        if (left && join_columns(t, tried, tap + u * t.window_columns, int64_t(step) * t.window_columns)) g = tried;
      }
    }
    for (int32_t k = 0; k < g.count; ++k) done[u + k * g.step] = true;
    for (int32_t c = g.begin; c < g.end; ++c) {
      for (int32_t k = 0; k < g.count; ++k) {
        const int32_t here = t.column[c].element + k * g.move;
        if (-here > t.before) t.before = -here;
        if (here - t.held + 1 > t.after) t.after = here - t.held + 1;
      }
    }
    found = g.end;
    t.group[t.groups++] = g;
  }
}

/* Whether rows are better computed one by one, vector after vector: long ones, of elements that lie together, with small windows. Without
 * weights every second element will do, and of windows that don't overlap a vector is long. */
template <typename T, bool Weighted>
static bool are_long_rows(const channel_tables &t) {
  const channel_columns &middle = t.group[t.groups / 2];
  const bool together = middle.count > 1 && middle.step == 1 && middle.move >= 1 && middle.move <= (Weighted ? 1 : 2);
  const int64_t vectors = Weighted || middle.move < t.window_columns ? 3 : 1;
  return together && t.columns >= vectors * count_lanes<T>() && t.window_rows * t.window_columns <= small_window;
}

/* Fills the tables, from functions that tell the tap of a row or column of the window among the elements, of which there are `held`
 * columns, or -1; false where they are too large, and where other loops are better. */
template <typename T, bool Weighted, typename RowTap, typename ColumnTap>
static bool fill_channel_tables(channel_tables &t, int64_t held, int64_t rows, int64_t window_rows, int64_t columns,
                                int64_t window_columns, const RowTap &row_tap, const ColumnTap &column_tap) {
  const bool fit = rows <= channel_taps && columns <= channel_taps && window_rows <= channel_taps && window_columns <= channel_taps &&
                   rows * window_rows <= channel_taps && columns * window_columns <= channel_taps && held <= channel_tile_bytes;
  if (!fit || rows <= 0 || columns <= 0 || window_rows <= 0 || window_columns <= 0) return false;
  t.rows = int32_t(rows);
  t.columns = int32_t(columns);
  t.window_rows = int32_t(window_rows);
  t.window_columns = int32_t(window_columns);
  t.held = int32_t(held);
  int32_t found = 0;
  for (int32_t u = 0; u < t.rows; ++u) {
    t.begin[u] = found;
    for (int32_t a = 0; a < t.window_rows; ++a) {
      const int64_t tap = row_tap(int64_t(u), int64_t(a));
      if (tap > INT32_MAX) return false;
      if (tap >= 0) t.row[found++] = {a, int32_t(tap)};
    }
  }
  t.begin[t.rows] = found;
  int32_t tap[channel_taps];
  for (int32_t u = 0; u < t.columns; ++u) {
    for (int32_t a = 0; a < t.window_columns; ++a) tap[u * t.window_columns + a] = int32_t(column_tap(int64_t(u), int64_t(a)));
  }
  group_columns(t, tap);
  return !are_long_rows<T, Weighted>(t);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_CHANNEL_TABLES_H
