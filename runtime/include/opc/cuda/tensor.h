/* Tensor cores, the fragments that warps give them, and copies to shared memory that threads do not wait for: PTX's mma, ldmatrix and
 * cp.async, or those of opc/cuda/host_tensor.h. */
#ifndef OPC_CUDA_TENSOR_H
#define OPC_CUDA_TENSOR_H

#include "opc/cuda/memory.h"

#if !defined(__CUDACC__)
#include "opc/cuda/host_tensor.h"
#endif

namespace opc {
inline namespace OPC_VARIANT {

#if defined(__CUDACC__)

/* An address in shared memory. */
typedef uint32_t shared_place;
OPC_DEVICE shared_place place_of_shared(const void *memory) { return static_cast<uint32_t>(__cvta_generic_to_shared(memory)); }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define OPC_HAS_ASYNC_COPIES 1
#else
#define OPC_HAS_ASYNC_COPIES 0
#endif

/* Copies 16 or 4 bytes, of which the first `bytes` are read and the others are zeros. */
OPC_DEVICE void copy_16_bytes(shared_place to, const void *from, int bytes) {
#if OPC_HAS_ASYNC_COPIES
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  uint32_t words[4] = {0, 0, 0, 0};
  const uint16_t *halves = static_cast<const uint16_t *>(from);
  OPC_UNROLLED
  for (int i = 0; i < 8; ++i) {
    if (2 * i < bytes) words[i / 2] |= static_cast<uint32_t>(halves[i]) << (16 * (i % 2));
  }
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
OPC_DEVICE void copy_4_bytes(shared_place to, const void *from, int bytes) {
#if OPC_HAS_ASYNC_COPIES
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  const uint32_t word = bytes == 0 ? 0 : *static_cast<const uint32_t *>(from);
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
#endif
}

/* What a thread has copied since the last call is a group; and waiting until all groups but the `left` last ones are there. Other threads
 * see them behind a barrier. */
OPC_DEVICE void end_copies() {
#if OPC_HAS_ASYNC_COPIES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int left>
OPC_DEVICE void wait_for_copies() {
#if OPC_HAS_ASYNC_COPIES
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

OPC_DEVICE void write_shared(shared_place to, float value) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory"); }
OPC_DEVICE void write_shared(shared_place to, uint16_t value) { asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(value) : "memory"); }
OPC_DEVICE void write_shared(shared_place to, const uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
OPC_DEVICE void write_shared(shared_place to, const float (&values)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}
OPC_DEVICE void write_shared(shared_place to, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(first), "f"(second) : "memory");
}
OPC_DEVICE void read_shared(shared_place from, float &value) { asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory"); }
OPC_DEVICE void read_shared(shared_place from, uint32_t &first, uint32_t &second) {
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(from) : "memory");
}
OPC_DEVICE void read_shared(shared_place from, float (&values)[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(from));
}

/* Stores 16 or 8 bytes at a multiple of as many. */
OPC_DEVICE void store_16_bytes(void *to, const uint32_t (&words)[4]) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}

OPC_DEVICE void store_8_bytes(void *to, uint32_t first, uint32_t second) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(first), "r"(second) : "memory");
}

/* Four matrices of 8 x 8 elements of 16 bits: lanes 8 i to 8 i + 7 tell where the rows of matrix i lie, and lane l gets elements 2 (l % 4)
 * and 2 (l % 4) + 1 of row l / 4 of each, or where they are `turned`, of column l / 4. */
template <bool turned>
OPC_DEVICE void read_matrices(shared_place row, uint32_t (&words)[4]) {
  if constexpr (turned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(row));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(row));
  }
}

/* total += a b, for a of 16 x 16 and b of 16 x 8 elements. With g = lane / 4 and t = lane % 4, a lane has of a the rows g and g + 8, of b
 * the column g, each at terms 2 t, 2 t + 1, and these + 8; and of the total rows g and g + 8, columns 2 t and 2 t + 1. */
template <typename Stored>
OPC_DEVICE void multiply_fragments(float (&total)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if constexpr (std::is_same<Stored, float16>::value) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(total[0]), "+f"(total[1]), "+f"(total[2]), "+f"(total[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(total[0]), "+f"(total[1]), "+f"(total[2]), "+f"(total[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  if constexpr (std::is_same<Stored, float16>::value) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(total[0]), "+f"(total[1]), "+f"(total[2]), "+f"(total[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(total[0]), "+f"(total[1]), "+f"(total[2]), "+f"(total[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
  } else {
    /* No tensor core has this type there: lanes get the elements of their rows and columns from each other. */
    const int group = static_cast<int>(threadIdx.x % 32) / 4, own = static_cast<int>(threadIdx.x % 4);
    OPC_PRAGMA(unroll 1)
    for (int at = 0; at < 8; ++at) {
      const int from = at % 4;
      const uint32_t b = at < 4 ? b0 : b1;
      const uint32_t upper = __shfl_sync(0xffffffffu, at < 4 ? a[0] : a[2], 4 * group + from);
      const uint32_t lower = __shfl_sync(0xffffffffu, at < 4 ? a[1] : a[3], 4 * group + from);
      const uint32_t first = __shfl_sync(0xffffffffu, b, 8 * own + from), second = __shfl_sync(0xffffffffu, b, 8 * own + 4 + from);
      OPC_UNROLLED
      for (int shift = 0; shift < 32; shift += 16) {
        const float above = widen(Stored{static_cast<uint16_t>(upper >> shift)}), below = widen(Stored{static_cast<uint16_t>(lower >> shift)});
        const float left = widen(Stored{static_cast<uint16_t>(first >> shift)}), right = widen(Stored{static_cast<uint16_t>(second >> shift)});
        total[0] += above * left;
        total[1] += above * right;
        total[2] += below * left;
        total[3] += below * right;
      }
    }
  }
#endif
}

#else

typedef char *shared_place;
OPC_DEVICE void store_16_bytes(void *to, const uint32_t (&words)[4]) { memcpy(to, words, sizeof(words)); }
OPC_DEVICE void store_8_bytes(void *to, uint32_t first, uint32_t second) {
  const uint32_t words[2] = {first, second};
  memcpy(to, words, sizeof(words));
}
using emulation::copy_16_bytes;
using emulation::copy_4_bytes;
using emulation::end_copies;
using emulation::multiply_fragments;
using emulation::place_of_shared;
using emulation::read_matrices;
using emulation::read_shared;
using emulation::wait_for_copies;
using emulation::write_shared;

#endif

/* The bits of an element of 16 bits that has this value, which it holds exactly. */
template <typename Stored>
OPC_DEVICE uint16_t bits_of_exact(float value) {
  if constexpr (Stored::bias == 127) {
    return static_cast<uint16_t>(bits_of(value) >> 16);
  } else {
#if defined(__CUDACC__)
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return narrow<Stored>(value).bits;
#endif
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_TENSOR_H
