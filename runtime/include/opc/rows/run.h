/* Runs a stage: collapses its axes, splits its points over the host's threads, and feeds the tile function with blocks of rows.
 *
 * An operand whose rows are contiguous and stored as they are computed is passed to the tile function where it lies. Any other one
 * (strided, broadcast, float16, bfloat16) is staged: its block is copied into a buffer that stays in cache. So one tile function,
 * written for contiguous rows of float or double, serves all layouts and dtypes.
 */
#ifndef OPC_ROWS_RUN_H
#define OPC_ROWS_RUN_H

#include <stdlib.h>

#include "opc/core/aligned.h"
#include "opc/core/functions.h"
#include "opc/core/workspace.h"
#include "opc/rows/rows.h"

namespace opc {

/* Calls `function` on tiles that cover the stage. Of the outputs in `optional`, a list of `optional_count` operands, only `wanted`
 * is computed, or all of them where that is -1. */
OPC_FUNCTION int32_t run_one(const stage &s, const row_functions &rows, tile_function function, const void *arguments,
                             const int32_t *optional, int32_t optional_count, int32_t wanted);

}  // namespace opc

#if !OPC_ELSEWHERE
#include "opc/rows/accumulate.h"
#include "opc/rows/plan.h"
#include "opc/rows/nontemporal.h"
#include "opc/rows/strips.h"

