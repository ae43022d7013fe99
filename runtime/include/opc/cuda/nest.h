/* One statement over the points of its target on a GPU, a thread a point, with reads at any index. */
#ifndef OPC_CUDA_NEST_H
#define OPC_CUDA_NEST_H

#include "opc/cuda/reduce.h"
#include "opc/nests/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Of the terms at a point: all are reduced; or a part of them, which is kept; or what was kept of all parts. */
enum part : int32_t { whole, one_part, all_parts };

/* A nest as kernels get it; `status` NULL: nobody asks what goes wrong. Teams of threads have a point, or one of its `parts`. */
template <int32_t Operands>
struct device_nest {
  int64_t points;
  int64_t work; /* for teams: points, or parts of them */
  int64_t parts;
  char *kept; /* for each part of each point 8 bytes */
  int64_t *status;
  int32_t team;
  part of;
  int32_t rank;
  int32_t start[max_axes];
  int64_t size[max_axes];
  nest_operand operands[Operands];
};

/* A tensor of the nest. */
template <typename T>
struct view {
  T *data;
  const int64_t *shape;
  const int64_t *stride;
};

template <typename T, typename Nest>
OPC_DEVICE view<T> view_of(const Nest &n, int32_t operand) {
  const nest_operand &o = n.operands[operand];
  return {reinterpret_cast<T *>(o.data), o.shape, o.stride};
}

/* Sets `at` to the position of point number `point`. */
template <typename Nest>
OPC_DEVICE void locate(const Nest &n, int64_t point, int64_t *at) {
  for (int32_t a = n.rank - 1; a >= 0; --a) {
    at[a] = point % n.size[a];
    point /= n.size[a];
  }
}

/* The same for a target of so many axes; where all its points have numbers of 32 bits, so do the divisions. */
template <int32_t Rank, typename Nest>
OPC_DEVICE void locate_in(const Nest &n, int64_t point, int64_t *at) {
  if (n.points <= INT32_MAX) {
    uint32_t rest = static_cast<uint32_t>(point);
    OPC_UNROLLED
    for (int32_t a = Rank - 1; a > 0; --a) {
      const uint32_t size = static_cast<uint32_t>(n.size[a]);
      at[a] = rest % size;
      rest /= size;
    }
    at[0] = rest;
  } else {
    OPC_UNROLLED
    for (int32_t a = Rank - 1; a > 0; --a) {
      at[a] = point % n.size[a];
      point /= n.size[a];
    }
    at[0] = point;
  }
}

/* The offset of a position in an axis group of an operand, whose axes begin at `axis`. `own` are the operand's sizes: it may have fewer
 * axes than the position, missing on the left, and axes of size 1 are broadcast. */
template <typename T>
OPC_DEVICE int64_t group_offset(const view<T> &v, int32_t axis, const extents &own, const int64_t *at, int32_t rank) {
  int64_t offset = 0;
  for (int32_t i = 0; i < own.rank; ++i) {
    if (own.size[i] != 1) offset += at[rank - own.rank + i] * v.stride[axis + i];
  }
  return offset;
}

/* Which point of an axis group a position is, in row-major order. */
OPC_DEVICE int64_t group_index(const extents &group, const int64_t *at) {
  int64_t place = 0;
  for (int32_t i = 0; i < group.rank; ++i) place = place * group.size[i] + at[i];
  return place;
}

/* The points of a group, or of those of its axes along which `kept` is broadcast, or of these every `step`th from number `first` on; `at`
 * is the position in the whole group. */
struct group_points {
  const extents &group;
  const extents *kept;
  bool inside;
  int64_t number, step, end;
  int64_t at[OPC_MAX_RANK];

