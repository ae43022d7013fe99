/* float16 and bfloat16 as bits, and their conversions by integer arithmetic that compilers vectorise.
 *
 * Narrowing rounds to nearest, ties to even, once; overflow gives infinity; a NaN stays a NaN.
 */
#ifndef OPC_HALF_H
#define OPC_HALF_H

#include <stdint.h>
#include <string.h>

namespace opc {

/* IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. */
struct float16 {
  uint16_t bits;
};

/* The upper half of an IEEE 754 binary32: 1 sign, 8 exponent, 7 fraction bits. */
struct bfloat16 {
  uint16_t bits;
};

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float widen(bfloat16 value) { return float_of(static_cast<uint32_t>(value.bits) << 16); }

static inline float widen(float16 value) {
  const uint32_t magnitude = value.bits & 0x7fffu;
  /* Scaling by 2^112 corrects the exponent's bias and normalises subnormals; infinity and NaN need the full exponent. */
  const uint32_t finite = bits_of(float_of(magnitude << 13) * 0x1p112f);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  return float_of((magnitude >= 0x7c00u ? special : finite) | sign);
}

static inline bfloat16 to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u; /* quiet, sign and upper payload kept */
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

static inline float16 to_float16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  /* Normal results: rebias the exponent, then round off 13 fraction bits; a carry runs into the exponent as it should. */
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  /* Subnormal results, below 2^-14: adding 0.5 makes the unit in the last place 2^-24, so the addition itself rounds. */
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result; /* 65520 and above round to infinity */
  result = magnitude > 0x7f800000u ? nan : result;
  return {static_cast<uint16_t>(result | ((bits >> 16) & 0x8000u))};
}

}  // namespace opc
#endif  // OPC_HALF_H
