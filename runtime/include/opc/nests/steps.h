/* Recurrences whose points need nothing of one another: threads take points, and a few of them through all steps before the next
 * ones, so that what these carry along stays in the first caches. Each statement of a step is a nest over rows; all have the same
 * units of work.
 */
#ifndef OPC_NESTS_STEPS_H
#define OPC_NESTS_STEPS_H

#include "opc/core/call.h"
#include "opc/nests/rows.h"

namespace opc {

enum : int64_t {
  step_lanes = 4096, /* lanes that go through all steps together: two rows of them fit a first cache */
  short_piece = 256, /* lanes of a unit of work where longer ones would be few */
  many_units = 64
};

/* Adds a temporary's part of one step, which is one index of its axis `along`: that of the first; the nest's `scan_stride` is how far the
 * next one lies from it. Entry e has `axes[e]` of the other axes. */
static inline void add_step(row_nest &n, const temporary &t, dtype computed, int32_t entries, const int32_t *axes, int32_t along) {
  flat_operand &o = n.operands[n.operand_count++];
  o.data = static_cast<char *>(t.data);
  o.stored = computed;
  o.entries = entries;
  int64_t contiguous = 1;
  int32_t a = t.ndim;
  const auto pass_step = [&] {
    if (a - 1 != along) return;
    n.scan_stride = contiguous;
    contiguous *= t.shape[--a];
  };
  pass_step();
  for (int32_t e = entries - 1; e >= 0; --e) {
    o.size[e] = 1;
    o.stride[e] = contiguous;
    for (int32_t i = 0; i < axes[e]; ++i) {
      o.size[e] *= t.shape[--a];
      contiguous *= t.shape[a];
    }
    pass_step();
  }
}

/* The nests of a step, and how often it is taken. `Arguments` are what their functions get, of which one member is the index of the
 * present step. */
template <int32_t Stages, int32_t Operands, typename Arguments>
struct step_loop {
  row_nest nests[Stages];
  row_nest_function functions[Stages];
  nest_fault faults[Stages];
  flat_operand operands[Operands];
  nest_copies copies[Stages];
  const Arguments *arguments;
  int64_t Arguments::*step;
  int64_t extent;
  int64_t units;
  int64_t least;    /* units that one thread computes, if it computes the first of them */
  int64_t together; /* units that go through the steps together */
  int64_t work = 0; /* of one lane in one step */
  int32_t count = 0;
  int32_t used = 0;
  bool falls;

  /* Begins the next nest, with so many operands. */
  row_nest &next(const opc_context *context, const row_functions &rows, row_nest_function function, int32_t own, int64_t lane_work) {
    row_nest &n = nests[count];
    functions[count] = function;
    start(n, context, rows, operands + used, faults[count++]);
    used += own;
    work += lane_work > 0 ? lane_work : 1;
    return n;
  }

  static void run_range(void *argument, int64_t begin, int64_t end) {
    const step_loop &call = *static_cast<const step_loop *>(argument);
    Arguments own = *call.arguments;
    row_nest here[Stages];
    for (int32_t s = 0; s < Stages; ++s) here[s] = call.nests[s];
    const int64_t last = end * call.least < call.units ? end * call.least : call.units;
    for (int64_t first = begin * call.least; first < last; first += call.together) {
      const int64_t stop = first + call.together < last ? first + call.together : last;
      for (int64_t i = 0; i < call.extent; ++i) {
        own.*call.step = call.falls ? call.extent - 1 - i : i;
        for (int32_t s = 0; s < Stages; ++s) {
          here[s].target = call.nests[s].target + own.*call.step * call.nests[s].scan_stride * itemsize(here[s].stored);
          call.functions[s](here[s], &own, first, stop);
        }
      }
    }
  }

  /* Runs `of` steps at all points; the functions know which by the member `at` of their arguments. */
  int32_t run(const opc_context *context, const Arguments &given, int64_t Arguments::*at, int64_t of, bool down) {
    row_nest &n = nests[0];
    int64_t points = 1;
    for (int32_t a = 0; a < n.outer; ++a) points *= n.size[a];
    const bool few = points * n.pieces < many_units;
    least = 1;
    for (int32_t s = 0; s < Stages; ++s) {
      if (few) set_pieces(nests[s], short_piece);
      if (nests[s].together > least) least = nests[s].together;
    }
    arguments = &given;
    step = at;
    extent = of;
    falls = down;
    units = points * n.pieces;
    if (units <= 0) return OPC_OK;
    const int64_t lanes = n.piece * least, all = lanes * work * (extent > 0 ? extent : 1);
    together = lanes < step_lanes ? step_lanes / lanes * least : least;
    const int64_t grain = all > 0 && all < nest_grain ? nest_grain / all : 1;
    over_range(context, (units + least - 1) / least, grain, run_range, this);
    for (int32_t s = 0; s < Stages; ++s) {
      const int32_t code = outcome(context, faults[s]);
      if (code != OPC_OK) return code;
    }
    return OPC_OK;
  }
};

}  // namespace opc
#endif  // OPC_NESTS_STEPS_H
