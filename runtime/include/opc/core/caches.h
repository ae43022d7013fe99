/* How much the caches of this processor hold, and what is written past them. */
#ifndef OPC_CORE_CACHES_H
#define OPC_CORE_CACHES_H

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace opc {

/* The bytes of the largest cache that this processor reports; 0 where it reports none, and then no store is non-temporal.
 *
 * For tests: -DOPC_CACHE_BYTES=1 on the file of the entry functions makes all stores non-temporal that can be. */
static inline int64_t cache_bytes() {
#if defined(OPC_CACHE_BYTES)
  return OPC_CACHE_BYTES;
#elif defined(__x86_64__)
  static int64_t known = -1;
  int64_t largest = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (largest >= 0) return largest;
  largest = 0;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool amd = __get_cpuid_count(0x8000001du, 0, &a, &b, &c, &d) != 0 && (a & 31u) != 0;
  for (unsigned cache = 0; cache < 16; ++cache) {
    if (__get_cpuid_count(amd ? 0x8000001du : 4u, cache, &a, &b, &c, &d) == 0 || (a & 31u) == 0) break;
    const int64_t ways = (b >> 22) + 1, partitions = ((b >> 12) & 1023u) + 1, line = (b & 4095u) + 1, sets = int64_t{c} + 1;
    const int64_t bytes = ways * partitions * line * sets;
    if (bytes > largest) largest = bytes;
  }
  __atomic_store_n(&known, largest, __ATOMIC_RELAXED);
  return largest;
#else
  return 0;
#endif
}

/* Orders non-temporal stores before whatever tells others that this thread is done. */
static inline void fence_nontemporal() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace opc
#endif  // OPC_CORE_CACHES_H
