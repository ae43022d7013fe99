#ifndef popops_Expr_hpp
#define popops_Expr_hpp

#include <memory>
#include <ostream>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <poplar/TypeTraits.hpp>
#include <popops/ExprOp.hpp>
#include <type_traits>
#include <vector>

namespace popops {
namespace expr {

/// An expression of the elements of tensors. Expressions are values: what is built of one holds a copy.
class Expr {
public:
  /// For the emulation's own use.
  enum class Kind { Const, Cast, PlaceHolder, Unary, Binary, Ternary };

private:
  Kind kind_;

protected:
  /// For the emulation's own use.
  explicit Expr(Kind kind) : kind_(kind) {}

public:
  virtual ~Expr() = default;
  virtual std::unique_ptr<Expr> clone() const = 0;
  /// For the emulation's own use.
  Kind kind() const { return kind_; }
  template <class T> bool isA() const { return kind_ == T::ownKind; }
  template <class T> T *getAs() { return isA<T>() ? static_cast<T *>(this) : nullptr; }
  template <class T> const T *getAs() const { return isA<T>() ? static_cast<const T *>(this) : nullptr; }
  POPLAR_EMULATION_FUNCTION void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const;
  POPLAR_EMULATION_FUNCTION bool deepEquals(const Expr &other) const;
};

inline std::ostream &operator<<(std::ostream &os, const Expr &e) {
  e.print(os);
  return os;
}
inline bool deepEquals(const Expr &a, const Expr &b) { return a.deepEquals(b); }

/// For the emulation's own use.
using Part = std::shared_ptr<const Expr>;

/// Holds any expression, so that a variable can be given one after another.
class Any {
  std::shared_ptr<Expr> held;

public:
  Any(const Expr &e) : held(e.clone()) {}
  operator Expr &() { return *held; }
  operator const Expr &() const { return *held; }
};

/// A constant. It has no type of its own: it takes the type of what it meets.
class Const : public Expr {
  poplar::TypeTraits traits;
  poplar::Type type;
  unsigned char bytes[8] = {};

protected:
  /// For the emulation's own use.
  template <class T>
  Const(T value, const poplar::Type &t) : Expr(ownKind), traits(poplar::TypeTraits::make<T>()), type(t) {
    std::memcpy(bytes, &value, sizeof(T));
  }

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::Const;
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  Const(T value) : Const(value, poplar::equivalent_device_type<T>().value) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Const(*this)); }
  const char *getData() const { return reinterpret_cast<const char *>(bytes); }
  const poplar::TypeTraits &getTypeTraits() const { return traits; }
  const poplar::Type &getType() const { return type; }
  POPLAR_EMULATION_FUNCTION double getDataAsDouble() const;
  POPLAR_EMULATION_FUNCTION std::uint64_t getDataForUnsignedIntegral() const;
};

class ConstHalf : public Const {
public:
  ConstHalf(float value) : Const(value, poplar::HALF) {}
};
inline ConstHalf operator"" _half(long double value) { return ConstHalf(static_cast<float>(value)); }

class Cast : public Expr {
  Part a;
  poplar::Type type;

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::Cast;
  Cast(const Expr &e, const poplar::Type t) : Expr(ownKind), a(e.clone()), type(t) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Cast(*this)); }
  const Expr &getLHS() const { return *a; }
  const poplar::Type &getRHSType() const { return type; }
};

/// Stands for the elements of a tensor; the first tensor is number 1.
class PlaceHolder : public Expr {
  unsigned index;

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::PlaceHolder;
  PlaceHolder(unsigned i) : Expr(ownKind), index(i) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new PlaceHolder(*this)); }
  unsigned getIndex() const { return index; }
};

const PlaceHolder _1{1}, _2{2}, _3{3}, _4{4}, _5{5}, _6{6}, _7{7}, _8{8}, _9{9}, _10{10}, _11{11}, _12{12}, _13{13},
    _14{14}, _15{15}, _16{16}, _17{17}, _18{18}, _19{19}, _20{20};

