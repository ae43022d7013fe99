/* The steps of a contraction over one block: packs or copies what is read of both factors and adds the products up. */
#ifndef OPC_CONTRACTION_STEPS_H
#define OPC_CONTRACTION_STEPS_H

#include "opc/contraction/panels.h"

namespace opc {

/* Packs the points of a table in panels of `width`. */
static void pack_points(const contraction_plan &p, const contraction_factor &f, const contraction_table &points,
                        const contraction_table &inner, int64_t depth, int64_t count, int64_t width, int64_t grain, void *to) {
  packing job;
  job.to = to;
  job.count = count;
  job.width = width;
  job.grain = grain;
  job.depth = depth;
  job.from = f.data;
  job.stored = f.f->stored;
  job.second = f.f->second;
  job.point = points.offset;
  job.inner = inner.offset;
  job.guards = f.guards;
  for (int32_t g = 0; g < f.guards; ++g) {
    const axis_index &at = f.f->at[f.guard[g]];
    job.guard[g] = {points.guard[g], inner.guard[g], f.base[g], at.size, f.divisor[g], at.stride};
  }
  p.f->pack(job);
}

/* Fills the tables of what a step over a block packs, as far as they don't hold it already. */
static void fill_tables(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at,
                        int32_t side) {
  const contraction_term &t = p.term[at.term];
  table_key &held = m.held[side];
  const bool fresh = held.term != at.term;
  const int64_t point = side == 0 ? b.row : b.column;
  const int64_t count = side == 0 ? b.row_count : b.column_count;
  if (fresh || held.inner != at.inner) fill_table(p, t.factors[side], t.inner, at.inner, at.depth, m.inner[side]);
  if (fresh || held.point != point || held.count != count) {
    const loop_list &loops = side == 0 ? p.rows.loops : p.columns.loops;
    fill_table(p, t.factors[side], loops, point, count, side == 0 ? m.rows : m.columns);
  }
  held = {at.term, at.inner, point, count};
}

/* Chooses how the columns of a block are multiplied, whose table is filled. */
static column_way way_of(const contraction_plan &p, const contraction_term &t, const contraction_memory &m, const contraction_block &b) {
  const contraction_factor &f = t.factors[1];
  if (t.skips || f.guards > 0 || f.f->stored != p.computed || b.row_count > few_strips * p.f->rows) return columns_packed;
  if (b.row_count <= few_rows || !follow(m.columns.offset, b.column_count)) return columns_packed;
  return b.column_count % p.f->lanes == 0 ? columns_in_panels : columns_packed;
}

/* How few rows are multiplied one by one: with lines of columns, or with columns whose inner points lie together. */
struct few_rows_way {
  bool dots;
  int64_t first;      /* element of the block's columns */
  line_starts starts; /* of lines, or of columns */
  bool rows_in_place; /* which lie `row_step` elements apart */
  int64_t row_step;
};

/* Finds how few rows are multiplied one by one; false where the columns have to be packed. No table is filled of a factor whose elements lie
 * evenly apart: a table of a small product takes as long to write as the factor to read. */
static bool find_few_rows_way(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at,
                              few_rows_way &way) {
  const contraction_term &t = p.term[at.term];
  const contraction_factor &left = t.factors[0], &right = t.factors[1];
  const bool readable = right.f->stored == p.computed || (p.computed != dtype_float64 && right.f->second == 0);
  if (t.skips || right.guards > 0 || !readable) return false;
  int64_t inner, column;
  if (lie_evenly(p, *right.f, t.inner, &inner) && lie_evenly(p, *right.f, p.columns.loops, &column)) {
    way.dots = at.depth >= p.f->lanes && inner == 1;
    way.first = at.inner * inner + b.column * column;
    way.starts = {nullptr, way.dots ? column : inner};
    if (!way.dots && column != 1 && b.column_count > 1) return false;
  } else {
    fill_tables(p, m, b, at, 1);
    way.dots = at.depth >= p.f->lanes && follow(m.inner[1].offset, at.depth);
    way.first = way.dots ? m.inner[1].offset[0] : m.columns.offset[0];
    way.starts = {way.dots ? m.columns.offset : m.inner[1].offset, 0};
    if (!way.dots && !follow(m.columns.offset, b.column_count)) return false;
  }
  way.rows_in_place = left.guards == 0 && left.f->stored == p.computed && left.f->second == 0 && lie_evenly(p, *left.f, t.inner, &inner) &&
                      inner == 1 && lie_evenly(p, *left.f, p.rows.loops, &way.row_step);
  return true;
}

/* What points [point, point + count) of a factor are packed from at one step. */
static packed_key key_of(const contraction_factor &f, const contraction_step &at, int64_t point, int64_t count) {
  packed_key key = {point, count, at.inner, at.depth, f.data, {}};
  for (int32_t g = 0; g < f.guards; ++g) key.base[g] = f.base[g];
  return key;
}

/* Returns the packed rows of a block at one step; where they are kept, only those are packed that are not yet. */
static const char *packed_rows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                               const contraction_step &at) {
  const contraction_factor &f = p.term[at.term].factors[0];
  const int64_t width = p.f->rows;
  if (!p.keeps_rows) {
    fill_tables(p, m, b, at, 0);
    pack_points(p, f, m.rows, m.inner[0], at.depth, b.row_count, width, width / 2, m.rows_packed);
    return m.rows_packed;
  }
  const int64_t item = p.f->packed;
  char *all = m.rows_packed + step * p.most_inner * p.most_rows * item;
  for (int64_t n = b.first_block; n < b.first_block + b.blocks; ++n) {
    const int64_t first = block_start(p.row_strips, p.row_blocks, n) * width;
    const int64_t end = least_of(block_start(p.row_strips, p.row_blocks, n + 1) * width, p.rows.points);
    const packed_key key = key_of(f, at, first, end - first);
    packed_key &kept = m.kept[step * p.row_blocks + n];
    if (same_key(kept, key, f.guards)) continue;
    fill_tables(p, m, b, at, 0);
    contraction_table rows = m.rows;
    rows.offset += first - b.row;
    for (int64_t *&guard : rows.guard) guard += first - b.row;
    pack_points(p, f, rows, m.inner[0], at.depth, end - first, width, width / 2, all + first * at.depth * item);
    kept = key;
  }
  return all + b.row * at.depth * item;
}

