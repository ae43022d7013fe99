/* The modified Bessel functions of the first kind i0 and i1, see core/binary.h. Of float they are computed in double. */
#ifndef OPC_CORE_BESSEL_H
#define OPC_CORE_BESSEL_H

#include "opc/core/exponentials.h"

namespace opc {
inline namespace OPC_VARIANT {

/* exp(x) f / sqrt(x) for x >= 8, the factor before the last power of two of exp, so that nothing overflows before the result does. */
OPC_INLINE double bessel_above(double any_x, double f) {
  const double x = not_above(720.0, any_x);
  const Reduced<double> of = reduced(x);
  const double power = power_of_two(of.shifted);
  return multiply_add(exp_rest(of.r), power, power) * (f / root_of(x)) * power;
}

/* Both with errors below 5 ulp: up to 8 by a polynomial in x^2 / 4, as the power series has it (NIST Digital Library of Mathematical
 * Functions, 10.25.2), beyond by one in 1 / x with exp(x) / sqrt(x) (10.40.1). */
OPC_INLINE double i0(double x) {
  const double size = size_of(x), square = 0.25 * size * size;
  const double near = multiply_add(
      long_polynomial(
          square,
          1.0, 0.25, 0.02777777777777776, 0.0017361111111111427, 6.944444444441264e-05, 1.9290123456994183e-06,
          3.9367598882577854e-08, 6.151187353600623e-10, 7.594057841711876e-12, 7.594067800904429e-14, 6.275971195926224e-16,
          4.3593383915360144e-18, 2.5730303493474502e-20, 1.3414533253131622e-22, 5.11176740526617e-25, 3.506225585461389e-27),
      square, 1.0);
  const double far = long_polynomial(
      1.0 / size,
      0.3989422804014327, 0.04986778505011216, 0.028050629189977937, 0.0292193468270272, 0.044760462981503324,
      0.08711565799604849, 0.6734020033391779, -39.43768430187005, 2660.963925873234, -133035.2807749448, 5129578.519081393,
      -154490910.168592, 3668385828.6113615, -69037299800.76118, 1031521159257.418, -12215100226298.596, 114017358163603.75,
      -830677101253383.0, 4650694604952050.0, -1.9534790889265496e+16, 5.928359792846572e+16, -1.2206358412621251e+17,
      1.5148012774217338e+17, -8.460962409739075e+16);
  return size < 8 ? near : bessel_above(size, far);
}
OPC_INLINE double i1(double x) {
  const double size = size_of(x), square = 0.25 * size * size;
  const double near = long_polynomial(
      square,
      1.0, 0.5, 0.08333333333333329, 0.00694444444444456, 0.0003472222222220636, 1.1574074074202372e-05, 2.7557319217318844e-07,
      4.920949884922248e-09, 6.834652003903776e-11, 7.594068745093614e-13, 6.903556866131423e-15, 5.23130208918824e-17,
      3.34439212322627e-19, 1.8800590284320436e-21, 7.623836042768673e-24, 5.65208056178185e-26);
  const double far = long_polynomial(
      1.0 / size,
      0.39894228040143265, -0.14960335515046605, -0.0467510485898048, -0.040907105596137194, -0.057544942544199625,
      -0.10707083613422971, -0.7364757306854881, 41.16310078741744, -2775.3746903734564, 138383.67196335728, -5321919.725936875,
      159858292.11808205, -3785442536.0232506, 71036043926.79803, -1058148330871.0255, 12489044969238.297, -116150029331325.4,
      842750899368157.4, -4696104780269186.0, 1.961634269581302e+16, -5.913167937957502e+16, 1.2072394868438245e+17,
      -1.481526813431968e+17, 8.14600108708811e+16);
  return signed_as(size < 8 ? 0.5 * size * near : bessel_above(size, far), x);
}
/* On a GPU those of float are CUDA's own, with errors of 6 ulp: many GPUs compute little in double. */
#if defined(__CUDA_ARCH__)
OPC_INLINE float i0(float x) { return cyl_bessel_i0f(x); }
OPC_INLINE float i1(float x) { return cyl_bessel_i1f(x); }
#else
OPC_INLINE float i0(float x) { return float(i0(double(x))); }
OPC_INLINE float i1(float x) { return float(i1(double(x))); }
#endif

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_BESSEL_H
