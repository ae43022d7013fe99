/* A loop nest over rows: one statement whose outer loops are split over the host's threads and whose innermost one, the vector axis, is
 * vectorised. Groups of axes are single loops here. The structs hold no code that depends on the instruction set.
 */
#ifndef OPC_NESTS_ROWS_H
#define OPC_NESTS_ROWS_H

#include <stdlib.h>

#include "opc/core/caches.h"
#include "opc/core/workspace.h"
#include "opc/nests/nest.h"
#include "opc/rows/rows.h"

namespace opc {

enum : int64_t {
  nest_columns = 1024, /* lanes of one unit of work at most: what row accumulators hold */
  gather_columns = 256, /* lanes of one unit of work whose indices are found first: their rows stay in the first cache */
  gather_row = gather_columns + 16, /* what holds a row of these: rows that lie a power of two apart share a set of the cache */
  nest_grain = 32768, /* steps worth a thread */
  far_bytes = 1 << 22, /* operands that are more are not kept close to a processor */
  far_results = 1 << 14, /* fewer are made of little of the operands */
  /* bytes of the shortest rows that are stored past the caches: of shorter ones too much are ends of lines */
  min_nontemporal_bytes = 1024,
  few_columns = 4, /* lanes that lie across memory */
  copy_rows = 32
};

/* A tensor, its axes merged into one entry for each index of the statement. */
struct flat_operand {
  char *data; /* NULL: absent */
  dtype stored;
  int32_t entries;
  int64_t size[max_axes];
  int64_t stride[max_axes]; /* in elements */
};

/* Outer loops [0, outer), then the vector axis if there is one; `size` holds them all, `stride` the target's. A unit of work is a piece
 * of the vector axis at one point of the outer loops. The last `inner` of these run over all their points for one piece after the
 * other. */
struct row_nest {
  const opc_context *context;
  const row_functions *rows;
  flat_operand *operands;
  nest_fault *fault;
  int32_t operand_count;
  int32_t outer;
  int32_t inner;
  int32_t entries; /* of the target */
  bool nontemporal; /* rows that are copied or zeroed are stored past the caches */
  bool far;     /* what its results are made of may lie in memory */
  bool alone;   /* the group that the target ends in has one point: the index before it is the vector axis */
  int64_t size[max_axes];
  int64_t stride[max_axes];
  int64_t columns;
  int64_t piece;
  int64_t pieces;
  int64_t together; /* units that one thread computes, if it computes the first of them */
  /* Of a scatter: the indices that terms name, and how many ranges the first of them is cut into. */
  int64_t parts;
  bool starts_parts; /* a unit starts its places itself: those that lie together, while they are on their way into its cache */
  bool shared; /* the parts are ranges of terms instead, along axis `term_axis` of the sum: threads add to the same indices */
  int32_t term_axis;
  int64_t scatter_size[max_axes];
  int64_t scatter_stride[max_axes];
  /* Of a scan: the target's strides along the index it runs along, and along the vector axis. */
  int64_t scan_size;
  int64_t scan_stride;
  int64_t column_stride;
  void *sums; /* of the results of each unit of work, where these are added up */
  char *target;
  dtype stored;
};

typedef void (*row_nest_function)(const row_nest &, const void *arguments, int64_t begin, int64_t end);

/* Memory of operands that had to be copied. */
struct nest_copies {
  void *data[max_operands];
  int32_t count = 0;
  nest_copies() = default;
  nest_copies(const nest_copies &) = delete;
  nest_copies &operator=(const nest_copies &) = delete;
  ~nest_copies() {
    while (count > 0) give_memory(data[--count]);
  }
};

/* How an operand reaches the loops: where it lies, or, where its minifloats are to be read many times, widened first. */
enum class passed : int8_t { widened, stored };

struct copy_call {
  const row_functions *rows;
  const char *from;
  char *to;
  dtype stored;
  dtype computed;
  int32_t ndim;
  const int64_t *shape;
  const int64_t *stride;
};

/* Copies blocks [begin, end) of rows: the last axis are columns, the one before it rows. */
static void copy_range(void *argument, int64_t begin, int64_t end) {
  const copy_call &c = *static_cast<const copy_call *>(argument);
  const int64_t columns = c.ndim > 0 ? c.shape[c.ndim - 1] : 1;
  const int64_t rows = c.ndim > 1 ? c.shape[c.ndim - 2] : 1;
  const int64_t blocks = (rows + copy_rows - 1) / copy_rows;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit % blocks * copy_rows;
    int64_t point = unit / blocks;
    int64_t offset = c.ndim > 1 ? row * c.stride[c.ndim - 2] : 0;
    for (int32_t a = c.ndim - 3; a >= 0; --a) {
      offset += point % c.shape[a] * c.stride[a];
      point /= c.shape[a];
    }
    const block b = {rows - row < copy_rows ? rows - row : int64_t(copy_rows), columns, c.ndim > 1 ? c.stride[c.ndim - 2] : 0,
                     c.ndim > 0 ? c.stride[c.ndim - 1] : 1};
    char *to = c.to + (unit / blocks * rows + row) * columns * itemsize(c.computed);
    const char *from = c.from + offset * itemsize(c.stored);
    if (c.computed == c.stored) {
      copy_in(to, columns, from, b, itemsize(c.stored));
    } else {
      load_block(*c.rows, to, columns, c.stored, from, b);
    }
  }
}

