/* What the cffi binding of every op shares: from a prepared call and data pointers to the tensors a kernel takes. C11. */
#ifndef OPC_ADAPTERS_NUMPY_H
#define OPC_ADAPTERS_NUMPY_H

#include "opc/abi.h"
#include "opc/core/threads.h"

/* A data pointer is not a multiple of its element's size: Python then copies, or refuses. Beside the codes of opc_code. */
enum { OPC_MISALIGNED = -1 };

static _Thread_local char opc_message_text[1024];

/* What the last call on this thread that failed had to say. */
static const char *opc_message(void) { return opc_message_text; }

static inline opc_context opc_host(void) {
  const opc_context context = {
      .parallel_for = opc_parallel_for, .message = opc_message_text, .message_size = sizeof opc_message_text};
  return context;
}

/* Points `inputs` at the tensors of a plan, which have no data: all that inference needs. */
static inline void opc_bind_inputs(const DLTensor *plan, int32_t count, const DLTensor **inputs) {
  for (int32_t i = 0; i < count; i++) inputs[i] = plan[i].ndim < 0 ? NULL : &plan[i];
}

/* Copies the tensors of a prepared call from `plan` (shapes, strides and dtypes of all inputs, then all outputs) to `tensors`, gives
 * them their data, and points `inputs` and `outputs` at them. An absent operand has a negative rank in the plan. Returns 0 when a
 * pointer is misaligned. */
static inline int opc_bind(const DLTensor *plan, const void *const *data, DLTensor *tensors, int32_t input_count,
                           const DLTensor **inputs, int32_t output_count, DLTensor **outputs) {
  for (int32_t i = 0; i < input_count + output_count; i++) {
    DLTensor *tensor = plan[i].ndim < 0 ? NULL : &tensors[i];
    if (tensor != NULL) {
      *tensor = plan[i];
      tensor->data = (void *)data[i];
      const uintptr_t size = (tensor->dtype.bits + 7u) / 8; /* a power of two */
      if (((uintptr_t)data[i] & (size - 1)) != 0) return 0;
    }
    if (i < input_count)
      inputs[i] = tensor;
    else
      outputs[i - input_count] = tensor;
  }
  return 1;
}

#endif /* OPC_ADAPTERS_NUMPY_H */
