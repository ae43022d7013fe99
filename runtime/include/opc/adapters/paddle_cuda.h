/* What makes a generated Paddle library one for GPUs too: a call with a tensor there goes to the op's kernels on that GPU, on Paddle's
 * stream and with Paddle's memory between kernels. Any other call goes to the CPU's kernel.
 *
 * A generated `.cu` file includes this and then the source of the library, which is compiled with PADDLE_WITH_CUDA.
 */
#ifndef OPC_ADAPTERS_PADDLE_CUDA_H
#define OPC_ADAPTERS_PADDLE_CUDA_H

#include <exception>
#include <vector>

#include "opc/adapters/cuda_call.h"

namespace opc {
namespace pd {
class DeviceTarget;
}
}  // namespace opc

/* The stream that Paddle computes a tensor on. */
#ifndef OPC_PADDLE_STREAM
#define OPC_PADDLE_STREAM(tensor) static_cast<void *>((tensor).stream())
#endif

#define OPC_PADDLE_TARGET DeviceTarget
#include "opc/adapters/paddle.h"

namespace opc {
namespace pd {

/* Computes where the tensors of one call lie. */
class DeviceTarget {
 public:
  void see(const char *op, const Tensor &tensor) {
    if (!tensor.is_gpu()) return;
    if (!on_gpu_) {
      on_gpu_ = true;
      place_ = tensor.place();
      stream_ = OPC_PADDLE_STREAM(tensor);
    } else if (tensor.place() != place_) {
      refuse("%s: operands lie on different GPUs", op);
    }
  }

  /* Where results are made. */
  const phi::Place &place() const { return place_; }

  void made(const DLTensor &view, size_t bytes) const {
    if (!on_gpu_) HostTarget::made(view, bytes);
  }

  /* Zeros of any element type. */
  void *zeros() {
    if (!on_gpu_) return HostTarget::zeros();
    blocks_.push_back(::paddle::experimental::full(std::vector<int64_t>{sizeof(uint64_t)}, 0, DataType::UINT8, place_));
    return blocks_.back().data();
  }

  template <class A>
  int32_t infer(const Op<A> &op, const A &attributes, const DLTensor *const *inputs, opc_tensor_type *types, char *message, int64_t size) {
    if (!on_gpu_) return HostTarget::infer(op, attributes, inputs, types, message, size);
    const opc_cuda_context lent = context(message, size);
    return op.device.infer(inputs, &attributes, types, &lent);
  }

  template <class A>
  int32_t compute(const Op<A> &op, const A &attributes, const DLTensor *const *inputs, DLTensor *const *outputs, char *message,
                  int64_t size) {
    if (!on_gpu_) return HostTarget::compute(op, attributes, inputs, outputs, message, size);
    return call_on_device(op.device, op.name, inputs, outputs, attributes, context(message, size));
  }

 private:
  opc_cuda_context context(char *message, int64_t size) {
    return {stream_, place_.GetDeviceId(), allocate, release, this, nullptr, message, size};
  }

  /* Memory of Paddle's, which gives out again what was given back to it in the order of its stream. */
  static void *allocate(void *target, int64_t bytes, void *) {
    DeviceTarget &own = *static_cast<DeviceTarget *>(target);
    try {
      own.blocks_.push_back(::paddle::experimental::empty(std::vector<int64_t>{bytes}, DataType::UINT8, own.place_));
    } catch (const std::exception &) {
      return nullptr; /* the kernels' function says for what there was no memory */
    }
    return own.blocks_.back().data();
  }

  static void release(void *target, void *memory, int64_t, void *) {
    std::vector<Tensor> &blocks = static_cast<DeviceTarget *>(target)->blocks_;
    for (size_t i = blocks.size(); i-- > 0;) {
      if (blocks[i].data() != memory) continue;
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  bool on_gpu_ = false;
  phi::Place place_ = phi::CPUPlace();
  void *stream_ = nullptr;
  std::vector<Tensor> blocks_;
};

}  // namespace pd
}  // namespace opc

#endif /* OPC_ADAPTERS_PADDLE_CUDA_H */
