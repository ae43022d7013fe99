/* An op's functions on a GPU, for adapters that serve the CPU and, in a twin of their source, GPUs too.
 *
 * A twin includes "opc/adapters/cuda_call.h" first; elsewhere an op has none of these functions.
 */
#ifndef OPC_ADAPTERS_ON_DEVICE_H
#define OPC_ADAPTERS_ON_DEVICE_H

#include <stdint.h>

#include "opc/abi.h"

struct opc_cuda_context;

namespace opc {

/* `A` is the family's attribute struct. `faults` is how many kinds of mistakes its kernels find in data. */
template <class A>
struct OnDevice {
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_cuda_context *);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_cuda_context *);
  int32_t (*status)(const int64_t *, const opc_cuda_context *);
  int32_t faults;
};

}  // namespace opc

#ifndef OPC_ON_DEVICE
#define OPC_ON_DEVICE(op, family) {nullptr, nullptr, nullptr, 0}
#endif

#endif /* OPC_ADAPTERS_ON_DEVICE_H */