/* Returns a contiguous copy, NULL when there is no memory. */
static void *contiguous_copy(const row_nest &n, const DLTensor &t, const int64_t *stride, dtype computed) {
  int64_t count = 1;
  for (int32_t a = 0; a < t.ndim; ++a) count *= t.shape[a];
  void *memory = take_memory(count * itemsize(computed));
  if (memory == nullptr || count == 0) return memory;
  copy_call call = {n.rows, data_of(t), static_cast<char *>(memory), dtype_of(t), computed, t.ndim, t.shape, stride};
  const int64_t columns = t.ndim > 0 ? t.shape[t.ndim - 1] : 1;
  const int64_t rows = t.ndim > 1 ? t.shape[t.ndim - 2] : 1;
  const int64_t units = count / (rows * columns) * ((rows + copy_rows - 1) / copy_rows);
  const int64_t grain = nest_grain / (columns * (rows < copy_rows ? rows : int64_t(copy_rows))) + 1;
  over_range(n.context, units, grain, copy_range, &call);
  return memory;
}

static inline void start(row_nest &n, const opc_context *context, const row_functions &rows, flat_operand *operands,
                         nest_fault &fault) {
  n.context = context;
  n.rows = &rows;
  n.operands = operands;
  n.fault = &fault;
  n.operand_count = 0;
  n.outer = 0;
  n.inner = 0;
  n.nontemporal = false;
  n.far = false;
  n.alone = false;
  n.columns = 1;
  n.parts = 1;
  n.together = 1;
  n.shared = false;
  n.sums = nullptr;
  fault.reported = 0;
}

/* Adds a tensor whose axes make `entries` entries, entry e of `axes[e]` axes in a row. The axes of an entry must lie as one, and entry
 * `unit` with a stride of 1; otherwise the loops get a copy. */
static int32_t add_flat(row_nest &n, nest_copies &copies, const DLTensor *t, passed how, int32_t entries, const int32_t *axes,
                        int32_t unit) {
  flat_operand &o = n.operands[n.operand_count++];
  o.data = nullptr;
  o.entries = entries;
  if (t == nullptr) {
    for (int32_t e = 0; e < entries; ++e) o.size[e] = o.stride[e] = 0;
    return OPC_OK;
  }
  int64_t strides[max_axes];
  find_strides(t->ndim, t->shape, t->strides, strides);
  o.stored = dtype_of(*t);
  const dtype computed = how == passed::widened ? compute_dtype(o.stored) : o.stored;
  bool usable = computed == o.stored;
  for (int32_t e = 0, a = 0; e < entries; a += axes[e], ++e) {
    o.size[e] = 1;
    o.stride[e] = 1;
    for (int32_t i = a + axes[e] - 1; i >= a; --i) {
      if (t->shape[i] == 1) continue;
      if (o.size[e] == 1) o.stride[e] = strides[i];
      usable = usable && strides[i] == o.stride[e] * o.size[e];
      o.size[e] *= t->shape[i];
    }
    usable = usable && (e != unit || o.size[e] == 1 || o.stride[e] == 1);
  }
  o.data = data_of(*t);
  if (usable) return OPC_OK;
  void *memory = contiguous_copy(n, *t, strides, computed);
  if (memory == nullptr) return fail(n.context, OPC_OUT_OF_MEMORY, "no memory for a contiguous copy of an operand");
  if (copies.count == max_operands) {
    give_memory(memory);
    return fail(n.context, OPC_OUT_OF_MEMORY, "too many operands to copy");
  }
  copies.data[copies.count++] = memory;
  o.data = static_cast<char *>(memory);
  o.stored = computed;
  int64_t contiguous = 1;
  for (int32_t e = entries - 1; e >= 0; --e) {
    o.stride[e] = contiguous;
    contiguous *= o.size[e];
  }
  return OPC_OK;
}

/* Cuts the vector axis into pieces of so many lanes, or fewer where it is shorter. */
static inline void set_pieces(row_nest &n, int64_t lanes) {
  n.piece = n.columns < lanes ? n.columns : lanes;
  n.pieces = n.piece == 0 ? 0 : (n.columns + n.piece - 1) / n.piece;
}

