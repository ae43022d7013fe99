/* Elements of tensors in a GPU's memory: stored narrow, computed in wider types, several at once where they lie together. */
#ifndef OPC_CUDA_MEMORY_H
#define OPC_CUDA_MEMORY_H

#include <type_traits>

#include "opc/core/math.h"
#include "opc/core/minifloat.h"
#include "opc/cuda/device.h"

namespace opc {

/* What kernels that are seldom called take elements as that are float16, bfloat16 or float32, and all kernels those that are int32 or int64
 * and are only read: which, a call tells, so that there is one kernel for all of them. */
struct any_float {};
struct any_int {};
template <>
struct compute_of<any_float> {
  typedef float type;
};
template <>
struct compute_of<any_int> {
  typedef int64_t type;
};
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
#if __CUDA_ARCH__ >= 800
  if constexpr (is_float16<Stored>) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  } else if constexpr (is_bfloat16<Stored>) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }
#endif
  return device_narrow<Stored>(low).bits | static_cast<uint32_t>(device_narrow<Stored>(high).bits) << 16;
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

/* A value times a power of two. ptxas would take it into a product that the value is, which then does not overflow where it should. */
template <typename T>
OPC_INLINE T scaled(T value, double by) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4) {
    float found;
    asm("fma.rn.f32 %0, %1, %2, 0f80000000;" : "=f"(found) : "f"(value), "f"(static_cast<float>(by)));
    return found;
  }
#endif
  return value * T(by);
}

/* The larger and the smaller one, NaN where either is. Of float32 it is one instruction, which puts 0 above -0; in loops over terms it pays,
 * elsewhere it may cost a register. */
template <typename T>
OPC_INLINE T larger(T x, T y) {
  return maximum(x, y);
}
template <typename T>
OPC_INLINE T smaller(T x, T y) {
  return minimum(x, y);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
OPC_DEVICE float larger(float x, float y) {
  float found;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(x), "f"(y));
  return found;
}
OPC_DEVICE float smaller(float x, float y) {
  float found;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(x), "f"(y));
  return found;
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

template <typename Stored>
inline constexpr bool is_any = std::is_same<std::remove_const_t<Stored>, any_float>::value || std::is_same<std::remove_const_t<Stored>, any_int>::value;

/* The bytes of an element that is the widest of a type. */
template <typename Stored>
inline constexpr int bytes_of = std::is_same<std::remove_const_t<Stored>, any_float>::value ? 4
                                : std::is_same<std::remove_const_t<Stored>, any_int>::value ? 8
                                                                                             : static_cast<int>(sizeof(Stored));

/* Where such an element lies, and its dtype. */
template <typename Any>
struct any_place {
  char *data;
  int32_t stored;
  OPC_DEVICE_MEMBER int64_t bytes() const {
    return std::is_same<Any, any_int>::value ? (stored == dtype_int64 ? 8 : 4) : stored == dtype_float32 ? 4 : 2;
  }
  OPC_DEVICE_MEMBER any_place operator+(int64_t elements) const { return {data + elements * bytes(), stored}; }
  OPC_DEVICE_MEMBER bool operator==(decltype(nullptr)) const { return data == nullptr; }
  OPC_DEVICE_MEMBER bool operator!=(decltype(nullptr)) const { return data != nullptr; }
};

/* Where elements of an operand lie. */
template <typename Stored, bool any = is_any<Stored>>
struct place_of_elements {
  typedef Stored *type;
};
template <typename Stored>
struct place_of_elements<Stored, true> {
  typedef any_place<std::remove_const_t<Stored>> type;
};
template <typename Stored>
using place_of = typename place_of_elements<Stored>::type;
template <typename Stored, typename Operand>
OPC_DEVICE place_of<Stored> elements_of(const Operand &o) {
  if constexpr (is_any<Stored>) {
    return {o.data, o.stored};
  } else {
    return reinterpret_cast<Stored *>(o.data);
  }
}

OPC_DEVICE float widen_half(uint16_t bits, int32_t stored) {
  return stored == dtype_bfloat16 ? device_widen(bfloat16{bits}) : device_widen(float16{bits});
}
OPC_DEVICE uint16_t narrow_half(float value, int32_t stored) {
  return stored == dtype_bfloat16 ? device_narrow<bfloat16>(value).bits : device_narrow<float16>(value).bits;
}
OPC_DEVICE float load(any_place<any_float> element) {
  if (element.stored == dtype_float32) return *reinterpret_cast<const float *>(element.data);
  return widen_half(*reinterpret_cast<const uint16_t *>(element.data), element.stored);
}
OPC_DEVICE int64_t load(any_place<any_int> element) {
  if (element.stored == dtype_int64) return *reinterpret_cast<const int64_t *>(element.data);
  return *reinterpret_cast<const int32_t *>(element.data);
}
OPC_DEVICE void store(any_place<any_float> element, float value) {
  if (element.stored == dtype_float32) {
    *reinterpret_cast<float *>(element.data) = value;
  } else {
    *reinterpret_cast<uint16_t *>(element.data) = narrow_half(value, element.stored);
  }
}

