#ifndef popops_detail_types_impl_hpp
#define popops_detail_types_impl_hpp

#include <popops/detail/types.hpp>
#include <sstream>

namespace popops {
namespace detail {

using poplar::Type;

/// A type, or none yet.
struct MaybeType {
  bool known = false;
  Type type;
  MaybeType() = default;
  MaybeType(const Type &t) : known(true), type(t) {}
};

static inline bool givesBool(expr::UnaryOpType op) {
  return op == expr::UnaryOpType::IS_FINITE || op == expr::UnaryOpType::IS_INF || op == expr::UnaryOpType::IS_NAN ||
         op == expr::UnaryOpType::LOGICAL_NOT;
}

static inline bool givesBool(expr::BinaryOpType op) {
  switch (op) {
  case expr::BinaryOpType::EQUAL:
  case expr::BinaryOpType::GREATER_THAN_EQUAL:
  case expr::BinaryOpType::GREATER_THAN:
  case expr::BinaryOpType::LESS_THAN_EQUAL:
  case expr::BinaryOpType::LESS_THAN:
  case expr::BinaryOpType::NOT_EQUAL:
  case expr::BinaryOpType::LOGICAL_AND:
  case expr::BinaryOpType::LOGICAL_OR:
    return true;
  default:
    return false;
  }
}

static inline std::string onOneLine(const expr::Expr &e) {
  std::ostringstream os;
  e.print(os, 0, false);
  return os.str();
}

static inline Type placeHolderType(const expr::PlaceHolder &p, const std::vector<Type> &types) {
  if (p.getIndex() == 0 || p.getIndex() > types.size())
    throw poputil::poplibs_error("Invalid placeholder _" + std::to_string(p.getIndex()) + " in expression; there are " +
                                 std::to_string(types.size()) + " tensors");
  return types[p.getIndex() - 1];
}

/// Infers from the leaves up. A constant waits in `unknown` until a sibling has a type, which it then takes.
struct Inference {
  const std::vector<Type> &types;
  ConstTypes &constants;
  using Unknown = std::vector<const expr::Expr *>;

  void settle(Unknown &unknown, const Type &type) {
    for (const expr::Expr *e : unknown)
      constants[e] = type;
    unknown.clear();
  }
  static void requireNone(const Unknown &unknown, const expr::Expr &e) {
    if (!unknown.empty())
      throw poputil::poplibs_error("Could not infer the type(s) of some constant(s) in expression " + onOneLine(e));
  }
  static std::string nameOf(const MaybeType &t) { return t.known ? t.type.toString().cloneAsString() : "unknown"; }
  static void requireSame(const MaybeType &left, const MaybeType &right, const std::string &where,
                          const expr::Expr &e) {
    if (left.known != right.known || (left.known && left.type != right.type))
      throw poputil::poplibs_error("Inferred type of lhs (" + nameOf(left) +
                                   ") does not match inferred type of rhs (" + nameOf(right) + ") in " + where +
                                   "expression " + onOneLine(e));
  }

  MaybeType infer(const expr::Expr &e, Unknown &unknown) {
    switch (e.kind()) {
    case expr::Expr::Kind::Const:
      unknown.push_back(&e);
      return {};
    case expr::Expr::Kind::PlaceHolder:
      return placeHolderType(*e.getAs<expr::PlaceHolder>(), types);
    case expr::Expr::Kind::Cast: {
      Unknown inside;
      infer(e.getAs<expr::Cast>()->getLHS(), inside);
      requireNone(inside, e);
      return e.getAs<expr::Cast>()->getRHSType();
    }
    case expr::Expr::Kind::Unary: {
      const expr::UnaryOp &u = *e.getAs<expr::UnaryOp>();
      if (!givesBool(u.getOpType()))
        return infer(u.getArg(), unknown);
      Unknown inside;
      infer(u.getArg(), inside);
      requireNone(inside, e);
      return poplar::BOOL;
    }
    case expr::Expr::Kind::Binary:
      return binary(e, unknown);
    case expr::Expr::Kind::Ternary:
      return e.getAs<expr::TernaryOp>()->getOpType() == expr::TernaryOpType::SELECT ? select(e, unknown)
                                                                                    : clamp(e, unknown);
    }
    return {};
  }

