/* How a contraction is cut: which loops are rows, columns and batches, and how large the blocks are. */
#ifndef OPC_CONTRACTION_PLAN_H
#define OPC_CONTRACTION_PLAN_H

#include "opc/contraction/groups.h"

namespace opc {

enum : int64_t {
  inner_block = 640,         /* inner points of a step: a strip of rows stays in the first-level cache */
  packed_bytes = 1 << 19,    /* packed columns: half of a second-level cache */
  block_rows = 64,           /* rows of a unit of work */
  joined_rows = 512,         /* rows that one thread takes together, packing their columns once, unless it keeps them all */
  kept_bytes = 1 << 22,      /* packed rows that are kept for the next block of columns */
  kept_columns_bytes = 1 << 20, /* packed columns that are kept for the next block of rows */
  kept_slice_bytes = 1 << 22, /* packed columns that are kept for the next rows of a slice */
  few_panels = 2,            /* so few panels of columns don't repay the packing of rows that are in a cache */
  few_strips = 2,            /* so few strips of rows don't repay the packing of columns */
  few_rows = 2,              /* so few rows are multiplied one by one; at most half a strip */
  unit_work = 1 << 18        /* multiplications worth a thread */
};

/* A list of loops, outermost first. */
struct loop_list {
  int32_t count;
  int32_t loop[max_contraction_loops];
};

/* Rows or columns: points of a list of loops. `stride` is each operand's along the last run of points in which none jumps, of `run`
 * points. */
struct contraction_side {
  loop_list loops;
  int64_t points;
  int64_t run;
  int64_t stride[max_operands];
};

/* A factor at one batch. */
struct contraction_factor {
  const factor *f;
  const char *data;
  int32_t guards;
  int32_t guard[max_guards]; /* entries */
  int64_t base[max_guards];
  int64_t divisor[max_guards];
};

struct contraction_term {
  loop_list inner;
  int64_t depth;
  /* The inner points fall into whole runs of `cut_size` times `cut_points`, each of which is cut into `cuts` steps. */
  int64_t cut_size, cut_points, cuts;
  int64_t step_size; /* of each of these but the last, 0 where they are of about the same length */
  int64_t blocks; /* all steps */
  contraction_factor factors[2]; /* of the rows, of the columns */
  bool skips; /* there are products that don't count */
};

struct contraction_step {
  int32_t term;
  int64_t inner, depth;
};

/* How the columns of a contraction are read from a padded input, if they are: see opc/contraction/padded_input.h. */
struct padded_plan {
  bool used;
  int32_t point_loop, line_loop;   /* the last two loops of the columns; line_loop is -1 where there is only one */
  int32_t point_entry, line_entry; /* the entries of the factor that move with them, in steps of: */
  int64_t point_step, line_step;
  int64_t reach; /* elements of a line beyond its points */
  int64_t all_points, all_lines;
  int64_t points, lines;             /* of a block, at most */
  int64_t point_blocks, line_blocks; /* one of them is 1 */
  bool joined; /* vectors run on from one line to the next, over what is between them */
  int64_t columns, elements; /* of a block with those that are dropped, and of its padded input, at most */
};

/* Whether the rows of a contraction are read from a padded input: see opc/contraction/windows.h. */
struct windows_plan {
  bool used;
  int64_t elements; /* of the padded input of a step over a block of rows, at most */
};

struct contraction_plan {
  const contraction *c;
  const contraction_functions *f;
  const row_functions *conversions;
  dtype computed;
  tile_function function;
  const void *arguments;
  bool failed;
  bool keeps_rows, keeps_columns; /* what a thread has packed stays for its next blocks */
  bool whole_sums; /* the sums of a block are kept, not only those of a strip of rows */
  bool whole; /* every index is a multiple of its divisor */
  /* The part of each loop that is computed: `size` points from `begin` on, `step` apart. */
  int64_t begin[max_contraction_loops];
  int64_t size[max_contraction_loops];
  int64_t step[max_contraction_loops];
  contraction_side rows, columns;
  padded_plan padded_input;
  windows_plan windows;
  loop_list batch;
  int64_t batches;
  int32_t terms;
  contraction_term term[max_terms];
  int64_t steps;
  int64_t parts; /* of the steps, which are summed up apart */
  char *partial; /* the sums of each part, where there are several */
  struct memory_pool *pool;
  struct packed_key *kept_keys; /* of packed columns that stay, by blocks of columns and steps; NULL where none are kept */
  char *kept_panels;
  int64_t work; /* multiplications */
  int32_t panel_vectors; /* of a packed panel of columns, at most */
  int64_t row_strips, row_blocks, column_panels, column_blocks, joined_blocks;
  int64_t block_panels; /* of each block of columns but the last, 0 where they are about as wide */
  int64_t most_inner, most_rows, most_columns;
  int64_t operand_offset[max_operands];
  int32_t staged;
  const int64_t *panel_offset[strip_vectors];
};

/* Whether factors are of words of two elements. */
static inline bool of_words(const contraction_plan &p) { return p.f->least_exponent != nullptr; }

static inline int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static inline int64_t part_value(const part &p, int64_t index) {
  if (p.table != nullptr) return p.times * p.table[index];
  const int64_t value = p.scale * index + p.shift;
  return p.times * (p.divisor == 1 ? value : floor_quotient(value, p.divisor));
}

/* Whether a part adds the same with each point of its loop. */
static inline bool steps_evenly(const part &of) { return of.divisor == 1 && of.table == nullptr; }

/* Whether a part moves with its loop, over the range that is planned. */
static inline bool moves(const contraction_plan &p, const part &of) {
  const int64_t first = p.begin[of.loop];
  for (int64_t i = 0; of.table != nullptr && i < p.size[of.loop]; ++i) {
    if (of.table[first + i] != of.table[first]) return of.times != 0;
  }
  return of.table == nullptr && part_value(of, first) != part_value(of, first + (p.size[of.loop] - 1) * p.step[of.loop]);
}

static inline bool varies(const contraction_plan &p, const factor &f, int32_t loop) {
  for (int32_t n = 0; n < f.entries; ++n) {
    for (int32_t i = 0; i < f.at[n].parts; ++i) {
      if (f.at[n].part_list[i].loop == loop && moves(p, f.at[n].part_list[i])) return true;
    }
  }
  return false;
}

/* Sets the index of each loop of a list at one of its points. */
static inline void locate(const contraction_plan &p, const loop_list &list, int64_t point, int64_t *index) {
  for (int32_t n = list.count - 1; n >= 0; --n) {
    const int32_t loop = list.loop[n];
    const int64_t next = point / p.size[loop];
    index[loop] = p.begin[loop] + (point - next * p.size[loop]) * p.step[loop];
    point = next;
  }
}

static inline int64_t points_of(const contraction_plan &p, const loop_list &list) {
  int64_t points = 1;
  for (int32_t n = 0; n < list.count; ++n) points *= p.size[list.loop[n]];
  return points;
}

/* What the loops `moving` add to the index of an axis between their beginnings and `index`. */
static inline int64_t distance(const contraction_plan &p, const axis_index &at, const bool *moving, const int64_t *index) {
  int64_t value = 0;
  for (int32_t i = 0; i < at.parts; ++i) {
    const part &of = at.part_list[i];
    if (moving[of.loop]) value += part_value(of, index[of.loop]) - part_value(of, p.begin[of.loop]);
  }
  return value;
}

/* Whether a loop adds the same to an index with each of its points: then `step` is what it adds. A part that steps adds nothing where it
 * does not move over the range that is planned. */
static inline bool is_even(const contraction_plan &p, const axis_index &at, int32_t loop, int64_t *step) {
  bool even = true;
  *step = 0;
  for (int32_t i = 0; i < at.parts; ++i) {
    const part &of = at.part_list[i];
    if (of.loop != loop || (!steps_evenly(of) && !moves(p, of))) continue;
    *step += of.times * of.scale * p.step[loop];
    even = even && steps_evenly(of);
  }
  return even;
}

/* The index of an axis where the loops begin and those of the batch stand. */
static inline int64_t start_of(const axis_index &at, const int64_t *index) {
  int64_t value = at.offset;
  for (int32_t i = 0; i < at.parts; ++i) value += part_value(at.part_list[i], index[at.part_list[i].loop]);
  return value;
}

/* How far point `index` of a loop of the result is from 0 in an operand. */
static inline int64_t place_of(const contraction_plan &p, const operand &o, int32_t loop, int64_t index) {
  return is_grouped(p.c->groups, loop) ? place_of_grouped(*p.c->groups, o.stride, p.c->s->rank, index) : index * o.stride[loop];
}

/* Takes the factors and operands to a batch. */
static void move_to_batch(contraction_plan &p, int64_t batch) {
  int64_t index[max_contraction_loops];
  for (int32_t loop = 0; loop < p.c->loops; ++loop) index[loop] = p.begin[loop];
  locate(p, p.batch, batch, index);
  for (int32_t t = 0; t < p.terms; ++t) {
    for (contraction_factor &f : p.term[t].factors) {
      int64_t offset = 0;
      int32_t guards = 0;
      for (int32_t n = 0; n < f.f->entries; ++n) {
        const axis_index &at = f.f->at[n];
        const int64_t value = start_of(at, index);
        if (at.guarded != inside) {
          f.base[guards] = value / (at.divisor / f.divisor[guards]);
          ++guards;
        } else {
          offset += value * at.stride;
        }
      }
      f.data = f.f->data + offset * itemsize(f.f->stored);
    }
  }
  const stage &s = *p.c->s;
  for (int32_t k = 1; k < s.operand_count; ++k) {
    int64_t offset = 0;
    for (int32_t loop = 0; loop < s.rank; ++loop) offset += place_of(p, s.operands[k], loop, index[loop]);
    p.operand_offset[k] = offset;
  }
}

/* How far a point of rows or columns is from the first one in an operand. */
static inline int64_t operand_offset(const contraction_plan &p, const contraction_side &side, int64_t point, const operand &o) {
  int64_t index[max_contraction_loops];
  int64_t offset = 0;
  locate(p, side.loops, point, index);
  for (int32_t n = 0; n < side.loops.count; ++n) {
    const int32_t loop = side.loops.loop[n];
    offset += place_of(p, o, loop, index[loop]) - place_of(p, o, loop, p.begin[loop]);
  }
  return offset;
}

/* The number of points from `point` on, at most `most`, along which no operand jumps. */
static inline int64_t run_of_points(const contraction_plan &, const contraction_side &side, int64_t point, int64_t most) {
  const int64_t left = side.run - point % side.run;
  return left < most ? left : most;
}

/* Whether an operand reaches the tile function through a buffer. */
static inline bool is_staged(const contraction_plan &p, int32_t operand) {
  const struct operand &o = p.c->s->operands[operand];
  return o.stored != o.computed || p.columns.stride[operand] != 1;
}

/* Finds the longest run of points at the end of a side's loops along which every operand has one stride. */
static void plan_runs(const contraction_plan &p, contraction_side &side) {
  const stage &s = *p.c->s;
  const loop_list &list = side.loops;
  side.points = points_of(p, list);
  side.run = 1;
  const int32_t last = list.count > 0 ? list.loop[list.count - 1] : -1;
  for (int32_t k = 1; k < s.operand_count; ++k) side.stride[k] = last < 0 ? 1 : s.operands[k].stride[last] * p.step[last];
  for (int32_t n = list.count - 1; n >= 0; --n) {
    if (is_grouped(p.c->groups, list.loop[n])) return;
    for (int32_t k = 1; k < s.operand_count; ++k) {
      const operand &o = s.operands[k];
      if (o.data != nullptr && o.stride[list.loop[n]] * p.step[list.loop[n]] != side.stride[k] * side.run) return;
    }
    side.run *= p.size[list.loop[n]];
  }
}

/* Which factor of a term varies along the rows: the one that shares more loops with the first term's first. */
static int32_t left_factor(const contraction_plan &p, const term &t) {
  int32_t same = 0;
  for (int32_t loop = 0; loop < p.c->s->rank; ++loop) {
    if (p.size[loop] < 2) continue;
    const bool row = varies(p, p.c->term_list[0].factors[0], loop);
    const bool column = varies(p, p.c->term_list[0].factors[1], loop);
    if (row == column) continue;
    same += varies(p, t.factors[0], loop) == row && varies(p, t.factors[1], loop) == column;
    same -= varies(p, t.factors[0], loop) == column && varies(p, t.factors[1], loop) == row;
  }
  return same < 0;
}

static inline void append(loop_list &list, int32_t loop) { list.loop[list.count++] = loop; }

/* Makes rows of columns, and the other way round. */
static void swap_sides(contraction_plan &p) {
  const loop_list kept = p.rows.loops;
  p.rows.loops = p.columns.loops;
  p.columns.loops = kept;
  for (int32_t t = 0; t < p.terms; ++t) {
    const contraction_factor first = p.term[t].factors[0];
    p.term[t].factors[0] = p.term[t].factors[1];
    p.term[t].factors[1] = first;
  }
}

/* Returns the loop of the target along which the elements of an operand lie nearest to each other. */
static int32_t nearest_loop(const contraction_plan &p, const operand &o) {
  int32_t nearest = -1;
  for (int32_t loop = 0; loop < p.c->s->rank; ++loop) {
    if (p.size[loop] != 1 && (nearest < 0 || o.stride[loop] < o.stride[nearest])) nearest = loop;
  }
  return nearest;
}

/* Whether a list has the loop whose points are in the order of their groups: such points are rows. */
static inline bool has_grouped(const contraction_plan &p, const loop_list &list) {
  bool found = false;
  for (int32_t n = 0; n < list.count; ++n) found = found || is_grouped(p.c->groups, list.loop[n]);
  return found;
}

/* Sorts the loops into rows, columns, batches and inner loops. */
static void plan_loops(contraction_plan &p) {
  const contraction &c = *p.c;
  const stage &s = *c.s;
  p.terms = c.terms;
  p.rows.loops.count = p.columns.loops.count = p.batch.count = 0;
  for (int32_t t = 0; t < c.terms; ++t) {
    const int32_t left = left_factor(p, c.term_list[t]);
    contraction_term &to = p.term[t];
    to.inner.count = 0;
    for (int32_t loop = c.term_list[t].begin; loop < c.term_list[t].end; ++loop) {
      if (p.size[loop] != 1) append(to.inner, loop);
    }
    to.depth = points_of(p, to.inner);
    to.skips = false;
    for (int32_t i = 0; i < 2; ++i) {
      contraction_factor &f = to.factors[i];
      f.f = &c.term_list[t].factors[i == 0 ? left : 1 - left];
      f.guards = 0;
      for (int32_t n = 0; n < f.f->entries; ++n) {
        if (f.f->at[n].guarded == inside) continue;
        /* What is not whole is left out, too. */
        const bool skips = f.f->at[n].guarded == skipped || (f.f->at[n].divisor != 1 && !p.whole);
        to.skips = to.skips || (skips && p.f->all_finite != nullptr);
        f.guard[f.guards] = n;
        f.divisor[f.guards++] = p.whole ? 1 : f.f->at[n].divisor;
      }
    }
  }
  const operand &result = s.operands[s.operand_count - 1];
  for (int32_t loop = 0; loop < s.rank; ++loop) {
    if (p.size[loop] == 1) continue;
    bool row = false;
    bool column = false;
    for (int32_t t = 0; t < c.terms; ++t) {
      row = row || varies(p, *p.term[t].factors[0].f, loop);
      column = column || varies(p, *p.term[t].factors[1].f, loop);
    }
    /* Where conditions leave no term, nothing tells rows from columns: they are chosen so that no block is a point. */
    if (c.terms == 0) {
      column = loop == nearest_loop(p, result);
      row = !column;
    }
    append(row == column ? p.batch : row ? p.rows.loops : p.columns.loops, loop);
  }
  /* Columns are what lies together in the last operand, the result, unless there are too few of them for a vector. */
  int64_t nearest[2] = {INT64_MAX, INT64_MAX};
  for (int32_t side = 0; side < 2; ++side) {
    const loop_list &list = side == 0 ? p.rows.loops : p.columns.loops;
    for (int32_t n = 0; n < list.count; ++n) {
      if (result.stride[list.loop[n]] < nearest[side]) nearest[side] = result.stride[list.loop[n]];
    }
  }
  const int64_t rows = points_of(p, p.rows.loops);
  const int64_t columns = points_of(p, p.columns.loops);
  const int64_t few = p.f->lanes / 2;
  bool swap = nearest[0] < nearest[1];
  if (swap ? rows < few && columns > 2 * rows : columns < few && rows > 2 * columns) swap = !swap;
  if (p.c->groups != nullptr && (has_grouped(p, p.rows.loops) || has_grouped(p, p.columns.loops))) swap = has_grouped(p, p.columns.loops);
  if (swap) swap_sides(p);
}

/* The first of `count` things that are in block `block` of `blocks`. */
static inline int64_t block_start(int64_t count, int64_t blocks, int64_t block) { return count * block / blocks; }

static inline int64_t blocks_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

/* Where cut `cut` of a run begins. */
static inline int64_t cut_start(const contraction_term &t, int64_t cut) {
  return t.step_size > 0 ? least_of(cut * t.step_size, t.cut_size) : block_start(t.cut_size, t.cuts, cut);
}

static inline contraction_step step_of(const contraction_plan &p, int64_t step) {
  int32_t t = 0;
  for (; step >= p.term[t].blocks; ++t) step -= p.term[t].blocks;
  const contraction_term &of = p.term[t];
  const int64_t before = step / of.cuts * of.cut_size;
  const int64_t begin = before + cut_start(of, step % of.cuts);
  const int64_t end = before + cut_start(of, step % of.cuts + 1);
  return {t, begin * of.cut_points, (end - begin) * of.cut_points};
}

}  // namespace opc
#endif  // OPC_CONTRACTION_PLAN_H
