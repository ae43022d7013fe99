/* Runs a contraction: cuts it into blocks that fit the caches, packs the factors, and hands finished strips of sums to a tile function.
 *
 * As in GotoBLAS, a block of columns of one factor is packed into the second-level cache and multiplied with strips of rows of the
 * other, which are packed as they come. The loops of the result are rows where only the first factor varies along them, columns where
 * only the second does, and batches otherwise. Tables of offsets for rows, columns and inner points let any order of loops, window and
 * stride be one matrix product. Each sum is added up in the same order, however the work is split over threads.
 */
#ifndef OPC_CONTRACTION_RUN_H
#define OPC_CONTRACTION_RUN_H

#include "opc/contraction_finish.h"
#include "opc/contraction_split.h"

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
  job.point = points.offset;
  job.inner = inner.offset;
  job.guards = f.guards;
  for (int32_t g = 0; g < f.guards; ++g) {
    const axis_index &at = f.f->at[f.guard[g]];
    job.guard[g] = {points.guard[g], inner.guard[g], f.base[g], at.size, f.divisor[g], at.stride};
  }
  p.f->pack(job);
}

static inline bool follow(const int64_t *offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

/* How the columns of a block are multiplied: packed, or where they lie, which pays for few rows. */
enum column_way { columns_packed, columns_in_slab, columns_in_panels, columns_in_lines, columns_in_dots };

static column_way way_of(const contraction_plan &p, const contraction_term &t, const contraction_memory &m, const contraction_block &b,
                         int64_t depth) {
  const contraction_factor &f = t.factors[1];
  if (t.skips || f.guards > 0 || f.f->stored != p.computed || b.row_count > few_strips * p.f->rows) return columns_packed;
  const bool few = b.row_count <= few_rows;
  if (few && depth >= p.f->lanes && follow(m.inner[1].offset, depth)) return columns_in_dots;
  if (!follow(m.columns.offset, b.column_count)) return columns_packed;
  if (few) return columns_in_lines;
  return b.column_count % p.f->lanes == 0 ? columns_in_panels : columns_packed;
}

/* Fills the tables for a step over a block, as far as they don't hold it already. */
static void fill_tables(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at) {
  const contraction_term &t = p.term[at.term];
  const bool fresh = m.term != at.term;
  if (fresh || m.first_inner != at.inner) {
    for (int32_t i = 0; i < (p.slab.used ? 1 : 2); ++i) fill_table(p, t.factors[i], t.inner, at.inner, at.depth, m.inner[i]);
  }
  if (fresh || m.first_row != b.row) fill_table(p, t.factors[0], p.rows.loops, b.row, b.row_count, m.rows);
  if (!p.slab.used && (fresh || m.first_column != b.column)) {
    fill_table(p, t.factors[1], p.columns.loops, b.column, b.column_count, m.columns);
  }
  m.term = at.term;
  m.first_inner = at.inner;
  m.first_row = b.row;
  m.first_column = b.column;
}

/* Returns the packed rows of a block at one step: those packed for an earlier block, where the rows are the same. */
static const char *packed_rows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                               const contraction_step &at) {
  const contraction_factor &f = p.term[at.term].factors[0];
  char *to = m.rows_packed + (p.keeps_rows ? step * p.most_inner * p.most_rows * itemsize(p.computed) : 0);
  packed_key key = {b.row, b.row_count, f.data, {}};
  for (int32_t g = 0; g < f.guards; ++g) key.base[g] = f.base[g];
  if (p.keeps_rows && same_key(m.kept[step], key, f.guards)) return to;
  pack_points(p, f, m.rows, m.inner[0], at.depth, b.row_count, p.f->rows, p.f->rows / 2, to);
  if (p.keeps_rows) m.kept[step] = key;
  return to;
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
               packed_element<T>(m.panels, j, k, b.column_count, lanes * strip_vectors, lanes, at.depth);
      }
      total = sum;
    }
  }
}

