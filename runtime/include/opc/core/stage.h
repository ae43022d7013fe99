/* A stage of a kernel: one parallel loop over points, described at run time by its axes and the strides of its operands.
 *
 * The entry function of an op describes the stage with the functions below; `run` in opc/rows/run.h then collapses the axes and calls a
 * generated tile function on blocks of rows. The structs hold no code, so that files compiled for different instruction sets
 * share them safely.
 */
#ifndef OPC_CORE_STAGE_H
#define OPC_CORE_STAGE_H

#include "opc/core/tensor.h"

namespace opc {

enum { max_axes = OPC_MAX_RANK + 8, max_operands = 40 };

enum role : int8_t {
  role_input,
  role_output,
  /* An output that sums, multiplies, ... over the axes along which its stride is 0. */
  role_sum,
  role_prod,
  role_max,
  role_min,
  role_any,
  role_all
};

/* Whether an operand varies along the row. */
enum : bool { once_a_row = false, in_rows = true };

/* One operand of a stage. The tile function sees a row of values of type `computed`, or, where `along_row` is false, one value a
 * row. `data` NULL is an absent operand. */
struct operand {
  char *data;
  dtype stored;
  dtype computed;
  role what;
  bool along_row;
  bool inner_invariant;     /* lacks the last loop of the stage */
  int64_t count;            /* elements of the tensor */
  int64_t stride[max_axes]; /* in elements, for each axis of the stage */
};

/* Axes [0, outer) are the outer points, axes [outer, rank) make a row. Without `whole_rows` all axes are the same to the stage and
 * rows may be cut anywhere. */
struct stage {
  const opc_context *context;
  operand *operands;
  int32_t operand_count;
  int32_t outer;
  int32_t rank;
  int32_t scratch_rows; /* row buffers the tile function needs */
  bool whole_rows;
  /* the tile function can take operands that lack the last loop once a row, or of whole rows once a segment along it */
  bool has_inner_invariant;
  bool nontemporal; /* the tile function can write its rows past the caches */
  int64_t size[max_axes];
};

/* What a tile function gets: `rows` rows of `columns` values of each operand, each row contiguous, `step` elements apart. */
struct tile {
  bool once; /* of inner-invariant operands there is one value a row */
  bool nontemporal; /* rows are written past the caches, and are not set to what sums begin with */
  int64_t segment; /* columns for which inner-invariant operands have one value each, 0 where they have one for each column */
  int64_t rows;
  int64_t columns;
  int64_t most_rows; /* that a tile of this call may have */
  void *data[max_operands];
  int64_t step[max_operands];
  char *scratch;
  int64_t scratch_pitch; /* bytes from one scratch row to the next */
};

/* What a stage needs of the instruction-set variant it runs in, beside its tile function. */
struct row_functions {
  void (*widen[dtype_count])(float *, const void *, int64_t); /* of the minifloats that operands are stored in */
  void (*narrow[dtype_count])(void *, const float *, int64_t, bool past); /* the caches, or into them */
  float (*sum_float)(const void *, int64_t);
  double (*sum_double)(const void *, int64_t);
  void (*sum_columns_float)(void *, const void *, int64_t pitch, int64_t rows, int64_t columns);
  void (*sum_columns_double)(void *, const void *, int64_t pitch, int64_t rows, int64_t columns);
  void (*max_float)(void *to, const void *from, int64_t count); /* element by element */
  void (*max_double)(void *to, const void *from, int64_t count);
  void (*min_float)(void *to, const void *from, int64_t count);
  void (*min_double)(void *to, const void *from, int64_t count);
  void (*fill)(void *, const void *value, int64_t size, int64_t count);
};

typedef void (*tile_function)(const tile &, const void *arguments);

#if defined(__CUDACC__)
#define OPC_ROW __host__ __device__ static inline
#else
#define OPC_ROW static inline
#endif

template <typename T>
OPC_ROW T *row(const tile &t, int operand, int64_t index) {
  return static_cast<T *>(t.data[operand]) + index * t.step[operand];
}

/* The longest rows that a pass asks memory for while it works on rows before: longer ones would drive each other out of the caches. */
enum : int64_t { columns_ahead = 16384 };

/* The row `rows` behind a row, or where there is none, or none that should be asked for, that row itself. */
template <typename T>
static inline T *row_ahead(const tile &t, int operand, int64_t index, int64_t rows) {
  return row<T>(t, operand, index + rows < t.rows && t.columns <= columns_ahead ? index + rows : index);
}

template <typename T>
static inline T *scratch_row(const tile &t, int index) {
  return reinterpret_cast<T *>(t.scratch + index * t.scratch_pitch);
}

/* A run of axes of a stage: one named axis, or a group. An axis of a tensor that is two of the stage has its points along `points`. */
struct axes {
  int32_t first;
  int32_t count;
  bool group;
  int32_t points = -1;
  int64_t size = 0; /* points in a part */
};

static inline void start(stage &s, const opc_context *context, operand *operands) {
  s.context = context;
  s.operands = operands;
  s.operand_count = 0;
  s.outer = 0;
  s.rank = 0;
  s.scratch_rows = 0;
  s.whole_rows = false;
  s.has_inner_invariant = false;
  s.nontemporal = false;
}

/* A sum may be over a range that ends before it begins: it is then over nothing. */
static inline axes add_axis(stage &s, int64_t size) {
  s.size[s.rank] = size < 0 ? 0 : size;
  return {s.rank++, 1, false};
}

static inline axes add_axes(stage &s, const extents &group) {
  const axes added = {s.rank, group.rank, true};
  for (int32_t i = 0; i < group.rank; ++i) s.size[s.rank++] = group.size[i];
  return added;
}

/* An axis of a tensor in parts: these along one axis of the stage, the points of a part along another. */
static inline axes split_axis(const stage &s, const axes &parts, const axes &points) {
  return {parts.first, 1, false, points.first, s.size[points.first]};
}

/* The axes added from here on make the rows, and rows are not cut. */
static inline void begin_row(stage &s, int32_t scratch_rows) {
  s.outer = s.rank;
  s.whole_rows = true;
  s.scratch_rows = scratch_rows;
}

static inline operand &add_operand(stage &s, role what, bool along_row, char *data, dtype stored, dtype computed) {
  operand &o = s.operands[s.operand_count++];
  o.data = data;
  o.stored = stored;
  o.computed = computed;
  o.what = what;
  o.along_row = along_row;
  o.inner_invariant = false;
  o.count = 0;
  for (int32_t a = 0; a < s.rank; ++a) o.stride[a] = 0;
  return o;
}

/* Marks the operands that lack the last loop of the stage. */
template <int32_t Count>
static inline void mark_inner_invariant(stage &s, const int32_t (&which)[Count]) {
  s.has_inner_invariant = true;
  for (int32_t k : which) s.operands[k].inner_invariant = true;
}

/* Has the tile function take operands of an element type that is one of `Types` as they are stored. */
template <dtype... Types>
static inline void convert_in_loops(stage &s, dtype element) {
  if (((element != Types) && ...)) return;
  for (int32_t k = 0; k < s.operand_count; ++k) {
    if (s.operands[k].stored == element) s.operands[k].computed = element;
  }
}

/* Gives an operand the strides of its tensor: along each axis of the stage the sum of those of the tensor's axes that lie on it, none
 * of which is 0, and two of which are a diagonal. A group that broadcasts may have fewer axes than the stage, which are then missing
 * on the left; an axis of size 1 is broadcast. `strides` NULL means contiguous. */
static inline void place(operand &o, int32_t ndim, const int64_t *shape, const int64_t *strides, const axes *places, int32_t count) {
  int32_t missing = -ndim;
  for (int32_t p = 0; p < count; ++p) missing += places[p].count;
  int64_t contiguous = 1;
  int32_t axis = ndim - 1;
  for (int32_t p = count - 1; p >= 0; --p) {
    const int32_t present = places[p].count - (places[p].group ? missing : 0);
    for (int32_t i = 1; i <= present; ++i, --axis) {
      const int64_t stride = shape[axis] == 1 ? 0 : strides != nullptr ? strides[axis] : contiguous;
      const bool split = places[p].points >= 0;
      o.stride[places[p].first + places[p].count - i] += split ? stride * places[p].size : stride;
      if (split) o.stride[places[p].points] += stride;
      contiguous *= shape[axis];
    }
  }
  o.count = contiguous;
}

/* Adds a tensor of the call, NULL when it is absent or not wanted. */
template <typename... Axes>
static inline void add_tensor(stage &s, role what, bool along_row, const DLTensor *t, Axes... places) {
  const axes list[] = {places..., axes{}};
  if (t == nullptr) {
    add_operand(s, what, along_row, nullptr, dtype_float64, dtype_float64); /* as large as any: its values are dropped */
  } else {
    const dtype stored = dtype_of(*t);
    operand &o = add_operand(s, what, along_row, data_of(*t), stored, compute_dtype(stored));
    place(o, t->ndim, t->shape, t->strides, list, static_cast<int32_t>(sizeof...(places)));
  }
}

}  // namespace opc
#endif  // OPC_CORE_STAGE_H
