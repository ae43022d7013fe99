/* The blocks and steps of a contraction: which way its factors are read, and what is a unit of work. */
#ifndef OPC_CONTRACTION_BLOCKS_H
#define OPC_CONTRACTION_BLOCKS_H

#include "opc/contraction/windows.h"

namespace opc {

enum : int64_t {
  most_parts = 16, /* of the steps of a contraction with few blocks */
  part_steps = 2,  /* steps of a part, at least */
  partial_bytes = 1 << 22
};

/* Cuts the inner points of a term into steps of about the same length; where what is packed is kept for the next block of rows, which may
 * need more or fewer of them, into steps that begin at the same points. */
static void cut_evenly(const contraction_plan &p, contraction_term &t) {
  t.step_size = p.c->kept != nullptr ? inner_block : 0;
  t.cut_size = t.depth;
  t.cut_points = 1;
  t.cuts = t.blocks = blocks_of(t.depth, inner_block);
}

/* Plans the strips of rows and panels of columns, and adds up the steps of all terms. */
static void plan_strips(contraction_plan &p) {
  plan_runs(p, p.rows);
  plan_runs(p, p.columns);
  p.row_strips = blocks_of(p.rows.points, p.f->rows);
  /* Two panels of two vectors are quicker than one of three and one of one: with few sums in registers, products wait for each other. */
  p.panel_vectors = (p.c->kept != nullptr || of_words(p)) && blocks_of(p.columns.points, p.f->lanes) == strip_vectors + 1 ? 2 : strip_vectors;
  p.column_panels = blocks_of(p.columns.points, p.panel_vectors * p.f->lanes);
  p.steps = 0;
  p.most_inner = 1;
  for (int32_t t = 0; t < p.terms; ++t) {
    const contraction_term &of = p.term[t];
    p.steps += of.blocks;
    if (of.blocks == 0) continue;
    const int64_t longest = of.step_size > 0 ? least_of(of.step_size, of.cut_size) : blocks_of(of.cut_size, of.cuts);
    if (longest * of.cut_points > p.most_inner) p.most_inner = longest * of.cut_points;
  }
}

/* Plans the columns as packed blocks. */
static void plan_columns(contraction_plan &p) {
  const int64_t panel = p.panel_vectors * p.f->lanes;
  int64_t panels = packed_bytes / (p.most_inner * panel * p.f->packed);
  if (panels > 16) panels = 16;
  p.column_blocks = blocks_of(p.column_panels, panels);
  p.block_panels = p.c->kept != nullptr ? panels : 0;
  p.most_columns = (p.c->kept != nullptr ? least_of(p.column_panels, panels) : blocks_of(p.column_panels, p.column_blocks)) * panel;
}

/* Plans windows in rows, if one of the factors has them and the other does not come from a padded input; then that factor's are the
 * rows. */
static bool use_windows(contraction_plan &p) {
  if (p.terms != 1 || p.term[0].depth == 0) return false;
  bool swapped = false;
  if (!rows_overlap(p)) {
    swap_sides(p);
    swapped = true;
  }
  bool used = !swapped || rows_overlap(p);
  if (used) {
    cut_at_lines(p, p.term[0]);
    plan_strips(p);
    used = plan_windows(p);
  }
  if (used) return true;
  if (swapped) swap_sides(p);
  cut_evenly(p, p.term[0]);
  plan_strips(p);
  return false;
}

/* The bytes of the sums of one part of the steps. */
static inline int64_t partial_bytes_of(const contraction_plan &p) {
  return p.row_strips * p.f->rows * p.column_blocks * p.most_columns * itemsize(p.computed);
}

/* Splits the steps of a contraction that has too few blocks for many threads. How many parts there are depends on its sizes alone, so that
 * the sums do, too. */
static void plan_parts(contraction_plan &p, int64_t blocks) {
  p.parts = least_of(blocks_of(most_parts, blocks), p.steps / part_steps);
  p.parts = least_of(least_of(p.parts, partial_bytes / partial_bytes_of(p)), p.work / unit_work);
  if (p.batches != 1 || blocks >= most_parts || p.parts < 2) p.parts = 1;
}

/* Plans a contraction; false when it has no points. */
static bool plan_blocks(contraction_plan &p, int64_t *units) {
  const stage &s = *p.c->s;
  plan_loops(p);
  p.batches = points_of(p, p.batch);
  p.work = 0;
  for (int32_t t = 0; t < p.terms; ++t) {
    cut_evenly(p, p.term[t]);
    p.work += p.term[t].depth;
  }
  plan_strips(p);
  if (p.batches == 0 || p.rows.points == 0 || p.columns.points == 0) return false;
  p.work *= p.batches * p.rows.points * p.columns.points;
  const bool kept = p.rows.points * p.steps * p.most_inner * p.f->packed <= kept_bytes;
  p.joined_blocks = blocks_of(kept ? p.rows.points : joined_rows, block_rows);
  p.padded_input.used = p.f->copy != nullptr && plan_padded_input(p);
  p.windows.used = p.f->copy != nullptr && !p.padded_input.used && use_windows(p);
  if (p.padded_input.used) {
    p.column_blocks = p.columns.points / (p.padded_input.all_lines * p.padded_input.all_points) * p.padded_input.line_blocks *
        p.padded_input.point_blocks;
    p.most_columns = blocks_of(p.padded_input.columns, strip_vectors * p.f->lanes) * strip_vectors * p.f->lanes;
  } else {
    plan_columns(p);
  }
  if (p.windows.used) {
    p.joined_blocks = 1;
  } else {
    p.row_blocks = blocks_of(p.rows.points, block_rows);
  }
  plan_parts(p, blocks_of(p.row_blocks, p.joined_blocks) * p.column_blocks);
  if (p.parts > 1 && !p.windows.used) {
    /* A unit is then what packs its columns once. */
    p.row_blocks = blocks_of(p.row_blocks, p.joined_blocks);
    p.joined_blocks = 1;
  }
  p.most_rows = blocks_of(p.row_strips, p.row_blocks) * p.f->rows * least_of(p.joined_blocks, p.row_blocks);
  p.keeps_rows = !p.windows.used && p.column_blocks * p.batches > 1 && p.row_blocks <= p.joined_blocks &&
                 p.steps * p.most_inner * p.most_rows * p.f->packed <= kept_bytes;
  p.keeps_columns = !p.windows.used && !p.padded_input.used && p.row_blocks > 1 &&
                    p.steps * p.most_inner * p.most_columns * p.f->packed <= kept_columns_bytes;
  p.whole_sums = p.steps > 1;
  for (int32_t t = 0; t < p.terms; ++t) p.whole_sums = p.whole_sums || p.term[t].skips;
  p.staged = 0;
  for (int32_t k = 1; k < s.operand_count; ++k) p.staged += is_staged(p, k);
  *units = p.batches * p.row_blocks * p.column_blocks * p.parts;
  return true;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_BLOCKS_H
