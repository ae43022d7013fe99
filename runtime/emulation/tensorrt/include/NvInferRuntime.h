/* Declarations of the part of TensorRT's interfaces that plugins use, for 8.6, 10 and 11; README.md tells what they are for.
 *
 * The order of virtual functions is the interface: a test holds it against api/tensorrt.yaml, another against the real registry.
 */
#ifndef NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H

#include <cstddef>
#include <cstdint>

#include "NvInferVersion.h"

/* What tells generated code that it is not compiled against an SDK. */
#define OPC_TENSORRT_DECLARATIONS 1

#if NV_TENSORRT_MAJOR >= 10
#define NV_TENSORRT_VERSION (NV_TENSORRT_MAJOR * 10000L + NV_TENSORRT_MINOR * 100L + NV_TENSORRT_PATCH)
#else
#define NV_TENSORRT_VERSION (NV_TENSORRT_MAJOR * 1000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH)
#endif
#define TENSORRTAPI

typedef struct CUstream_st *cudaStream_t;
extern "C" {
struct cublasContext;
struct cudnnContext;
}

namespace nvinfer1 {

using char_t = char;
using AsciiChar = char_t;

enum class DataType : int32_t {
  kFLOAT = 0,
  kHALF = 1,
  kINT8 = 2,
  kINT32 = 3,
  kBOOL = 4,
  kUINT8 = 5,
  kFP8 = 6,
#if NV_TENSORRT_MAJOR >= 10
  kBF16 = 7,
  kINT64 = 8,
  kINT4 = 9,
  kFP4 = 10,
  kE8M0 = 11,
#endif
};

enum class TensorFormat : int32_t { kLINEAR = 0, kCHW2 = 1, kHWC8 = 2 };
using PluginFormat = TensorFormat;

#if NV_TENSORRT_MAJOR >= 10
class Dims64 {
 public:
  static constexpr int32_t MAX_DIMS{8};
  int32_t nbDims;
  int64_t d[MAX_DIMS];
};
using Dims = Dims64;
#else
class Dims32 {
 public:
  static constexpr int32_t MAX_DIMS{8};
  int32_t nbDims;
  int32_t d[MAX_DIMS];
};
using Dims = Dims32;
#endif

#if NV_TENSORRT_MAJOR >= 10
enum class APILanguage : int32_t { kCPP = 0, kPYTHON = 1 };
using InterfaceKind = char const *;

class InterfaceInfo {
 public:
  InterfaceKind kind;
  int32_t major;
  int32_t minor;
};

class IVersionedInterface {
 public:
  virtual APILanguage getAPILanguage() const noexcept { return APILanguage::kCPP; }
  virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
  virtual ~IVersionedInterface() noexcept = default;

 protected:
  IVersionedInterface() = default;
  IVersionedInterface(IVersionedInterface const &) = default;
  IVersionedInterface &operator=(IVersionedInterface const &) & = default;
};

namespace v_1_0 {
class IErrorRecorder;
class IGpuAllocator;
}  // namespace v_1_0
using IErrorRecorder = v_1_0::IErrorRecorder;
using IGpuAllocator = v_1_0::IGpuAllocator;
#else
class IErrorRecorder;
class IGpuAllocator;
#endif

/* Since 11 a logger and what finds one are versioned. */
#if NV_TENSORRT_MAJOR >= 11
namespace v_1_0 {
class ILogger : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }
#else
class ILogger {
 public:
#endif
  enum class Severity : int32_t { kINTERNAL_ERROR = 0, kERROR = 1, kWARNING = 2, kINFO = 3, kVERBOSE = 4 };
  virtual void log(Severity severity, AsciiChar const *msg) noexcept = 0;
  ILogger() = default;
  virtual ~ILogger() = default;
};
#if NV_TENSORRT_MAJOR >= 11
class ILoggerFinder : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILoggerFinder", 1, 0}; }
#else
class ILoggerFinder {
 public:
#endif
  virtual ILogger *findLogger() = 0;

 protected:
  virtual ~ILoggerFinder() = default;
};
#if NV_TENSORRT_MAJOR >= 11
}  // namespace v_1_0
using ILogger = v_1_0::ILogger;
using ILoggerFinder = v_1_0::ILoggerFinder;
#endif

enum class PluginFieldType : int32_t {
  kFLOAT16 = 0,
  kFLOAT32 = 1,
  kFLOAT64 = 2,
  kINT8 = 3,
  kINT16 = 4,
  kINT32 = 5,
  kCHAR = 6,
  kDIMS = 7,
  kUNKNOWN = 8,
#if NV_TENSORRT_MAJOR >= 10
  kBF16 = 9,
  kINT64 = 10,
  kFP8 = 11,
  kINT4 = 12,
  kFP4 = 13,
#endif
};

class PluginField {
 public:
  AsciiChar const *name;
  void const *data;
  PluginFieldType type;
  int32_t length;

  PluginField(AsciiChar const *const name_ = nullptr, void const *const data_ = nullptr,
              PluginFieldType const type_ = PluginFieldType::kUNKNOWN, int32_t const length_ = 0) noexcept
      : name(name_), data(data_), type(type_), length(length_) {}
};

