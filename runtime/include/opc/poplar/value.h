/* Values of a stage for Poplar: numbers that are known while a graph is built, and expressions of popops on tensors.
 *
 * Attributes, sizes and the presence of operands are known when a graph is built, so what hangs on them is decided here, and no
 * expression is left that popops refuses, such as one of constants alone. Floating values are computed in FLOAT, integers of fewer
 * than 32 bits in INT and cut back to their type after each operation. A value of an operand that is absent may be part of an
 * expression as long as a condition leaves it out.
 */
#ifndef OPC_POPLAR_VALUE_H
#define OPC_POPLAR_VALUE_H

#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <popops/Expr.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace opc {
namespace ipu {

namespace pe = popops::expr;

/* The type that values stored as `stored` are computed in on a tile. */
inline poplar::Type computed(const poplar::Type &stored) {
  if (stored == poplar::HALF) return poplar::FLOAT;
  if (stored == poplar::CHAR || stored == poplar::SIGNED_CHAR || stored == poplar::UNSIGNED_CHAR || stored == poplar::SHORT ||
      stored == poplar::UNSIGNED_SHORT) {
    return poplar::INT;
  }
  return stored;
}

/* The type that sums of a type are kept in. */
inline poplar::Type accumulated(const poplar::Type &stored) {
  return computed(stored) == poplar::FLOAT ? poplar::FLOAT : poplar::INT;
}

/* Whether values of a type are integers that are computed in a wider one. */
inline bool is_narrow(const poplar::Type &type) { return type != poplar::HALF && computed(type) != type; }

/* A node of an expression, whose type is one that values are computed in. */
struct node {
  enum class kind { number, tensor, unary, binary, select, cast };

  kind what;
  poplar::Type type;
  double real = 0;
  int64_t whole = 0;
  poplar::Tensor tensor;
  pe::UnaryOpType unary = pe::UnaryOpType::NEGATE;
  pe::BinaryOpType binary = pe::BinaryOpType::ADD;
  std::vector<std::shared_ptr<const node>> parts;

  node(kind what_, const poplar::Type &type_) : what(what_), type(type_) {}
};

using node_ptr = std::shared_ptr<const node>;

class value {
 public:
  /* A number that takes the type of what it is combined with. */
  template <typename N, typename = typename std::enable_if<std::is_arithmetic<N>::value>::type>
  value(N number)
      : form_(form::number),
        weak_(!std::is_same<N, bool>::value),
        type_(std::is_same<N, bool>::value ? poplar::BOOL : std::is_floating_point<N>::value ? poplar::FLOAT : poplar::INT),
        real_(static_cast<double>(number)),
        whole_(std::is_floating_point<N>::value ? 0 : static_cast<int64_t>(number)) {}

  /* The elements of a tensor, or of an operand that is absent. */
  explicit value(const poplar::Tensor &tensor) : form_(form::absent), type_(poplar::FLOAT) {
    if (!tensor.valid()) return;
    form_ = form::expression;
    type_ = tensor.elementType() == poplar::HALF ? poplar::FLOAT : tensor.elementType();
    auto leaf = std::make_shared<node>(node::kind::tensor, tensor.elementType());
    leaf->tensor = tensor;
    node_ = converted(leaf, computed(type_));
  }

  value(const node_ptr &expression, const poplar::Type &type) : form_(form::expression), type_(type), node_(expression) {}

  bool is_number() const { return form_ == form::number; }
  bool is_absent() const { return form_ == form::absent; }
  bool is_weak() const { return weak_; }
  const poplar::Type &type() const { return type_; }
  double real() const { return real_; }
  int64_t whole() const { return whole_; }

  /* The expression, as one of a type that values are computed in. */
  node_ptr expression(const poplar::Type &wanted) const {
    return is_number() ? as(wanted).literal(wanted) : converted(node_, wanted);
  }

  /* A number as one of a type, rounded or wrapped to it; any other value as it is. */
  value as(const poplar::Type &wanted) const {
    if (!is_number()) return *this;
    value found(*this);
    found.type_ = wanted;
    found.weak_ = false;
    if (wanted == poplar::BOOL) {
      found.whole_ = type_ == poplar::FLOAT ? real_ != 0 : whole_ != 0;
    } else if (wanted == poplar::FLOAT || wanted == poplar::HALF) {
      found.real_ = static_cast<float>(type_ == poplar::FLOAT ? real_ : static_cast<double>(whole_));
      found.type_ = poplar::FLOAT;
      found.whole_ = 0;
      return found;
    } else {
      found.whole_ = wrapped(type_ == poplar::FLOAT ? saturated(wanted) : whole_, wanted);
    }
    found.real_ = static_cast<double>(found.whole_);
    return found;
  }

  static node_ptr converted(const node_ptr &e, const poplar::Type &wanted) {
    if (e->type == wanted) return e;
    /* What was widened alone is as it was. */
    const bool back = e->what == node::kind::cast && e->parts[0]->type == wanted;
    if (back && (wanted == poplar::HALF || is_narrow(wanted))) return e->parts[0];
    auto made = std::make_shared<node>(node::kind::cast, wanted);
    made->parts = {e};
    return made;
  }

