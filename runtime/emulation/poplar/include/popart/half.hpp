// A half as the host holds it.
#ifndef POPART_HALF_HPP
#define POPART_HALF_HPP

#include <cstdint>
#include <cstring>

#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

/// IEEE 754 binary16, rounded to nearest even.
class Half {
 public:
  Half() = default;
  Half(float value) : bits(fromFloat(value)) {}
  operator float() const { return toFloat(bits); }

  /// For the emulation's own use.
  static uint16_t fromFloat(float value) {
    uint32_t x;
    std::memcpy(&x, &value, sizeof x);
    const uint32_t sign = (x >> 16) & 0x8000u;
    x &= 0x7fffffffu;
    if (x > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (x >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (x < 0x33000001u) return static_cast<uint16_t>(sign);
    const int exponent = static_cast<int>(x >> 23);
    // A subnormal half has its mantissa, hidden bit included, shifted further to the right.
    const int shift = exponent < 113 ? 126 - exponent : 13;
    uint32_t mantissa = exponent < 113 ? ((x & 0x7fffffu) | 0x800000u) : x - 0x38000000u;
    const uint32_t rest = mantissa & ((1u << shift) - 1u), middle = 1u << (shift - 1);
    mantissa >>= shift;
    if (rest > middle || (rest == middle && (mantissa & 1u))) ++mantissa;
    return static_cast<uint16_t>(sign | mantissa);
  }

  /// For the emulation's own use.
  static float toFloat(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
    float value;
    if (exponent == 0) {
      value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    } else {
      const uint32_t x = exponent == 31 ? 0x7f800000u | (mantissa << 13) : ((exponent + 112u) << 23) | (mantissa << 13);
      std::memcpy(&value, &x, sizeof value);
    }
    return sign ? -value : value;
  }

 private:
  uint16_t bits = 0;
};

using float16_t = Half;

}  // namespace popart
#pragma GCC visibility pop

#endif
