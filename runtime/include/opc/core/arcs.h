/* asin, acos, atan and atan2, see core/binary.h. */
#ifndef OPC_CORE_ARCS_H
#define OPC_CORE_ARCS_H

#include "opc/core/binary.h"

namespace opc {
inline namespace OPC_VARIANT {

/* pi / 2 in two parts. */
template <typename T>
struct quarter {
  static constexpr T turn = is_float<T> ? T(1.5707963705062866) : T(1.5707963267948966);
  static constexpr T rest = is_float<T> ? T(-4.371139000186241e-08) : T(6.123233995736766e-17);
};

/* (asin(z) - z) / z^3 of y = z^2 <= 1/4. */
template <typename T>
OPC_INLINE T asin_rest(T y) {
  if constexpr (is_float<T>) {
    return polynomial(
        y, 0.16666754063786593f, 0.07495235051804322f, 0.0454781017204009f, 0.024141906698309346f, 0.04222939112699955f);
  } else {
    return polynomial(
        y, 0.16666666666665378, 0.07500000000344027, 0.04464285682259293, 0.03038195937127142, 0.02237175248627339, 0.017359787859005885,
        0.013884422507215697, 0.012174500751620564, 0.006505295623988912, 0.019589841069217517, -0.016320175744546864,
        0.031977581684433425);
  }
}

/* asin of the lesser of |x| and sqrt((1 - |x|) / 2), whose double is acos(|x|); no number beyond 1. The lesser is one instruction, where
 * a choice by |x| > 1/2 would be a branch around a root. */
template <typename T>
OPC_INLINE T lesser_arc(T size) {
  const T root = root_of((T(1) - size) * T(0.5)), z = size < root ? size : root, y = z * z;
  return multiply_add(asin_rest(y), y * z, z);
}

/* asin and acos with errors below 2.5 ulp. */
template <typename T>
OPC_INLINE T asin(T x) {
  const T size = size_of(x), value = lesser_arc(size);
  const T large = quarter<T>::turn - (T(2) * value - quarter<T>::rest);
  return signed_as(size > T(0.5) ? large : value, x);
}
template <typename T>
OPC_INLINE T acos(T x) {
  const T size = size_of(x), value = lesser_arc(size);
  const bool large = size > T(0.5);
  const T turns = large ? (x < 0 ? T(2) : T(0)) : T(1), by = large ? T(2) : T(-1);
  return multiply_add(turns, quarter<T>::turn, multiply_add(turns, quarter<T>::rest, signed_as(T(1), x) * by * value));
}

/* (atan(z) - z) / z^3 of y = z^2 for |z| <= tan(pi / 8). */
template <typename T>
OPC_INLINE T atan_rest(T y) {
  if constexpr (is_float<T>) {
    return polynomial(y, -0.33332955245327117f, 0.19977919890632095f, -0.13879736839750226f, 0.08059835186286474f);
  } else {
    return polynomial(
        y, -0.333333333333332, 0.19999999999954, -0.14285714280239725, 0.11111110785677984, -0.09090897822697677, 0.07692061384026441,
        -0.06663117418885553, 0.05847986750406976, -0.0503974315644238, 0.03807566146721659, -0.01791930609043201);
  }
}

/* atan with an error below 2.5 ulp: of z = |x|, of (|x| - 1) / (|x| + 1) an eighth of a turn less, or of -1 / |x| a quarter less. */
template <typename T>
OPC_INLINE T atan(T x) {
  const T size = size_of(x);
  const bool large = size > T(2.414213562373095), middle = size > T(0.4142135623730950);
  const T above = large ? T(-1) : middle ? size - 1 : size, below = large ? size : middle ? size + 1 : T(1);
  const T turn = large ? quarter<T>::turn : middle ? quarter<T>::turn / 2 : T(0);
  const T rest = large ? quarter<T>::rest : middle ? quarter<T>::rest / 2 : T(0);
  const T z = above / below, y = z * z;
  return signed_as(turn + (z + multiply_add(atan_rest(y), y * z, rest)), x);
}

/* The angle of the point (x, y) with an error below 3.5 ulp: of the lesser of |x| and |y| over the larger, turned and mirrored to its
 * octant. Zeros keep their signs, and infinities count as one length, as C's annex F has it. */
template <typename T>
OPC_INLINE T atan2(T y, T x) {
  constexpr T turn = quarter<T>::turn, rest = quarter<T>::rest;
  const T a = size_of(x), b = size_of(y);
  const bool steep = b > a;
  const T less = steep ? a : b, more = steep ? b : a;
  const T angle = atan(more == 0 ? more : less == binary<T>::infinity ? T(1) : less / more);
  const T upper = steep ? turn - (angle - rest) : angle;
  const T value = signed_as(T(1), x) < 0 ? T(2) * turn - (upper - T(2) * rest) : upper;
  return x != x ? x : y != y ? y : signed_as(value, y);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_ARCS_H
