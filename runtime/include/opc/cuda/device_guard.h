/* The device of a call. */
#ifndef OPC_CUDA_DEVICE_GUARD_H
#define OPC_CUDA_DEVICE_GUARD_H

#include "opc/cuda/abi.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace opc {

/* Makes the context's device the current one for the time of a call. */
struct device_guard {
#if defined(__CUDACC__)
  int before = -1;
  explicit device_guard(const opc_cuda_context *lent) {
    int now = 0;
    if (lent == nullptr || cudaGetDevice(&now) != cudaSuccess || now == lent->device) return;
    if (cudaSetDevice(lent->device) == cudaSuccess) before = now;
  }
  ~device_guard() {
    if (before >= 0) cudaSetDevice(before);
  }
#else
  explicit device_guard(const opc_cuda_context *) {}
#endif
  device_guard(const device_guard &) = delete;
  device_guard &operator=(const device_guard &) = delete;
};

}  // namespace opc
#endif  // OPC_CUDA_DEVICE_GUARD_H