/* Whether the guards of a factor that skip products let one count. */
static bool counts(const contraction_factor &f, const contraction_table &points, const contraction_table &inner, int64_t point,
                   int64_t k) {
  for (int32_t g = 0; g < f.guards; ++g) {
    const axis_index &at = f.f->at[f.guard[g]];
    const int64_t index = f.base[g] + points.guard[g][point] + inner.guard[g][k];
    if (index % f.divisor[g] != 0) return false;
    if (at.guarded == skipped && (index < 0 || index / f.divisor[g] >= at.size)) return false;
  }
  return true;
}

/* The element of packed points for inner point k. */
template <typename T>
static inline T packed_element(const char *packed, int64_t point, int64_t k, int64_t count, int64_t width, int64_t grain, int64_t depth) {
  const int64_t first = point / width * width;
  const int64_t own = count - first < width ? round_up(count - first, grain) : width;
  return reinterpret_cast<const T *>(packed)[first * depth + k * own + (point - first)];
}

/* Adds the products of a step that count, one by one: where an infinity or NaN would pass a guard that makes the other factor 0. */
template <typename T>
static void add_exactly(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const contraction_step &at,
                        const char *strips, bool add) {
  const contraction_factor *f = p.term[at.term].factors;
  const int64_t lanes = p.f->lanes;
  for (int64_t i = 0; i < b.row_count; ++i) {
    T *sums = reinterpret_cast<T *>(m.sums) + i * m.pitch;
    for (int64_t j = 0; j < b.column_count; ++j) {
      T &total = sums[position(b, j)];
      T sum = add ? total : T(0);
      for (int64_t k = 0; k < at.depth; ++k) {
        if (!counts(f[0], m.rows, m.inner[0], i, k) || !counts(f[1], m.columns, m.inner[1], j, k)) continue;
        sum += packed_element<T>(strips, i, k, b.row_count, p.f->rows, p.f->rows / 2, at.depth) *
               packed_element<T>(m.panels, j, k, b.column_count, lanes * p.panel_vectors, lanes, at.depth);
      }
      total = sum;
    }
  }
}