/* Packs the columns of a step over a block. */
static void pack_columns(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const contraction_step &at) {
  const int64_t lanes = p.f->lanes;
  pack_points(p, p.term[at.term].factors[1], m.columns, m.inner[1], at.depth, b.column_count, lanes * strip_vectors, lanes, m.panels);
}

/* Adds a step in that way if it has to be; tells whether it did. */
static bool add_nonfinite(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at,
                          const char *strips, bool add) {
  const contraction_term &t = p.term[at.term];
  const char *read = p.slab.used ? m.slab : m.panels;
  const int64_t count = p.slab.used ? m.layout.elements : round_up(b.column_count, p.f->lanes) * at.depth;
  if (p.f->all_finite(strips, round_up(b.row_count, p.f->rows / 2) * at.depth) && p.f->all_finite(read, count)) return false;
  if (p.slab.used) {
    fill_table(p, t.factors[1], t.inner, at.inner, at.depth, m.inner[1]);
    fill_table(p, t.factors[1], p.columns.loops, b.column, b.column_count, m.columns);
    pack_columns(p, m, b, at);
  }
  if (p.computed == dtype_float64) {
    add_exactly<double>(p, m, b, at, strips, add);
  } else {
    add_exactly<float>(p, m, b, at, strips, add);
  }
  return true;
}

/* Copies what a step over a block of columns reads into the slab. */
static void fill_slab(const contraction_plan &p, contraction_memory &m, const contraction_block &b, const contraction_step &at) {
  slab_layout &s = m.layout;
  const int64_t lines = b.column_count / b.line;
  if (s.first_inner != at.inner || s.lines != lines || s.points != b.line) {
    find_reach(p, at, s);
    lay_out_slab(p, s, lines, b.line);
    find_offsets(p, at, s, m.slab_offset);
    s.first_inner = at.inner;
  }
  int64_t index[max_contraction_loops];
  locate(p, p.columns.loops, b.column, index);
  slab_copy job;
  describe_copy(p, s, index, m.slab, job);
  p.f->copy(job);
}

/* Adds one step of the sums of few rows, one row at a time. */
static void add_few_rows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                         const contraction_step &at, column_way way) {
  const contraction_factor &right = p.term[at.term].factors[1];
  const int64_t item = itemsize(p.computed);
  pack_points(p, p.term[at.term].factors[0], m.rows, m.inner[0], at.depth, b.row_count, 1, 1, m.rows_packed);
  if (p.keeps_rows) m.kept[0].count = -1;
  for (int64_t row = 0; row < b.row_count; ++row) {
    const char *left = m.rows_packed + row * at.depth * item;
    char *sums = m.sums + row * m.pitch * item;
    if (way == columns_in_lines) {
      const char *from = right.data + m.columns.offset[0] * item;
      p.f->line(at.depth, left, from, m.inner[1].offset, sums, b.column_count, step > 0);
    } else {
      const char *from = right.data + m.inner[1].offset[0] * item;
      p.f->dots(at.depth, left, from, m.columns.offset, sums, b.column_count, step > 0);
    }
  }
  if (step == p.steps - 1) finish_strip(p, m, b, m.sums, 0, b.row_count);
}

