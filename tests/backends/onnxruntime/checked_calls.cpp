/* In place of a package's cuda/arrays.cu, which is included as ARRAYS: each call of a kernel is checked to be on the stream, the device and
 * in the memory of the provider of runtime/emulation/cuda/onnxruntime.cpp. */
#define opc_array_call unchecked_array_call
#include ARRAYS
#undef opc_array_call

#include <stdio.h>
#include <stdlib.h>

extern "C" {

const void *emulated_stream();
int emulated_device();
bool emulated_owns(const void *address, bool for_stream);

OPC_EXPORT int emulated_calls = 0, emulated_scratch = 0;

static void hold(bool held, const char *what) {
  if (held) return;
  fprintf(stderr, "a call of a kernel: %s\n", what);
  abort();
}

static void see(const DLTensor *tensor) {
  if (tensor == nullptr) return;
  hold(tensor->device.device_type == kDLCUDA && tensor->device.device_id == emulated_device(), "a tensor is on another device");
  bool empty = false;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) empty = empty || tensor->shape[axis] == 0;
  hold(empty || emulated_owns(tensor->data, false), "a tensor is not in the provider's memory");
}

static void *take(void *lent, int64_t bytes, void *stream) {
  const opc_cuda_context *given = static_cast<const opc_cuda_context *>(lent);
  void *memory = given->allocate(given->allocator, bytes, stream);
  hold(memory != nullptr && emulated_owns(memory, true), "memory between kernels is not the provider's for the stream");
  ++emulated_scratch;
  return memory;
}

static void give_back(void *lent, void *memory, int64_t bytes, void *stream) {
  const opc_cuda_context *given = static_cast<const opc_cuda_context *>(lent);
  given->release(given->allocator, memory, bytes, stream);
}

/* How many operands the ops have: those that are not given are NULL. */
OPC_EXPORT int32_t opc_array_call(decltype(&opc_picked_cuda) kernel, const char *name, const DLTensor *const *inputs,
                                  DLTensor *const *outputs, const opc_picked_attributes *attributes, const opc_cuda_context *lent) {
  const bool backward = strcmp(name, "PickedBackward") == 0;
  for (int i = 0; i < (backward ? 5 : 3); ++i) see(inputs[i]);
  for (int i = 0; i < 2; ++i) see(outputs[i]);
  hold(lent->stream == emulated_stream() && lent->device == emulated_device(), "it is on another stream or device");
  hold(lent->status == nullptr && lent->message_size > 0, "it has no place for a message");
  ++emulated_calls;
  opc_cuda_context checked = *lent;
  checked.allocate = take;
  checked.release = give_back;
  checked.allocator = const_cast<opc_cuda_context *>(lent);
  return unchecked_array_call(kernel, name, inputs, outputs, attributes, &checked);
}

}  // extern "C"