/* Sets where results go, and the outer loops, which are entries `outer` of the target. */
static inline void set_outer(row_nest &n, const flat_operand &o, int32_t entries, int32_t outer_count, const int32_t *outer) {
  n.target = o.data;
  n.stored = o.stored;
  n.entries = entries;
  n.outer = outer_count;
  for (int32_t a = 0; a < outer_count; ++a) {
    n.size[a] = o.size[outer[a]];
    n.stride[a] = o.stride[outer[a]];
  }
}

/* The target: contiguous, its sizes the loops of the nest. The vector axis is entry `vector_axis`, or -1 for none. */
static inline void set_target(row_nest &n, const flat_operand &o, int32_t entries, int32_t vector_axis) {
  n.target = o.data;
  n.stored = o.stored;
  for (int32_t e = 0; e < entries; ++e) {
    n.size[e] = o.size[e];
    n.stride[e] = o.stride[e];
  }
  n.outer = vector_axis < 0 ? entries : vector_axis;
  n.columns = vector_axis < 0 ? 1 : o.size[vector_axis];
  set_pieces(n, nest_columns);
  n.entries = entries;
}

/* The target of a nest whose lanes find indices: `outer` lists the entries of the outer loops, the inner ones of these last; the vector
 * axis is entry `vector_axis`. */
static inline void set_gather_target(row_nest &n, const flat_operand &o, int32_t entries, int32_t outer_count, const int32_t *outer,
                                     int32_t inner, int32_t vector_axis) {
  set_outer(n, o, entries, outer_count, outer);
  n.inner = inner;
  n.columns = o.size[vector_axis];
  n.stride[outer_count] = o.stride[vector_axis];
  set_pieces(n, gather_columns);
}

struct row_nest_call {
  const row_nest *n;
  row_nest_function function;
  const void *arguments;
  int64_t units;
};

static void run_row_nest_range(void *argument, int64_t begin, int64_t end) {
  const row_nest_call &call = *static_cast<const row_nest_call *>(argument);
  const int64_t together = call.n->together;
  call.function(*call.n, call.arguments, begin * together, end * together < call.units ? end * together : call.units);
  if (call.n->nontemporal) fence_nontemporal();
}

static void split_row_nest(const row_nest &n, row_nest_function function, const void *arguments, int64_t units, int64_t grain) {
  row_nest_call call = {&n, function, arguments, units};
  if (units <= 0) return;
  const int64_t together = n.together;
  over_range(n.context, (units + together - 1) / together, (grain + together - 1) / together, run_row_nest_range, &call);
}

/* Leaves the planes of channels, which entry `channel` of the target tells apart, to one thread: as many as a vector has lanes, or half
 * of that where there are few. Some are not worth it where rows are long, from three of the widest vectors on. */
static inline void keep_channels(row_nest &n, int32_t channel, bool short_rows = false) {
  const int64_t many = 8, long_row = 48;
  if (short_rows && n.columns >= long_row) return;
  int64_t channels = 1, units = 1;
  for (int32_t a = 0; a <= channel; ++a) channels *= n.size[a];
  for (int32_t a = channel + 1; a < n.outer; ++a) units *= n.size[a];
  n.together = (channels >= 16 * many ? 16 : 8) * (units > 0 ? units : 1);
}

/* Decides whether a nest stores rows that it copies or zeroes past the caches: as a stage does (opc/rows/nontemporal.h), in a call
 * whose tensors are more than the caches hold. But a nest may read little of a large tensor: where its results take up little of the
 * caches, they stay there. Rows that are computed are not worth a detour by a buffer, which costs more than to fetch their lines. */
static inline void plan_nontemporal(row_nest &n) {
  int64_t moved = 0, results = 0;
  for (int32_t k = 0; k < n.operand_count; ++k) {
    const flat_operand &o = n.operands[k];
    results = o.data != nullptr ? itemsize(o.stored) : 0;
    for (int32_t e = 0; e < o.entries; ++e) results *= o.stride[e] != 0 ? o.size[e] : 1;
    moved += results;
    if (k < n.operand_count - 1 && o.data == n.target) return;
  }
  n.far = moved - results >= far_bytes && results >= far_results;
  const int64_t cache = cache_bytes();
  const bool much = cache > 0 && moved >= cache && results > 0 && results >= cache / 4;
  n.nontemporal = much && n.columns * itemsize(n.stored) >= min_nontemporal_bytes;
}

/* Runs a nest; `steps` is the work of one lane. */
static int32_t run(row_nest &n, row_nest_function function, const void *arguments, int64_t steps) {
  plan_nontemporal(n);
  int64_t units = n.pieces;
  for (int32_t a = 0; a < n.outer; ++a) units *= n.size[a];
  const int64_t work = (steps > 0 ? steps : 1) * n.piece;
  split_row_nest(n, function, arguments, units, work > 0 && work < nest_grain ? nest_grain / work : 1);
  return outcome(n.context, *n.fault);
}

}  // namespace opc
#endif  // OPC_NESTS_ROWS_H
