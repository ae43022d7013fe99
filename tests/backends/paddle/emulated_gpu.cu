/* The twin for GPUs on a machine without one: Paddle's tensors in host memory count as a GPU's, and CUDA's copies are plain ones, counted.
 * TWIN is the path of the twin. */
#include <cuda_runtime.h>

#include <cstring>

#include "paddle/common/enforce.h"
#include "paddle/common/errors.h"
#include "paddle/phi/api/ext/op_meta_info.h"
#include "paddle/phi/api/include/api.h"

/* To the host, and to the device. */
extern "C" {
__attribute__((visibility("default"))) int emulated_copies[2];
}

inline cudaError_t emulated_copy(void *target, const void *source, size_t size, cudaMemcpyKind kind, cudaStream_t) {
  std::memcpy(target, source, size);
  ++emulated_copies[kind == cudaMemcpyHostToDevice];
  return cudaSuccess;
}

inline cudaError_t emulated_wait(cudaStream_t) { return cudaSuccess; }

cudaStream_t paddle::Tensor::stream() const { return nullptr; }

#define is_gpu is_cpu
#define cudaMemcpyAsync emulated_copy
#define cudaStreamSynchronize emulated_wait
#include TWIN
