/* An execution provider for an ONNX Runtime without CUDA that is called CUDA's: a GPU, the second of two, whose memory is the host's.
 *
 * It takes every node that has a kernel for it, which custom ops have, and has kernels of its own for nothing but copies. It counts what
 * a library does with its memory and streams. Its interface is described in ONNX Runtime's onnxruntime_ep_c_api.h.
 */
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "opc/adapters/onnxruntime.h"

using namespace opc::ort;

namespace {

constexpr uint32_t kVersion = 24;
constexpr uint32_t kNvidia = 0x10de;
constexpr int kGpu = 1, kDevice = 1, kMostTypes = 16;
constexpr char kName[] = "CUDAExecutionProvider";

struct EpDevice;
struct EpApi;
struct Graph;
struct GraphSupport;
struct HardwareDevice;
struct KernelBuilder;
struct KernelDefinition;
struct KernelRegistry;
struct MemoryDevice;
struct Node;
struct SyncStream;
struct DataType;

using HardwareDeviceType = Entry<307, int(const HardwareDevice *)>;
using GetEpApi = Entry<317, const Api *()>;
using GetTensorSize = Entry<318, Status *(const Value *, size_t *)>;
using CreateMemoryInfo = Entry<320, Status *(const char *, int, uint32_t, int32_t, int, size_t, int, MemoryInfo **)>;
using GraphNodeCount = Entry<344, Status *(const Graph *, size_t *)>;
using GraphNodes = Entry<345, Status *(const Graph *, const Node **, size_t)>;

/* Functions of OrtEpApi, a table of its own. */
using CreateEpDevice = Entry<0, Status *(struct Factory *, const HardwareDevice *, const void *, const void *, EpDevice **)>;
using AddSingleNode = Entry<3, Status *(GraphSupport *, const Node *)>;
using AddAllocatorInfo = Entry<5, Status *(EpDevice *, const MemoryInfo *)>;
using DeviceTypeOf = Entry<9, int(const MemoryDevice *)>;
using CreateKernelRegistry = Entry<18, Status *(KernelRegistry **)>;
using AddKernel = Entry<20, Status *(KernelRegistry *, const KernelDefinition *, Status *(*)(void *, const KernelInfo *, void **), void *)>;
using CreateKernelBuilder = Entry<21, Status *(KernelBuilder **)>;
using SetOperatorType = Entry<23, Status *(KernelBuilder *, const char *)>;
using SetDomain = Entry<24, Status *(KernelBuilder *, const char *)>;
using SetSinceVersion = Entry<25, Status *(KernelBuilder *, int, int)>;
using SetProvider = Entry<26, Status *(KernelBuilder *, const char *)>;
using SetInputMemory = Entry<27, Status *(KernelBuilder *, size_t, int)>;
using SetOutputMemory = Entry<28, Status *(KernelBuilder *, size_t, int)>;
using AddTypeConstraint = Entry<29, Status *(KernelBuilder *, const char *, const DataType *const *, size_t)>;
using BuildKernel = Entry<32, Status *(KernelBuilder *, KernelDefinition **)>;
using GetTensorType = Entry<40, Status *(int, const DataType **)>;
using LookUpKernel = Entry<41, Status *(GraphSupport *, const Node *, const KernelDefinition **)>;

const Api *api = nullptr, *ep_api = nullptr;
MemoryInfo *gpu_memory = nullptr;
KernelRegistry *registry = nullptr;

/* What is lent, and how often something was. */
std::mutex lock;
struct Block {
  size_t size;
  bool for_stream;
};
std::map<const char *, Block> blocks;
std::atomic<int> nodes_taken, copies, copy_nodes, runs;
int a_stream;

void *take(size_t size, bool for_stream = false) {
  const std::lock_guard<std::mutex> locked(lock);
  void *memory = aligned_alloc(256, (size + 256) / 256 * 256);
  memset(memory, 0x77, size);
  blocks[static_cast<char *>(memory)] = {size, for_stream};
  return memory;
}

struct GpuAllocator {
  uint32_t version = kVersion;
  void *(*alloc)(GpuAllocator *, size_t) = [](GpuAllocator *, size_t size) { return take(size); };
  void (*release)(GpuAllocator *, void *) = [](GpuAllocator *, void *memory) {
    const std::lock_guard<std::mutex> locked(lock);
    if (memory != nullptr && blocks.erase(static_cast<char *>(memory)) != 1) abort();
    free(memory);
  };
  const MemoryInfo *(*info)(const GpuAllocator *) = [](const GpuAllocator *) -> const MemoryInfo * { return gpu_memory; };
  void *(*reserve)(GpuAllocator *, size_t) = [](GpuAllocator *, size_t size) { return take(size); };
  void *statistics = nullptr;
  void *(*alloc_on_stream)(GpuAllocator *, size_t, SyncStream *) = [](GpuAllocator *, size_t size, SyncStream *stream) {
    return take(size, stream != nullptr);
  };
  void *later[8] = {};
};

GpuAllocator allocator;

struct DataTransfer {
  uint32_t version = kVersion;
  void (*release)(DataTransfer *) = [](DataTransfer *) {};
  bool (*can_copy)(const DataTransfer *, const MemoryDevice *, const MemoryDevice *) =
      [](const DataTransfer *, const MemoryDevice *from, const MemoryDevice *to) {
        return DeviceTypeOf::call(ep_api, from) == kGpu || DeviceTypeOf::call(ep_api, to) == kGpu;
      };
  Status *(*copy)(DataTransfer *, const Value **, Value **, SyncStream **, size_t) =
      [](DataTransfer *, const Value **from, Value **to, SyncStream **, size_t count) -> Status * {
    for (size_t i = 0; i < count; ++i) {
      void *target = nullptr, *source = nullptr;
      size_t size = 0;
      OPC_ORT_TRY(GetTensorSize::call(api, from[i], &size));
      OPC_ORT_TRY(GetTensorMutableData::call(api, const_cast<Value *>(from[i]), &source));
      OPC_ORT_TRY(GetTensorMutableData::call(api, to[i], &target));
      memcpy(target, source, size);
      ++copies;
    }
    return nullptr;
  };
  void *later[8] = {};
};

struct Notification {
  uint32_t version = kVersion;
  void (*release)(Notification *) = [](Notification *self) { delete self; };
  Status *(*activate)(Notification *) = [](Notification *) -> Status * { return nullptr; };
  Status *(*wait_on_device)(Notification *, SyncStream *) = [](Notification *, SyncStream *) -> Status * { return nullptr; };
  Status *(*wait_on_host)(Notification *) = [](Notification *) -> Status * { return nullptr; };
  void *later[8] = {};
};

struct Stream {
  uint32_t version = kVersion;
  void (*release)(Stream *) = [](Stream *self) { delete self; };
  void *(*handle)(Stream *) = [](Stream *) -> void * { return &a_stream; };
  Status *(*notification)(Stream *, Notification **) = [](Stream *, Notification **made) -> Status * {
    *made = new Notification;
    return nullptr;
  };
  Status *(*flush)(Stream *) = [](Stream *) -> Status * { return nullptr; };
  Status *(*run_ends)(Stream *) = [](Stream *) -> Status * {
    ++runs;
    return nullptr;
  };
  void *later[8] = {};
};

/* A copy between the provider's memory and the host's, as a node. */
struct CopyKernel {
  uint32_t version = kVersion, flags = 0;
  Status *(*compute)(CopyKernel *, KernelContext *) = [](CopyKernel *, KernelContext *context) -> Status * {
    const Value *from = nullptr;
    Value *to = nullptr;
    TypeAndShape *info = nullptr;
    size_t rank = 0;
    int64_t shape[16];
    OPC_ORT_TRY(GetInput::call(api, context, 0, &from));
    OPC_ORT_TRY(GetTensorTypeAndShape::call(api, from, &info));
    OPC_ORT_TRY(GetDimensionsCount::call(api, info, &rank));
    OPC_ORT_TRY(GetDimensions::call(api, info, shape, rank));
    ReleaseTypeAndShape::call(api, info);
    OPC_ORT_TRY(GetOutput::call(api, context, 0, shape, rank, &to));
    ++copy_nodes;
    return DataTransfer().copy(nullptr, &from, &to, nullptr, 1);
  };
  void (*release)(CopyKernel *) = [](CopyKernel *self) { delete self; };
  void *later[8] = {};
};

Status *add_copies(const char *type, int from, int to) {
  KernelBuilder *builder = nullptr;
  KernelDefinition *made = nullptr;
  const DataType *types[kMostTypes];
  int count = 0;
  for (const int element : {kFloat32, kFloat64, kFloat16, kBfloat16, kFloat8_e4m3fn, kFloat8_e5m2, kInt8, kInt16, kInt32, kInt64, kUint8,
                            kUint16, kUint32, kUint64, kBool})
    OPC_ORT_TRY(GetTensorType::call(ep_api, element, &types[count++]));
  OPC_ORT_TRY(CreateKernelBuilder::call(ep_api, &builder));
  OPC_ORT_TRY(SetOperatorType::call(ep_api, builder, type));
  OPC_ORT_TRY(SetDomain::call(ep_api, builder, ""));
  OPC_ORT_TRY(SetSinceVersion::call(ep_api, builder, 1, 1000));
  OPC_ORT_TRY(SetProvider::call(ep_api, builder, kName));
  OPC_ORT_TRY(SetInputMemory::call(ep_api, builder, 0, from));
  OPC_ORT_TRY(SetOutputMemory::call(ep_api, builder, 0, to));
  OPC_ORT_TRY(AddTypeConstraint::call(ep_api, builder, "T", types, static_cast<size_t>(count)));
  OPC_ORT_TRY(BuildKernel::call(ep_api, builder, &made));
  const auto create = [](void *, const KernelInfo *, void **kernel) -> Status * {
    *kernel = new CopyKernel;
    return nullptr;
  };
  return AddKernel::call(ep_api, registry, made, create, nullptr);
}

struct Provider {
  uint32_t version = kVersion;
  const char *(*name)(const Provider *) = [](const Provider *) { return kName; };
  Status *(*capability)(Provider *, const Graph *, GraphSupport *) = [](Provider *, const Graph *graph,
                                                                      GraphSupport *support) -> Status * {
    size_t count = 0;
    const Node *nodes[64];
    OPC_ORT_TRY(GraphNodeCount::call(api, graph, &count));
    if (count > 64) abort();
    OPC_ORT_TRY(GraphNodes::call(api, graph, nodes, count));
    for (size_t i = 0; i < count; ++i) {
      const KernelDefinition *kernel = nullptr;
      OPC_ORT_TRY(LookUpKernel::call(ep_api, support, nodes[i], &kernel));
      if (kernel == nullptr) continue;
      ++nodes_taken;
      OPC_ORT_TRY(AddSingleNode::call(ep_api, support, nodes[i]));
    }
    return nullptr;
  };
  void *of_no_use_here[10] = {};
  Status *(*kernels)(Provider *, const KernelRegistry **) = [](Provider *, const KernelRegistry **found) -> Status * {
    *found = registry;
    return nullptr;
  };
  void *later[16] = {};
};

struct Factory {
  uint32_t version = kVersion;
  const char *(*name)(const Factory *) = [](const Factory *) { return kName; };
  const char *(*vendor)(const Factory *) = [](const Factory *) { return "opc's emulation"; };
  Status *(*devices)(Factory *, const HardwareDevice *const *, size_t, EpDevice **, size_t, size_t *) =
      [](Factory *self, const HardwareDevice *const *found, size_t count, EpDevice **made, size_t, size_t *made_count) -> Status * {
    *made_count = 0;
    for (size_t i = 0; i < count && *made_count == 0; ++i) {
      if (HardwareDeviceType::call(api, found[i]) != 0) continue;
      OPC_ORT_TRY(CreateEpDevice::call(ep_api, self, found[i], nullptr, nullptr, made));
      OPC_ORT_TRY(AddAllocatorInfo::call(ep_api, made[0], gpu_memory));
      *made_count = 1;
    }
    return nullptr;
  };
  Status *(*create)(Factory *, const HardwareDevice *const *, const void *const *, size_t, const SessionOptions *, const void *,
                    Provider **) = [](Factory *, const HardwareDevice *const *, const void *const *, size_t, const SessionOptions *,
                                      const void *, Provider **made) -> Status * {
    *made = new Provider;
    return nullptr;
  };
  void (*release)(Factory *, Provider *) = [](Factory *, Provider *provider) { delete provider; };
  uint32_t (*vendor_id)(const Factory *) = [](const Factory *) { return kNvidia; };
  const char *(*own_version)(const Factory *) = [](const Factory *) { return "1.0.0"; };
  void *validate = nullptr;
  Status *(*create_allocator)(Factory *, const MemoryInfo *, const void *, GpuAllocator **) =
      [](Factory *, const MemoryInfo *, const void *, GpuAllocator **made) -> Status * {
    *made = &allocator;
    return nullptr;
  };
  void (*release_allocator)(Factory *, GpuAllocator *) = [](Factory *, GpuAllocator *) {};
  Status *(*create_transfer)(Factory *, DataTransfer **) = [](Factory *, DataTransfer **made) -> Status * {
    static DataTransfer transfer;
    *made = &transfer;
    return nullptr;
  };
  bool (*has_streams)(const Factory *) = [](const Factory *) { return true; };
  Status *(*create_stream)(Factory *, const MemoryDevice *, const void *, Stream **) = [](Factory *, const MemoryDevice *, const void *,
                                                                                        Stream **made) -> Status * {
    *made = new Stream;
    return nullptr;
  };
  void *later[16] = {};
};

Factory factory;

}  // namespace

