/* How a stage is cut into units of work, and how each operand reaches the tile function: where it lies, or through a buffer. */
#ifndef OPC_ROWS_PLAN_H
#define OPC_ROWS_PLAN_H

#include "opc/core/aligned.h"
#include "opc/core/stage.h"
#include "opc/rows/rows.h"

namespace opc {

enum : int64_t {
  grain_elements = 32768, /* work worth a thread */
  staged_elements = 1024, /* a staged block: such buffers of floats and what they are loaded from stay in a first-level cache */
  joined_elements = 2048, /* elements of rows that are staged together, or that are so long that what is repeated is staged once */
  across_rows = 32,
  across_elements = 1 << 19, /* and of these no more than a second-level cache holds */
  chunk_elements = 16384, /* rows longer than this are cut, where they may be */
  one_row_elements = 1024, /* fewer points than this in dense memory are run without a plan */
  narrow_columns = 64     /* rows shorter than this are staged, so that many of them make one long row */
};

/* How one operand reaches the tile function. */
struct passing {
  char *data; /* NULL: absent, or not wanted */
  bool staged;
  bool own;   /* a reduction whose elements take in one point each: it needs no partial results */
  bool along; /* the tile function gets rows of it */
  int32_t row_axes;      /* axes of such a row: the stage's, but for the last where it is passed once a segment */
  int64_t columns;       /* elements of such a row */
  bool constant;         /* staged, with one value everywhere: the buffer is filled once */
  int64_t row_stride;    /* elements from row to row in the tensor */
  int64_t column_stride; /* elements from column to column in the tensor */
  int64_t buffer;        /* byte offset of the staging buffer */
  int64_t partial;       /* byte offset of the partial results of all chunks, one chunk after the other */
  int64_t partial_count; /* elements of partial results */
  int64_t stride[max_axes]; /* over the collapsed axes */
};

struct runner {
  const stage *s;
  const opc_context *context;
  tile_function function;
  const row_functions *rows;
  const void *arguments;
  int32_t order[max_axes]; /* the axes of the stage, as they are taken */
  int32_t outer, row_axes; /* collapsed: axes [0, outer) and [outer, outer + row_axes) */
  int64_t size[max_axes];
  int64_t points;  /* product of the outer sizes */
  int64_t columns; /* product of the row's sizes */
  int64_t piece;   /* columns of one unit of work */
  int64_t pieces;  /* units a row is cut into */
  int64_t units;   /* points * pieces */
  int64_t tile_rows;
  int64_t pitch; /* elements from row to row in staging buffers */
  int64_t scratch, scratch_pitch, buffer_bytes;
  int64_t chunks;
  char *partials;
  bool join_rows;   /* every operand's rows follow each other: a tile is one long row */
  bool once;        /* inner-invariant operands along the rows are passed once a row */
  int64_t segment;  /* columns along the last axis, for which such operands of whole rows are passed once; 0: they are spread */
  bool join_pieces; /* nothing is staged: the pieces of a row that one thread gets make one tile */
  bool nontemporal; /* outputs are written past the caches: by the tile function, */
  bool narrowed;    /* or those of narrow floats, from the buffers that it writes to */
  bool failed;
  passing pass[max_operands];
};

static inline bool is_reduction(const operand &o) { return o.what >= role_sum; }

/* Whether the tile function takes the elements of an operand as they are stored, and converts them. */
static inline bool converts(const operand &o) { return is_minifloat(o.computed); }

/* Whether an operand is what partial results are kept of. */
static inline bool is_partial(const operand &o, const passing &p) { return is_reduction(o) && !p.own; }

/* Sets the order in which the axes of a stage are taken. Without whole rows it is free in that, and goes through its largest operand as
 * that lies in memory. */
static void order_axes(runner &r) {
  const stage &s = *r.s;
  for (int32_t a = 0; a < s.rank; ++a) r.order[a] = a;
  const operand *largest = nullptr;
  for (int32_t k = s.operand_count - 1; k >= 0; --k) { /* results come last */
    const operand &o = s.operands[k];
    if (r.pass[k].data != nullptr && (largest == nullptr || o.count > largest->count)) largest = &o;
  }
  if (s.whole_rows || largest == nullptr) return;
  for (int32_t a = 0; a < s.rank; ++a) {
    if (s.size[a] != 1 && largest->stride[a] <= 0) return; /* axes that it lacks have no place in it */
  }
  for (int32_t a = 1; a < s.rank; ++a) {
    if (s.size[r.order[a]] == 1) continue;
    for (int32_t to = a; to > 0; --to) {
      const int32_t before = r.order[to - 1], axis = r.order[to];
      if (s.size[before] != 1 && largest->stride[before] >= largest->stride[axis]) break;
      r.order[to - 1] = axis;
      r.order[to] = before;
    }
  }
}

/* Whether axis `a` of the stage continues the collapsed axis `outer` in every operand. */
static inline bool continues(const runner &r, int32_t outer, int32_t a) {
  const stage &s = *r.s;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    if (r.pass[k].data != nullptr && r.pass[k].stride[outer] != s.operands[k].stride[a] * s.size[a]) return false;
  }
  return true;
}

