#ifndef popops_detail_eval_impl_hpp
#define popops_detail_eval_impl_hpp

#include <algorithm>
#include <popops/detail/expr_impl.hpp>
#include <popops/detail/scalar_impl.hpp>
#include <popops/detail/types_impl.hpp>

namespace popops {
namespace detail {

using poplar::Type;

POPLAR_EMULATION_FUNCTION void toReals(const Type &t, const void *from, float *to, std::size_t n) {
  if (t == poplar::FLOAT) {
    std::memcpy(to, from, 4 * n);
    return;
  }
  for (std::size_t i = 0; i != n; ++i) {
    std::uint16_t h;
    std::memcpy(&h, static_cast<const char *>(from) + 2 * i, 2);
    to[i] = poplar::detail::floatOfHalfBits(h);
  }
}

POPLAR_EMULATION_FUNCTION void fromReals(const Type &t, const float *from, void *to, std::size_t n) {
  if (t == poplar::FLOAT) {
    std::memcpy(to, from, 4 * n);
    return;
  }
  for (std::size_t i = 0; i != n; ++i) {
    const std::uint16_t h = poplar::detail::halfBits(from[i]);
    std::memcpy(static_cast<char *>(to) + 2 * i, &h, 2);
  }
}

POPLAR_EMULATION_FUNCTION void toIntegers(const Type &t, const void *from, std::int32_t *to, std::size_t n) {
  const unsigned bytes = t.bytes();
  for (std::size_t i = 0; i != n; ++i) {
    std::int32_t x = 0;
    std::memcpy(&x, static_cast<const char *>(from) + bytes * i, bytes);
    to[i] = narrow(x, t);
  }
}

POPLAR_EMULATION_FUNCTION void fromIntegers(const Type &t, const std::int32_t *from, void *to, std::size_t n) {
  const unsigned bytes = t.bytes();
  for (std::size_t i = 0; i != n; ++i) {
    const std::int32_t x = narrow(from[i], t);
    std::memcpy(static_cast<char *>(to) + bytes * i, &x, bytes);
  }
}

/// Emits the steps of an expression whose constants have types.
struct Compiler {
  const std::vector<Type> &types;
  const ConstTypes &constants;
  Steps out;
  std::size_t depth = 0;

  Step &push(Step::Kind kind, int op, const Type &in, const Type &result, std::size_t popped) {
    Step step;
    step.kind = kind;
    step.op = static_cast<unsigned char>(op);
    step.in = in;
    step.out = result;
    step.input = 0;
    step.integer = 0;
    depth += 1 - popped;
    out.depth = std::max(out.depth, depth);
    out.steps.push_back(step);
    return out.steps.back();
  }
  static void require(bool has, const char *op, const Type &t) {
    if (!has)
      throw poputil::poplibs_error(std::string("Op not supported: no codelet of ") + op + " has type " +
                                   t.toString().cloneAsString());
  }
  static void requireCast(const Type &t) {
    if (t == poplar::LONGLONG || t == poplar::UNSIGNED_LONGLONG || t == poplar::LONG || t == poplar::UNSIGNED_LONG)
      throw poputil::poplibs_error("the emulation doesn't compute with " + t.toString().cloneAsString());
  }

