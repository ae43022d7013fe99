/* Nests whose work is cut otherwise than by the points of their target: scatters add to indices that terms name, and scans run along an
 * axis. minifloats are summed in float32 and rounded once.
 */
#ifndef OPC_NESTS_SCATTER_H
#define OPC_NESTS_SCATTER_H

#include <stdlib.h>
#include <string.h>

#include "opc/core/workspace.h"
#include "opc/nests/rows.h"

namespace opc {

/* A scatter into a target: `outer` and `indices` list entries of the target, those that no term names and those that terms do; the
 * vector axis is entry `vector_axis`, or -1 for none. `terms` are added to each element along the vector axis and at each outer point.
 * The work is split along the vector axis, or else by ranges of indices, `most_parts` of them: each looks at all terms, most of which
 * are for others. */
static inline void set_scatter(row_nest &n, const flat_operand &o, int32_t entries, int32_t outer_count, const int32_t *outer,
                               int32_t index_count, const int32_t *indices, int32_t vector_axis, int64_t terms,
                               int64_t most_parts) {
  set_outer(n, o, entries, outer_count, outer);
  int64_t points = 1;
  for (int32_t a = 0; a < outer_count; ++a) points *= n.size[a];
  for (int32_t a = 0; a < index_count; ++a) {
    n.scatter_size[a] = o.size[indices[a]];
    n.scatter_stride[a] = o.stride[indices[a]];
  }
  n.starts_parts = vector_axis < 0;
  for (int32_t a = 0; a < index_count; ++a) n.starts_parts = n.starts_parts && indices[a] == outer_count + a;
  if (n.starts_parts) {
    /* An axis of one element has any stride; what is zeroed is counted by it. */
    n.scatter_stride[0] = 1;
    for (int32_t a = 1; a < index_count; ++a) n.scatter_stride[0] *= n.scatter_size[a];
  }
  n.columns = vector_axis < 0 ? 1 : o.size[vector_axis];
  n.stride[outer_count] = 1;
  int64_t piece = n.columns;
  n.parts = 1;
  const int64_t few = 8;
  if (points < few && terms * n.columns > nest_grain) {
    const int64_t shortest = 128;
    if (n.columns >= 2 * shortest) {
      piece = n.columns / few > shortest ? (n.columns + few - 1) / few : shortest;
    } else {
      n.parts = n.scatter_size[0] < most_parts ? n.scatter_size[0] : most_parts;
    }
  }
  n.shared = false;
  set_pieces(n, piece);
}

/* Cuts the terms of a scatter instead of its indices, for which each unit would look at all terms: along the longest of the `axes` of
 * the sum, of these sizes. Rows of indices are not shared: many atomic additions cost more than looking at each index again. */
static inline void share_terms(row_nest &n, int32_t axes, const int64_t *size) {
  if (n.parts <= 1 || n.columns > 1 || n.context == nullptr || n.context->parallel_for == nullptr) return;
  const int64_t most = 64; /* more threads than these would wait for each other */
  int64_t terms = 1;
  n.term_axis = 0;
  for (int32_t a = 0; a < axes; ++a) {
    terms *= size[a];
    if (size[a] > size[n.term_axis]) n.term_axis = a;
  }
  int64_t parts = terms / nest_grain;
  parts = parts < most ? parts : int64_t(most);
  parts = parts < size[n.term_axis] ? parts : size[n.term_axis];
  if (parts <= 1) return;
  n.parts = parts;
  n.shared = true;
  n.starts_parts = false;
}

struct bytes_call {
  const row_nest *n;
  char *to;
  const float *from;
};

static void zero_range(void *argument, int64_t begin, int64_t end) {
  memset(static_cast<bytes_call *>(argument)->to + begin, 0, static_cast<size_t>(end - begin));
}

static void narrow_range(void *argument, int64_t begin, int64_t end) {
  const bytes_call &c = *static_cast<const bytes_call *>(argument);
  c.n->rows->narrow[c.n->stored](c.to + begin * itemsize(c.n->stored), c.from + begin, end - begin, false);
}

static void over_bytes(const row_nest &n, opc_range_body body, bytes_call &call, int64_t count) {
  over_range(n.context, count, 1 << 18, body, &call);
}

/* A scan into a target: `outer` lists its entries that are neither the one it runs along nor the vector axis, which is -1 for none. */
static inline void set_scan(row_nest &n, const flat_operand &o, int32_t entries, int32_t outer_count, const int32_t *outer,
                            int32_t along, int32_t vector_axis) {
  set_outer(n, o, entries, outer_count, outer);
  n.scan_size = o.size[along];
  n.scan_stride = o.stride[along];
  n.columns = vector_axis < 0 ? 1 : o.size[vector_axis];
  n.column_stride = vector_axis < 0 ? 1 : o.stride[vector_axis];
  n.stride[outer_count] = n.column_stride;
  /* Rows that are a power of two apart share a set of the cache: few of them at a time. */
  set_pieces(n, vector_axis > along ? 256 : int64_t(few_columns));
}

/* Orders of rows into a target: `outer` lists its entries that are neither the places of an order nor the vector axis; these are entries
 * `along` and `vector_axis`, or -1 for none. */
static inline void set_order(row_nest &n, const flat_operand &o, int32_t entries, int32_t outer_count, const int32_t *outer,
                             int32_t along, int32_t vector_axis) {
  set_outer(n, o, entries, outer_count, outer);
  n.scan_size = along < 0 ? 1 : o.size[along];
  n.scan_stride = along < 0 ? 0 : o.stride[along];
  n.columns = vector_axis < 0 ? 1 : o.size[vector_axis];
  n.column_stride = vector_axis < 0 ? 1 : o.stride[vector_axis];
  n.stride[outer_count] = n.column_stride;
  set_pieces(n, 16); /* a line of the cache */
}

/* Makes a nest write to a copy of the target in which minifloats are wide; `elements` is set to their number. */
static int32_t widen_target(row_nest &n, nest_copies &copies, int64_t &elements) {
  const flat_operand &o = n.operands[n.operand_count - 1];
  elements = 1;
  for (int32_t e = 0; e < n.entries; ++e) elements *= o.size[e];
  if (!is_minifloat(n.stored)) return OPC_OK;
  n.stored = dtype_float32;
  n.target = static_cast<char *>(take_memory(4 * elements));
  if (n.target == nullptr) return fail(n.context, OPC_OUT_OF_MEMORY, "no memory for results in float32");
  copies.data[copies.count++] = n.target;
  return OPC_OK;
}

/* Rounds the results in the copy that `widen_target` made, if it did. */
static void narrow_target(const row_nest &n, int64_t elements) {
  const flat_operand &o = n.operands[n.operand_count - 1];
  if (!is_minifloat(o.stored)) return;
  row_nest to = n;
  to.stored = o.stored;
  bytes_call call = {&to, o.data, reinterpret_cast<const float *>(n.target)};
  over_bytes(n, narrow_range, call, elements);
}

static inline int64_t count_units(const row_nest &n) {
  int64_t units = n.pieces * n.parts;
  for (int32_t a = 0; a < n.outer; ++a) units *= n.size[a];
  return units;
}

/* Zeroes the target, unless its units start their parts, and runs a scatter into it; minifloats are summed in a copy and rounded once. */
static int32_t run_scatter(row_nest &n, nest_copies &copies, row_nest_function function, const void *arguments) {
  int64_t elements;
  const int32_t code = widen_target(n, copies, elements);
  if (code != OPC_OK) return code;
  bytes_call call = {&n, n.target, nullptr};
  if (!n.starts_parts) over_bytes(n, zero_range, call, elements * itemsize(n.stored));
  split_row_nest(n, function, arguments, count_units(n), 1);
  narrow_target(n, elements);
  return outcome(n.context, *n.fault);
}

/* Runs a scan. */
static int32_t run_scan(row_nest &n, nest_copies &copies, row_nest_function function, const void *arguments) {
  int64_t elements;
  const int32_t code = widen_target(n, copies, elements);
  if (code != OPC_OK) return code;
  const int64_t work = n.piece * n.scan_size;
  split_row_nest(n, function, arguments, count_units(n), work > 0 && work < nest_grain ? nest_grain / work : 1);
  narrow_target(n, elements);
  return outcome(n.context, *n.fault);
}

/* Orders rows of so many elements. */
static int32_t run_order(row_nest &n, row_nest_function function, const void *arguments, int64_t elements) {
  const int64_t work = n.piece * elements * 8;
  split_row_nest(n, function, arguments, count_units(n), work > 0 && work < nest_grain ? nest_grain / work : 1);
  return outcome(n.context, *n.fault);
}

}  // namespace opc
#endif  // OPC_NESTS_SCATTER_H