/* Takes axes [begin, end) of the stage as axes from `to` on, without those of size 1 and with neighbours merged where every operand
 * allows it; returns how many there are. */
static int32_t collapse(runner &r, int32_t begin, int32_t end, int32_t to) {
  const stage &s = *r.s;
  int32_t kept = to;
  for (int32_t i = begin; i < end; ++i) {
    const int32_t a = r.order[i];
    if (s.size[a] == 1) continue;
    if (kept == to || !continues(r, kept - 1, a)) r.size[kept++] = 1;
    r.size[kept - 1] *= s.size[a];
    for (int32_t k = 0; k < s.operand_count; ++k) r.pass[k].stride[kept - 1] = s.operands[k].stride[a];
  }
  return kept - to;
}

/* Sets whether an operand is staged, and its strides from row to row and along a row. */
static void plan_operand(const operand &o, const runner &r, passing &p) {
  const bool once_a_segment = r.segment != 0 && o.inner_invariant;
  p.row_axes = r.row_axes - once_a_segment;
  p.columns = once_a_segment ? r.columns / r.segment : r.columns;
  const int32_t last = r.outer + p.row_axes - 1;
  p.row_stride = r.outer > 0 ? p.stride[r.outer - 1] : 0;
  p.column_stride = p.row_axes > 0 ? p.stride[last] : 1;
  p.constant = false;
  p.along = o.along_row && !(r.once && o.inner_invariant);
  if (p.data == nullptr) {
    p.staged = true; /* what is computed is dropped, and what is loaded counts in no lane: it has memory all the same */
    p.row_stride = 0;
    return;
  }
  bool contiguous = true;
  int64_t expected = 1;
  for (int32_t a = last; a >= r.outer; --a) {
    contiguous = contiguous && p.stride[a] == expected;
    expected *= r.size[a];
  }
  /* A tile function adds to what is there, so reductions whose elements lie side by side go straight into the partial results. */
  const bool moved = !is_partial(o, p) && o.stored != o.computed;
  p.staged = moved || (p.along && !contiguous);
  p.constant = o.what == role_input && o.count > 0;
  for (int32_t a = 0; a <= last; ++a) p.constant = p.constant && p.stride[a] == 0;
}

/* Whether an operand of long rows is the same in all rows along an outer axis, and is staged for others. */
static inline bool is_repeated(const runner &r, int32_t k, int32_t axis) {
  const operand &o = r.s->operands[k];
  const passing &p = r.pass[k];
  const int32_t last = r.outer + r.row_axes - 1;
  if (o.what != role_input || p.data == nullptr || !o.along_row || p.stride[axis] != 0 || p.stride[last] != 0) return false;
  if (r.segment != 0 && o.inner_invariant) return false;
  bool moves = false;
  for (int32_t a = 0; a <= last; ++a) moves = moves || p.stride[a] != 0;
  return moves;
}

static void swap_outer(runner &r, int32_t a, int32_t b) {
  const int64_t size = r.size[a];
  r.size[a] = r.size[b];
  r.size[b] = size;
  for (int32_t k = 0; k < r.s->operand_count; ++k) {
    const int64_t stride = r.pass[k].stride[a];
    r.pass[k].stride[a] = r.pass[k].stride[b];
    r.pass[k].stride[b] = stride;
  }
}

/* Moves the outer axis along which an operand is repeated behind the others, so that its rows are staged once for all of them. */
static void reorder(runner &r) {
  if (!r.s->whole_rows || r.row_axes < 2 || r.columns < joined_elements) return;
  int32_t axis = 0;
  while (axis < r.outer - 1) {
    bool found = false;
    for (int32_t k = 0; k < r.s->operand_count; ++k) found = found || is_repeated(r, k, axis);
    if (found) break;
    ++axis;
  }
  for (; axis < r.outer - 1; ++axis) swap_outer(r, axis, axis + 1);
}

/* Moves the outer axis along which an operand that lies across memory is contiguous behind the others, so that the rows which share cache
 * lines of it follow each other. */
static void bring_near(runner &r) {
  if (r.columns < narrow_columns) return; /* short rows are staged, and follow each other in the results */
  const int32_t last = r.outer - 1;
  for (int32_t k = 0; k < r.s->operand_count; ++k) {
    const passing &p = r.pass[k];
    if (p.data == nullptr || p.stride[r.outer] == 1) continue;
    for (int32_t a = 0; a < last; ++a) {
      if (p.stride[a] == 1 && r.size[a] >= across_rows) return swap_outer(r, a, last);
    }
  }
}