/* Packs the columns of a step over a block. */
static void pack_columns(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const contraction_step &at) {
  const int64_t lanes = p.f->lanes;
  pack_points(p, p.term[at.term].factors[1], m.columns, m.inner[1], at.depth, b.column_count, lanes * p.panel_vectors, lanes, m.panels);
}

/* Packs the columns of a step over a block, unless they are kept. */
static void keep_columns(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                         const contraction_step &at) {
  const contraction_factor &f = p.term[at.term].factors[1];
  const bool stays = p.kept_keys != nullptr && f.f->stays;
  m.panels = m.all_panels;
  if (!stays && !p.keeps_columns) return pack_columns(p, m, b, at);
  const packed_key key = key_of(f, at, b.column, b.column_count);
  const int64_t slot = stays ? b.column_block * p.steps + step : step;
  m.panels = (stays ? p.kept_panels : m.all_panels) + slot * p.most_inner * p.most_columns * p.f->packed;
  packed_key &kept = (stays ? p.kept_keys : m.kept_columns)[slot];
  if (same_key(kept, key, f.guards)) return;
  pack_columns(p, m, b, at);
  kept = key;
}

/* Whether the rows of a step over a block are multiplied where they lie: there are few columns, and the rows have just been computed, or are
 * of words, whose packing is no mere copy. */
static bool rows_in_place(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at,
                          column_way way) {
  const contraction_term &t = p.term[at.term];
  const contraction_factor &f = t.factors[0];
  const bool words = of_words(p);
  if (way != columns_packed || p.windows.used || t.skips || f.guards > 0) return false;
  if (words ? f.f->stored != dtype_bfloat16 || f.f->second != 1 : p.c->kept == nullptr || f.f->stored != p.computed) return false;
  if (b.column_count > few_panels * strip_vectors * p.f->lanes) return false;
  fill_tables(p, m, b, at, 0);
  return follow(m.inner[0].offset, at.depth, words ? 2 : 1);
}

/* Packs what a step over a block reads from a padded input, too. */
static void pack_padded_input(const contraction_plan &p, contraction_memory &m, const contraction_block &b,
                              const contraction_step &at) {
  const int32_t side = p.padded_input.used;
  const contraction_factor &f = p.term[0].factors[side];
  fill_table(p, f, p.term[0].inner, at.inner, at.depth, m.inner[side]);
  if (p.padded_input.used) {
    fill_table(p, f, p.columns.loops, b.column, b.column_count, m.columns);
    pack_columns(p, m, b, at);
  } else {
    fill_table(p, f, p.rows.loops, b.row, b.row_count, m.rows);
    pack_points(p, f, m.rows, m.inner[0], at.depth, b.row_count, p.f->rows, p.f->rows / 2, m.rows_packed);
  }
}

/* Adds a step in that way if it has to be; returns whether it did. */
static bool add_nonfinite(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at,
                          const char *strips, bool add) {
  const int64_t packed_rows = round_up(b.row_count, p.f->rows / 2) * at.depth;
  const int64_t packed_columns = round_up(b.column_count, p.f->lanes) * at.depth;
  const bool rows = p.windows.used ? p.f->all_finite(m.padded_input, m.layout->elements) : p.f->all_finite(strips, packed_rows);
  const bool columns = p.padded_input.used ? p.f->all_finite(m.padded_input, m.layout->elements) :
      p.f->all_finite(m.panels, packed_columns);
  if (rows && columns) return false;
  if (p.padded_input.used || p.windows.used) pack_padded_input(p, m, b, at);
  if (!p.windows.used) fill_tables(p, m, b, at, 0);
  if (p.computed == dtype_float64) {
    add_exactly<double>(p, m, b, at, strips, add);
  } else {
    add_exactly<float>(p, m, b, at, strips, add);
  }
  return true;
}

