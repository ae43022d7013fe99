/* What loops along a row are written with, so that compilers vectorise them. */
#ifndef OPC_LANES_H
#define OPC_LANES_H

#include "opc/math.h"

namespace opc {
inline namespace OPC_VARIANT {

template <typename Bits, typename T>
OPC_INLINE T blend_bits(bool condition, T then, T other) {
  const Bits mask = -Bits(condition);
  Bits a, b;
  memcpy(&a, &then, sizeof a);
  memcpy(&b, &other, sizeof b);
  b ^= (a ^ b) & mask;
  memcpy(&other, &b, sizeof b);
  return other;
}

/* One of two floating values, both of which are computed: a choice by bits, which no compiler turns into a branch. */
template <typename T>
OPC_INLINE T blend(bool condition, T then, T other) {
  if constexpr (sizeof(T) == 4) {
    return blend_bits<int32_t>(condition, then, other);
  } else {
    return blend_bits<int64_t>(condition, then, other);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_LANES_H
