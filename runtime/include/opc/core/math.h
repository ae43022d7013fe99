/* The scalar functions of the spec language, written so that compilers vectorise loops over them.
 *
 * All but sin, cos and tan are opc's own. Of these, that find where in a turn a huge number is, vector variants lie in glibc's libmvec on
 * x86-64: g++ calls them, and clang++ those of sin and cos (-fveclib=libmvec); elsewhere loops over them stay scalar.
 * Everything here lies in the namespace of the instruction-set variant a file is compiled for, so that variants never mix.
 */
#ifndef OPC_CORE_MATH_H
#define OPC_CORE_MATH_H

#include <stdint.h>
#include <string.h>

#include "opc/core/arcs.h"
#include "opc/core/bessel.h"
#include "opc/core/error_functions.h"
#include "opc/core/exponentials.h"
#include "opc/core/gamma_functions.h"
#include "opc/core/philox.h"
#include "opc/core/sinpi.h"
#include "opc/core/logarithms.h"
#include "opc/core/powers.h"
#include "opc/core/roots.h"
#include "opc/core/variant.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(OPC_NO_VECTOR_MATH)
#define OPC_VECTOR_MATH __attribute__((const, simd("notinbranch")))
#else
#define OPC_VECTOR_MATH __attribute__((const))
#endif
/* The vector variant of tan came with glibc 2.35; those of sin and cos with 2.22. */
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#define OPC_VECTOR_MATH_235 OPC_VECTOR_MATH
#endif
#endif
#if !defined(OPC_VECTOR_MATH_235)
#define OPC_VECTOR_MATH_235 __attribute__((const))
#endif

