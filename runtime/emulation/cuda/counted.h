/* Calls of an op's kernels, counted, in libraries for GPUs on a machine without one: the framework's tensors in the host's memory count as
 * a GPU's, and the CPU executes the kernels.
 *
 * A framework's header of this folder includes it before the library's source. */
#ifndef OPC_EMULATION_CUDA_COUNTED_H
#define OPC_EMULATION_CUDA_COUNTED_H

#include <stdint.h>

#include "opc/adapters/cuda_call.h"

/* Calls of kernels, pieces of memory that they got and gave back, how often another stream than the framework's was seen, and the bytes
 * that the last call got. */
extern "C" {
__attribute__((visibility("default"))) int64_t emulated_calls[5];
}

/* The framework's stream, by its address. */
static char emulated_stream;

namespace {

enum counted { calls, got, given_back, astray, bytes_got };

/* Kernels' functions with the framework's context, whose allocator is looked at. */
template <auto kernel>
struct Counted;

template <class A, int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *)>
struct Counted<kernel> {
  static int32_t call(const DLTensor *const *inputs, DLTensor *const *outputs, const A *attributes, const opc_cuda_context *lent) {
    if (lent->stream == OPC_CUDA_MEASURE) return kernel(inputs, outputs, attributes, lent);
    ++emulated_calls[calls];
    emulated_calls[bytes_got] = 0;
    see(lent->stream);
    opc_cuda_context own = *lent;
    own.allocate = allocate;
    own.release = release;
    own.allocator = const_cast<opc_cuda_context *>(lent);
    return kernel(inputs, outputs, attributes, &own);
  }

 private:
  static void see(const void *stream) { emulated_calls[astray] += stream != &emulated_stream; }

  static void *allocate(void *lent, int64_t bytes, void *stream) {
    const opc_cuda_context &own = *static_cast<const opc_cuda_context *>(lent);
    ++emulated_calls[got];
    emulated_calls[bytes_got] += bytes;
    see(stream);
    return own.allocate(own.allocator, bytes, stream);
  }

  static void release(void *lent, void *memory, int64_t bytes, void *stream) {
    const opc_cuda_context &own = *static_cast<const opc_cuda_context *>(lent);
    ++emulated_calls[given_back];
    see(stream);
    own.release(own.allocator, memory, bytes, stream);
  }
};

}  // namespace

#undef OPC_ON_DEVICE
#define OPC_ON_DEVICE(op, family) \
  {opc_##op##_cuda_infer, Counted<opc_##op##_cuda>::call, opc_##family##_cuda_status, opc_##family##_cuda_faults}

#endif /* OPC_EMULATION_CUDA_COUNTED_H */