struct PluginFieldCollection {
  int32_t nbFields;
  PluginField const *fields;
};

struct PluginTensorDesc {
  Dims dims;
  DataType type;
  TensorFormat format;
  float scale;
};

struct DynamicPluginTensorDesc {
  PluginTensorDesc desc;
  Dims min;
  Dims max;
#if NV_TENSORRT_MAJOR >= 10
  Dims opt;
#endif
};

/* ---- sizes as expressions ---- */

enum class DimensionOperation : int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kSUB = 4,
  kEQUAL = 5,
  kLESS = 6,
  kFLOOR_DIV = 7,
  kCEIL_DIV = 8,
};

class INoCopy {
 protected:
  INoCopy() = default;
  virtual ~INoCopy() = default;
  INoCopy(INoCopy const &) = delete;
  INoCopy &operator=(INoCopy const &) = delete;
};

#if NV_TENSORRT_MAJOR >= 10
using ExprConstant = int64_t;
#else
using ExprConstant = int32_t;
#endif

class IDimensionExpr;

namespace apiv {
class VRoot {
 public:
  virtual ~VRoot() noexcept = default;
};
class VDimensionExpr : public VRoot {
 public:
  virtual bool isConstant() const = 0;
  virtual ExprConstant getConstantValue() const = 0;
#if NV_TENSORRT_MAJOR >= 10
  virtual bool isSizeTensor() const = 0;
#endif
};
class VExprBuilder : public VRoot {
 public:
  virtual IDimensionExpr const *constant(ExprConstant value) = 0;
  virtual IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &first, IDimensionExpr const &second) = 0;
#if NV_TENSORRT_MAJOR >= 10
  virtual IDimensionExpr const *declareSizeTensor(int32_t outputIndex, IDimensionExpr const &opt, IDimensionExpr const &upper) = 0;
#endif
};
}  // namespace apiv

class IDimensionExpr : public INoCopy {
 public:
  bool isConstant() const noexcept { return mImpl->isConstant(); }
  ExprConstant getConstantValue() const noexcept { return mImpl->getConstantValue(); }

 protected:
  apiv::VDimensionExpr *mImpl;
  virtual ~IDimensionExpr() noexcept = default;
};

class IExprBuilder : public INoCopy {
 public:
  IDimensionExpr const *constant(ExprConstant value) noexcept { return mImpl->constant(value); }
  IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &first, IDimensionExpr const &second) noexcept {
    return mImpl->operation(op, first, second);
  }

 protected:
  apiv::VExprBuilder *mImpl;
  virtual ~IExprBuilder() noexcept = default;
};

class DimsExprs {
 public:
  int32_t nbDims;
  IDimensionExpr const *d[Dims::MAX_DIMS];
};

/* ---- version 2 of plugins ---- */

enum class PluginVersion : uint8_t { kV2 = 0, kV2_EXT = 1, kV2_IOEXT = 2, kV2_DYNAMICEXT = 3 };

class IPluginV2 {
 public:
  virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }
  virtual AsciiChar const *getPluginType() const noexcept = 0;
  virtual AsciiChar const *getPluginVersion() const noexcept = 0;
  virtual int32_t getNbOutputs() const noexcept = 0;
  virtual Dims getOutputDimensions(int32_t index, Dims const *inputs, int32_t nbInputDims) noexcept = 0;
  virtual bool supportsFormat(DataType type, PluginFormat format) const noexcept = 0;
  virtual void configureWithFormat(Dims const *inputDims, int32_t nbInputs, Dims const *outputDims, int32_t nbOutputs,
                                   DataType type, PluginFormat format, int32_t maxBatchSize) noexcept = 0;
  virtual int32_t initialize() noexcept = 0;
  virtual void terminate() noexcept = 0;
  virtual size_t getWorkspaceSize(int32_t maxBatchSize) const noexcept = 0;
  virtual int32_t enqueue(int32_t batchSize, void const *const *inputs, void *const *outputs, void *workspace,
                          cudaStream_t stream) noexcept = 0;
  virtual size_t getSerializationSize() const noexcept = 0;
  virtual void serialize(void *buffer) const noexcept = 0;
  virtual void destroy() noexcept = 0;
  virtual IPluginV2 *clone() const noexcept = 0;
  virtual void setPluginNamespace(AsciiChar const *pluginNamespace) noexcept = 0;
  virtual AsciiChar const *getPluginNamespace() const noexcept = 0;
  IPluginV2() = default;
  virtual ~IPluginV2() noexcept = default;

 protected:
  IPluginV2(IPluginV2 const &) = default;
  IPluginV2 &operator=(IPluginV2 const &) & = default;
};

