/* Stages that reduce over axes outside of the last one, such as the sums of a matrix's columns.
 *
 * A strip of columns is taken in row by row, with a partial result for each column in the first-level cache. Strips are units of work,
 * and where there are few of them so are chunks of the rows, whose partial results are combined at the end. Where rows are short,
 * several that follow each other are one long row, and columns have as many partial results, until these are combined. How all that is
 * cut depends on the sizes alone, so that results do not depend on the threads. */
#ifndef OPC_ROWS_STRIPS_H
#define OPC_ROWS_STRIPS_H

#include "opc/core/aligned.h"
#include "opc/core/workspace.h"
#include "opc/rows/accumulate.h"
#include "opc/rows/plan.h"

namespace opc {

enum : int64_t {
  strip_columns = 2048,        /* partial results and a row of a strip are half of a first-level cache */
  staged_strip_columns = 1024, /* so are those and a few staged rows */
  joined_columns = 256,        /* of short rows that are one long row */
  strip_rows = 64,             /* added up before their sum is added to those before, for errors that grow with the square root */
  strip_units = 32             /* units of work that are enough */
};

struct strips {
  runner *r;
  int32_t kept;      /* outer axes [0, kept) are the results', [kept, r->outer) are reduced: the last of these makes rows */
  int64_t results;   /* product of the kept sizes */
  int64_t reduced;   /* product of the reduced sizes */
  int64_t width;     /* columns of a strip */
  int64_t count;     /* strips of a row */
  int64_t joined;    /* rows that are one long row */
  int64_t tile_rows; /* rows that a tile takes in at most */
  int64_t chunks;
  bool sums;         /* partial results are rounded: those of some rows are combined before they are added to the others */
  int64_t partial[max_operands]; /* byte offset of the partial results of a strip, behind which are those of the rows before */
  int64_t memory;                /* bytes for those and staged operands */
};

/* Whether the stage reduces over outer axes and does nothing else, and how it is cut then. */
static bool plan_strips(runner &r, strips &t) {
  const stage &s = *r.s;
  const int32_t last = r.outer;
  if (s.whole_rows || r.once || r.outer == 0 || r.row_axes != 1 || r.units == 0 || r.columns == 0) return false;
  const passing *result = nullptr;
  t.sums = false;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    const passing &p = r.pass[k];
    if (o.what == role_input || p.data == nullptr) continue;
    if (!is_partial(o, p) || p.stride[last] != 1) return false;
    if (result == nullptr) result = &p;
    for (int32_t a = 0; a < r.outer; ++a) {
      if ((p.stride[a] == 0) != (result->stride[a] == 0)) return false;
    }
    t.sums = t.sums || (o.what == role_sum && (o.computed == dtype_float32 || o.computed == dtype_float64));
  }
  if (result == nullptr) return false;

  int32_t order[max_axes];
  int32_t placed = 0;
  for (int32_t a = 0; a < r.outer; ++a) {
    if (result->stride[a] != 0) order[placed++] = a;
  }
  t.kept = placed;
  for (int32_t a = 0; a < r.outer; ++a) {
    if (result->stride[a] == 0) order[placed++] = a;
  }
  if (t.kept == r.outer) return false;
  int64_t size[max_axes];
  for (int32_t a = 0; a < r.outer; ++a) size[a] = r.size[order[a]];
  for (int32_t a = 0; a < r.outer; ++a) r.size[a] = size[a];
  for (int32_t k = 0; k < s.operand_count; ++k) {
    int64_t stride[max_axes];
    for (int32_t a = 0; a < r.outer; ++a) stride[a] = r.pass[k].stride[order[a]];
    for (int32_t a = 0; a < r.outer; ++a) r.pass[k].stride[a] = stride[a];
  }
  t.r = &r;
  t.results = 1;
  for (int32_t a = 0; a < t.kept; ++a) t.results *= r.size[a];
  t.reduced = 1;
  for (int32_t a = t.kept; a < r.outer; ++a) t.reduced *= r.size[a];

