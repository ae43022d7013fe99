#ifndef popops_ElementWise_hpp
#define popops_ElementWise_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popops/Expr.hpp>
#include <vector>

namespace popops {

using Tensors = std::vector<poplar::Tensor>;

/// The expression of the tensors' elements, in a new variable; the tensors are broadcast by NumPy's rules.
POPLAR_EMULATION_FUNCTION poplar::Tensor map(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                             poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext = {},
                                             const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION Tensors map(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const Tensors &ts,
                                      poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                                      const poplar::OptionFlags &options = {});
/// Writes the result to the first tensor.
POPLAR_EMULATION_FUNCTION void mapInPlace(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                          poplar::program::Sequence &prog,
                                          const poplar::DebugContext &debugContext = {},
                                          const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION void mapInPlace(poplar::Graph &graph, const std::vector<expr::Any> &exprs,
                                          const Tensors &ts, poplar::program::Sequence &prog,
                                          const poplar::DebugContext &debugContext = {},
                                          const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION void mapWithOutput(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                             const poplar::Tensor &out, poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext = {},
                                             const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION void mapWithOutput(poplar::Graph &graph, const std::vector<expr::Any> &exprs,
                                             const Tensors &ts, const Tensors &outs, poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext = {},
                                             const poplar::OptionFlags &options = {});

inline poplar::Tensor map(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &t,
                          poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                          const poplar::OptionFlags &options = {}) {
  return map(graph, expr::UnaryOp(op, expr::_1), Tensors{t}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::BinaryOp(op, expr::_1, expr::_2), Tensors{a, b}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &c, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), Tensors{a, b, c}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &t,
                       poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                       const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::UnaryOp(op, expr::_1), Tensors{t}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a, const poplar::Tensor &b,
                       poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                       const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::BinaryOp(op, expr::_1, expr::_2), Tensors{a, b}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a, const poplar::Tensor &b,
                       const poplar::Tensor &c, poplar::program::Sequence &prog,
                       const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), Tensors{a, b, c}, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &in,
                          const poplar::Tensor &out, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::UnaryOp(op, expr::_1), Tensors{in}, out, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &out, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::BinaryOp(op, expr::_1, expr::_2), Tensors{a, b}, out, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &c, const poplar::Tensor &out,
                          poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                          const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), Tensors{a, b, c}, out, prog, debugContext,
                options);
}

// The named functions: of each there is one that gives a new tensor, one in place and one with an output.
#define POPOPS_EMULATION_LAST                                                                                          \
  poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},                                      \
      const poplar::OptionFlags &options = {}
#define POPOPS_EMULATION_UNARY(name, OP)                                                                               \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, POPOPS_EMULATION_LAST) {                   \
    return map(graph, expr::UnaryOpType::OP, A, prog, debugContext, options);                                          \
  }                                                                                                                    \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, POPOPS_EMULATION_LAST) {                    \
    mapInPlace(graph, expr::UnaryOpType::OP, A, prog, debugContext, options);                                          \
  }                                                                                                                    \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &out,               \
                               POPOPS_EMULATION_LAST) {                                                                \
    mapWithOutput(graph, expr::UnaryOpType::OP, A, out, prog, debugContext, options);                                  \
  }
POPOPS_EMULATION_UNARY(abs, ABSOLUTE)
POPOPS_EMULATION_UNARY(asin, ASIN)
POPOPS_EMULATION_UNARY(bitwiseNot, BITWISE_NOT)
POPOPS_EMULATION_UNARY(cbrt, CBRT)
POPOPS_EMULATION_UNARY(ceil, CEIL)
POPOPS_EMULATION_UNARY(cos, COS)
POPOPS_EMULATION_UNARY(erf, ERF)
POPOPS_EMULATION_UNARY(exp, EXPONENT)
POPOPS_EMULATION_UNARY(floor, FLOOR)
POPOPS_EMULATION_UNARY(geluErf, GELU_ERF)
POPOPS_EMULATION_UNARY(inv, INVERSE)
POPOPS_EMULATION_UNARY(log, LOGARITHM)
POPOPS_EMULATION_UNARY(logicalNot, LOGICAL_NOT)
POPOPS_EMULATION_UNARY(nearbyint, NEARBY_INT)
POPOPS_EMULATION_UNARY(neg, NEGATE)
POPOPS_EMULATION_UNARY(popcount, POPCOUNT)
POPOPS_EMULATION_UNARY(round, ROUND)
POPOPS_EMULATION_UNARY(rsqrt, RSQRT)
POPOPS_EMULATION_UNARY(sigmoid, SIGMOID)
POPOPS_EMULATION_UNARY(signum, SIGNUM)
POPOPS_EMULATION_UNARY(sin, SIN)
POPOPS_EMULATION_UNARY(sqrt, SQRT)
POPOPS_EMULATION_UNARY(square, SQUARE)
POPOPS_EMULATION_UNARY(tan, TAN)
POPOPS_EMULATION_UNARY(tanh, TANH)
#undef POPOPS_EMULATION_UNARY
inline poplar::Tensor isFinite(poplar::Graph &graph, const poplar::Tensor &A, POPOPS_EMULATION_LAST) {
  return map(graph, expr::UnaryOpType::IS_FINITE, A, prog, debugContext, options);
}

