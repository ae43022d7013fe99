#ifndef popops_detail_scalar_impl_hpp
#define popops_detail_scalar_impl_hpp

#include <cmath>
#include <limits>
#include <popops/detail/eval.hpp>

/// The functions of the library on single values: float for float and half, int32 for the rest.
namespace popops {
namespace detail {

using expr::BinaryOpType;
using expr::UnaryOpType;

/// Which types an operation has codelets for.
enum TypeSet : unsigned { OnReal = 1, OnInt = 2, OnUnsigned = 4, OnShort = 8, OnBool = 16 };

static inline unsigned setOf(const poplar::Type &t) {
  if (isReal(t))
    return OnReal;
  if (t == poplar::INT)
    return OnInt;
  if (t == poplar::UNSIGNED_INT)
    return OnUnsigned;
  if (t == poplar::SHORT || t == poplar::UNSIGNED_SHORT)
    return OnShort;
  return t == poplar::BOOL ? static_cast<unsigned>(OnBool) : 0u;
}

static inline unsigned typesOf(UnaryOpType op) {
  switch (op) {
  case UnaryOpType::ABSOLUTE:
  case UnaryOpType::NEGATE:
  case UnaryOpType::SIGNUM:
  case UnaryOpType::SQRT:
    return OnReal | OnInt;
  case UnaryOpType::SQUARE:
    return OnReal | OnInt | OnUnsigned;
  case UnaryOpType::BITWISE_NOT:
    return OnInt | OnUnsigned | OnShort;
  case UnaryOpType::COUNT_LEADING_ZEROS:
  case UnaryOpType::POPCOUNT:
    return OnInt | OnUnsigned;
  case UnaryOpType::LOGICAL_NOT:
    return OnBool;
  default:
    return OnReal;
  }
}

static inline unsigned typesOf(BinaryOpType op) {
  switch (op) {
  case BinaryOpType::ATAN2:
  case BinaryOpType::INV_STD_DEV_TO_VARIANCE:
  case BinaryOpType::VARIANCE_TO_INV_STD_DEV:
    return OnReal;
  case BinaryOpType::BITWISE_AND:
  case BinaryOpType::BITWISE_OR:
  case BinaryOpType::BITWISE_XOR:
  case BinaryOpType::BITWISE_XNOR:
    return OnInt | OnUnsigned | OnShort;
  case BinaryOpType::EQUAL:
  case BinaryOpType::NOT_EQUAL:
    return OnReal | OnInt | OnUnsigned | OnShort | OnBool;
  case BinaryOpType::GREATER_THAN_EQUAL:
  case BinaryOpType::GREATER_THAN:
  case BinaryOpType::LESS_THAN_EQUAL:
  case BinaryOpType::LESS_THAN:
    return OnReal | OnInt | OnUnsigned | OnBool;
  case BinaryOpType::LOGICAL_AND:
  case BinaryOpType::LOGICAL_OR:
    return OnBool;
  case BinaryOpType::POWER:
    return OnReal | OnInt;
  case BinaryOpType::SHIFT_LEFT:
  case BinaryOpType::SHIFT_RIGHT:
    return OnInt | OnUnsigned;
  case BinaryOpType::SHIFT_RIGHT_SIGN_EXTEND:
    return OnInt;
  default:
    return OnReal | OnInt | OnUnsigned;
  }
}

static inline float apply(UnaryOpType op, float x) {
  switch (op) {
  case UnaryOpType::ABSOLUTE: return std::fabs(x);
  case UnaryOpType::ASIN: return std::asin(x);
  case UnaryOpType::CBRT: return std::cbrt(x);
  case UnaryOpType::CEIL: return std::ceil(x);
  case UnaryOpType::COS: return std::cos(x);
  case UnaryOpType::ERF: return std::erf(x);
  case UnaryOpType::EXPONENT: return std::exp(x);
  case UnaryOpType::EXPONENT_MINUS_ONE: return std::expm1(x);
  case UnaryOpType::EXPONENT2: return std::exp2(x);
  case UnaryOpType::FLOOR: return std::floor(x);
  case UnaryOpType::GELU_ERF: return 0.5f * x * (1.0f + std::erf(0.70710678f * x));
  case UnaryOpType::INVERSE: return 1.0f / x;
  case UnaryOpType::LOGARITHM: return std::log(x);
  case UnaryOpType::LOGARITHM_ONE_PLUS: return std::log1p(x);
  case UnaryOpType::NEGATE: return -x;
  case UnaryOpType::NEARBY_INT: return std::nearbyint(x);
  case UnaryOpType::RELU: return x > 0.0f ? x : 0.0f;
  case UnaryOpType::SIGNUM: return static_cast<float>((0.0f < x) - (x < 0.0f));
  case UnaryOpType::SIN: return std::sin(x);
  case UnaryOpType::TAN: return std::tan(x);
  case UnaryOpType::TANH: return std::tanh(x);
  case UnaryOpType::ROUND: return std::round(x);
  case UnaryOpType::SQRT: return std::sqrt(x);
  case UnaryOpType::SQUARE: return x * x;
  case UnaryOpType::SIGMOID: return 1.0f / (1.0f + std::exp(-x));
  case UnaryOpType::RSQRT: return 1.0f / std::sqrt(x);
  case UnaryOpType::TRUNC: return std::trunc(x);
  default: return x; // Not on floats.
  }
}

static inline bool test(UnaryOpType op, float x) {
  return op == UnaryOpType::IS_FINITE ? std::isfinite(x) : op == UnaryOpType::IS_INF ? std::isinf(x) : std::isnan(x);
}

static inline std::int32_t wrap(std::uint32_t bits) { return static_cast<std::int32_t>(bits); }

static inline std::int32_t apply(UnaryOpType op, std::int32_t x) {
  const std::uint32_t u = static_cast<std::uint32_t>(x);
  switch (op) {
  case UnaryOpType::ABSOLUTE: return x < 0 ? wrap(0u - u) : x;
  case UnaryOpType::BITWISE_NOT: return ~x;
  case UnaryOpType::COUNT_LEADING_ZEROS: return u == 0 ? 32 : __builtin_clz(u);
  case UnaryOpType::LOGICAL_NOT: return x == 0;
  case UnaryOpType::NEGATE: return wrap(0u - u);
  case UnaryOpType::POPCOUNT: return __builtin_popcount(u);
  case UnaryOpType::SIGNUM: return (0 < x) - (x < 0);
  case UnaryOpType::SQRT: return static_cast<std::int32_t>(std::sqrt(static_cast<double>(x < 0 ? 0 : x)));
  case UnaryOpType::SQUARE: return wrap(u * u);
  default: return x; // Not on integers.
  }
}

/// The greater of two: of a number and a NaN it is the number, so that nobody relies on a NaN going through.
static inline float apply(BinaryOpType op, float a, float b) {
  switch (op) {
  case BinaryOpType::ADD: return a + b;
  case BinaryOpType::ATAN2: return std::atan2(a, b);
  case BinaryOpType::DIVIDE: return a / b;
  case BinaryOpType::INV_STD_DEV_TO_VARIANCE: return 1.0f / (a * a) - b;
  case BinaryOpType::MAXIMUM: return std::fmax(a, b);
  case BinaryOpType::MINIMUM: return std::fmin(a, b);
  case BinaryOpType::MULTIPLY: return a * b;
  case BinaryOpType::POWER: return std::pow(a, b);
  case BinaryOpType::REMAINDER: return std::fmod(a, b);
  case BinaryOpType::SUBTRACT: return a - b;
  case BinaryOpType::VARIANCE_TO_INV_STD_DEV: return 1.0f / std::sqrt(a + b);
  default: return a; // Not on floats.
  }
}

template <class T> inline bool compare(BinaryOpType op, T a, T b) {
  switch (op) {
  case BinaryOpType::EQUAL: return a == b;
  case BinaryOpType::GREATER_THAN_EQUAL: return a >= b;
  case BinaryOpType::GREATER_THAN: return a > b;
  case BinaryOpType::LESS_THAN_EQUAL: return a <= b;
  case BinaryOpType::LESS_THAN: return a < b;
  case BinaryOpType::NOT_EQUAL: return a != b;
  case BinaryOpType::LOGICAL_AND: return a != T(0) && b != T(0);
  default: return a != T(0) || b != T(0);
  }
}

static inline std::int32_t power(std::int32_t base, std::int32_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  std::uint32_t result = 1, factor = static_cast<std::uint32_t>(base);
  for (; exponent != 0; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return wrap(result);
}

/// What the device gives for a division by zero isn't said; here it is all ones, and never a trap.
static inline std::int32_t applySigned(BinaryOpType op, std::int32_t a, std::int32_t b) {
  const std::uint32_t u = static_cast<std::uint32_t>(a), v = static_cast<std::uint32_t>(b);
  switch (op) {
  case BinaryOpType::ADD: return wrap(u + v);
  case BinaryOpType::BITWISE_AND: return a & b;
  case BinaryOpType::BITWISE_OR: return a | b;
  case BinaryOpType::BITWISE_XOR: return a ^ b;
  case BinaryOpType::BITWISE_XNOR: return ~(a ^ b);
  case BinaryOpType::DIVIDE: return b == 0 ? -1 : b == -1 ? wrap(0u - u) : a / b;
  case BinaryOpType::MAXIMUM: return a > b ? a : b;
  case BinaryOpType::MINIMUM: return a < b ? a : b;
  case BinaryOpType::MULTIPLY: return wrap(u * v);
  case BinaryOpType::POWER: return power(a, b);
  case BinaryOpType::REMAINDER: return b == 0 ? -1 : b == -1 ? 0 : a % b;
  case BinaryOpType::SHIFT_LEFT: return v > 31 ? 0 : wrap(u << v);
  case BinaryOpType::SHIFT_RIGHT: return v > 31 ? 0 : wrap(u >> v);
  case BinaryOpType::SHIFT_RIGHT_SIGN_EXTEND: return a >> (v > 31 ? 31 : v);
  case BinaryOpType::SUBTRACT: return wrap(u - v);
  default: return a; // Not on integers.
  }
}

static inline std::int32_t applyUnsigned(BinaryOpType op, std::int32_t a, std::int32_t b) {
  const std::uint32_t u = static_cast<std::uint32_t>(a), v = static_cast<std::uint32_t>(b);
  switch (op) {
  case BinaryOpType::DIVIDE: return v == 0 ? -1 : wrap(u / v);
  case BinaryOpType::MAXIMUM: return u > v ? a : b;
  case BinaryOpType::MINIMUM: return u < v ? a : b;
  case BinaryOpType::REMAINDER: return v == 0 ? -1 : wrap(u % v);
  default: return applySigned(op, a, b);
  }
}

/// What doesn't fit goes to the nearest that does; the device says nothing of it.
static inline std::int32_t toInteger(float x, const poplar::Type &t) {
  if (t == poplar::BOOL)
    return x != 0.0f;
  if (std::isnan(x))
    return 0;
  if (t == poplar::UNSIGNED_INT)
    return wrap(x >= 4294967296.0f ? 0xffffffffu : x <= 0.0f ? 0u : static_cast<std::uint32_t>(x));
  if (x >= 2147483648.0f)
    return std::numeric_limits<std::int32_t>::max();
  if (x < -2147483648.0f)
    return std::numeric_limits<std::int32_t>::min();
  return static_cast<std::int32_t>(x);
}

/// The value of an integer register as its type holds it.
static inline std::int32_t narrow(std::int32_t x, const poplar::Type &t) {
  switch (t.kind()) {
  case poplar::Type::Kind::Bool: return x != 0;
  case poplar::Type::Kind::Char:
  case poplar::Type::Kind::SignedChar: return static_cast<std::int8_t>(x);
  case poplar::Type::Kind::UnsignedChar: return static_cast<std::uint8_t>(x);
  case poplar::Type::Kind::Short: return static_cast<std::int16_t>(x);
  case poplar::Type::Kind::UnsignedShort: return static_cast<std::uint16_t>(x);
  default: return x;
  }
}

} // namespace detail
} // namespace popops

#endif
