/* What one thread of a contraction works in: tables, packed factors and sums. */
#ifndef OPC_CONTRACTION_MEMORY_H
#define OPC_CONTRACTION_MEMORY_H

#include "opc/contraction/blocks.h"
#include "opc/contraction/tables.h"
#include "opc/core/aligned.h"
#include "opc/rows/run.h"

namespace opc {

/* What packed rows or columns are of: a block of points of a factor that is somewhere. */
struct packed_key {
  int64_t point, count, inner, depth;
  const char *data;
  int64_t base[max_guards];
};

static inline bool same_key(const packed_key &a, const packed_key &b, int32_t guards) {
  bool same = a.point == b.point && a.count == b.count && a.inner == b.inner && a.depth == b.depth && a.data == b.data;
  for (int32_t g = 0; g < guards; ++g) same = same && a.base[g] == b.base[g];
  return same;
}

/* Which term, inner points and points a pair of tables is of; -1 for nothing. */
struct table_key {
  int64_t term, inner, point, count;
};

enum { kept_layouts = 32 };

/* A panel of columns of a block, which is multiplied with each strip of rows: where its sums begin in their row, where its elements
 * are, and the result of its first column in row 0. */
struct column_panel {
  int64_t at, vectors;
  const char *from;
  const int64_t *offsets; /* of each inner point, in elements */
  const char *result;
};

/* The memory of one thread. */
struct contraction_memory {
  contraction_table inner[2], rows, columns;
  char *rows_packed;
  char *all_panels; /* packed columns, of each step where they are kept */
  char *panels;     /* of the present step */
  char *padded_input;
  /* of what inner points the padded input is laid out for: of each step, or of the present one where they are many */
  padded_layout *layouts;
  int64_t *padded_offsets; /* of each inner point, by steps */
  padded_layout *layout; /* of the present step */
  int64_t *padded_offset;
  int64_t *row_offset; /* of each row that is read from the padded input */
  char *sums;
  char *staged;
  column_panel *list; /* the panels of the present step */
  packed_key *kept;         /* what the packed rows of each step hold, by blocks */
  packed_key *kept_columns; /* what the packed columns of each step hold */
  int64_t pitch;       /* columns between rows of sums */
  table_key held[2];   /* what the tables hold, of rows and of columns */
};

static inline int64_t aligned_bytes(int64_t bytes) { return round_up(bytes, cache_line); }

/* Returns the memory at `used`, NULL of NULL, and moves `used` past `bytes`. */
static inline char *take(char *memory, int64_t &used, int64_t bytes) {
  char *begin = memory == nullptr ? nullptr : memory + used;
  used += aligned_bytes(bytes);
  return begin;
}

static void take_table(char *memory, int64_t &used, contraction_table &t, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(int64_t));
  t.offset = reinterpret_cast<int64_t *>(take(memory, used, bytes));
  for (int64_t *&guard : t.guard) guard = reinterpret_cast<int64_t *>(take(memory, used, bytes));
}

/* Whether the layout of each step of a padded input is kept, for all blocks. */
static inline bool keeps_layouts(const contraction_plan &p) { return p.padded_input.used && p.steps <= kept_layouts; }

/* Lays out the memory of a thread, or where `memory` is NULL only computes its size, which is returned. */
static int64_t lay_out(const contraction_plan &p, char *memory, contraction_memory &m) {
  int64_t used = 0;
  const int64_t item = p.f->packed;
  const int64_t rows = p.whole_sums ? p.most_rows : p.f->rows;
  m.pitch = p.most_columns;
  take_table(memory, used, m.inner[0], p.most_inner);
  take_table(memory, used, m.inner[1], p.most_inner);
  take_table(memory, used, m.rows, p.most_rows);
  take_table(memory, used, m.columns, p.most_columns);
  const bool packs_rows = !p.windows.used || p.term[0].skips;
  m.rows_packed = take(memory, used, packs_rows ? p.most_inner * p.most_rows * item * (p.keeps_rows ? p.steps : 1) : 0);
  const int64_t kept = p.keeps_rows ? p.steps * p.row_blocks : 0;
  const int64_t kept_columns = p.keeps_columns ? p.steps : 0;
  m.kept = reinterpret_cast<packed_key *>(take(memory, used, kept * static_cast<int64_t>(sizeof(packed_key))));
  m.kept_columns = reinterpret_cast<packed_key *>(take(memory, used, kept_columns * static_cast<int64_t>(sizeof(packed_key))));
  for (int64_t n = 0; n < kept && memory != nullptr; ++n) m.kept[n].count = -1;
  for (int64_t n = 0; n < kept_columns && memory != nullptr; ++n) m.kept_columns[n].count = -1;
  /* A padded input is packed, too, where an infinity makes the products be looked at one by one. */
  const bool packs = !p.padded_input.used || p.term[0].skips;
  const bool copies = p.padded_input.used || p.windows.used;
  const int64_t elements = p.windows.used ? p.windows.elements : p.padded_input.elements + strip_vectors * p.f->lanes;
  m.panels = m.all_panels = take(memory, used, packs ? p.most_inner * p.most_columns * item * (p.keeps_columns ? p.steps : 1) : 0);
  m.padded_input = take(memory, used, copies ? elements * item : 0);
  const int64_t layouts = copies ? (keeps_layouts(p) ? p.steps : 1) : 0;
  m.layouts = reinterpret_cast<padded_layout *>(take(memory, used, layouts * static_cast<int64_t>(sizeof(padded_layout))));
  m.padded_offsets = reinterpret_cast<int64_t *>(take(memory, used, layouts * p.most_inner * static_cast<int64_t>(sizeof(int64_t))));
  m.layout = m.layouts;
  m.padded_offset = m.padded_offsets;
  m.row_offset = reinterpret_cast<int64_t *>(take(memory, used, p.windows.used ? p.most_rows * static_cast<int64_t>(sizeof(int64_t)) : 0));
  for (int64_t n = 0; n < layouts && memory != nullptr; ++n) m.layouts[n].first_inner = -1;
  m.sums = take(memory, used, rows * p.most_columns * itemsize(p.computed));
  m.staged = take(memory, used, p.staged * aligned_bytes(p.f->rows * p.most_columns * 8));
  m.list = reinterpret_cast<column_panel *>(take(memory, used, p.most_columns / p.f->lanes * static_cast<int64_t>(sizeof(column_panel))));
  m.held[0] = m.held[1] = {-1, -1, -1, -1};
  return used;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_MEMORY_H
