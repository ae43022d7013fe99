/* Calls on a GPU from a generated PyTorch library, which loads in a torch for CPUs all the same: what they need is looked up when the
 * first of them comes.
 *
 * Kernels are those of `lib<op>_cuda.so` beside the library. Those that find a mistake in data note it down where that has been asked for;
 * elsewhere they are called by `opc_array_call` of their library, which stops the GPU then; see opc/adapters/cuda_call.h. Stream and device are torch's current ones, and memory between kernels
 * comes from torch's allocator, so that a call can be captured in a CUDA graph. Nothing waits for the device.
 */
#ifndef OPC_ADAPTERS_TORCH_CUDA_H
#define OPC_ADAPTERS_TORCH_CUDA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opc/adapters/cuda_library.h"
#include "opc/adapters/torch_shim.h"
#include "opc/cuda/abi.h"

namespace opc {
namespace torch {

/* The functions of libtorch_cuda.so that are called here; they are declared in torch/csrc/inductor/aoti_torch/c/shim.h. */
struct CudaShim {
  int32_t (*current_stream)(int32_t device, void **stream);
  int32_t (*create_guard)(int32_t device, void **guard);
  int32_t (*delete_guard)(void *guard);
};

/* The library with a family's kernels for GPUs, beside that of this code, and what its calls need of torch. */
class CudaLibrary : public ::opc::CudaLibrary {
 public:
  enum { most_devices = 64 };

  CudaShim shim = {};

  /* Loads it where that has not been done; false, with the reason, where it can't be. Threads that do so at once do the same. */
  bool load(const char *op, const Message &message) {
    if (is_loaded()) return true;
    void *torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!torch || !find(torch, shim.current_stream, "aoti_torch_get_current_cuda_stream") ||
        !find(torch, shim.create_guard, "aoti_torch_create_cuda_guard") ||
        !find(torch, shim.delete_guard, "aoti_torch_delete_cuda_guard"))
      return message.refuse("%s: this torch has no CUDA", op);
    return ::opc::CudaLibrary::load(op, dlsym(torch, "torch_cuda_is_emulated") != nullptr, message);
  }

  /* The words that kernels on a device report in; see opc/cuda/abi.h. */
  int64_t *status(int32_t device) const {
    return device < most_devices ? __atomic_load_n(&status_[device], __ATOMIC_ACQUIRE) : nullptr;
  }
  bool lend_status(int32_t device, int64_t *words) {
    if (device < 0 || device >= most_devices) return false;
    __atomic_store_n(&status_[device], words, __ATOMIC_RELEASE);
    return true;
  }

 private:
  int64_t *status_[most_devices] = {};
};

static CudaLibrary cuda_library;

/* One op on a GPU: the name of its functions, and for messages those of its inputs and then of its outputs, between blanks. */
struct CudaOp {
  const char *name;
  const char *operands;
  void *infer = nullptr;
  void *kernel = nullptr;
  void *call = nullptr; /* NULL where kernels find no mistakes in data */

  constexpr CudaOp(const char *own, const char *of) : name(own), operands(of) {}

  bool load(const char *op, const Message &message) {
    if (__atomic_load_n(&kernel, __ATOMIC_ACQUIRE)) return true;
    if (!cuda_library.load(op, message)) return false;
    void *found[] = {cuda_library.function(name, "_cuda_infer"), cuda_library.function(name, "_cuda")};
    if (!found[0] || !found[1]) return message.refuse("%s: there is no kernel of it for GPUs", op);
    __atomic_store_n(&infer, found[0], __ATOMIC_RELAXED);
    __atomic_store_n(&call, cuda_library.function("array_call", ""), __ATOMIC_RELAXED);
    __atomic_store_n(&kernel, found[1], __ATOMIC_RELEASE);
    return true;
  }
};

/* What torch lends to one call on a GPU. */
class CudaCall {
 public:
  opc_cuda_context context = {};

  CudaCall() = default;
  CudaCall(const CudaCall &) = delete;
  CudaCall &operator=(const CudaCall &) = delete;
  ~CudaCall() {
    release();
    if (guard_) cuda_library.shim.delete_guard(guard_);
  }