#define POPOPS_EMULATION_BINARY(name, OP)                                                                              \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                   \
                             POPOPS_EMULATION_LAST) {                                                                  \
    return map(graph, expr::BinaryOpType::OP, A, B, prog, debugContext, options);                                      \
  }                                                                                                                    \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, T b, POPOPS_EMULATION_LAST) {                     \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::_1, expr::Const(b)), Tensors{A}, prog,              \
               debugContext, options);                                                                                 \
  }                                                                                                                    \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  poplar::Tensor name(poplar::Graph &graph, T a, const poplar::Tensor &B, POPOPS_EMULATION_LAST) {                     \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::Const(a), expr::_1), Tensors{B}, prog,              \
               debugContext, options);                                                                                 \
  }                                                                                                                    \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                    \
                            POPOPS_EMULATION_LAST) {                                                                   \
    mapInPlace(graph, expr::BinaryOpType::OP, A, B, prog, debugContext, options);                                      \
  }                                                                                                                    \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, T b, POPOPS_EMULATION_LAST) {                      \
    mapInPlace(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::_1, expr::Const(b)), Tensors{A}, prog,              \
               debugContext, options);                                                                                 \
  }                                                                                                                    \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                 \
                               const poplar::Tensor &out, POPOPS_EMULATION_LAST) {                                     \
    mapWithOutput(graph, expr::BinaryOpType::OP, A, B, out, prog, debugContext, options);                              \
  }                                                                                                                    \
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>                              \
  void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, T b, const poplar::Tensor &out,                 \
                        POPOPS_EMULATION_LAST) {                                                                       \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::OP, expr::_1, expr::Const(b)), Tensors{A}, out, prog,      \
                  debugContext, options);                                                                              \
  }
POPOPS_EMULATION_BINARY(add, ADD)
POPOPS_EMULATION_BINARY(bitwiseAnd, BITWISE_AND)
POPOPS_EMULATION_BINARY(bitwiseOr, BITWISE_OR)
POPOPS_EMULATION_BINARY(bitwiseXnor, BITWISE_XNOR)
POPOPS_EMULATION_BINARY(bitwiseXor, BITWISE_XOR)
POPOPS_EMULATION_BINARY(div, DIVIDE)
POPOPS_EMULATION_BINARY(eq, EQUAL)
POPOPS_EMULATION_BINARY(gt, GREATER_THAN)
POPOPS_EMULATION_BINARY(gteq, GREATER_THAN_EQUAL)
POPOPS_EMULATION_BINARY(logicalAnd, LOGICAL_AND)
POPOPS_EMULATION_BINARY(logicalOr, LOGICAL_OR)
POPOPS_EMULATION_BINARY(lt, LESS_THAN)
POPOPS_EMULATION_BINARY(lteq, LESS_THAN_EQUAL)
POPOPS_EMULATION_BINARY(max, MAXIMUM)
POPOPS_EMULATION_BINARY(min, MINIMUM)
POPOPS_EMULATION_BINARY(mul, MULTIPLY)
POPOPS_EMULATION_BINARY(neq, NOT_EQUAL)
POPOPS_EMULATION_BINARY(pow, POWER)
POPOPS_EMULATION_BINARY(rem, REMAINDER)
POPOPS_EMULATION_BINARY(shiftLeft, SHIFT_LEFT)
POPOPS_EMULATION_BINARY(shiftRight, SHIFT_RIGHT)
POPOPS_EMULATION_BINARY(sub, SUBTRACT)
#undef POPOPS_EMULATION_BINARY

#define POPOPS_EMULATION_TERNARY(name, OP)                                                                             \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                   \
                             const poplar::Tensor &C, POPOPS_EMULATION_LAST) {                                         \
    return map(graph, expr::TernaryOpType::OP, A, B, C, prog, debugContext, options);                                  \
  }                                                                                                                    \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                    \
                            const poplar::Tensor &C, POPOPS_EMULATION_LAST) {                                          \
    mapInPlace(graph, expr::TernaryOpType::OP, A, B, C, prog, debugContext, options);                                  \
  }                                                                                                                    \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,                 \
                               const poplar::Tensor &C, const poplar::Tensor &out, POPOPS_EMULATION_LAST) {            \
    mapWithOutput(graph, expr::TernaryOpType::OP, A, B, C, out, prog, debugContext, options);                          \
  }
POPOPS_EMULATION_TERNARY(clamp, CLAMP)
POPOPS_EMULATION_TERNARY(select, SELECT)
#undef POPOPS_EMULATION_TERNARY
#undef POPOPS_EMULATION_LAST

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/map_impl.hpp>
#endif
#endif
