/* CUDA's words for a C++ compiler: kernels run on the CPU as they are written.
 *
 * The threads of a block are fibers of the calling thread, in the order of their numbers, or with OPC_CUDA_SEED in a random order that
 * changes from one barrier to the next: what depends on it lacks a barrier. A kernel that waits for nobody needs no fibers. Blocks
 * run one after the other, in a random order too: none may wait for one of a lower number, but only for one that has begun. Shared arrays are checked for their bounds; a mistake ends the process with a message. Not shown are races
 * between blocks, the order of memory, alignment, and speed.
 */
#ifndef OPC_CUDA_HOST_H
#define OPC_CUDA_HOST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opc/cuda/fibers.h"

#define OPC_KERNEL(threads) static void
#define OPC_HEADER_KERNEL(threads) [[maybe_unused]] OPC_KERNEL(threads)
#define OPC_ROW_KERNEL(threads, blocks) static void
#define OPC_TILED_KERNEL(threads, blocks) static void
#define OPC_PARAMETER(...) const __VA_ARGS__ &
#define OPC_PARAMETER_TYPE(...) const __VA_ARGS__ &
#define OPC_DEVICE static inline
#define OPC_DEVICE_MEMBER inline
#define OPC_CHECK_INDEX(i, count) \
  if ((i) < 0 || (i) >= (count)) opc::emulation::stop("an index %lld of an array of %lld elements", i, count)
#define OPC_FORGET(word) static_cast<void>(word)
#define OPC_WAIT_UNTIL(condition) \
  if (!(condition)) opc::emulation::stop("a block waits for what no block before it has written")
#define OPC_SHARED(type, name, count) static thread_local opc::emulation::shared_array<type, count> name
#define OPC_DYNAMIC_SHARED(name) opc::emulation::shared_bytes name
#define OPC_LAUNCH(kernel, together, blocks, threads, bytes, stream, ...)                                                  \
  ((stream) == OPC_CUDA_MEASURE ? static_cast<void>(0) :                                                                  \
   opc::emulation::launch(kernel, together, static_cast<unsigned>(blocks), static_cast<unsigned>(threads), \
                          static_cast<size_t>(bytes), __VA_ARGS__))

namespace opc {
namespace emulation {

/* An array that the threads of a block share. */
template <typename T, int64_t count>
struct shared_array {
  T elements[count];
  T &operator[](int64_t i) {
    if (i < 0 || i >= count) stop("an index %lld of a shared array of %lld elements", i, count);
    return elements[i];
  }
};

/* The shared memory that a launch asks for. */
struct shared_bytes {
  operator char *() const { return block().dynamic; }
};

template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), bool together, unsigned blocks, unsigned threads, size_t bytes,
                   Arguments &&...arguments) {
  const auto body = [&]() { kernel(arguments...); };
  run_grid(together, blocks, threads, bytes, [](const void *of) { (*static_cast<decltype(&body)>(of))(); }, &body);
}

}  // namespace emulation
}  // namespace opc

#define threadIdx (opc::emulation::block().thread)
#define blockIdx (opc::emulation::block().number)
#define blockDim (opc::emulation::block().threads)
#define gridDim (opc::emulation::block().blocks)

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif
static inline void __syncthreads() { opc::emulation::wait(opc::emulation::at_barrier, 0); }
static inline void __syncwarp(unsigned lanes = 0xffffffffu) { opc::emulation::wait(opc::emulation::at_warp, lanes); }

/* Each lane shows a value; when all have, each reads that of one of them. */
template <typename T>
static inline T opc_from_lane(unsigned lanes, T value, unsigned lane) {
  static_assert(sizeof(T) <= 8, "a lane shows 8 bytes");
  opc::emulation::show(&value, sizeof value);
  opc::emulation::wait(opc::emulation::at_warp, lanes);
  opc::emulation::shown(lane, &value, sizeof value);
  return value;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned lanes, T value, unsigned distance) {
  return opc_from_lane(lanes, value, (threadIdx.x % 32) ^ distance);
}
template <typename T>
static inline T __shfl_down_sync(unsigned lanes, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return opc_from_lane(lanes, value, lane + distance < 32 ? lane + distance : lane);
}
template <typename T>
static inline T __shfl_up_sync(unsigned lanes, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return opc_from_lane(lanes, value, lane >= distance ? lane - distance : lane);
}
template <typename T>
static inline T __shfl_sync(unsigned lanes, T value, unsigned lane) {
  return opc_from_lane(lanes, value, lane % 32);
}
static inline unsigned __ballot_sync(unsigned lanes, bool condition) {
  const uint64_t own = condition;
  opc::emulation::show(&own, sizeof own);
  opc::emulation::wait(opc::emulation::at_warp, lanes);
  const uint64_t *const all = opc::emulation::all_shown();
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) votes |= static_cast<unsigned>(all[lane] & 1) << lane;
  return votes & lanes;
}
static inline bool __any_sync(unsigned lanes, bool condition) { return __ballot_sync(lanes, condition) != 0; }
static inline bool __all_sync(unsigned lanes, bool condition) { return __ballot_sync(lanes, !condition) == 0; }

/* Fibers do not interrupt each other, and calls of several host threads do not share what kernels write. */
template <typename T>
static inline T atomicAdd(T *to, T value) {
  const T before = *to;
  *to = T(before + value);
  return before;
}
template <typename T>
static inline T atomicMax(T *to, T value) {
  const T before = *to;
  if (value > before) *to = value;
  return before;
}
template <typename T>
static inline T atomicCAS(T *to, T expected, T value) {
  const T before = *to;
  if (before == expected) *to = value;
  return before;
}

#if !defined(__clang__)
#pragma GCC pop_options
#endif
#endif  // OPC_CUDA_HOST_H
