/* Runs a contraction: cuts it into blocks that fit the caches, packs the factors, and hands finished strips of sums to a tile function.
 *
 * As in GotoBLAS, a block of columns of one factor is packed into the second-level cache and multiplied with strips of rows of the
 * other, which are packed as they come. The loops of the result are rows where only the first factor varies along them, columns where
 * only the second does, and batches otherwise. Tables of offsets for rows, columns and inner points let any order of loops, window and
 * stride be one matrix product. Each sum is added up in the same order, however the work is split over threads.
 */
#ifndef OPC_CONTRACTION_RUN_H
#define OPC_CONTRACTION_RUN_H

#include "opc/contraction_memory.h"
#include "opc/contraction_split.h"
#include "opc/rows.h"

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

/* A block of the result: `row_count` rows from `row` on and `column_count` columns from `column` on. */
struct contraction_block {
  int64_t row, row_count, column, column_count;
};

/* Hands rows [first, first + count) of a block of sums to the tile function, in pieces in which every operand has one stride. */
static void finish_strip(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const char *sums,
                         int64_t first, int64_t count) {
  const stage &s = *p.c->s;
  const int64_t item = itemsize(p.computed);
  tile t;
  t.scratch = nullptr;
  t.scratch_pitch = 0;
  for (int64_t row = 0; row < count;) {
    const int64_t rows = run_of_points(p, p.rows, b.row + first + row, count - row);
    for (int64_t column = 0; column < b.column_count;) {
      const int64_t columns = run_of_points(p, p.columns, b.column + column, b.column_count - column);
      t.rows = rows;
      t.columns = columns;
      t.data[0] = const_cast<char *>(sums) + (row * m.pitch + column) * item;
      t.step[0] = m.pitch;
      char *buffer = m.staged;
      char *place[max_operands];
      for (int32_t k = 1; k < s.operand_count; ++k) {
        const operand &o = s.operands[k];
        t.data[k] = t.data[0]; /* for an absent input, which nothing uses: vector loads of no lanes are slow where there is no memory */
        t.step[k] = 0;
        if (o.data == nullptr) continue;
        const int64_t offset = p.operand_offset[k] + operand_offset(p, p.rows, b.row + first + row, o) +
                               operand_offset(p, p.columns, b.column + column, o);
        place[k] = o.data + offset * itemsize(o.stored);
        t.data[k] = place[k];
        t.step[k] = p.rows.stride[k];
        if (is_staged(p, k)) {
          t.data[k] = buffer;
          t.step[k] = columns;
          buffer += aligned_bytes(p.f->rows * p.most_columns * 8);
          const block part = {rows, columns, p.rows.stride[k], p.columns.stride[k]};
          if (o.what == role_input) load_block(*p.conversions, t.data[k], columns, o.stored, place[k], part);
        }
      }
      p.function(t, p.arguments);
      for (int32_t k = 1; k < s.operand_count; ++k) {
        const operand &o = s.operands[k];
        if (o.data == nullptr || o.what == role_input || !is_staged(p, k)) continue;
        store_block(*p.conversions, place[k], o.stored, {rows, columns, p.rows.stride[k], p.columns.stride[k]}, t.data[k], columns);
      }
      column += columns;
    }
    row += rows;
  }
}

static inline bool follow(const int64_t *offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

/* How the columns of a block are multiplied: packed, or where they lie, which pays for few rows. */
enum column_way { columns_packed, columns_in_panels, columns_in_lines, columns_in_dots };

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
    for (int32_t i = 0; i < 2; ++i) fill_table(p, t.factors[i], t.inner, at.inner, at.depth, m.inner[i]);
  }
  if (fresh || m.first_row != b.row) fill_table(p, t.factors[0], p.rows.loops, b.row, b.row_count, m.rows);
  if (fresh || m.first_column != b.column) fill_table(p, t.factors[1], p.columns.loops, b.column, b.column_count, m.columns);
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
      T sum = add ? sums[j] : T(0);
      for (int64_t k = 0; k < at.depth; ++k) {
        if (!counts(f[0], m.rows, m.inner[0], i, k) || !counts(f[1], m.columns, m.inner[1], j, k)) continue;
        sum += packed_element<T>(strips, i, k, b.row_count, p.f->rows, p.f->rows / 2, at.depth) *
               packed_element<T>(m.panels, j, k, b.column_count, lanes * strip_vectors, lanes, at.depth);
      }
      sums[j] = sum;
    }
  }
}

/* Adds a step in that way if it has to be; tells whether it did. */
template <typename T>
static bool add_nonfinite(const contraction_plan &p, const contraction_memory &m, const contraction_block &b,
                          const contraction_step &at, const char *strips, bool add) {
  const int64_t rows = round_up(b.row_count, p.f->rows / 2);
  const int64_t columns = round_up(b.column_count, p.f->lanes);
  if (p.f->all_finite(strips, rows * at.depth) && p.f->all_finite(m.panels, columns * at.depth)) return false;
  add_exactly<T>(p, m, b, at, strips, add);
  return true;
}

/* Adds one step of the sums of few rows, one row at a time. */
static void add_few_rows(const contraction_plan &p, contraction_memory &m, const contraction_block &b, int64_t step,
                         const contraction_step &at, column_way way) {
  const contraction_factor &right = p.term[at.term].factors[1];
  const int64_t item = itemsize(p.computed);
  pack_points(p, p.term[at.term].factors[0], m.rows, m.inner[0], at.depth, b.row_count, 1, 1, m.rows_packed);
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
  const column_way way = way_of(p, p.term[at.term], m, b, at.depth);
  if (way == columns_packed) pack_points(p, right, m.columns, m.inner[1], at.depth, b.column_count, panel, lanes, m.panels);
  if (way == columns_in_lines || way == columns_in_dots) return add_few_rows(p, m, b, step, at, way);
  const bool ready = way == columns_in_panels;
  const char *strips = packed_rows(p, m, b, step, at);
  const bool done = p.term[at.term].skips && (p.computed == dtype_float64 ? add_nonfinite<double>(p, m, b, at, strips, step > 0)
                                                                          : add_nonfinite<float>(p, m, b, at, strips, step > 0));
  for (int64_t row = 0; row < b.row_count; row += p.f->rows) {
    const int64_t rows = b.row_count - row < p.f->rows ? b.row_count - row : p.f->rows;
    const bool half = 2 * rows <= p.f->rows;
    char *sums = m.sums + (p.whole_sums ? row * m.pitch * item : 0);
    for (int64_t c = 0; c < b.column_count && !done; c += panel) {
      const int64_t count = b.column_count - c < panel ? b.column_count - c : panel;
      const int64_t vectors = blocks_of(count, lanes);
      const void *from = ready ? right.data + m.columns.offset[c] * item : m.panels + c * at.depth * item;
      const int64_t *offsets = ready ? m.inner[1].offset : p.panel_offset[vectors - 1];
      p.f->kernel[half][vectors - 1](at.depth, strips + row * at.depth * item, from, offsets, sums + c * item, m.pitch, step > 0);
    }
    if (step == p.steps - 1) finish_strip(p, m, b, sums, row, rows);
  }
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
    const int64_t panel = strip_vectors * p.f->lanes;
    b.column = block_start(p.column_panels, p.column_blocks, column) * panel;
    b.column_count = block_start(p.column_panels, p.column_blocks, column + 1) * panel;
    b.column_count = (b.column_count < p.columns.points ? b.column_count : p.columns.points) - b.column;
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
