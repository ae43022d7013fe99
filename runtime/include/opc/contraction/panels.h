/* The panels of columns that a step over a block multiplies with each strip of rows, and what is fetched from memory meanwhile. */
#ifndef OPC_CONTRACTION_PANELS_H
#define OPC_CONTRACTION_PANELS_H

#include "opc/contraction/finish.h"

namespace opc {

/* How the columns of a block are multiplied: packed, or where they lie, which pays for few rows. */
enum column_way { columns_packed, columns_in_padded_input, columns_in_panels };

/* The operand that the sums end up in. */
static inline int32_t result_of(const contraction_plan &p) { return p.c->s->operand_count - 1; }

/* Lists the panels of a step over a block, which is multiplied in that way; returns how many there are. */
static int64_t list_panels(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, const contraction_step &at,
                           column_way way) {
  const operand &result = p.c->s->operands[result_of(p)];
  const contraction_factor &right = p.term[at.term].factors[1];
  const int64_t item = itemsize(p.computed);
  const int64_t lanes = p.f->lanes;
  const bool in_padded_input = way == columns_in_padded_input;
  const bool apart = in_padded_input && !p.padded_input.joined;
  const int64_t lines = apart ? b.column_count / b.line : 1;
  const int64_t columns = apart ? b.line : position(b, b.column_count - 1) + 1;
  int64_t count = 0;
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t c = 0; c < columns;) {
      column_panel &to = m.list[count++];
      const int64_t left = blocks_of(columns - c, lanes);
      to.vectors = in_padded_input && left == strip_vectors + 1 ? 2 : least_of(left, p.panel_vectors);
      to.at = line * b.line_pitch + c;
      to.offsets = p.panel_offset[to.vectors - 1];
      if (in_padded_input) {
        to.from = m.padded_input + (line * m.layout->line_pitch + c) * item;
        to.offsets = m.padded_offset;
      } else if (way == columns_in_panels) {
        to.from = right.data + m.columns.offset[c] * item;
        to.offsets = m.inner[1].offset;
      } else {
        to.from = m.panels + c * at.depth * p.f->packed;
      }
      const int64_t column = to.at / b.line_pitch * b.line + least_of(to.at % b.line_pitch, b.line - 1);
      const int64_t offset = p.operand_offset[result_of(p)] + operand_offset(p, p.columns, b.column + column, result);
      to.result = result.data == nullptr ? nullptr : result.data + offset * itemsize(result.stored);
      c += to.vectors * lanes;
    }
  }
  return count;
}

/* Lines of memory to be fetched into a cache, some at a time: `count` of `bytes` each, `pitch` apart. */
struct fetched_lines {
  const char *from;
  int64_t count, bytes, pitch;
  int64_t at;    /* in the present line */
  int64_t share; /* cache lines at a time */
};

static inline void fetch_share(fetched_lines &f) {
  for (int64_t n = 0; n < f.share && f.count > 0; ++n) {
    __builtin_prefetch(f.from + f.at, 0, 2);
    f.at += cache_line;
    if (f.at < f.bytes) continue;
    f.at = 0;
    f.from += f.pitch;
    --f.count;
  }
}

/* How far a table's points lie apart; 0 unless it is the same everywhere. */
static inline int64_t pitch_of(const int64_t *offset, int64_t count) {
  const int64_t pitch = count > 1 ? offset[1] - offset[0] : 1;
  for (int64_t i = 2; i < count; ++i) {
    if (offset[i] - offset[i - 1] != pitch) return 0;
  }
  return pitch;
}

/* Finds what the columns of the next step are packed from, which is fetched while this one is multiplied `times` times. It is only
 * guessed where columns jump: what is fetched in vain does no harm. */
static fetched_lines next_columns(const contraction_plan &p, const contraction_memory &m, const contraction_block &b, int64_t step,
                                  const contraction_step &at, int64_t times) {
  fetched_lines f = {nullptr, 0, 0, 0, 0, 0};
  const contraction_factor &right = p.term[at.term].factors[1];
  if (p.terms > 1 || right.guards > 0) return f;
  const int64_t inner = pitch_of(m.inner[1].offset, at.depth);
  const int64_t columns = pitch_of(m.columns.offset, b.column_count);
  if (inner == 0 || columns == 0 || (inner != 1 && columns != 1)) return f;
  const int64_t item = itemsize(right.f->stored);
  int64_t offset = m.inner[1].offset[0] + m.columns.offset[0];
  if (step + 1 < b.end_step) {
    offset += inner * at.depth;
  } else {
    if (b.row + b.row_count < p.rows.points || b.column + b.column_count >= p.columns.points) return f;
    offset += inner * (step_of(p, b.first_step).inner - at.inner) + columns * b.column_count;
  }
  f.from = right.data + offset * item;
  f.count = columns == 1 ? at.depth : b.column_count;
  f.bytes = (columns == 1 ? b.column_count : at.depth) * item;
  f.pitch = (columns == 1 ? inner : columns) * item;
  f.share = blocks_of(f.count * blocks_of(f.bytes, cache_line), times);
  return f;
}

/* Where a strip of rows of the result lies: its first row is `offset` bytes behind row 0, and they are `pitch` apart. */
struct strip_position {
  int64_t rows, offset, pitch;
};

static strip_position position_of_strip(const contraction_plan &p, int64_t row, int64_t rows) {
  const operand &result = p.c->s->operands[result_of(p)];
  const int64_t item = itemsize(result.stored);
  if (result.data == nullptr) return {0, 0, 0};
  return {run_of_points(p, p.rows, row, rows), operand_offset(p, p.rows, row, result) * item, p.rows.stride[result_of(p)] * item};
}

/* Fetches the lines that a panel's sums are kept in between steps: there are more of them than a cache holds. */
static inline void fetch_sums(const contraction_plan &p, const contraction_memory &m, const column_panel &panel, const char *sums,
                              int64_t rows) {
  const int64_t item = itemsize(p.computed);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t n = 0; n < panel.vectors * p.f->lanes * item; n += cache_line) __builtin_prefetch(sums + i * m.pitch * item + n, 1);
  }
}

/* Fetches the lines that the results of a panel will be written to, while its sums are added up. */
static inline void fetch_results(const contraction_plan &p, const column_panel &panel, const strip_position &s) {
  const int64_t bytes = panel.vectors * p.f->lanes * itemsize(p.c->s->operands[result_of(p)].stored);
  for (int64_t i = 0; i < s.rows; ++i) {
    const char *row = panel.result + s.offset + i * s.pitch;
    for (int64_t n = 0; n < bytes; n += cache_line) __builtin_prefetch(row + n, 1);
  }
}

}  // namespace opc
#endif  // OPC_CONTRACTION_PANELS_H
