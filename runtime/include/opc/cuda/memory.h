/* Elements of tensors in a GPU's memory: stored narrow, computed in wider types, several at once where they lie together. */
#ifndef OPC_CUDA_MEMORY_H
#define OPC_CUDA_MEMORY_H

#include <type_traits>

#include "opc/core/math.h"
#include "opc/core/minifloat.h"
#include "opc/cuda/device.h"

namespace opc {
inline namespace OPC_VARIANT {

#if defined(__CUDA_ARCH__)
/* The types that a GPU converts itself: to the same numbers, but every NaN becomes the same one. */
template <typename Stored>
inline constexpr bool is_float16 = Stored::fraction == 10 && Stored::bias == 15 && Stored::top == top_encodings::ieee;
template <typename Stored>
inline constexpr bool is_bfloat16 = Stored::fraction == 7 && Stored::bias == 127 && Stored::top == top_encodings::ieee;

template <typename Stored>
OPC_DEVICE float device_widen(Stored value) {
  if constexpr (is_float16<Stored>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
  } else {
    return widen(value);
  }
}
template <typename Stored>
OPC_DEVICE Stored device_narrow(float value) {
  if constexpr (is_float16<Stored>) {
    Stored found;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(found.bits) : "f"(value));
    return found;
#if __CUDA_ARCH__ >= 800
  } else if constexpr (is_bfloat16<Stored>) {
    Stored found;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(found.bits) : "f"(value));
    return found;
#endif
  } else {
    return narrow<Stored>(value);
  }
}
/* Two at once, the first in the lower half of a word. */
template <typename Stored>
OPC_DEVICE uint32_t narrow_pair(float low, float high) {
  uint32_t pair;
  if constexpr (is_float16<Stored>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#if __CUDA_ARCH__ >= 800
  } else if constexpr (is_bfloat16<Stored>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  } else {
    pair = narrow<Stored>(low).bits | static_cast<uint32_t>(narrow<Stored>(high).bits) << 16;
  }
  return pair;
}
#else
template <typename Stored>
OPC_INLINE uint32_t narrow_pair(float low, float high) {
  return narrow<Stored>(low).bits | static_cast<uint32_t>(narrow<Stored>(high).bits) << 16;
}
template <typename Stored>
OPC_INLINE float device_widen(Stored value) {
  return widen(value);
}
template <typename Stored>
OPC_INLINE Stored device_narrow(float value) {
  return narrow<Stored>(value);
}
#endif

/* An element in the type it is computed in. */
template <typename Stored>
OPC_INLINE compute<Stored> load(const Stored *element) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    return device_widen(*element);
  } else {
    return *element;
  }
}

/* Rounds a value to an element. */
template <typename Stored>
OPC_INLINE void store(Stored *element, compute<Stored> value) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    *element = device_narrow<Stored>(value);
  } else {
    *element = value;
  }
}

/* An attribute that is a number, in the type that is asked for: to convert it on the device takes a unit that is rare there. */
struct real_number {
  double wide;
  float narrow;
  real_number() = default;
  explicit real_number(double value) : wide(value), narrow(static_cast<float>(value)) {}
  template <typename T>
  OPC_HOST_DEVICE T as() const {
    if constexpr (sizeof(T) == 4 && T(0.5) != T(0)) {
      return narrow;
    } else {
      return static_cast<T>(wide);
    }
  }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MEMORY_H
