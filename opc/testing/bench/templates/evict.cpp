// Writes memory back and drops it from all caches, a line at a time.
#include <cstddef>

extern "C" void opc_evict(const char *memory, size_t bytes, size_t line) {
  for (size_t i = 0; i < bytes; i += line) {
#if defined(__x86_64__)
    __builtin_ia32_clflush(memory + i);
#elif defined(__aarch64__)
    asm volatile("dc civac, %0" : : "r"(memory + i) : "memory");
#else
#error "how this processor drops a line from its caches is not known here"
#endif
  }
  __sync_synchronize();
}
