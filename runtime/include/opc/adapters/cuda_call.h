/* Calls of kernels on a GPU for a framework that never asks what they have found in data, such as an index outside its axis.
 *
 * Behind the kernels of a call that may find something comes one that looks at the status. Where something was found, it shows it to the
 * host, prints it, and stops the GPU, as a failed assertion in CUDA does: who waits for the results gets an error and not the results.
 * A call that sees what its own kernels or earlier ones have found returns the message that the CPU's function would have returned.
 *
 * For one source of a library, which nvcc compiles, or a C++ compiler that executes kernels on the CPU.
 */
#ifndef OPC_ADAPTERS_CUDA_CALL_H
#define OPC_ADAPTERS_CUDA_CALL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "opc/cuda/abi.h"
#include "opc/cuda/device.h"
#include "opc/cuda/device_guard.h"

#define OPC_ON_DEVICE(op, family) \
  {opc_##op##_cuda_infer, opc_##op##_cuda, opc_##family##_cuda_status, opc_##family##_cuda_faults}
#include "opc/adapters/on_device.h"

namespace opc {
namespace {

#if defined(__CUDACC__)
#define OPC_OF_DEVICE __device__
#else
#define OPC_OF_DEVICE
#endif

/* What kernels have found, on each device. */
OPC_OF_DEVICE int64_t found_in_data[OPC_CUDA_STATUS_WORDS];

struct op_title {
  char text[64];
};

OPC_KERNEL(1) show_found(int64_t *found, volatile int64_t *shown, op_title op) {
  if (found[0] == 0) return;
  for (int i = 1; i < OPC_CUDA_STATUS_WORDS; ++i) shown[i] = found[i];
#if defined(__CUDACC__)
  __threadfence_system();
  shown[0] = found[0];
  __threadfence_system();
  if (found[1] < 0) {
    printf("%s: a reduction of nothing has no value\n", op.text);
  } else {
    printf("%s: an index is %lld, outside axis %lld of size %lld\n", op.text, static_cast<long long>(found[2]),
           static_cast<long long>(found[1]), static_cast<long long>(found[3]));
  }
  __trap();
#else
  static_cast<void>(op);
  shown[0] = found[0];
  memset(found, 0, sizeof found_in_data);
#endif
}

/* Where kernels write what they find, and where the host sees it; null where that can't be had. */
struct found_places {
  int64_t *found = nullptr;
  volatile int64_t *shown = nullptr;
};

/* The places of a device, of which the host's is made once, and never given back. */
inline found_places places_of(int32_t device) {
  constexpr int32_t most_devices = 64;
  static std::atomic<int64_t *> every_found[most_devices];
  static std::atomic<volatile int64_t *> every_shown[most_devices];
  if (device < 0 || device >= most_devices) return {};
  const found_places places = {every_found[device].load(), every_shown[device].load()};
  if (places.found != nullptr && places.shown != nullptr) return places;
#if defined(__CUDACC__)
  void *found = nullptr, *shown = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; /* this is no work of a stream that may be captured */
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (cudaGetSymbolAddress(&found, found_in_data) == cudaSuccess &&
      cudaHostAlloc(&shown, sizeof found_in_data, cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess) {
    memset(shown, 0, sizeof found_in_data);
    every_found[device] = static_cast<int64_t *>(found);
    volatile int64_t *none = nullptr; /* another thread may have been faster */
    if (!every_shown[device].compare_exchange_strong(none, static_cast<volatile int64_t *>(shown))) cudaFreeHost(shown);
  }
  cudaThreadExchangeStreamCaptureMode(&mode);
#else
  static int64_t shown[OPC_CUDA_STATUS_WORDS];
  every_found[device] = found_in_data;
  every_shown[device] = shown;
#endif
  return {every_found[device].load(), every_shown[device].load()};
}

/* The code and the message of what the host can see now. */
template <class A>
int32_t told(const OnDevice<A> &op, volatile int64_t *shown, const opc_cuda_context &lent) {
  if (shown[0] == 0) return OPC_OK;
  int64_t words[OPC_CUDA_STATUS_WORDS];
  for (int i = 0; i < OPC_CUDA_STATUS_WORDS; ++i) words[i] = shown[i];
  shown[0] = 0;
  return op.status(words, &lent);
}

/* Starts the kernels of an op; its code. `name` is what is printed. Where it is not in the library of the kernels, they are called by
 * `opc_array_call`, which OPC_ARRAY_CALL defines. */
template <class A>
int32_t call_on_device(const OnDevice<A> &op, const char *name, const DLTensor *const *inputs, DLTensor *const *outputs,
                       const A &attributes, opc_cuda_context lent) {
  if (op.faults == 0) return op.kernel(inputs, outputs, &attributes, &lent);
  const device_guard guard(&lent);
  const found_places places = places_of(lent.device);
  if (places.found == nullptr) {
    snprintf(lent.message, static_cast<size_t>(lent.message_size), "%s: there is no memory for a status", name);
    return OPC_OUT_OF_MEMORY;
  }
  int32_t code = told(op, places.shown, lent);
  if (code != OPC_OK) {
    const size_t length = strlen(lent.message);
    snprintf(lent.message + length, static_cast<size_t>(lent.message_size) - length, " (in an earlier call)");
    return code;
  }
  lent.status = places.found;
  code = op.kernel(inputs, outputs, &attributes, &lent);
  if (code != OPC_OK) return code;
  op_title title;
  snprintf(title.text, sizeof title.text, "%s", name);
  OPC_LAUNCH(show_found, false, 1, 1, 0, lent.stream, places.found, places.shown, title);
  return told(op, places.shown, lent);
}

}  // namespace
}  // namespace opc

/* A function of the library of a family's kernels that starts one of them so. */
#define OPC_ARRAY_CALL(family)                                                                                                    \
  extern "C" OPC_EXPORT int32_t opc_array_call(decltype(&opc_##family##_cuda) kernel, const char *name,                           \
                                               const DLTensor *const *inputs, DLTensor *const *outputs,                           \
                                               const opc_##family##_attributes *attributes, const opc_cuda_context *lent) {       \
    const opc::OnDevice<opc_##family##_attributes> op = {nullptr, kernel, opc_##family##_cuda_status, opc_##family##_cuda_faults}; \
    return opc::call_on_device(op, name, inputs, outputs, *attributes, *lent);                                                    \
  }

#endif /* OPC_ADAPTERS_CUDA_CALL_H */