  OPC_DEVICE_MEMBER explicit group_points(const extents &all, int64_t first = 0, int64_t step_ = 1)
      : group(all), kept(nullptr), number(first), step(step_) {
    start();
  }
  OPC_DEVICE_MEMBER group_points(const extents &all, const extents &own, const int64_t *outer, int64_t first = 0, int64_t step_ = 1)
      : group(all), kept(&own), number(first), step(step_) {
    for (int32_t i = 0; i < group.rank; ++i) {
      if (!runs(i)) at[i] = outer[i - (group.rank - own.rank)];
    }
    start();
  }
  OPC_DEVICE_MEMBER bool runs(int32_t i) const {
    if (kept == nullptr) return true;
    const int32_t own = i - (group.rank - kept->rank);
    return own < 0 || kept->size[own] != group.size[i];
  }
  OPC_DEVICE_MEMBER void start() {
    end = step == 0 ? 0 : 1;
    for (int32_t i = 0; i < group.rank; ++i) {
      if (runs(i) || group.size[i] == 0) end *= group.size[i];
    }
    find();
  }
  OPC_DEVICE_MEMBER void find() {
    inside = number < end;
    int64_t rest = number;
    for (int32_t i = group.rank - 1; inside && i >= 0; --i) {
      if (!runs(i)) continue;
      at[i] = rest % group.size[i];
      rest /= group.size[i];
    }
  }
  OPC_DEVICE_MEMBER void next() {
    number += step;
    if (step != 1) return find();
    for (int32_t i = group.rank - 1; i >= 0; --i) {
      if (!runs(i)) continue;
      if (++at[i] < group.size[i]) return;
      at[i] = 0;
    }
    inside = false;
  }
};

/* The point of a piece of work. */
template <typename Nest>
OPC_DEVICE int64_t point_of(const Nest &n, int64_t work) {
  return n.of == one_part ? work / n.parts : work;
}

/* The terms that a thread of a team takes: the first, the step to the next, and where they end. Where all parts are joined there are none
 * left. */
template <typename Nest>
OPC_DEVICE int64_t first_term(const Nest &n, int64_t work) {
  return n.of == one_part ? work % n.parts * n.team + thread_of_team(n) : thread_of_team(n);
}
template <typename Nest>
OPC_DEVICE int64_t term_step(const Nest &n) {
  return n.of == all_parts ? 0 : n.of == one_part ? n.parts * n.team : n.team;
}
template <typename Nest>
OPC_DEVICE int64_t terms_end(const Nest &n, int64_t end) {
  return n.of == all_parts ? 0 : end;
}

/* What the terms at a point come to, of which a thread has reduced its own. */
template <typename Joins, typename T, typename Nest>
OPC_DEVICE T join_terms(const Nest &n, int64_t work, T value) {
  if (n.of == all_parts) {
    for (int64_t p = thread_of_team(n); p < n.parts; p += n.team) {
      value = Joins::join(value, *reinterpret_cast<const T *>(n.kept + 8 * (work * n.parts + p)));
    }
  }
  value = team_reduce<Joins, T>(n, value);
  if (n.of == one_part && first_of_team(n)) *reinterpret_cast<T *>(n.kept + 8 * work) = value;
  return value;
}

/* Whether this thread writes what its team has computed. */
template <typename Nest>
OPC_DEVICE bool stores_point(const Nest &n) {
  return n.of != one_part && first_of_team(n);
}

/* Reports what went wrong, by its number among what the family's kernels report, unless something else has been. */
template <typename Nest>
OPC_DEVICE void report(const Nest &n, int64_t what, int64_t axis, int64_t value, int64_t size) {
  if (n.status == nullptr) return;
  typedef unsigned long long word;
  word *status = reinterpret_cast<word *>(n.status);
  if (atomicCAS(status, word(0), static_cast<word>(what)) != 0) return;
  n.status[1] = axis;
  n.status[2] = value;
  n.status[3] = size;
}

OPC_DEVICE bool outside(int64_t index, int64_t size) { return static_cast<uint64_t>(index) >= static_cast<uint64_t>(size); }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_NEST_H
