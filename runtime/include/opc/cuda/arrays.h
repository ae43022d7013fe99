/* What a program without a framework needs to call kernels on a GPU: memory, copies and waiting, for one source of its own to include.
 * A C++ compiler makes the same of the host's memory. Each function that returns an int returns 0 where it succeeds. */
#ifndef OPC_CUDA_ARRAYS_H
#define OPC_CUDA_ARRAYS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opc/abi.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

extern "C" {

OPC_EXPORT void *opc_array_allocate(void *, int64_t bytes, void *) {
#if defined(__CUDACC__)
  void *memory = nullptr;
  return cudaMalloc(&memory, static_cast<size_t>(bytes)) == cudaSuccess ? memory : nullptr;
#else
  return malloc(static_cast<size_t>(bytes));
#endif
}

OPC_EXPORT void opc_array_release(void *, void *memory, int64_t, void *) {
#if defined(__CUDACC__)
  cudaFree(memory);
#else
  free(memory);
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
