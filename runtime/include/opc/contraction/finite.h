/* Whether a factor of sums is finite: 0 times what is not is no 0, and may not be left out. */
#ifndef OPC_CONTRACTION_FINITE_H
#define OPC_CONTRACTION_FINITE_H

#include "opc/contraction/contraction.h"
#include "opc/core/call.h"
#include "opc/rows/rows.h"

namespace opc {

enum : int64_t { checked_columns = 512 };

/* Whether the elements of one line of a tensor are all finite. */
static bool finite_line(const char *data, dtype stored, int64_t count, int64_t stride, const contraction_functions *sums,
                        const row_functions &rows) {
  const dtype computed = compute_dtype(stored);
  const contraction_functions &f = sums[computed == dtype_float64];
  if (stride == 1 && stored == computed) return f.all_finite(data, count);
  alignas(64) double buffer[checked_columns];
  for (int64_t at = 0; at < count; at += checked_columns) {
    const int64_t columns = count - at < checked_columns ? count - at : checked_columns;
    load_block(rows, buffer, columns, stored, data + at * stride * itemsize(stored), {1, columns, 0, stride});
    if (!f.all_finite(buffer, columns)) return false;
  }
  return true;
}

/* Whether the elements of a tensor of a slice are all finite. That is found out once for all blocks of rows of the slice that a thread
 * takes. */
static bool all_finite(kept_memory &kept, const DLTensor &t, const contraction_functions *sums, const row_functions &rows) {
  const char *const data = data_of(t);
  if (kept.checked == data) return kept.finite;
  kept.checked = data;
  kept.finite = true;
  int64_t stride[OPC_MAX_RANK], index[OPC_MAX_RANK] = {};
  int64_t elements = 1;
  for (int32_t i = t.ndim - 1; i >= 0; --i) {
    stride[i] = t.strides != nullptr ? t.strides[i] : elements;
    elements *= t.shape[i];
  }
  if (elements == 0) return true;
  int32_t last = t.ndim - 1;
  int64_t count = t.ndim > 0 ? t.shape[last] : 1;
  /* Axes that follow each other in memory are one line. */
  while (last > 0 && stride[last - 1] == stride[t.ndim - 1] * count) count *= t.shape[--last];
  const dtype stored = dtype_of(t);
  int64_t offset = 0;
  for (int32_t axis = 0; kept.finite && axis >= 0;) {
    kept.finite = finite_line(data + offset * itemsize(stored), stored, count, t.ndim > 0 ? stride[t.ndim - 1] : 1, sums, rows);
    for (axis = last - 1; axis >= 0; --axis) {
      offset += stride[axis];
      if (++index[axis] < t.shape[axis]) break;
      offset -= stride[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return kept.finite;
}

/* Whether the elements of a temporary are all finite. */
static bool all_finite(const temporary &t, const contraction_functions *sums, dtype computed) {
  int64_t elements = 1;
  for (int32_t i = 0; i < t.ndim; ++i) elements *= t.shape[i];
  return sums[computed == dtype_float64].all_finite(t.data, elements);
}

}  // namespace opc
#endif  // OPC_CONTRACTION_FINITE_H
