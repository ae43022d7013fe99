#ifndef poplar_HalfFloat_hpp
#define poplar_HalfFloat_hpp

#include <cstdint>
#include <cstring>

namespace poplar {
namespace detail {

/// The bits of the binary16 nearest to `value`, ties to even; what is too large becomes an infinity.
inline std::uint16_t halfBits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (bits >= 0x477ff000u) // From 65520 on, the middle between the largest half and the next power.
    return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (bits < 0x38800000u) { // Below 2^-14: a multiple of 2^-24, which the addition rounds to.
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof bits);
    magnitude += 0.5f;
    std::uint32_t sum;
    std::memcpy(&sum, &magnitude, sizeof sum);
    return static_cast<std::uint16_t>(sign | (sum - 0x3f000000u));
  }
  const std::uint32_t odd = (bits >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((bits - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float floatOfHalfBits(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  std::uint32_t bits = half & 0x7fffu;
  float value;
  if (bits >= 0x7c00u) {
    bits = 0x7f800000u | ((bits & 0x3ffu) << 13);
  } else if (bits >= 0x400u) {
    bits = (bits << 13) + 0x38000000u;
  } else {
    value = static_cast<float>(bits) * (1.0f / 16777216.0f);
    std::memcpy(&bits, &value, sizeof bits);
  }
  bits |= sign;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float roundToHalf(float value) { return floatOfHalfBits(halfBits(value)); }

} // namespace detail

/// IEEE 754 binary16, as codelets and the host see it; every operation rounds to half.
class half_t {
  std::uint16_t bits;

public:
  half_t() = default;
  half_t(float value) : bits(detail::halfBits(value)) {}
  operator float() const { return detail::floatOfHalfBits(bits); }

  half_t &operator+=(half_t other) { return *this = half_t(float(*this) + float(other)); }
  half_t &operator-=(half_t other) { return *this = half_t(float(*this) - float(other)); }
  half_t &operator*=(half_t other) { return *this = half_t(float(*this) * float(other)); }
  half_t &operator/=(half_t other) { return *this = half_t(float(*this) / float(other)); }
};

namespace detail {
template <class A, class B> struct both_half {};
template <> struct both_half<half_t, half_t> { using type = half_t; };
} // namespace detail

// Of two halves only: half with float is computed in float.
template <class A, class B> typename detail::both_half<A, B>::type operator+(A a, B b) { return a += b; }
template <class A, class B> typename detail::both_half<A, B>::type operator-(A a, B b) { return a -= b; }
template <class A, class B> typename detail::both_half<A, B>::type operator*(A a, B b) { return a *= b; }
template <class A, class B> typename detail::both_half<A, B>::type operator/(A a, B b) { return a /= b; }
inline half_t operator-(half_t a) { return half_t(-float(a)); }

} // namespace poplar

using half = poplar::half_t;

#endif
