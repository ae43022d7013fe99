/* Tables of where the elements of a factor lie at the points of rows, columns and what is summed over. */
#ifndef OPC_CONTRACTION_TABLES_H
#define OPC_CONTRACTION_TABLES_H

#include "opc/contraction/plan.h"

namespace opc {

/* Element offsets of points, and their parts of the guards' indices. */
struct contraction_table {
  int64_t *offset;
  int64_t *guard[max_guards];
};

/* Whether the elements of a factor without guards lie evenly apart along the points of a list of loops: then `step` is how far. */
static bool lie_evenly(const contraction_plan &p, const factor &f, const loop_list &list, int64_t *step) {
  int64_t points = 1;
  *step = 0;
  for (int32_t n = list.count - 1; n >= 0; --n) {
    const int32_t loop = list.loop[n];
    if (p.size[loop] < 2) continue;
    int64_t moved = 0;
    for (int32_t e = 0; e < f.entries; ++e) {
      int64_t by;
      if (!is_even(p, f.at[e], loop, &by)) return false;
      moved += by * f.at[e].stride;
    }
    if (points == 1) *step = moved;
    if (moved != *step * points) return false;
    points *= p.size[loop];
  }
  return true;
}

/* Fills a table with points [first, first + count) of a list of loops, as a factor sees them: relative to the beginnings of the loops. */
static void fill_table(const contraction_plan &p, const contraction_factor &factor, const loop_list &list, int64_t first,
                       int64_t count, contraction_table &table) {
  bool moving[max_contraction_loops] = {};
  int64_t index[max_contraction_loops];
  for (int32_t n = 0; n < list.count; ++n) moving[list.loop[n]] = true;
  const int32_t last = list.count > 0 ? list.loop[list.count - 1] : -1;
  for (int64_t done = 0; done < count;) {
    locate(p, list, first + done, index);
    int64_t run = last >= 0 ? p.size[last] - (index[last] - p.begin[last]) / p.step[last] : 1;
    if (run > count - done) run = count - done;
    int32_t guards = 0;
    bool offsets = false; /* whether there are any yet */
    for (int32_t n = 0; n < factor.f->entries; ++n) {
      const axis_index &at = factor.f->at[n];
      const int32_t g = guards;
      int64_t *to = (at.guarded != inside ? table.guard[guards++] : table.offset) + done;
      const int64_t scale = at.guarded != inside ? 1 : at.stride;
      /* Where all indices are multiples of the divisor, they are divided here, not for each element. */
      const int64_t divisor = at.guarded != inside ? at.divisor / factor.divisor[g] : 1;
      const bool add = at.guarded == inside && offsets;
      offsets = offsets || at.guarded == inside;
      int64_t step = 0;
      int64_t value = distance(p, at, moving, index) / divisor * scale;
      if (last < 0 || is_even(p, at, last, &step)) {
        /* No products, which vectors of 64 bits are slow at. */
        step = step / divisor * scale;
        if (!add) {
          for (int64_t i = 0; i < run; ++i, value += step) to[i] = value;
        } else if (value != 0 || step != 0) {
          for (int64_t i = 0; i < run; ++i, value += step) to[i] += value;
        }
      } else {
        for (int64_t i = 0; i < run && !add; ++i) to[i] = 0;
        const int64_t start = index[last];
        for (int64_t i = 0; i < run; ++i, index[last] += p.step[last]) to[i] += distance(p, at, moving, index) * scale;
        index[last] = start;
      }
    }
    for (int64_t i = 0; i < run && !offsets; ++i) table.offset[done + i] = 0;
    done += run;
  }
}

/* Whether elements, or words of so many, lie one after the other. */
static inline bool follow(const int64_t *offsets, int64_t count, int64_t elements = 1) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i * elements) return false;
  }
  return true;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_TABLES_H
