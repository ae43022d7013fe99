/* Runs an op that is one independent problem for each point of an axis group: a slice of every tensor at a time, on each thread. Where
 * the rows of a slice are independent, too, a few rows at a time. */
#ifndef OPC_CORE_SLICES_H
#define OPC_CORE_SLICES_H

#include "opc/core/call.h"

namespace opc {

#ifndef OPC_BLOCK_ELEMENTS
#define OPC_BLOCK_ELEMENTS (1 << 19)
#endif
#ifndef OPC_SLICE_ELEMENTS
#define OPC_SLICE_ELEMENTS (1 << 15)
#endif
#ifndef OPC_LEAST_ROWS
#define OPC_LEAST_ROWS 128
#endif

enum : int64_t {
  least_slices = 4,
  sliced_elements = 1 << 18,
  slice_elements = OPC_SLICE_ELEMENTS, /* of operands and temporaries, in a slice of several points */
  block_elements = OPC_BLOCK_ELEMENTS, /* of a temporary, in a block of rows */
  block_strip = 16,                    /* rows that a block is a multiple of */
  least_rows = OPC_LEAST_ROWS,         /* of a block, where leading axes have names */
  staircase = 8                        /* blocks of a slice, at least, where the first ones need fewer columns */
};
enum { most_sliced = 64, most_kept = 8, most_placed = 256 };

/* What a thread works in, from one slice or block to the next; nothing at first, which all bytes 0 are, too. */
struct slice_memory {
  temporary temporaries[most_sliced];
  kept_memory kept[most_kept];
  kept_memory addends; /* to what blocks add up */
};

/* The memory of the threads of a call. A host may run many short ranges of slices: what one has made is there for the next. */
struct slice_pool {
  enum { most = 64 };
  bool taken[most] = {};
  slice_memory *memory[most] = {};

  slice_pool() = default;
  slice_pool(const slice_pool &) = delete;
  slice_pool &operator=(const slice_pool &) = delete;
  ~slice_pool() {
    for (slice_memory *each : memory) release(each);
  }

  /* Returns what is free, with its place, or what nobody else has, with the place `most`; NULL where there is no memory. */
  slice_memory *take(int32_t &place) {
    place = 0;
    while (place < most && __atomic_exchange_n(&taken[place], true, __ATOMIC_ACQUIRE)) ++place;
    if (place == most) return make();
    if (memory[place] == nullptr) memory[place] = make();
    return memory[place];
  }

  void give_back(slice_memory *m, int32_t place) {
    if (place == most) return release(m);
    __atomic_store_n(&taken[place], false, __ATOMIC_RELEASE);
  }

