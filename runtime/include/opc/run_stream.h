/* Which outputs of a stage are written past the caches: those of a call that moves more than the caches hold. What it writes would be
 * gone from them before anyone can read it there, and meanwhile would drive out what others may still read. */
#ifndef OPC_RUN_STREAM_H
#define OPC_RUN_STREAM_H

#include "opc/run_plan.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace opc {

/* The bytes of the largest cache that this processor tells of; 0 where it tells of none, and then nothing is streamed.
 *
 * For tests: -DOPC_CACHE_BYTES=1 on the file of the entry functions streams all that can be. */
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

/* Decides whether a planned stage streams its outputs, all or none; `all` tells that it computes all of them, not only what is wanted.
 *
 * Sums are streamed whose elements take in one point each: they need not be set to zero before. */
static void plan_streams(runner &r, bool all) {
  const stage &s = *r.s;
  int64_t moved = 0;
  r.streams = s.streams;
  for (int32_t k = 0; k < s.operand_count && r.streams; ++k) {
    const operand &o = s.operands[k];
    const passing &p = r.pass[k];
    if (p.data != nullptr) {
      int64_t bytes = itemsize(o.stored);
      for (int32_t a = 0; a < r.outer + r.row_axes; ++a) bytes *= p.stride[a] != 0 ? r.size[a] : 1;
      moved += bytes;
    }
    if (o.what == role_input || !o.along_row) continue;
    /* What is dropped is written to a buffer that stays in the caches; what is written in place is in them already. */
    if (p.data == nullptr) {
      r.streams = !all;
      continue;
    }
    const bool formed = o.computed == dtype_float32; /* is_streamed in opc/stream.h */
    r.streams = formed && !p.staged && p.along && (o.what == role_output || p.own);
    for (int32_t i = 0; i < s.operand_count; ++i) {
      if (i != k && r.pass[i].data == p.data) r.streams = false;
    }
  }
  const int64_t cache = cache_bytes();
  const bool long_rows = !s.whole_rows || r.columns >= narrow_columns; /* the ends of short ones would be most of what is stored */
  r.streams = r.streams && long_rows && cache > 0 && moved >= cache;
}

/* Whoever learns that this thread is done sees what it has streamed. */
static inline void finish_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace opc
#endif  // OPC_RUN_STREAM_H
