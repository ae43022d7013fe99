/* What a call does on the host: memory between kernels, descriptions of stages as kernels get them, and starting kernels. */
#ifndef OPC_CUDA_CALL_H
#define OPC_CUDA_CALL_H

#include "opc/core/call.h"
#include "opc/cuda/abi.h"
#include "opc/cuda/nest.h"

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
  t.bytes = itemsize(type);
  for (int32_t i = 0; i < t.ndim; ++i) t.bytes *= t.shape[i];
  t.lent = lent;
  t.data = device_memory(lent, t.bytes);
  return t.data != nullptr;
}

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

/* Blocks for a thread a point, as many as there may be. */
static inline int64_t blocks_for(int64_t points, int64_t threads) {
  const int64_t blocks = (points + threads - 1) / threads;
  return blocks < most_blocks ? blocks : int64_t(most_blocks);
}

/* A nest as kernels get it. */
template <int32_t Operands>
static inline void to_device(device_nest<Operands> &d, const nest &n, const opc_cuda_context *lent) {
  d.points = 1;
  d.status = lent == nullptr ? nullptr : lent->status;
  d.rank = n.rank;
  for (int32_t a = 0; a < n.rank; ++a) {
    d.size[a] = n.size[a];
    d.points *= n.size[a];
  }
  for (int32_t e = 0; e < n.entries; ++e) d.start[e] = n.start[e];
  for (int32_t k = 0; k < Operands; ++k) d.operands[k] = n.operands[k];
}

/* Takes an axis of an operand of a nest as two: parts of so many points each. `axis` counts from the back, so that operands of any rank
 * have it there. */
static inline void split_axis(nest_operand &o, int32_t axis, int64_t points) {
  if (o.data == nullptr) return;
  for (int32_t a = o.ndim; a > axis + 1; --a) {
    o.shape[a] = o.shape[a - 1];
    o.stride[a] = o.stride[a - 1];
  }
  ++o.ndim;
  o.shape[axis + 1] = points;
  o.stride[axis + 1] = o.stride[axis];
  o.shape[axis] = points == 0 ? 0 : o.shape[axis] / points;
  o.stride[axis] *= points;
}

/* The code and the message of what a kernel found; `what` are the names of operands, and of what has no value. */
static inline int32_t status_of(const char *const *what, const int64_t *status, const opc_context *context) {
  if (status[0] == 0) return OPC_OK;
  const char *name = what[status[0] - 1];
  if (status[1] < 0) return fail(context, OPC_INVALID_ARGUMENT, "%s of nothing", name);
  return fail(context, OPC_OUT_OF_RANGE, "an index of %s is %lld, outside axis %d of size %lld", name,
              static_cast<long long>(status[2]), static_cast<int>(status[1]), static_cast<long long>(status[3]));
}

}  // namespace opc
#endif  // OPC_CUDA_CALL_H
