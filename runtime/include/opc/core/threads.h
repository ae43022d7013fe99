/* A pool of threads for hosts that lend none: `opc_parallel_for` fits `opc_context.parallel_for`. C11, POSIX threads,
 * which on Windows are those of mingw-w64.
 *
 * The threads start with the first call that has work for them and sleep between calls. One call at a time has them: a call from
 * another thread, or from inside a kernel, runs on its own thread, so that there are never more running threads than processors.
 * After fork() the child starts its own. Their number is OPC_NUM_THREADS, else OMP_NUM_THREADS, else the processors that the process
 * may use; it counts the calling thread. Every library that includes this file has a pool of its own.
 */
#ifndef OPC_CORE_THREADS_H
#define OPC_CORE_THREADS_H

#if defined(__linux__) && !defined(_GNU_SOURCE)
#error "define _GNU_SOURCE before the first header, for sched_getaffinity"
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#if !defined(_WIN32)
#include <signal.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

#include "opc/abi.h"

#include "opc/core/first_glibc.h"

#if defined(OPC_FIRST_GLIBC)
__asm__(".symver pthread_create, pthread_create@" OPC_FIRST_GLIBC);
__asm__(".symver pthread_detach, pthread_detach@" OPC_FIRST_GLIBC);
__asm__(".symver pthread_sigmask, pthread_sigmask@" OPC_FIRST_GLIBC);
#endif

enum { OPC_MAX_THREADS = 256 };

/* One parallel_for: the threads take chunks of the range from `next` until none is left. */
typedef struct opc_job {
  opc_range_body body;
  void *argument;
  int64_t count;
  int64_t chunk;
  _Atomic int64_t next;
} opc_job;

static struct opc_pool {
  pthread_mutex_t mutex;
  pthread_cond_t wake; /* a job has seats */
  pthread_cond_t done; /* the last worker has left the job */
  opc_job *job;
  int seats;   /* how many more workers may join the job */
  int working; /* how many are in it */
  int started; /* how many there are */
} opc_pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* Held by the call that has the pool. */
static atomic_flag opc_pool_taken = ATOMIC_FLAG_INIT;
static _Atomic int opc_thread_limit = 0; /* 0: not yet known */

static void opc_take_chunks(opc_job *job) {
  for (;;) {
    const int64_t begin = atomic_fetch_add_explicit(&job->next, job->chunk, memory_order_relaxed);
    if (begin >= job->count) return;
    const int64_t left = job->count - begin;
    job->body(job->argument, begin, begin + (left < job->chunk ? left : job->chunk));
  }
}

static void *opc_work(void *unused) {
  (void)unused;
  pthread_mutex_lock(&opc_pool.mutex);
  for (;;) {
    while (opc_pool.seats == 0) pthread_cond_wait(&opc_pool.wake, &opc_pool.mutex);
    opc_pool.seats--;
    opc_pool.working++;
    opc_job *job = opc_pool.job;
    pthread_mutex_unlock(&opc_pool.mutex);
    opc_take_chunks(job);
    pthread_mutex_lock(&opc_pool.mutex);
    if (--opc_pool.working == 0) pthread_cond_signal(&opc_pool.done);
  }
  return NULL;
}

/* The child of a fork has one thread, and the mutex as the parent's threads left it. */
static void opc_after_fork(void) {
  const struct opc_pool fresh = {
      .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
  opc_pool = fresh;
  atomic_flag_clear(&opc_pool_taken);
}

static int opc_processors(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
#if defined(_WIN32)
  return pthread_num_processors_np();
#else
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
}

static int opc_clamp_threads(long wanted) { return wanted < 1 ? 1 : wanted > OPC_MAX_THREADS ? OPC_MAX_THREADS : (int)wanted; }

/* The most threads a call runs on, the calling one included. */
static int opc_get_threads(void) {
  int limit = atomic_load(&opc_thread_limit);
  if (limit == 0) {
    const char *wish = getenv("OPC_NUM_THREADS");
    if (wish == NULL || atol(wish) < 1) wish = getenv("OMP_NUM_THREADS");
    limit = opc_clamp_threads(wish != NULL && atol(wish) >= 1 ? atol(wish) : opc_processors());
    atomic_store(&opc_thread_limit, limit);
  }
  return limit;
}

static void opc_set_threads(int count) { atomic_store(&opc_thread_limit, opc_clamp_threads(count)); }

/* Starts workers until there are `wanted`, or as many as the system grants. */
static void opc_start_workers(int wanted) {
#if !defined(_WIN32) /* which has neither fork() nor signals */
  static atomic_flag registered = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&registered)) pthread_atfork(NULL, NULL, opc_after_fork);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); /* signals stay with the host's threads */
#endif
  while (opc_pool.started < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, opc_work, NULL) != 0) break;
    pthread_detach(thread);
    opc_pool.started++;
  }
#if !defined(_WIN32)
  pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
}

/* Runs body(argument, begin, end) over disjoint ranges that cover [0, count), each `grain` long or longer but the last. */
static void opc_parallel_for(void *unused, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  (void)unused;
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  const int64_t pieces = count / grain;
  int threads = opc_get_threads();
  if (threads > pieces) threads = (int)pieces;
  if (threads <= 1 || atomic_flag_test_and_set(&opc_pool_taken)) {
    body(argument, 0, count);
    return;
  }
  /* Several chunks a thread, so that one that was held up doesn't hold up all. */
  const int64_t parts = pieces < 4 * (int64_t)threads ? pieces : 4 * (int64_t)threads;
  opc_job job = {.body = body, .argument = argument, .count = count, .chunk = (count + parts - 1) / parts};
  atomic_init(&job.next, 0);

  pthread_mutex_lock(&opc_pool.mutex);
  opc_start_workers(threads - 1);
  opc_pool.job = &job;
  opc_pool.seats = threads - 1 < opc_pool.started ? threads - 1 : opc_pool.started;
  pthread_cond_broadcast(&opc_pool.wake);
  pthread_mutex_unlock(&opc_pool.mutex);

  opc_take_chunks(&job);

  pthread_mutex_lock(&opc_pool.mutex);
  opc_pool.seats = 0; /* who has not joined by now comes too late */
  while (opc_pool.working > 0) pthread_cond_wait(&opc_pool.done, &opc_pool.mutex);
  pthread_mutex_unlock(&opc_pool.mutex);
  atomic_flag_clear(&opc_pool_taken);
}

#endif /* OPC_CORE_THREADS_H */
