#include "cases.hpp"
#include <limits>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>

using namespace poplar;
using cases::Model;
using poputil::poplibs_error;
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::_3;

static const float infinity = std::numeric_limits<float>::infinity(), nan_ = std::nanf("");

/// The expression of one float tensor.
static std::vector<float> of(const pe::Expr &e, std::vector<float> x) {
  Model m;
  const Tensor t = m.floats({x.size()}, x);
  return m.read(popops::map(m.graph, e, {t}, m.prog));
}

static Tensor mapped(Model &m, const pe::Expr &e, const std::vector<Tensor> &ts) {
  return popops::map(m.graph, e, ts, m.prog);
}

CASE(constants_take_the_type_of_a_sibling) {
  Model m;
  const Tensor h = m.halves({2}, {1, 2}), i = m.ints({2}, {5, 7});
  CHECK(mapped(m, pe::Mul(pe::Const(0.5), _1), {h}).elementType() == HALF);
  CHECK(mapped(m, pe::Add(_1, pe::Const(2)), {h}).elementType() == HALF);
  CHECK(mapped(m, pe::Lt(_1, pe::Const(2)), {h}).elementType() == BOOL);
  const Tensor quotient = mapped(m, pe::Divide(_1, pe::Const(2.9f)), {i});
  CHECK(quotient.elementType() == INT);
  SAME(m.read(quotient), {2, 3}); // The constant is the int 2.
}

CASE(constants_without_a_typed_sibling_are_refused) {
  Model m;
  const Tensor h = m.halves({2}, {1, 2});
  const char *const unknown = "Could not infer";
  REFUSED(poplibs_error, unknown, mapped(m, pe::Add(pe::Const(1), pe::Const(2)), {h}));
  REFUSED(poplibs_error, unknown, mapped(m, pe::Const(1) < pe::Const(2), {h}));
  REFUSED(poplibs_error, unknown, mapped(m, pe::Cast(pe::Const(1.0f), HALF), {h}));
  REFUSED(poplibs_error, unknown, mapped(m, pe::IsNaN(pe::Const(1.0f)), {h}));
  REFUSED(poplibs_error, unknown, mapped(m, pe::Clamp(pe::Const(1.0f), _1, _1), {h}));
  REFUSED(poplibs_error, unknown, mapped(m, pe::Const(1.0f), {h}));
}

CASE(a_select_of_two_constants_has_the_type_they_are_written_with) {
  const auto guide = [](Model &m, const Tensor &x) {
    return mapped(m, pe::Mul(pe::Select(pe::Const(0.01f), pe::Const(1.0f), _1 < 0.0f), _1), {x});
  };
  Model m;
  SAME(m.read(guide(m, m.floats({2}, {-1, 3}))), {-0.01f, 3});
  Model n;
  const Tensor h = n.halves({2}, {-1, 3});
  REFUSED(poplibs_error, "Inferred type of lhs (float) does not match inferred type of rhs (half)", guide(n, h));
  const Tensor good = mapped(n, pe::Select(pe::Const(2.0f) * _1, _1, _1 < 0.0f), {h});
  CHECK(good.elementType() == HALF);
  SAME(n.read(good), {-2, 3});
  Model k;
  const Tensor wrapped = mapped(k, pe::Cast(pe::Select(pe::Const(0.5f), pe::Const(1.0f), _1 < 0.0f), HALF),
                                {k.halves({2}, {-1, 3})});
  SAME(k.read(wrapped), {0.5f, 1});
  Model l;
  REFUSED(poplibs_error, "lhs (float) does not match inferred type of rhs (int)",
          mapped(l, pe::Select(pe::Const(1.0f), pe::Const(1), _1 < 0.0f), {l.floats({1}, {1})}));
}

CASE(operands_of_two_types_are_refused) {
  Model m;
  const Tensor h = m.halves({1}, {1}), f = m.floats({1}, {1}), i = m.ints({1}, {1});
  REFUSED(poplibs_error, "(half) does not match inferred type of rhs (float)", mapped(m, _1 + _2, {h, f}));
  REFUSED(poplibs_error, "(bool) does not match inferred type of rhs (half)", mapped(m, (_1 < 0.0f) * _1, {h}));
  REFUSED(poplibs_error, "Must be bool", mapped(m, pe::Select(_1, _1, _2), {f, i}));
  REFUSED(poplibs_error, "Invalid placeholder _3", mapped(m, _1 + _3, {f, f}));
  REFUSED(poplibs_error, "same type", mapped(m, pe::Clamp(_1, _2, _2), {f, h}));
}

