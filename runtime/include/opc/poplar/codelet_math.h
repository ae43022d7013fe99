/* The scalar functions of the spec language for codelets: those of the C library in float, and what it lacks. */
#ifndef OPC_POPLAR_CODELET_MATH_H
#define OPC_POPLAR_CODELET_MATH_H

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "opc/poplar/codelet_special.h"

namespace opc {

inline float sin(float x) { return std::sin(x); }
inline float cos(float x) { return std::cos(x); }
inline float tan(float x) { return std::tan(x); }
inline float asin(float x) { return std::asin(x); }
inline float acos(float x) { return std::acos(x); }
inline float atan(float x) { return std::atan(x); }
inline float atan2(float y, float x) { return std::atan2(y, x); }
inline float sinh(float x) { return std::sinh(x); }
inline float cosh(float x) { return std::cosh(x); }
inline float tanh(float x) { return std::tanh(x); }
inline float asinh(float x) { return std::asinh(x); }
inline float acosh(float x) { return std::acosh(x); }
inline float atanh(float x) { return std::atanh(x); }
inline float exp(float x) { return std::exp(x); }
inline float expm1(float x) { return std::expm1(x); }
inline float exp2(float x) { return std::exp2(x); }
inline float log(float x) { return std::log(x); }
inline float log1p(float x) { return std::log1p(x); }
inline float log2(float x) { return std::log2(x); }
inline float log10(float x) { return std::log10(x); }
inline float pow(float x, float y) { return std::pow(x, y); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline float cbrt(float x) { return std::cbrt(x); }
inline float hypot(float x, float y) { return std::hypot(x, y); }
inline float erf(float x) { return std::erf(x); }
inline float erfc(float x) { return std::erfc(x); }
inline float floor(float x) { return std::floor(x); }
inline float ceil(float x) { return std::ceil(x); }
inline float trunc(float x) { return std::trunc(x); }
/* Half to even: the rounding mode that tiles run in. */
inline float round(float x) { return std::nearbyint(x); }

template <typename T>
inline typename std::enable_if<std::is_floating_point<T>::value, T>::type abs(T x) {
  return std::fabs(x);
}
template <typename T>
inline typename std::enable_if<!std::is_floating_point<T>::value, T>::type abs(T x) {
  return static_cast<T>(x < 0 ? -x : x);
}

template <typename T>
inline bool isnan(T x) {
  return x != x;
}

template <typename T>
inline bool isinf(T x) {
  return std::fabs(x) == std::numeric_limits<T>::infinity();
}

/* 0 - x, whose zero has no sign: compilers may take it for -x where they see that x is not -0. */
template <typename T>
inline T zero_minus(T x) {
  const volatile T zero = T(0);
  return zero - x;
}

/* The larger one; NaN when either is. */
template <typename T>
inline T maximum(T x, T y) {
  const T larger = x > y ? x : y;
  return x != x ? x : larger;
}

/* The smaller one; NaN when either is. */
template <typename T>
inline T minimum(T x, T y) {
  const T smaller = x < y ? x : y;
  return x != x ? x : smaller;
}

/* -1, 0 or 1, NaN of NaN; 0 of -0 too. */
template <typename T>
inline T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : x != x ? x : T(0);
}

/* x to the power of a small constant, by repeated squaring. */
template <int N, typename T>
struct power_of {
  static T of(T x) { return N % 2 == 1 ? T(x * power_of<N / 2, T>::of(T(x * x))) : power_of<N / 2, T>::of(T(x * x)); }
};
template <typename T>
struct power_of<0, T> {
  static T of(T) { return T(1); }
};
template <typename T>
struct power_of<1, T> {
  static T of(T x) { return x; }
};
template <int N, typename T>
inline typename std::enable_if<(N >= 0), T>::type power(T x) {
  return power_of<N, T>::of(x);
}
template <int N, typename T>
inline typename std::enable_if<(N < 0), T>::type power(T x) {
  return T(1) / power_of<-N, T>::of(x);
}

/* Division that rounds to minus infinity. On integers, division by zero gives 0, and the one quotient that overflows wraps. */
template <typename T>
inline typename std::enable_if<!std::is_floating_point<T>::value, T>::type floordiv(T x, T y) {
  if (y == 0) return T(0);
  if (std::is_signed<T>::value && y == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<typename std::make_unsigned<T>::type>(x));
  const T quotient = static_cast<T>(x / y);
  return static_cast<T>(quotient - ((x % y != 0) && ((x < 0) != (y < 0))));
}
inline float floordiv(float x, float y) { return std::floor(x / y); }

/* The remainder of floordiv: it has the sign of y. */
template <typename T>
inline typename std::enable_if<!std::is_floating_point<T>::value, T>::type mod(T x, T y) {
  if (y == 0 || (std::is_signed<T>::value && y == static_cast<T>(-1))) return T(0);
  const T remainder = static_cast<T>(x % y);
  return static_cast<T>(remainder != 0 && ((remainder < 0) != (y < 0)) ? remainder + y : remainder);
}
inline float mod(float x, float y) {
  const float remainder = std::fmod(x, y);
  return remainder != 0 ? ((remainder < 0) != (y < 0) ? remainder + y : remainder) : std::copysign(0.0f, y);
}

/* x to the power of y, which wraps. To a negative power it is 1 over that, cut to a whole number: 0, but of 1 and -1. */
template <typename T>
inline typename std::enable_if<!std::is_floating_point<T>::value, T>::type pow(T x, T y) {
  using U = typename std::conditional<sizeof(T) <= 4, uint32_t, uint64_t>::type;
  if (y < T(0)) return x == T(1) || x == static_cast<T>(-1) ? ((y & 1) != 0 ? x : T(1)) : T(0);
  U factor = static_cast<U>(x), result = 1;
  for (U rest = static_cast<U>(y); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

/* Bits moved up; 0 where the count is none from 0 to before the number of bits. */
template <typename T>
inline T shift_left(T x, T n) {
  using U = typename std::make_unsigned<T>::type;
  const bool counted = n >= 0 && static_cast<U>(n) < 8 * sizeof(T);
  return counted ? static_cast<T>(static_cast<U>(x) << n) : T(0);
}

/* Bits moved down, where the sign moves in; what is left of the sign alone where the count is none of these. */
template <typename T>
inline T shift_right(T x, T n) {
  using U = typename std::make_unsigned<T>::type;
  const bool counted = n >= 0 && static_cast<U>(n) < 8 * sizeof(T);
  return counted ? static_cast<T>(x >> n) : x < T(0) ? static_cast<T>(-1) : T(0);
}

/* What the greatest of nothing is less than, and the least greater. */
template <typename T>
struct limits {
  static constexpr T lowest = std::is_floating_point<T>::value ? static_cast<T>(-std::numeric_limits<T>::infinity())
                                                               : std::numeric_limits<T>::lowest();
  static constexpr T highest = std::is_floating_point<T>::value ? std::numeric_limits<T>::infinity()
                                                                : std::numeric_limits<T>::max();
};
template <typename T>
constexpr T limits<T>::lowest;
template <typename T>
constexpr T limits<T>::highest;

/* Conversion between value types: integers wrap; floating to integer truncates and saturates, NaN gives 0. */
template <typename To, typename From, typename Whole = void>
struct cast_to {
  static To of(From x) { return static_cast<To>(x); }
};
template <typename From>
struct cast_to<bool, From, void> {
  static bool of(From x) { return x != From(0); }
};
template <typename To, typename From>
struct cast_to<To, From,
               typename std::enable_if<std::is_integral<To>::value && !std::is_same<To, bool>::value &&
                                       std::is_floating_point<From>::value>::type> {
  static To of(From x) {
    /* 2^bits of To's range as From: exact, unlike the largest integer itself. */
    constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
    if (x != x) return To(0);
    if (x >= above) return std::numeric_limits<To>::max();
    if (x <= static_cast<From>(std::numeric_limits<To>::lowest())) return std::numeric_limits<To>::lowest();
    return static_cast<To>(x);
  }
};
template <typename To, typename From>
inline To cast(From x) {
  return cast_to<To, From>::of(x);
}

}  // namespace opc
#endif  // OPC_POPLAR_CODELET_MATH_H
