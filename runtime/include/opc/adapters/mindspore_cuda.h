/* What makes a generated MindSpore library one for GPUs too: a call with a stream goes to the op's kernels on the current GPU, any other
 * to the CPU's kernel.
 *
 * Memory between kernels is what `FnInit` asks MindSpore for, which calls it once, with the shapes of then. Where these are not known, or
 * a later call needs more, the rest comes from CUDA's own pool, in the order of the stream.
 *
 * A generated `.cu` file includes this and then the source of the library.
 */
#ifndef OPC_ADAPTERS_MINDSPORE_CUDA_H
#define OPC_ADAPTERS_MINDSPORE_CUDA_H

#include <stdint.h>

#include "opc/adapters/arena.h"
#include "opc/adapters/cuda_call.h"

namespace opc {
namespace mindspore {
class DeviceTarget;
}
}  // namespace opc

/* The stream of a call, from the one that MindSpore passes; NULL for a call on the CPU. */
#ifndef OPC_MINDSPORE_STREAM
#define OPC_MINDSPORE_STREAM(stream) (stream)
#endif

#define OPC_MINDSPORE_TARGET DeviceTarget
#include "opc/adapters/mindspore.h"

namespace opc {
namespace mindspore {

inline int32_t current_device() {
#if defined(__CUDACC__)
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : 0;
#else
  return 0;
#endif
}

/* Memory that MindSpore has given to a call, and CUDA's where it is not enough. */
class Workspace : public Arena {
 public:
  using Arena::Arena;

  static void *allocate(void *workspace, int64_t bytes, void *stream) {
    void *memory = static_cast<Workspace *>(workspace)->lend(bytes);
    if (memory != nullptr) return memory;
#if defined(__CUDACC__)
    const cudaStream_t order = static_cast<cudaStream_t>(stream);
    return cudaMallocAsync(&memory, static_cast<size_t>(bytes), order) == cudaSuccess ? memory : nullptr;
#else
    static_cast<void>(stream);
    return malloc(static_cast<size_t>(bytes));
#endif
  }

  static void release(void *workspace, void *memory, int64_t, void *stream) {
    if (static_cast<Workspace *>(workspace)->take(memory)) return;
#if defined(__CUDACC__)
    cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
#else
    static_cast<void>(stream);
    free(memory);
#endif
  }
};

/* Computes where the operands of one call lie. */
class DeviceTarget {
 public:
  explicit DeviceTarget(void *stream)
      : stream_(OPC_MINDSPORE_STREAM(stream)), device_(stream_ == nullptr ? 0 : current_device()) {}

  DLDevice device() const { return {stream_ == nullptr ? kDLCPU : kDLCUDA, device_}; }

  /* `given` is the memory that MindSpore adds to a call because `FnInit` has requested it; NULL for none. */
  template <class A>
  int32_t compute(const Op<A> &op, Call<A> &call, const DLTensor *const *inputs, DLTensor *const *outputs, void *given,
                  const AotExtra *extra) {
    if (stream_ == nullptr) return HostTarget::compute(op, call, inputs, outputs, nullptr, extra);
    Workspace workspace(given, given == nullptr ? 0 : static_cast<int64_t>(extra->workspace[0]));
    const opc_cuda_context lent = {stream_,    device_, Workspace::allocate, Workspace::release,
                                   &workspace, nullptr, call.message,        sizeof call.message};
    return call_on_device(op.device, op.name, inputs, outputs, call.attributes, lent);
  }

 private:
  void *stream_;
  int32_t device_;
};

/* `FnInit`: finds how much memory the kernels need beside the operands, by a call that starts nothing. */
template <class A>
int init(const Op<A> &op, const int *ndims, int64_t **shapes, const char **types, AotExtra *extra) {
  Call<A> call(op, extra);
  Operands operands;
  operands.describe(op, call.arguments, ndims, shapes, types, {kDLCUDA, current_device()});
  for (int i = 0; i < 2 * max_operands; ++i) {
    operands.views[i].data = Arena::fake_address(i + 1);
    for (int32_t axis = 0; operands.is_there(i) && axis < operands.views[i].ndim; ++axis)
      if (operands.views[i].shape[axis] < 0) return 0;
  }
  Workspace workspace(Arena::fake_address(2 * max_operands + 1));
  const opc_cuda_context lent = {OPC_CUDA_MEASURE, operands.device.device_id, Workspace::allocate, Workspace::release,
                                 &workspace,       nullptr,                   call.message,        sizeof call.message};
  const int32_t code = op.device.kernel(operands.inputs, operands.outputs, &call.attributes, &lent);
  /* A call that can't be is refused when it is made. */
  if (code == OPC_OK && workspace.most > 0) extra->workspace = {static_cast<size_t>(workspace.most)};
  return 0;
}

}  // namespace mindspore
}  // namespace opc

#endif /* OPC_ADAPTERS_MINDSPORE_CUDA_H */