/* Copies what a step over a block of columns reads into the padded input. */
static void fill_padded_input(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                      const contraction_step &at) {
  const int64_t kept = keeps_layouts(p) ? step : 0;
  m.layout = m.layouts + kept;
  m.padded_offset = m.padded_offsets + kept * p.most_inner;
  padded_layout &s = *m.layout;
  const int64_t lines = b.column_count / b.line;
  if (s.first_inner != at.inner || s.lines != lines || s.points != b.line) {
    find_reach(p, at, s);
    lay_out_padded_input(p, s, lines, b.line);
    find_offsets(p, p.term[0].factors[1], p.term[0].inner, at.inner, at.depth, s, true, m.padded_offset);
    s.first_inner = at.inner;
  }
  int64_t index[max_contraction_loops];
  locate(p, p.columns.loops, b.column, index);
  padded_copy job;
  describe_copy(p, p.term[0].factors[1], s, p.columns.loops, index, m.padded_input, job);
  p.f->copy(job);
}

/* Copies what a step over a block of rows reads into the padded input. */
static void fill_windows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at) {
  const contraction_term &t = p.term[0];
  padded_layout &s = *m.layout;
  lay_out_windows(p, b.row, b.row_count, at, s);
  find_offsets(p, t.factors[0], t.inner, at.inner, at.depth, s, true, m.padded_offset);
  find_offsets(p, t.factors[0], p.rows.loops, b.row, b.row_count, s, false, m.row_offset);
  /* The rows that fill up the last strip are copies of its first. */
  for (int64_t row = b.row_count; row % p.f->rows != 0; ++row) m.row_offset[row] = m.row_offset[row / p.f->rows * p.f->rows];
  padded_copy job;
  describe_copy(p, t.factors[0], s, {}, nullptr, m.padded_input, job);
  p.f->copy(job);
}

/* Whether the sums of a block are done with a step. */
static inline bool is_last(const contraction_plan &p, const contraction_block &b, int64_t step) {
  return p.parts == 1 && step == b.end_step - 1;
}

/* Adds one step of the sums of few rows, one row at a time, to columns that are read where they lie. */
static void add_few_rows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                         const contraction_step &at, const few_rows_way &way) {
  const contraction_factor &left = p.term[at.term].factors[0];
  const int64_t item = itemsize(p.computed);
  const char *rows = m.rows_packed;
  int64_t pitch = at.depth * p.f->packed; /* bytes between rows */
  if (way.rows_in_place) {
    rows = left.data + (at.inner + b.row * way.row_step) * item;
    pitch = way.row_step * item;
  } else {
    fill_tables(p, m, b, at, 0);
    pack_points(p, left, m.rows, m.inner[0], at.depth, b.row_count, 1, 1, m.rows_packed);
    if (p.keeps_rows) m.kept[0].count = -1;
  }
  const contraction_factor &right = p.term[at.term].factors[1];
  const char *from = right.data + way.first * itemsize(right.f->stored);
  const contraction_line add = way.dots ? p.f->dots : p.f->line;
  for (int64_t row = 0; row < b.row_count; ++row) {
    char *sums = m.sums + row * m.pitch * item;
    add(at.depth, rows + row * pitch, from, right.f->stored, way.starts, sums, b.column_count, step > b.first_step);
  }
  if (is_last(p, b, step)) finish_strip(p, m, b, m.sums, 0, b.row_count);
}

/* Whether sums of whole strips and panels are written as results, without a tile function: they are scaled, summed up in one step, and lie
 * as they come. Those of words are narrowed on the way; of others it pays where blocks of rows of a slice are computed. */
static bool writes_results(const contraction_plan &p, column_way way) {
  const int32_t result = result_of(p);
  const operand &o = p.c->s->operands[result];
  const bool words = of_words(p);
  if (!p.c->scaled || p.whole_sums || p.parts > 1 || way != columns_packed || p.windows.used) return false;
  if (p.f->scaled[strip_vectors - 1] == nullptr || (words ? p.c->scale != 1 : p.c->kept == nullptr)) return false;
  if (o.stored != (words ? dtype_bfloat16 : p.computed)) return false;
  return p.columns.stride[result] == 1 && p.columns.run == p.columns.points && p.rows.run == p.rows.points;
}

/* The columns of a block from a place on. */
static contraction_block rest_of(const contraction_block &b, int64_t done) {
  contraction_block rest = b;
  rest.column += done;
  rest.column_count = rest.line = rest.line_pitch = b.column_count - done;
  return rest;
}

