/* The threads of a block as fibers of one thread of the host: see opc/cuda/host.h. */
#ifndef OPC_CUDA_FIBERS_H
#define OPC_CUDA_FIBERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
/* Keeps what a call must keep on the stack of one fiber, and goes on where another stopped. */
extern "C" __attribute__((visibility("hidden"))) void opc_switch_fibers(void **from, void *to);
__asm__(
    ".text\n"
    ".type opc_switch_fibers,@function\n"
    "opc_switch_fibers:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size opc_switch_fibers, .-opc_switch_fibers\n");
#else
#include <ucontext.h>
#endif

/* The address sanitizer is told of each switch, for it has to know the stack that code runs on. */
#if defined(__SANITIZE_ADDRESS__)
#define OPC_TOLD_OF_STACKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPC_TOLD_OF_STACKS 1
#endif
#endif
#if defined(OPC_TOLD_OF_STACKS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* Kernels are compiled without optimisation where that takes longer than it saves; what they are run by is small. */
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif

namespace opc {
namespace emulation {

struct index3 {
  unsigned x = 0, y = 0, z = 0;
};

enum wait_state : int { ready, at_barrier, at_warp, done };

#if defined(OPC_TOLD_OF_STACKS)
enum : size_t { stack_bytes = 512 * 1024, most_threads = 1024 }; /* there is room around each variable */
#else
enum : size_t { stack_bytes = 128 * 1024, most_threads = 1024 };
#endif

template <typename... Values>
[[noreturn]] static void stop(const char *format, Values... values) {
  fprintf(stderr, "CUDA's emulation: ");
  fprintf(stderr, format, static_cast<long long>(values)...);
  fprintf(stderr, "\n");
  abort();
}

struct fiber {
#if defined(__x86_64__)
  void *place = nullptr;
#else
  ucontext_t place;
#endif
  char *stack = nullptr;
#if defined(OPC_TOLD_OF_STACKS)
  const void *bottom = nullptr;
  size_t size = 0;
#endif
  wait_state state = done;
  unsigned lanes = 0;
  unsigned turns = 0; /* how often its warp has waited */
};

/* The block that runs on a thread of the host. */
struct block_of_threads {
  index3 thread, number, threads, blocks;
  char *dynamic = nullptr;
  size_t dynamic_bytes = 0;
  uint64_t run = 0; /* how many blocks have been started */
  bool together = false;
  void (*body)(const void *) = nullptr;
  const void *argument = nullptr;
  fiber *fibers = nullptr;
  uint64_t (*lanes)[2][32] = nullptr; /* what the lanes of each warp show, by turns */
  fiber host;
  unsigned order[most_threads];
  uint64_t random = 0;
};

inline block_of_threads &block() {
  static thread_local block_of_threads current;
  return current;
}

/* A fiber that is `ending` is not switched to again before it has been started anew. */
static inline void switch_to(fiber &from, fiber &to, bool ending = false) {
#if defined(OPC_TOLD_OF_STACKS)
  void *kept = nullptr;
  __sanitizer_start_switch_fiber(ending ? nullptr : &kept, to.bottom, to.size);
#else
  static_cast<void>(ending);
#endif
#if defined(__x86_64__)
  opc_switch_fibers(&from.place, to.place);
#else
  swapcontext(&from.place, &to.place);
#endif
#if defined(OPC_TOLD_OF_STACKS)
  __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
#endif
}

static void run_fiber() {
  block_of_threads &b = block();
#if defined(OPC_TOLD_OF_STACKS)
  __sanitizer_finish_switch_fiber(nullptr, &b.host.bottom, &b.host.size);
#endif
  b.body(b.argument);
  fiber &own = b.fibers[b.thread.x];
  own.state = done;
  switch_to(own, b.host, true);
}

static void start_fiber(fiber &f) {
  if (f.stack == nullptr) f.stack = static_cast<char *>(malloc(stack_bytes));
  if (f.stack == nullptr) stop("no memory for the stacks of threads");
  f.state = ready;
  f.turns = 0;
#if defined(OPC_TOLD_OF_STACKS)
  f.bottom = f.stack;
  f.size = stack_bytes;
  /* Frames that nothing has returned from lie at the top. */
  __asan_unpoison_memory_region(f.stack + stack_bytes - 4096, 4096);
#endif
#if defined(__x86_64__)
  uintptr_t top = reinterpret_cast<uintptr_t>(f.stack + stack_bytes) & ~uintptr_t(15);
  void **place = reinterpret_cast<void **>(top) - 8; /* six registers, where to go on, and what a call leaves aligned */
  memset(place, 0, 8 * sizeof *place);
  place[6] = reinterpret_cast<void *>(run_fiber);
  f.place = place;
#else
  getcontext(&f.place);
  f.place.uc_stack.ss_sp = f.stack;
  f.place.uc_stack.ss_size = stack_bytes;
  f.place.uc_link = nullptr;
  makecontext(&f.place, run_fiber, 0);
#endif
}

static inline void check_together(const block_of_threads &b) {
  if (!b.together) stop("a thread waits for others in a kernel that was started as one whose threads do not");
}

static inline void wait(wait_state state, unsigned lanes) {
  block_of_threads &b = block();
  check_together(b);
  const unsigned own = b.thread.x;
  if (state == at_warp) {
    if ((lanes >> own % 32 & 1) == 0) stop("lane %lld waits for lanes among which it is not", own % 32);
    ++b.fibers[own].turns;
  }
  b.fibers[own].state = state;
  b.fibers[own].lanes = lanes;
  switch_to(b.fibers[own], b.host);
}

static inline void show(const void *value, size_t bytes) {
  block_of_threads &b = block();
  check_together(b);
  memcpy(&b.lanes[b.thread.x / 32][b.fibers[b.thread.x].turns % 2][b.thread.x % 32], value, bytes);
}

static inline void shown(unsigned lane, void *value, size_t bytes) {
  block_of_threads &b = block();
  memcpy(value, &b.lanes[b.thread.x / 32][(b.fibers[b.thread.x].turns - 1) % 2][lane], bytes);
}

/* What all lanes of a warp have shown. */
static inline const uint64_t *all_shown() {
  block_of_threads &b = block();
  return b.lanes[b.thread.x / 32][(b.fibers[b.thread.x].turns - 1) % 2];
}

static inline unsigned any_of(block_of_threads &b, unsigned count) {
  b.random ^= b.random << 13;
  b.random ^= b.random >> 7;
  b.random ^= b.random << 17;
  return static_cast<unsigned>(b.random >> 11) % count;
}

static inline void shuffle(block_of_threads &b) {
  for (unsigned i = b.threads.x; b.random != 0 && i > 1; --i) {
    const unsigned j = any_of(b, i), other = b.order[j];
    b.order[j] = b.order[i - 1];
    b.order[i - 1] = other;
  }
}

/* Lets the lanes of a warp go on for which all that they wait for have come; whether there are some. */
static inline bool release_warp(block_of_threads &b, unsigned first) {
  const unsigned count = b.threads.x - first < 32 ? b.threads.x - first : 32;
  unsigned waiting = 0, gone = 0;
  for (unsigned o = 0; o < count; ++o) {
    waiting |= unsigned(b.fibers[first + o].state == at_warp) << o;
    gone |= unsigned(b.fibers[first + o].state == done) << o;
  }
  bool released = false;
  for (unsigned left = waiting; left != 0;) {
    const unsigned lanes = b.fibers[first + static_cast<unsigned>(__builtin_ctz(left))].lanes;
    left &= ~lanes;
    if (lanes & gone) stop("lane %lld has returned, and others of its warp wait for it", __builtin_ctz(lanes & gone));
    if ((lanes & waiting) != lanes) continue;
    for (unsigned o = 0; o < count; ++o) {
      if ((lanes >> o & 1) == 0) continue;
      if (b.fibers[first + o].lanes != lanes) stop("lanes of a warp wait for different lanes");
      b.fibers[first + o].state = ready;
    }
    released = true;
  }
  return released;
}

static void run_block(block_of_threads &b) {
  for (unsigned t = 0; t < b.threads.x; ++t) start_fiber(b.fibers[t]);
  for (;;) {
    shuffle(b);
    for (unsigned i = 0; i < b.threads.x; ++i) {
      const unsigned t = b.order[i];
      if (b.fibers[t].state != ready) continue;
      b.thread.x = t;
      switch_to(b.host, b.fibers[t]);
    }
    bool released = false, left = false, all = true;
    for (unsigned first = 0; first < b.threads.x; first += 32) released = release_warp(b, first) || released;
    if (released) continue;
    for (unsigned t = 0; t < b.threads.x; ++t) {
      left = left || b.fibers[t].state != done;
      all = all && (b.fibers[t].state == at_barrier);
    }
    if (!left) return;
    if (!all) stop("some threads of a block wait at a barrier that others do not come to");
    for (unsigned t = 0; t < b.threads.x; ++t) b.fibers[t].state = ready;
  }
}

static void run_grid(bool together, unsigned blocks, unsigned threads, size_t bytes, void (*body)(const void *),
                     const void *argument) {
  block_of_threads &b = block();
  if (threads == 0 || threads > most_threads) stop("a block of %lld threads", threads);
  if (together && b.fibers == nullptr) {
    b.fibers = new fiber[most_threads];
    b.lanes = new uint64_t[most_threads / 32][2][32];
  }
  const char *seed = getenv("OPC_CUDA_SEED");
  b.random = seed == nullptr ? 0 : strtoull(seed, nullptr, 10) * 0x9e3779b97f4a7c15u;
  b.threads.x = threads;
  b.blocks.x = blocks;
  b.threads.y = b.threads.z = b.blocks.y = b.blocks.z = 1;
  b.together = together;
  b.body = body;
  b.argument = argument;
  b.dynamic = bytes == 0 ? nullptr : static_cast<char *>(malloc(bytes));
  b.dynamic_bytes = bytes;
  for (unsigned t = 0; t < threads; ++t) b.order[t] = t;
  unsigned *const numbers = static_cast<unsigned *>(malloc(blocks * sizeof(unsigned)));
  if (numbers == nullptr && blocks > 0) stop("no memory for the order of %lld blocks", blocks);
  for (unsigned n = 0; n < blocks; ++n) {
    /* Each comes before or behind any of those so far. */
    const unsigned other = b.random == 0 ? n : any_of(b, n + 1);
    numbers[n] = n;
    numbers[n] = numbers[other];
    numbers[other] = n;
  }
  for (unsigned n = 0; n < blocks; ++n) {
    b.number.x = numbers[n];
    ++b.run;
    if (together) {
      run_block(b);
      continue;
    }
    shuffle(b);
    for (unsigned i = 0; i < threads; ++i) {
      b.thread.x = b.order[i];
      body(argument);
    }
  }
  free(numbers);
  free(b.dynamic);
  b.dynamic = nullptr;
}

}  // namespace emulation
}  // namespace opc

#if !defined(__clang__)
#pragma GCC pop_options
#endif
#endif  // OPC_CUDA_FIBERS_H
