/* PTX's mma, ldmatrix and cp.async for a C++ compiler, as opc/cuda/tensor.h names them.
 *
 * What a copy brings is there when its thread has waited for it, and until then the bytes that it goes to are all ones: who reads them
 * too early, or still needs what was there, gets no number. Fragments are laid out as the PTX ISA says. Products of a warp are exact, and
 * are added to the total in float32, in the order of their terms.
 */
#ifndef OPC_CUDA_HOST_TENSOR_H
#define OPC_CUDA_HOST_TENSOR_H

#include "opc/core/minifloat.h"
#include "opc/cuda/fibers.h"

namespace opc {
namespace emulation {

/* What a thread has asked to copy, and how many groups it has ended. */
struct copy_queue {
  enum : int { most = 256 };
  struct copy {
    char *to;
    int size;
    unsigned group;
    char bytes[16];
  };
  copy *copies = nullptr;
  int count = 0;
  unsigned groups = 0;
  uint64_t run = 0;
};

static inline copy_queue &own_copies() {
  static thread_local copy_queue *const queues = new copy_queue[most_threads];
  block_of_threads &b = block();
  copy_queue &own = queues[b.thread.x];
  if (own.copies == nullptr) own.copies = new copy_queue::copy[copy_queue::most];
  if (own.run == b.run) return own;
  if (own.count > 0) stop("%lld copies that no thread has waited for", own.count);
  own.run = b.run;
  return own;
}

/* Dynamic shared memory is checked for its bounds and for the alignment that the GPU asks for. */
static inline char *place_of_shared(char *memory) { return memory; }
static inline void check_shared(const char *at, int bytes) {
  const block_of_threads &b = block();
  const long long offset = at - b.dynamic;
  if (offset < 0 || offset + bytes > static_cast<long long>(b.dynamic_bytes)) {
    stop("byte %lld of shared memory of %lld bytes", offset, b.dynamic_bytes);
  }
  if (offset % bytes != 0) stop("%lld bytes at byte %lld of shared memory", bytes, offset);
}

static inline void copy_to_shared(char *to, const void *from, int size, int bytes) {
  check_shared(to, size);
  if (bytes < 0 || bytes > size) stop("a copy of %lld bytes of %lld", bytes, size);
  if (reinterpret_cast<uintptr_t>(from) % static_cast<uintptr_t>(size) != 0) stop("a copy of %lld bytes from elsewhere", size);
  copy_queue &own = own_copies();
  if (own.count == copy_queue::most) stop("more than %lld copies of a thread at once", own.count);
  copy_queue::copy &c = own.copies[own.count++];
  c.to = to;
  c.size = size;
  c.group = own.groups;
  memset(c.bytes, 0, sizeof c.bytes);
  if (bytes > 0) memcpy(c.bytes, from, static_cast<size_t>(bytes));
  memset(to, 0xff, static_cast<size_t>(size));
}
static inline void copy_16_bytes(char *to, const void *from, int bytes) { copy_to_shared(to, from, 16, bytes); }
static inline void copy_4_bytes(char *to, const void *from, int bytes) { copy_to_shared(to, from, 4, bytes); }
static inline void end_copies() { ++own_copies().groups; }
template <int left>
static inline void wait_for_copies() {
  copy_queue &own = own_copies();
  int kept = 0;
  for (int i = 0; i < own.count; ++i) {
    copy_queue::copy &c = own.copies[i];
    if (c.group + left < own.groups) {
      memcpy(c.to, c.bytes, static_cast<size_t>(c.size));
    } else {
      if (kept != i) own.copies[kept] = c;
      ++kept;
    }
  }
  own.count = kept;
}

static inline void write_shared(char *to, float value) {
  check_shared(to, 4);
  memcpy(to, &value, 4);
}
static inline void write_shared(char *to, uint16_t value) {
  check_shared(to, 2);
  memcpy(to, &value, 2);
}
static inline void write_shared(char *to, const uint32_t (&words)[4]) {
  check_shared(to, 16);
  memcpy(to, words, 16);
}
static inline void write_shared(char *to, const float (&values)[4]) {
  check_shared(to, 16);
  memcpy(to, values, 16);
}
static inline void write_shared(char *to, float first, float second) {
  check_shared(to, 8);
  memcpy(to, &first, 4);
  memcpy(to + 4, &second, 4);
}
static inline void read_shared(const char *from, float &value) {
  check_shared(from, 4);
  memcpy(&value, from, 4);
}
static inline void read_shared(const char *from, uint32_t &first, uint32_t &second) {
  check_shared(from, 8);
  memcpy(&first, from, 4);
  memcpy(&second, from + 4, 4);
}
static inline void read_shared(const char *from, float (&values)[4]) {
  check_shared(from, 16);
  memcpy(values, from, 16);
}

template <bool turned>
static inline void read_matrices(char *row, uint32_t (&words)[4]) {
  check_shared(row, 16);
  block_of_threads &b = block();
  const unsigned lane = b.thread.x % 32, group = lane / 4, own = lane % 4 * 2;
  show(&row, sizeof row);
  wait(at_warp, 0xffffffffu);
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    uint16_t two[2];
    for (unsigned i = 0; i < 2; ++i) {
      const char *from = nullptr;
      shown(8 * matrix + (turned ? own + i : group), &from, sizeof from);
      memcpy(&two[i], from + 2 * (turned ? group : own + i), 2);
    }
    words[matrix] = two[0] | static_cast<uint32_t>(two[1]) << 16;
  }
}

/* What lanes of a warp bring to a product: elements of a, in the order of its registers, and of b. */
struct warp_fragments {
  float a[32][8], b[32][4];
};

template <typename Stored>
static inline void multiply_fragments(float (&total)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  static thread_local warp_fragments(*const fragments)[2] = new warp_fragments[most_threads / 32][2];
  block_of_threads &b = block();
  const unsigned lane = b.thread.x % 32, group = lane / 4, own = lane % 4;
  warp_fragments &shared = fragments[b.thread.x / 32][b.fibers[b.thread.x].turns % 2];
  for (unsigned i = 0; i < 8; ++i) shared.a[lane][i] = widen(Stored{static_cast<uint16_t>(a[i / 2] >> (16 * (i % 2)))});
  for (unsigned i = 0; i < 4; ++i) shared.b[lane][i] = widen(Stored{static_cast<uint16_t>((i < 2 ? b0 : b1) >> (16 * (i % 2)))});
  wait(at_warp, 0xffffffffu);
  for (unsigned term = 0; term < 16; ++term) {
    /* Lane 4 row + term / 2 % 4 has the term; registers of a alternate between upper and lower rows. */
    const unsigned from = term / 2 % 4, at = term % 2, half = term / 8;
    const float upper = shared.a[4 * group + from][4 * half + at], lower = shared.a[4 * group + from][4 * half + 2 + at];
    const float left = shared.b[4 * (2 * own) + from][2 * half + at], right = shared.b[4 * (2 * own + 1) + from][2 * half + at];
    total[0] += upper * left;
    total[1] += upper * right;
    total[2] += lower * left;
    total[3] += lower * right;
  }
}

}  // namespace emulation
}  // namespace opc
#endif  // OPC_CUDA_HOST_TENSOR_H
