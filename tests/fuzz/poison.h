/* Memory as kernels get it under test: filled with bytes that are no number, so that what is read before it is written shows. */
#ifndef OPC_TESTS_POISON_H
#define OPC_TESTS_POISON_H

#include <stdlib.h>
#include <string.h>

static inline void *opc_poisoned(void *memory, size_t bytes) {
  if (memory != nullptr) memset(memory, 0xff, bytes);
  return memory;
}

static inline int opc_poisoned_memalign(void **memory, size_t alignment, size_t bytes) {
  const int code = posix_memalign(memory, alignment, bytes);
  if (code == 0) opc_poisoned(*memory, bytes);
  return code;
}

#define malloc(bytes) opc_poisoned(malloc(bytes), bytes)
#define aligned_alloc(alignment, bytes) opc_poisoned(aligned_alloc(alignment, bytes), bytes)
#define posix_memalign(memory, alignment, bytes) opc_poisoned_memalign(memory, alignment, bytes)

#endif  // OPC_TESTS_POISON_H