#if defined(__CUDACC__)
/* CUDA declares its own. */
#define OPC_DECLARE_1(name, simd)                           \
  namespace opc {                                           \
  inline namespace OPC_VARIANT {                            \
  OPC_INLINE float name(float x) { return ::name##f(x); } \
  OPC_INLINE double name(double x) { return ::name(x); }   \
  }                                                         \
  }
#else
/* Declares the C library's function for float and double, and its overload in namespace opc. */
#define OPC_DECLARE_1(name, simd)                         \
  extern "C" simd float name##f(float) noexcept;          \
  extern "C" simd double name(double) noexcept;           \
  namespace opc {                                         \
  inline namespace OPC_VARIANT {                          \
  OPC_INLINE float name(float x) { return name##f(x); } \
  OPC_INLINE double name(double x) { return ::name(x); } \
  }                                                       \
  }
#endif

OPC_DECLARE_1(sin, OPC_VECTOR_MATH)
OPC_DECLARE_1(cos, OPC_VECTOR_MATH)
OPC_DECLARE_1(tan, OPC_VECTOR_MATH_235)
#undef OPC_DECLARE_1

namespace opc {
inline namespace OPC_VARIANT {

OPC_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
OPC_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
OPC_INLINE float floor(float x) { return __builtin_floorf(x); }
OPC_INLINE double floor(double x) { return __builtin_floor(x); }
OPC_INLINE float ceil(float x) { return __builtin_ceilf(x); }
OPC_INLINE double ceil(double x) { return __builtin_ceil(x); }
OPC_INLINE float trunc(float x) { return __builtin_truncf(x); }
OPC_INLINE double trunc(double x) { return __builtin_trunc(x); }
/* Half to even: the rounding mode every host runs in. */
OPC_INLINE float round(float x) { return __builtin_rintf(x); }
OPC_INLINE double round(double x) { return __builtin_rint(x); }

template <typename T>
OPC_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

OPC_INLINE float abs(float x) { return __builtin_fabsf(x); }
OPC_INLINE double abs(double x) { return __builtin_fabs(x); }
template <typename T>
OPC_INLINE T abs(T x) {
  return is_below_zero(x) ? T(-x) : x;
}

template <typename T>
OPC_INLINE bool isnan(T x) {
  return x != x;
}

template <typename T>
OPC_INLINE bool isinf(T x) {
  return x == T(__builtin_inf()) || x == -T(__builtin_inf());
}

/* 0 - x. Where g++ sees that x is not -0, as of a conversion, it takes 0 - x for -x, which is -0 where x is 0; here it can't see it. */
template <typename T>
OPC_INLINE T zero_minus(T x) {
  return T(0) - x;
}

/* The larger one; NaN when either is. One instruction chooses, and a branch on NaN is taken the same way again and again. */
template <typename T>
OPC_INLINE T maximum(T x, T y) {
  const T larger = x > y ? x : y;
  return x != x ? x : larger;
}

/* The smaller one; NaN when either is. */
template <typename T>
OPC_INLINE T minimum(T x, T y) {
  const T smaller = x < y ? x : y;
  return x != x ? x : smaller;
}

/* -1, 0 or 1, NaN of NaN; 0 of -0 too. */
template <typename T>
OPC_INLINE T sign(T x) {
  return x > 0 ? T(1) : is_below_zero(x) ? T(-1) : x != x ? x : T(0);
}

/* x to the power of a small constant, by repeated squaring. */
template <int N, typename T>
OPC_INLINE T power(T x) {
  if constexpr (N < 0) {
    return T(1) / power<-N>(x);
  } else if constexpr (N == 0) {
    return T(1);
  } else if constexpr (N % 2 == 1) {
    return N == 1 ? x : T(x * power<N / 2>(T(x * x)));
  } else {
    return power<N / 2>(T(x * x));
  }
}

/* Whether two integers are small and not negative: their division then takes a fraction of the time. */
template <typename T>
OPC_INLINE bool fits_uint32(T x, T y) {
  return static_cast<uint64_t>(x | y) <= UINT32_MAX;
}

/* Division that rounds to minus infinity. On integers, division by zero gives 0, as NumPy has it. */
template <typename T>
OPC_INLINE T floordiv(T x, T y) {
  if (sizeof(T) == 8 && fits_uint32(x, y) && y != 0) return T(static_cast<uint32_t>(x) / static_cast<uint32_t>(y));
  if (y == 0) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(-x); /* the one quotient that overflows wraps */
  const T quotient = T(x / y);
  if constexpr (keeps_sign<T>) {
    return T(quotient - ((x % y != 0) && ((x < 0) != (y < 0))));
  } else {
    return quotient;
  }
}
OPC_INLINE float floordiv(float x, float y) { return floor(x / y); }
OPC_INLINE double floordiv(double x, double y) { return floor(x / y); }

/* The remainder of floordiv: it has the sign of y. */
template <typename T>
OPC_INLINE T mod(T x, T y) {
  if (sizeof(T) == 8 && fits_uint32(x, y) && y != 0) return T(static_cast<uint32_t>(x) % static_cast<uint32_t>(y));
  if (y == 0 || (T(-1) < T(0) && y == T(-1))) return T(0);
  const T remainder = T(x % y);
  if constexpr (keeps_sign<T>) {
    return T(remainder != 0 && ((remainder < 0) != (y < 0)) ? remainder + y : remainder);
  } else {
    return remainder;
  }
}
OPC_INLINE float mod(float x, float y) {
  const float remainder = __builtin_fmodf(x, y);
  return remainder != 0 ? ((remainder < 0) != (y < 0) ? remainder + y : remainder) : __builtin_copysignf(0.0f, y);
}
OPC_INLINE double mod(double x, double y) {
  const double remainder = __builtin_fmod(x, y);
  return remainder != 0 ? ((remainder < 0) != (y < 0) ? remainder + y : remainder) : __builtin_copysign(0.0, y);
}

/* Words without a sign that hold an integer's bits. */
template <bool Small>
struct word_of {
  typedef uint32_t type;
};
template <>
struct word_of<false> {
  typedef uint64_t type;
};
template <typename T>
using word = typename word_of<sizeof(T) <= 4>::type;

/* Bits moved up; 0 where the count is none from 0 to before the number of bits. Written without a branch. */
template <typename T>
OPC_INLINE T shift_left(T x, T n) {
  const word<T> count = static_cast<word<T>>(n);
  const T moved = T(static_cast<word<T>>(x) << (count & (8 * sizeof(word<T>) - 1)));
  return count < 8 * sizeof(T) ? moved : T(0);
}

/* Bits moved down, where the sign moves in; what is left of the sign alone where the count is none of these. */
template <typename T>
OPC_INLINE T shift_right(T x, T n) {
  const word<T> count = static_cast<word<T>>(n);
  const T rest = is_below_zero(x) ? T(-1) : T(0);
  const T moved = T(x >> (count & (8 * sizeof(word<T>) - 1)));
  return count < 8 * sizeof(T) ? moved : rest;
}

template <typename T>
struct limits;
template <>
struct limits<float> {
  static constexpr float lowest = -__builtin_inff(), highest = __builtin_inff();
  typedef int32_t key;
};
template <>
struct limits<double> {
  static constexpr double lowest = -__builtin_inf(), highest = __builtin_inf();
  typedef int64_t key;
};
#define OPC_LIMITS(type, least, most)               \
  template <>                                       \
  struct limits<type> {                             \
    static constexpr type lowest = least, highest = most; \
    typedef type key;                               \
  };
OPC_LIMITS(int8_t, INT8_MIN, INT8_MAX)
OPC_LIMITS(int16_t, INT16_MIN, INT16_MAX)
OPC_LIMITS(int32_t, INT32_MIN, INT32_MAX)
OPC_LIMITS(int64_t, INT64_MIN, INT64_MAX)
OPC_LIMITS(uint8_t, 0, UINT8_MAX)
OPC_LIMITS(uint16_t, 0, UINT16_MAX)
OPC_LIMITS(uint32_t, 0, UINT32_MAX)
OPC_LIMITS(uint64_t, 0, UINT64_MAX)
#undef OPC_LIMITS
template <>
struct limits<bool> {
  static constexpr bool lowest = false, highest = true;
  typedef uint8_t key;
};

/* The type acc(T) stands for, of a compute type T. */
template <typename T>
struct accumulator_of {
  typedef int64_t type;
};
template <>
struct accumulator_of<uint64_t> {
  typedef uint64_t type;
};
template <>
struct accumulator_of<float> {
  typedef float type;
};
template <>
struct accumulator_of<double> {
  typedef double type;
};
template <typename T>
using accumulator = typename accumulator_of<T>::type;

template <typename T>
constexpr bool is_floating = T(0.5) != T(0) && T(2) != T(1);

/* Conversion between value types: integers wrap; floating to integer truncates and saturates, NaN gives 0. */
template <typename To, typename From>
OPC_INLINE To cast(From x) {
  if constexpr (To(2) == To(1)) { /* bool */
    return x != From(0);
  } else if constexpr (is_floating<From> && !is_floating<To>) {
    /* 2^bits of To's range as From: exact, unlike the largest integer itself. */
    constexpr From above = From(limits<To>::highest / 2 + 1) * From(2);
    if (x != x) return To(0);
    if (x >= above) return limits<To>::highest;
    if (x <= From(limits<To>::lowest)) return limits<To>::lowest;
    return static_cast<To>(x);
  } else if constexpr (is_floating<To> && !is_floating<From>) {
    /* An integer's zero has no sign: adding 0 takes the one away that g++ gives it where, under -fno-trapping-math,
       it makes a trunc of a conversion to an integer and back. */
    const To value = static_cast<To>(x);
    return value + To(0);
  } else {
    return static_cast<To>(x);
  }
}

/* Integers ordered as the floating values are that are no NaN. */
template <typename T>
OPC_INLINE typename limits<T>::key order_key(T x) {
  typename limits<T>::key bits;
  memcpy(&bits, &x, sizeof bits);
  return bits ^ ((bits >> (8 * sizeof bits - 1)) & limits<typename limits<T>::key>::highest);
}

/* The keys no value is below, or above. */
template <typename T>
OPC_INLINE typename limits<T>::key max_identity() {
  return limits<typename limits<T>::key>::lowest;
}
template <typename T>
OPC_INLINE typename limits<T>::key min_identity() {
  return limits<typename limits<T>::key>::highest;
}

/* Such an integer with every NaN above infinity, or for a minimum below minus infinity; of other types the value itself. A maximum over
 * keys is one over values that keeps NaN, and unlike that one it vectorises as a plain integer reduction. */
template <typename T>
OPC_INLINE auto max_key(T x) {
  if constexpr (is_floating<T>) {
    return x != x ? min_identity<T>() : order_key(x);
  } else {
    return x;
  }
}
template <typename T>
OPC_INLINE auto min_key(T x) {
  if constexpr (is_floating<T>) {
    return x != x ? max_identity<T>() : order_key(x);
  } else {
    return x;
  }
}

/* The value of a key. */
template <typename T>
OPC_INLINE T key_value(typename limits<T>::key key) {
  if constexpr (is_floating<T>) {
    const typename limits<T>::key bits = key ^ ((key >> (8 * sizeof key - 1)) & min_identity<T>());
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
  } else {
    return T(key);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc

/* Marks a loop whose iterations do not depend on each other, save through the reductions named. */
#define OPC_PRAGMA(text) _Pragma(#text)
#define OPC_SIMD OPC_PRAGMA(omp simd)
/* The same for a loop over the lanes of one vector, which clang would unroll before it looks for vectors. */
#if defined(__clang__)
#define OPC_SIMD_LANES OPC_PRAGMA(clang loop vectorize(assume_safety) unroll(disable))
#else
#define OPC_SIMD_LANES OPC_SIMD
#endif
/* The same where lanes add to partial results. Before version 17, clang leaves such a loop a loop of one turn, between whose turns
 * partial results stay in memory, unless it may unroll it. */
#if defined(__clang__) && __clang_major__ < 17
#define OPC_SIMD_PARTS OPC_PRAGMA(clang loop vectorize(assume_safety))
#else
#define OPC_SIMD_PARTS OPC_SIMD_LANES
#endif
#define OPC_SIMD_REDUCTION(...) OPC_PRAGMA(omp simd reduction(__VA_ARGS__))
/* For a loop that no compiler vectorises: several steps a turn. */
#if defined(__CUDACC__)
#define OPC_UNROLLED OPC_PRAGMA(unroll)
#else
#define OPC_UNROLLED OPC_PRAGMA(GCC unroll 4)
#endif
/* For a loop of few steps whose body is long: nvcc would take four steps a turn, which costs it more than they save. */
#if defined(__CUDACC__)
#define OPC_ROLLED OPC_PRAGMA(unroll 1)
#else
#define OPC_ROLLED
#endif

#endif  // OPC_CORE_MATH_H
