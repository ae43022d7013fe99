/* Floating types of 16 and 8 bits as bits, and their conversions by integer arithmetic that compilers vectorise.
 *
 * Narrowing rounds to nearest, ties to even, once. What is beyond the greatest number becomes infinity, or NaN where a type has no
 * infinity; a NaN stays a NaN.
 */
#ifndef OPC_CORE_MINIFLOAT_H
#define OPC_CORE_MINIFLOAT_H

#include <stdint.h>
#include <string.h>

#include "opc/core/functions.h"
#include "opc/core/tensor.h"
#include "opc/core/variant.h"

/* Which of these types operands are stored in, and which types values are computed in. A kernel whose op has others names them before it
 * includes anything: each one costs time to compile. */
#ifndef OPC_STORED_MINIFLOATS
#define OPC_STORED_MINIFLOATS opc::float16, opc::bfloat16
#endif
#ifndef OPC_COMPUTED_TYPES
#define OPC_COMPUTED_TYPES float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, bool
#endif

namespace opc {

/* What the greatest encodings stand for: infinity and NaN; NaN alone; numbers, where NaN is what would be -0. */
enum class top_encodings { ieee, nan, finite };

/* A sign, an exponent with this bias, and this many bits of a fraction. */
#define OPC_MINIFLOAT(name, word, fraction_bits, exponent_bias, top_) \
  struct name {                                                       \
    typedef word bits_type;                                           \
    static constexpr dtype type = dtype_##name;                       \
    static constexpr int fraction = fraction_bits;                    \
    static constexpr int bias = exponent_bias;                        \
    static constexpr top_encodings top = top_encodings::top_;         \
    word bits;                                                        \
  };
OPC_MINIFLOATS(OPC_MINIFLOAT)
#undef OPC_MINIFLOAT

/* The type that values of a stored type are computed in. */
template <typename Stored>
struct compute_of {
  typedef Stored type;
};
#define OPC_COMPUTE_OF(name, ...) \
  template <>                     \
  struct compute_of<name> {       \
    typedef float type;           \
  };
OPC_MINIFLOATS(OPC_COMPUTE_OF)
#undef OPC_COMPUTE_OF
template <typename Stored>
using compute = typename compute_of<Stored>::type;

template <typename... Types>
struct type_list {};

/* The element type that is stored as T. */
template <typename T>
constexpr dtype dtype_for = T::type;
#define OPC_DTYPE_FOR(name, type) \
  template <>                     \
  inline constexpr dtype dtype_for<type> = dtype_##name;
OPC_COMPUTED_DTYPES(OPC_DTYPE_FOR)
#undef OPC_DTYPE_FOR

typedef type_list<OPC_STORED_MINIFLOATS> stored_minifloats;
typedef type_list<OPC_COMPUTED_TYPES> computed_types;

/* Calls f(T()) for the one of some types that elements are stored as; returns whether it is among them. */
template <typename... Types, typename F>
__attribute__((always_inline)) static inline bool with_type_of(dtype type, type_list<Types...>, F f) {
  return ((type == dtype_for<Types> ? (f(Types()), true) : false) || ...);
}

template <typename... Types>
static constexpr bool is_one_of(dtype type, type_list<Types...>) {
  return ((type == dtype_for<Types>) || ...);
}

/* Whether an operand's element type is a minifloat. Comparisons, which compilers follow from one question to the next, and no table. */
static constexpr bool is_minifloat(dtype type) { return is_one_of(type, stored_minifloats()); }

OPC_HOST_DEVICE static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

OPC_HOST_DEVICE static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The numbers that a type's conversions are made of. As bits of a float the exponent stands 23 bits up, with a bias of 127. */
template <typename Format>
struct encoding {
  static constexpr int width = 8 * sizeof(typename Format::bits_type);
  static constexpr int shift = 23 - Format::fraction;
  static constexpr uint32_t sign = 1u << (width - 1);
  static constexpr uint32_t magnitudes = sign - 1;
  static constexpr uint32_t rebias = static_cast<uint32_t>(127 - Format::bias) << 23;
  static constexpr uint32_t infinity = magnitudes & ~((1u << Format::fraction) - 1); /* of an IEEE type */
  static constexpr uint32_t largest = Format::top == top_encodings::ieee  ? infinity - 1
                                      : Format::top == top_encodings::nan ? magnitudes - 1
                                                                          : magnitudes;
  static constexpr uint32_t beyond = Format::top == top_encodings::finite ? sign : largest + 1; /* what overflow becomes */
  /* The least float that rounds to more than the largest number: halfway to the next one, which a tie goes to if that is even. */
  static constexpr uint32_t overflow = ((largest + 1) << shift) + rebias - (1u << (shift - 1)) + (largest % 2 == 0);
  static constexpr uint32_t least_normal = rebias + (1u << 23);
  /* The float whose unit in the last place is the least denormal number. */
  static constexpr uint32_t denormals = static_cast<uint32_t>(127 + 24 - Format::bias - Format::fraction) << 23;
};

/* Whether the processor converts a type in one instruction, which compilers vectorise: every aarch64 does so with float16. A signalling
 * NaN becomes a quiet one. */
#if defined(__aarch64__) && defined(__ARM_FP16_FORMAT_IEEE)
template <typename Format>
constexpr bool is_native = Format::fraction == 10 && Format::bias == 15;
typedef __fp16 native_half;
#else
template <typename Format>
constexpr bool is_native = false;
typedef uint16_t native_half;
#endif

template <typename Format, int bias = Format::bias>
OPC_HOST_DEVICE static inline float widen(Format value) {
  typedef encoding<Format> e;
  if constexpr (is_native<Format>) {
    native_half half;
    memcpy(&half, &value, sizeof half);
    return static_cast<float>(half);
  }
  const uint32_t sign = static_cast<uint32_t>(value.bits & e::sign) << (32 - e::width);
  if constexpr (bias == 127) return float_of(static_cast<uint32_t>(value.bits) << (32 - e::width));
  const uint32_t magnitude = value.bits & e::magnitudes;
  /* Scaling corrects the exponent's bias and normalises denormal numbers; infinity and NaN need the full exponent. */
  const uint32_t finite = bits_of(float_of(magnitude << e::shift) * float_of(static_cast<uint32_t>(254 - bias) << 23));
  if constexpr (Format::top == top_encodings::finite) {
    return float_of(value.bits == e::sign ? 0x7fc00000u : finite | sign);
  } else {
    const uint32_t special = (magnitude << e::shift) | 0x7f800000u;
    return float_of((magnitude > e::largest ? special : finite) | sign);
  }
}

template <typename Format, int bias = Format::bias>
OPC_HOST_DEVICE static inline Format narrow(float value) {
  typedef encoding<Format> e;
  typedef typename Format::bits_type word;
  if constexpr (is_native<Format>) {
    const native_half half = static_cast<native_half>(value);
    Format result;
    memcpy(&result, &half, sizeof half);
    return result;
  }
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if constexpr (bias == 127) {
    const uint32_t rounded = (bits + (1u << (e::shift - 1)) - 1 + ((bits >> e::shift) & 1u)) >> e::shift;
    const uint32_t nan = (bits >> e::shift) | 1u << (Format::fraction - 1); /* quiet, sign and upper payload kept */
    return {static_cast<word>(magnitude > 0x7f800000u ? nan : rounded)};
  }
  /* Normal results: rebias the exponent, then round off fraction bits; a carry runs into the exponent as it should. */
  const uint32_t normal = (magnitude - e::rebias + (1u << (e::shift - 1)) - 1 + ((magnitude >> e::shift) & 1u)) >> e::shift;
  /* Denormal results: in the sum the unit in the last place is theirs, so the addition itself rounds. */
  const uint32_t denormal = bits_of(float_of(magnitude) + float_of(e::denormals)) - e::denormals;
  uint32_t result = magnitude < e::least_normal ? denormal : normal;
  result = magnitude >= e::overflow ? e::beyond : result;
  const uint32_t sign = (bits >> (32 - e::width)) & e::sign;
  if constexpr (Format::top == top_encodings::ieee) {
    const uint32_t nan = e::infinity | 1u << (Format::fraction - 1) | ((magnitude >> e::shift) & ((1u << Format::fraction) - 1));
    result = magnitude > 0x7f800000u ? nan : result;
  }
  if constexpr (Format::top == top_encodings::finite) return {static_cast<word>(result == 0 ? result : result | sign)};
  return {static_cast<word>(result | sign)};
}

}  // namespace opc
#endif  // OPC_CORE_MINIFLOAT_H
