#include "cases.hpp"
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <random>

using namespace poplar;
using cases::Model;
using poputil::poplibs_error;
using Sizes = std::vector<std::size_t>;

static std::vector<float> counting(std::size_t n, float first = 1) {
  std::vector<float> values;
  for (std::size_t i = 0; i != n; ++i)
    values.push_back(first + static_cast<float>(i));
  return values;
}

CASE(matrix_products) {
  Model m;
  const Tensor a = m.floats({2, 3}, counting(6)), b = m.floats({3, 2}, counting(6));
  const Tensor y = poplin::matMul(m.graph, a, b, m.prog);
  SAME(m.read(y), {22, 28, 49, 64});
  Model n;
  const Tensor c = n.floats({2, 3}, counting(6));
  SAME(n.read(poplin::matMul(n.graph, c, c.transpose(), n.prog)), {14, 32, 32, 77});
  Model k;
  const Tensor g = k.halves({2, 1, 2}, {1, 2, 3, 4}), h = k.halves({2, 2, 1}, {1, 1, 10, 10});
  const Tensor z = poplin::matMulGrouped(k.graph, g, h, k.prog, FLOAT);
  CHECK(z.shape() == Sizes({2, 1, 1}) && z.elementType() == FLOAT);
  SAME(k.read(z), {3, 70});
}

CASE(empty_products) {
  Model m;
  const Tensor y = poplin::matMul(m.graph, m.floats({2, 0}, {}), m.floats({0, 2}, {}), m.prog);
  SAME(m.read(y), {0, 0, 0, 0});
  CHECK(poplin::matMul(m.graph, m.floats({0, 3}, {}), m.floats({3, 2}, counting(6)), m.prog).numElements() == 0);
}

CASE(products_in_half_are_summed_in_float) {
  Model m;
  const Tensor a = m.halves({1, 4096}, std::vector<float>(4096, 1)), b = a.transpose();
  SAME(m.read(poplin::matMul(m.graph, a, b, m.prog)), {4096});
}

CASE(products_that_are_refused) {
  Model m;
  const Tensor a = m.floats({2, 3}, counting(6)), i = m.ints({3, 2}, {1, 2, 3, 4, 5, 6});
  REFUSED(poplibs_error, "does not match", poplin::matMul(m.graph, a, a, m.prog));
  REFUSED(poplibs_error, "not a matrix", poplin::matMul(m.graph, a, a[0], m.prog));
  REFUSED(poplibs_error, "type int", poplin::matMul(m.graph, i.transpose(), i, m.prog));
  REFUSED(poplibs_error, "Group dimensions",
          poplin::matMulGrouped(m.graph, a.expand({0}), m.variable(FLOAT, {2, 3, 1}), m.prog, FLOAT));
  REFUSED(invalid_option, "no option",
          poplin::matMul(m.graph, a, a.transpose(), m.prog, FLOAT, {}, {{"x", "y"}}));
  REFUSED(poplibs_error, "types float and half",
          poplin::matMul(m.graph, a, m.halves({3, 1}, {1, 2, 3}), m.prog));
}


/// A field or kernel after its transform, from the definition.
static std::vector<float> transformed(const std::vector<float> &x, const poplin::ConvParams::InputTransform &t) {
  std::vector<float> out(t.paddingLower[0], 0.0f);
  const std::size_t end = x.size() - t.truncationUpper[0];
  for (std::size_t i = t.truncationLower[0]; i < end; ++i) {
    if (i != t.truncationLower[0])
      out.insert(out.end(), t.dilation[0] - 1, 0.0f);
    out.push_back(x[i]);
  }
  out.insert(out.end(), t.paddingUpper[0], 0.0f);
  return t.flip[0] ? std::vector<float>(out.rbegin(), out.rend()) : out;
}