extern "C" {

/* By this a library knows that kernels which compute on the CPU are not amiss. */
OPC_EXPORT int ort_cuda_is_emulated = 1;

OPC_EXPORT const void *emulated_stream() { return &a_stream; }
OPC_EXPORT int emulated_device() { return kDevice; }

/* Whether there is memory of the provider's at an address, and perhaps that it was taken for a stream. */
OPC_EXPORT bool emulated_owns(const void *address, bool for_stream) {
  const std::lock_guard<std::mutex> locked(lock);
  const auto next = blocks.upper_bound(static_cast<const char *>(address));
  if (next == blocks.begin()) return false;
  const auto &[begin, block] = *std::prev(next);
  return address < begin + block.size && (block.for_stream || !for_stream);
}

/* How many nodes the provider has taken, tensors were copied, nodes did that, runs have ended, and blocks of memory are lent. */
OPC_EXPORT void emulated_counts(int *counts) {
  const std::lock_guard<std::mutex> locked(lock);
  const int found[] = {nodes_taken, copies, copy_nodes, runs, static_cast<int>(blocks.size())};
  memcpy(counts, found, sizeof found);
}

OPC_EXPORT Status *CreateEpFactories(const char *, const ApiBase *base, const void *, Factory **made, size_t, size_t *count) {
  api = base->get_api(kVersion);
  ep_api = GetEpApi::call(api);
  OPC_ORT_TRY(CreateMemoryInfo::call(api, "Cuda", kGpu, kNvidia, kDevice, 0, 0, 0, &gpu_memory));
  OPC_ORT_TRY(CreateKernelRegistry::call(ep_api, &registry));
  OPC_ORT_TRY(add_copies("MemcpyFromHost", -2, 0));
  OPC_ORT_TRY(add_copies("MemcpyToHost", 0, -1));
  made[0] = &factory;
  *count = 1;
  return nullptr;
}

OPC_EXPORT Status *ReleaseEpFactory(Factory *) { return nullptr; }

}  // extern "C"