/* Adds one step of the sums, a term over a block of its inner points, to a block of the result. */
static void add_step(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step) {
  const contraction_step at = step_of(p, step);
  const contraction_factor &right = p.term[at.term].factors[1];
  const int64_t item = itemsize(p.computed);
  const int64_t lanes = p.f->lanes;
  const int64_t panel = lanes * strip_vectors;
  fill_tables(p, m, b, at);
  const column_way way = p.slab.used ? columns_in_slab : way_of(p, p.term[at.term], m, b, at.depth);
  if (way == columns_in_slab) fill_slab(p, m, b, at);
  if (way == columns_packed) pack_columns(p, m, b, at);
  if (way == columns_in_lines || way == columns_in_dots) return add_few_rows(p, m, b, step, at, way);
  const char *strips = packed_rows(p, m, b, step, at);
  const bool done = p.term[at.term].skips && add_nonfinite(p, m, b, at, strips, step > 0);
  const int64_t columns = position(b, b.column_count - 1) + 1;
  for (int64_t row = 0; row < b.row_count; row += p.f->rows) {
    const int64_t rows = b.row_count - row < p.f->rows ? b.row_count - row : p.f->rows;
    const bool half = 2 * rows <= p.f->rows;
    char *sums = m.sums + (p.whole_sums ? row * m.pitch * item : 0);
    for (int64_t c = 0; c < columns && !done; c += panel) {
      const int64_t count = columns - c < panel ? columns - c : panel;
      const int64_t vectors = blocks_of(count, lanes);
      const void *from = m.panels + c * at.depth * item;
      const int64_t *offsets = p.panel_offset[vectors - 1];
      if (way == columns_in_slab) {
        from = m.slab + c * item;
        offsets = m.slab_offset;
      } else if (way == columns_in_panels) {
        from = right.data + m.columns.offset[c] * item;
        offsets = m.inner[1].offset;
      }
      p.f->kernel[half][vectors - 1](at.depth, strips + row * at.depth * item, from, offsets, sums + c * item, m.pitch, step > 0);
    }
    if (step == p.steps - 1) finish_strip(p, m, b, sums, row, rows);
  }
}

/* Sets the columns of a block of a contraction: `number` is its place among them. */
static void choose_columns(const contraction_plan &p, int64_t number, contraction_block &b) {
  if (p.slab.used) {
    const slab_plan &of = p.slab;
    const int64_t piece = number % of.point_blocks;
    const int64_t lines = number / of.point_blocks % of.line_blocks;
    const int64_t line = block_start(of.all_lines, of.line_blocks, lines);
    const int64_t point = block_start(of.all_points, of.point_blocks, piece);
    const int64_t count = block_start(of.all_lines, of.line_blocks, lines + 1) - line;
    b.line = block_start(of.all_points, of.point_blocks, piece + 1) - point;
    b.line_pitch = of.reach + b.line;
    b.column = (number / of.point_blocks / of.line_blocks * of.all_lines + line) * of.all_points + point;
    b.column_count = count * b.line;
    return;
  }
  const int64_t panel = strip_vectors * p.f->lanes;
  b.column = block_start(p.column_panels, p.column_blocks, number) * panel;
  b.column_count = block_start(p.column_panels, p.column_blocks, number + 1) * panel;
  b.column_count = (b.column_count < p.columns.points ? b.column_count : p.columns.points) - b.column;
  b.line = b.line_pitch = b.column_count;
}

/* Computes a block that no term adds to. */
static void finish_nothing(const contraction_plan &p, const contraction_memory &m, const contraction_block &b) {
  memset(m.sums, 0, static_cast<size_t>(p.f->rows * m.pitch * itemsize(p.computed)));
  for (int64_t row = 0; row < b.row_count; row += p.f->rows) {
    finish_strip(p, m, b, m.sums, row, b.row_count - row < p.f->rows ? b.row_count - row : p.f->rows);
  }
}

