#include "cases.hpp"
#include <limits>
#include <popops/Reduce.hpp>

using namespace poplar;
using cases::Model;
using popops::Operation;
using poputil::poplibs_error;

static std::vector<float> reduced(Operation op, const std::vector<std::size_t> &dims, std::vector<std::size_t> shape,
                                  std::vector<float> values) {
  Model m;
  return m.read(popops::reduce(m.graph, m.floats(shape, values), dims, op, m.prog));
}

CASE(each_operation) {
  const std::vector<float> x{1, -2, 3, 4, 5, -6};
  SAME(reduced(Operation::ADD, {1}, {2, 3}, x), {2, 3});
  SAME(reduced(Operation::ADD, {0}, {2, 3}, x), {5, 3, -3});
  SAME(reduced(Operation::MUL, {1}, {2, 3}, x), {-6, -120});
  SAME(reduced(Operation::MIN, {0, 1}, {2, 3}, x), {-6});
  SAME(reduced(Operation::MAX, {1, 0}, {2, 3}, x), {5});
  SAME(reduced(Operation::SQUARE_ADD, {1}, {2, 3}, x), {14, 77});
  SAME(reduced(Operation::ADD, {}, {2, 3}, x), x);
  SAME(reduced(Operation::ADD, {1}, {1, 2, 1}, {1, 2}), {3});
  const float log_sum = reduced(Operation::LOG_ADD, {0}, {2}, {0, 0})[0];
  CHECK(std::fabs(log_sum - std::log(2.0f)) < 1e-6f);
}

CASE(nothing_reduces_to_the_neutral_element) {
  const float infinity = std::numeric_limits<float>::infinity();
  SAME(reduced(Operation::ADD, {1}, {2, 0}, {}), {0, 0});
  SAME(reduced(Operation::MUL, {1}, {1, 0}, {}), {1});
  SAME(reduced(Operation::MAX, {0}, {0, 1}, {}), {-infinity});
  SAME(reduced(Operation::MIN, {0}, {0, 1}, {}), {infinity});
  Model m;
  CHECK(popops::reduce(m.graph, m.floats({0, 3}, {}), {1}, Operation::ADD, m.prog).numElements() == 0);
}

CASE(half_is_summed_in_float_and_rounded_once) {
  Model m;
  const Tensor x = m.halves({4096}, std::vector<float>(4096, 1.0f));
  const Tensor h = popops::reduce(m.graph, x, {0}, Operation::ADD, m.prog);
  const Tensor f = popops::reduce(m.graph, x, FLOAT, {0}, Operation::ADD, m.prog);
  CHECK(h.elementType() == HALF && f.elementType() == FLOAT);
  const Tensor both = m.variable(FLOAT, {1});
  m.prog.add(program::Copy(f.expand({0}), both));
  SAME(m.read(h), {4096}); // A sum in half would stop at 2048.
}

CASE(a_long_sum_is_not_a_chain) {
  Model m;
  const std::size_t n = 1 << 16;
  const Tensor x = m.floats({n}, std::vector<float>(n, 0.1f));
  const float sum = m.read(popops::reduce(m.graph, x, {0}, Operation::ADD, m.prog))[0];
  CHECK(std::fabs(sum - 6553.6f) < 0.01f);
}

CASE(integers_and_bools) {
  Model m;
  const Tensor i = m.ints({3}, {2147483647, 1, 5});
  const Tensor b = m.input(BOOL, {3}, std::vector<unsigned char>{1, 0, 1});
  const Tensor sum = popops::reduce(m.graph, i, {0}, Operation::ADD, m.prog);
  CHECK(m.values<int>(sum) == std::vector<int>{-2147483643});
  Model n;
  const Tensor c = n.input(BOOL, {3}, std::vector<unsigned char>{1, 0, 1});
  const Tensor any = popops::reduce(n.graph, c, {0}, Operation::LOGICAL_OR, n.prog);
  const Tensor every = popops::reduce(n.graph, c, {0}, Operation::LOGICAL_AND, n.prog);
  SAME(n.read(concat(any.expand({0}), every.expand({0}))), {1, 0});
  REFUSED(poplibs_error, "ReduceADD has type bool", popops::reduce(m.graph, b, {0}, Operation::ADD, m.prog));
  REFUSED(poplibs_error, "ReduceLOGICAL_OR has type int",
          popops::reduce(m.graph, i, {0}, Operation::LOGICAL_OR, m.prog));
  REFUSED(poplibs_error, "ReduceADD has type int and output type float",
          popops::reduce(m.graph, i, FLOAT, {0}, Operation::ADD, m.prog));
  REFUSED(poplibs_error, "ReduceMAX has type half and output type float",
          popops::reduce(m.graph, m.halves({1}, {1}), FLOAT, {0}, Operation::MAX, m.prog));
}

CASE(scale_and_update) {
  Model m;
  const Tensor x = m.floats({2, 2}, {1, 2, 3, 4}), out = m.floats({2}, {10, 20}, "out");
  const Tensor scale = m.floats({}, {0.5f}, "scale");
  popops::reduceWithOutput(m.graph, x, out, {1}, {Operation::ADD, true, scale}, m.prog);
  SAME(m.read(out), {11.5f, 23.5f});
  REFUSED(poplibs_error, "update using reduce", popops::reduce(m.graph, x, {1}, {Operation::ADD, true}, m.prog));
  REFUSED(poplibs_error, "Update can only",
          popops::reduceWithOutput(m.graph, x, out, {1}, {Operation::MAX, true}, m.prog));
  REFUSED(poplibs_error, "Scale must be", popops::reduceWithOutput(m.graph, x, out, {1},
                                                                  {Operation::ADD, false, m.halves({}, {1})}, m.prog));
}

CASE(several_at_once) {
  Model m;
  const Tensor x = m.floats({2, 2}, {1, 2, 3, 4});
  std::vector<Tensor> out;
  popops::reduceMany(m.graph, {{x, {0}, Operation::ADD}, {x, {0, 1}, Operation::MAX}}, out, m.prog);
  CHECK(out.size() == 2 && out[1].rank() == 0);
  SAME(m.read(concat(out[0], out[1].expand({0}))), {4, 6, 4});
}

CASE(what_is_refused) {
  Model m;
  const Tensor x = m.floats({2, 3}, {1, 2, 3, 4, 5, 6});
  REFUSED(poplibs_error, "Invalid dimension 2 for tensor rank 2",
          popops::reduce(m.graph, x, {2}, Operation::ADD, m.prog));
  REFUSED(poplibs_error, "Dimension mismatch in output",
          popops::reduceWithOutput(m.graph, x, m.variable(FLOAT, {2}), {0}, Operation::ADD, m.prog));
  REFUSED(graph_connection_error, "meets the input",
          popops::reduceWithOutput(m.graph, x, x[0].slice(0, 2), {1}, Operation::ADD, m.prog));
  REFUSED(invalid_option, "no option", popops::reduce(m.graph, x, {0}, Operation::ADD, m.prog, {}, {{"x", "y"}}));
  const Tensor unmapped = m.graph.addVariable(FLOAT, {2}, "nowhere");
  popops::reduce(m.graph, unmapped, {0}, Operation::ADD, m.prog);
  REFUSED(invalid_tile_mapping, "element 0 of 'nowhere'", m.run());
}
