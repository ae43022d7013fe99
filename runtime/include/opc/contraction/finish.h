/* Hands the sums of a contraction to the tile function that does the rest of its stage. */
#ifndef OPC_CONTRACTION_FINISH_H
#define OPC_CONTRACTION_FINISH_H

#include "opc/contraction/memory.h"
#include "opc/rows/rows.h"

namespace opc {

/* A block of the result: `row_count` rows from `row` on and `column_count` columns from `column` on, whose sums come in lines of `line`
 * columns, `line_pitch` apart; they are of steps [first_step, end_step). */
struct contraction_block {
  int64_t row, row_count, column, column_count, line, line_pitch;
  int64_t column_block; /* its place among the blocks of columns */
  int64_t first_step, end_step;
  int64_t first_block, blocks; /* the blocks of rows that it is made of */
};

/* Where the sum of a column is in its row. */
static inline int64_t position(const contraction_block &b, int64_t column) {
  return column / b.line * b.line_pitch + column % b.line;
}

/* Whether an operand is the same in all columns. */
static inline bool is_constant(const contraction_plan &p, const operand &o) {
  bool constant = true;
  for (int32_t n = 0; n < p.columns.loops.count; ++n) constant = constant && o.stride[p.columns.loops.loop[n]] == 0;
  return constant;
}

enum : int64_t { constant_columns = 128 };

/* Hands rows [first, first + count) of a block of sums to the tile function, in pieces in which every operand has one stride. An operand
 * that is the same in all columns is loaded for the first piece, and no piece is then wider than what that is loaded for. */
static void finish_strip(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const char *sums,
                         int64_t first, int64_t count) {
  const stage &s = *p.c->s;
  const int64_t item = itemsize(p.computed);
  bool constant[max_operands];
  int64_t most = b.line;
  for (int32_t k = 1; k < s.operand_count; ++k) {
    const operand &o = s.operands[k];
    constant[k] = o.data != nullptr && o.what == role_input && is_staged(p, k) && is_constant(p, o);
    if (constant[k]) most = least_of(most, constant_columns);
  }
  tile t;
  t.scratch = nullptr;
  t.scratch_pitch = 0;
  for (int64_t row = 0; row < count;) {
    const int64_t rows = run_of_points(p, p.rows, b.row + first + row, count - row);
    char *start[max_operands]; /* where these rows of each operand begin */
    char *place[max_operands];
    for (int32_t k = 1; k < s.operand_count; ++k) {
      const operand &o = s.operands[k];
      if (o.data == nullptr) continue;
      start[k] = o.data + (p.operand_offset[k] + operand_offset(p, p.rows, b.row + first + row, o)) * itemsize(o.stored);
    }
    int64_t run = 0; /* columns before some operand jumps */
    for (int64_t column = 0, columns; column < b.column_count; column += columns, run -= columns) {
      const bool jumps = run == 0;
      if (jumps) run = run_of_points(p, p.columns, b.column + column, b.column_count - column);
      const int64_t line = column / b.line;
      columns = least_of(least_of(most, run), (line + 1) * b.line - column);
      t.rows = rows;
      t.columns = columns;
      t.data[0] = const_cast<char *>(sums) + (row * m.pitch + line * (b.line_pitch - b.line) + column) * item;
      t.step[0] = m.pitch;
      char *buffer = m.staged;
      for (int32_t k = 1; k < s.operand_count; ++k) {
        const operand &o = s.operands[k];
        t.data[k] = t.data[0]; /* for an absent input, which nothing uses: vector loads of no lanes are slow where there is no memory */
        t.step[k] = 0;
        if (o.data == nullptr) continue;
        if (jumps) place[k] = start[k] + operand_offset(p, p.columns, b.column + column, o) * itemsize(o.stored);
        t.data[k] = place[k];
        t.step[k] = p.rows.stride[k];
        if (is_staged(p, k)) {
          t.data[k] = buffer;
          t.step[k] = constant[k] ? most : columns;
          buffer += aligned_bytes(p.f->rows * p.most_columns * 8);
          const block part = {rows, t.step[k], p.rows.stride[k], constant[k] ? 0 : p.columns.stride[k]};
          if (o.what == role_input && !(constant[k] && column > 0)) load_block(*p.conversions, t.data[k], t.step[k], o.stored, place[k], part);
        }
      }
      p.function(t, p.arguments);
      for (int32_t k = 1; k < s.operand_count; ++k) {
        const operand &o = s.operands[k];
        if (o.data == nullptr) continue;
        if (o.what != role_input && is_staged(p, k)) {
          store_block(*p.conversions, place[k], o.stored, {rows, columns, p.rows.stride[k], p.columns.stride[k]}, t.data[k], columns);
        }
        place[k] += columns * p.columns.stride[k] * itemsize(o.stored);
      }
    }
    row += rows;
  }
}

}  // namespace opc
#endif  // OPC_CONTRACTION_FINISH_H