class UnaryOp : public Expr {
  UnaryOpType op;
  Part a;

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::Unary;
  UnaryOp(UnaryOpType o, const Expr &e) : Expr(ownKind), op(o), a(e.clone()) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new UnaryOp(*this)); }
  UnaryOpType getOpType() const { return op; }
  const Expr &getArg() const { return *a; }
};

class BinaryOp : public Expr {
  BinaryOpType op;
  Part a, b;

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::Binary;
  BinaryOp(BinaryOpType o, const Expr &l, const Expr &r) : Expr(ownKind), op(o), a(l.clone()), b(r.clone()) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new BinaryOp(*this)); }
  BinaryOpType getOpType() const { return op; }
  const Expr &getLHS() const { return *a; }
  const Expr &getRHS() const { return *b; }
};

class TernaryOp : public Expr {
  TernaryOpType op;
  Part a, b, c;

public:
  /// For the emulation's own use.
  static constexpr Kind ownKind = Kind::Ternary;
  TernaryOp(TernaryOpType o, const Expr &x, const Expr &y, const Expr &z)
      : Expr(ownKind), op(o), a(x.clone()), b(y.clone()), c(z.clone()) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new TernaryOp(*this)); }
  TernaryOpType getOpType() const { return op; }
  const Expr &getArg0() const { return *a; }
  const Expr &getArg1() const { return *b; }
  const Expr &getArg2() const { return *c; }
};

/// `Select(a, b, c)` is `c ? a : b`.
class Select : public TernaryOp {
public:
  Select(const Expr &a, const Expr &b, const Expr &c) : TernaryOp(TernaryOpType::SELECT, a, b, c) {}
};

/// `Clamp(x, low, high)`.
class Clamp : public TernaryOp {
public:
  Clamp(const Expr &x, const Expr &low, const Expr &high) : TernaryOp(TernaryOpType::CLAMP, x, low, high) {}
};

#define POPOPS_EMULATION_UNARY(Name, OP)                                                                               \
  class Name : public UnaryOp {                                                                                        \
  public:                                                                                                              \
    Name(const Expr &a) : UnaryOp(UnaryOpType::OP, a) {}                                                               \
  };
POPOPS_EMULATION_UNARY(Abs, ABSOLUTE)
POPOPS_EMULATION_UNARY(Asin, ASIN)
POPOPS_EMULATION_UNARY(BitwiseNot, BITWISE_NOT)
POPOPS_EMULATION_UNARY(Cbrt, CBRT)
POPOPS_EMULATION_UNARY(Ceil, CEIL)
POPOPS_EMULATION_UNARY(Cos, COS)
POPOPS_EMULATION_UNARY(Erf, ERF)
POPOPS_EMULATION_UNARY(Exp, EXPONENT)
POPOPS_EMULATION_UNARY(Expm1, EXPONENT_MINUS_ONE)
POPOPS_EMULATION_UNARY(Exp2, EXPONENT2)
POPOPS_EMULATION_UNARY(Floor, FLOOR)
POPOPS_EMULATION_UNARY(GeluErf, GELU_ERF)
POPOPS_EMULATION_UNARY(Inv, INVERSE)
POPOPS_EMULATION_UNARY(IsFinite, IS_FINITE)
POPOPS_EMULATION_UNARY(IsInf, IS_INF)
POPOPS_EMULATION_UNARY(IsNaN, IS_NAN)
POPOPS_EMULATION_UNARY(Log, LOGARITHM)
POPOPS_EMULATION_UNARY(Log1p, LOGARITHM_ONE_PLUS)
POPOPS_EMULATION_UNARY(Not, LOGICAL_NOT)
POPOPS_EMULATION_UNARY(Neg, NEGATE)
POPOPS_EMULATION_UNARY(NearbyInt, NEARBY_INT)
POPOPS_EMULATION_UNARY(Signum, SIGNUM)
POPOPS_EMULATION_UNARY(Sin, SIN)
POPOPS_EMULATION_UNARY(Tan, TAN)
POPOPS_EMULATION_UNARY(Tanh, TANH)
POPOPS_EMULATION_UNARY(Round, ROUND)
POPOPS_EMULATION_UNARY(Trunc, TRUNC)
POPOPS_EMULATION_UNARY(Sqrt, SQRT)
POPOPS_EMULATION_UNARY(Square, SQUARE)
POPOPS_EMULATION_UNARY(Sigmoid, SIGMOID)
POPOPS_EMULATION_UNARY(Rsqrt, RSQRT)
#undef POPOPS_EMULATION_UNARY

