/* Tensors whose axes stand where attributes say, with the axes in the order of their declaration. */
#ifndef OPC_CORE_ARRANGED_H
#define OPC_CORE_ARRANGED_H

#include "opc/core/dims.h"

namespace opc {
#if defined(OPC_ON_GPU)
inline namespace on_gpu {
#endif

/* A tensor whose axes stand in the order of its declaration: the same elements, by other strides. */
struct arranged {
  DLTensor tensor;
  int64_t shape[OPC_MAX_RANK];
  int64_t strides[OPC_MAX_RANK];
};

/* Returns a tensor with the axes that are not listed before those that are, or behind them; NULL of an absent one. */
static inline DLTensor *arrange(arranged &by, const DLTensor *t, const listed_axes &axes, bool listed_first) {
  if (t == nullptr) return nullptr;
  int64_t strides[OPC_MAX_RANK];
  find_strides(t->ndim, t->shape, t->strides, strides);
  by.tensor = *t;
  by.tensor.shape = by.shape;
  by.tensor.strides = by.strides;
  int32_t at = 0;
  for (int32_t turn = 0; turn < 2; ++turn) {
    const bool listed = (turn == 0) == listed_first;
    for (int32_t n = 0; n < (listed && axes.count > 0 ? axes.count : t->ndim); ++n) {
      const int32_t a = listed && axes.count > 0 ? axes.placed[n] : n;
      if (axes.has(a) != listed) continue;
      by.shape[at] = t->shape[a];
      by.strides[at++] = strides[a];
    }
  }
  return &by.tensor;
}

/* Returns a tensor without the axes that are listed. */
static inline DLTensor *leave_out(arranged &by, const DLTensor *t, const listed_axes &axes) {
  DLTensor *const made = arrange(by, t, axes, false);
  for (int32_t a = 0; made != nullptr && a < t->ndim; ++a) by.tensor.ndim -= axes.has(a) ? 1 : 0;
  return made;
}

/* Whether rows along the listed axes of an arranged tensor lie across memory: another axis is the last there. With `apart`, also whether
 * they are in pieces that lie apart, or are so few and so long that threads are to share them. */
static inline bool lies_across(const DLTensor *t, const extents &rest, const extents &listed, bool listed_first, bool apart) {
  if (t == nullptr) return false;
  if (apart && count(rest) < 16 && count(listed) >= 65536) return true;
  const int32_t first = listed_first ? 0 : rest.rank, end = first + listed.rank;
  int64_t least[2] = {INT64_MAX, INT64_MAX}; /* strides: of the other axes, of the listed ones */
  int64_t next = -1;
  bool together = true;
  for (int32_t a = t->ndim - 1; a >= 0; --a) {
    if (t->shape[a] == 1) continue;
    const bool is_listed = a >= first && a < end;
    if (t->strides[a] < least[is_listed]) least[is_listed] = t->strides[a];
    if (!is_listed) continue;
    together = together && (next < 0 || t->strides[a] == next);
    next = t->strides[a] * t->shape[a];
  }
  return next >= 0 && (least[0] < least[1] || (apart && !together));
}

#if defined(OPC_ON_GPU)
}  // namespace on_gpu
#endif
}  // namespace opc
#endif  // OPC_CORE_ARRANGED_H
