/* Messages of plugins for TensorRT's logger. */
#ifndef OPC_ADAPTERS_TENSORRT_MESSAGES_H
#define OPC_ADAPTERS_TENSORRT_MESSAGES_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <atomic>
#include <string>

#include "NvInferRuntime.h"

namespace opc {
namespace trt {

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

#endif /* OPC_ADAPTERS_TENSORRT_MESSAGES_H */
