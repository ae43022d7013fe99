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

/* exp for -104 <= x <= 89, with an error below 1.7 ulp. It stands here rather than in a library so that it is inlined into loops:
 * x = 2 h ln 2 + r with an integer h, exp(r) by a polynomial of least maximum relative error on |r| <= ln 2, and 2^h twice, so that
 * subnormal results round as they should. */
OPC_INLINE float exp_inside(float x) {
  const float shifted = multiply_add(x, 0.7213475204444817f, 0x1.8p23f); /* the last bits are those of h */
  const float h = shifted - 0x1.8p23f;
  const float r = multiply_add(h, -2.8572136405724535e-06f, multiply_add(h, -1.38629150390625f, x));
  const float r2 = r * r;
  const float c2 = multiply_add(0.16666613519191742f, r, 0.5000003576278687f);
  const float c4 = multiply_add(0.008336106315255165f, r, 0.04166126251220703f);
  const float c6 = multiply_add(0.00019611445895861834f, r, 0.0014104594010859728f);
  const float q = multiply_add(multiply_add(c6, r2, c4), r2, c2);
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  float power;
  memcpy(&power, &bits, sizeof power);
  return multiply_add(multiply_add(q, r2, r), power, power) * power;
}

/* exp for x <= 89. A NaN goes through it. */
OPC_INLINE float exp_below(float x) {
  return x < -104.0f ? 0.0f : exp_inside(x);
}

OPC_INLINE float exp(float x) {
  const float result = exp_below(x); /* means nothing above */
  return x > 89.0f ? __builtin_inff() : result;
}

/* erf with an error below 1.9 ulp: v - v^2 / 4, where v = 2 - 2 sqrt(erfc(t)) of t = |x| takes a polynomial of a far lower degree than
 * erf itself. v = t + t Q(t), so that small results keep their digits; Q gives erf the least maximum relative error on [0, 3.92]. Beyond,
 * erf rounds to 1. */
OPC_INLINE float erf(float x) {
  const float size = __builtin_fabsf(x);
  const float t = size > 3.92f ? 3.92f : size; /* a NaN stays one */
  /* As a plain product, GCC would compute it of both and choose once more. */
  const float t2 = multiply_add(t, t, -0.0f);
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
 * which nothing overflows. Tails end as they should: b stops at 2^126, where the result is 0 or 1, and m at 1 once x is large; of x far
 * below zero m is infinite. */
OPC_INLINE float sigmoid(float x) {
  const float shifted = multiply_add(x, -0.7213475204444817f, 0x1.8p23f);
  int32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const int32_t least = 0x4b400000 - 126, most = 0x4b400000 + 126; /* 0x1.8p23f and what h adds to it */
  bits = bits < least ? least : bits;
  bits = bits > most ? most : bits;
  float inside;
  memcpy(&inside, &bits, sizeof inside);
  const float h = inside - 0x1.8p23f;
  const float r = multiply_add(h, 2.8572136405724535e-06f, multiply_add(h, 1.38629150390625f, x)); /* of -x, negated */
  const float r2 = r * r;
  const float c2 = multiply_add(-0.16666613519191742f, r, 0.5000003576278687f);
  const float c4 = multiply_add(-0.008336106315255165f, r, 0.04166126251220703f);
  const float c6 = multiply_add(-0.00019611445895861834f, r, 0.0014104594010859728f);
  const float q = multiply_add(multiply_add(c6, r2, c4), r2, c2);
  const float rest = multiply_add(q, r2, -r);
  const float m1 = x > 90.0f ? 0.0f : rest; /* m - 1 */
  bits = (bits << 23) + 0x3f800000;
  const int32_t inverse_bits = 0x7f000000 - bits;
  float b, inverse;
  memcpy(&b, &bits, sizeof b);
  memcpy(&inverse, &inverse_bits, sizeof inverse);
  return inverse / (multiply_add(m1, b, b) + inverse);
}

/* x / y of y >= 1 with the inverse of y at hand. Of float it has an error of 1.5 ulp; double stays exact, as its exp has none to spare. */
OPC_INLINE float quotient(float x, float, float inverse) { return x * inverse; }
OPC_INLINE double quotient(double x, double y, double) { return x / y; }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_EXPONENTIALS_H
