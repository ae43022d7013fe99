/* The C ABI of every kernel opc generates.
 *
 * A kernel is one function per op:
 *
 *   int32_t opc_NAME(const DLTensor *const *inputs, DLTensor *const *outputs,
 *                    const opc_FORWARD_attributes *attributes, const opc_context *context);
 *
 * inputs and outputs stand in the order of the op's signature, which the comment above each function has. A NULL input is an
 * optional operand that was not given; a NULL output is an optional output that is not wanted, and is not computed. Inputs may
 * have any strides, zero and negative ones included (strides NULL means contiguous); outputs are contiguous and may not overlap
 * other memory that the kernel touches, except where the op is declared in place. Returns OPC_OK, or another opc_code after
 * writing a message to context->message.
 *
 * Beside it stands the function that says what the outputs must look like, which checks the call the same way:
 *
 *   int32_t opc_NAME_infer(const DLTensor *const *inputs, const opc_FORWARD_attributes *attributes,
 *                          opc_tensor_type *outputs, const opc_context *context);
 *
 * With inputs NULL it checks the attributes alone. It reads no data, so data pointers may be NULL there. Both are safe to call
 * from several threads at once and never throw.
 */
#ifndef OPC_ABI_H
#define OPC_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "opc/core/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define OPC_EXPORT __declspec(dllexport)
#else
#define OPC_EXPORT __attribute__((visibility("default")))
#endif

enum { OPC_MAX_RANK = 32 };

typedef enum opc_code {
  OPC_OK = 0,
  OPC_INVALID_ARGUMENT = 1, /* a wrong dtype, rank, size, attribute or layout: the caller's mistake */
  OPC_OUT_OF_RANGE = 2,     /* a data-dependent index outside its axis */
  OPC_OUT_OF_MEMORY = 3
} opc_code;

/* The dtype and shape an output must have. */
typedef struct opc_tensor_type {
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[OPC_MAX_RANK];
} opc_tensor_type;

typedef void (*opc_range_body)(void *argument, int64_t begin, int64_t end);

/* What the host lends to a call. Every member may be NULL or 0; a NULL context is an all-zero one. */
typedef struct opc_context {
  /* Runs body(argument, b, e) over disjoint ranges that cover [0, count), each about `grain` long or longer, on the host's
   * threads, and returns when all are done. NULL: the kernel runs on the calling thread. */
  void (*parallel_for)(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);
  void *pool;
  /* Where a message about a failed call goes: at most message_size bytes with the final NUL. */
  char *message;
  int64_t message_size;
} opc_context;

#ifdef __cplusplus
}
#endif
#endif /* OPC_ABI_H */
