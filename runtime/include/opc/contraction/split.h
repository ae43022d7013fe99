/* Splits contractions whose factors step: along the groups of a convolution one factor stays while the other moves, and in the gradient
 * of a convolution with a stride only every so many points of the window meet an element. Each part is a contraction without steps. */
#ifndef OPC_CONTRACTION_SPLIT_H
#define OPC_CONTRACTION_SPLIT_H

#include "opc/contraction/plan.h"

namespace opc {

/* Calls f(factor) for each factor of a contraction until that is true. */
template <typename F>
static inline bool any_factor(const contraction &c, F f) {
  for (int32_t t = 0; t < c.terms; ++t) {
    for (const factor &each : c.term_list[t].factors) {
      if (f(each)) return true;
    }
  }
  return false;
}

/* Takes the guards away from indices that are inside everywhere. */
static void drop_guards(const contraction &c) {
  for (int32_t t = 0; t < c.terms; ++t) {
    for (factor &f : c.term_list[t].factors) {
      for (int32_t n = 0; n < f.entries; ++n) {
        axis_index &at = f.at[n];
        if (at.guarded == inside || at.divisor != 1) continue;
        int64_t least = at.offset;
        int64_t most = at.offset;
        for (int32_t i = 0; i < at.parts; ++i) {
          const part &of = at.part_list[i];
          const int64_t first = part_value(of, 0);
          const int64_t last = part_value(of, c.size[of.loop] > 0 ? c.size[of.loop] - 1 : 0);
          least += first < last ? first : last;
          most += first < last ? last : first;
        }
        if (least >= 0 && most < at.size) at.guarded = inside;
      }
    }
  }
}

/* Whether a factor moves with a loop, in steps of several points or plainly. */
static inline bool moves_with(const contraction_plan &p, const factor &f, int32_t loop, bool in_steps) {
  for (int32_t n = 0; n < f.entries; ++n) {
    for (int32_t i = 0; i < f.at[n].parts; ++i) {
      const part &of = f.at[n].part_list[i];
      if (of.loop == loop && (of.divisor != 1) == in_steps && moves(p, of)) return true;
    }
  }
  return false;
}

/* The first axis of the result along which a factor moves in steps while another one moves with it, or -1. */
static int32_t stepped_loop(const contraction_plan &p) {
  for (int32_t loop = 0; loop < p.c->s->rank; ++loop) {
    for (int32_t t = 0; t < p.c->terms && p.size[loop] > 1; ++t) {
      const factor *f = p.c->term_list[t].factors;
      for (int32_t i = 0; i < 2; ++i) {
        const factor &other = f[1 - i];
        if (moves_with(p, f[i], loop, true) && (moves_with(p, other, loop, true) || moves_with(p, other, loop, false))) return loop;
      }
    }
  }
  return -1;
}

/* The number of points of a loop from `begin` on, before `end`, in which no stepping part moves. */
static int64_t run_of_steps(const contraction_plan &p, int32_t loop, int64_t begin, int64_t end) {
  for (int64_t at = begin + 1; at < end; ++at) {
    const bool moved = any_factor(*p.c, [&](const factor &f) {
      for (int32_t n = 0; n < f.entries; ++n) {
        for (int32_t i = 0; i < f.at[n].parts; ++i) {
          const part &of = f.at[n].part_list[i];
          if (of.loop == loop && of.divisor != 1 && part_value(of, begin) != part_value(of, at)) return true;
        }
      }
      return false;
    });
    if (moved) return at - begin;
  }
  return end - begin;
}

static inline int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* An index that is divided, and the two parts of it that move: with an axis of the result and with a loop that is summed over. */
struct divided_index {
  const axis_index *at;
  int32_t outer, inner; /* loops */
  int64_t outer_scale, inner_scale;
  int64_t period; /* points of the outer loop after which the same points of the inner one count */
};

/* All divided indices of a contraction; `even` where each has such parts, and no two loops that are summed over are the same. */
struct divided_indices {
  bool even;
  int32_t count;
  divided_index list[2 * max_terms];
};

static bool find_parts(const contraction_plan &p, divided_index &d) {
  d.outer = d.inner = -1;
  for (int32_t i = 0; i < d.at->parts; ++i) {
    const part &of = d.at->part_list[i];
    if (!moves(p, of)) continue;
    const bool outside = of.loop < p.c->s->rank;
    int32_t &loop = outside ? d.outer : d.inner;
    if (!steps_evenly(of) || loop >= 0) return false;
    loop = of.loop;
    (outside ? d.outer_scale : d.inner_scale) = of.times * of.scale;
  }
  if (d.outer < 0 || d.inner < 0) return false;
  d.period = d.at->divisor / greatest_common_divisor(d.outer_scale, d.at->divisor);
  return true;
}

static void find_divided(const contraction_plan &p, divided_indices &found) {
  found.count = 0;
  found.even = !any_factor(*p.c, [&](const factor &f) {
    for (int32_t n = 0; n < f.entries; ++n) {
      if (f.at[n].guarded == inside || f.at[n].divisor == 1) continue;
      if (found.count == 2 * max_terms) return true;
      divided_index &d = found.list[found.count++];
      d.at = &f.at[n];
      if (!find_parts(p, d)) return true;
      for (int32_t i = 0; i + 1 < found.count; ++i) {
        const divided_index &other = found.list[i];
        if (other.inner == d.inner || (other.outer == d.outer && other.period != d.period)) return true;
      }
    }
    return false;
  });
}

/* How many points a period apart there are among so many, at least one, from the first on. The period may be any number. */
static inline int64_t points_apart(int64_t count, int64_t period) { return (count - 1) / period + 1; }

/* Takes the inner loops of divided indices to the points at which these are whole, now that the outer loops are where they are. */
static void keep_whole(contraction_plan &p, const divided_indices &all) {
  for (int32_t i = 0; i < all.count; ++i) {
    const divided_index &d = all.list[i];
    const int64_t size = p.c->size[d.inner];
    const int64_t period = d.at->divisor / greatest_common_divisor(d.inner_scale, d.at->divisor);
    p.begin[d.inner] = 0;
    const int64_t value = start_of(*d.at, p.begin);
    int64_t first = 0;
    while (first < period && first < size && (value + first * d.inner_scale) % d.at->divisor != 0) ++first;
    const bool some = first < period && first < size;
    p.begin[d.inner] = some ? first : 0;
    p.size[d.inner] = some ? points_apart(size - first, period) : 0;
    p.step[d.inner] = p.size[d.inner] > 1 ? period : 1;
  }
}

/* Calls f() for each part of a contraction in which the points of the outer loops of divided indices are a period apart, from the loops
 * of `all` from number `from` on; `f` returns a status. */
template <typename F>
static int32_t for_residues(contraction_plan &p, const divided_indices &all, int32_t from, F f) {
  bool seen = true;
  while (from < all.count && seen) {
    seen = false;
    for (int32_t i = 0; i < from; ++i) seen = seen || all.list[i].outer == all.list[from].outer;
    if (seen) ++from;
  }
  if (from == all.count) {
    keep_whole(p, all);
    return f();
  }
  const divided_index &d = all.list[from];
  const int64_t begin = p.begin[d.outer];
  const int64_t size = p.size[d.outer];
  int32_t code = OPC_OK;
  for (int64_t first = 0; first < d.period && first < size && code == OPC_OK; ++first) {
    p.begin[d.outer] = begin + first;
    p.size[d.outer] = points_apart(size - first, d.period);
    p.step[d.outer] = p.size[d.outer] > 1 ? d.period : 1;
    code = for_residues(p, all, from + 1, f);
  }
  p.begin[d.outer] = begin;
  p.step[d.outer] = 1;
  p.size[d.outer] = size;
  return code;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_SPLIT_H
