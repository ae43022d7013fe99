/* Runs an op in blocks of rows, of which each gives addends of results that are sums over rows: the gradient by the keys of attention, to
 * which all queries add. */
#ifndef OPC_ROWS_SUMMED_SLICES_H
#define OPC_ROWS_SUMMED_SLICES_H

#include "opc/core/aligned.h"
#include "opc/core/slices.h"
#include "opc/core/workspace.h"
#include "opc/rows/rows.h"

namespace opc {

enum : int64_t { summed_ranges = 16, /* of blocks, at least, so that threads have work where there are few sums */ summed_alignment = 64 };
enum { most_summed = 8 };

/* An output that is added up, its axis of the columns that blocks can do without, -1 for none, the type of its sums, and the leading axes,
 * a bit each, that it lacks, so that slices at all their points add to it. Before the axis of columns a slice has axes of one element
 * alone. */
struct summed_output {
  int32_t output, axis;
  dtype computed;
  uint32_t absent;
};

/* So many slices as `members`, one after the other, are a unit, that adds to elements of its own. The blocks of a unit are cut into `parts`,
 * each with sums of its own, which are added up in order at the end: how they are depends on sizes alone. */
struct summing {
  slicing *s;
  const summed_output *outputs;
  int32_t count;
  const row_functions *rows;
  int64_t members, units, parts, steps;
  int64_t elements[most_summed]; /* 0 where nobody wants the output */
  int64_t columns[most_summed];  /* of so many elements each a block may compute the first ones alone; 0 where it computes all */
  int64_t offset[most_summed];
  int64_t bytes;
  char *sums;
};

/* Adds the sums of an output, so many elements, to others. */
static void add_output(const summing &a, int32_t n, char *to, const char *from, int64_t elements) {
  const auto add = a.outputs[n].computed == dtype_float64 ? a.rows->sum_columns_double : a.rows->sum_columns_float;
  add(to + a.offset[n], from + a.offset[n], elements, 1, elements);
}

/* Adds the sums of a block, which has computed so many columns, or all where that is -1, to those of others. */
static void add_sums(const summing &a, char *to, const char *from, int64_t columns) {
  for (int32_t n = 0; n < a.count; ++n) {
    add_output(a, n, to, from, columns < 0 || a.columns[n] == 0 ? a.elements[n] : columns * a.columns[n]);
  }
}

/* Sets what the first block of a range, which has computed so many columns, has left out to 0. */
static void fill_sums(const summing &a, char *sums, int64_t columns) {
  for (int32_t n = 0; n < a.count; ++n) {
    if (columns < 0 || a.columns[n] == 0) continue;
    const int64_t item = itemsize(a.outputs[n].computed);
    memset(sums + a.offset[n] + columns * a.columns[n] * item, 0, static_cast<size_t>((a.elements[n] - columns * a.columns[n]) * item));
  }
}

static void run_summed_range(void *argument, int64_t begin, int64_t end) {
  summing &a = *static_cast<summing *>(argument);
  slicing &s = *a.s;
  in_slice_memory(s, [&](slice_memory &memory, opc_context &alone) {
    if (memory.addends.data == nullptr) memory.addends.data = take_memory(a.bytes);
    char *const addend = static_cast<char *>(memory.addends.data);
    if (addend == nullptr) return fail(&alone, OPC_OUT_OF_MEMORY, "no memory for sums of blocks");
    slice_operands taken;
    const int64_t blocks = blocks_of_slice(s);
    int32_t code = OPC_OK;
    for (int64_t range = begin; range < end && code == OPC_OK; ++range) {
      const int64_t part = range % a.parts;
      const int64_t first = a.steps * part / a.parts, last = a.steps * (part + 1) / a.parts;
      char *const sums = a.sums + range * a.bytes;
      for (int64_t step = first; step < last && code == OPC_OK; ++step) {
        const int64_t slice = range / a.parts * a.members + step / blocks;
        row_block rows = take_block(s, slice, blocks - 1 - step % blocks, blocks > 1 ? memory.kept : nullptr, taken);
        int64_t columns = -1;
        rows.columns = &columns;
        char *const to = step == first ? sums : addend;
        for (int32_t n = 0; n < a.count; ++n) {
          const int32_t k = s.input_count + a.outputs[n].output;
          DLTensor &t = taken.tensors[k];
          if (a.elements[n] == 0) continue;
          t.data = to + a.offset[n];
          t.byte_offset = 0;
          t.dtype = dlpack_of(a.outputs[n].computed);
          find_strides(t.ndim, t.shape, nullptr, taken.strides[k]);
        }
        code = s.run(s.call, rows, taken.inputs, taken.outputs, s.attributes, &alone, memory.temporaries);
        if (step == first) {
          fill_sums(a, sums, columns);
        } else {
          add_sums(a, sums, addend, columns);
        }
      }
    }
    return code;
  });
}

/* Stores sums as the elements of a tensor. */
static void store_sums(const row_functions &rows, const DLTensor &t, const char *sums, dtype computed) {
  const dtype stored = dtype_of(t);
  const int64_t columns = t.ndim > 0 ? t.shape[t.ndim - 1] : 1, stride = t.ndim > 0 ? t.strides[t.ndim - 1] : 1;
  int64_t index[OPC_MAX_RANK] = {}, offset = 0;
  for (int32_t axis = 0; axis >= 0; sums += columns * itemsize(computed)) {
    store_block(rows, data_of(t) + offset * itemsize(stored), stored, {1, columns, 0, stride}, sums, columns);
    for (axis = t.ndim - 2; axis >= 0; --axis) {
      offset += t.strides[axis];
      if (++index[axis] < t.shape[axis]) break;
      offset -= t.strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
}

static void store_summed_range(void *argument, int64_t begin, int64_t end) {
  const summing &a = *static_cast<const summing *>(argument);
  slice_operands taken;
  for (int64_t unit = begin; unit < end; ++unit) {
    char *const sums = a.sums + unit * a.parts * a.bytes;
    for (int64_t part = 1; part < a.parts; ++part) add_sums(a, sums, sums + part * a.bytes, -1);
    take_block(*a.s, unit * a.members, 0, nullptr, taken);
    for (int32_t n = 0; n < a.count; ++n) {
      const DLTensor &t = taken.tensors[a.s->input_count + a.outputs[n].output];
      if (a.elements[n] > 0 && a.outputs[n].absent == 0) store_sums(*a.rows, t, sums + a.offset[n], a.outputs[n].computed);
    }
  }
}

/* The same of outputs that lack leading axes, once the parts of all units are added up: the unit at the first point of these axes adds up
 * those at the others, in order. */
static void store_shared_range(void *argument, int64_t begin, int64_t end) {
  const summing &a = *static_cast<const summing *>(argument);
  const extents &group = *a.s->group;
  slice_operands taken;
  for (int64_t unit = begin; unit < end; ++unit) {
    char *const sums = a.sums + unit * a.parts * a.bytes;
    for (int32_t n = 0; n < a.count; ++n) {
      if (a.elements[n] == 0 || a.outputs[n].absent == 0) continue;
      int64_t sizes[OPC_MAX_RANK], steps[OPC_MAX_RANK];
      int64_t step = 1, others = 1;
      bool first = true;
      for (int32_t i = group.rank - 1; i >= 0; --i) {
        const int64_t size = i == group.rank - 1 ? group.size[i] / a.members : group.size[i];
        const bool absent = (a.outputs[n].absent >> i & 1u) != 0;
        first = first && (!absent || unit / step % size == 0);
        sizes[i] = absent ? size : 1;
        steps[i] = step;
        others *= sizes[i];
        step *= size;
      }
      if (!first) continue;
      for (int64_t other = 1; other < others; ++other) {
        int64_t from = 0, rest = other;
        for (int32_t i = group.rank - 1; i >= 0; --i) {
          from += rest % sizes[i] * steps[i];
          rest /= sizes[i];
        }
        add_output(a, n, sums, sums + from * a.parts * a.bytes, a.elements[n]);
      }
      take_block(*a.s, unit * a.members, 0, nullptr, taken);
      const DLTensor &t = taken.tensors[a.s->input_count + a.outputs[n].output];
      store_sums(*a.rows, t, sums + a.offset[n], a.outputs[n].computed);
    }
  }
}

static int32_t run_summed(slicing &s, const summed_output *outputs, int32_t summed, int64_t members, const row_functions &rows) {
  slice_pool pool;
  s.pool = &pool;
  s.code = OPC_OK;
  summing a = {&s, outputs, summed, &rows, members, count(*s.group) / members, 1, members * blocks_of_slice(s), {}, {}, {}, 0, nullptr};
  slice_operands taken;
  take_block(s, 0, 0, nullptr, taken);
  for (int32_t n = 0; n < summed; ++n) {
    const DLTensor *const t = taken.outputs[outputs[n].output];
    a.elements[n] = t != nullptr ? 1 : 0;
    a.columns[n] = t == nullptr || outputs[n].axis < 0 ? 0 : 1;
    for (int32_t i = 0; t != nullptr && i < t->ndim; ++i) {
      a.elements[n] *= t->shape[i];
      if (i > outputs[n].axis) a.columns[n] *= t->shape[i];
    }
    a.offset[n] = a.bytes;
    a.bytes += round_up(a.elements[n] * itemsize(outputs[n].computed) + 1, summed_alignment);
  }
  if (a.units < summed_ranges) a.parts = (summed_ranges + a.units - 1) / a.units;
  if (a.parts > a.steps) a.parts = a.steps;
  a.sums = static_cast<char *>(take_memory(a.units * a.parts * a.bytes));
  if (a.sums == nullptr) return fail(s.context, OPC_OUT_OF_MEMORY, "no memory for sums of blocks");
  over_range(s.context, a.units * a.parts, 1, run_summed_range, &a);
  bool shared = false;
  for (int32_t n = 0; n < summed; ++n) shared = shared || (outputs[n].absent != 0 && a.elements[n] > 0);
  if (s.code == OPC_OK) over_range(s.context, a.units, 1, store_summed_range, &a);
  if (s.code == OPC_OK && shared) over_range(s.context, a.units, 1, store_shared_range, &a);
  give_memory(a.sums);
  return s.code;
}

}  // namespace opc
#endif  // OPC_ROWS_SUMMED_SLICES_H