  static slice_memory *make() { return static_cast<slice_memory *>(calloc(1, sizeof(slice_memory))); }
  static void release(slice_memory *m) {
    if (m != nullptr) m->~slice_memory();
    free(m);
  }
};

/* An axis of an operand, by their positions, of which a slice has one element. */
struct placed_axis {
  int32_t operand, axis;
};

/* What a slice has of the operands of an op whose leading axes have names: one element along each of the axes `placed`, where `place`
 * says for a point of the leading axes, given the sizes of the whole call. An axis stays, with one point. `row_axis` tells of each operand
 * the axis of which a block has some rows, -1 for none. */
struct slice_parts {
  const placed_axis *placed;
  int32_t placed_count;
  void (*place)(const void *call, const int64_t *at, int64_t *places);
  const void *call;
  const int32_t *row_axis;
};

/* An op to be sliced: its operands, inputs first, and for each of them the sizes of its leading axes that belong to the group, NULL for
 * none. `call` is the call of one slice. Where slices go in blocks of rows, `in_rows` says which operands have the axis of `rows` points
 * behind those of the group; a block has `block` of them, the last one what is left. With `parts` the group is that of the leading axes,
 * and these say what a slice has of each operand instead. Where a slice has several `points` along the last axis of the group, its call has
 * that axis and no other one of the group, and `rest` is the call of what is left at its end. */
struct slicing {
  const opc_context *context;
  const extents *group;
  const DLTensor *const *inputs;
  DLTensor *const *outputs;
  int32_t input_count, output_count;
  const extents *const *own;
  const void *call;
  const void *attributes;
  int32_t (*run)(const void *call, const row_block &rows, const DLTensor *const *inputs, DLTensor *const *outputs,
                 const void *attributes, const opc_context *context, temporary *memory);
  int32_t code;
  const bool *in_rows = nullptr;
  int64_t rows = 0;
  int64_t block = 0;
  slice_pool *pool = nullptr;
  const slice_parts *parts = nullptr;
  int64_t points = 1;
  const void *rest = nullptr;
};

/* How many points of the last axis of the group a slice has: as many as there is room for in a cache, so that what is done once for each
 * slice is little beside what is done for its points. A point's temporaries have `elements`. It depends on sizes alone, too. */
static int64_t points_of_slice(const slicing &s, int64_t elements) {
  if (s.group->rank == 0 || s.parts != nullptr || (s.in_rows != nullptr && s.block < s.rows)) return 1;
  for (int32_t k = 0; k < s.input_count + s.output_count; ++k) {
    const DLTensor *const t = k < s.input_count ? s.inputs[k] : s.outputs[k - s.input_count];
    if (t == nullptr) continue;
    int64_t own = 1;
    for (int32_t i = s.own[k] != nullptr ? s.own[k]->rank : 0; i < t->ndim; ++i) own *= t->shape[i];
    elements += own;
  }
  const int64_t last = s.group->size[s.group->rank - 1];
  if (elements > slice_elements / 2) return 1;
  const int64_t most = elements > 1 ? slice_elements / elements : slice_elements;
  return most < last ? most : last;
}

/* How many points the last one of the slices along that axis has. */
static inline int64_t points_of_rest(const slicing &s) {
  const int64_t left = s.group->rank > 0 ? s.group->size[s.group->rank - 1] % s.points : 0;
  return left > 0 ? left : s.points;
}

/* Leaves a group of a slice's call the last axis alone, with so many points where it is not broadcast, or no axis. */
static inline void keep_points(extents &group, int64_t points, int64_t count) {
  if (points > 1 && group.rank > 0) {
    group.size[0] = group.size[group.rank - 1] == 1 ? 1 : count;
    group.rank = 1;
  } else {
    group.rank = 0;
  }
}

/* How many rows of a slice go together, whose temporaries have `elements` each. It depends on sizes alone, so that the sums do, too. Where
 * the earlier of them need `fewer` columns, there are several blocks of a smaller slice, too. No block has less than `least` rows but the
 * last one. */
static inline int64_t block_of_rows(int64_t rows, int64_t elements, bool fewer = false, int64_t least = block_strip) {
  const int64_t most = !fewer ? block_elements : elements / staircase < block_elements ? elements / staircase : block_elements;
  if (elements <= (fewer ? block_elements / staircase : block_elements)) return rows;
  const int64_t each = elements / rows;
  const int64_t block = (most / each + block_strip - 1) / block_strip * block_strip;
  return block < least ? least : block;
}

static inline int64_t blocks_of_rows(int64_t rows, int64_t block) { return rows > 0 ? (rows + block - 1) / block : 0; }

static inline int64_t blocks_of_slice(const slicing &s) {
  return s.in_rows != nullptr || s.parts != nullptr ? blocks_of_rows(s.rows, s.block) : 1;
}

/* How many slices there are along the last axis of the group. */
static inline int64_t slices_along(const slicing &s) {
  return s.group->rank > 0 ? (s.group->size[s.group->rank - 1] + s.points - 1) / s.points : 1;
}

/* Whether slicing pays: there are enough slices, their temporaries, of `elements` each, don't fit a cache all together, and no result
 * is broadcast along the group. Where `own` is NULL none can be. */
static bool pays_to_slice(const extents &group, const extents *const *own, int32_t input_count, DLTensor *const *outputs,
                          int32_t output_count, int64_t elements, int64_t blocks = 1) {
  if (count(group) * blocks < least_slices || count(group) * elements < sliced_elements) return false;
  if (input_count + output_count > most_sliced) return false;
  for (int32_t k = input_count; k < input_count + output_count; ++k) {
    if (own == nullptr || outputs[k - input_count] == nullptr || group.rank == 0) continue;
    if (own[k] == nullptr || own[k]->rank != group.rank) return false;
    for (int32_t i = 0; i < group.rank; ++i) {
      if (own[k]->size[i] != group.size[i]) return false;
    }
  }
  return true;
}

/* Sets `slice` to a tensor at a position in the group, of which NULL stands for a tensor without it. With `rows` the axis behind the group
 * has these; with `points` that are not 0 the last axis of the group stays and has so many. `shape` is there for the sizes that the slice
 * has then. */
static void take_slice(DLTensor &slice, const DLTensor &whole, const extents *own, const int64_t *at, int32_t rank,
                       const row_block *rows, int64_t points, int64_t *shape) {
  slice = whole;
  const int32_t leading = own != nullptr ? own->rank : 0;
  int64_t offset = 0;
  int64_t contiguous = 1;
  for (int32_t i = whole.ndim - 1; i >= 0; --i) {
    const int64_t stride = whole.strides != nullptr ? whole.strides[i] : contiguous;
    if (i < leading && own->size[i] != 1) offset += at[rank - leading + i] * stride;
    if (i == leading && rows != nullptr) offset += rows->first * stride;
    contiguous *= whole.shape[i];
  }
  const int32_t left = points > 0 && leading > 0 ? leading - 1 : leading;
  slice.byte_offset += static_cast<uint64_t>(offset * itemsize(whole.dtype));
  slice.ndim -= left;
  slice.shape += left;
  if (slice.strides != nullptr) slice.strides += left;
  if (rows != nullptr || left < leading) {
    for (int32_t i = 0; i < slice.ndim; ++i) shape[i] = slice.shape[i];
    if (left == leading) {
      shape[0] = rows->count;
    } else if (shape[0] != 1) {
      shape[0] = points;
    }
    slice.shape = shape;
  }
}

/* Sets tensors to what a slice has of the whole ones at a point of the leading axes, NULL for those that are not there. */
static void take_parts(const slice_parts &p, const DLTensor *const *whole, int32_t operands, const int64_t *at, const row_block &rows,
                       DLTensor *tensors, int64_t (*shapes)[OPC_MAX_RANK], int64_t (*strides)[OPC_MAX_RANK]) {
  int64_t places[most_placed], offset[most_sliced] = {};
  p.place(p.call, at, places);
  for (int32_t k = 0; k < operands; ++k) {
    if (whole[k] == nullptr) continue;
    const DLTensor &t = tensors[k] = *whole[k];
    find_strides(t.ndim, t.shape, t.strides, strides[k]);
    for (int32_t i = 0; i < t.ndim; ++i) shapes[k][i] = t.shape[i];
    const int32_t axis = p.row_axis[k];
    if (axis >= 0) {
      shapes[k][axis] = rows.count;
      offset[k] = rows.first * strides[k][axis];
    }
  }
  for (int32_t n = 0; n < p.placed_count; ++n) {
    const placed_axis &placed = p.placed[n];
    if (whole[placed.operand] == nullptr) continue;
    if (shapes[placed.operand][placed.axis] > 0) shapes[placed.operand][placed.axis] = 1;
    offset[placed.operand] += places[n] * strides[placed.operand][placed.axis];
  }
  for (int32_t k = 0; k < operands; ++k) {
    if (whole[k] == nullptr) continue;
    tensors[k].byte_offset += static_cast<uint64_t>(offset[k] * itemsize(tensors[k].dtype));
    tensors[k].shape = shapes[k];
    tensors[k].strides = strides[k];
  }
}

/* The operands of one block of rows. */
struct slice_operands {
  DLTensor tensors[most_sliced];
  const DLTensor *inputs[most_sliced];
  DLTensor *outputs[most_sliced];
  int64_t shapes[most_sliced][OPC_MAX_RANK];
  int64_t strides[most_sliced][OPC_MAX_RANK];
};

/* Takes the operands of a block of rows, counted from the first one, of a slice; returns its rows. */
static row_block take_block(const slicing &s, int64_t slice, int64_t block, kept_memory *kept, slice_operands &taken) {
  const int64_t first = block * s.block;
  const row_block rows = {first, s.rows - first < s.block ? s.rows - first : s.block, kept};
  const int32_t operands = s.input_count + s.output_count;
  const DLTensor *whole[most_sliced];
  for (int32_t k = 0; k < operands; ++k) whole[k] = k < s.input_count ? s.inputs[k] : s.outputs[k - s.input_count];
  int64_t at[OPC_MAX_RANK], points = 0;
  for (int32_t i = s.group->rank - 1; i >= 0; --i) {
    const int64_t size = s.group->size[i], each = i == s.group->rank - 1 ? s.points : 1, slices = (size + each - 1) / each;
    at[i] = slice % slices * each;
    slice /= slices;
    if (each > 1) points = size - at[i] < each ? size - at[i] : each;
  }
  if (s.parts != nullptr) take_parts(*s.parts, whole, operands, at, rows, taken.tensors, taken.shapes, taken.strides);
  for (int32_t k = 0; k < operands; ++k) {
    DLTensor &t = taken.tensors[k];
    const row_block *own_rows = s.in_rows != nullptr && s.in_rows[k] && points == 0 ? &rows : nullptr;
    if (whole[k] != nullptr && s.parts == nullptr) {
      take_slice(t, *whole[k], s.own[k], at, s.group->rank, own_rows, points, taken.shapes[k]);
    }
    if (k < s.input_count) {
      taken.inputs[k] = whole[k] != nullptr ? &t : nullptr;
    } else {
      taken.outputs[k - s.input_count] = whole[k] != nullptr ? &t : nullptr;
    }
  }
  return rows;
}

/* Runs `body` on a part of a call, with the memory of a thread and a context in which nothing runs beside it. */
template <typename Body>
static void in_slice_memory(slicing &s, const Body &body) {
  opc_context alone = {};
  if (s.context != nullptr) alone = *s.context;
  alone.parallel_for = nullptr;
  int32_t place;
  slice_memory *const memory = s.pool->take(place);
  const int32_t code = memory != nullptr ? body(*memory, alone) : fail(&alone, OPC_OUT_OF_MEMORY, "no memory for slices");
  if (code != OPC_OK) __atomic_store_n(&s.code, code, __ATOMIC_RELAXED);
  s.pool->give_back(memory, place);
}

static void run_slice_range(void *argument, int64_t begin, int64_t end) {
  slicing &s = *static_cast<slicing *>(argument);
  in_slice_memory(s, [&](slice_memory &memory, opc_context &alone) {
    slice_operands taken;
    const int64_t blocks = blocks_of_slice(s);
    int32_t code = OPC_OK;
    for (int64_t unit = begin; unit < end && code == OPC_OK; ++unit) {
      /* The last rows first: where others need fewer columns, memory for these is there then. */
      const int64_t block = blocks - 1 - unit % blocks;
      const row_block rows = take_block(s, unit / blocks, block, blocks > 1 ? memory.kept : nullptr, taken);
      const bool is_rest = s.points > 1 && unit % slices_along(s) == slices_along(s) - 1;
      const void *const call = is_rest ? s.rest : s.call;
      code = s.run(call, rows, taken.inputs, taken.outputs, s.attributes, &alone, memory.temporaries);
    }
    return code;
  });
}

static int32_t run_slices(slicing &s) {
  slice_pool pool;
  s.pool = &pool;
  s.code = OPC_OK;
  const int64_t last = s.group->rank > 0 ? s.group->size[s.group->rank - 1] : 1;
  over_range(s.context, count(*s.group) / last * slices_along(s) * blocks_of_slice(s), 1, run_slice_range, &s);
  return s.code;
}

}  // namespace opc
#endif  // OPC_CORE_SLICES_H
