/* The twin for GPUs on a machine without one: Paddle's tensors in host memory count as a GPU's, kernels are executed on the CPU, and what
 * they are called with is counted. TWIN is the path of the twin. */
#include <cstdint>

#include "paddle/common/enforce.h"
#include "paddle/common/errors.h"
#include "paddle/phi/api/ext/op_meta_info.h"
#include "paddle/phi/api/include/api.h"

#include "opc/adapters/cuda_call.h"

/* Calls of kernels, pieces of memory that they got and gave back, and how often another stream than Paddle's was seen. */
extern "C" {
__attribute__((visibility("default"))) int emulated_calls[4];
}

static char paddles_stream;

namespace {

enum counted { calls, got, given_back, astray };

void see(const void *stream) { emulated_calls[astray] += stream != &paddles_stream; }

void *allocate(void *lent, int64_t bytes, void *stream) {
  const opc_cuda_context &own = *static_cast<const opc_cuda_context *>(lent);
  ++emulated_calls[got];
  see(stream);
  return own.allocate(own.allocator, bytes, stream);
}

void release(void *lent, void *memory, int64_t bytes, void *stream) {
  const opc_cuda_context &own = *static_cast<const opc_cuda_context *>(lent);
  ++emulated_calls[given_back];
  see(stream);
  own.release(own.allocator, memory, bytes, stream);
}

template <auto kernel>
struct Counted;

template <class A, int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *)>
struct Counted<kernel> {
  static int32_t call(const DLTensor *const *inputs, DLTensor *const *outputs, const A *attributes, const opc_cuda_context *lent) {
    ++emulated_calls[calls];
    see(lent->stream);
    opc_cuda_context own = *lent;
    own.allocate = allocate;
    own.release = release;
    own.allocator = const_cast<opc_cuda_context *>(lent);
    return kernel(inputs, outputs, attributes, &own);
  }
};

}  // namespace

#undef OPC_ON_DEVICE
#define OPC_ON_DEVICE(op, family) \
  {opc_##op##_cuda_infer, Counted<opc_##op##_cuda>::call, opc_##family##_cuda_status, opc_##family##_cuda_faults}
#define OPC_PADDLE_STREAM(tensor) &paddles_stream
#define is_gpu is_cpu
#include TWIN
