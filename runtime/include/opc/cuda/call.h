/* What a call does on the host: descriptions of stages as kernels get them, starting kernels, and what these found. */
#ifndef OPC_CUDA_CALL_H
#define OPC_CUDA_CALL_H

#include "opc/cuda/launch_nests.h"
#include "opc/cuda/launch_rows.h"
#include "opc/cuda/launch_tiles.h"
#include "opc/cuda/small_nest.h"

/* Whether a part of a source is compiled here: the one that OPC_PART says, or without it all of them. */
#ifdef OPC_PART
#define OPC_HAS_PART(number) (OPC_PART == (number))
#else
#define OPC_HAS_PART(number) 1
#endif

namespace opc {

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
