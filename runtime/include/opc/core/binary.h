/* What the functions of math.h are written with: floating values as bits, rounding by a shift, polynomials.
 *
 * The functions are text over these, for float and double alike: no branches, tables or calls, so that every compiler inlines them into
 * loops and vectorises them there, and kernels give the same bits whoever compiles them. What is not said to be another's are minimax
 * polynomials, by Remez' exchange in 45 digits (E. W. Cheney, Introduction to Approximation Theory, 1966, chapter 3), rounded to the type.
 */
#ifndef OPC_CORE_BINARY_H
#define OPC_CORE_BINARY_H

#include <stdint.h>
#include <string.h>

#include "opc/core/variant.h"

namespace opc {
inline namespace OPC_VARIANT {

/* The numbers of a type that its layout gives: `one` are the bits of 1, and `shift` is what leaves integers in the last bits of a sum. */
template <typename T>
struct binary;
template <>
struct binary<float> {
  typedef uint32_t bits;
  static constexpr int digits = 23;
  static constexpr bits one = 0x3f800000, root_half = 0x3f3504f3;
  static constexpr float shift = 0x1.8p23f, whole = 0x1p23f, bias = 127, least_normal = 0x1p-126f, infinity = __builtin_inff();
};
template <>
struct binary<double> {
  typedef uint64_t bits;
  static constexpr int digits = 52;
  static constexpr bits one = 0x3ff0000000000000, root_half = 0x3fe6a09e667f3bcd;
  static constexpr double shift = 0x1.8p52, whole = 0x1p52, bias = 1023, least_normal = 0x1p-1022, infinity = __builtin_inf();
};

template <typename T>
constexpr bool is_float = sizeof(T) == sizeof(float);

template <typename T>
constexpr bool keeps_sign = T(-1) < T(1);

/* x < 0, which nothing without a sign is: nvcc warns of the comparison then. */
template <typename T>
OPC_INLINE bool is_below_zero(T x) {
  if constexpr (keeps_sign<T>) {
    return x < 0;
  } else {
    return false;
  }
}

template <typename T>
OPC_INLINE typename binary<T>::bits to_bits(T x) {
  typename binary<T>::bits bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
template <typename T>
OPC_INLINE T from_bits(typename binary<T>::bits bits) {
  T x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* x * y + z, rounded once where the instruction set has it and twice elsewhere. */
OPC_INLINE float multiply_add(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
OPC_INLINE double multiply_add(double x, double y, double z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}

/* Magnitude and sign. */
OPC_INLINE float size_of(float x) { return __builtin_fabsf(x); }
OPC_INLINE double size_of(double x) { return __builtin_fabs(x); }
OPC_INLINE float signed_as(float size, float x) { return __builtin_copysignf(size, x); }
OPC_INLINE double signed_as(double size, double x) { return __builtin_copysign(size, x); }
OPC_INLINE float root_of(float x) { return __builtin_sqrtf(x); }
OPC_INLINE double root_of(double x) { return __builtin_sqrt(x); }

/* c0 + c1 x + c2 x^2 + ..., in two chains of every second power: half as deep as Horner's rule, for one product more. */
template <typename T>
OPC_INLINE T in_pairs(T, T, T c0) {
  return c0;
}
template <typename T>
OPC_INLINE T in_pairs(T x, T, T c0, T c1) {
  return multiply_add(c1, x, c0);
}
template <typename T, typename... Rest>
OPC_INLINE T in_pairs(T x, T x2, T c0, T c1, T c2, Rest... rest) {
  return multiply_add(in_pairs(x, x2, c2, rest...), x2, multiply_add(c1, x, c0));
}
template <typename T, typename... Rest>
OPC_INLINE T polynomial(T x, T c0, Rest... rest) {
  return in_pairs(x, T(x * x), c0, rest...);
}

/* The same in four chains, for many terms. */
template <typename T>
OPC_INLINE T in_fours(T x, T x2, T, T c0) {
  return in_pairs(x, x2, c0);
}
template <typename T>
OPC_INLINE T in_fours(T x, T x2, T, T c0, T c1) {
  return in_pairs(x, x2, c0, c1);
}
template <typename T>
OPC_INLINE T in_fours(T x, T x2, T, T c0, T c1, T c2) {
  return in_pairs(x, x2, c0, c1, c2);
}
template <typename T>
OPC_INLINE T in_fours(T x, T x2, T, T c0, T c1, T c2, T c3) {
  return in_pairs(x, x2, c0, c1, c2, c3);
}
template <typename T, typename... Rest>
OPC_INLINE T in_fours(T x, T x2, T x4, T c0, T c1, T c2, T c3, T c4, Rest... rest) {
  return multiply_add(in_fours(x, x2, x4, c4, rest...), x4, in_pairs(x, x2, c0, c1, c2, c3));
}
template <typename T, typename... Rest>
OPC_INLINE T long_polynomial(T x, T c0, Rest... rest) {
  const T x2 = x * x;
  return in_fours(x, x2, T(x2 * x2), c0, rest...);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_BINARY_H
