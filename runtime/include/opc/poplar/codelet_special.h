/* The scalar functions of the spec language that the C library lacks, in float. Those that lose digits near their zeros are computed in
 * double, which tiles have in software alone.
 *
 * Sources: M. Giles, Approximating the erfinv function (GPU Computing Gems, 2011); NIST Digital Library of Mathematical Functions, 5.5.1
 * and 5.15.5 (recurrences), 5.5.3 and 5.15.6 (reflections), 5.11.1 and 5.15.8 (series for large arguments), 10.25.2 (Bessel functions).
 * What is not said to be another's are the polynomials of opc/core.
 */
#ifndef OPC_POPLAR_CODELET_SPECIAL_H
#define OPC_POPLAR_CODELET_SPECIAL_H

#include <cmath>
#include <limits>

namespace opc {

/* c0 + c1 x + c2 x^2 + ... */
template <typename T>
inline T polynomial(T, T c0) {
  return c0;
}
template <typename T, typename... Rest>
inline T polynomial(T x, T c0, Rest... rest) {
  return c0 + x * polynomial(x, rest...);
}

/* 1 / (1 + exp(-x)), to the last digits of small results. */
inline float sigmoid(float x) {
  const float e = std::exp(-std::fabs(x));
  return (x < 0.0f ? e : x != x ? x : 1.0f) / (1.0f + e);
}

inline float erfinv(float x) {
  const float size = std::fabs(x), w = -std::log((1.0f - x) * (1.0f + x)), root = std::sqrt(w);
  if (size == 1.0f) return std::copysign(std::numeric_limits<float>::infinity(), x);
  const float near = polynomial(
      w - 3.125f, 1.6536545753479004f, 0.24015817046165466f, -0.00603370601311326f, -0.0007406671647913754f, 0.00018677799380384386f,
      -1.3905913874623366e-05f, -1.3852907159161987e-06f, 4.302214904328139e-07f, -2.5032141692804544e-08f, -5.085154963779814e-09f,
      6.729894974633055e-10f, 1.8095878961954526e-11f);
  const float far = polynomial(
      root - 3.25f, 3.083885669708252f, 1.0052590370178223f, 0.0053713517263531685f, -0.0037515289150178432f, 0.0024852703791111708f,
      -0.0016859292518347502f, 0.0009838830446824431f, -0.00036295910831540823f, -3.8711536035407335e-05f, 8.232907566707581e-05f);
  return x * (w < 6.25f ? near : far);
}

/* A size >= 0 less the integer next to it, which is exact, and the sign of cos(pi n) of that integer n. */
template <typename T>
struct turned {
  T rest, sign, whole;
  explicit turned(T size) {
    whole = std::nearbyint(size);
    rest = size - whole;
    sign = std::fmod(whole, T(2)) == T(0) ? T(1) : T(-1);
  }
};

/* sin(pi r) / (pi r) and cos(pi r) for |r| <= 1/2. */
inline float sinc_inside(float r) {
  const float u = r * r;
  return 1.0f + u * polynomial(u, -1.6449333429336548f, 0.8117163777351379f, -0.1904469132423401f, 0.024723919108510017f);
}
inline double sinc_inside(double r) {
  const double u = r * r;
  return 1.0 + u * polynomial(u, -1.6449340668482264, 0.8117424252833401, -0.19075182412149908, 0.02614784780542197,
                              -0.0023460808934096717, 0.00014842782856386912, -6.97206228960224e-06, 2.449876331306059e-07);
}
template <typename T>
inline T cos_half_turn(T r) {
  const T rest = T(0.5) - std::fabs(r);
  return T(3.141592653589793) * rest * sinc_inside(rest);
}

/* sin(pi x) / (pi x): 1 at 0 and 0 at other integers. */
inline float sinc(float x) {
  const float size = std::fabs(x);
  if (!(size < std::numeric_limits<float>::infinity())) return std::numeric_limits<float>::quiet_NaN();
  const turned<float> of(size);
  return of.whole == 0.0f ? sinc_inside(of.rest) : of.sign * of.rest / size * sinc_inside(of.rest) + 0.0f;
}

/* The derivative of sinc. */
inline float sinc_slope(float x) {
  const float size = std::fabs(x), u = size * size;
  if (!(size < std::numeric_limits<float>::infinity())) return std::numeric_limits<float>::quiet_NaN();
  const turned<float> of(size);
  const float wave = sinc_inside(of.rest);
  const float inside = size * polynomial(u, -3.289868116378784f, 3.246968984603882f, -1.14448881149292f, 0.20893944799900055f,
                                         -0.02235826849937439f);
  const float outside = of.sign * (cos_half_turn(of.rest) - of.rest * wave / size) / size;
  return std::copysign(1.0f, x) * (of.whole == 0.0f ? inside : outside);
}

/* lgamma(2 + d) / d for -1/2 <= d <= 3/2. */
inline double lgamma_near_two(double d) {
  return polynomial(
      d - 0.5, 0.5693657409458384, 0.2675817993988097, -0.04480584269738449, 0.010877001514194209, -0.0030951822936215703,
      0.0009610979287612099, -0.0003150592503296363, 0.00010710020459488573, -3.735336829966625e-05, 1.3275786069273845e-05,
      -4.786402766429784e-06, 1.7450717234752025e-06, -6.419461692727579e-07, 2.3780565674267248e-07, -8.859764353394429e-08,
      3.3317517916721236e-08, -1.261473082323059e-08, 4.580126298261276e-09, -1.6543380552175529e-09, 8.131233599237482e-10,
      -3.6380819892131947e-10, 2.126506898803958e-11, 1.2454693745222311e-11, 3.860401632585834e-11, -1.8264705324236155e-11);
}

/* lgamma of x >= 0: by its zero at 2, x brought near it by the recurrence; beyond, Stirling's series. */
inline double lgamma_above(double x) {
  if (x >= 3.5) {
    const double v = 1.0 / x;
    const double series = polynomial(
        v * v, 0.08333333333333333, -0.002777777777777656, 0.0007936507935625574, -0.0005952380699954437, 0.0008417470608125989,
        -0.0019171856602338256, 0.006390093162341618, -0.028726835320170452, 0.15537476859792781, -0.8552632224122066,
        3.9572088246102286, -12.509826701866556, 19.258442556689822);
    return (x - 0.5) * (std::log(x) - 1.0) + (series * v + 0.4189385332046727);
  }
  const double steps = x < 0.5 ? 2.0 : x < 1.5 ? 1.0 : 0.0, d = x - (2.0 - steps);
  return d * lgamma_near_two(d) - std::log(x < 0.5 ? x * (x + 1.0) : x < 1.5 ? x : 1.0);
}

/* log |gamma(x)|: infinite at 0 and at negative integers. */
inline float lgamma(float of) {
  const double x = of, size = std::fabs(x), infinity = std::numeric_limits<double>::infinity();
  if (size == infinity) return std::numeric_limits<float>::infinity();
  if (!(x < 0)) return static_cast<float>(lgamma_above(x));
  const double rest = turned<double>(size).rest;
  if (rest == 0) return std::numeric_limits<float>::infinity();
  return static_cast<float>(-std::log(std::fabs(rest * sinc_inside(rest))) - lgamma_above(1.0 - x));
}

/* x^N. */
template <int N>
inline double product_of(double x) {
  double value = 1.0;
  for (int i = 0; i < N; ++i) value *= x;
  return value;
}

/* B_2k (2 k + N - 1)! / (2 k)! with Bernoulli's numbers, the coefficients of the series of the N-th derivative of digamma. */
template <int N>
constexpr double series_term(int k, double bernoulli) {
  if (N == 0) return bernoulli / (2 * k);
  double term = bernoulli;
  for (int i = 1; i < N; ++i) term *= 2 * k + i;
  return term;
}

/* The N-th derivative of digamma, N <= 3: no number at negative integers where it goes to both infinities, infinite where it goes to
 * one. */
template <int N>
inline float polygamma(float of) {
  constexpr double factorial = N == 3 ? 6 : N == 2 ? 2 : 1, before = N == 3 ? 2 : 1;
  const double x = of, y = x < 0 ? 1.0 - x : x;
  const bool near = y < 10.0;
  double fewer = 0.0;
  if (near) {
    for (int k = 9; k > 0; --k) fewer += product_of<N + 1>(1.0 / (y + k));
    fewer = product_of<N + 1>(1.0 / y) + fewer;
  }
  const double v = 1.0 / (near ? y + 10.0 : y), w = v * v;
  const double series = w * polynomial(
      w, series_term<N>(1, 1.0 / 6), series_term<N>(2, -1.0 / 30), series_term<N>(3, 1.0 / 42), series_term<N>(4, -1.0 / 30),
      series_term<N>(5, 5.0 / 66), series_term<N>(6, -691.0 / 2730), series_term<N>(7, 7.0 / 6), series_term<N>(8, -3617.0 / 510),
      series_term<N>(9, 43867.0 / 798), series_term<N>(10, -174611.0 / 330), series_term<N>(11, 854513.0 / 138),
      series_term<N>(12, -236364091.0 / 2730));
  double above = N == 0 ? (std::log(near ? y + 10.0 : y) - (0.5 * v + series)) - fewer
                        : factorial * fewer + product_of<N>(v) * (before + (0.5 * factorial * v + series));
  if (N == 2) above = -above;
  if (!(x < 0)) return static_cast<float>(above);
  /* The sine is one over pi. */
  const double rest = -turned<double>(-x).rest, sine = rest * sinc_inside(rest), cosine = cos_half_turn(rest);
  if (N % 2 == 0 && rest == 0) return std::numeric_limits<float>::quiet_NaN();
  double below = above - cosine / sine;
  if (N == 1) below = 1.0 / (sine * sine) - above;
  if (N == 2) below = above - 2.0 * cosine / (sine * sine * sine);
  if (N == 3) below = (4.0 * cosine * cosine + 2.0) / (sine * sine * sine * sine) - above;
  return static_cast<float>(below);
}
inline float digamma(float x) { return polygamma<0>(x); }
inline float trigamma(float x) { return polygamma<1>(x); }

/* exp(x) f / sqrt(x) for x >= 8, with half the exponent twice, so that nothing overflows before the result does. */
inline double bessel_above(double x, double f) {
  if (x == std::numeric_limits<double>::infinity()) return x;
  const double half = std::exp(0.5 * x);
  return half * (f / std::sqrt(x)) * half;
}

/* The modified Bessel functions of the first kind: up to 8 by the power series, beyond by a polynomial in 1 / x. */
inline float i0(float of) {
  const double size = std::fabs(static_cast<double>(of)), square = 0.25 * size * size;
  if (size < 8) {
    const double series = polynomial(
        square, 1.0, 0.25, 0.02777777777777776, 0.0017361111111111427, 6.944444444441264e-05, 1.9290123456994183e-06,
        3.9367598882577854e-08, 6.151187353600623e-10, 7.594057841711876e-12, 7.594067800904429e-14, 6.275971195926224e-16,
        4.3593383915360144e-18, 2.5730303493474502e-20, 1.3414533253131622e-22, 5.11176740526617e-25, 3.506225585461389e-27);
    return static_cast<float>(series * square + 1.0);
  }
  return static_cast<float>(bessel_above(size, polynomial(
      1.0 / size, 0.3989422804014327, 0.04986778505011216, 0.028050629189977937, 0.0292193468270272, 0.044760462981503324,
      0.08711565799604849, 0.6734020033391779, -39.43768430187005, 2660.963925873234, -133035.2807749448, 5129578.519081393,
      -154490910.168592, 3668385828.6113615, -69037299800.76118, 1031521159257.418, -12215100226298.596, 114017358163603.75,
      -830677101253383.0, 4650694604952050.0, -1.9534790889265496e+16, 5.928359792846572e+16, -1.2206358412621251e+17,
      1.5148012774217338e+17, -8.460962409739075e+16)));
}
inline float i1(float of) {
  const double size = std::fabs(static_cast<double>(of)), square = 0.25 * size * size;
  const double near = polynomial(
      square, 1.0, 0.5, 0.08333333333333329, 0.00694444444444456, 0.0003472222222220636, 1.1574074074202372e-05,
      2.7557319217318844e-07, 4.920949884922248e-09, 6.834652003903776e-11, 7.594068745093614e-13, 6.903556866131423e-15,
      5.23130208918824e-17, 3.34439212322627e-19, 1.8800590284320436e-21, 7.623836042768673e-24, 5.65208056178185e-26);
  const double far = polynomial(
      1.0 / size, 0.39894228040143265, -0.14960335515046605, -0.0467510485898048, -0.040907105596137194, -0.057544942544199625,
      -0.10707083613422971, -0.7364757306854881, 41.16310078741744, -2775.3746903734564, 138383.67196335728, -5321919.725936875,
      159858292.11808205, -3785442536.0232506, 71036043926.79803, -1058148330871.0255, 12489044969238.297, -116150029331325.4,
      842750899368157.4, -4696104780269186.0, 1.961634269581302e+16, -5.913167937957502e+16, 1.2072394868438245e+17,
      -1.481526813431968e+17, 8.14600108708811e+16);
  return static_cast<float>(std::copysign(size < 8 ? 0.5 * size * near : bessel_above(size, far), static_cast<double>(of)));
}

}  // namespace opc
#endif  // OPC_POPLAR_CODELET_SPECIAL_H
