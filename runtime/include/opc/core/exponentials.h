/* exp and what is written over it, see core/binary.h.
 *
 * The number of operations is what they cost: on processors with two units for products these are the limit, not latency.
 */
#ifndef OPC_CORE_EXPONENTIALS_H
#define OPC_CORE_EXPONENTIALS_H

#include "opc/core/binary.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Bounds of arguments, which compilers must take for variables: something they can't see might call the function below. So
 * `least > x ? least : x` becomes the one instruction that it is, and that hands a NaN on; with a literal, GCC turns the comparison round
 * and then needs two. At the lower ones of exp and exp2 a power of two is written as 0: processors take long over products that are too
 * small for any number but 0, which a row of scores has many of where a mask holds -inf. */
template <typename T>
struct Bounds {
  T exp_least, exp_most, exp2_least, exp2_most, erf_most, sigmoid_least, sigmoid_most, tanh_most, erfc_most, pow_most;
};
#define OPC_FLOAT_BOUNDS {-176.5f, 89.0f, -254.0f, 129.0f, 3.92f, -120.0f, 120.0f, 9.1f, 10.3f, 160.0f}
#define OPC_DOUBLE_BOUNDS {-1418.5, 710.0, -2046.0, 1025.0, 5.9225, -760.0, 760.0, 19.1, 27.5, 1100.0}
#if defined(__CUDACC__)
OPC_INLINE Bounds<float> bounds_of(float) { return OPC_FLOAT_BOUNDS; }
OPC_INLINE Bounds<double> bounds_of(double) { return OPC_DOUBLE_BOUNDS; }
#else
static Bounds<float> float_bounds = OPC_FLOAT_BOUNDS;
static Bounds<double> double_bounds = OPC_DOUBLE_BOUNDS;
__attribute__((used)) static void change_bounds(const Bounds<float> *floats, const Bounds<double> *doubles) {
  float_bounds = *floats;
  double_bounds = *doubles;
}
OPC_INLINE const Bounds<float> &bounds_of(float) { return float_bounds; }
OPC_INLINE const Bounds<double> &bounds_of(double) { return double_bounds; }
#endif

/* The larger of a bound and x, and the smaller; a NaN of x stays one. */
template <typename T>
OPC_INLINE T not_below(T bound, T x) {
  return bound > x ? bound : x;
}
template <typename T>
OPC_INLINE T not_above(T bound, T x) {
  return bound < x ? bound : x;
}

/* exp(r) - 1 for |r| <= ln 2, by a polynomial with which 1 more has the least maximum relative error. */
template <typename T>
OPC_INLINE T exp_rest(T r) {
  if constexpr (is_float<T>) {
    const T c = polynomial(
        r, 0.5000003576278687f, 0.16666613519191742f, 0.04166126251220703f, 0.008336106315255165f, 0.0014104594010859728f,
        0.00019611445895861834f);
    return multiply_add(c, r * r, r);
  } else {
    const T c = long_polynomial(
        r, 0.4999999999999993, 0.16666666666666938, 0.04166666666670197, 0.008333333333269714, 0.0013888888883586306,
        0.00019841269892943833, 2.4801590826671918e-05, 2.755730059003625e-06, 2.7556158589606334e-07, 2.505504396550943e-08,
        2.1062296118050754e-09, 1.5934885920784709e-10);
    return multiply_add(c, r * r, r);
  }
}

/* 2^h of h + shift, whose last bits are those of h. */
template <typename T>
OPC_INLINE T power_of_two(T shifted) {
  return from_bits<T>((to_bits(shifted) << binary<T>::digits) + binary<T>::one);
}

/* x = 2 h ln 2 + r with an integer h and |r| <= ln 2: 2 ln 2 in two parts, the first short enough for exact products with h. */
template <typename T>
struct Reduced {
  T shifted, r;
};
template <typename T>
OPC_INLINE Reduced<T> reduced(T x) {
  constexpr T high = is_float<T> ? T(-1.38629150390625) : T(-1.3862943611197807);
  constexpr T low = is_float<T> ? T(-2.8572136405724535e-06) : T(-1.0995846037416742e-13);
  const T shifted = multiply_add(x, T(0.7213475204444817), binary<T>::shift), h = shifted - binary<T>::shift;
  return {shifted, multiply_add(h, low, multiply_add(h, high, x))};
}

/* exp between its bounds, with an error below 1.7 ulp; of float, 1.7 too: 2^h twice, so that subnormal results round as they should. */
template <typename T>
OPC_INLINE T exp_inside(T x) {
  const Reduced<T> of = reduced(x);
  const T power = power_of_two(of.shifted);
  return multiply_add(exp_rest(of.r), power, power) * power;
}