/* Elements of the widest of some types in 16 bytes. */
template <typename... Stored>
OPC_HOST_DEVICE constexpr int count_packed() {
  int widest = 1;
  ((widest = bytes_of<Stored> > widest ? bytes_of<Stored> : widest), ...);
  return 16 / widest;
}

/* An element: reading it widens, writing it rounds. */
template <typename Stored>
struct element {
  place_of<Stored> at;
  OPC_DEVICE_MEMBER operator compute<Stored>() const { return load(at); }
  OPC_DEVICE_MEMBER void operator=(compute<Stored> value) const { store(at, value); }
};
template <typename Stored>
struct element<const Stored> {
  place_of<const Stored> at;
  OPC_DEVICE_MEMBER operator compute<Stored>() const { return load(at); }
};

/* Some neighbours. */
template <typename Stored, int count>
struct alignas(sizeof(Stored) * count) pack {
  Stored elements[count];
  OPC_DEVICE_MEMBER element<Stored> operator[](int64_t i) { return {elements + i}; }
  OPC_DEVICE_MEMBER compute<Stored> operator[](int64_t i) const { return load(elements + i); }
};
template <int count>
struct pack<any_float, count> {
  float elements[count];
  OPC_DEVICE_MEMBER element<float> operator[](int64_t i) { return {elements + i}; }
  OPC_DEVICE_MEMBER float operator[](int64_t i) const { return elements[i]; }
};
template <int count>
struct pack<any_int, count> {
  int64_t elements[count];
  OPC_DEVICE_MEMBER int64_t operator[](int64_t i) const { return elements[i]; }
};

/* What is computed of some neighbours. */
template <typename T, int count>
struct computed_pack {
  T elements[count];
  OPC_DEVICE_MEMBER T &operator[](int64_t i) { return elements[i]; }
  OPC_DEVICE_MEMBER const T &operator[](int64_t i) const { return elements[i]; }
};

/* Neighbours from an element on that lie at a multiple of as many bytes as they have. */
template <int count, typename Stored>
OPC_DEVICE pack<std::remove_const_t<Stored>, count> load_together(place_of<Stored> at) {
  typedef pack<std::remove_const_t<Stored>, count> elements;
  if constexpr (!is_any<Stored>) {
    return *reinterpret_cast<const elements *>(at);
  } else {
    elements found;
    if constexpr (std::is_same<std::remove_const_t<Stored>, any_int>::value) {
      OPC_UNROLLED
      for (int k = 0; k < count; ++k) found.elements[k] = load(at + k);
    } else if (at.stored == dtype_float32) {
      const auto wide = *reinterpret_cast<const pack<float, count> *>(at.data);
      OPC_UNROLLED
      for (int k = 0; k < count; ++k) found.elements[k] = wide.elements[k];
    } else {
      const auto halves = *reinterpret_cast<const pack<uint16_t, count> *>(at.data);
      OPC_UNROLLED
      for (int k = 0; k < count; ++k) found.elements[k] = widen_half(halves.elements[k], at.stored);
    }
    return found;
  }
}
template <int count, typename Stored>
OPC_DEVICE void store_together(place_of<Stored> at, const pack<Stored, count> &values) {
  if constexpr (!is_any<Stored>) {
    *reinterpret_cast<pack<Stored, count> *>(at) = values;
  } else if (at.stored == dtype_float32) {
    pack<float, count> wide;
    OPC_UNROLLED
    for (int k = 0; k < count; ++k) wide.elements[k] = values.elements[k];
    *reinterpret_cast<pack<float, count> *>(at.data) = wide;
  } else {
    pack<uint16_t, count> halves;
    OPC_UNROLLED
    for (int k = 0; k < count; ++k) halves.elements[k] = narrow_half(values.elements[k], at.stored);
    *reinterpret_cast<pack<uint16_t, count> *>(at.data) = halves;
  }
}

/* The same of the points of a nest, of which those that lie outside of an operand are zeros. */
template <int count, typename Stored>
OPC_DEVICE pack<std::remove_const_t<Stored>, count> load_points(Stored *at, bool inside) {
  pack<std::remove_const_t<Stored>, count> found = {};
  return inside ? load_together<count, Stored>(at) : found;
}
template <int count, typename Any>
OPC_DEVICE pack<Any, count> load_points(any_place<Any> at, bool inside) {
  pack<Any, count> found = {};
  return inside ? load_together<count, Any>(at) : found;
}
template <int count, typename Stored>
OPC_DEVICE pack<Stored, count> new_points(Stored *) {
  return {};
}
template <int count, typename Any>
OPC_DEVICE pack<Any, count> new_points(any_place<Any>) {
  return {};
}
template <int count, typename Stored>
OPC_DEVICE void store_points(Stored *at, const pack<Stored, count> &values) {
  store_together<count, Stored>(at, values);
}
template <int count, typename Any>
OPC_DEVICE void store_points(any_place<Any> at, const pack<Any, count> &values) {
  store_together<count, Any>(at, values);
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
