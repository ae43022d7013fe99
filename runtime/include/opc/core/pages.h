/* Huge pages for large fresh outputs: faulting a new buffer in by 4 KiB pages costs several times what most kernels do. Plain C. */
#ifndef OPC_CORE_PAGES_H
#define OPC_CORE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/* Asks for huge pages on the aligned inside of a fresh allocation of 4 MiB or more; does nothing on smaller ones and elsewhere. */
static inline void opc_advise_huge_pages(void *data, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = (uintptr_t)1 << 21;
  if (bytes >= 2 * page) {
    const uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)data + bytes) & ~(page - 1);
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* only advice: a refusal changes nothing but speed */
  }
#else
  (void)data;
  (void)bytes;
#endif
}

#endif /* OPC_CORE_PAGES_H */