namespace opc {

/* As a library is unloaded. This header is in no file of loops, whose code not every machine runs. */
__attribute__((destructor)) static void empty_workspace() { empty(kept_workspace); }

/* Where the tile that starts at outer point `point` lies in an operand, in elements. */
static inline int64_t offset_of(const runner &r, const passing &p, const int64_t *position) {
  int64_t offset = 0;
  for (int32_t a = 0; a < r.outer; ++a) offset += position[a] * p.stride[a];
  return offset;
}

/* Calls f(element offset in the tensor, first column, columns) for each part of an operand's row along its last axis. */
template <typename F>
static inline void for_parts(const runner &r, const passing &p, F f) {
  if (p.row_axes <= 1 || !p.along) return f(0, 0, p.along ? p.columns : 1);
  const int32_t last = r.outer + p.row_axes - 1;
  int64_t index[max_axes] = {};
  int64_t offset = 0;
  for (int64_t column = 0; column < p.columns; column += r.size[last]) {
    f(offset, column, r.size[last]);
    for (int32_t a = last - 1; a >= r.outer; --a) {
      offset += p.stride[a];
      if (++index[a] < r.size[a]) break;
      offset -= index[a] * p.stride[a];
      index[a] = 0;
    }
  }
}

/* Sets the part of a reduction's operand that a tile covers to what changes nothing. */
static void clear(const operand &o, const passing &p, void *data, int64_t rows, int64_t columns) {
  const int64_t count = p.along ? columns : 1;
  if (rows == 1 || p.row_stride == count) return reset(o.computed, o.what, data, rows * count, false);
  for (int64_t row = 0; row < rows; ++row) {
    reset(o.computed, o.what, static_cast<char *>(data) + row * p.row_stride * itemsize(o.computed), count, false);
  }
}

/* Runs units [begin, end), with `memory` for staging; reductions go to the partial results of `chunk`. */
static void run_units(const runner &r, int64_t begin, int64_t end, char *memory, int64_t chunk) {
  const stage &s = *r.s;
  tile t;
  t.once = r.once;
  t.nontemporal = r.nontemporal && !r.narrowed;
  t.segment = r.segment;
  t.most_rows = r.pieces > 1 || r.outer == 0 ? 1 : r.tile_rows < r.size[r.outer - 1] ? r.tile_rows : r.size[r.outer - 1];
  t.scratch = memory + r.scratch;
  t.scratch_pitch = r.scratch_pitch;
  int64_t offset[max_operands];
  int64_t position[max_axes];
  int64_t filled[max_operands];
  int64_t loaded[max_operands]; /* the row that is in the buffer */
  for (int32_t k = 0; k < s.operand_count; ++k) {
    filled[k] = 0;
    loaded[k] = INT64_MIN;
  }
  for (int64_t unit = begin; unit < end;) {
    int64_t point = unit / r.pieces;
    const int64_t piece = unit - point * r.pieces;
    const int64_t first = piece * r.piece;
    int64_t units = 1;
    if (r.join_pieces) units = r.pieces - piece < end - unit ? r.pieces - piece : end - unit;
    const int64_t columns = first + units * r.piece <= r.columns ? units * r.piece : r.columns - first;
    for (int32_t a = r.outer - 1; a >= 0; --a) {
      const int64_t next = point / r.size[a];
      position[a] = point - next * r.size[a];
      point = next;
    }
    int64_t rows = 1;
    if (r.pieces == 1 && r.outer > 0) {
      rows = r.size[r.outer - 1] - position[r.outer - 1];
      if (rows > end - unit) rows = end - unit;
      if (rows > r.tile_rows) rows = r.tile_rows;
      units = rows;
    }
    unit += units;

    t.rows = rows;
    t.columns = columns;
    for (int32_t k = 0; k < s.operand_count; ++k) {
      const operand &o = s.operands[k];
      const passing &p = r.pass[k];
      if (p.data != nullptr) {
        offset[k] = offset_of(r, p, position) + (p.along && r.pieces > 1 ? first * p.column_stride : 0);
      }
      if (!p.staged) {
        t.data[k] = is_partial(o, p) ? r.partials + p.partial + (chunk * p.partial_count + offset[k]) * itemsize(o.computed)
                                    : p.data + offset[k] * itemsize(o.stored);
        t.step[k] = p.row_stride;
        if (p.own && !t.nontemporal) clear(o, p, t.data[k], rows, columns);
        continue;
      }
      t.data[k] = memory + p.buffer;
      /* The same in all rows: one is staged. */
      const bool repeated = o.what == role_input && p.data != nullptr && p.along && p.row_stride == 0 && !p.constant && !r.join_rows;
      t.step[k] = repeated ? 0 : !p.along ? 1 : s.whole_rows ? r.pitch : columns;
      if (is_reduction(o)) reset(o.computed, o.what, memory + p.buffer, rows * t.step[k], false);
      if (o.what != role_input || p.data == nullptr) continue;
      if (p.constant) {
        if (filled[k] < rows * t.step[k]) {
          filled[k] = rows * t.step[k];
          load_block(*r.rows, memory + p.buffer, 1, o.stored, p.data, {1, filled[k], 0, 0}, converts(o));
        }
        continue;
      }
      if (repeated || (s.whole_rows && r.tile_rows == 1)) {
        if (loaded[k] == offset[k]) continue;
        loaded[k] = offset[k];
      }
      for_parts(r, p, [&](int64_t at, int64_t column, int64_t count) {
        const block b = {repeated ? 1 : rows, r.pieces > 1 && p.along ? columns : count, p.row_stride, p.column_stride};
        load_block(*r.rows, memory + p.buffer + column * itemsize(o.computed), t.step[k], o.stored,
                   p.data + (offset[k] + at) * itemsize(o.stored), b, converts(o));
      });
    }
    if (r.join_rows) {
      t.columns *= rows;
      t.rows = 1;
    }
    r.function(t, r.arguments);

    for (int32_t k = 0; k < s.operand_count; ++k) {
      const operand &o = s.operands[k];
      const passing &p = r.pass[k];
      if (!p.staged || o.what == role_input || p.data == nullptr) continue;
      for_parts(r, p, [&](int64_t at, int64_t column, int64_t count) {
        const block b = {rows, r.pieces > 1 && p.along ? columns : count, p.row_stride, p.column_stride};
        const char *from = memory + p.buffer + column * itemsize(o.computed);
        if (!is_partial(o, p)) {
          store_block(*r.rows, p.data + (offset[k] + at) * itemsize(o.stored), o.stored, b, from, t.step[k], r.narrowed, converts(o));
        } else {
          char *partial = r.partials + p.partial + (chunk * p.partial_count + offset[k] + at) * itemsize(o.computed);
          reduce_block(*r.rows, o.computed, o.what, partial, b, from, t.step[k]);
        }
      });
    }
  }
  if (r.nontemporal) fence_nontemporal();
}

/* Sets a chunk's partial results to the identity, where its thread has them in the cache. */
static void reset_partials(const runner &r, int64_t chunk) {
  for (int32_t k = 0; k < r.s->operand_count; ++k) {
    const operand &o = r.s->operands[k];
    const passing &p = r.pass[k];
    if (p.data == nullptr || !is_partial(o, p)) continue;
    char *own = r.partials + p.partial + chunk * p.partial_count * itemsize(o.computed);
    reset(o.computed, o.what, own, p.partial_count, r.units == 0 || r.columns == 0);
  }
}

/* The body of the parallel loop: units, or chunks of units where there are reductions. */
static void run_range(void *argument, int64_t begin, int64_t end) {
  runner &r = *static_cast<runner *>(argument);
  alignas(cache_line) char small[16384];
  char *memory = small;
  void *allocated = nullptr;
  if (r.buffer_bytes > static_cast<int64_t>(sizeof small)) {
    allocated = take_memory(r.buffer_bytes);
    if (allocated == nullptr) {
      __atomic_store_n(&r.failed, true, __ATOMIC_RELAXED);
      return;
    }
    memory = static_cast<char *>(allocated);
  }
  if (r.partials == nullptr) {
    run_units(r, begin, end, memory, 0);
  } else {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      reset_partials(r, chunk);
      run_units(r, r.units * chunk / r.chunks, r.units * (chunk + 1) / r.chunks, memory, chunk);
    }
  }
  give_memory(allocated);
}

