/* What every call does on the host: memory between kernels, the stream, and how many blocks and threads there are. */
#ifndef OPC_CUDA_LAUNCH_H
#define OPC_CUDA_LAUNCH_H

#include "opc/core/call.h"
#include "opc/cuda/abi.h"
#include "opc/cuda/device.h"
#include "opc/cuda/device_guard.h"

namespace opc {

/* A tensor in the device's memory between the kernels of a call. */
struct device_temporary : temporary {
  const opc_cuda_context *lent = nullptr;
  ~device_temporary() {
    if (data != nullptr && lent->release != nullptr) lent->release(lent->allocator, data, bytes, lent->stream);
    data = nullptr;
  }
};

static inline void *device_memory(const opc_cuda_context *lent, int64_t bytes) {
  if (lent == nullptr || lent->allocate == nullptr) return nullptr;
  return lent->allocate(lent->allocator, bytes < 256 ? 256 : bytes, lent->stream);
}

/* Gets uninitialised memory for a tensor with axes of these sizes and groups; false when there is none. */
template <typename... Sizes>
static inline bool allocate(const opc_cuda_context *lent, device_temporary &t, dtype type, const Sizes &...sizes) {
  describe(t, sizes...);
  if (!bytes_of(t.shape, t.ndim, type, t.bytes)) return false;
  t.lent = lent;
  t.data = device_memory(lent, t.bytes);
  return t.data != nullptr;
}

/* Fills memory with zeros, in the order of the stream. */
static inline void set_zero(const opc_cuda_context *lent, void *data, int64_t bytes) {
  if (lent->stream == OPC_CUDA_MEASURE) return;
#if defined(__CUDACC__)
  cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), static_cast<cudaStream_t>(lent->stream));
#else
  memset(data, 0, static_cast<size_t>(bytes));
#endif
}
static inline void set_zero(const opc_cuda_context *lent, const device_temporary &t) { set_zero(lent, t.data, t.bytes); }

/* The context that checks and messages take. */
static inline opc_context host_context(const opc_cuda_context *lent) {
  opc_context own = {nullptr, nullptr, nullptr, 0};
  if (lent != nullptr) {
    own.message = lent->message;
    own.message_size = lent->message_size;
  }
  return own;
}

static inline void *stream_of(const opc_cuda_context *lent) { return lent == nullptr ? nullptr : lent->stream; }

/* Whether what was started before could be. */
static inline int32_t started(const char *op, const opc_context *context) {
#if defined(__CUDACC__)
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess) return OPC_OK;
  fail(context, OPC_INVALID_ARGUMENT, "%s: the GPU can't run the kernel: %s", op, cudaGetErrorString(error));
  return OPC_DEVICE_FAILED;
#else
  static_cast<void>(op);
  static_cast<void>(context);
  return OPC_OK;
#endif
}

/* Threads of a block where so many have something to do: whole warps. */
static inline int64_t threads_for(int64_t count) {
  return count < threads_a_block ? (count + threads_a_warp - 1) / threads_a_warp * threads_a_warp : int64_t(threads_a_block);
}

static inline int64_t greater(int64_t a, int64_t b) { return a < b ? b : a; }
static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* So many threads keep a large GPU busy. */
enum : int64_t { busy_threads = 1 << 18 };

static inline int64_t at_least_0(int64_t size) { return size < 0 ? 0 : size; }

/* Blocks for a thread a point, as many as there may be. */
static inline int64_t blocks_for(int64_t points, int64_t threads) {
  const int64_t blocks = (points + threads - 1) / threads;
  return blocks < most_blocks ? blocks : int64_t(most_blocks);
}

}  // namespace opc
#endif  // OPC_CUDA_LAUNCH_H