  void share(MaybeType &left, MaybeType &right, Unknown &unknown) {
    if (left.known == right.known)
      return;
    (left.known ? right : left) = left.known ? left : right;
    settle(unknown, left.type);
  }

  MaybeType binary(const expr::Expr &e, Unknown &outer) {
    const expr::BinaryOp &b = *e.getAs<expr::BinaryOp>();
    const bool up = !givesBool(b.getOpType());
    Unknown inside;
    Unknown &unknown = up ? outer : inside;
    MaybeType left = infer(b.getLHS(), unknown), right = infer(b.getRHS(), unknown);
    share(left, right, unknown);
    requireSame(left, right, "", e);
    if (up)
      return left;
    requireNone(inside, e);
    return poplar::BOOL;
  }

  MaybeType select(const expr::Expr &e, Unknown &unknown) {
    const expr::TernaryOp &t = *e.getAs<expr::TernaryOp>();
    const expr::Const *const literal = t.getArg2().getAs<expr::Const>();
    const MaybeType condition = literal ? MaybeType(literal->getType()) : infer(t.getArg2(), unknown);
    if (literal)
      constants[literal] = condition.type;
    if (!condition.known || condition.type != poplar::BOOL)
      throw poputil::poplibs_error((condition.known
                                        ? "Inferred type (" + condition.type.toString().cloneAsString() + ") "
                                        : std::string("Could not infer type ")) +
                                   "of condition argument of Select operator in expression " + onOneLine(e) +
                                   ". Must be bool.");
    MaybeType left = infer(t.getArg0(), unknown), right = infer(t.getArg1(), unknown);
    share(left, right, unknown);
    if (!left.known && !right.known) {
      // Two literals: they are of the type that they were written with.
      const expr::Const *const a = t.getArg0().getAs<expr::Const>(), *const b = t.getArg1().getAs<expr::Const>();
      left = a ? MaybeType(a->getType()) : MaybeType();
      right = b ? MaybeType(b->getType()) : MaybeType();
      if (left.known && right.known && left.type == right.type)
        settle(unknown, left.type);
    }
    requireSame(left, right, "Select ", e);
    return left;
  }

