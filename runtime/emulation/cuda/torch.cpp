/* What a torch for CPUs lacks of libtorch_cuda.so, for two GPUs whose memory is the host's: devices that autograd may ask about, and the
 * functions that opc's libraries look up. What these are called with is counted. */
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

constexpr c10::DeviceType CUDA = c10::DeviceType::CUDA;
thread_local int32_t current = 0;

struct Guard final : c10::impl::NoOpDeviceGuardImpl<CUDA> {
  c10::Device exchangeDevice(c10::Device device) const override {
    const int32_t before = current;
    setDevice(device);
    return {CUDA, static_cast<c10::DeviceIndex>(before)};
  }
  c10::Device getDevice() const override { return {CUDA, static_cast<c10::DeviceIndex>(current)}; }
  void setDevice(c10::Device device) const override { current = device.index() < 0 ? 0 : device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index() < 0 ? 0 : device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

}  // namespace

namespace at {

using ::CUDAHooks;
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at


extern "C" {

/* Guards made and deleted, the device of the last one, and for which device a stream was asked for last. */
int32_t emulated_guards[4] = {0, 0, -1, -1};

int32_t torch_cuda_is_emulated() { return 1; }

int32_t aoti_torch_create_cuda_guard(int32_t device, void **guard) {
  *guard = new int32_t(current);
  current = device;
  ++emulated_guards[0];
  emulated_guards[2] = device;
  return 0;
}

int32_t aoti_torch_delete_cuda_guard(void *guard) {
  current = *static_cast<int32_t *>(guard);
  delete static_cast<int32_t *>(guard);
  ++emulated_guards[1];
  return 0;
}

int32_t aoti_torch_get_current_cuda_stream(int32_t device, void **stream) {
  *stream = nullptr;
  emulated_guards[3] = device;
  return 0;
}

}  // extern "C"