  Type emit(const expr::Expr &e) {
    switch (e.kind()) {
    case expr::Expr::Kind::Const: {
      const expr::Const &c = *e.getAs<expr::Const>();
      const Type type = constants.at(&e);
      Step &step = push(Step::Kind::Constant, 0, type, type, 0);
      const double value = c.getDataAsDouble();
      if (isReal(type)) {
        step.real = static_cast<float>(value);
        if (type == poplar::HALF)
          step.real = poplar::detail::roundToHalf(step.real);
      } else if (c.getTypeTraits().isFloat) {
        step.integer = narrow(toInteger(static_cast<float>(value), type), type);
      } else {
        step.integer = narrow(wrap(static_cast<std::uint32_t>(static_cast<std::int64_t>(value))), type);
      }
      return type;
    }
    case expr::Expr::Kind::PlaceHolder: {
      const unsigned number = e.getAs<expr::PlaceHolder>()->getIndex() - 1;
      requireCast(types[number]);
      push(Step::Kind::Load, 0, types[number], types[number], 0).input = number;
      if (std::find(out.inputs.begin(), out.inputs.end(), number) == out.inputs.end())
        out.inputs.push_back(number);
      return types[number];
    }
    case expr::Expr::Kind::Cast: {
      const Type from = emit(e.getAs<expr::Cast>()->getLHS()), to = e.getAs<expr::Cast>()->getRHSType();
      requireCast(to);
      if (from != to)
        push(Step::Kind::Cast, 0, from, to, 1);
      return to;
    }
    case expr::Expr::Kind::Unary: {
      const expr::UnaryOp &u = *e.getAs<expr::UnaryOp>();
      const Type type = emit(u.getArg());
      require(typesOf(u.getOpType()) & setOf(type), expr::nameOf(u.getOpType()), type);
      const Type result = givesBool(u.getOpType()) ? poplar::BOOL : type;
      push(Step::Kind::Unary, static_cast<int>(u.getOpType()), type, result, 1);
      return result;
    }
    case expr::Expr::Kind::Binary: {
      const expr::BinaryOp &b = *e.getAs<expr::BinaryOp>();
      const Type type = emit(b.getLHS());
      emit(b.getRHS());
      require(typesOf(b.getOpType()) & setOf(type), expr::nameOf(b.getOpType()), type);
      const Type result = givesBool(b.getOpType()) ? poplar::BOOL : type;
      push(Step::Kind::Binary, static_cast<int>(b.getOpType()), type, result, 2);
      return result;
    }
    case expr::Expr::Kind::Ternary:
      break;
    }
    const expr::TernaryOp &t = *e.getAs<expr::TernaryOp>();
    const Type type = emit(t.getArg0()), second = emit(t.getArg1()), third = emit(t.getArg2());
    const bool select = t.getOpType() == expr::TernaryOpType::SELECT;
    if (!select && (second != type || third != type))
      throw poputil::poplibs_error("Ternary Op must have same type for all input operands: " + onOneLine(e));
    require(setOf(type) & (OnReal | OnInt | (select ? OnUnsigned | OnBool : 0)), expr::nameOf(t.getOpType()), type);
    push(Step::Kind::Ternary, static_cast<int>(t.getOpType()), type, type, 3);
    return type;
  }
};

POPLAR_EMULATION_FUNCTION Steps compile(const expr::Expr &e, const std::vector<poplar::Tensor> &tensors,
                                        bool rewrite) {
  std::vector<Type> types;
  for (const poplar::Tensor &t : tensors)
    types.push_back(t.elementType());
  const expr::Part rewritten = rewrite ? optimise(e, types).expression : part(e);
  const ConstTypes constants = getConstType(*rewritten, types);
  Compiler compiler{types, constants, {}, 0};
  compiler.out.type = compiler.emit(*rewritten);
  return std::move(compiler.out);
}

/// As many elements as the machine computes at a time.
constexpr std::size_t blockSize = 256;

union Register {
  float real[blockSize];
  std::int32_t integer[blockSize];
};

static inline void castStep(const Step &s, Register &r, std::size_t n) {
  if (isReal(s.in) && !isReal(s.out)) {
    for (std::size_t i = 0; i != n; ++i)
      r.integer[i] = narrow(toInteger(r.real[i], s.out), s.out);
  } else if (!isReal(s.in) && isReal(s.out)) {
    for (std::size_t i = 0; i != n; ++i)
      r.real[i] = s.in == poplar::UNSIGNED_INT ? static_cast<float>(static_cast<std::uint32_t>(r.integer[i]))
                                               : static_cast<float>(r.integer[i]);
  } else if (!isReal(s.in)) {
    for (std::size_t i = 0; i != n; ++i)
      r.integer[i] = narrow(r.integer[i], s.out);
  }
}

static inline void unaryStep(const Step &s, Register &r, std::size_t n) {
  const auto op = static_cast<UnaryOpType>(s.op);
  if (isReal(s.in) && s.out == poplar::BOOL) {
    for (std::size_t i = 0; i != n; ++i)
      r.integer[i] = test(op, r.real[i]);
  } else if (isReal(s.in)) {
    for (std::size_t i = 0; i != n; ++i)
      r.real[i] = apply(op, r.real[i]);
  } else {
    for (std::size_t i = 0; i != n; ++i)
      r.integer[i] = narrow(apply(op, r.integer[i]), s.out);
  }
}

static inline void binaryStep(const Step &s, Register &a, const Register &b, std::size_t n) {
  const auto op = static_cast<BinaryOpType>(s.op);
  if (isReal(s.in)) {
    if (givesBool(op)) {
      for (std::size_t i = 0; i != n; ++i)
        a.integer[i] = compare(op, a.real[i], b.real[i]);
    } else {
      for (std::size_t i = 0; i != n; ++i)
        a.real[i] = apply(op, a.real[i], b.real[i]);
    }
  } else if (s.in == poplar::UNSIGNED_INT) {
    for (std::size_t i = 0; i != n; ++i)
      a.integer[i] = givesBool(op) ? compare(op, static_cast<std::uint32_t>(a.integer[i]),
                                             static_cast<std::uint32_t>(b.integer[i]))
                                   : applyUnsigned(op, a.integer[i], b.integer[i]);
  } else {
    for (std::size_t i = 0; i != n; ++i)
      a.integer[i] = narrow(givesBool(op) ? compare(op, a.integer[i], b.integer[i])
                                          : applySigned(op, a.integer[i], b.integer[i]),
                            s.out);
  }
}

static inline void ternaryStep(const Step &s, Register &a, const Register &b, const Register &c, std::size_t n) {
  if (static_cast<expr::TernaryOpType>(s.op) == expr::TernaryOpType::SELECT) {
    for (std::size_t i = 0; i != n; ++i)
      if (!c.integer[i])
        a.integer[i] = b.integer[i];
  } else if (isReal(s.in)) {
    for (std::size_t i = 0; i != n; ++i)
      a.real[i] = std::fmin(std::fmax(a.real[i], b.real[i]), c.real[i]);
  } else {
    for (std::size_t i = 0; i != n; ++i)
      a.integer[i] = std::min(std::max(a.integer[i], b.integer[i]), c.integer[i]);
  }
}

POPLAR_EMULATION_FUNCTION std::vector<unsigned char> evaluate(const Steps &program,
                                                              const std::vector<poplar::Tensor> &tensors,
                                                              std::size_t n, const poplar::detail::Runtime &runtime,
                                                              const std::string &user) {
  std::vector<std::vector<unsigned char>> dense(tensors.size());
  for (const unsigned input : program.inputs) {
    runtime.requireWritten(tensors[input], user);
    dense[input].resize(n * tensors[input].elementType().bytes());
    runtime.load(tensors[input], dense[input].data());
  }
  std::vector<unsigned char> result(n * program.type.bytes());
  std::vector<Register> stack(program.depth);
  for (std::size_t begin = 0; begin < n; begin += blockSize) {
    const std::size_t count = std::min(blockSize, n - begin);
    std::size_t top = 0; // the number of registers in use
    for (const Step &s : program.steps) {
      switch (s.kind) {
      case Step::Kind::Load: {
        const void *const from = dense[s.input].data() + begin * s.in.bytes();
        Register &r = stack[top++];
        if (isReal(s.in))
          toReals(s.in, from, r.real, count);
        else
          toIntegers(s.in, from, r.integer, count);
        continue;
      }
      case Step::Kind::Constant: // Of either kind: four bytes are four bytes.
        std::fill_n(stack[top++].integer, count, s.integer);
        continue;
      case Step::Kind::Cast:
        castStep(s, stack[top - 1], count);
        break;
      case Step::Kind::Unary:
        unaryStep(s, stack[top - 1], count);
        break;
      case Step::Kind::Binary:
        --top;
        binaryStep(s, stack[top - 1], stack[top], count);
        break;
      case Step::Kind::Ternary:
        top -= 2;
        ternaryStep(s, stack[top - 1], stack[top], stack[top + 1], count);
        break;
      }
      if (s.out == poplar::HALF)
        for (std::size_t i = 0; i != count; ++i)
          stack[top - 1].real[i] = poplar::detail::roundToHalf(stack[top - 1].real[i]);
    }
    void *const to = result.data() + begin * program.type.bytes();
    if (isReal(program.type))
      fromReals(program.type, stack[0].real, to, count);
    else
      fromIntegers(program.type, stack[0].integer, to, count);
  }
  return result;
}

} // namespace detail
} // namespace popops

#endif
