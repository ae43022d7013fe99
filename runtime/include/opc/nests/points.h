/* Points of a loop nest and the elements its reads find there: for the files compiled once for each instruction-set variant. */
#ifndef OPC_NESTS_POINTS_H
#define OPC_NESTS_POINTS_H

#include "opc/rows/loops.h"
#include "opc/nests/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* An element of a row whose lanes lie apart, `along` elements from the one at `base`. As far as clang++ knows, the sum of both may wrap
 * round, and it then fetches lane by lane; of GCC, a maximum over such lanes takes half as long again from a pointer to the first. */
template <typename T>
OPC_INLINE T element(const T *data, int64_t base, int64_t along) {
#if defined(__clang__)
  return (data + base)[along];
#else
  return data[base + along];
#endif
}

/* A tensor of the nest. */
template <typename T>
struct view {
  T *data;
  const int64_t *shape;
  const int64_t *stride;
};

template <typename T>
OPC_INLINE view<T> view_of(const nest &n, int32_t operand) {
  const nest_operand &o = n.operands[operand];
  return {reinterpret_cast<T *>(o.data), o.shape, o.stride};
}

/* Sets `at` to the position of point number `point`. */
static inline void locate(const nest &n, int64_t point, int64_t *at) {
  for (int32_t a = n.rank - 1; a >= 0; --a) {
    at[a] = point % n.size[a];
    point /= n.size[a];
  }
}

/* Moves `at` to the next point. */
static inline void advance(const nest &n, int64_t *at) {
  for (int32_t a = n.rank - 1; a >= 0; --a) {
    if (++at[a] < n.size[a]) return;
    at[a] = 0;
  }
}

/* The offset of a position in an axis group of an operand, whose axes begin at `axis`. `own` are the operand's sizes: it may have fewer
 * axes than the position, missing on the left, and axes of size 1 are broadcast. */
template <typename T>
static inline int64_t group_offset(const view<T> &v, int32_t axis, const extents &own, const int64_t *at, int32_t rank) {
  int64_t offset = 0;
  for (int32_t i = 0; i < own.rank; ++i) {
    if (own.size[i] != 1) offset += at[rank - own.rank + i] * v.stride[axis + i];
  }
  return offset;
}

/* Which point of an axis group a position is, in row-major order. */
static inline int64_t group_index(const extents &group, const int64_t *at) {
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

  explicit group_points(const extents &all) : group(all), kept(nullptr), inside(true) {
    for (int32_t i = 0; i < group.rank; ++i) begin(i, 0);
  }
  group_points(const extents &all, const extents &own, const int64_t *outer) : group(all), kept(&own), inside(true) {
    for (int32_t i = 0; i < group.rank; ++i) begin(i, runs(i) ? 0 : outer[i - (group.rank - own.rank)]);
  }
  void begin(int32_t i, int64_t position) {
    at[i] = position;
    inside = inside && group.size[i] > 0;
  }
  bool runs(int32_t i) const {
    if (kept == nullptr) return true;
    const int32_t own = i - (group.rank - kept->rank);
    return own < 0 || kept->size[own] != group.size[i];
  }
  void next() {
    for (int32_t i = group.rank - 1; i >= 0; --i) {
      if (!runs(i)) continue;
      if (++at[i] < group.size[i]) return;
      at[i] = 0;
    }
    inside = false;
  }
};

/* Reports what went wrong, unless something else has been. */
__attribute__((cold, noinline)) static void report(const nest &n, const char *what, int32_t axis, int64_t value, int64_t size) {
  int32_t expected = 0;
  if (__atomic_compare_exchange_n(&n.fault->reported, &expected, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    n.fault->what = what;
    n.fault->axis = axis;
    n.fault->value = value;
    n.fault->size = size;
  }
}

OPC_INLINE bool outside(int64_t index, int64_t size) { return static_cast<uint64_t>(index) >= static_cast<uint64_t>(size); }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_POINTS_H
