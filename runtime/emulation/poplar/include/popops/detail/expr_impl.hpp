#ifndef popops_detail_expr_impl_hpp
#define popops_detail_expr_impl_hpp

#include <popops/Expr.hpp>
#include <string>

namespace popops {
namespace expr {

static inline const char *nameOf(UnaryOpType op) {
  static const char *const names[] = {
      "ABSOLUTE", "ASIN", "BITWISE_NOT", "CBRT", "CEIL", "COS", "COUNT_LEADING_ZEROS", "ERF", "EXPONENT",
      "EXPONENT_MINUS_ONE", "EXPONENT2", "FLOOR", "GELU_ERF", "INVERSE", "IS_FINITE", "IS_INF", "IS_NAN", "LOGARITHM",
      "LOGARITHM_ONE_PLUS", "LOGICAL_NOT", "NEGATE", "NEARBY_INT", "POPCOUNT", "RELU", "SIGNUM", "SIN", "TAN", "TANH",
      "ROUND", "SQRT", "SQUARE", "SIGMOID", "RSQRT", "TRUNC"};
  return names[static_cast<int>(op)];
}

static inline const char *nameOf(BinaryOpType op) {
  static const char *const names[] = {
      "ADD", "ATAN2", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BITWISE_XNOR", "DIVIDE", "EQUAL",
      "GREATER_THAN_EQUAL", "GREATER_THAN", "INV_STD_DEV_TO_VARIANCE", "LESS_THAN_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
      "LESS_THAN", "MAXIMUM", "MINIMUM", "MULTIPLY", "NOT_EQUAL", "POWER", "REMAINDER", "SHIFT_LEFT", "SHIFT_RIGHT",
      "SHIFT_RIGHT_SIGN_EXTEND", "SUBTRACT", "VARIANCE_TO_INV_STD_DEV"};
  return names[static_cast<int>(op)];
}

static inline const char *nameOf(TernaryOpType op) { return op == TernaryOpType::SELECT ? "SELECT" : "CLAMP"; }

POPLAR_EMULATION_FUNCTION double Const::getDataAsDouble() const {
  if (traits.isFloat) {
    if (traits.size == sizeof(double)) {
      double d;
      std::memcpy(&d, bytes, sizeof d);
      return d;
    }
    float f;
    std::memcpy(&f, bytes, sizeof f);
    return f;
  }
  std::uint64_t bits = getDataForUnsignedIntegral();
  const unsigned unused = 64 - 8 * static_cast<unsigned>(traits.size);
  if (!traits.isSigned)
    return static_cast<double>(bits);
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

POPLAR_EMULATION_FUNCTION std::uint64_t Const::getDataForUnsignedIntegral() const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, traits.size);
  return bits;
}

POPLAR_EMULATION_FUNCTION void Expr::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  const std::string margin(prettyPrint ? indent : 0, ' ');
  const char *const gap = prettyPrint ? ",\n" : ", ";
  const auto list = [&](const char *name, std::initializer_list<const Expr *> parts) {
    os << margin << name << (prettyPrint ? "(\n" : "(");
    bool first = true;
    for (const Expr *part : parts) {
      os << (first ? "" : gap);
      part->print(os, indent + 2, prettyPrint);
      first = false;
    }
    os << ')';
  };
  switch (kind_) {
  case Kind::Const:
    os << margin << "Const<" << getAs<Const>()->getType() << ">(" << getAs<Const>()->getDataAsDouble() << ')';
    break;
  case Kind::Cast:
    list(("Cast<" + getAs<Cast>()->getRHSType().toString().cloneAsString() + ">").c_str(), {&getAs<Cast>()->getLHS()});
    break;
  case Kind::PlaceHolder:
    os << margin << '_' << getAs<PlaceHolder>()->getIndex();
    break;
  case Kind::Unary:
    list(nameOf(getAs<UnaryOp>()->getOpType()), {&getAs<UnaryOp>()->getArg()});
    break;
  case Kind::Binary:
    list(nameOf(getAs<BinaryOp>()->getOpType()), {&getAs<BinaryOp>()->getLHS(), &getAs<BinaryOp>()->getRHS()});
    break;
  case Kind::Ternary: {
    const TernaryOp &t = *getAs<TernaryOp>();
    list(nameOf(t.getOpType()), {&t.getArg0(), &t.getArg1(), &t.getArg2()});
    break;
  }
  }
}

POPLAR_EMULATION_FUNCTION bool Expr::deepEquals(const Expr &other) const {
  if (kind_ != other.kind_)
    return false;
  switch (kind_) {
  case Kind::Const: {
    const Const &a = *getAs<Const>(), &b = *other.getAs<Const>();
    return a.getType() == b.getType() && a.getTypeTraits().size == b.getTypeTraits().size &&
           std::memcmp(a.getData(), b.getData(), a.getTypeTraits().size) == 0;
  }
  case Kind::Cast:
    return getAs<Cast>()->getRHSType() == other.getAs<Cast>()->getRHSType() &&
           getAs<Cast>()->getLHS().deepEquals(other.getAs<Cast>()->getLHS());
  case Kind::PlaceHolder:
    return getAs<PlaceHolder>()->getIndex() == other.getAs<PlaceHolder>()->getIndex();
  case Kind::Unary:
    return getAs<UnaryOp>()->getOpType() == other.getAs<UnaryOp>()->getOpType() &&
           getAs<UnaryOp>()->getArg().deepEquals(other.getAs<UnaryOp>()->getArg());
  case Kind::Binary: {
    const BinaryOp &a = *getAs<BinaryOp>(), &b = *other.getAs<BinaryOp>();
    return a.getOpType() == b.getOpType() && a.getLHS().deepEquals(b.getLHS()) && a.getRHS().deepEquals(b.getRHS());
  }
  case Kind::Ternary: {
    const TernaryOp &a = *getAs<TernaryOp>(), &b = *other.getAs<TernaryOp>();
    return a.getOpType() == b.getOpType() && a.getArg0().deepEquals(b.getArg0()) &&
           a.getArg1().deepEquals(b.getArg1()) && a.getArg2().deepEquals(b.getArg2());
  }
  }
  return false;
}

} // namespace expr
} // namespace popops

#endif
