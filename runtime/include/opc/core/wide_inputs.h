/* Inputs of int32 as ones of int64: for ops that are seldom run, whose loops are compiled for one type of indices alone. */
#ifndef OPC_CORE_WIDE_INPUTS_H
#define OPC_CORE_WIDE_INPUTS_H

#include <stdlib.h>

#include "opc/core/tensor.h"
#include "opc/core/workspace.h"

namespace opc {

enum : int64_t { widening_grain = 16384 };

struct widening {
  const DLTensor *from;
  int64_t *to;
};

/* Widens the elements [begin, end) of a tensor of any strides, in row-major order. */
static void widen_range(void *argument, int64_t begin, int64_t end) {
  const widening &w = *static_cast<const widening *>(argument);
  const DLTensor &t = *w.from;
  const int32_t *const from = reinterpret_cast<const int32_t *>(data_of(t));
  if (begin == end) return;
  if (t.strides == nullptr) {
    for (int64_t i = begin; i < end; ++i) w.to[i] = from[i];
    return;
  }
  int64_t at[OPC_MAX_RANK], offset = 0, left = begin;
  for (int32_t a = t.ndim - 1; a >= 0; --a) {
    at[a] = left % t.shape[a];
    left /= t.shape[a];
    offset += at[a] * t.strides[a];
  }
  for (int64_t i = begin; i < end; ++i) {
    w.to[i] = from[offset];
    for (int32_t a = t.ndim - 1; a >= 0; --a) {
      offset += t.strides[a];
      if (++at[a] < t.shape[a]) break;
      offset -= at[a] * t.strides[a];
      at[a] = 0;
    }
  }
}

/* The inputs of a call, some of them widened. */
template <int32_t Count>
struct wide_inputs {
  const DLTensor *tensors[Count];
  DLTensor own[Count];
  int64_t *memory[Count] = {};

  explicit wide_inputs(const DLTensor *const *inputs) {
    for (int32_t i = 0; i < Count; ++i) tensors[i] = inputs[i];
  }
  wide_inputs(const wide_inputs &) = delete;
  wide_inputs &operator=(const wide_inputs &) = delete;
  ~wide_inputs() {
    for (int64_t *m : memory) give_memory(m);
  }

  /* Widens an input that was given and is of int32; false when there is no memory. */
  bool widen(int32_t input, const opc_context *context) {
    const DLTensor *const from = tensors[input];
    if (from == nullptr || dtype_of(*from) != dtype_int32) return true;
    int64_t count = 1;
    for (int32_t a = 0; a < from->ndim; ++a) count *= from->shape[a];
    memory[input] = static_cast<int64_t *>(take_memory(count * static_cast<int64_t>(sizeof(int64_t))));
    if (memory[input] == nullptr) return false;
    widening w = {from, memory[input]};
    over_range(context, count, widening_grain, widen_range, &w);
    own[input] = *from;
    own[input].data = memory[input];
    own[input].byte_offset = 0;
    own[input].strides = nullptr;
    own[input].dtype = row_of(dtype_int64).dlpack;
    tensors[input] = &own[input];
    return true;
  }
};

}  // namespace opc
#endif  // OPC_CORE_WIDE_INPUTS_H
