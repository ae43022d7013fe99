/* A loop nest: one statement over the points of its target, with reads at any index. The general form, for windows, shifts, gathers and
 * diagonals; what runs over rows uses opc/core/stage.h. The structs hold no code that depends on the instruction set. */
#ifndef OPC_NESTS_NEST_H
#define OPC_NESTS_NEST_H

#include "opc/core/minifloat.h"
#include "opc/core/stage.h"

namespace opc {

struct nest_operand {
  char *data; /* NULL: absent */
  int32_t ndim;
  int16_t dense;  /* on a device: its elements lie in row-major order with nothing between them, and so its strides say */
  int16_t stored; /* on a device: the dtype of its elements, of a tensor of the call */
  int64_t shape[OPC_MAX_RANK];
  int64_t stride[OPC_MAX_RANK]; /* in elements */
};

/* What went wrong at some point of the nest; the first to be reported stays. */
struct nest_fault {
  int32_t reported;
  const char *what;
  int32_t axis; /* of the operand `what`, or -1 where a reduction over nothing is meant, -2 where there is no memory */
  int64_t value;
  int64_t size;
};

/* The code of a nest that has run, and a message where something went wrong. */
[[maybe_unused]] static int32_t outcome(const opc_context *context, const nest_fault &f) {
  if (f.reported == 0) return OPC_OK;
  if (f.axis == -2) return fail(context, OPC_OUT_OF_MEMORY, "no memory to order rows");
  if (f.axis < 0) return fail(context, OPC_INVALID_ARGUMENT, "%s of nothing", f.what);
  return fail(context, OPC_OUT_OF_RANGE, "an index of %s is %lld, outside axis %d of size %lld", f.what, static_cast<long long>(f.value),
              static_cast<int>(f.axis), static_cast<long long>(f.size));
}

/* `start` is the first axis of each entry of the target's indices. */
struct nest {
  const opc_context *context;
  nest_operand *operands;
  nest_fault *fault;
  int32_t operand_count;
  int32_t rank;
  int32_t entries;
  int32_t start[max_axes];
  int64_t size[max_axes];
};

typedef void (*nest_function)(const nest &, const void *arguments, int64_t begin, int64_t end);

static inline void start(nest &n, const opc_context *context, nest_operand *operands, nest_fault &fault) {
  n.context = context;
  n.operands = operands;
  n.fault = &fault;
  n.operand_count = 0;
  n.rank = 0;
  n.entries = 0;
  fault.reported = 0;
}

/* Adds an axis. A size below zero is of no points: the product of two of them would be of some. */
static inline void add_entry(nest &n, int64_t size) {
  n.start[n.entries++] = n.rank;
  n.size[n.rank++] = size > 0 ? size : 0;
}

static inline void add_entry(nest &n, const extents &group) {
  n.start[n.entries++] = n.rank;
  for (int32_t i = 0; i < group.rank; ++i) n.size[n.rank++] = group.size[i];
}

static inline void add_strided(nest &n, char *data, int32_t ndim, const int64_t *shape, const int64_t *strides) {
  nest_operand &o = n.operands[n.operand_count++];
  o.data = data;
  o.ndim = ndim;
  for (int32_t a = 0; a < ndim; ++a) o.shape[a] = shape[a];
  find_strides(ndim, shape, strides, o.stride);
}

/* Adds a tensor of the call, NULL when it is absent. */
static inline void add_tensor(nest &n, const DLTensor *t) {
  if (t == nullptr) {
    add_strided(n, nullptr, 0, nullptr, nullptr);
  } else {
    add_strided(n, data_of(*t), t->ndim, t->shape, t->strides);
  }
}

struct nest_call {
  const nest *n;
  nest_function function;
  const void *arguments;
};

static void run_nest_range(void *argument, int64_t begin, int64_t end) {
  const nest_call &call = *static_cast<const nest_call *>(argument);
  call.function(*call.n, call.arguments, begin, end);
}

/* Runs a nest over all points of its target, `grain` of them at least at a time. */
[[maybe_unused]] static int32_t run(const nest &n, nest_function function, const void *arguments, int64_t grain) {
  int64_t points = 1;
  for (int32_t a = 0; a < n.rank; ++a) points *= n.size[a];
  nest_call call = {&n, function, arguments};
  if (points == 0) return OPC_OK;
  over_range(n.context, points, grain, run_nest_range, &call);
  return outcome(n.context, *n.fault);
}

}  // namespace opc
#endif  // OPC_NESTS_NEST_H
