/* What makes a generated Paddle library one for GPUs: operands may lie in device memory, in the order of Paddle's stream.
 *
 * The kernel computes on the host. Inputs are copied there, and outputs back. Include this file before "opc/adapters/paddle.h", and
 * compile with PADDLE_WITH_CUDA.
 */
#ifndef OPC_ADAPTERS_PADDLE_CUDA_H
#define OPC_ADAPTERS_PADDLE_CUDA_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <vector>

#include "opc/core/tensor.h"
#include "paddle/common/enforce.h"
#include "paddle/common/errors.h"
#include "paddle/phi/api/include/api.h"

namespace opc {
namespace pd {

/* The host's copies of one call's operands. Results lie where the first operand in device memory does, or on the host without such. */
class DeviceMemory {
 public:
  /* Where results are made. */
  const phi::Place &place() const { return place_; }

  /* Has the kernel read an input on the host. */
  void input(const ::paddle::Tensor &tensor, DLTensor &view) {
    if (!tensor.is_gpu()) return;
    if (copies_.empty()) {
      place_ = tensor.place();
      stream_ = tensor.stream();
    }
    const Copy &copy = add(view, false);
    check(cudaMemcpyAsync(copy.host.get(), copy.device, copy.size, cudaMemcpyDeviceToHost, stream_));
  }

  /* Has the kernel write a result on the host. */
  void output(const ::paddle::Tensor &tensor, DLTensor &view) {
    if (tensor.is_gpu()) add(view, true);
  }

  /* The kernel writes to an input. */
  void in_place(const DLTensor &view) {
    for (Copy &copy : copies_) copy.changed = copy.changed || copy.host.get() == view.data;
  }

  /* The inputs are there. */
  void begin() const {
    if (!copies_.empty()) check(cudaStreamSynchronize(stream_));
  }

  /* The results are there. */
  void end() const {
    for (const Copy &copy : copies_)
      if (copy.changed) check(cudaMemcpyAsync(copy.device, copy.host.get(), copy.size, cudaMemcpyHostToDevice, stream_));
    begin();
  }

 private:
  struct Copy {
    void *device;
    std::unique_ptr<char[]> host;
    size_t size;
    bool changed;
  };

  static void check(cudaError_t error) {
    if (error != cudaSuccess)
      throw ::common::enforce::EnforceNotMet(::common::errors::External("CUDA: %s", cudaGetErrorString(error)), __FILE__, __LINE__);
  }

  /* The bytes from a view's first element to its last. */
  static size_t extent(const DLTensor &view) {
    int64_t last = 0, dense = 1;
    for (int32_t axis = view.ndim - 1; axis >= 0; --axis) {
      if (view.shape[axis] == 0) return 0;
      last += (view.shape[axis] - 1) * (view.strides == nullptr ? dense : view.strides[axis]);
      dense *= view.shape[axis];
    }
    return static_cast<size_t>(last + 1) * (view.dtype.bits / 8);
  }

  const Copy &add(DLTensor &view, bool changed) {
    const size_t size = extent(view);
    copies_.push_back({view.data, std::unique_ptr<char[]>(new char[size + 1]), size, changed});
    view.data = copies_.back().host.get();
    view.device = {kDLCPU, 0};
    return copies_.back();
  }

  phi::Place place_ = phi::CPUPlace();
  cudaStream_t stream_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace pd
}  // namespace opc

#define OPC_PADDLE_MEMORY opc::pd::DeviceMemory
#include "opc/adapters/paddle.h"

#endif /* OPC_ADAPTERS_PADDLE_CUDA_H */