static int32_t split(runner &r, int64_t count, int64_t grain) {
  r.failed = false;
  over_range(r.context, count, grain, run_range, &r);
  return r.failed ? fail(r.context, OPC_OUT_OF_MEMORY, "no memory for %lld bytes of row buffers", (long long)r.buffer_bytes) : OPC_OK;
}

struct reduction_call {
  const runner *r;
  int32_t operand;
};

/* Combines the partial results of elements [begin, end) of an operand, and stores the results. */
static void fold_range(void *argument, int64_t begin, int64_t end) {
  const reduction_call &call = *static_cast<const reduction_call *>(argument);
  const runner &r = *call.r;
  const operand &o = r.s->operands[call.operand];
  const passing &p = r.pass[call.operand];
  char *partials = r.partials + p.partial;
  fold(*r.rows, o.computed, o.what, partials, p.partial_count, r.chunks, begin, end);
  store_block(*r.rows, p.data + begin * itemsize(o.stored), o.stored, {1, end - begin, 0, 1}, partials + begin * itemsize(o.computed), 0);
}

/* Allocates the partial results of all chunks. */
static int32_t allocate_partials(runner &r) {
  const stage &s = *r.s;
  int64_t bytes = 0;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    if (r.pass[k].data == nullptr || !is_partial(o, r.pass[k])) continue;
    r.pass[k].partial = bytes;
    bytes += round_up(r.chunks * r.pass[k].partial_count * itemsize(o.computed), cache_line);
  }
  r.partials = static_cast<char *>(take_memory(bytes));
  if (r.partials != nullptr) return OPC_OK;
  return fail(r.context, OPC_OUT_OF_MEMORY, "no memory for %lld bytes of partial sums", (long long)bytes);
}

/* Combines the partial results of all chunks, and stores the results. */
static void fold_partials(runner &r) {
  for (int32_t k = 0; k < r.s->operand_count; ++k) {
    if (r.pass[k].data == nullptr || !is_partial(r.s->operands[k], r.pass[k])) continue;
    reduction_call call = {&r, k};
    const int64_t count = r.pass[k].partial_count, grain = 2 * grain_elements / r.chunks + 1;
    over_range(r.context, count, grain, fold_range, &call);
  }
}

/* Runs a stage with reductions: in a number of chunks that depends only on the sizes, so that results do not depend on the threads. */
static int32_t run_reductions(runner &r) {
  const stage &s = *r.s;
  const int64_t elements = r.points * r.columns;
  int64_t largest = 1;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    if (r.pass[k].data == nullptr || !is_partial(o, r.pass[k])) continue;
    r.pass[k].partial_count = o.count;
    if (o.count > largest) largest = o.count;
  }
  r.chunks = elements / (2 * grain_elements) + 1;
  if (r.chunks > 64) r.chunks = 64;
  if (r.chunks > r.units) r.chunks = r.units > 0 ? r.units : 1;
  /* Partial results may cost a quarter of the work itself, but a sixteenth where that leaves chunks enough. */
  const int64_t enough = 16;
  const int64_t most = elements / (16 * largest) > enough ? elements / (16 * largest) : enough;
  if (r.chunks > most) r.chunks = most;
  if (r.chunks * largest * 4 > elements) r.chunks = elements > 4 * largest ? elements / (4 * largest) : 1;

  const int32_t allocated = allocate_partials(r);
  if (allocated != OPC_OK) return allocated;
  const int32_t code = split(r, r.chunks, 1);
  if (code == OPC_OK) fold_partials(r);
  give_memory(r.partials);
  return code;
}

/* Whether an operand is passed where it lies, as one row of all points of its stage in order. */
static inline bool is_one_row(const stage &s, const operand &o) {
  if (o.data == nullptr || is_reduction(o) || !o.along_row || o.stored != o.computed) return false;
  int64_t expected = 1;
  for (int32_t a = s.rank - 1; a >= 0; --a) {
    if (s.size[a] != 1 && o.stride[a] != expected) return false;
    expected *= s.size[a];
  }
  return true;
}

/* Runs a stage of few points whose operands all are one row in one tile, the one that a plan would come to; false for other stages. On
 * a few elements a plan takes longer than all else. */
