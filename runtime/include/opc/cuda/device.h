/* The words that kernels are written with: CUDA's own, or those of opc/cuda/host.h where a C++ compiler reads the same source. */
#ifndef OPC_CUDA_DEVICE_H
#define OPC_CUDA_DEVICE_H

#include "opc/core/variant.h"
#include "opc/cuda/abi.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define OPC_KERNEL(threads) __global__ void __launch_bounds__(threads)
/* A kernel of a header, which several parts of a source include. */
#define OPC_HEADER_KERNEL(threads) [[maybe_unused]] static OPC_KERNEL(threads)
/* One for rows, which may have as many registers as there are for its largest block. */
#define OPC_ROW_KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define OPC_TILED_KERNEL(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define OPC_PARAMETER(...) const __grid_constant__ __VA_ARGS__
#define OPC_PARAMETER_TYPE(...) __VA_ARGS__
#define OPC_DEVICE __device__ static inline
#define OPC_DEVICE_MEMBER __device__ inline
#define OPC_SHARED(type, name, count) __shared__ type name[count]
#define OPC_CHECK_INDEX(i, count) static_cast<void>(0)
/* Hides from the compiler that a word of 32 bits is the same behind it. */
#define OPC_FORGET(word) asm volatile("" : "+r"(word))
/* Waits for what a block writes that has begun before this one. */
#define OPC_WAIT_UNTIL(condition) \
  while (!(condition)) __nanosleep(32)
#define OPC_DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]
/* A kernel has to be allowed to have more than 48 KiB of shared memory, of which up to 8 may be arrays of its own. */
#define OPC_ALLOW_SHARED(kernel, bytes) \
  ((bytes) > 40 * 1024 ? static_cast<void>(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, \
                                                                static_cast<int>(bytes)))                           \
                       : static_cast<void>(0))
/* Starts a kernel, but not on the stream of a call that measures; `together` tells whether its threads wait for each other. */
#define OPC_LAUNCH(kernel, together, blocks, threads, bytes, stream, ...)                                        \
  if ((stream) != OPC_CUDA_MEASURE)                                                                     \
  OPC_ALLOW_SHARED(kernel, bytes), kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<size_t>(bytes), \
           static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__)
#else
#include "opc/cuda/host.h"
#endif

namespace opc {
inline namespace OPC_VARIANT {

enum : int { threads_a_block = 256, threads_a_warp = 32, most_threads_a_row = 512, most_warps = most_threads_a_row / threads_a_warp };

/* The most blocks of a grid whose threads go through points in steps: what a large GPU runs at once, several times over. It does not
 * depend on the GPU, so that neither do results. */
enum : int64_t { most_blocks = 2112 };

/* The number of this thread in the grid, and of all threads. */
OPC_DEVICE int64_t own_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
OPC_DEVICE int64_t all_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }
OPC_DEVICE bool first_thread() { return threadIdx.x == 0; }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_DEVICE_H
