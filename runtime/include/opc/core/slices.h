/* Runs an op that is one independent problem for each point of an axis group: a slice of every tensor at a time, on each thread. */
#ifndef OPC_CORE_SLICES_H
#define OPC_CORE_SLICES_H

#include "opc/core/call.h"

namespace opc {

enum : int64_t { least_slices = 4, sliced_elements = 1 << 18 };
enum { most_sliced = 64 };

/* An op to be sliced: its operands, inputs first, and for each of them the sizes of its leading axes that belong to the group, NULL for
 * none. `call` is the call of one slice. */
struct slicing {
  const opc_context *context;
  const extents *group;
  const DLTensor *const *inputs;
  DLTensor *const *outputs;
  int32_t input_count, output_count;
  const extents *const *own;
  const void *call;
  const void *attributes;
  int32_t (*run)(const void *call, const DLTensor *const *inputs, DLTensor *const *outputs, const void *attributes,
                 const opc_context *context, temporary *memory);
  int32_t code;
};

/* Whether slicing pays: there are enough slices, their temporaries, of `elements` each, don't fit a cache all together, and no result
 * is broadcast along the group. */
static bool pays_to_slice(const extents &group, const extents *const *own, int32_t input_count, DLTensor *const *outputs,
                          int32_t output_count, int64_t elements) {
  if (group.rank == 0 || count(group) < least_slices || count(group) * elements < sliced_elements) return false;
  if (input_count + output_count > most_sliced) return false;
  for (int32_t k = input_count; k < input_count + output_count; ++k) {
    if (outputs[k - input_count] == nullptr) continue;
    if (own[k] == nullptr || own[k]->rank != group.rank) return false;
    for (int32_t i = 0; i < group.rank; ++i) {
      if (own[k]->size[i] != group.size[i]) return false;
    }
  }
  return true;
}

/* Sets `slice` to a tensor at a position in the group. */
static void take_slice(DLTensor &slice, const DLTensor &whole, const extents *own, const int64_t *at, int32_t rank) {
  slice = whole;
  if (own == nullptr) return;
  int64_t offset = 0;
  int64_t contiguous = 1;
  for (int32_t i = whole.ndim - 1; i >= 0; --i) {
    if (i < own->rank && own->size[i] != 1) {
      offset += at[rank - own->rank + i] * (whole.strides != nullptr ? whole.strides[i] : contiguous);
    }
    contiguous *= whole.shape[i];
  }
  slice.byte_offset += static_cast<uint64_t>(offset * (whole.dtype.bits / 8));
  slice.ndim -= own->rank;
  slice.shape += own->rank;
  if (slice.strides != nullptr) slice.strides += own->rank;
}

static void run_slice_range(void *argument, int64_t begin, int64_t end) {
  slicing &s = *static_cast<slicing *>(argument);
  opc_context alone = {};
  if (s.context != nullptr) alone = *s.context;
  alone.parallel_for = nullptr;
  temporary memory[most_sliced];
  DLTensor tensors[most_sliced];
  const DLTensor *inputs[most_sliced];
  DLTensor *outputs[most_sliced];
  for (int64_t point = begin; point < end; ++point) {
    int64_t at[OPC_MAX_RANK];
    int64_t rest = point;
    for (int32_t i = s.group->rank - 1; i >= 0; --i) {
      at[i] = rest % s.group->size[i];
      rest /= s.group->size[i];
    }
    for (int32_t k = 0; k < s.input_count + s.output_count; ++k) {
      const bool input = k < s.input_count;
      const DLTensor *whole = input ? s.inputs[k] : s.outputs[k - s.input_count];
      if (whole != nullptr) take_slice(tensors[k], *whole, s.own[k], at, s.group->rank);
      DLTensor *slice = whole != nullptr ? &tensors[k] : nullptr;
      if (input) {
        inputs[k] = slice;
      } else {
        outputs[k - s.input_count] = slice;
      }
    }
    const int32_t code = s.run(s.call, inputs, outputs, s.attributes, &alone, memory);
    if (code != OPC_OK) {
      __atomic_store_n(&s.code, code, __ATOMIC_RELAXED);
      return;
    }
  }
}

static int32_t run_slices(slicing &s) {
  s.code = OPC_OK;
  const int64_t points = count(*s.group);
  if (s.context == nullptr || s.context->parallel_for == nullptr) {
    run_slice_range(&s, 0, points);
  } else {
    s.context->parallel_for(s.context->pool, points, 1, run_slice_range, &s);
  }
  return s.code;
}

}  // namespace opc
#endif  // OPC_CORE_SLICES_H