/* The body of the parallel loop: units [begin, end), each a block of rows and columns of one batch, rows innermost. */
static void run_contraction_units(void *argument, int64_t begin, int64_t end) {
  contraction_plan &shared = *static_cast<contraction_plan *>(argument);
  contraction_plan p = shared;
  contraction_memory m;
  alignas(cache_line) char small[16384];
  char *memory = small;
  void *allocated = nullptr;
  const int64_t bytes = lay_out(p, nullptr, m);
  if (bytes > static_cast<int64_t>(sizeof small)) {
    if (posix_memalign(&allocated, 4096, static_cast<size_t>(bytes)) != 0) {
      __atomic_store_n(&shared.failed, true, __ATOMIC_RELAXED);
      return;
    }
    memory = static_cast<char *>(allocated);
  }
  lay_out(p, memory, m);
  for (int64_t step = 0; p.keeps_rows && step < p.steps; ++step) m.kept[step].count = -1;
  for (int64_t unit = begin; unit < end;) {
    const int64_t row = unit % p.row_blocks;
    const int64_t column = unit / p.row_blocks % p.column_blocks;
    move_to_batch(p, unit / p.row_blocks / p.column_blocks);
    int64_t count = p.row_blocks - row < end - unit ? p.row_blocks - row : end - unit;
    if (count > p.joined_blocks) count = p.joined_blocks;
    contraction_block b;
    b.row = block_start(p.row_strips, p.row_blocks, row) * p.f->rows;
    b.row_count = block_start(p.row_strips, p.row_blocks, row + count) * p.f->rows;
    b.row_count = (b.row_count < p.rows.points ? b.row_count : p.rows.points) - b.row;
    choose_columns(p, column, b);
    if (p.steps == 0) finish_nothing(p, m, b);
    for (int64_t step = 0; step < p.steps; ++step) add_step(p, m, b, step);
    unit += count;
  }
  free(allocated);
}

/* Computes a contraction whose loops are all affine: `p` holds their sizes and beginnings. */
static int32_t run_planned(contraction_plan &p) {
  const opc_context *context = p.c->s->context;
  int64_t units = 0;
  if (!plan_blocks(p, &units)) return OPC_OK;
  int64_t offsets[strip_vectors][inner_block];
  for (int32_t v = 0; v < strip_vectors; ++v) {
    for (int64_t k = 0; k < p.most_inner; ++k) offsets[v][k] = k * (v + 1) * p.f->lanes;
    p.panel_offset[v] = offsets[v];
  }
  const int64_t work = p.work / units > 0 ? p.work / units : 1;
  const int64_t grain = unit_work / work > 0 ? unit_work / work : 1;
  if (context == nullptr || context->parallel_for == nullptr || units <= grain) {
    run_contraction_units(&p, 0, units);
  } else {
    context->parallel_for(context->pool, units, grain, run_contraction_units, &p);
  }
  return p.failed ? fail(context, OPC_OUT_OF_MEMORY, "no memory for the blocks of a contraction") : OPC_OK;
}

/* Computes a contraction in which no factor steps, in parts in which no index has to be divided. */
static int32_t run_whole(contraction_plan &p) {
  divided_indices divided;
  find_divided(p, divided);
  p.whole = divided.even;
  if (!divided.even || divided.count == 0) return run_planned(p);
  const int32_t code = for_residues(p, divided, 0, [&]() { return run_planned(p); });
  for (int32_t loop = p.c->s->rank; loop < p.c->loops; ++loop) {
    p.begin[loop] = 0;
    p.size[loop] = p.c->size[loop];
    p.step[loop] = 1;
  }
  return code;
}

/* Computes a contraction and calls `function` with its sums. Where a factor steps along an axis of the result, it is cut into the runs
 * in which the factor stays, one after the other. */
static int32_t run(const contraction &c, const contraction_functions &f, const row_functions &rows, dtype computed,
                   tile_function function, const void *arguments) {
  contraction_plan p;
  p.c = &c;
  p.f = &f;
  p.conversions = &rows;
  p.computed = computed;
  p.function = function;
  p.arguments = arguments;
  p.failed = false;
  for (int32_t loop = 0; loop < c.loops; ++loop) {
    p.begin[loop] = 0;
    p.size[loop] = c.size[loop];
    p.step[loop] = 1;
  }
  drop_guards(p);
  const int32_t stepped = stepped_loop(p);
  if (stepped < 0) return run_whole(p);
  int32_t code = OPC_OK;
  for (int64_t begin = 0; begin < c.size[stepped] && code == OPC_OK; begin += p.size[stepped]) {
    p.begin[stepped] = begin;
    p.size[stepped] = run_of_steps(p, stepped, begin, c.size[stepped]);
    code = run_whole(p);
  }
  return code;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_RUN_H