/* Adds one step of the sums, a term over a block of its inner points, to a block of the result. */
static void add_step(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step) {
  const contraction_step at = step_of(p, step);
  const int64_t item = itemsize(p.computed);
  const bool packed = p.padded_input.used || p.windows.used;
  few_rows_way few;
  if (!packed && b.row_count <= few_rows && find_few_rows_way(p, m, b, at, few)) return add_few_rows(p, m, b, step, at, few);
  if (!p.padded_input.used) fill_tables(p, m, b, at, 1);
  const column_way way = p.padded_input.used      ? columns_in_padded_input
                         : p.windows.used ? columns_packed
                                          : way_of(p, p.term[at.term], m, b);
  if (way == columns_in_padded_input) fill_padded_input(p, m, b, step, at);
  if (p.windows.used) fill_windows(p, m, b, at);
  if (way == columns_packed) keep_columns(p, m, b, step, at);
  const bool in_place = rows_in_place(p, m, b, at, way);
  const contraction_factor &left = p.term[at.term].factors[0];
  const char *strips = p.windows.used ? m.rows_packed : in_place ? left.data : packed_rows(p, m, b, step, at);
  /* The rows that fill up the last strip are copies of its first. */
  for (int64_t row = b.row_count; in_place && row % p.f->rows != 0; ++row) m.rows.offset[row] = m.rows.offset[row / p.f->rows * p.f->rows];
  const bool add = step > b.first_step;
  const bool done = p.term[at.term].skips && add_nonfinite(p, m, b, at, strips, add);
  const int64_t count = done ? 0 : list_panels(p, m, b, at, way);
  const bool writes = !done && (!in_place || of_words(p)) && writes_results(p, way);
  fetched_lines ahead = {};
  if (way == columns_packed && count > 0 && p.c->kept == nullptr) ahead = next_columns(p, m, b, step, at, count * blocks_of(b.row_count, p.f->rows));
  for (int64_t row = 0; row < b.row_count; row += p.f->rows) {
    const int64_t rows = least_of(b.row_count - row, p.f->rows);
    const bool half = 2 * rows <= p.f->rows;
    const char *const packed = strips + row * at.depth * p.f->packed;
    char *sums = m.sums + (p.whole_sums ? row * m.pitch * item : 0);
    strip_position place = {};
    if (is_last(p, b, step)) place = position_of_strip(p, b.row + row, rows);
    const column_panel *panel = m.list;
    int64_t written = 0; /* columns */
    for (; writes && rows == p.f->rows && panel < m.list + count; ++panel) {
      const contraction_kernel scaled = (in_place ? p.f->scaled_lines : p.f->scaled)[panel->vectors - 1];
      const int64_t end = panel->at + panel->vectors * p.f->lanes;
      if (scaled == nullptr || end > b.column_count) break;
      char *to = const_cast<char *>(panel->result) + place.offset;
      const int64_t pitch = place.pitch / itemsize(p.c->s->operands[result_of(p)].stored);
      panel_product product = {at.depth, packed, panel->from, panel->offsets, to, pitch, false, p.c->scale, p.c->added, nullptr, nullptr};
      if (in_place) product.a = strips, product.rows = m.rows.offset + row, product.inner = m.inner[0].offset;
      scaled(product);
      written = end;
    }
    for (; panel < m.list + count; ++panel) {
      char *to = sums + panel->at * item;
      fetch_results(p, *panel, place);
      fetch_share(ahead);
      if (p.whole_sums && p.c->kept == nullptr) fetch_sums(p, m, *panel, to, rows);
      panel_product product = {at.depth, packed, panel->from, panel->offsets, to, m.pitch, add, 1, 0, nullptr, nullptr};
      if (p.windows.used || in_place) {
        product.a = p.windows.used ? m.padded_input : strips;
        product.rows = (p.windows.used ? m.row_offset : m.rows.offset) + row;
        product.inner = p.windows.used ? m.padded_offset : m.inner[0].offset;
        (in_place && of_words(p) ? p.f->lines : p.f->windows)[panel->vectors - 1](product);
      } else {
        p.f->kernel[half][panel->vectors - 1](product);
      }
    }
    if (!is_last(p, b, step) || written == b.column_count) continue;
    finish_strip(p, m, written > 0 ? rest_of(b, written) : b, sums + written * item, row, rows);
  }
}

}  // namespace opc
#endif  // OPC_CONTRACTION_STEPS_H
