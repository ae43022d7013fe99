/* log and what is written over it, see core/binary.h. */
#ifndef OPC_CORE_LOGARITHMS_H
#define OPC_CORE_LOGARITHMS_H

#include "opc/core/binary.h"

namespace opc {
inline namespace OPC_VARIANT {

/* log(1 + r) as first + second, of which the second is small, for sqrt(1/2) <= 1 + r < sqrt(2). Of double by way of
 * atanh(r / (2 + r)), as FreeBSD's e_log.c has it. */
template <typename T>
struct LogRest {
  T first, second;
};
template <typename T>
OPC_INLINE LogRest<T> log_rest(T r) {
  if constexpr (is_float<T>) {
    const T r2 = r * r;
    const T c = polynomial(
        r, 0.3333385750796873f, -0.2500175000609811f, 0.1996541585392694f, -0.16565552902870367f, 0.1487673424706431f,
        -0.1435072503777413f, 0.08919064661724846f);
    return {r, r2 * multiply_add(c, r, -0.5f)};
  } else {
    const T s = r / (2.0 + r), z = s * s, half = 0.5 * r * r;
    const T c = polynomial(
        z, 0.666666666666671, 0.3999999999952006, 0.2857142872922034, 0.22222199098481807, 0.18183571106980861, 0.1531317629704931,
        0.1481039411001545);
    return {r, multiply_add(s, multiply_add(c, z, half), -half)};
  }
}

/* x = 2^k (1 + r) for normal x > 0, with 1 + r about 1, and 2^-k; `more` is added to k. */
template <typename T>
struct Split {
  T k, r, scale;
};
template <typename T>
OPC_INLINE Split<T> split(T x, T more) {
  typedef binary<T> layout;
  const typename layout::bits of = to_bits(x), moved = of + (layout::one - layout::root_half);
  const typename layout::bits mantissa = (moved & ((typename layout::bits(1) << layout::digits) - 1)) + layout::root_half;
  const T k = from_bits<T>((moved >> layout::digits) | to_bits(layout::whole));
  return {k - (layout::whole + layout::bias - more), from_bits<T>(mantissa) - 1, from_bits<T>(mantissa - of + layout::one)};
}
template <typename T>
OPC_INLINE Split<T> split_any(T x) {
  const bool small = x < binary<T>::least_normal;
  return split(small ? T(x * binary<T>::whole) : x, small ? T(-binary<T>::digits) : T(0));
}

/* Where a logarithm of x has another value than `inside`. */
template <typename T>
OPC_INLINE T log_ends(T x, T inside) {
  const T finite = x < binary<T>::infinity ? inside : x;
  const T outside = x == 0 ? -binary<T>::infinity : T(__builtin_nanf(""));
  return x > 0 ? finite : outside;
}

/* k ln 2 + log(1 + r), ln 2 in two parts, the first short enough for exact products with k. */
template <typename T>
OPC_INLINE T log_sum(T k, LogRest<T> rest) {
  constexpr T high = is_float<T> ? T(0.693145751953125) : T(0.693147180559663);
  constexpr T low = is_float<T> ? T(1.4286068203094173e-06) : T(2.8235290563031577e-13);
  return multiply_add(k, high, rest.first + multiply_add(k, low, rest.second));
}

/* log with an error below 1.5 ulp. */
template <typename T>
OPC_INLINE T log(T x) {
  const Split<T> of = split_any(x);
  return log_ends(x, log_sum(of.k, log_rest(of.r)));
}

/* log2 and log10 with errors below 3 ulp; log2 is exact at powers of 2. */
template <typename T>
OPC_INLINE T log2(T x) {
  const Split<T> of = split_any(x);
  const LogRest<T> rest = log_rest(of.r);
  return log_ends(x, multiply_add(rest.first + rest.second, T(1.4426950408889634), of.k));
}
template <typename T>
OPC_INLINE T log10(T x) {
  const Split<T> of = split_any(x);
  const LogRest<T> rest = log_rest(of.r);
  constexpr T high = is_float<T> ? T(0.301025390625) : T(0.30102999566361177);
  constexpr T low = is_float<T> ? T(4.605038981195214e-06) : T(3.694239077158931e-13);
  const T inside = multiply_add(of.k, low, (rest.first + rest.second) * T(0.4342944819032518));
  return log_ends(x, multiply_add(of.k, high, inside));
}

/* log(1 + x) with an error below 2 ulp: of the rounded sum u = 2^k (1 + r), and what rounding took from it, by which 1 + r is off. */
template <typename T>
OPC_INLINE T log1p(T x) {
  const T u = T(1) + x, one = u - x;
  const T lost = (T(1) - one) + (x - (u - one));
  const Split<T> of = split(u, T(0));
  /* Beyond, nothing of what is lost counts, and scale is no power. */
  const T r = x < binary<T>::whole * binary<T>::whole ? multiply_add(lost, of.scale, of.r) : of.r;
  return signed_as(log_ends(u, log_sum(of.k, log_rest(r))), x);
}

/* The inverses of sinh, cosh and tanh with errors below 4 ulp: log1p of what loses no digits. Where squares might overflow, they are
 * log(2 x). */
template <typename T>
OPC_INLINE T asinh(T x) {
  const T size = size_of(x);
  const bool large = size > binary<T>::whole;
  const T more = size * (size / (T(1) + root_of(multiply_add(size, size, T(1)))));
  const T value = log1p(large ? size : size + more);
  return signed_as(large ? value + T(0.6931471805599453) : value, x);
}
template <typename T>
OPC_INLINE T acosh(T x) {
  const T above = x - 1;
  const bool large = x > binary<T>::whole;
  const T value = log1p(large ? x : above + root_of(multiply_add(above, above, T(2) * above)));
  const T inside = large ? value + T(0.6931471805599453) : value;
  return x < 1 ? T(__builtin_nanf("")) : inside;
}
template <typename T>
OPC_INLINE T atanh(T x) {
  const T size = size_of(x);
  return signed_as(T(0.5) * log1p(T(2) * size / (T(1) - size)), x);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_LOGARITHMS_H