CASE(operations_have_the_types_that_have_codelets) {
  Model m;
  const Tensor f = m.floats({1}, {1}), i = m.ints({1}, {1}), b = mapped(m, _1 < 0.0f, {f});
  const Tensor u = m.variable(UNSIGNED_INT, {1}), s = m.variable(SHORT, {1});
  REFUSED(poplibs_error, "EXPONENT has type int", mapped(m, pe::Exp(_1), {i}));
  REFUSED(poplibs_error, "ADD has type bool", mapped(m, _1 + _1, {b}));
  REFUSED(poplibs_error, "ADD has type short", mapped(m, _1 + _1, {s}));
  REFUSED(poplibs_error, "NEGATE has type unsigned int", mapped(m, -_1, {u}));
  REFUSED(poplibs_error, "BITWISE_AND has type float", mapped(m, _1 & _1, {f}));
  REFUSED(poplibs_error, "LOGICAL_AND has type float", mapped(m, _1 && _1, {f}));
  REFUSED(poplibs_error, "CLAMP has type unsigned int", mapped(m, pe::Clamp(_1, _1, _1), {u}));
  REFUSED(poplibs_error, "long long", mapped(m, pe::Cast(_1, LONGLONG), {i}));
  CHECK(mapped(m, _1 && !_1, {b}).elementType() == BOOL && mapped(m, _1 == _1, {s}).elementType() == BOOL);
}

CASE(half_is_rounded_after_every_node_and_not_inside_a_cast) {
  // In half 2048 + 1 is 2048, so the sum is lost; in float it isn't.
  Model m;
  const Tensor a = m.halves({1}, {2048}, "a"), b = m.halves({1}, {1}, "b");
  const Tensor inHalf = mapped(m, (_1 + _2) - _1, {a, b});
  SAME(m.read(inHalf), {0});
  Model n;
  const Tensor c = n.halves({1}, {2048}, "a"), d = n.halves({1}, {1}, "b");
  const pe::Cast x(_1, FLOAT), y(_2, FLOAT);
  SAME(n.read(mapped(n, pe::Cast((x + y) - x, HALF), {c, d})), {1});
  Model k;
  SAME(k.read(mapped(k, _1 * pe::Const(0.1f), {k.halves({1}, {1})})), {float(half(0.1f))});
}

CASE(halves_round_to_nearest_even) {
  CHECK(float(half(65519.0f)) == 65504.0f && std::isinf(float(half(65520.0f))));
  CHECK(float(half(2049.0f)) == 2048.0f && float(half(2051.0f)) == 2052.0f);
  const float least = 1.0f / 16777216.0f;
  CHECK(float(half(least)) == least && float(half(least * 0.5f)) == 0.0f && float(half(least * 0.75f)) == least);
  CHECK(std::isnan(float(half(nan_))) && float(half(-infinity)) == -infinity);
  for (unsigned bits = 0; bits != 65536; ++bits) {
    const float value = detail::floatOfHalfBits(static_cast<std::uint16_t>(bits));
    CHECK(std::isnan(value) || detail::halfBits(value) == bits);
  }
}