inline BitwiseNot operator~(const Expr &a) { return BitwiseNot(a); }
inline Not operator!(const Expr &a) { return Not(a); }
inline Neg operator-(const Expr &a) { return Neg(a); }

#define POPOPS_EMULATION_BINARY(Name, OP)                                                                              \
  class Name : public BinaryOp {                                                                                       \
  public:                                                                                                              \
    Name(const Expr &a, const Expr &b) : BinaryOp(BinaryOpType::OP, a, b) {}                                           \
  };
#define POPOPS_EMULATION_BINARY_SYMBOL(Name, OP, SYMBOL)                                                               \
  POPOPS_EMULATION_BINARY(Name, OP)                                                                                    \
  inline Name operator SYMBOL(const Expr &a, const Expr &b) { return Name(a, b); }                                     \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  Name operator SYMBOL(const Expr &a, const T &b) {                                                                    \
    return Name(a, Const(b));                                                                                          \
  }                                                                                                                    \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  Name operator SYMBOL(const T &a, const Expr &b) {                                                                    \
    return Name(Const(a), b);                                                                                          \
  }
POPOPS_EMULATION_BINARY_SYMBOL(Add, ADD, +)
POPOPS_EMULATION_BINARY(Atan2, ATAN2)
POPOPS_EMULATION_BINARY_SYMBOL(BitwiseAnd, BITWISE_AND, &)
POPOPS_EMULATION_BINARY_SYMBOL(BitwiseOr, BITWISE_OR, |)
POPOPS_EMULATION_BINARY_SYMBOL(BitwiseXor, BITWISE_XOR, ^)
POPOPS_EMULATION_BINARY(BitwiseXnor, BITWISE_XNOR)
POPOPS_EMULATION_BINARY_SYMBOL(Divide, DIVIDE, /)
POPOPS_EMULATION_BINARY_SYMBOL(Equal, EQUAL, ==)
POPOPS_EMULATION_BINARY_SYMBOL(Gte, GREATER_THAN_EQUAL, >=)
POPOPS_EMULATION_BINARY_SYMBOL(Gt, GREATER_THAN, >)
POPOPS_EMULATION_BINARY_SYMBOL(Lte, LESS_THAN_EQUAL, <=)
POPOPS_EMULATION_BINARY_SYMBOL(And, LOGICAL_AND, &&)
POPOPS_EMULATION_BINARY_SYMBOL(Or, LOGICAL_OR, ||)
POPOPS_EMULATION_BINARY_SYMBOL(Lt, LESS_THAN, <)
POPOPS_EMULATION_BINARY(InvStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
POPOPS_EMULATION_BINARY(Max, MAXIMUM)
POPOPS_EMULATION_BINARY(Min, MINIMUM)
POPOPS_EMULATION_BINARY_SYMBOL(Mul, MULTIPLY, *)
POPOPS_EMULATION_BINARY_SYMBOL(NotEqual, NOT_EQUAL, !=)
POPOPS_EMULATION_BINARY(Pow, POWER)
POPOPS_EMULATION_BINARY_SYMBOL(Rem, REMAINDER, %)
POPOPS_EMULATION_BINARY_SYMBOL(Shl, SHIFT_LEFT, <<)
POPOPS_EMULATION_BINARY_SYMBOL(Shr, SHIFT_RIGHT, >>)
POPOPS_EMULATION_BINARY(ShrSE, SHIFT_RIGHT_SIGN_EXTEND)
POPOPS_EMULATION_BINARY_SYMBOL(Sub, SUBTRACT, -)
POPOPS_EMULATION_BINARY(VarianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef POPOPS_EMULATION_BINARY_SYMBOL
#undef POPOPS_EMULATION_BINARY

} // namespace expr
} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/expr_impl.hpp>
#endif
#endif