  t.joined = 1;
  while (2 * t.joined * r.columns <= joined_columns && 2 * t.joined <= r.size[r.outer - 1]) t.joined *= 2;
  bool any_staged = false;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    passing &p = r.pass[k];
    p.row_stride = p.data == nullptr ? 0 : p.stride[r.outer - 1];
    if (s.operands[k].what == role_input && p.along && t.joined > 1 && p.row_stride != r.columns) p.staged = true;
    if (is_partial(s.operands[k], p) && p.data != nullptr) p.staged = false;
    any_staged = any_staged || p.staged;
  }
  const int64_t widest = any_staged ? staged_strip_columns : strip_columns;
  t.count = (r.columns + widest - 1) / widest;
  t.width = round_up((r.columns + t.count - 1) / t.count, 16);
  t.tile_rows = any_staged ? joined_elements / (t.width * t.joined) * t.joined : strip_rows * t.joined;
  if (t.tile_rows < t.joined) t.tile_rows = t.joined;

  const int64_t tasks = t.results * t.count, elements = r.points * r.columns;
  int64_t wanted = elements / (2 * grain_elements) + 1;
  if (wanted > strip_units) wanted = strip_units;
  t.chunks = tasks < wanted ? (wanted + tasks - 1) / tasks : 1;
  const int64_t most = t.reduced / (8 * t.joined); /* partial results cost an eighth of the work */
  if (t.chunks > most) t.chunks = most > 0 ? most : 1;

  t.memory = 0;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const int64_t item = itemsize(s.operands[k].computed);
    passing &p = r.pass[k];
    if (p.staged) {
      p.buffer = t.memory;
      t.memory += round_up((p.along ? t.tile_rows * t.width : t.tile_rows) * item, cache_line);
    } else if (is_partial(s.operands[k], p)) {
      t.partial[k] = t.memory;
      t.memory += 2 * round_up(t.joined * t.width * item, cache_line);
    }
  }
  return true;
}

/* Calls f(operand, its passing, its position) for the wanted results. */
template <typename F>
static inline void for_results(const strips &t, F f) {
  for (int32_t k = 0; k < t.r->s->operand_count; ++k) {
    const operand &o = t.r->s->operands[k];
    const passing &p = t.r->pass[k];
    if (p.data != nullptr && is_reduction(o)) f(o, p, k);
  }
}

/* The offset of a point in an operand along the axes [begin, end), of which `position` gets its place. */
static inline int64_t offset_along(const runner &r, const passing &p, int32_t begin, int32_t end, const int64_t *position) {
  int64_t offset = 0;
  for (int32_t a = begin; a < end; ++a) offset += position[a] * p.stride[a];
  return offset;
}

static inline void place_point(const runner &r, int64_t point, int32_t begin, int32_t end, int64_t *position) {
  for (int32_t a = end - 1; a >= begin; --a) {
    position[a] = point % r.size[a];
    point /= r.size[a];
  }
}

/* Which rows of an operand are in its buffer. */
struct staged_rows {
  int64_t offset, rows;
};

/* Takes rows [point, point + rows) of a strip into its partial results. */
static void take_rows(const strips &t, const int64_t *position, int64_t first, int64_t columns, int64_t rows, char *memory,
                      staged_rows *loaded) {
  const runner &r = *t.r;
  const stage &s = *r.s;
  tile part;
  part.once = false;
  part.nontemporal = false;
  part.segment = 0;
  part.most_rows = t.tile_rows;
  part.scratch = memory;
  part.scratch_pitch = 0;
  part.rows = rows / t.joined;
  part.columns = t.joined * columns;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    const passing &p = r.pass[k];
    if (!p.staged && o.what != role_input) {
      part.data[k] = memory + t.partial[k];
      part.step[k] = 0;
      continue;
    }
    const int64_t offset = offset_along(r, p, 0, r.outer, position) + (p.along ? first * p.column_stride : 0);
    if (!p.staged) {
      part.data[k] = p.data + offset * itemsize(o.stored);
      part.step[k] = p.along ? t.joined * p.row_stride : 0;
      continue;
    }
    part.data[k] = memory + p.buffer;
    part.step[k] = p.along ? part.columns : 0;
    if (o.what != role_input) {
      reset(o.computed, o.what, memory + p.buffer, p.along ? rows * columns : 1, false);
    } else if (p.data != nullptr && (loaded[k].offset != offset || loaded[k].rows < rows)) {
      loaded[k] = {offset, p.row_stride == 0 ? rows : 0};
      const bool follow = p.along && p.row_stride == columns && p.column_stride == 1;
      const block b = follow ? block{1, rows * columns, 0, 1}
                             : block{p.along ? rows : 1, p.along ? columns : 1, p.row_stride, p.column_stride};
      load_block(*r.rows, memory + p.buffer, columns, o.stored, p.data + offset * itemsize(o.stored), b);
    }
  }
  if (part.rows > 0) r.function(part, r.arguments);
  const int64_t rest = rows % t.joined;
  if (rest == 0) return;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    const passing &p = r.pass[k];
    const int64_t item = itemsize(p.staged ? o.computed : o.stored);
    part.data[k] = static_cast<char *>(part.data[k]) + part.rows * part.step[k] * item;
  }
  part.rows = 1;
  part.columns = rest * columns;
  r.function(part, r.arguments);
}

