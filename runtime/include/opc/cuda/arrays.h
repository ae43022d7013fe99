/* What a program without a framework needs to call kernels on a GPU: memory, copies and waiting, for one source of its own to include.
 * A C++ compiler makes the same of the host's memory. Each function that returns an int returns 0 where it succeeds. */
#ifndef OPC_CUDA_ARRAYS_H
#define OPC_CUDA_ARRAYS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opc/abi.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

#if !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__)
namespace {

/* Bytes before and behind memory that no kernel may change; the first ones say how many lie between. */
enum : int { guard_bytes = 64, guard_value = 0xa5 };

void *guarded_memory(int64_t bytes) {
  char *const memory = static_cast<char *>(malloc(static_cast<size_t>(bytes) + 2 * guard_bytes));
  if (memory == nullptr) return nullptr;
  memset(memory, guard_value, guard_bytes);
  memcpy(memory, &bytes, sizeof bytes);
  memset(memory + guard_bytes + bytes, guard_value, guard_bytes);
  return memory + guard_bytes;
}

void release_guarded(void *given) {
  if (given == nullptr) return;
  char *const memory = static_cast<char *>(given) - guard_bytes;
  int64_t bytes = 0;
  memcpy(&bytes, memory, sizeof bytes);
  for (int i = 0; i < 2 * guard_bytes; ++i) {
    const char *const at = memory + (i < guard_bytes ? i : i + bytes);
    if (i < int(sizeof bytes) || *at == static_cast<char>(guard_value)) continue;
    fprintf(stderr, "CUDA's emulation: a kernel wrote outside of %lld bytes of memory\n", static_cast<long long>(bytes));
    abort();
  }
  free(memory);
}

}  // namespace
#endif

extern "C" {

OPC_EXPORT void *opc_array_allocate(void *, int64_t bytes, void *) {
#if defined(__CUDACC__)
  void *memory = nullptr;
  return cudaMalloc(&memory, static_cast<size_t>(bytes)) == cudaSuccess ? memory : nullptr;
#elif defined(__SANITIZE_ADDRESS__)
  return malloc(static_cast<size_t>(bytes));
#else
  return guarded_memory(bytes);
#endif
}

OPC_EXPORT void opc_array_release(void *, void *memory, int64_t, void *) {
#if defined(__CUDACC__)
  cudaFree(memory);
#elif defined(__SANITIZE_ADDRESS__)
  free(memory);
#else
  release_guarded(memory);
#endif
}

OPC_EXPORT int32_t opc_array_copy_in(void *to, const void *from, int64_t bytes) {
#if defined(__CUDACC__)
  return cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice);
#else
  memcpy(to, from, static_cast<size_t>(bytes));
  return 0;
#endif
}

OPC_EXPORT int32_t opc_array_copy_out(void *to, const void *from, int64_t bytes) {
#if defined(__CUDACC__)
  return cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost);
#else
  memcpy(to, from, static_cast<size_t>(bytes));
  return 0;
#endif
}

OPC_EXPORT int32_t opc_array_wait(void) {
#if defined(__CUDACC__)
  return cudaDeviceSynchronize();
#else
  return 0;
#endif
}

OPC_EXPORT int32_t opc_array_is_emulated(void) {
#if defined(__CUDACC__)
  return 0;
#else
  return 1;
#endif
}

}  // extern "C"
#endif  // OPC_CUDA_ARRAYS_H