  /* Makes a device the current one until the call has ended, and takes its current stream. */
  bool begin(CudaOp &of, const char *op, int32_t device, const Message &message) {
    if (!of.load(op, message)) return false;
    void *stream = nullptr;
    if (cuda_library.shim.create_guard(device, &guard_) != 0 || cuda_library.shim.current_stream(device, &stream) != 0)
      return message.refuse("%s: torch can't use cuda:%d", op, static_cast<int>(device));
    context = {stream,       device, allocate, nullptr, this, cuda_library.status(device), message.text,
               static_cast<int64_t>(message.size)};
    return true;
  }

  /* Gives the memory back that kernels were lent: torch lends it out again in the order of the stream. */
  void release() {
    while (lent_) {
      Block *block = lent_;
      lent_ = block->previous;
      aoti_torch_delete_tensor_object(block->tensor);
      free(block);
    }
  }

 private:
  struct Block {
    Block *previous;
    AtenTensorHandle tensor;
  };

  static void *allocate(void *call, int64_t bytes, void *) {
    CudaCall *self = static_cast<CudaCall *>(call);
    Block *block = static_cast<Block *>(malloc(sizeof(Block)));
    const int64_t stride = 1;
    const int32_t type = aoti_torch_device_type_cuda();
    if (!block || aoti_torch_empty_strided(1, &bytes, &stride, aoti_torch_dtype_uint8(), type, self->context.device, &block->tensor)) {
      free(block);
      return nullptr;
    }
    block->previous = self->lent_;
    self->lent_ = block;
    void *data = nullptr;
    torch_get_mutable_data_ptr(block->tensor, &data);
    return data;
  }

  void *guard_ = nullptr;
  Block *lent_ = nullptr;
};

/* Where a tensor is, as kernels number devices; elsewhere than in the CPU's memory and a GPU's is 0. */
inline DLDevice device_of(AtenTensorHandle tensor) {
  int32_t type = -1, index = 0;
  aoti_torch_get_device_type(tensor, &type);
  aoti_torch_get_device_index(tensor, &index);
  if (type == aoti_torch_device_type_cpu()) return {kDLCPU, 0};
  return {type == aoti_torch_device_type_cuda() ? kDLCUDA : 0, index};
}

/* The name of an operand by its position among those of an op. */
struct OperandText {
  char text[128];
  OperandText(const char *names, int position) {
    while (position-- > 0) names += strcspn(names, " ") + 1;
    snprintf(text, sizeof text, "%.*s", static_cast<int>(strcspn(names, " ")), names);
  }
};

/* A device as torch writes it. */
struct DeviceText {
  char text[32];
  explicit DeviceText(const DLDevice &device) {
    if (device.device_type == kDLCUDA)
      snprintf(text, sizeof text, "cuda:%d", static_cast<int>(device.device_id));
    else
      snprintf(text, sizeof text, "%s", device.device_type == kDLCPU ? "cpu" : "another device");
  }
};

}  // namespace torch
}  // namespace opc

/* Has the kernels of a device report in these words of its memory, which are to be zeros; 0 where that is done. */
extern "C" OPC_EXPORT int32_t opc_torch_lend_status(int32_t device, int64_t *words) {
  return opc::torch::cuda_library.lend_status(device, words) ? 0 : 1;
}

/* The code of what was reported, given the words on the host, and a message; 0 for nothing. */
extern "C" OPC_EXPORT int32_t opc_torch_status(const int64_t *words, char *text, int64_t size) {
  const opc::torch::CudaLibrary &library = opc::torch::cuda_library;
  if (words[0] == 0) return OPC_OK;
  opc_cuda_context context = {};
  context.message = text;
  context.message_size = size;
  void *found = library.function(library.family(), "_cuda_status");
  int32_t (*status)(const int64_t *, const opc_cuda_context *) = nullptr;
  memcpy(&status, &found, sizeof found);
  return status ? status(words, &context) : OPC_OK;
}

#endif /* OPC_ADAPTERS_TORCH_CUDA_H */
