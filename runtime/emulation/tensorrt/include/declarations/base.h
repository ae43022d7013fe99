/* What the other declarations are made of: types, sizes, loggers, fields, tensors. */
#ifndef DECLARATIONS_BASE_H
#define DECLARATIONS_BASE_H

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

}  // namespace nvinfer1

#endif  // DECLARATIONS_BASE_H
