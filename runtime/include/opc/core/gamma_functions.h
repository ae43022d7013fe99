/* lgamma, digamma and the derivatives of digamma, see core/binary.h. Of float they are computed in double: near their zeros nothing
 * else keeps their digits, and vectors of it are fast enough.
 *
 * Sources: NIST Digital Library of Mathematical Functions, 5.5.1 and 5.15.5 (recurrences), 5.5.3 and 5.15.6 (reflections at 1/2),
 * 5.11.1 and 5.15.8 (series for large arguments). The series begin at 10, where twelve terms leave less than 1e-17.
 */
#ifndef OPC_CORE_GAMMA_FUNCTIONS_H
#define OPC_CORE_GAMMA_FUNCTIONS_H

#include "opc/core/sinpi.h"
#include "opc/core/logarithms.h"

namespace opc {
inline namespace OPC_VARIANT {

/* lgamma(2 + d) / d for -1/2 <= d <= 3/2. */
OPC_INLINE double lgamma_near_two(double d) {
  return long_polynomial(
      d - 0.5,
      0.5693657409458384, 0.2675817993988097, -0.04480584269738449, 0.010877001514194209, -0.0030951822936215703,
      0.0009610979287612099, -0.0003150592503296363, 0.00010710020459488573, -3.735336829966625e-05, 1.3275786069273845e-05,
      -4.786402766429784e-06, 1.7450717234752025e-06, -6.419461692727579e-07, 2.3780565674267248e-07, -8.859764353394429e-08,
      3.3317517916721236e-08, -1.261473082323059e-08, 4.580126298261276e-09, -1.6543380552175529e-09, 8.131233599237482e-10,
      -3.6380819892131947e-10, 2.126506898803958e-11, 1.2454693745222311e-11, 3.860401632585834e-11, -1.8264705324236155e-11);
}

/* lgamma of x >= 0: between 0 and 7/2 by its zero at 2, x brought there by the recurrence; beyond, Stirling's series, by a minimax polynomial
 * in 1 / x^2 with what it leaves. */
OPC_INLINE double lgamma_above(double x) {
  const double steps = x < 0.5 ? 2.0 : x < 1.5 ? 1.0 : 0.0, d = x - (2.0 - steps);
  const bool far = x >= 3.5;
  const double logged = log(far ? x : x < 0.5 ? x * (x + 1.0) : x < 1.5 ? x : 1.0), v = 1.0 / x;
  const double series = polynomial(
      v * v,
      0.08333333333333333, -0.002777777777777656, 0.0007936507935625574, -0.0005952380699954437, 0.0008417470608125989,
      -0.0019171856602338256, 0.006390093162341618, -0.028726835320170452, 0.15537476859792781, -0.8552632224122066,
      3.9572088246102286, -12.509826701866556, 19.258442556689822);
  const double above = multiply_add(x - 0.5, logged - 1.0, multiply_add(series, v, 0.4189385332046727));
  return far ? above : d * lgamma_near_two(d) - logged;
}

/* log |gamma(x)| with an error below 5 ulp, and of x < 0, near zeros, 64 ulp of 1: infinite at 0 and at negative integers. Below 0 it is that
 * of 1 - x by the reflection. */
OPC_INLINE double lgamma(double x) {
  const double size = size_of(x), above = lgamma_above(x < 0 ? 1.0 - x : x), rest = turned(size).rest;
  const double below = -log(size_of(rest * sinc_inside(rest))) - above, infinity = binary<double>::infinity;
  return ((size == infinity) | ((rest == 0) & (x < 0))) ? infinity : x < 0 ? below : above;
}
OPC_INLINE float lgamma(float x) { return float(lgamma(double(x))); }

/* B_2k (2 k + N - 1)! / (2 k)! with Bernoulli's numbers, the coefficients of the series of the N-th derivative of digamma. */
template <int N>
OPC_HOST_DEVICE constexpr double series_term(int k, double bernoulli) {
  double term = bernoulli;
  if constexpr (N == 0) {
    term /= 2 * k;
  } else {
    for (int i = 1; i < N; ++i) term *= 2 * k + i;
  }
  return term;
}

/* x^N, and the sum of (x + k)^-N for k from K to 9; recursions, since GCC makes no vectors of a loop with a loop in it. */
template <int N>
OPC_INLINE double product_of(double x) {
  if constexpr (N == 1) return x;
  if constexpr (N > 1) return x * product_of<N - 1>(x);
  return 1.0;
}
template <int N, int K = 0>
OPC_INLINE double inverse_steps(double x) {
  if constexpr (K == 0) return product_of<N>(1.0 / x) + inverse_steps<N, 1>(x); /* of the sign of a zero */
  if constexpr (K > 0 && K < 10) return inverse_steps<N, K + 1>(x) + product_of<N>(1.0 / (x + K));
  return 0.0;
}

/* The N-th derivative of digamma, N <= 3, with an error below 5, 5, 8 and 10 ulp, and where it has zeros, 64 ulp of 1: no number at negative
 * integers where it goes to both infinities, infinite where it goes to one. */
template <int N>
OPC_INLINE double polygamma(double x) {
  constexpr double factorial = N == 3 ? 6 : N == 2 ? 2 : 1, before = N == 3 ? 2 : 1;
  const double y = x < 0 ? 1.0 - x : x;
  const double steps = inverse_steps<N + 1>(y);
  const bool near = y < 10.0;
  const double v = 1.0 / (near ? y + 10.0 : y), w = v * v, fewer = near ? steps : 0.0;
  const double series = w * polynomial(
      w, series_term<N>(1, 1.0 / 6), series_term<N>(2, -1.0 / 30), series_term<N>(3, 1.0 / 42), series_term<N>(4, -1.0 / 30),
      series_term<N>(5, 5.0 / 66), series_term<N>(6, -691.0 / 2730), series_term<N>(7, 7.0 / 6), series_term<N>(8, -3617.0 / 510),
      series_term<N>(9, 43867.0 / 798), series_term<N>(10, -174611.0 / 330), series_term<N>(11, 854513.0 / 138),
      series_term<N>(12, -236364091.0 / 2730));
  double above;
  if constexpr (N == 0) {
    above = (log(near ? y + 10.0 : y) - multiply_add(0.5, v, series)) - fewer;
  } else {
    above = multiply_add(factorial, fewer, product_of<N>(v) * (before + multiply_add(0.5 * factorial, v, series)));
    if constexpr (N == 2) above = -above;
  }
  const double rest = x - signed_as(to_whole(size_of(x)), x), sine = rest * sinc_inside(rest), cosine = cos_half_turn(rest);
  double below;
  if constexpr (N == 0) below = above - cosine / sine;
  if constexpr (N == 1) below = 1.0 / (sine * sine) - above;
  if constexpr (N == 2) below = above - 2.0 * cosine / (sine * sine * sine);
  if constexpr (N == 3) below = multiply_add(4.0 * cosine, cosine, 2.0) / (sine * sine * sine * sine) - above;
  if constexpr (N % 2 == 0) below = rest == 0 ? double(__builtin_nanf("")) : below;
  return x < 0 ? below : above;
}
template <int N>
OPC_INLINE float polygamma(float x) {
  return float(polygamma<N>(double(x)));
}

template <typename T>
OPC_INLINE T digamma(T x) {
  return polygamma<0>(x);
}
template <typename T>
OPC_INLINE T trigamma(T x) {
  return polygamma<1>(x);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_GAMMA_FUNCTIONS_H