CASE(functions_of_one_float) {
  SAME(of(pe::Round(_1), {0.5f, -0.5f, 2.5f}), {1, -1, 3});
  SAME(of(pe::NearbyInt(_1), {0.5f, 1.5f, 2.5f}), {0, 2, 2});
  SAME(of(pe::Trunc(_1), {1.7f, -1.7f}), {1, -1});
  SAME(of(pe::Floor(_1) + pe::Ceil(_1), {1.25f}), {3});
  SAME(of(pe::Signum(_1), {-3, 0, 5}), {-1, 0, 1});
  SAME(of(pe::UnaryOp(pe::UnaryOpType::RELU, _1), {-3, 5}), {0, 5});
  SAME(of(pe::Abs(_1) + pe::Square(_1), {-3}), {12});
  SAME(of(pe::Inv(_1), {4}), {0.25f});
  SAME(of(pe::Exp2(_1), {3}), {8});
  SAME(of(pe::Sqrt(_1) + pe::Rsqrt(_1), {4}), {2.5f});
  SAME(of(pe::IsFinite(_1), {1, infinity, nan_}), {1, 0, 0});
  SAME(of(pe::IsInf(_1), {1, -infinity, nan_}), {0, 1, 0});
  SAME(of(pe::IsNaN(_1), {1, -infinity, nan_}), {0, 0, 1});
  volatile float x = 0.3f; // Computed when it runs, as the map is.
  SAME(of(pe::Log1p(_1), {x}), {std::log1p(x)});
  SAME(of(pe::Expm1(_1), {x}), {std::expm1(x)});
  SAME(of(pe::Erf(_1), {x}), {std::erf(x)});
  SAME(of(pe::Tanh(_1), {x}), {std::tanh(x)});
  SAME(of(pe::Cbrt(_1), {27}), {3});
  SAME(of(pe::Asin(_1), {x}), {std::asin(x)});
}

CASE(functions_of_two_floats) {
  SAME(of(pe::Pow(_1, pe::Const(3.0f)), {2}), {8});
  SAME(of(pe::Rem(_1, pe::Const(3.0f)), {7, -7}), {1, -1});
  SAME(of(pe::Atan2(_1, pe::Const(1.0f)), {1}), {std::atan2(1.0f, 1.0f)});
  SAME(of(pe::Max(_1, pe::Const(2.0f)), {1, 3, nan_}), {2, 3, 2});
  SAME(of(pe::Min(_1, pe::Const(2.0f)), {1, 3, nan_}), {1, 2, 2});
  SAME(of(_1 == _1, {1, nan_}), {1, 0});
  SAME(of(_1 != _1, {1, nan_}), {0, 1});
  SAME(of(pe::Clamp(_1, pe::Const(0.0f), pe::Const(1.0f)), {-1, 0.5f, 2}), {0, 0.5f, 1});
  SAME(of(pe::VarianceToInvStdDev(_1, pe::Const(0.5f)), {3.5f}), {0.5f});
  SAME(of(pe::InvStdDevToVariance(_1, pe::Const(0.5f)), {0.5f}), {3.5f});
}

CASE(integers_wrap_at_32_bits) {
  const auto ints = [](const pe::Expr &e, std::vector<int> x) {
    Model m;
    return m.values<int>(mapped(m, e, {m.ints({x.size()}, x)}));
  };
  const int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  CHECK(ints(_1 + 1, {most}) == std::vector<int>{least});
  CHECK(ints(_1 * _1, {65536}) == std::vector<int>{0});
  CHECK(ints(-_1, {least}) == std::vector<int>{least});
  CHECK(ints(pe::Abs(_1), {least, -3}) == std::vector<int>({least, 3}));
  CHECK(ints(_1 / 2, {-7}) == std::vector<int>{-3});
  CHECK(ints(_1 % 2, {-7}) == std::vector<int>{-1});
  CHECK(ints(_1 / pe::Const(0), {7}).size() == 1);
  CHECK(ints(_1 / -1, {least}) == std::vector<int>{least});
  CHECK(ints(pe::Shr(_1, pe::Const(1)), {-2}) == std::vector<int>{most});
  CHECK(ints(pe::ShrSE(_1, pe::Const(1)), {-2}) == std::vector<int>{-1});
  CHECK(ints(pe::Pow(_1, pe::Const(5)), {-2}) == std::vector<int>{-32});
  CHECK(ints(~_1, {0}) == std::vector<int>{-1});
  Model m;
  const Tensor u = m.input(UNSIGNED_INT, {1}, std::vector<unsigned>{4000000000u});
  SAME(m.read(mapped(m, _1 > pe::Const(1u), {u})), {1});
}