  /* The expression cut back to a narrow type. */
  static node_ptr cut(const node_ptr &e, const poplar::Type &type) {
    return is_narrow(type) ? converted(converted(e, type), computed(type)) : e;
  }

 private:
  enum class form { number, expression, absent };

  form form_;
  bool weak_ = false;
  poplar::Type type_;
  double real_ = 0;
  int64_t whole_ = 0;
  node_ptr node_;

  node_ptr literal(const poplar::Type &wanted) const {
    auto made = std::make_shared<node>(node::kind::number, wanted);
    made->real = real_;
    made->whole = whole_;
    return made;
  }

  static int64_t wrapped(int64_t number, const poplar::Type &type) {
    if (type == poplar::CHAR || type == poplar::SIGNED_CHAR) return static_cast<int8_t>(number);
    if (type == poplar::UNSIGNED_CHAR) return static_cast<uint8_t>(number);
    if (type == poplar::SHORT) return static_cast<int16_t>(number);
    if (type == poplar::UNSIGNED_SHORT) return static_cast<uint16_t>(number);
    if (type == poplar::UNSIGNED_INT) return static_cast<uint32_t>(number);
    return static_cast<int32_t>(number);
  }

  int64_t saturated(const poplar::Type &type) const;
};

/* The least and the greatest number of an integer type. */
inline std::pair<int64_t, int64_t> limits_of(const poplar::Type &type) {
  if (type == poplar::CHAR || type == poplar::SIGNED_CHAR) return {INT8_MIN, INT8_MAX};
  if (type == poplar::UNSIGNED_CHAR) return {0, UINT8_MAX};
  if (type == poplar::SHORT) return {INT16_MIN, INT16_MAX};
  if (type == poplar::UNSIGNED_SHORT) return {0, UINT16_MAX};
  if (type == poplar::UNSIGNED_INT) return {0, UINT32_MAX};
  if (type == poplar::BOOL) return {0, 1};
  return {INT32_MIN, INT32_MAX};
}

inline int64_t value::saturated(const poplar::Type &type) const {
  const auto limits = limits_of(type);
  if (std::isnan(real_)) return 0;
  if (real_ <= static_cast<double>(limits.first)) return limits.first;
  if (real_ >= static_cast<double>(limits.second)) return limits.second;
  return static_cast<int64_t>(real_);
}

inline value absent() { return value(poplar::Tensor()); }

/* The type of what two values are combined to: floating where one is, else that of the one that has a type of its own. */
inline poplar::Type joined(const value &a, const value &b) {
  if (a.type() == poplar::FLOAT || b.type() == poplar::FLOAT) return poplar::FLOAT;
  if (a.type() == b.type() || b.is_weak()) return a.type();
  if (a.is_weak()) return b.type();
  return poplar::INT;
}

inline node_ptr make(pe::UnaryOpType op, const poplar::Type &type, const node_ptr &a) {
  auto made = std::make_shared<node>(node::kind::unary, type);
  made->unary = op;
  made->parts = {a};
  return made;
}

inline node_ptr make(pe::BinaryOpType op, const poplar::Type &type, const node_ptr &a, const node_ptr &b) {
  auto made = std::make_shared<node>(node::kind::binary, type);
  made->binary = op;
  made->parts = {a, b};
  return made;
}

/* What is computed of numbers: it takes a type where one of them has one. */
template <typename N>
value number_of(N result, const poplar::Type &type, bool weak) {
  return weak ? value(result) : value(result).as(type);
}

/* ---- conditions ---- */

template <typename Compare>
value comparison(pe::BinaryOpType op, const value &a, const value &b, Compare compare) {
  if (a.is_absent() || b.is_absent()) return absent();
  const poplar::Type type = joined(a, b);
  if (a.is_number() && b.is_number()) {
    const value x = a.is_weak() && b.is_weak() ? a : a.as(type), y = a.is_weak() && b.is_weak() ? b : b.as(type);
    return type == poplar::FLOAT ? value(compare(x.real(), y.real())) : value(compare(x.whole(), y.whole()));
  }
  const poplar::Type in = computed(type);
  return value(make(op, poplar::BOOL, a.expression(in), b.expression(in)), poplar::BOOL);
}

#define OPC_COMPARISON(symbol, op)                                                                       \
  inline value operator symbol(const value &a, const value &b) {                                         \
    return comparison(pe::BinaryOpType::op, a, b, [](auto x, auto y) -> bool { return x symbol y; });    \
  }
OPC_COMPARISON(<, LESS_THAN)
OPC_COMPARISON(<=, LESS_THAN_EQUAL)
OPC_COMPARISON(>, GREATER_THAN)
OPC_COMPARISON(>=, GREATER_THAN_EQUAL)
OPC_COMPARISON(==, EQUAL)
OPC_COMPARISON(!=, NOT_EQUAL)
#undef OPC_COMPARISON

inline bool is_true(const value &a) { return a.is_number() && a.real() != 0; }
inline bool is_false(const value &a) { return a.is_number() && a.real() == 0; }

inline value operator!(const value &a) {
  if (a.is_absent()) return a;
  if (a.is_number()) return !is_true(a);
  return value(make(pe::UnaryOpType::LOGICAL_NOT, poplar::BOOL, a.expression(poplar::BOOL)), poplar::BOOL);
}
inline value operator&&(const value &a, const value &b) {
  if (is_false(a) || is_false(b)) return false;
  if (is_true(a)) return b;
  if (is_true(b)) return a;
  if (a.is_absent() || b.is_absent()) return absent();
  return value(make(pe::BinaryOpType::LOGICAL_AND, poplar::BOOL, a.expression(poplar::BOOL), b.expression(poplar::BOOL)), poplar::BOOL);
}
inline value operator||(const value &a, const value &b) {
  if (is_true(a) || is_true(b)) return true;
  if (is_false(a)) return b;
  if (is_false(b)) return a;
  if (a.is_absent() || b.is_absent()) return absent();
  return value(make(pe::BinaryOpType::LOGICAL_OR, poplar::BOOL, a.expression(poplar::BOOL), b.expression(poplar::BOOL)), poplar::BOOL);
}

/* `a` where the condition holds, `b` elsewhere. */
inline value select(const value &condition, const value &a, const value &b) {
  if (condition.is_number()) return is_true(condition) ? a : b;
  if (condition.is_absent() || a.is_absent() || b.is_absent()) return absent();
  const poplar::Type type = joined(a, b), in = computed(type);
  auto made = std::make_shared<node>(node::kind::select, in);
  made->parts = {a.expression(in), b.expression(in), condition.expression(poplar::BOOL)};
  return value(made, type);
}

/* ---- arithmetic ---- */

template <typename Compute>
value arithmetic(pe::BinaryOpType op, const value &a, const value &b, Compute compute) {
  if (a.is_absent() || b.is_absent()) return absent();
  const poplar::Type type = joined(a, b);
  if (a.is_number() && b.is_number()) {
    const bool weak = a.is_weak() && b.is_weak();
    if (type == poplar::FLOAT) return number_of(static_cast<double>(compute(a.real(), b.real())), type, weak);
    const uint64_t x = static_cast<uint64_t>(a.whole()), y = static_cast<uint64_t>(b.whole());
    return number_of(static_cast<int64_t>(compute(x, y)), type, weak);
  }
  const poplar::Type in = computed(type);
  return value(value::cut(make(op, in, a.expression(in), b.expression(in)), type), type);
}

inline value operator+(const value &a, const value &b) {
  return arithmetic(pe::BinaryOpType::ADD, a, b, [](auto x, auto y) { return x + y; });
}
inline value operator-(const value &a, const value &b) {
  return arithmetic(pe::BinaryOpType::SUBTRACT, a, b, [](auto x, auto y) { return x - y; });
}
inline value operator*(const value &a, const value &b) {
  return arithmetic(pe::BinaryOpType::MULTIPLY, a, b, [](auto x, auto y) { return x * y; });
}

/* The quotient of floating values; integers become such. */
inline value operator/(const value &a, const value &b) {
  if (a.is_absent() || b.is_absent()) return absent();
  if (a.is_number() && b.is_number()) return number_of(a.real() / b.real(), poplar::FLOAT, a.is_weak() && b.is_weak());
  const node_ptr x = a.expression(poplar::FLOAT), y = b.expression(poplar::FLOAT);
  return value(make(pe::BinaryOpType::DIVIDE, poplar::FLOAT, x, y), poplar::FLOAT);
}

inline value operator-(const value &a) {
  if (a.is_absent()) return a;
  if (a.is_number()) return a.type() == poplar::FLOAT ? number_of(-a.real(), a.type(), a.is_weak()) : value(0) - a;
  const poplar::Type in = computed(a.type());
  if (in == poplar::UNSIGNED_INT) return value(0).as(in) - a;
  return value(value::cut(make(pe::UnaryOpType::NEGATE, in, a.expression(in)), a.type()), a.type());
}

/* Conversion to a type: integers wrap; floating to integer truncates and saturates, NaN gives 0. */
inline value cast(const poplar::Type &stored, const value &a) {
  const poplar::Type type = stored == poplar::HALF ? poplar::FLOAT : stored;
  if (a.is_absent() || (a.type() == type && !a.is_weak())) return a;
  if (a.is_number()) return a.as(type);
  if (type == poplar::BOOL) return a != value(0).as(a.type());
  if (a.type() != poplar::FLOAT || type == poplar::FLOAT) {
    return value(value::cut(value::converted(a.expression(computed(a.type())), computed(type)), type), type);
  }
  const auto limits = limits_of(type);
  const float low = static_cast<float>(limits.first), high = static_cast<float>(limits.second);
  const value inside = select(a > low && a < high, a, 0.0f);
  const value whole(value::converted(inside.expression(poplar::FLOAT), computed(type)), type);
  return select(a >= high, value(limits.second).as(type), select(a <= low, value(limits.first).as(type), whole));
}

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_VALUE_H
