/* sinc, and sin and cos of pi x that it and the gamma functions are written with, see core/binary.h. */
#ifndef OPC_CORE_SINPI_H
#define OPC_CORE_SINPI_H

#include "opc/core/binary.h"

namespace opc {
inline namespace OPC_VARIANT {

/* x rounded to an integer, for x >= 0. */
template <typename T>
OPC_INLINE T to_whole(T x) {
  return x < binary<T>::whole ? (x + binary<T>::whole) - binary<T>::whole : x;
}

/* sin(pi r) / (pi r) for |r| <= 1/2. */
template <typename T>
OPC_INLINE T sinc_inside(T r) {
  const T u = r * r;
  if constexpr (is_float<T>) {
    return multiply_add(
        polynomial(
            u,
            -1.6449333429336548f, 0.8117163777351379f, -0.1904469132423401f, 0.024723919108510017f),
        u, T(1));
  } else {
    return multiply_add(
        polynomial(
            u,
            -1.6449340668482264, 0.8117424252833401, -0.19075182412149908, 0.02614784780542197, -0.0023460808934096717,
            0.00014842782856386912, -6.97206228960224e-06, 2.449876331306059e-07),
        u, T(1));
  }
}

/* cos(pi r) for |r| <= 1/2, which is sin(pi / 2 - pi |r|). */
template <typename T>
OPC_INLINE T cos_half_turn(T r) {
  const T rest = T(0.5) - size_of(r);
  return T(3.141592653589793) * rest * sinc_inside(rest);
}

/* size >= 0 less the integer next to it, which is exact, and the sign of cos(pi n) of that integer n. */
template <typename T>
struct Turned {
  T rest, sign, whole;
};
template <typename T>
OPC_INLINE Turned<T> turned(T size) {
  const T whole = to_whole(size), half = T(0.5) * whole;
  return {size - whole, to_whole(half) == half ? T(1) : T(-1), whole};
}

/* sin(pi x) / (pi x) with an error below 2.5 ulp, 1 at 0 and 0 at other integers; no number at infinities. */
template <typename T>
OPC_INLINE T sinc(T x) {
  const T size = size_of(x);
  const Turned<T> of = turned(size);
  const T ratio = of.whole == 0 ? T(1) : of.sign * of.rest / size;
  return multiply_add(ratio, sinc_inside(of.rest), T(0)); /* no -0 */
}

/* The derivative of sinc with an error below 4 ulp, and 1 ulp of 1 near where it is 0. */
template <typename T>
OPC_INLINE T sinc_slope(T x) {
  const T size = size_of(x), u = size * size;
  const Turned<T> of = turned(size);
  const T wave = sinc_inside(of.rest), outside = of.sign * (cos_half_turn(of.rest) - of.rest * wave / size) / size;
  T inside;
  if constexpr (is_float<T>) {
    inside = polynomial(
        u,
        -3.289868116378784f, 3.246968984603882f, -1.14448881149292f, 0.20893944799900055f, -0.02235826849937439f);
  } else {
    inside = polynomial(
        u,
        -3.289868133696453, 3.2469697011334144, -1.144510944732498, 0.20918278254094308, -0.023460810348568187,
        0.001781145447964809, -9.766177138382658e-05, 4.048141942885757e-06, -1.2764733534379752e-07);
  }
  const T value = of.whole == 0 ? size * inside : outside;
  return signed_as(T(1), x) * value;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_SINPI_H
