/* Declarations of the part of TensorRT's interfaces that plugins use, for 8.6, 10 and 11; README.md tells what they are for.
 *
 * The order of virtual functions is the interface: a test holds it against api/tensorrt.yaml, another against the real registry.
 */
#ifndef NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H

#include "declarations/version_2.h"

namespace nvinfer1 {

#if NV_TENSORRT_MAJOR >= 10
/* ---- version 3 of plugins, since 10 ---- */

enum class TensorRTPhase : int32_t { kBUILD = 0, kRUNTIME = 1 };
enum class PluginCapabilityType : int32_t { kCORE = 0, kBUILD = 1, kRUNTIME = 2 };

class IPluginResourceContext {
 public:
  virtual IGpuAllocator *getGpuAllocator() const noexcept = 0;
  virtual IErrorRecorder *getErrorRecorder() const noexcept = 0;
  virtual ~IPluginResourceContext() noexcept = default;
};

namespace v_1_0 {
class IPluginCapability : public IVersionedInterface {};

class IPluginV3 : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN", 1, 0}; }
  virtual IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept = 0;
  virtual IPluginV3 *clone() noexcept = 0;
};

class IPluginV3OneCore : public IPluginCapability {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_CORE", 1, 0}; }
  virtual AsciiChar const *getPluginName() const noexcept = 0;
  virtual AsciiChar const *getPluginVersion() const noexcept = 0;
  virtual AsciiChar const *getPluginNamespace() const noexcept = 0;
};

class IPluginV3OneBuild : public IPluginCapability {
 public:
  static constexpr int32_t kDEFAULT_FORMAT_COMBINATION_LIMIT = 100;
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_BUILD", 1, 0}; }
  virtual int32_t configurePlugin(DynamicPluginTensorDesc const *in, int32_t nbInputs, DynamicPluginTensorDesc const *out,
                                  int32_t nbOutputs) noexcept = 0;
  virtual int32_t getOutputDataTypes(DataType *outputTypes, int32_t nbOutputs, const DataType *inputTypes,
                                     int32_t nbInputs) const noexcept = 0;
  virtual int32_t getOutputShapes(DimsExprs const *inputs, int32_t nbInputs, DimsExprs const *shapeInputs, int32_t nbShapeInputs,
                                  DimsExprs *outputs, int32_t nbOutputs, IExprBuilder &exprBuilder) noexcept = 0;
  virtual bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *inOut, int32_t nbInputs,
                                         int32_t nbOutputs) noexcept = 0;
  virtual int32_t getNbOutputs() const noexcept = 0;
  virtual size_t getWorkspaceSize(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *, int32_t) const noexcept {
    return 0;
  }
  virtual int32_t getValidTactics(int32_t *, int32_t) noexcept { return 0; }
  virtual int32_t getNbTactics() noexcept { return 0; }
  virtual char const *getTimingCacheID() noexcept { return nullptr; }
  virtual int32_t getFormatCombinationLimit() noexcept { return kDEFAULT_FORMAT_COMBINATION_LIMIT; }
  virtual char const *getMetadataString() noexcept { return nullptr; }
};

class IPluginV3OneRuntime : public IPluginCapability {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN_V3ONE_RUNTIME", 1, 0}; }
  virtual int32_t setTactic(int32_t) noexcept { return 0; }
  virtual int32_t onShapeChange(PluginTensorDesc const *in, int32_t nbInputs, PluginTensorDesc const *out,
                                int32_t nbOutputs) noexcept = 0;
  virtual int32_t enqueue(PluginTensorDesc const *inputDesc, PluginTensorDesc const *outputDesc, void const *const *inputs,
                          void *const *outputs, void *workspace, cudaStream_t stream) noexcept = 0;
  virtual IPluginV3 *attachToContext(IPluginResourceContext *context) noexcept = 0;
  virtual PluginFieldCollection const *getFieldsToSerialize() noexcept = 0;
};

class IPluginCreatorV3One : public IPluginCreatorInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN CREATOR_V3ONE", 1, 0}; }
  virtual IPluginV3 *createPlugin(AsciiChar const *name, PluginFieldCollection const *fc, TensorRTPhase phase) noexcept = 0;
  virtual PluginFieldCollection const *getFieldNames() noexcept = 0;
  virtual AsciiChar const *getPluginName() const noexcept = 0;
  virtual AsciiChar const *getPluginVersion() const noexcept = 0;
  virtual AsciiChar const *getPluginNamespace() const noexcept = 0;
};

class IPluginResource;
}  // namespace v_1_0
using IPluginCapability = v_1_0::IPluginCapability;
using IPluginV3 = v_1_0::IPluginV3;
using IPluginV3OneCore = v_1_0::IPluginV3OneCore;
using IPluginV3OneBuild = v_1_0::IPluginV3OneBuild;
using IPluginV3OneRuntime = v_1_0::IPluginV3OneRuntime;
using IPluginCreatorV3One = v_1_0::IPluginCreatorV3One;
using IPluginResource = v_1_0::IPluginResource;
#endif

class IPluginRegistry {
 public:
  using PluginLibraryHandle = void *;
#if NV_TENSORRT_MAJOR < 11
  virtual bool registerCreator(IPluginCreator &creator, AsciiChar const *const pluginNamespace) noexcept = 0;
  virtual IPluginCreator *const *getPluginCreatorList(int32_t *const numCreators) const noexcept = 0;
  virtual IPluginCreator *getPluginCreator(AsciiChar const *const pluginName, AsciiChar const *const pluginVersion,
                                           AsciiChar const *const pluginNamespace = "") noexcept = 0;
#endif
  IPluginRegistry() = default;
  IPluginRegistry(IPluginRegistry const &) = delete;
  IPluginRegistry &operator=(IPluginRegistry const &) & = delete;

 protected:
  virtual ~IPluginRegistry() noexcept = default;

 public:
  virtual void setErrorRecorder(IErrorRecorder *const recorder) noexcept = 0;
  virtual IErrorRecorder *getErrorRecorder() const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool deregisterCreator(IPluginCreator const &creator) noexcept = 0;
#endif
  virtual bool isParentSearchEnabled() const = 0;
  virtual void setParentSearchEnabled(bool const enabled) = 0;
  virtual PluginLibraryHandle loadLibrary(AsciiChar const *pluginPath) noexcept = 0;
  virtual void deregisterLibrary(PluginLibraryHandle handle) noexcept = 0;
#if NV_TENSORRT_MAJOR >= 10
  virtual bool registerCreator(IPluginCreatorInterface &creator, AsciiChar const *const pluginNamespace) noexcept = 0;
  virtual IPluginCreatorInterface *const *getAllCreators(int32_t *const numCreators) const noexcept = 0;
  virtual IPluginCreatorInterface *getCreator(AsciiChar const *const pluginName, AsciiChar const *const pluginVersion,
                                              AsciiChar const *const pluginNamespace = "") noexcept = 0;
  virtual bool deregisterCreator(IPluginCreatorInterface const &creator) noexcept = 0;
  virtual IPluginResource *acquirePluginResource(AsciiChar const *key, IPluginResource *resource) noexcept = 0;
  virtual int32_t releasePluginResource(AsciiChar const *key) noexcept = 0;
  virtual IPluginCreatorInterface *const *getAllCreatorsRecursive(int32_t *const numCreators) noexcept = 0;
#endif
};

}  // namespace nvinfer1

extern "C" TENSORRTAPI nvinfer1::IPluginRegistry *getPluginRegistry() noexcept;

#endif  // NV_INFER_RUNTIME_H
