/* Runs a contraction: cuts it into blocks that fit the caches, packs the factors, and hands finished strips of sums to a tile function.
 *
 * As in GotoBLAS, a block of columns of one factor is packed into the second-level cache and multiplied with strips of rows of the
 * other, which are packed as they come. The loops of the result are rows where only the first factor varies along them, columns where
 * only the second does, and batches otherwise. Tables of offsets for rows, columns and inner points let any order of loops, window and
 * stride be one matrix product. Each sum is added up in the same order, however the work is split over threads.
 */
#ifndef OPC_CONTRACTION_RUN_H
#define OPC_CONTRACTION_RUN_H

#include "opc/contraction/groups.h"
#include "opc/core/aligned.h"
#include "opc/core/call.h"
#include "opc/core/functions.h"
#include "opc/core/workspace.h"
#include "opc/rows/rows.h"

namespace opc {

/* Computes a contraction and calls `function` with its sums. Where a factor steps along an axis of the result, it is cut into the runs
 * in which the factor stays, one after the other. */
OPC_FUNCTION int32_t run(const contraction &c, const contraction_functions &f, const row_functions &rows, dtype computed,
                         tile_function function, const void *arguments);

}  // namespace opc

#if !OPC_ELSEWHERE
#include "opc/contraction/split.h"
#include "opc/contraction/steps.h"
#include "opc/contraction/words.h"

