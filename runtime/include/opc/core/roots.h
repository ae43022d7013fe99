/* cbrt and hypot, see core/binary.h. */
#ifndef OPC_CORE_ROOTS_H
#define OPC_CORE_ROOTS_H

#include "opc/core/logarithms.h"

namespace opc {
inline namespace OPC_VARIANT {

/* The cube root of x > 0 as y 2^h, but for one step of Newton's: x = m 2^(3 h) with m about 1, whose root a polynomial has to three
 * digits and Halley's method to nine (E. Halley, 1694). */
struct CubeRoot {
  double y, m, scale;
};
OPC_INLINE CubeRoot cube_root(double x) {
  typedef double T;
  const Split<T> of = split_any(x);
  const T shift = binary<T>::shift, shifted = multiply_add(of.k, T(0.3333333333333333), shift), j = of.k - T(3) * (shifted - shift);
  const T m = (of.r + 1) * (j > 0 ? T(2) : j < 0 ? T(0.5) : T(1));
  const T first = polynomial(
      m, T(0.41514634580456816), T(1.052347583181668), T(-0.7610807927530824), T(0.3869763065206285), T(-0.10447234935952965), T(0.011281536383312545));
  const T cube = first * first * first;
  return {first * (cube + T(2) * m) / (T(2) * cube + m), m, from_bits<T>((to_bits(shifted) << binary<T>::digits) + binary<T>::one)};
}

/* With an error below 0.6 ulp of float, in double, and below 1 ulp of double. Many GPUs compute little in double: there it is CUDA's own
 * function of float, whose error is 1 ulp. */
OPC_INLINE float cbrt(float x) {
#if defined(__CUDA_ARCH__)
  return cbrtf(x);
#endif
  const double size = size_of(x);
  const CubeRoot root = cube_root(size);
  const float value = float(root.y * root.scale);
  return ((x == 0) | !(size < binary<double>::infinity)) ? x : signed_as(value, x);
}
OPC_INLINE double cbrt(double x) {
  const double size = size_of(x);
  const CubeRoot root = cube_root(size);
  const double y = root.y, square = y * y, rest = multiply_add(square, -y, root.m);
  const double value = multiply_add(rest / (3 * square), 1.0, y) * root.scale;
  return ((x == 0) | !(size < binary<double>::infinity)) ? x : signed_as(value, x);
}

/* sqrt(x^2 + y^2) with an error below 0.6 ulp of float, in double, and below 1.5 ulp of double, of which those far from 1 are brought
 * near it. Infinite where either is, whatever the other. CUDA's function of float has an error of 3 ulp. */
OPC_INLINE float hypot(float x, float y) {
#if defined(__CUDA_ARCH__)
  return hypotf(x, y);
#endif
  const double a = x, b = y;
  const float value = float(root_of(multiply_add(a, a, b * b))), infinity = binary<float>::infinity;
  return ((size_of(x) == infinity) | (size_of(y) == infinity)) ? infinity : value;
}
OPC_INLINE double hypot(double x, double y) {
  const double a = size_of(x), b = size_of(y), larger = a > b ? a : b, infinity = binary<double>::infinity;
  const double scale = larger > 0x1p400 ? 0x1p-600 : larger < 0x1p-400 ? 0x1p600 : 1.0;
  const double back = larger > 0x1p400 ? 0x1p600 : larger < 0x1p-400 ? 0x1p-600 : 1.0;
  const double u = a * scale, v = b * scale, value = root_of(multiply_add(u, u, v * v)) * back;
  return ((a == infinity) | (b == infinity)) ? infinity : value;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_ROOTS_H
