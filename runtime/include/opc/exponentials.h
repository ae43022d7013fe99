/* exp of float and what is written over it: here rather than in a library, so that they are inlined into loops and vectorised there.
 *
 * The number of operations is what they cost: on processors with two units for products these are the limit, not latency.
 */
#ifndef OPC_EXPONENTIALS_H
#define OPC_EXPONENTIALS_H

#include <stdint.h>
#include <string.h>

#include "opc/variant.h"

namespace opc {
inline namespace OPC_VARIANT {

/* x * y + z, rounded once where the instruction set has it and twice elsewhere. */
OPC_INLINE float multiply_add(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}

/* Bounds of arguments, which compilers must take for variables: something they can't see might call the function below. So
 * `least > x ? least : x` becomes the one instruction that it is, and that hands a NaN on; with a literal, GCC turns the comparison round
 * and then needs two. */
static float exp_least = -104.0f, exp_most = 89.0f, erf_most = 3.92f, sigmoid_least = -120.0f, sigmoid_most = 120.0f;
__attribute__((used)) static void change_bounds(const float *to) {
  exp_least = to[0];
  exp_most = to[1];
  erf_most = to[2];
  sigmoid_least = to[3];
  sigmoid_most = to[4];
}

/* The larger of a bound and x, and the smaller; a NaN of x stays one. */
OPC_INLINE float not_below(float bound, float x) { return bound > x ? bound : x; }
OPC_INLINE float not_above(float bound, float x) { return bound < x ? bound : x; }

/* exp(r) - 1 for |r| <= ln 2, by a polynomial with which 1 more has the least maximum relative error. */
OPC_INLINE float exp_rest(float r) {
  const float r2 = r * r;
  const float c2 = multiply_add(0.16666613519191742f, r, 0.5000003576278687f);
  const float c4 = multiply_add(0.008336106315255165f, r, 0.04166126251220703f);
  const float c6 = multiply_add(0.00019611445895861834f, r, 0.0014104594010859728f);
  return multiply_add(multiply_add(multiply_add(c6, r2, c4), r2, c2), r2, r);
}

/* 2^h of h + 0x1.8p23f, whose last bits are those of h. */
OPC_INLINE float power_of_two(float shifted) {
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  float power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* exp for -104 <= x <= 89, with an error below 1.7 ulp: x = 2 h ln 2 + r with an integer h, and 2^h twice, so that subnormal results round
 * as they should. */
OPC_INLINE float exp_inside(float x) {
  const float shifted = multiply_add(x, 0.7213475204444817f, 0x1.8p23f);
  const float h = shifted - 0x1.8p23f;
  const float r = multiply_add(h, -2.8572136405724535e-06f, multiply_add(h, -1.38629150390625f, x));
  const float power = power_of_two(shifted);
  return multiply_add(exp_rest(r), power, power) * power;
}

/* exp for x <= 89; at -104 it is 0. */
OPC_INLINE float exp_below(float x) { return exp_inside(not_below(exp_least, x)); }

/* At 89, exp is infinite. */
OPC_INLINE float exp(float x) { return exp_inside(not_above(exp_most, not_below(exp_least, x))); }

/* exp(x) - 1 with an error below 1.9 ulp. Near 0, where h is 0, it is exp_rest itself; halves, so that what is finite does not overflow. */
OPC_INLINE float expm1(float any_x) {
  const float x = not_above(exp_most, not_below(exp_least, any_x));
  const float shifted = multiply_add(x, 0.7213475204444817f, 0x1.8p23f);
  const float h = shifted - 0x1.8p23f;
  const float r = multiply_add(h, -2.8572136405724535e-06f, multiply_add(h, -1.38629150390625f, x));
  const float power = power_of_two(shifted);
  const float half = power * 0.5f * power;
  return __builtin_copysignf(2.0f * multiply_add(exp_rest(r), half, half - 0.5f), x); /* of -0, too */
}

/* erf with an error below 1.9 ulp: v - v^2 / 4, where v = 2 - 2 sqrt(erfc(t)) of t = |x| takes a polynomial of a far lower degree than
 * erf itself. v = t + t Q(t), so that small results keep their digits; Q gives erf the least maximum relative error on [0, 3.92]. Beyond,
 * erf rounds to 1. */
OPC_INLINE float erf(float x) {
  const float t = not_above(erf_most, __builtin_fabsf(x));
  const float t2 = t * t;
  const float q1 = multiply_add(-0.1965358853340149f, t, 0.3183097243309021f);
  const float q3 = multiply_add(0.033330388367176056f, t, -0.0855754017829895f);
  const float q5 = multiply_add(-0.0050978646613657475f, t, 0.014849614351987839f);
  const float q7 = multiply_add(-0.0001925332035170868f, t, -0.0011435666820034385f);
  const float q9 = multiply_add(-0.00031370631768368185f, t, 0.0007124824333004653f);
  const float q11 = multiply_add(-6.813640084146755e-06f, t, 6.481346645159647e-05f);
  const float high = multiply_add(multiply_add(multiply_add(2.958554716769868e-07f, t2, q11), t2, q9), t2, q7);
  const float low = multiply_add(multiply_add(multiply_add(high, t2, q5), t2, q3), t2, q1);
  const float q = multiply_add(low, t, 0.12837916612625122f);
  const float v = multiply_add(q, t, t);
  return __builtin_copysignf(multiply_add(v * -0.25f, v, v), x);
}

/* 1 / (1 + exp(-x)) with an error below 3.2 ulp: with exp(-x) = m b^2, b = 2^h and m as in exp_inside, it is 1/b over 1/b + m b, in
 * which nothing overflows, and the quotient alone is subnormal where the result is. At the bounds it is 0 and 1. */
OPC_INLINE float sigmoid(float any_x) {
  const float x = not_above(sigmoid_most, not_below(sigmoid_least, any_x));
  const float shifted = multiply_add(x, -0.7213475204444817f, 0x1.8p23f);
  const float h = shifted - 0x1.8p23f;
  const float negative_r = multiply_add(h, 2.8572136405724535e-06f, multiply_add(h, 1.38629150390625f, x));
  const float b = power_of_two(shifted);
  uint32_t bits;
  memcpy(&bits, &b, sizeof bits);
  bits = 0x7f000000u - bits;
  float inverse;
  memcpy(&inverse, &bits, sizeof inverse);
  return inverse / (multiply_add(exp_rest(-negative_r), b, b) + inverse);
}

/* x / y of y >= 1 with the inverse of y at hand. Of float it has an error of 1.5 ulp; double stays exact, as its exp has none to spare. */
OPC_INLINE float quotient(float x, float, float inverse) { return x * inverse; }
OPC_INLINE double quotient(double x, double y, double) { return x / y; }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_EXPONENTIALS_H
