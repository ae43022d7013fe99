/* A pool of threads behind one function, for hosts that lend none to C++ code: include it in one C file of the library, which is to be
 * compiled with -D_GNU_SOURCE. */
#ifndef OPC_CORE_HOST_THREADS_H
#define OPC_CORE_HOST_THREADS_H

#include "opc/core/threads.h"

void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);

void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  opc_parallel_for(pool, count, grain, body, argument);
}

#endif /* OPC_CORE_HOST_THREADS_H */
