/* What a plugin's kernels find in data, such as an index outside its axis: TensorRT never waits for a plugin, so that a
 * program has to ask.
 *
 * The words lie in the library's own memory on each device. A generated `.cu` file includes this header and says OPC_TENSORRT_STATUS.
 */
#ifndef OPC_ADAPTERS_TENSORRT_STATUS_H
#define OPC_ADAPTERS_TENSORRT_STATUS_H

#include <stdint.h>
#include <string.h>

#include "opc/cuda/abi.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define OPC_TENSORRT_DEVICE __device__
#else
#define OPC_TENSORRT_DEVICE
#endif

static OPC_TENSORRT_DEVICE int64_t opc_tensorrt_words[OPC_CUDA_STATUS_WORDS];

/* Where the words lie on the current device; null where that can't be had. */
static inline int64_t *opc_tensorrt_place() {
#if defined(__CUDACC__)
  void *place = nullptr;
  return cudaGetSymbolAddress(&place, opc_tensorrt_words) == cudaSuccess ? static_cast<int64_t *>(place) : nullptr;
#else
  return opc_tensorrt_words;
#endif
}

/* Waits for the current device, copies the words, and makes them zeros for the calls to come; false where that can't be done. */
static inline bool opc_tensorrt_take(int64_t *words) {
  int64_t *place = opc_tensorrt_place();
#if defined(__CUDACC__)
  return place != nullptr && cudaDeviceSynchronize() == cudaSuccess &&
         cudaMemcpy(words, place, sizeof opc_tensorrt_words, cudaMemcpyDeviceToHost) == cudaSuccess &&
         cudaMemset(place, 0, sizeof opc_tensorrt_words) == cudaSuccess;
#else
  memcpy(words, place, sizeof opc_tensorrt_words);
  memset(place, 0, sizeof opc_tensorrt_words);
  return true;
#endif
}

/* Defines `place`, which plugins ask for the words, and `status`, which a program calls: it returns what the CPU's function would have
 * returned for the first call since then that has found something, with its message. */
#define OPC_TENSORRT_STATUS(place, status, kernel_status)                                             \
  extern "C" int64_t *place() { return opc_tensorrt_place(); }                                        \
  extern "C" OPC_EXPORT int32_t status(char *message, int64_t size) {                                 \
    int64_t words[OPC_CUDA_STATUS_WORDS];                                                             \
    const opc_cuda_context context = {nullptr, 0, nullptr, nullptr, nullptr, nullptr, message, size}; \
    return opc_tensorrt_take(words) ? kernel_status(words, &context) : int32_t(OPC_DEVICE_FAILED);    \
  }

#endif /* OPC_ADAPTERS_TENSORRT_STATUS_H */
