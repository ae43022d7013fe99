/* An op as its TensorRT plugins see it, dtypes as TensorRT numbers them, and messages for its logger. */
#ifndef OPC_ADAPTERS_TENSORRT_OP_H
#define OPC_ADAPTERS_TENSORRT_OP_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <atomic>
#include <string>

#include "NvInferRuntime.h"
#include "opc/core/tensor.h"
#include "opc/cuda/abi.h"

namespace opc {
namespace trt {

/* The most inputs and outputs of an op, and the most type variables. */
enum : int32_t { max_operands = 32, max_variables = 8, max_rank = nvinfer1::Dims::MAX_DIMS };

/* An operand's element type: of those in `dtypes`, and the same for all operands of one type variable (-1: of none); or the type that
 * sums of that are in. */
struct Operand {
  const char *name;
  bool optional;
  int32_t variable;
  bool accumulated;
  uint32_t dtypes;
};

class Visitor;
class Shapes;

/* What plugins need to know of an op. `attributes` is the struct of the C ABI. */
struct Op {
  const char *name;
  const char *static_name, *dynamic_name, *plugin_name, *plugin_namespace;
  uint64_t signature; /* of the attributes: what is serialised is read by the same signature alone */
  int32_t inputs, outputs;
  const Operand *operands; /* inputs, then outputs */
  size_t attributes_size;
  void (*defaults)(void *attributes);
  void (*visit)(Visitor &visitor, void *attributes);
  void (*bind)(const void *attributes, dtype *variables); /* the type variables that attributes bind */
  void (*shapes)(Shapes &s, const void *attributes);
  int32_t (*infer)(const DLTensor *const *inputs, const void *attributes, opc_tensor_type *outputs, const opc_cuda_context *context);
  int32_t (*run)(const DLTensor *const *inputs, DLTensor *const *outputs, const void *attributes, const opc_cuda_context *context);
  int64_t *(*status)(); /* where kernels write what only data tell, on the current device; null where that can't be had */
};

/* ---- dtypes ---- */

/* TensorRT 8.6 has none behind this. */
constexpr int32_t last_of_8_6 = 6;

inline bool has_number(int32_t number) { return NV_TENSORRT_MAJOR >= 10 || number <= last_of_8_6; }

inline dtype dtype_of(nvinfer1::DataType type) {
  switch (static_cast<int32_t>(type)) {
#define OPC_CASE(name, number) \
  case number: return has_number(number) ? dtype_##name : dtype_unknown;
    OPC_TENSORRT_DTYPES(OPC_CASE)
#undef OPC_CASE
    default: return dtype_unknown;
  }
}

/* False for a dtype that this TensorRT has no tensors of. */
inline bool to_tensorrt(dtype element, nvinfer1::DataType &type) {
  switch (element) {
#define OPC_CASE(name, number) \
  case dtype_##name: type = static_cast<nvinfer1::DataType>(int32_t(number)); return has_number(number);
    OPC_TENSORRT_DTYPES(OPC_CASE)
#undef OPC_CASE
    default: return false;
  }
}

/* ---- messages ---- */

inline std::atomic<nvinfer1::ILoggerFinder *> &logger_finder() {
  static std::atomic<nvinfer1::ILoggerFinder *> finder{nullptr};
  return finder;
}

/* What was said last, in this thread. */
inline std::string &last_message() {
  static thread_local std::string text;
  return text;
}

/* Says what is wrong to TensorRT's logger, or where nobody gave one on the standard error stream; false. */
__attribute__((format(printf, 1, 2))) inline bool refuse(const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  last_message() = message;
  nvinfer1::ILoggerFinder *finder = logger_finder();
  nvinfer1::ILogger *logger = finder == nullptr ? nullptr : finder->findLogger();
  if (logger != nullptr) {
    logger->log(nvinfer1::ILogger::Severity::kERROR, message);
  } else {
    fprintf(stderr, "%s\n", message);
  }
  return false;
}

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_OP_H */
