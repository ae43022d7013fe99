/* The C ABI of kernels on a GPU, beside that of opc/abi.h:
 *
 *   int32_t opc_NAME_cuda(const DLTensor *const *inputs, DLTensor *const *outputs,
 *                         const opc_FORWARD_attributes *attributes, const opc_cuda_context *context);
 *   int32_t opc_NAME_cuda_infer(const DLTensor *const *inputs, const opc_FORWARD_attributes *attributes,
 *                               opc_tensor_type *outputs, const opc_cuda_context *context);
 *   int32_t opc_FORWARD_cuda_status(const int64_t *status, const opc_cuda_context *context);
 *
 * Tensors lie in the memory of one GPU (kDLCUDA). A call checks what the CPU's function checks, with the same messages, starts kernels
 * on the context's stream, and returns before they are done. It never waits for the device, and gets memory from the context alone, so
 * that it can be captured in a CUDA graph.
 *
 * What only the data tell, such as an index outside its axis, is found on the device: nothing outside is read, what depends on it has
 * no value, and the first that is found is written to `status`. The host copies these words when it likes, and the third function
 * returns the code and the message that the CPU's function would have returned.
 *
 * A call on the stream OPC_CUDA_MEASURE starts nothing and reads no tensor: it asks `allocate` for the memory that the same call would need,
 * which depends on sizes and types alone, so that a host that gives workspace beforehand knows how much. Memory that is got need not be
 * there, but has to lie elsewhere than the operands. With greater sizes a call needs as much or more, but for OPC_CUDA_PARTS_BYTES.
 */
#ifndef OPC_CUDA_ABI_H
#define OPC_CUDA_ABI_H

#include "opc/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPC_CUDA_MEASURE ((void *)(intptr_t)-1)

enum {
  OPC_CUDA_PARTS_BYTES = 1 << 24, /* the most that parts of long sums take, of which there are none where points are many */
  OPC_CUDA_STATUS_WORDS = 4, /* what was found, 0 for nothing; the axis; the value; the size */
  OPC_DEVICE_FAILED = 4      /* beside the codes of opc_code: a kernel could not be started */
};

/* What the host lends to a call. */
typedef struct opc_cuda_context {
  void *stream;   /* a cudaStream_t */
  int32_t device; /* the tensors' */
  /* Memory on the device for what lies between kernels, aligned to 256 bytes, in the order of the stream; NULL where there is none. What
   * was got is given back when all kernels of the call have been started. */
  void *(*allocate)(void *allocator, int64_t bytes, void *stream);
  void (*release)(void *allocator, void *memory, int64_t bytes, void *stream);
  void *allocator;
  /* OPC_CUDA_STATUS_WORDS words on the device, zeros before the first call; NULL: nobody asks. */
  int64_t *status;
  /* Where a message about a failed call goes: at most message_size bytes with the final NUL. */
  char *message;
  int64_t message_size;
} opc_cuda_context;

#ifdef __cplusplus
}
#endif
#endif /* OPC_CUDA_ABI_H */