CASE(random_convolutions_of_one_dimension_agree_with_the_definition) {
  std::mt19937 random(3);
  const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  int made = 0;
  while (made != 60) {
    const std::size_t batch = 1 + pick(2), ci = 1 + pick(2), co = 1 + pick(2), groups = 1 + pick(2);
    poplin::ConvParams p(FLOAT, batch, {4 + pick(4)}, {1 + pick(3)}, ci, co, groups);
    for (poplin::ConvParams::InputTransform *t : {&p.inputTransform, &p.kernelTransform})
      *t = {{pick(2)}, {pick(2)}, {1 + pick(2)}, {pick(3)}, {pick(3)}, {pick(2) != 0}};
    p.outputTransform = {{pick(2)}, {pick(2)}, {1 + pick(2)}, {pick(2)}, {pick(2)}};
    try {
      p.validate();
    } catch (const poplibs_error &) {
      continue; // Such sizes don't go together.
    }
    ++made;
    Model m;
    const std::vector<float> x = counting(batch * groups * ci * p.inputFieldShape[0]),
                             w = counting(groups * co * ci * p.kernelShape[0], -3);
    const Tensor in = m.floats({batch, groups * ci, p.inputFieldShape[0]}, x, "in");
    const Tensor weights = m.floats({groups, co, ci, p.kernelShape[0]}, w, "w");
    std::vector<float> expected;
    for (std::size_t n = 0; n != batch; ++n)
      for (std::size_t g = 0; g != groups; ++g)
        for (std::size_t c = 0; c != co; ++c) {
          std::vector<float> sum;
          for (std::size_t i = 0; i != ci; ++i) {
            const std::size_t f = p.inputFieldShape[0], k = p.kernelShape[0];
            const auto from = x.begin() + static_cast<std::ptrdiff_t>(((n * groups + g) * ci + i) * f);
            const auto tap = w.begin() + static_cast<std::ptrdiff_t>(((g * co + c) * ci + i) * k);
            const auto field = transformed({from, from + static_cast<std::ptrdiff_t>(f)}, p.inputTransform);
            const auto kernel = transformed({tap, tap + static_cast<std::ptrdiff_t>(k)}, p.kernelTransform);
            sum.resize(field.size() + 1 - kernel.size(), 0.0f);
            for (std::size_t o = 0; o != sum.size(); ++o)
              for (std::size_t j = 0; j != kernel.size(); ++j)
                sum[o] += field[o + j] * kernel[j];
          }
          const auto &t = p.outputTransform;
          expected.insert(expected.end(), t.paddingLower[0], 0.0f);
          for (std::size_t o = t.truncationLower[0]; o < sum.size() - t.truncationUpper[0]; o += t.stride[0])
            expected.push_back(sum[o]);
          expected.insert(expected.end(), t.paddingUpper[0], 0.0f);
        }
    SAME(m.read(poplin::convolution(m.graph, in, weights, p, false, m.prog)), expected);
  }
}

CASE(convolutions_of_two_dimensions_and_their_backward_weights) {
  Model m;
  const poplin::ConvParams p(FLOAT, 1, {3, 3}, {2, 2}, 1, 1, 1);
  const Tensor in = m.floats({1, 1, 3, 3}, counting(9)), w = m.floats({1, 1, 1, 2, 2}, {1, 2, 3, 4}, "w");
  const Tensor y = poplin::convolution(m.graph, in, w, p, false, m.prog);
  CHECK(y.shape() == Sizes({1, 1, 2, 2}));
  SAME(m.read(y), {37, 47, 67, 77});
  Model n;
  const Tensor in2 = n.floats({1, 1, 3, 3}, counting(9)), v = n.floats({1, 1, 1, 2, 2}, {1, 2, 3, 4}, "w");
  SAME(n.read(poplin::convolution(n.graph, in2, v, p, true, n.prog)), {23, 33, 53, 63});
  Model k;
  const Tensor u = k.floats({1, 2, 1, 2}, {1, 2, 3, 4}, "w"), turned = k.variable(FLOAT, {1, 1, 2, 2});
  poplin::weightsTransposeChansFlipXY(k.graph, u, turned, k.prog);
  SAME(k.read(turned), {2, 1, 4, 3});
}

CASE(convolutions_that_are_refused) {
  Model m;
  poplin::ConvParams p(FLOAT, 1, {3}, {2}, 1, 1, 1);
  const Tensor in = m.floats({1, 1, 3}, {1, 2, 3}), w = m.floats({1, 1, 2}, {1, 2}, "w");
  REFUSED(poplibs_error, "weights has shape [1,1,2]", poplin::convolution(m.graph, in, w, p, false, m.prog));
  p.outputTransform.stride[0] = 0;
  REFUSED(poplibs_error, "Stride must be non zero", poplin::createInput(m.graph, p));
  p = poplin::ConvParams(FLOAT, 1, {3}, {5}, 1, 1, 1);
  REFUSED(poplibs_error, "less than the transformed kernel size (5)", poplin::createInput(m.graph, p));
  p = poplin::ConvParams(FLOAT, 1, {3}, {2, 2}, 1, 1, 1);
  REFUSED(poplibs_error, "(2) does not match", poplin::createWeights(m.graph, p));
}
