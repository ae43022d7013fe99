/* Multiples, and memory whose place is one of a power of two. Windows takes such memory back by a function of its own. */
#ifndef OPC_CORE_ALIGNED_H
#define OPC_CORE_ALIGNED_H

#include <stdint.h>
#include <stdlib.h>

#if defined(_WIN32)
#include <malloc.h>
#endif

namespace opc {

enum : int64_t { cache_line = 64 };

static inline int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/* Returns NULL where there is none. */
static inline void *allocate_aligned(int64_t alignment, int64_t bytes) {
#if defined(_WIN32)
  return _aligned_malloc(static_cast<size_t>(bytes), static_cast<size_t>(alignment));
#else
  void *memory = nullptr;
  return posix_memalign(&memory, static_cast<size_t>(alignment), static_cast<size_t>(bytes)) == 0 ? memory : nullptr;
#endif
}

/* Takes back what `allocate_aligned` has returned. */
static inline void free_aligned(void *memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  free(memory);
#endif
}

}  // namespace opc
#endif  // OPC_CORE_ALIGNED_H