  MaybeType clamp(const expr::Expr &e, Unknown &unknown) {
    const expr::TernaryOp &t = *e.getAs<expr::TernaryOp>();
    const MaybeType type = infer(t.getArg0(), unknown);
    if (!type.known)
      throw poputil::poplibs_error("Could not infer type of arguments/result in Clamp expression " + onOneLine(e));
    for (const expr::Expr *bound : {&t.getArg1(), &t.getArg2()})
      if (!infer(*bound, unknown).known)
        settle(unknown, type.type);
    return type;
  }
};

POPLAR_EMULATION_FUNCTION ConstTypes getConstType(const expr::Expr &e, const std::vector<Type> &types) {
  ConstTypes constants;
  Inference inference{types, constants};
  Inference::Unknown unknown;
  MaybeType type;
  std::ostringstream message;
  try {
    type = inference.infer(e, unknown);
  } catch (const poputil::poplibs_error &error) {
    message << "Error inferring types in expression:\n";
    e.print(message);
    if (!types.empty())
      message << "\n\nwith PlaceHolder types:";
    for (std::size_t i = 0; i != types.size(); ++i)
      message << "\n  _" << i + 1 << ": " << types[i];
    message << "\n\n" << error.what();
    throw poputil::poplibs_error(message.str());
  }
  if (!type.known || !unknown.empty()) {
    message << "Could not infer types in expression:\n";
    e.print(message);
    throw poputil::poplibs_error(message.str());
  }
  return constants;
}

static inline expr::Part part(const expr::Expr &e) { return expr::Part(e.clone()); }

static inline bool neutral(expr::BinaryOpType op, double value, bool onTheRight) {
  switch (op) {
  case expr::BinaryOpType::ADD:
    return value == 0;
  case expr::BinaryOpType::MULTIPLY:
    return value == 1;
  case expr::BinaryOpType::SUBTRACT:
  case expr::BinaryOpType::SHIFT_LEFT:
  case expr::BinaryOpType::SHIFT_RIGHT:
    return onTheRight && value == 0;
  case expr::BinaryOpType::DIVIDE:
    return onTheRight && value == 1;
  default:
    return false;
  }
}

static inline bool isUnsigned(const Type &t) {
  return t == poplar::UNSIGNED_SHORT || t == poplar::UNSIGNED_INT || t == poplar::UNSIGNED_CHAR;
}

static inline Rewritten optimiseBinary(const expr::BinaryOp &b, const std::vector<Type> &types) {
  using expr::BinaryOpType;
  using expr::UnaryOp;
  using expr::UnaryOpType;
  const Rewritten left = optimise(b.getLHS(), types), right = optimise(b.getRHS(), types);
  const expr::Const *const cl = b.getLHS().getAs<expr::Const>(), *const cr = b.getRHS().getAs<expr::Const>();
  const BinaryOpType op = b.getOpType();
  if (op == BinaryOpType::POWER && cr) {
    const double power = cr->getDataAsDouble();
    if (power == 1)
      return {part(expr::Cast(*left.expression, left.type)), left.type};
    if (power == 0.5)
      return {part(UnaryOp(UnaryOpType::SQRT, *left.expression)), left.type};
    if (power == -0.5)
      return {part(UnaryOp(UnaryOpType::RSQRT, *left.expression)), left.type};
    if (power == -1)
      return {part(UnaryOp(UnaryOpType::INVERSE, *left.expression)), left.type};
    if (power == 2)
      return {part(UnaryOp(UnaryOpType::SQUARE, *left.expression)), left.type};
  }
  if ((op == BinaryOpType::REMAINDER || op == BinaryOpType::DIVIDE) && cr && isUnsigned(left.type) &&
      cr->getTypeTraits().isIntegral && !cr->getTypeTraits().isSigned) {
    const unsigned value = static_cast<unsigned>(cr->getDataForUnsignedIntegral());
    if (value != 0 && (value & (value - 1)) == 0) {
      if (op == BinaryOpType::REMAINDER)
        return {part(expr::BinaryOp(BinaryOpType::BITWISE_AND, *left.expression, expr::Const(value - 1))), left.type};
      const unsigned shift = static_cast<unsigned>(__builtin_ctz(value));
      return {part(expr::BinaryOp(BinaryOpType::SHIFT_RIGHT, *left.expression, expr::Const(shift))), left.type};
    }
  }
  if (cr || cl) {
    const Rewritten &other = cr ? left : right;
    if (neutral(op, (cr ? cr : cl)->getDataAsDouble(), cr != nullptr)) {
      if (other.expression->isA<expr::Const>())
        return other;
      return {part(expr::Cast(*other.expression, other.type)), other.type};
    }
  }
  return {part(expr::BinaryOp(op, *left.expression, *right.expression)), left.type};
}

POPLAR_EMULATION_FUNCTION Rewritten optimise(const expr::Expr &e, const std::vector<Type> &types) {
  switch (e.kind()) {
  case expr::Expr::Kind::Const:
    return {part(e), e.getAs<expr::Const>()->getType()};
  case expr::Expr::Kind::PlaceHolder:
    return {part(e), placeHolderType(*e.getAs<expr::PlaceHolder>(), types)};
  case expr::Expr::Kind::Cast: {
    const expr::Cast &c = *e.getAs<expr::Cast>();
    return {part(expr::Cast(*optimise(c.getLHS(), types).expression, c.getRHSType())), c.getRHSType()};
  }
  case expr::Expr::Kind::Unary: {
    const Rewritten arg = optimise(e.getAs<expr::UnaryOp>()->getArg(), types);
    return {part(expr::UnaryOp(e.getAs<expr::UnaryOp>()->getOpType(), *arg.expression)), arg.type};
  }
  case expr::Expr::Kind::Binary:
    return optimiseBinary(*e.getAs<expr::BinaryOp>(), types);
  case expr::Expr::Kind::Ternary:
    break;
  }
  const expr::TernaryOp &t = *e.getAs<expr::TernaryOp>();
  const Rewritten a = optimise(t.getArg0(), types), b = optimise(t.getArg1(), types), c = optimise(t.getArg2(), types);
  const expr::Const *const condition = c.expression->getAs<expr::Const>();
  if (condition && t.getOpType() == expr::TernaryOpType::SELECT) {
    const Rewritten &taken = condition->getDataAsDouble() == 0 ? b : a;
    return {part(expr::Cast(*taken.expression, taken.type)), a.type};
  }
  return {part(expr::TernaryOp(t.getOpType(), *a.expression, *b.expression, *c.expression)), a.type};
}

} // namespace detail
} // namespace popops

#endif
