/* What makes a generated MindSpore library one for its GPU kernels: operands lie in device memory, in the order of a stream.
 *
 * The kernel computes on the host. Inputs are copied there, and outputs back. Include this file before "opc/adapters/mindspore.h".
 */
#ifndef OPC_ADAPTERS_MINDSPORE_CUDA_H
#define OPC_ADAPTERS_MINDSPORE_CUDA_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include <forward_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace opc {
namespace mindspore {

/* The host's copies of one call's operands. */
class DeviceMemory {
 public:
  explicit DeviceMemory(void *stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  /* Where the kernel reads an input. */
  void *input(void *data, size_t size) {
    void *copy = room(size);
    check(cudaMemcpyAsync(copy, data, size, cudaMemcpyDeviceToHost, stream_));
    return copy;
  }

  /* Where the kernel writes an output. */
  void *output(void *data, size_t size) {
    outputs_.push_back({data, room(size), size});
    return outputs_.back().host;
  }

  /* The inputs are there. */
  void begin() { check(cudaStreamSynchronize(stream_)); }

  /* The outputs are there. */
  void end() {
    for (const Output &o : outputs_) check(cudaMemcpyAsync(o.device, o.host, o.size, cudaMemcpyHostToDevice, stream_));
    check(cudaStreamSynchronize(stream_));
  }

 private:
  struct Output {
    void *device, *host;
    size_t size;
  };

  static void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
  }

  void *room(size_t size) {
    memory_.emplace_front(size + 1);
    return memory_.front().data();
  }

  cudaStream_t stream_;
  std::forward_list<std::vector<char>> memory_;
  std::vector<Output> outputs_;
};

}  // namespace mindspore
}  // namespace opc

#define OPC_MINDSPORE_MEMORY opc::mindspore::DeviceMemory
#include "opc/adapters/mindspore.h"

#endif /* OPC_ADAPTERS_MINDSPORE_CUDA_H */
