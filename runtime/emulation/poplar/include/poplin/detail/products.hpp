#ifndef poplin_detail_products_hpp
#define poplin_detail_products_hpp

#include <poplar/Program.hpp>
#include <popops/detail/eval.hpp>

namespace poplin {
namespace detail {

/// What matrix products and convolutions have in common: two operands of half or float, a sum in float, rounded once.
struct ProductNode : poplar::detail::Node {
  poplar::Tensor a, b, out;
  virtual void multiply(const float *x, const float *y, float *z) const = 0;
  virtual std::string user() const = 0;
  void check(poplar::detail::Checker &) const override {
    for (const poplar::Tensor *t : {&a, &b, &out})
      poplar::detail::requireMapped(*t, user());
  }
  std::vector<float> read(const poplar::detail::Runtime &runtime, const poplar::Tensor &t) const {
    runtime.requireWritten(t, user());
    std::vector<unsigned char> dense(t.numElements() * t.elementType().bytes());
    runtime.load(t, dense.data());
    std::vector<float> values(t.numElements());
    popops::detail::toReals(t.elementType(), dense.data(), values.data(), values.size());
    return values;
  }
  void run(poplar::detail::Runtime &runtime) const override {
    const std::vector<float> x = read(runtime, a), y = read(runtime, b);
    std::vector<float> z(out.numElements(), 0.0f);
    multiply(x.data(), y.data(), z.data());
    std::vector<unsigned char> dense(z.size() * out.elementType().bytes());
    popops::detail::fromReals(out.elementType(), z.data(), dense.data(), z.size());
    runtime.store(out, dense.data());
  }
};

POPLAR_EMULATION_FUNCTION void checkOperands(const ProductNode &node);
/// A new variable, spread over the tiles.
POPLAR_EMULATION_FUNCTION poplar::Tensor linear(poplar::Graph &graph, const poplar::Type &type,
                                                const std::vector<std::size_t> &shape,
                                                const poplar::DebugContext &debugContext);

} // namespace detail
} // namespace poplin

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplin/detail/products_impl.hpp>
#endif
#endif
