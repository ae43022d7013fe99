/* CUDA's words for a C++ compiler: blocks of one thread each, run one after the other on the host. It shows what a kernel computes and not
 * that its threads agree. */
#ifndef OPC_CUDA_HOST_H
#define OPC_CUDA_HOST_H

#define __global__
#define OPC_LAUNCH(kernel, blocks, stream, ...)                     \
  do {                                                              \
    static_cast<void>(stream);                                      \
    gridDim.x = static_cast<unsigned>(blocks);                      \
    for (unsigned block = 0; block < gridDim.x; ++block) {          \
      blockIdx.x = block;                                           \
      kernel(__VA_ARGS__);                                          \
    }                                                               \
  } while (0)

namespace opc {
struct launch_index {
  unsigned x;
};
}  // namespace opc

static opc::launch_index blockIdx = {0}, threadIdx = {0}, gridDim = {1}, blockDim = {1};

#endif  // OPC_CUDA_HOST_H
