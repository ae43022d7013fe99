/* What generated CUDA kernels of point and row stages are written with: rows of a tile by blocks, points of a row by threads.
 *
 * Compiled by nvcc, or by a C++ compiler through opc/cuda/host.h, which emulates one thread a block.
 */
#ifndef OPC_CUDA_TILE_H
#define OPC_CUDA_TILE_H

#if defined(__CUDACC__)
#define OPC_LAUNCH(kernel, blocks, stream, ...) \
  kernel<<<static_cast<unsigned>(blocks), opc::threads_a_block, 0, static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__)
#define OPC_DEVICE __device__ static inline
#else
#define OPC_DEVICE static inline
#include "opc/cuda/host.h"
#endif

#include "opc/core/math.h"
#include "opc/core/stage.h"

namespace opc {
inline namespace OPC_VARIANT {

enum : int { threads_a_block = 256, threads_a_warp = 32 };

/* How partial results of a reduction are joined. */
struct joins_sum {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return a + b; }
};
struct joins_prod {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return a * b; }
};
struct joins_max {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return maximum(a, b); }
};
struct joins_min {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return minimum(a, b); }
};
struct joins_any {
  OPC_INLINE bool join(bool a, bool b) { return a || b; }
};
struct joins_all {
  OPC_INLINE bool join(bool a, bool b) { return a && b; }
};

OPC_DEVICE bool first_thread() { return threadIdx.x == 0; }

/* The reduction of the threads' partial results, which every thread of the block gets. The order is fixed: lanes of each warp, then warps. */
template <typename Joins, typename T>
OPC_DEVICE T block_reduce(T value) {
#if defined(__CUDACC__)
  __shared__ T parts[threads_a_block / threads_a_warp];
  for (int distance = threads_a_warp / 2; distance > 0; distance /= 2) {
    value = Joins::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % threads_a_warp == 0) parts[threadIdx.x / threads_a_warp] = value;
  __syncthreads();
  value = parts[0];
  for (int warp = 1; warp < threads_a_block / threads_a_warp; ++warp) value = Joins::join(value, parts[warp]);
  __syncthreads();
#endif
  return value;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_TILE_H