/* exp for x up to the upper bound; at the lower one it is 0. A GPU has a unit for powers of two, and CUDA's function an error of 1 ulp. */
template <typename T>
OPC_INLINE T exp_below(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (is_float<T>) return expf(x);
#endif
  return exp_inside(not_below(bounds_of(x).exp_least, x));
}

/* At the upper bound, exp is infinite. */
template <typename T>
OPC_INLINE T exp(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (is_float<T>) return expf(x);
#endif
  return exp_inside(not_above(bounds_of(x).exp_most, not_below(bounds_of(x).exp_least, x)));
}

/* exp(x) - 1 with an error below 1.9 ulp. Near 0, where h is 0, it is exp_rest itself; halves, so that what is finite does not overflow. */
template <typename T>
OPC_INLINE T expm1(T any_x) {
  const T x = not_above(bounds_of(any_x).exp_most, not_below(bounds_of(any_x).exp_least, any_x));
  const Reduced<T> of = reduced(x);
  const T power = power_of_two(of.shifted), half = power * T(0.5) * power;
  return signed_as(T(2) * multiply_add(exp_rest(of.r), half, half - T(0.5)), x); /* of -0, too */
}

/* 2^x with an error below 1.7 ulp: x = h + f with an integer h, and 2^h in two parts, so that subnormal results round as they should. */
template <typename T>
OPC_INLINE T exp2(T any_x) {
  const T x = not_above(bounds_of(any_x).exp2_most, not_below(bounds_of(any_x).exp2_least, any_x));
  const T shift = binary<T>::shift, h = (x + shift) - shift, first = multiply_add(h, T(0.5), shift);
  const T power = power_of_two(first), other = power_of_two(h - (first - shift) + shift);
  return multiply_add(exp_rest(T((x - h) * T(0.6931471805599453))), power, power) * other;
}

/* tanh with an error below 3 ulp: -e / (2 + e) of e = exp(-2 |x|) - 1, which is no less than -1. At its bound tanh rounds to 1. */
template <typename T>
OPC_INLINE T tanh(T x) {
  const Reduced<T> of = reduced(T(-2) * not_above(bounds_of(x).tanh_most, size_of(x)));
  const T power = power_of_two(of.shifted), square = power * power;
  const T e = multiply_add(exp_rest(of.r), square, square - 1);
  return signed_as(e / (T(-2) - e), x);
}

/* exp(x) / 2 for x >= 0, which is infinite later than exp(x), and (exp(x) - 1) / 2, which is no number there. */
template <typename T>
struct Halves {
  T exp, expm1;
};
template <typename T>
OPC_INLINE Halves<T> half_exp(T any_x) {
  const Reduced<T> of = reduced(not_above(bounds_of(any_x).exp_most + 1, any_x));
  const T power = power_of_two(of.shifted), half_power = power * T(0.5), half = half_power * power, rest = exp_rest(of.r);
  return {multiply_add(rest, power, power) * half_power, multiply_add(rest, half, half - T(0.5))};
}

/* sinh with an error below 3.5 ulp: from 20 on, it is half of exp. */
template <typename T>
OPC_INLINE T sinh(T x) {
  const T size = size_of(x);
  const Halves<T> half = half_exp(size);
  const T inside = half.expm1 * (T(1) + T(1) / multiply_add(T(2), half.expm1, T(1)));
  return signed_as(size < 20 ? inside : half.exp, x);
}

/* cosh with an error below 2.5 ulp. */
template <typename T>
OPC_INLINE T cosh(T x) {
  const T half = half_exp(size_of(x)).exp;
  return half + T(0.25) / half;
}

/* 1 / (1 + exp(-x)) with an error below 3.2 ulp: with exp(-x) = m b^2, b = 2^h and m as in exp_inside, it is 1/b over 1/b + m b, in
 * which nothing overflows, and the quotient alone is subnormal where the result is. At the bounds it is 0 and 1. */
template <typename T>
OPC_INLINE T sigmoid(T any_x) {
  const T x = not_above(bounds_of(any_x).sigmoid_most, not_below(bounds_of(any_x).sigmoid_least, any_x));
  const Reduced<T> of = reduced(-x);
  const T b = power_of_two(of.shifted), inverse = from_bits<T>(2 * binary<T>::one - to_bits(b));
  return inverse / (multiply_add(exp_rest(of.r), b, b) + inverse);
}

/* x / y of y >= 1 with the inverse of y at hand, which has an error of 1.5 ulp. */
template <typename T>
OPC_INLINE T quotient(T x, T, T inverse) {
  return x * inverse;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_EXPONENTIALS_H
