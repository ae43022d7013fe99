/* One statement over the points of its target on a GPU, a thread a point, with reads at any index. */
#ifndef OPC_CUDA_NEST_H
#define OPC_CUDA_NEST_H

#include "opc/cuda/memory.h"
#include "opc/nests/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A nest as kernels get it; `status` NULL: nobody asks what goes wrong. */
template <int32_t Operands>
struct device_nest {
  int64_t points;
  int64_t *status;
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
    OPC_UNROLL
    for (int32_t a = Rank - 1; a > 0; --a) {
      const uint32_t size = static_cast<uint32_t>(n.size[a]);
      at[a] = rest % size;
      rest /= size;
    }
    at[0] = rest;
  } else {
    OPC_UNROLL
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

/* The points of a group, or of those of its axes along which `kept` is broadcast; `at` is the position in the whole group. */
struct group_points {
  const extents &group;
  const extents *kept;
  bool inside;
  int64_t at[OPC_MAX_RANK];

  OPC_DEVICE_MEMBER explicit group_points(const extents &all) : group(all), kept(nullptr), inside(true) {
    for (int32_t i = 0; i < group.rank; ++i) begin(i, 0);
  }
  OPC_DEVICE_MEMBER group_points(const extents &all, const extents &own, const int64_t *outer) : group(all), kept(&own), inside(true) {
    for (int32_t i = 0; i < group.rank; ++i) begin(i, runs(i) ? 0 : outer[i - (group.rank - own.rank)]);
  }
  OPC_DEVICE_MEMBER void begin(int32_t i, int64_t position) {
    at[i] = position;
    inside = inside && group.size[i] > 0;
  }
  OPC_DEVICE_MEMBER bool runs(int32_t i) const {
    if (kept == nullptr) return true;
    const int32_t own = i - (group.rank - kept->rank);
    return own < 0 || kept->size[own] != group.size[i];
  }
  OPC_DEVICE_MEMBER void next() {
    for (int32_t i = group.rank - 1; i >= 0; --i) {
      if (!runs(i)) continue;
      if (++at[i] < group.size[i]) return;
      at[i] = 0;
    }
    inside = false;
  }
};

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
