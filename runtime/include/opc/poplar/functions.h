/* Functions of values: those that popops has, and what is made of them where it lacks some or means something else. */
#ifndef OPC_POPLAR_FUNCTIONS_H
#define OPC_POPLAR_FUNCTIONS_H

#include <cmath>
#include <limits>

#include "opc/poplar/value.h"

namespace opc {
namespace ipu {

/* A floating function that popops has; `compute` is the same of a number. */
template <typename Compute>
value unary(pe::UnaryOpType op, const value &a, Compute compute) {
  if (a.is_absent()) return a;
  if (a.is_number()) return number_of(static_cast<double>(compute(a.real())), poplar::FLOAT, a.is_weak());
  return value(make(op, poplar::FLOAT, a.expression(poplar::FLOAT)), poplar::FLOAT);
}

#define OPC_UNARY(name, op, text) \
  inline value name(const value &a) { return unary(pe::UnaryOpType::op, a, [](double x) { return text; }); }
OPC_UNARY(sqrt, SQRT, std::sqrt(x))
OPC_UNARY(cbrt, CBRT, std::cbrt(x))
OPC_UNARY(exp, EXPONENT, std::exp(x))
OPC_UNARY(expm1, EXPONENT_MINUS_ONE, std::expm1(x))
OPC_UNARY(exp2, EXPONENT2, std::exp2(x))
OPC_UNARY(log, LOGARITHM, std::log(x))
OPC_UNARY(log1p, LOGARITHM_ONE_PLUS, std::log1p(x))
OPC_UNARY(sin, SIN, std::sin(x))
OPC_UNARY(cos, COS, std::cos(x))
OPC_UNARY(tan, TAN, std::tan(x))
OPC_UNARY(asin, ASIN, std::asin(x))
OPC_UNARY(tanh, TANH, std::tanh(x))
OPC_UNARY(erf, ERF, std::erf(x))
OPC_UNARY(floor, FLOOR, std::floor(x))
OPC_UNARY(ceil, CEIL, std::ceil(x))
OPC_UNARY(trunc, TRUNC, std::trunc(x))
/* Half to even. */
OPC_UNARY(round, NEARBY_INT, std::nearbyint(x))
OPC_UNARY(square, SQUARE, x * x)
#undef OPC_UNARY

inline value abs(const value &a) {
  if (a.is_absent()) return a;
  if (a.is_number()) {
    return a.type() == poplar::FLOAT ? number_of(std::fabs(a.real()), a.type(), a.is_weak()) : a.whole() < 0 ? -a : a;
  }
  const poplar::Type in = computed(a.type());
  if (in == poplar::UNSIGNED_INT || in == poplar::BOOL) return a;
  return value(value::cut(make(pe::UnaryOpType::ABSOLUTE, in, a.expression(in)), a.type()), a.type());
}

inline value isnan(const value &a) { return a != a; }
inline value isinf(const value &a) { return abs(a) == std::numeric_limits<float>::infinity(); }

/* -1, 0 or 1, NaN of NaN. */
inline value sign(const value &a) { return select(a > 0, 1, select(a < 0, -1, select(a == a, 0, a))); }

/* The larger one, NaN when either is: popops' own maximum leaves NaN out. */
inline value maximum(const value &a, const value &b) {
  if (a.is_absent() || b.is_absent()) return absent();
  if (joined(a, b) != poplar::FLOAT || b.is_number()) return select(a < b, b, a);
  if (a.is_number()) return select(b < a, a, b);
  return select(a < b || b != b, b, a);
}
/* The smaller one, NaN when either is. */
inline value minimum(const value &a, const value &b) {
  if (a.is_absent() || b.is_absent()) return absent();
  if (joined(a, b) != poplar::FLOAT || b.is_number()) return select(a > b, b, a);
  if (a.is_number()) return select(b > a, a, b);
  return select(a > b || b != b, b, a);
}

inline value rsqrt(const value &a) { return 1.0f / sqrt(a); }
inline value log2(const value &a) { return log(a) / 0.6931471805599453; }
inline value log10(const value &a) { return log(a) / 2.302585092994046; }

/* A floating function of two arguments that popops has. */
template <typename Compute>
value binary(pe::BinaryOpType op, const value &a, const value &b, Compute compute) {
  if (a.is_absent() || b.is_absent()) return absent();
  if (a.is_number() && b.is_number()) {
    return number_of(static_cast<double>(compute(a.real(), b.real())), poplar::FLOAT, a.is_weak() && b.is_weak());
  }
  return value(make(op, poplar::FLOAT, a.expression(poplar::FLOAT), b.expression(poplar::FLOAT)), poplar::FLOAT);
}
inline value pow(const value &a, const value &b) {
  return binary(pe::BinaryOpType::POWER, a, b, [](double x, double y) { return std::pow(x, y); });
}
inline value atan2(const value &a, const value &b) {
  return binary(pe::BinaryOpType::ATAN2, a, b, [](double x, double y) { return std::atan2(x, y); });
}

/* A floating value to the power of a small number, by repeated squaring. */
inline value power(const value &a, int exponent) {
  if (exponent < 0) return 1.0f / power(a, -exponent);
  if (exponent == 0) return 1.0f;
  if (exponent == 1) return a;
  const value half = power(square(a), exponent / 2);
  return exponent % 2 == 1 ? a * half : half;
}

inline value atan(const value &a) { return atan2(a, 1.0f); }
inline value acos(const value &a) { return atan2(sqrt((1.0f - a) * (1.0f + a)), a); }

inline value sigmoid(const value &a) {
  const value e = exp(-abs(a));
  return select(a >= 0.0f, 1.0f, e) / (1.0f + e);
}

inline value hypot(const value &x, const value &y) {
  const value a = abs(x), b = abs(y), more = maximum(a, b);
  const value ratio = minimum(a, b) / select(more == 0.0f, 1.0f, more);
  return select(isinf(a), a, select(isinf(b), b, more * sqrt(square(ratio) + 1.0f)));
}

/* exp(x / 2)^2 overflows where its half does not yet. */
inline value cosh(const value &x) {
  const value half = exp(0.5f * abs(x));
  return (0.5f * half) * half + 0.5f / half / half;
}
inline value sinh(const value &x) {
  const value size = abs(x), less = expm1(size), half = exp(0.5f * size);
  const value found = select(size < 1.0f, 0.5f * (less + less / (less + 1.0f)), (0.5f * half) * half - 0.5f / half / half);
  return select(x == 0.0f, x, select(x < 0.0f, -found, found));
}
inline value asinh(const value &x) {
  const value size = abs(x);
  const value found = select(size > 1e10f, log(size) + 0.6931471805599453, log1p(size + square(size) / (1.0f + sqrt(square(size) + 1.0f))));
  return select(x == 0.0f, x, select(x < 0.0f, -found, found));
}
inline value acosh(const value &x) {
  const value more = x - 1.0f;
  const value found = select(x > 1e10f, log(x) + 0.6931471805599453, log1p(more + sqrt(more * (x + 1.0f))));
  return select(x < 1.0f, std::numeric_limits<float>::quiet_NaN(), found);
}
inline value atanh(const value &x) {
  const value size = abs(x), found = 0.5f * log1p(2.0f * size / (1.0f - size));
  return select(x == 0.0f, x, select(x < 0.0f, -found, found));
}

/* Quotient of integers or floating values that is rounded to minus infinity; integers by 0 give 0. */
inline value floordiv(const value &a, const value &b) {
  if (a.is_absent() || b.is_absent()) return absent();
  const poplar::Type type = joined(a, b), in = computed(type);
  if (type == poplar::FLOAT) return floor(a / b);
  if (a.is_number() && b.is_number()) {
    if (b.whole() == 0) return number_of(int64_t{0}, type, a.is_weak() && b.is_weak());
    if (b.whole() == -1) return -a;
    const int64_t quotient = a.whole() / b.whole();
    const bool above = a.whole() % b.whole() != 0 && (a.whole() < 0) != (b.whole() < 0);
    return number_of(quotient - above, type, a.is_weak() && b.is_weak());
  }
  /* Neither division by 0 nor the one quotient that overflows is asked of a tile; without a sign none does, and -1 is the largest number. */
  const bool has_sign = in != poplar::UNSIGNED_INT;
  const bool known = b.is_number() && b.whole() != 0 && (b.whole() != -1 || !has_sign);
  const value divisor = known ? b : select(has_sign ? b == 0 || b == -1 : b == 0, 1, b);
  const value quotient(make(pe::BinaryOpType::DIVIDE, in, a.expression(in), divisor.expression(in)), in);
  const value dividend(a.expression(in), in), exact = quotient * divisor;
  value found = quotient;
  if (has_sign) {
    found = select(exact != dividend && (dividend < 0) != (divisor < 0), quotient - 1, quotient);
    if (!known) found = select(b == -1, -dividend, found);
  }
  if (!known) found = select(b == 0, 0, found);
  return value(value::cut(found.expression(in), type), type);
}

/* The remainder of floordiv, which has the sign of the divisor. */
inline value mod(const value &a, const value &b) {
  if (a.is_absent() || b.is_absent()) return absent();
  if (joined(a, b) != poplar::FLOAT) return select(b == 0, 0, a - floordiv(a, b) * b);
  const value rest = binary(pe::BinaryOpType::REMAINDER, a, b, [](double x, double y) { return std::fmod(x, y); });
  const value zero = select(b < 0.0f, -0.0f, 0.0f);
  return select(rest != 0.0f, select((rest < 0.0f) != (b < 0.0f), rest + b, rest), zero);
}

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_FUNCTIONS_H
