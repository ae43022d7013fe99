/* The padded input: where the windows of a convolution overlap, a factor is not packed, window by window, but copied once, with its
 * padding, and read from there.
 *
 * A padded input holds what a step over a block of columns reads of the columns' factor. Its last two axes run along the last two loops
 * of the columns, here called lines and points, so that a vector of columns is one of elements; where the columns step over several
 * elements, those that lie a step apart are brought together. Between the points of one line and those of the next lie a few elements
 * that only windows reach: where that takes fewer vectors, columns are computed for these too, and dropped.
 */
#ifndef OPC_CONTRACTION_PADDED_INPUT_H
#define OPC_CONTRACTION_PADDED_INPUT_H

#include "opc/contraction/plan.h"

namespace opc {

enum : int64_t {
  padded_input_bytes = 3 << 17, /* with the packed rows it stays in a second-level cache */
  padded_input_columns = 768, /* columns of a block */
  padded_input_blocks = 16, /* there are no fewer for the sake of larger ones */
  cost_of_packing = 24,     /* of an element, in multiplications */
  cost_of_copying = 30
};

/* What the inner points of a step add to the index of a place, from `low` to `low + span`, and how the padded input is laid out: the
 * index `low + r + step * q` is at r * rest_pitch + q * pitch. */
struct padded_axis {
  int64_t low, span;
  int64_t pitch, rest_pitch;
};

struct padded_layout {
  int64_t first_inner, lines, points; /* what it is for; first_inner is -1 for nothing */
  int64_t line_pitch;
  int64_t elements;
  padded_axis axis[OPC_MAX_RANK + max_guards];
};

/* Whether the index at a place moves in even steps. */
static bool is_even_entry(const contraction_plan &p, const contraction_factor &f, int32_t n) {
  const axis_index &at = f.f->at[n];
  for (int32_t i = 0; i < at.parts; ++i) {
    if (!steps_evenly(at.part_list[i]) && moves(p, at.part_list[i])) return false;
  }
  return at.divisor == 1 || (p.whole && at.guarded != inside);
}

/* How far the index at a place moves with each point of a loop. */
static inline int64_t step_at(const contraction_plan &p, const axis_index &at, int32_t loop) {
  int64_t step;
  is_even(p, at, loop, &step);
  return step / at.divisor;
}

/* Finds the place whose index moves with a loop of the columns, forwards; -1 unless there is exactly one. */
static int32_t entry_of(const contraction_plan &p, const contraction_factor &f, int32_t loop) {
  int32_t found = -1;
  for (int32_t n = 0; n < f.f->entries; ++n) {
    const int64_t step = step_at(p, f.f->at[n], loop);
    if (step == 0) continue;
    if (step < 0 || found >= 0) return -1;
    found = n;
  }
  return found;
}

static inline int64_t residues_of(const padded_axis &axis, int64_t step) { return least_of(step, axis.span + 1); }

/* Lays out the padded input of a step over `lines` lines of `points` points, from what its inner points add to each index. */
static void lay_out_padded_input(const contraction_plan &p, padded_layout &s, int64_t lines, int64_t points) {
  const padded_plan &of = p.padded_input;
  padded_axis &point_axis = s.axis[of.point_entry];
  s.lines = lines;
  s.points = points;
  s.line_pitch = of.reach + points;
  point_axis.pitch = 1;
  s.elements = s.line_pitch;
  if (of.line_entry >= 0) {
    padded_axis &line_axis = s.axis[of.line_entry];
    line_axis.pitch = s.elements;
    s.elements *= line_axis.span / of.line_step + lines;
    line_axis.rest_pitch = s.elements;
    s.elements *= residues_of(line_axis, of.line_step);
  }
  point_axis.rest_pitch = s.elements;
  s.elements *= residues_of(point_axis, of.point_step);
  const int32_t entries = p.term[0].factors[1].f->entries;
  for (int32_t n = entries - 1; n >= 0; --n) {
    if (n == of.point_entry || n == of.line_entry) continue;
    s.axis[n].pitch = s.elements;
    s.elements *= s.axis[n].span + 1;
  }
}

/* Adds to `axis` how far the indices of a factor reach over points [first, first + count) of a list of loops. */
static void add_reach(const contraction_plan &p, const contraction_factor &f, const loop_list &list, int64_t first, int64_t count,
                      padded_axis *axis) {
  int64_t below = points_of(p, list); /* points of this loop and those inside it */
  bool full = false;
  for (int32_t i = 0; i < list.count; ++i) {
    const int64_t size = p.size[list.loop[i]];
    const int64_t each = below / size;
    const int64_t from = full ? 0 : first % below / each;
    const int64_t to = full ? size - 1 : (first + count - 1) % below / each;
    below = each;
    full = full || from != to;
    for (int32_t n = 0; n < f.f->entries; ++n) {
      const int64_t step = step_at(p, f.f->at[n], list.loop[i]);
      axis[n].low += least_of(step * from, step * to);
      axis[n].span += (step < 0 ? -step : step) * (to - from);
    }
  }
}

/* Finds how far the inner points of a step reach. */
static void find_reach(const contraction_plan &p, const contraction_step &at, padded_layout &s) {
  const contraction_factor &f = p.term[0].factors[1];
  for (int32_t n = 0; n < f.f->entries; ++n) s.axis[n].low = s.axis[n].span = 0;
  add_reach(p, f, p.term[0].inner, at.inner, at.depth, s.axis);
}

/* Sets where the elements of points [first, first + count) of a list of loops begin in a padded input: from its first element, or from
 * the one where all loops begin. */
static void find_offsets(const contraction_plan &p, const contraction_factor &f, const loop_list &list, int64_t first, int64_t count,
                         const padded_layout &s, bool from_first, int64_t *offset) {
  const padded_plan &of = p.padded_input;
  const int32_t entries = f.f->entries;
  int64_t move[max_contraction_loops][OPC_MAX_RANK + max_guards];
  int64_t at[max_contraction_loops];
  int64_t value[OPC_MAX_RANK + max_guards];
  for (int32_t n = 0; n < entries; ++n) value[n] = from_first ? -s.axis[n].low : 0;
  int64_t rest = first;
  for (int32_t i = list.count - 1; i >= 0; --i) {
    const int32_t loop = list.loop[i];
    at[i] = rest % p.size[loop];
    rest /= p.size[loop];
    for (int32_t n = 0; n < entries; ++n) {
      move[i][n] = step_at(p, f.f->at[n], loop);
      value[n] += at[i] * move[i][n];
    }
  }
  for (int64_t k = 0; k < count; ++k) {
    offset[k] = 0;
    for (int32_t n = 0; n < entries; ++n) {
      const padded_axis &axis = s.axis[n];
      const int64_t apart = n == of.point_entry ? of.point_step : n == of.line_entry ? of.line_step : 1;
      offset[k] += apart == 1 ? value[n] * axis.pitch : value[n] % apart * axis.rest_pitch + value[n] / apart * axis.pitch;
    }
    for (int32_t i = list.count - 1; i >= 0; --i) {
      const int64_t size = p.size[list.loop[i]];
      const bool wraps = ++at[i] == size;
      for (int32_t n = 0; n < entries; ++n) value[n] += wraps ? (1 - size) * move[i][n] : move[i][n];
      if (!wraps) break;
      at[i] = 0;
    }
  }
}

/* Describes the copying of what a block reads of a factor at a step; it begins where some loops, `list`, have `index`. */
static void describe_copy(const contraction_plan &p, const contraction_factor &f, const padded_layout &s, const loop_list &list,
                          const int64_t *index, void *to, padded_copy &job) {
  const padded_plan &of = p.padded_input;
  bool moving[max_contraction_loops] = {};
  for (int32_t n = 0; n < list.count; ++n) moving[list.loop[n]] = true;
  job.to = to;
  job.from = f.data;
  job.stored = f.f->stored;
  job.second = f.f->second;
  job.axes = f.f->entries;
  job.loops = 0;
  int32_t guards = 0;
  for (int32_t n = 0; n < f.f->entries; ++n) {
    const axis_index &at = f.f->at[n];
    const bool guarded = at.guarded != inside;
    const int64_t base = guarded ? f.base[guards++] : 0;
    job.axis[n] = {base + distance(p, at, moving, index) / at.divisor + s.axis[n].low, at.size, at.stride, guarded};
    if (n != of.point_entry && n != of.line_entry) job.loop[job.loops++] = {n, s.axis[n].span + 1, 1};
  }
  if (of.point_entry < 0) return;
  const padded_axis &point_axis = s.axis[of.point_entry];
  job.loop[job.loops++] = {of.point_entry, residues_of(point_axis, of.point_step), 1};
  if (of.line_entry >= 0) {
    const padded_axis &line_axis = s.axis[of.line_entry];
    job.loop[job.loops++] = {of.line_entry, residues_of(line_axis, of.line_step), 1};
    job.loop[job.loops++] = {of.line_entry, line_axis.span / of.line_step + s.lines, of.line_step};
  }
  job.loop[job.loops++] = {of.point_entry, s.line_pitch, of.point_step};
}

/* Plans blocks of some lines: whether they are joined, and how many columns are computed for one. */
static void plan_lines(const contraction_plan &p, padded_plan &of, int64_t lines) {
  const int64_t lanes = p.f->lanes;
  const int64_t joined = blocks_of((lines - 1) * (of.reach + of.points) + of.points, lanes) * lanes;
  const int64_t apart = lines * blocks_of(of.points, lanes) * lanes;
  of.lines = lines;
  of.joined = joined < apart;
  of.columns = of.joined ? joined : apart;
}

/* Plans the columns of a contraction as windows over a padded input, if that is less work than to pack them. */
static bool plan_padded_input(contraction_plan &p) {
  padded_plan &of = p.padded_input;
  of.used = false;
  const loop_list &loops = p.columns.loops;
  if (p.terms != 1 || loops.count == 0 || p.term[0].depth == 0) return false;
  const contraction_term &t = p.term[0];
  const contraction_factor &f = t.factors[1];
  for (int32_t n = 0; n < f.f->entries; ++n) {
    if (!is_even_entry(p, f, n)) return false;
  }
  of.point_loop = loops.loop[loops.count - 1];
  of.line_loop = loops.count > 1 ? loops.loop[loops.count - 2] : -1;
  of.point_entry = entry_of(p, f, of.point_loop);
  of.line_entry = of.line_loop >= 0 ? entry_of(p, f, of.line_loop) : -1;
  if (of.point_entry < 0 || (of.line_loop >= 0 && (of.line_entry < 0 || of.line_entry == of.point_entry))) return false;
  of.point_step = step_at(p, f.f->at[of.point_entry], of.point_loop);
  of.line_step = of.line_loop >= 0 ? step_at(p, f.f->at[of.line_entry], of.line_loop) : 1;
  const int64_t points = of.all_points = p.size[of.point_loop];
  const int64_t lines = of.all_lines = of.line_loop >= 0 ? p.size[of.line_loop] : 1;
  padded_layout s;
  of.reach = 0;
  for (int64_t step = p.steps - 1; step >= 0; --step) {
    find_reach(p, step_of(p, step), s);
    const int64_t reach = s.axis[of.point_entry].span / of.point_step;
    if (reach > of.reach) of.reach = reach;
  }
  /* Pieces of a line, or whole lines: that number of them with which copying and multiplying is the least work. */
  const int64_t most = padded_input_bytes / itemsize(p.computed);
  const int64_t rows = p.rows.points;
  lay_out_padded_input(p, s, 1, points);
  of.points = points;
  while (of.points > 1 && (s.elements > most || of.points > padded_input_columns)) {
    of.points = (of.points + 1) / 2;
    lay_out_padded_input(p, s, 1, of.points);
  }
  const int64_t planes = p.batches * p.columns.points / (lines * points);
  const int64_t fewest = planes * lines < padded_input_blocks ? 0 : static_cast<int64_t>(padded_input_blocks);
  int64_t best = 1;
  int64_t least = INT64_MAX;
  for (int64_t some = 1; some <= (of.points == points ? lines : 1); ++some) {
    lay_out_padded_input(p, s, some, of.points);
    plan_lines(p, of, some);
    const int64_t blocks = blocks_of(lines, some);
    if (some > 1 && (s.elements > most || of.columns > padded_input_columns || planes * blocks < fewest)) break;
    const int64_t work = blocks * (s.elements * cost_of_copying + of.columns * p.most_inner * rows);
    if (work > least) continue;
    least = work;
    best = some;
  }
  plan_lines(p, of, best);
  of.elements = 0;
  for (int64_t step = 0; step < p.steps; ++step) {
    find_reach(p, step_of(p, step), s);
    lay_out_padded_input(p, s, of.lines, of.points);
    if (s.elements > of.elements) of.elements = s.elements;
  }
  of.line_blocks = blocks_of(lines, of.lines);
  of.point_blocks = blocks_of(points, of.points);
  const int64_t packed = of.lines * of.points * p.most_inner;
  of.used = of.elements <= most && of.elements * cost_of_copying + (of.columns - of.lines * of.points) * p.most_inner * rows <
                                      packed * cost_of_packing;
  return of.used;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_PADDED_INPUT_H