/* Whether inner-invariant operands are the same all along the last axis, which is long enough for loops of its own. */
static bool have_segments(const runner &r, int64_t columns) {
  if (!r.s->has_inner_invariant || r.row_axes == 0 || columns < narrow_columns) return false;
  for (int32_t k = 0; k < r.s->operand_count; ++k) {
    const bool moves = r.pass[k].data != nullptr && r.pass[k].stride[r.outer + r.row_axes - 1] != 0;
    if (r.s->operands[k].inner_invariant && moves) return false;
  }
  return true;
}

/* Decides how the stage is cut into units of work and how each operand is passed. */
static void plan(runner &r) {
  const stage &s = *r.s;
  order_axes(r);
  r.outer = collapse(r, 0, s.outer, 0);
  r.row_axes = collapse(r, s.outer, s.rank, r.outer);
  if (!s.whole_rows && r.row_axes > 1) {
    r.outer = r.row_axes - 1;
    r.row_axes = 1;
  }
  r.points = 1;
  for (int32_t a = 0; a < r.outer; ++a) r.points *= r.size[a];
  r.columns = 1;
  for (int32_t a = r.outer; a < r.outer + r.row_axes; ++a) r.columns *= r.size[a];

  const int64_t segment = r.row_axes > 0 ? r.size[r.outer + r.row_axes - 1] : 1;
  r.once = !s.whole_rows && have_segments(r, r.columns);
  r.segment = s.whole_rows && have_segments(r, segment) ? segment : 0;
  reorder(r);
  if (!s.whole_rows && r.row_axes == 1) bring_near(r);

  bool any_own = false; /* passed where they lie */
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    r.pass[k].own = is_reduction(o) && r.pass[k].data != nullptr && o.count == r.points * r.columns;
    for (int32_t a = 0; a < r.outer + r.row_axes; ++a) r.pass[k].own = r.pass[k].own && r.pass[k].stride[a] != 0;
    any_own = any_own || r.pass[k].own;
  }
  bool any_staged = false;
  bool any_partial = false; /* added up chunk by chunk, whether threads share these or not */
  bool across = false;
  r.join_rows = !s.whole_rows && !r.once;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    passing &p = r.pass[k];
    plan_operand(o, r, p);
    const bool follows = p.row_stride == r.columns || r.outer == 0;
    if (!s.whole_rows && r.columns < narrow_columns && !follows) p.staged = p.data != nullptr || p.staged;
    any_staged = any_staged || p.staged;
    any_partial = any_partial || (is_partial(o, p) && p.data != nullptr);
    across = across || (p.staged && p.along && p.row_stride == 1 && p.column_stride != 1);
    r.join_rows = r.join_rows && (p.staged || follows || p.data == nullptr);
  }

  const bool cut = !s.whole_rows && r.columns > chunk_elements;
  r.piece = cut ? (any_staged ? staged_elements : chunk_elements) : r.columns;
  if (cut && !any_staged && !any_own && !any_partial && r.context->parallel_for == nullptr) r.piece = r.columns;
  r.join_pieces = !any_staged && !any_own;
  r.pieces = r.columns == 0 ? 1 : (r.columns + r.piece - 1) / r.piece;
  r.units = r.points * r.pieces;
  r.tile_rows = r.points;
  if (any_staged) {
    const int64_t piece = r.piece > 0 ? r.piece : 1;
    /* Rows that lie across memory are moved several at a time, so that the cache lines they share are used whole. */
    const int64_t shared = across_elements / piece < across_rows ? across_elements / piece : across_rows;
    const int64_t fit = (cut ? staged_elements : joined_elements) / piece;
    r.tile_rows = across && fit < shared ? shared : fit > 0 ? fit : 1;
  } else if (any_own) {
    /* What is set to zero is still in cache when the tile function adds to it. */
    const int64_t fit = r.piece > 0 ? chunk_elements / r.piece : 1;
    r.tile_rows = fit > 0 ? fit : 1;
  }
  /* Rows a power of two apart would fall into one set of the cache. */
  r.pitch = s.whole_rows ? round_up(r.columns, 16) + 16 : r.piece;

  int64_t bytes = 0;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    if (!r.pass[k].staged) continue;
    r.pass[k].buffer = bytes;
    const int64_t columns = r.pass[k].along ? r.pitch : 1;
    bytes += round_up(r.tile_rows * columns * itemsize(s.operands[k].computed), cache_line);
  }
  r.scratch = bytes;
  r.scratch_pitch = round_up(r.columns * 8, cache_line) + cache_line; /* not a multiple of a page, so that rows share no cache set */
  r.buffer_bytes = bytes + s.scratch_rows * r.scratch_pitch;
}

}  // namespace opc
#endif  // OPC_ROWS_PLAN_H
