/* A kernel's loop on the threads of XLA's pool. */
#ifndef OPC_ADAPTERS_JAX_THREADS_H
#define OPC_ADAPTERS_JAX_THREADS_H

#include <pthread.h>
#include <stdint.h>

#include <new>

#include "opc/abi.h"
#include "opc/core/denormals.h"
#include "xla/ffi/api/c_api.h"

namespace opc {
namespace jax {

/* A loop whose chunks are taken by whoever comes: the calling thread, and tasks in the pool. The caller waits for chunks that are being
 * run, never for tasks that have not begun: where every thread of the pool is in such a call, each does its own loop to the end. The
 * memory is freed by the last one to leave, which may be a task that came when nothing was left. */
class Loop {
 public:
  Loop(int64_t count, int64_t chunk, opc_range_body body, void *argument, int64_t tasks)
      : count_(count), chunk_(chunk), body_(body), argument_(argument), users_(tasks + 1) {}

  void work() {
    for (;;) {
      const int64_t begin = __atomic_fetch_add(&next_, chunk_, __ATOMIC_RELAXED);
      if (begin >= count_) return;
      const int64_t size = count_ - begin < chunk_ ? count_ - begin : chunk_;
      body_(argument_, begin, begin + size);
      if (__atomic_add_fetch(&done_, size, __ATOMIC_ACQ_REL) < count_) continue;
      pthread_mutex_lock(&mutex_);
      pthread_cond_signal(&finished_);
      pthread_mutex_unlock(&mutex_);
    }
  }

  void wait() {
    pthread_mutex_lock(&mutex_);
    while (__atomic_load_n(&done_, __ATOMIC_ACQUIRE) < count_) pthread_cond_wait(&finished_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

  void leave(int64_t users = 1) {
    if (__atomic_sub_fetch(&users_, users, __ATOMIC_ACQ_REL) == 0) delete this;
  }

  static void task(void *loop) {
    const KeptDenormals denormals;
    static_cast<Loop *>(loop)->work();
    static_cast<Loop *>(loop)->leave();
  }

 private:
  ~Loop() {
    pthread_cond_destroy(&finished_);
    pthread_mutex_destroy(&mutex_);
  }

  const int64_t count_, chunk_;
  const opc_range_body body_;
  void *const argument_;
  int64_t next_ = 0, done_ = 0, users_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t finished_ = PTHREAD_COND_INITIALIZER;
};

/* The pool of one call. */
struct Pool {
  const XLA_FFI_Api *api;
  XLA_FFI_ExecutionContext *context;

  int64_t threads() const {
    int64_t count = 1;
    XLA_FFI_ThreadPool_NumThreads_Args args = {XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, nullptr, context, &count};
    return passed(api->XLA_FFI_ThreadPool_NumThreads(&args)) ? count : 1;
  }

  /* Whether a call of the API succeeded. */
  bool passed(XLA_FFI_Error *error) const {
    if (error == nullptr) return true;
    XLA_FFI_Error_Destroy_Args args = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
    api->XLA_FFI_Error_Destroy(&args);
    return false;
  }

  /* As `opc_context.parallel_for`. */
  static void parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument) {
    const Pool &self = *static_cast<const Pool *>(pool);
    if (count <= 0) return;
    const int64_t pieces = count / (grain < 1 ? 1 : grain);
    int64_t threads = pieces < 2 ? 1 : self.threads();
    if (threads > pieces) threads = pieces;
    if (threads < 2) return body(argument, 0, count);
    /* Several chunks a thread, so that one that was held up doesn't hold up all. */
    const int64_t parts = pieces < 4 * threads ? pieces : 4 * threads;
    Loop *const loop = new (std::nothrow) Loop(count, (count + parts - 1) / parts, body, argument, threads - 1);
    if (loop == nullptr) return body(argument, 0, count);
    for (int64_t task = 1; task < threads; ++task) {
      XLA_FFI_ThreadPool_Schedule_Args args = {
          XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, nullptr, self.context, Loop::task, loop};
      if (!self.passed(self.api->XLA_FFI_ThreadPool_Schedule(&args))) loop->leave();
    }
    loop->work();
    loop->wait();
    loop->leave();
  }
};

}  // namespace jax
}  // namespace opc

#endif /* OPC_ADAPTERS_JAX_THREADS_H */