/* Combines the partial results of rows that were one into those of the first. */
static void combine_joined(const strips &t, const operand &o, char *partial, int64_t columns) {
  for (int64_t rows = t.joined / 2; rows > 0; rows /= 2) {
    combine_all(*t.r->rows, o.computed, o.what, partial, partial + rows * columns * itemsize(o.computed), rows * columns);
  }
}

/* Reduces one strip, or the part of it that is a chunk's. */
static void reduce_strip(const strips &t, int64_t unit, char *memory) {
  const runner &r = *t.r;
  const int64_t chunk = unit % t.chunks, strip = unit / t.chunks % t.count;
  const int64_t first = strip * t.width;
  const int64_t columns = r.columns - first < t.width ? r.columns - first : t.width;
  const int64_t begin = t.reduced * chunk / t.chunks, end = t.reduced * (chunk + 1) / t.chunks;
  const int64_t held = t.joined * columns;
  int64_t position[max_axes] = {};
  place_point(r, unit / t.chunks / t.count, 0, t.kept, position);
  staged_rows loaded[max_operands];
  for (int32_t k = 0; k < r.s->operand_count; ++k) loaded[k] = {INT64_MIN, 0};
  for_results(t, [&](const operand &o, const passing &, int32_t k) { reset(o.computed, o.what, memory + t.partial[k], held, false); });

  const auto before = [&](const operand &o, int32_t k) {
    return memory + t.partial[k] + round_up(t.joined * t.width * itemsize(o.computed), cache_line);
  };
  bool any_before = false;
  int64_t taken = 0;
  for (int64_t point = begin; point < end;) {
    place_point(r, point, t.kept, r.outer, position);
    int64_t rows = r.size[r.outer - 1] - position[r.outer - 1];
    if (rows > end - point) rows = end - point;
    if (rows > t.tile_rows) rows = t.tile_rows;
    take_rows(t, position, first, columns, rows, memory, loaded);
    point += rows;
    taken += rows;
    if (!t.sums || taken < strip_rows * t.joined || point == end) continue;
    taken = 0;
    for_results(t, [&](const operand &o, const passing &, int32_t k) {
      char *partial = memory + t.partial[k];
      if (any_before) {
        combine_all(*r.rows, o.computed, o.what, before(o, k), partial, held);
      } else {
        memcpy(before(o, k), partial, static_cast<size_t>(held * itemsize(o.computed)));
      }
      reset(o.computed, o.what, partial, held, false);
    });
    any_before = true;
  }
  for_results(t, [&](const operand &o, const passing &p, int32_t k) {
    char *partial = memory + t.partial[k];
    if (any_before) combine_all(*r.rows, o.computed, o.what, partial, before(o, k), held);
    combine_joined(t, o, partial, columns);
    const int64_t offset = offset_along(r, p, 0, t.kept, position) + first;
    if (t.chunks > 1) {
      memcpy(r.partials + p.partial + (chunk * p.partial_count + offset) * itemsize(o.computed), partial,
             static_cast<size_t>(columns * itemsize(o.computed)));
    } else {
      store_block(*r.rows, p.data + offset * itemsize(o.stored), o.stored, {1, columns, 0, 1}, partial, 0);
    }
  });
}

/* The body of the parallel loop over units of work. */
static void reduce_strips(void *argument, int64_t begin, int64_t end) {
  strips &t = *static_cast<strips *>(argument);
  alignas(cache_line) char small[16384];
  char *memory = small;
  void *allocated = nullptr;
  if (t.memory > static_cast<int64_t>(sizeof small)) {
    allocated = take_memory(t.memory);
    if (allocated == nullptr) {
      __atomic_store_n(&t.r->failed, true, __ATOMIC_RELAXED);
      return;
    }
    memory = static_cast<char *>(allocated);
  }
  for (int64_t unit = begin; unit < end; ++unit) reduce_strip(t, unit, memory);
  give_memory(allocated);
}

}  // namespace opc
#endif  // OPC_ROWS_STRIPS_H