namespace opc {

/* The panel that a block of columns begins with. */
static inline int64_t first_panel(const contraction_plan &p, int64_t block) {
  if (p.block_panels > 0) return least_of(block * p.block_panels, p.column_panels);
  return block_start(p.column_panels, p.column_blocks, block);
}

/* Sets the columns of a block of a contraction: `number` is its place among them. */
static void choose_columns(const contraction_plan &p, int64_t number, contraction_block &b) {
  b.column_block = number;
  if (p.padded_input.used) {
    const padded_plan &of = p.padded_input;
    const int64_t piece = number % of.point_blocks;
    const int64_t lines = number / of.point_blocks % of.line_blocks;
    const int64_t line = block_start(of.all_lines, of.line_blocks, lines);
    const int64_t point = block_start(of.all_points, of.point_blocks, piece);
    const int64_t count = block_start(of.all_lines, of.line_blocks, lines + 1) - line;
    b.line = block_start(of.all_points, of.point_blocks, piece + 1) - point;
    b.line_pitch = of.joined ? of.reach + b.line : round_up(b.line, p.f->lanes);
    b.column = (number / of.point_blocks / of.line_blocks * of.all_lines + line) * of.all_points + point;
    b.column_count = count * b.line;
    return;
  }
  const int64_t panel = p.panel_vectors * p.f->lanes;
  b.column = first_panel(p, number) * panel;
  b.column_count = first_panel(p, number + 1) * panel;
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

enum : int64_t { page_bytes = 4096 };

/* The memory of the threads of a call. A host may run many short ranges of units: what one has packed is there for the next. */
struct memory_pool {
  enum { most = 64 };
  bool taken[most] = {};
  void *allocated[most] = {};
  contraction_memory memory[most];

  ~memory_pool() {
    for (void *each : allocated) give_memory(each);
  }
};

/* The memory of a range of units, from the pool where it is more than a little. */
struct thread_memory {
  alignas(cache_line) char small[16384];
  void *allocated = nullptr;
  memory_pool *pool = nullptr;
  int32_t place = 0; /* in the pool, if there is one */

  /* Lays it out; false where there is none. */
  bool lay_out(const contraction_plan &p, contraction_memory &m) {
    char *memory = small;
    const int64_t bytes = opc::lay_out(p, nullptr, m);
    if (bytes > static_cast<int64_t>(sizeof small)) {
      allocated = take_memory(bytes);
      if (allocated == nullptr) return false;
      memory = static_cast<char *>(allocated);
    }
    opc::lay_out(p, memory, m);
    return true;
  }

  /* Takes what is free in the pool. */
  bool take(const contraction_plan &p, contraction_memory &m) {
    while (place < memory_pool::most && __atomic_exchange_n(&p.pool->taken[place], true, __ATOMIC_ACQUIRE)) ++place;
    if (place < memory_pool::most) pool = p.pool;
    if (pool != nullptr && pool->allocated[place] != nullptr) {
      m = pool->memory[place];
      return true;
    }
    if (!lay_out(p, m)) return false;
    if (pool != nullptr && allocated != nullptr) {
      pool->allocated[place] = allocated;
      allocated = nullptr;
    }
    return true;
  }

  void give_back(const contraction_memory &m) {
    if (pool == nullptr) return;
    pool->memory[place] = m;
    __atomic_store_n(&pool->taken[place], false, __ATOMIC_RELEASE);
  }

  ~thread_memory() { give_memory(allocated); }
};

/* Where the sums of a part of the steps over a block begin. */
static inline char *partial_sums(const contraction_plan &p, int64_t part, int64_t column, int64_t row, int64_t pitch) {
  const int64_t rows = p.row_strips * p.f->rows;
  return p.partial + ((part * p.column_blocks + column) * rows + row) * pitch * itemsize(p.computed);
}

/* The body of the parallel loop: units [begin, end), each a block of rows and columns of one batch and a part of the steps, rows innermost. */
static void run_contraction_units(void *argument, int64_t begin, int64_t end) {
  contraction_plan &shared = *static_cast<contraction_plan *>(argument);
  contraction_plan p = shared;
  contraction_memory m;
  thread_memory memory;
  if (!memory.take(p, m)) return __atomic_store_n(&shared.failed, true, __ATOMIC_RELAXED);
  for (int64_t unit = begin; unit < end;) {
    const int64_t row = unit % p.row_blocks;
    const int64_t column = unit / p.row_blocks % p.column_blocks;
    const int64_t part = unit / p.row_blocks / p.column_blocks % p.parts;
    move_to_batch(p, unit / p.row_blocks / p.column_blocks / p.parts);
    int64_t count = p.row_blocks - row < end - unit ? p.row_blocks - row : end - unit;
    if (count > p.joined_blocks) count = p.joined_blocks;
    contraction_block b;
    b.row = block_start(p.row_strips, p.row_blocks, row) * p.f->rows;
    b.row_count = block_start(p.row_strips, p.row_blocks, row + count) * p.f->rows;
    b.row_count = (b.row_count < p.rows.points ? b.row_count : p.rows.points) - b.row;
    b.first_block = row;
    b.blocks = count;
    choose_columns(p, column, b);
    b.first_step = block_start(p.steps, p.parts, part);
    b.end_step = block_start(p.steps, p.parts, part + 1);
    if (p.parts > 1) m.sums = partial_sums(p, part, column, b.row, m.pitch);
    if (p.steps == 0) finish_nothing(p, m, b);
    for (int64_t step = b.first_step; step < b.end_step; ++step) add_step(p, m, b, step);
    unit += count;
  }
  memory.give_back(m);
}

/* The body of the second parallel loop where the steps are summed up in parts: adds these up for units [begin, end), each a strip of rows of
 * a block of columns, strips innermost. */
static void join_parts(void *argument, int64_t begin, int64_t end) {
  contraction_plan &shared = *static_cast<contraction_plan *>(argument);
  contraction_plan p = shared;
  contraction_memory m;
  thread_memory memory;
  if (!memory.lay_out(p, m)) return __atomic_store_n(&shared.failed, true, __ATOMIC_RELAXED);
  move_to_batch(p, 0);
  float ones[most_parts];
  double double_ones[most_parts];
  for (int64_t part = 0; part < p.parts; ++part) {
    ones[part] = 1;
    double_ones[part] = 1;
  }
  const line_starts starts = {nullptr, p.column_blocks * p.row_strips * p.f->rows * m.pitch};
  const void *factors = p.computed == dtype_float64 ? static_cast<const void *>(double_ones) : ones;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit / p.row_strips;
    contraction_block b;
    choose_columns(p, column, b);
    b.row = unit % p.row_strips * p.f->rows;
    b.row_count = least_of(p.f->rows, p.rows.points - b.row);
    const int64_t columns = position(b, b.column_count - 1) + 1;
    for (int64_t row = 0; row < b.row_count; ++row) {
      const char *from = partial_sums(p, 0, column, b.row + row, m.pitch);
      p.f->line(p.parts, factors, from, p.computed, starts, m.sums + row * m.pitch * itemsize(p.computed), columns, false);
    }
    finish_strip(p, m, b, m.sums, 0, b.row_count);
  }
}

/* Runs the body of a parallel loop over units that are `work` multiplications each. */
static void run_units(contraction_plan &p, int64_t units, int64_t work, opc_range_body body) {
  over_range(p.c->s->context, units, unit_work / work > 0 ? unit_work / work : 1, body, &p);
}

/* Takes the packed columns that earlier blocks of rows have left, or makes room for them; without memory none are kept. Blocks that need
 * fewer columns use part of the room. */
static void take_kept(contraction_plan &p) {
  p.kept_keys = nullptr;
  kept_memory *kept = p.c->kept;
  if (kept == nullptr || p.padded_input.used || p.windows.used || !any_factor(*p.c, [](const factor &f) { return f.stays; })) return;
  for (int32_t loop = 0; loop < p.c->loops; ++loop) {
    if (p.size[loop] != p.c->size[loop]) return; /* one of several parts, which would take the place of each other */
  }
  const int64_t slots = p.steps * p.column_blocks;
  const int64_t keys = round_up(slots * static_cast<int64_t>(sizeof(packed_key)), page_bytes);
  const int64_t panel = p.most_inner * p.most_columns * p.f->packed;
  if (slots * panel > kept_slice_bytes) return;
  const bool words = p.c->term_list[0].factors[0].second != 0;
  const int64_t format = 2 * p.computed + words;
  const int64_t layout[4] = {slots, keys, panel, format};
  const bool fits = kept->data != nullptr && slots <= kept->layout[0] && panel == kept->layout[2] && format == kept->layout[3];
  if (!fits) {
    give_memory(kept->data);
    kept->data = take_memory(keys + slots * panel);
    if (kept->data == nullptr) return;
    memcpy(kept->layout, layout, sizeof layout);
    for (int64_t n = 0; n < slots; ++n) static_cast<packed_key *>(kept->data)[n].count = -1;
  }
  p.kept_keys = static_cast<packed_key *>(kept->data);
  p.kept_panels = static_cast<char *>(kept->data) + kept->layout[1];
}

/* Computes a contraction whose loops are all affine: `p` holds their sizes and beginnings. */
static int32_t run_planned(contraction_plan &p) {
  const opc_context *context = p.c->s->context;
  int64_t units = 0;
  if (!plan_blocks(p, &units)) return OPC_OK;
  take_kept(p);
  int64_t offsets[strip_vectors][inner_block];
  for (int32_t v = 0; v < strip_vectors; ++v) {
    for (int64_t k = 0, offset = 0; k < p.most_inner; ++k, offset += (v + 1) * p.f->lanes) offsets[v][k] = offset;
    p.panel_offset[v] = offsets[v];
  }
  void *partial = p.parts > 1 ? take_memory(p.parts * partial_bytes_of(p)) : nullptr;
  if (p.parts > 1 && partial == nullptr) {
    return fail(context, OPC_OUT_OF_MEMORY, "no memory for the sums of a contraction");
  }
  p.partial = static_cast<char *>(partial);
  memory_pool pool;
  p.pool = &pool;
  run_units(p, units, p.work / units > 0 ? p.work / units : 1, run_contraction_units);
  if (p.parts > 1 && !p.failed) {
    run_units(p, p.row_strips * p.column_blocks, p.parts * p.f->rows * p.most_columns, join_parts);
  }
  give_memory(partial);
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

/* Computes a contraction for the points of one group after the other. No factor of one steps or is guarded. */
static int32_t run_groups(contraction_plan &p, const point_groups &groups) {
  const int32_t points = groups.loop[0];
  int32_t code = OPC_OK;
  for (int64_t group = 0; group < groups.count && code == OPC_OK; ++group) {
    p.begin[points] = groups.begin[group];
    p.size[points] = groups.begin[group + 1] - groups.begin[group];
    if (groups.batch >= 0) {
      p.begin[groups.batch] = group;
      p.size[groups.batch] = 1;
    } else if (p.size[points] == 0) {
      continue;
    }
    code = run_whole(p);
  }
  return code;
}

/* Computes a contraction as it stands. */
static int32_t run_as(const contraction &c, const contraction_functions &f, const row_functions &rows, dtype computed, tile_function function,
                      const void *arguments) {
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
  if (c.groups != nullptr) return run_groups(p, *c.groups);
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

OPC_FUNCTION int32_t run(const contraction &c, const contraction_functions &f, const row_functions &rows, dtype computed,
                         tile_function function, const void *arguments) {
  drop_guards(c);
  if (f.words != nullptr && multiplies_words()) {
    contraction_of_words words;
    if (make_words(c, *f.words, words)) return run_as(words.c, *f.words, rows, computed, function, arguments);
  }
  return run_as(c, f, rows, computed, function, arguments);
}

}  // namespace opc
#endif  // OPC_ELSEWHERE
#endif  // OPC_CONTRACTION_RUN_H
