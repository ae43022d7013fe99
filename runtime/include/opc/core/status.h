/* How a kernel reports a failed call: a code, and a message in memory of the caller. */
#ifndef OPC_CORE_STATUS_H
#define OPC_CORE_STATUS_H

#include <stdarg.h>
#include <stdio.h>

#include "opc/abi.h"

namespace opc {

/* Writes a printf-style message to the context and returns `code`. */
__attribute__((cold, noinline, unused, format(printf, 3, 4))) static int32_t fail(const opc_context *context, opc_code code,
                                                                                  const char *format, ...) {
  if (context != nullptr && context->message != nullptr && context->message_size > 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context->message, static_cast<size_t>(context->message_size), format, arguments);
    va_end(arguments);
  }
  return code;
}

/* Calls body(argument, begin, end) on ranges that cover [0, count), of `grain` or more: on the threads that a host lends, if it does. */
__attribute__((unused)) static void over_range(const opc_context *context, int64_t count, int64_t grain, opc_range_body body,
                                               void *argument) {
  if (context == nullptr || context->parallel_for == nullptr || count <= grain) {
    body(argument, 0, count);
  } else {
    context->parallel_for(context->pool, count, grain, body, argument);
  }
}

}  // namespace opc
#endif  // OPC_CORE_STATUS_H