static bool run_one_row(const stage &s, tile_function function, const void *arguments) {
  if (s.whole_rows) return false;
  int64_t columns = 1;
  for (int32_t a = 0; a < s.rank; ++a) {
    if (s.size[a] >= one_row_elements) return false;
    columns *= s.size[a];
    if (columns == 0 || columns >= one_row_elements) return false;
  }
  tile t;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    if (!is_one_row(s, s.operands[k])) return false;
    t.data[k] = s.operands[k].data;
    t.step[k] = 0;
  }
  t.once = t.nontemporal = false;
  t.segment = 0;
  t.rows = t.most_rows = 1;
  t.columns = columns;
  t.scratch = nullptr;
  t.scratch_pitch = 0;
  function(t, arguments);
  return true;
}

/* Runs a stage that reduces over outer axes alone. */
static int32_t run_strips(strips &t) {
  runner &r = *t.r;
  r.chunks = t.chunks;
  if (r.chunks > 1) {
    for_results(t, [&](const operand &o, const passing &, int32_t k) { r.pass[k].partial_count = o.count; });
    const int32_t allocated = allocate_partials(r);
    if (allocated != OPC_OK) return allocated;
  }
  const int64_t units = t.results * t.count * t.chunks;
  const int64_t grain = grain_elements / (r.points * r.columns / units + 1);
  r.failed = false;
  over_range(r.context, units, grain > 0 ? grain : 1, reduce_strips, &t);
  if (r.chunks > 1 && !r.failed) fold_partials(r);
  give_memory(r.partials);
  return r.failed ? fail(r.context, OPC_OUT_OF_MEMORY, "no memory for %lld bytes of partial results", (long long)t.memory) : OPC_OK;
}

OPC_FUNCTION int32_t run_one(const stage &s, const row_functions &rows, tile_function function, const void *arguments,
                             const int32_t *optional, int32_t optional_count, int32_t wanted) {
  if (wanted < 0 && run_one_row(s, function, arguments)) return OPC_OK;
  static const opc_context alone = {};
  runner r;
  r.s = &s;
  r.context = s.context != nullptr ? s.context : &alone;
  r.rows = &rows;
  r.function = function;
  r.arguments = arguments;
  r.partials = nullptr;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const bool nothing = is_reduction(s.operands[k]) && s.operands[k].count == 0;
    r.pass[k].data = nothing ? nullptr : s.operands[k].data;
  }
  for (int32_t i = 0; i < optional_count && wanted >= 0; ++i) {
    if (optional[i] != wanted) r.pass[optional[i]].data = nullptr;
  }
  plan(r);
  plan_nontemporal(r, wanted < 0);
  if (!s.whole_rows && r.columns == 0) r.units = 0;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    if (!is_partial(s.operands[k], r.pass[k]) || r.pass[k].data == nullptr) continue;
    strips t;
    return plan_strips(r, t) ? run_strips(t) : run_reductions(r);
  }
  if (r.units == 0) return OPC_OK;
  const int64_t grain = grain_elements / (r.piece > 0 ? r.piece : 1);
  return split(r, r.units, grain > 0 ? grain : 1);
}

}  // namespace opc
#endif  // OPC_ELSEWHERE

namespace opc {

/* Runs a stage whose outputs are all wanted. */
static inline int32_t run(const stage &s, const row_functions &rows, tile_function function, const void *arguments) {
  return run_one(s, rows, function, arguments, nullptr, 0, -1);
}

/* Runs a stage with optional outputs, the operands listed in `optional`. functions[0] computes all of them together and
 * functions[1 + i] only optional[i]. The first is called when more than half of them are wanted, and what it computes of the rest is
 * dropped; else the others one by one. NULL is one of those that no call comes to, unless what else is wanted has no elements. */
template <int32_t Count>
static inline int32_t run_wanted(const stage &s, const row_functions &rows, const tile_function (&functions)[Count + 1],
                                 const void *arguments, const int32_t (&optional)[Count]) {
  int32_t given = 0;
  for (int32_t k : optional) given += s.operands[k].data != nullptr;
  if (2 * given > Count) return run(s, rows, functions[0], arguments);
  int32_t code = OPC_OK;
  for (int32_t i = 0; i < Count && code == OPC_OK; ++i) {
    if (s.operands[optional[i]].data == nullptr) continue;
    if (functions[1 + i] == nullptr) return run(s, rows, functions[0], arguments);
    code = run_one(s, rows, functions[1 + i], arguments, optional, Count, optional[i]);
  }
  return code;
}

}  // namespace opc
#endif  // OPC_ROWS_RUN_H
