/* Integers of fewer than 8 bits, one in the low bits of each byte. Kernels read and write copies in int8, in which they are computed. */
#ifndef OPC_CORE_SMALL_INTEGERS_H
#define OPC_CORE_SMALL_INTEGERS_H

#include <stdlib.h>

#include "opc/core/call.h"
#include "opc/core/workspace.h"

namespace opc {

static inline bool is_small(dtype type) { return row_of(type).dlpack.bits < 8; }

/* The number that the low bits of a byte stand for, as a byte. */
static inline int8_t extended(uint8_t byte, DLDataType type) {
  const int shift = 8 - type.bits;
  const uint8_t high = static_cast<uint8_t>(byte << shift);
  return type.code == kDLInt ? static_cast<int8_t>(static_cast<int8_t>(high) >> shift) : static_cast<int8_t>(high >> shift);
}

/* The inputs and outputs of a call with those of small integers as copies in int8. What is written to these goes to the outputs when
 * this ends. */
template <int32_t Inputs, int32_t Outputs>
struct small_integers {
  const DLTensor *inputs[Inputs];
  DLTensor *outputs[Outputs];
  DLTensor own[Inputs + Outputs];
  DLTensor *targets[Outputs] = {};
  int8_t *memory[Inputs + Outputs] = {};
  bool failed = false;

  small_integers(const DLTensor *const *given, DLTensor *const *wanted) {
    for (int32_t i = 0; i < Inputs; ++i) {
      inputs[i] = given[i];
      if (given[i] == nullptr || !is_small(dtype_of(*given[i])) || !copy(i, *given[i])) continue;
      inputs[i] = &own[i];
      const DLDataType type = given[i]->dtype;
      walk(*given[i], [&](int64_t n, uint8_t &element) { memory[i][n] = extended(element, type); });
    }
    for (int32_t o = 0; o < Outputs; ++o) {
      outputs[o] = wanted[o];
      if (wanted[o] == nullptr || !is_small(dtype_of(*wanted[o])) || !copy(Inputs + o, *wanted[o])) continue;
      targets[o] = wanted[o];
      outputs[o] = &own[Inputs + o];
    }
  }
  small_integers(const small_integers &) = delete;
  small_integers &operator=(const small_integers &) = delete;
  ~small_integers() {
    for (int32_t o = 0; o < Outputs; ++o) {
      if (targets[o] == nullptr) continue;
      const uint8_t mask = static_cast<uint8_t>((1u << targets[o]->dtype.bits) - 1);
      const int8_t *const from = memory[Inputs + o];
      walk(*targets[o], [&](int64_t n, uint8_t &element) { element = static_cast<uint8_t>(from[n]) & mask; });
    }
    for (int8_t *m : memory) give_memory(m);
  }

 private:
  /* Makes the copy of a tensor, without its elements. */
  bool copy(int32_t at, const DLTensor &from) {
    int64_t count = 1;
    for (int32_t a = 0; a < from.ndim; ++a) count *= from.shape[a];
    memory[at] = static_cast<int8_t *>(take_memory(count));
    if (memory[at] == nullptr) {
      failed = true;
      return false;
    }
    own[at] = from;
    own[at].data = memory[at];
    own[at].byte_offset = 0;
    own[at].strides = nullptr;
    own[at].dtype = row_of(dtype_int8).dlpack;
    return true;
  }

  /* Calls f(number, element) for each element of a tensor of any strides, in row-major order. */
  template <typename F>
  static void walk(const DLTensor &t, F f) {
    int64_t strides[OPC_MAX_RANK], at[OPC_MAX_RANK] = {}, offset = 0;
    const int64_t count = find_strides(t.ndim, t.shape, t.strides, strides);
    uint8_t *const elements = reinterpret_cast<uint8_t *>(data_of(t));
    for (int64_t n = 0; n < count; ++n) {
      f(n, elements[offset]);
      for (int32_t a = t.ndim - 1; a >= 0; --a) {
        offset += strides[a];
        if (++at[a] < t.shape[a]) break;
        offset -= at[a] * strides[a];
        at[a] = 0;
      }
    }
  }
};

}  // namespace opc
#endif  // OPC_CORE_SMALL_INTEGERS_H