class IPluginV2Ext : public IPluginV2 {
 public:
  virtual DataType getOutputDataType(int32_t index, DataType const *inputTypes, int32_t nbInputs) const noexcept = 0;
#if NV_TENSORRT_MAJOR < 11
  virtual bool isOutputBroadcastAcrossBatch(int32_t outputIndex, bool const *inputIsBroadcasted, int32_t nbInputs) const noexcept = 0;
  virtual bool canBroadcastInputAcrossBatch(int32_t inputIndex) const noexcept = 0;
#endif
  virtual void configurePlugin(Dims const *inputDims, int32_t nbInputs, Dims const *outputDims, int32_t nbOutputs,
                               DataType const *inputTypes, DataType const *outputTypes, bool const *inputIsBroadcast,
                               bool const *outputIsBroadcast, PluginFormat floatFormat, int32_t maxBatchSize) noexcept = 0;
  IPluginV2Ext() = default;
  ~IPluginV2Ext() override = default;
  virtual void attachToContext(cudnnContext *, cublasContext *, IGpuAllocator *) noexcept {}
  virtual void detachFromContext() noexcept {}
  IPluginV2Ext *clone() const noexcept override = 0;

 protected:
  IPluginV2Ext(IPluginV2Ext const &) = default;
  IPluginV2Ext &operator=(IPluginV2Ext const &) & = default;
  int32_t getTensorRTVersion() const noexcept override {
    return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_EXT) << 24U) |
                                (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
  }
  void configureWithFormat(Dims const *, int32_t, Dims const *, int32_t, DataType, PluginFormat, int32_t) noexcept override {}
};

class IPluginV2DynamicExt : public IPluginV2Ext {
 public:
  IPluginV2DynamicExt *clone() const noexcept override = 0;
  virtual DimsExprs getOutputDimensions(int32_t outputIndex, DimsExprs const *inputs, int32_t nbInputs,
                                        IExprBuilder &exprBuilder) noexcept = 0;
  static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;
  virtual bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *inOut, int32_t nbInputs,
                                         int32_t nbOutputs) noexcept = 0;
  virtual void configurePlugin(DynamicPluginTensorDesc const *in, int32_t nbInputs, DynamicPluginTensorDesc const *out,
                               int32_t nbOutputs) noexcept = 0;
  virtual size_t getWorkspaceSize(PluginTensorDesc const *inputs, int32_t nbInputs, PluginTensorDesc const *outputs,
                                  int32_t nbOutputs) const noexcept = 0;
  virtual int32_t enqueue(PluginTensorDesc const *inputDesc, PluginTensorDesc const *outputDesc, void const *const *inputs,
                          void *const *outputs, void *workspace, cudaStream_t stream) noexcept = 0;

 protected:
  int32_t getTensorRTVersion() const noexcept override {
    return (static_cast<int32_t>(PluginVersion::kV2_DYNAMICEXT) << 24 | (NV_TENSORRT_VERSION & 0xFFFFFF));
  }
  virtual ~IPluginV2DynamicExt() noexcept {}

 private:
  void configurePlugin(Dims const *, int32_t, Dims const *, int32_t, DataType const *, DataType const *, bool const *, bool const *,
                       PluginFormat, int32_t) noexcept final {}
  bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
  Dims getOutputDimensions(int32_t, Dims const *, int32_t) noexcept final { return Dims{-1, {}}; }
#if NV_TENSORRT_MAJOR < 11
  bool isOutputBroadcastAcrossBatch(int32_t, bool const *, int32_t) const noexcept final { return false; }
  bool canBroadcastInputAcrossBatch(int32_t) const noexcept final { return true; }
#endif
  size_t getWorkspaceSize(int32_t) const noexcept final { return 0; }
  int32_t enqueue(int32_t, void const *const *, void *const *, void *, cudaStream_t) noexcept final { return 1; }
};

#if NV_TENSORRT_MAJOR >= 10
namespace v_1_0 {
class IPluginCreatorInterface : public IVersionedInterface {
 public:
  ~IPluginCreatorInterface() noexcept override = default;
};

class IPluginCreator : public IPluginCreatorInterface {
 public:
#else
class IPluginCreator {
 public:
  virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }
#endif
  virtual AsciiChar const *getPluginName() const noexcept = 0;
  virtual AsciiChar const *getPluginVersion() const noexcept = 0;
  virtual PluginFieldCollection const *getFieldNames() noexcept = 0;
  virtual IPluginV2 *createPlugin(AsciiChar const *name, PluginFieldCollection const *fc) noexcept = 0;
  virtual IPluginV2 *deserializePlugin(AsciiChar const *name, void const *serialData, size_t serialLength) noexcept = 0;
  virtual void setPluginNamespace(AsciiChar const *pluginNamespace) noexcept = 0;
  virtual AsciiChar const *getPluginNamespace() const noexcept = 0;
  IPluginCreator() = default;
  virtual ~IPluginCreator() = default;
#if NV_TENSORRT_MAJOR >= 10
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN CREATOR_V1", 1, 0}; }
#endif
};
#if NV_TENSORRT_MAJOR >= 10
}  // namespace v_1_0
using IPluginCreatorInterface = v_1_0::IPluginCreatorInterface;
using IPluginCreator = v_1_0::IPluginCreator;

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