CASE(casts) {
  Model m;
  const Tensor f = m.floats({5}, {-1.9f, 1.9f, 300, 3e9f, nan_});
  const Tensor i = popops::cast(m.graph, f, INT, m.prog);
  CHECK(m.values<int>(i) == std::vector<int>({-1, 1, 300, 2147483647, 0}));
  Model n;
  SAME(n.read(popops::cast(n.graph, n.floats({3}, {0, 0.5f, nan_}), BOOL, n.prog)), {0, 1, 1});
  Model k;
  const Tensor chars = popops::cast(k.graph, k.ints({2}, {300, -1}), UNSIGNED_CHAR, k.prog);
  SAME(k.read(popops::cast(k.graph, chars, FLOAT, k.prog)), {44, 255});
  Model l;
  const Tensor from = l.floats({1}, {1}), to = l.variable(HALF, {2});
  REFUSED(poplibs_error, "different shapes", popops::castWithOutput(l.graph, from, to, l.prog));
}

CASE(expressions_are_rewritten_as_the_library_does) {
  SAME(of(_1 + 0.0f, {-0.0f}), {-0.0f});
  CHECK(std::signbit(of(_1 + 0.0f, {-0.0f})[0])); // The addition isn't made.
  SAME(of(pe::Pow(_1, pe::Const(0.5f)), {-0.0f}), {-0.0f});
  SAME(of(pe::Select(_1, -_1, pe::Const(false)), {1}), {-1});
  REFUSED(poplibs_error, "Could not infer", of(pe::Select(_1, pe::Const(5.0f), pe::Const(false)), {1}));
  // The rewriting takes a product's type from its first operand, which here is a constant and says float.
  Model m;
  const Tensor h = m.halves({1}, {1});
  const auto sum = ((pe::Const(2.0f) * _1) - pe::Const(0.0f)) + _1;
  REFUSED(poplibs_error, "(float) does not match inferred type of rhs (half)", mapped(m, sum, {h}));
  const OptionFlags off{{"enableExpressionOptimizations", "false"}};
  CHECK(popops::map(m.graph, sum, {h}, m.prog, {}, off).elementType() == HALF);
  REFUSED(invalid_option, "no option", popops::map(m.graph, sum, {h}, m.prog, {}, {{"nonsense", "1"}}));
}

CASE(a_negation_of_a_negation_is_one) { SAME(of(pe::Neg(pe::Neg(_1)), {1}), {-1}); }

CASE(expressions_are_held_by_value) {
  pe::Any e = _1;
  for (int i = 0; i != 3; ++i)
    e = pe::Any(pe::Add(e, pe::Const(1.0f)));
  SAME(of(e, {0}), {3});
  CHECK(pe::deepEquals(pe::Add(_1, _2), _1 + _2) && !pe::deepEquals(_1 + _2, _2 + _1));
}

CASE(shapes_are_broadcast_as_numpy_does) {
  Model m;
  const Tensor a = m.floats({2, 1}, {10, 20}, "a"), b = m.floats({3}, {1, 2, 3}, "b");
  const Tensor sum = mapped(m, _1 + _2, {a, b});
  CHECK(sum.shape() == std::vector<std::size_t>({2, 3}));
  SAME(m.read(sum), {11, 12, 13, 21, 22, 23});
  Model n;
  const Tensor c = n.floats({2}, {1, 2}), d = n.floats({3}, {1, 2, 3});
  REFUSED(poplibs_error, "[2] and [3]", mapped(n, _1 + _2, {c, d}));
  CHECK(mapped(n, _1 * 2.0f, {n.variable(FLOAT, {0, 3})}).shape() == std::vector<std::size_t>({0, 3}));
}

CASE(in_place_and_with_output) {
  Model m;
  const Tensor x = m.floats({2}, {1, 2}), out = m.variable(FLOAT, {2}, "out");
  popops::mapInPlace(m.graph, _1 * 2.0f, {x}, m.prog);
  popops::mapWithOutput(m.graph, _1 + _1, {x}, out, m.prog);
  SAME(m.read(out), {4, 8});
  Model n;
  const Tensor y = n.floats({2, 2}, {1, 2, 3, 4}), row = n.floats({1, 2}, {1, 2});
  REFUSED(graph_connection_error, "at other places",
          popops::mapInPlace(n.graph, _1 + _2, {y, y.transpose()}, n.prog));
  REFUSED(poplibs_error, "shape [2,2]", popops::mapInPlace(n.graph, _1 + _2, {row, y}, n.prog));
  REFUSED(poplibs_error, "has type bool", popops::mapInPlace(n.graph, _1 < 0.0f, {y}, n.prog));
  REFUSED(graph_connection_error, "more than once",
          popops::mapInPlace(n.graph, _1 * 2.0f, {row.broadcast(2, 0)}, n.prog));
  const Tensor c = n.graph.addConstant(FLOAT, {2}, 1.0f, "c");
  n.graph.setTileMapping(c, 0);
  REFUSED(graph_connection_error, "constant: element 0 of 'c'", popops::mapInPlace(n.graph, _1 * 2.0f, {c}, n.prog));
}

