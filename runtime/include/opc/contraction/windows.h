/* Windows in rows: where the rows of a contraction overlap, as those of the gradient of a convolution by its filters do, they are not
 * packed but read, element by element, from a padded input.
 *
 * The padded input is a box that holds, contiguously and with its padding, all that the rows of a block read at a step. An element is
 * at the sum of an offset of its row and one of its inner point. Steps are cut at whole lines of inner points, so that the box holds
 * little else.
 */
#ifndef OPC_CONTRACTION_WINDOWS_H
#define OPC_CONTRACTION_WINDOWS_H

#include "opc/contraction/padded_input.h"

namespace opc {

enum : int64_t {
  windows_overlap = 2, /* rows of which each element is in as many windows on average are worth a padded input */
  windows_rows = 1024  /* rows of a block, at most */
};

/* Lays out the padded input of a step over a block of rows. */
static void lay_out_windows(const contraction_plan &p, int64_t row, int64_t rows, const contraction_step &at, padded_layout &s) {
  const contraction_factor &f = p.term[0].factors[0];
  for (int32_t n = 0; n < f.f->entries; ++n) s.axis[n].low = s.axis[n].span = 0;
  add_reach(p, f, p.term[0].inner, at.inner, at.depth, s.axis);
  add_reach(p, f, p.rows.loops, row, rows, s.axis);
  s.elements = 1;
  for (int32_t n = f.f->entries - 1; n >= 0; --n) {
    s.axis[n].pitch = s.elements;
    s.elements *= s.axis[n].span + 1;
  }
}

/* Whether the rows overlap so much that they are worth a padded input. */
static bool rows_overlap(const contraction_plan &p) {
  const contraction_term &t = p.term[0];
  const contraction_factor &f = t.factors[0];
  if (f.f->entries == 0) return false; /* a single element has no lines to copy */
  for (int32_t n = 0; n < f.f->entries; ++n) {
    if (!is_even_entry(p, f, n)) return false;
  }
  padded_layout s;
  const int64_t rows = points_of(p, p.rows.loops);
  lay_out_windows(p, 0, rows, {0, 0, t.depth}, s);
  return points_of(p, p.columns.loops) >= p.f->lanes / 2 && s.elements * windows_overlap <= rows * t.depth;
}

/* Cuts the inner points of a term whose rows overlap into steps: pieces of whole lines, of which one or more are run through at a time. */
static void cut_at_lines(const contraction_plan &p, contraction_term &t) {
  t.cut_size = t.cut_points = 1;
  t.step_size = 0;
  for (int32_t i = t.inner.count - 1; i >= 0; --i) {
    t.cut_points *= t.cut_size;
    t.cut_size = p.size[t.inner.loop[i]];
    if (t.cut_points * t.cut_size > inner_block) break;
  }
  const int64_t most = inner_block / t.cut_points;
  t.cuts = blocks_of(t.cut_size, most);
  t.blocks = t.depth / (t.cut_size * t.cut_points) * t.cuts;
}

/* Finds the rows of a block and the largest padded input of one; false where padded inputs would be too large. */
static bool plan_windows(contraction_plan &p) {
  windows_plan &of = p.windows;
  p.padded_input.point_entry = p.padded_input.line_entry = -1;
  p.row_blocks = blocks_of(p.rows.points, windows_rows);
  for (;; p.row_blocks *= 2) {
    of.elements = 0;
    for (int64_t block = 0; block < p.row_blocks; ++block) {
      const int64_t row = block_start(p.row_strips, p.row_blocks, block) * p.f->rows;
      const int64_t end = least_of(block_start(p.row_strips, p.row_blocks, block + 1) * p.f->rows, p.rows.points);
      for (int64_t step = 0; step < p.term[0].cuts; ++step) {
        padded_layout s;
        lay_out_windows(p, row, end - row, step_of(p, step), s);
        if (s.elements > of.elements) of.elements = s.elements;
      }
    }
    if (of.elements * itemsize(p.computed) <= padded_input_bytes) return true;
    if (2 * p.row_blocks > p.row_strips) return false;
  }
}

}  // namespace opc
#endif  // OPC_CONTRACTION_WINDOWS_H
