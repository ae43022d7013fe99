/* Random numbers that are counted: a seed and a counter tell each, whatever was drawn before.
 *
 * Philox-4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC, 2011).
 */
#ifndef OPC_CORE_PHILOX_H
#define OPC_CORE_PHILOX_H

#include <stdint.h>

#include "opc/core/variant.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Ten rounds on a block of four words under a key of two. Each word lies in 64 bits, whose upper half is 0: so the products that it is
 * made with take an instruction, and loops over blocks vectorise. */
OPC_INLINE void philox_rounds(uint64_t &a, uint64_t &b, uint64_t &c, uint64_t &d, uint64_t key, uint64_t other) {
  const uint64_t word = UINT32_MAX;
#if defined(__CUDACC__)
#pragma unroll
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 10
#endif
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = a * 0xD2511F53u, second = c * 0xCD9E8D57u;
    a = (second >> 32) ^ b ^ key;
    c = (first >> 32) ^ d ^ other;
    b = second & word;
    d = first & word;
    key = (key + 0x9E3779B9u) & word;
    other = (other + 0xBB67AE85u) & word;
  }
}

/* The first word of the block that a counter of 64 bits numbers; the key is the seed. */
OPC_INLINE uint64_t philox(uint64_t seed, uint64_t counter) {
  const uint64_t word = UINT32_MAX;
  uint64_t a = counter & word, b = counter >> 32, c = 0, d = 0;
  philox_rounds(a, b, c, d, seed & word, seed >> 32);
  return a;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_PHILOX_H
