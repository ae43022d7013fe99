/* What the tensors of a call bind: dimensions, axis groups, axes that attributes list, and types. */
#ifndef OPC_CORE_DIMS_H
#define OPC_CORE_DIMS_H

#include <stdio.h>

#include "opc/core/integer.h"
#include "opc/core/tensor.h"

namespace opc {
#if defined(OPC_ON_GPU)
inline namespace on_gpu {
#endif

/* An axis group and the operand that bound it; rank -1 until then. */
struct group : extents {
  const char *origin = "";
  group() { rank = -1; }
};

/* The axes that an attribute lists, as bits, among `rank`; -1 until an operand has told how many there are. */
struct listed_axes {
  uint64_t bits = 0;
  int32_t rank = -1;
  int32_t count = 0; /* of axes in an order of their own: those that attributes place, or a permutation */
  int8_t placed[OPC_MAX_RANK];
  bool has(int32_t axis) const { return (bits >> axis & 1) != 0; }
};

/* A type variable and the operand or attribute that bound it. */
struct type {
  dtype element = dtype_unknown;
  const char *origin = "";
};

static inline integer size(const group &axes) {
  integer product = 1;
  for (int32_t i = 0; i < axes.rank; ++i) product = product * axes.size[i];
  return product;
}

/* A dimension or group that only absent operands have is empty, and a type that only they have is the type of zeros only. */
static inline void settle(dim &unbound) {
  if (unbound.size < 0) unbound.size = 0;
}
static inline void settle(group &unbound) {
  if (unbound.rank < 0) unbound.rank = 0;
}

static inline void settle(type &unbound, dtype any) {
  if (unbound.element == dtype_unknown) unbound.element = any;
}

/* Sizes as messages write them, `[2, 3]`, cut where the room ends. */
struct shape_text {
  char text[256];

  shape_text(const int64_t *sizes, int64_t rank) {
    size_t at = 0;
    text[at++] = '[';
    for (int64_t i = 0; i < rank && at + 32 < sizeof text; ++i) {
      const char *separator = i > 0 ? ", " : "";
      at += static_cast<size_t>(snprintf(text + at, sizeof text - at, "%s%lld", separator, static_cast<long long>(sizes[i])));
    }
    text[at] = ']';
    text[at + 1] = '\0';
  }
};

#if defined(OPC_ON_GPU)
}  // namespace on_gpu
#endif
}  // namespace opc
#endif  // OPC_CORE_DIMS_H
