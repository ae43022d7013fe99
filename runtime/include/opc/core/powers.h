/* pow, see core/binary.h: 2^(y log2 |x|), with log2 in more digits than the result has. */
#ifndef OPC_CORE_POWERS_H
#define OPC_CORE_POWERS_H

#include "opc/core/exponentials.h"
#include "opc/core/sinpi.h"
#include "opc/core/logarithms.h"

namespace opc {
inline namespace OPC_VARIANT {

/* What pow is of the power of |x|, by C's annex F: 1 for an exponent 0, of 1, and of -1 to an infinite power; the sign of x for odd
 * exponents; no number for a finite x < 0 and a fraction. Exponents are mostly the same for a whole loop: what hangs on them alone are
 * bits, since GCC makes no vectors of loops with truth values that stay the same. */
template <typename T>
OPC_INLINE T pow_ends(T x, T y, T inside) {
  typedef typename binary<T>::bits Bits;
  constexpr Bits all = ~Bits(0), sign = Bits(1) << (8 * sizeof(T) - 1);
  const T size = size_of(y), half = T(0.5) * size, infinity = binary<T>::infinity;
  const Bits fraction = to_whole(size) == size ? Bits(0) : all, even = to_whole(half) == half ? all : Bits(0);
  const Bits zero = y == 0 ? all : Bits(0), infinite = size == infinity ? all : Bits(0);
  const Bits below = x < 0 ? all : Bits(0), finite = x > -infinity ? all : Bits(0);
  const Bits one = zero | (x == 1 ? all : Bits(0)) | ((x == -1 ? all : Bits(0)) & infinite);
  const Bits value = (to_bits(inside) ^ (to_bits(x) & sign & ~(fraction | even))) | (below & finite & fraction);
  return from_bits<T>((value & ~one) | (binary<T>::one & one));
}

/* pow of float in double, with an error below 0.6 ulp: log2 by the series of atanh. */
template <typename T>
OPC_INLINE float pow_in(T x, T y) {
  const T size = size_of(x), infinity = binary<T>::infinity;
  const Split<T> of = split(size, T(0));
  const T s = of.r / (T(2) + of.r), z = s * s;
  const T c = polynomial(z, T(0.9617966791937009), T(0.5770828520943653), T(0.4117063297610606), T(0.3402187531193605));
  const T inside = multiply_add(c, s * z, multiply_add(s, T(2.8853900817779268), of.k));
  const T exact = (size < infinity ? (size == 0 ? -infinity : inside) : size) * y;
  const T most = bounds_of(0.0f).pow_most, t = not_above(most, not_below(-most, exact));
  const T shifted = t + binary<T>::shift, f = t - (shifted - binary<T>::shift), power = power_of_two(shifted);
  const T rest = polynomial(
      f, T(0.693147202808628), T(0.2402264787286586), T(0.05550332461903765), T(0.009618441132697558), T(0.0013398891983737017),
      T(0.00015352536846527178));
  return float(multiply_add(rest * f, power, power));
}

/* A number as the sum of two, of which the second is what rounding took from the first: T. J. Dekker, A floating-point technique for
 * extending the available precision, Numerische Mathematik 18 (1971). */
template <typename T>
struct Pair {
  T high, low;
};
/* x + y for |x| >= |y|, or x = 0. */
template <typename T>
OPC_INLINE Pair<T> pair_sum(T x, T y) {
  const T high = x + y;
  return {high, y - (high - x)};
}
template <typename T>
OPC_INLINE Pair<T> pair_product(T x, T y) {
  const T high = x * y;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return {high, multiply_add(x, y, -high)};
#else
  const T x_part = x * T(134217729), y_part = y * T(134217729);
  const T x1 = x_part - (x_part - x), y1 = y_part - (y_part - y), x2 = x - x1, y2 = y - y1;
  return {high, ((x1 * y1 - high) + x1 * y2 + x2 * y1) + x2 * y2};
#endif
}
template <typename T>
OPC_INLINE Pair<T> pair_product(Pair<T> x, Pair<T> y) {
  const Pair<T> high = pair_product(x.high, y.high);
  return {high.high, high.low + multiply_add(x.high, y.low, x.low * y.high)};
}

/* log2 of x > 0 with 2^-64 of it for an error: k + s (c0 + z (c1 + z P(z))) of s = r / (2 + r) and z = s^2, all but P in pairs. */
template <typename T>
OPC_INLINE Pair<T> log2_pair(T x) {
  const Split<T> of = split_any(x);
  const Pair<T> below = pair_sum(T(2), of.r);
  const T inverse = T(1) / below.high, quotient = of.r * inverse;
  const Pair<T> product = pair_product(quotient, below.high);
  const Pair<T> s = {quotient, ((of.r - product.high) - product.low - quotient * below.low) * inverse};
  const Pair<T> z = pair_product(s, s);
  const T c = polynomial(
      z.high, T(0.5770780163555859), T(0.4121985831093827), T(0.32059889887189763), T(0.2623080168240587), T(0.221968893558083),
      T(0.1916151071678783), T(0.18700202049897166));
  const Pair<T> first = pair_sum(T(0.9617966939259756), T(z.high * c));
  const Pair<T> second = pair_product(z, Pair<T>{first.high, first.low + T(5.0577616648125907e-17)});
  const Pair<T> third = pair_sum(T(2.8853900817779268), second.high);
  const Pair<T> value = pair_product(s, Pair<T>{third.high, third.low + (second.low + T(4.0710547481862066e-17))});
  const Pair<T> sum = pair_sum(of.k, value.high);
  return {sum.high, sum.low + value.low};
}

/* pow of double with an error below 2 ulp. Of exponents so large that products overflow, only the sign of the logarithm counts. */
template <typename T>
OPC_INLINE T pow_by_pairs(T x, T y) {
  const T size = size_of(x), infinity = binary<T>::infinity, shift = binary<T>::shift;
  const Pair<T> log = log2_pair(size), exact = pair_product(y, log.high);
  const bool regular = (size > 0) & (size < infinity);
  const T wide = regular ? exact.high : (size == 0 ? -infinity : size) * y;
  const T most = bounds_of(0.0).pow_most, t = not_above(most, not_below(-most, wide));
  const T rest = multiply_add(y, log.low, exact.low);
  const T h = (t + shift) - shift, f = (t - h) + (t == wide ? rest : T(0));
  const T first = multiply_add(h, T(0.5), shift), power = power_of_two(first);
  const T other = power_of_two(h - (first - shift) + shift);
  return multiply_add(exp_rest(f * T(0.6931471805599453)), power, power) * other;
}

/* x to the power of y in integers, which wrap. To a negative power it is 1 over that, cut to a whole number: 0, but of 1 and -1. */
template <typename T>
OPC_INLINE T integer_power(T x, T y) {
  if (is_below_zero(y)) return x == T(1) || x == T(-1) ? T(y & 1 ? x : T(1)) : T(0);
  uint64_t factor = static_cast<uint64_t>(x), result = 1;
  for (uint64_t rest = static_cast<uint64_t>(y); rest != 0; rest >>= 1) {
    if (rest & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

/* Of float on a GPU it is CUDA's own function, which takes the same values at C's ends, with an error of 4 ulp: many GPUs compute little
 * in double. */
template <typename T>
OPC_INLINE T pow(T x, T y) {
  if constexpr (T(0.5) == T(0)) {
    return integer_power(x, y);
  } else if constexpr (is_float<T>) {
#if defined(__CUDA_ARCH__)
    return powf(x, y);
#else
    return pow_ends(x, y, pow_in(double(x), double(y)));
#endif
  } else {
    return pow_ends(x, y, pow_by_pairs(x, y));
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_POWERS_H