CASE(several_outputs_are_computed_of_the_inputs_before) {
  Model m;
  const Tensor a = m.floats({1}, {1}, "a"), b = m.floats({1}, {2}, "b");
  popops::mapInPlace(m.graph, std::vector<pe::Any>{pe::Any(_2), pe::Any(_1)}, {a, b}, m.prog);
  SAME(m.read(concat(a, b)), {2, 1});
  const std::vector<pe::Any> three(3, pe::Any(_1));
  REFUSED(poplibs_error, "less or equal", popops::mapInPlace(m.graph, three, {a, b}, m.prog));
  REFUSED(poplibs_error, "Expected 3", popops::mapWithOutput(m.graph, three, {a}, {b}, m.prog));
}

CASE(named_functions) {
  Model m;
  const Tensor a = m.floats({2}, {1, 4}, "a"), b = m.floats({2}, {2, 2}, "b");
  Tensor t = popops::add(m.graph, a, b, m.prog);
  t = popops::mul(m.graph, t, 2.0f, m.prog);
  t = popops::sub(m.graph, 20.0f, t, m.prog);
  popops::maxInPlace(m.graph, t, 9.0f, m.prog);
  const Tensor s = popops::select(m.graph, t, b, popops::gt(m.graph, a, b, m.prog), m.prog);
  SAME(m.read(popops::neg(m.graph, s, m.prog)), {-2, -9});
}

CASE(fills) {
  Model m;
  const Tensor x = m.variable(HALF, {2, 2});
  popops::zero(m.graph, x, m.prog);
  popops::fill(m.graph, x[1], m.prog, 1.5f);
  SAME(m.read(x), {0, 0, 1.5f, 1.5f});
}

CASE(inputs_are_mapped_written_and_of_the_graph) {
  Model m;
  const Tensor unmapped = m.graph.addVariable(FLOAT, {2}, "nowhere");
  REFUSED(invalid_tile_mapping, "element 0 of 'nowhere' is on no tile", mapped(m, _1 + 1.0f, {unmapped}));
  const Tensor unwritten = m.variable(FLOAT, {2}, "unwritten");
  mapped(m, _1 + 1.0f, {unwritten});
  REFUSED(poplar_error, "reads element 0 of 'unwritten', which nothing has written", m.run());
  REFUSED(poplar_error, "invalid", mapped(m, _1 + 1.0f, {Tensor()}));
  Model n;
  const Tensor here = n.floats({2}, {1, 2}, "here");
  REFUSED(poplar_error, "'unwritten' belongs to another graph", mapped(n, _1 + _2, {here, unwritten}));
  REFUSED(poplar_error, "belongs to another graph", program::Copy(unwritten, here));
  REFUSED(poplar_error, "belongs to another graph", n.graph.setTileMapping(unwritten, 0));
}

CASE(linear_mappings_leave_no_element_and_fill_tiles_in_order) {
  for (const std::size_t n : {0, 1, 31, 32, 33, 1000, 4097}) {
    Model m(8);
    const Tensor t = m.graph.addVariable(FLOAT, {n}, "t");
    poputil::mapTensorLinearly(m.graph, t);
    std::size_t next = 0;
    for (const auto &regions : m.graph.getTileMapping(t)) {
      std::size_t here = 0;
      for (const Interval &region : regions) {
        CHECK(region.begin() == next);
        next = region.end();
        here += region.size();
      }
      CHECK(here == 0 || here >= 32 || n < 32);
    }
    CHECK(next == n);
  }
}
