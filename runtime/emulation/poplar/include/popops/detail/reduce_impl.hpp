#ifndef popops_detail_reduce_impl_hpp
#define popops_detail_reduce_impl_hpp

#include <algorithm>
#include <limits>
#include <popops/Reduce.hpp>
#include <popops/detail/eval.hpp>
#include <popops/detail/scalar_impl.hpp>
#include <poputil/TileMapping.hpp>
#include <sstream>

namespace popops {
namespace detail {

static inline bool adds(Operation op) {
  return op == Operation::ADD || op == Operation::SQUARE_ADD || op == Operation::LOG_ADD;
}

static inline float identity(Operation op) {
  const float infinity = std::numeric_limits<float>::infinity();
  switch (op) {
  case Operation::MIN: return infinity;
  case Operation::MAX: return -infinity;
  case Operation::LOG_ADD: return -infinity;
  case Operation::MUL:
  case Operation::LOGICAL_AND: return 1.0f;
  default: return 0.0f;
  }
}

static inline float combine(Operation op, float a, float b) {
  switch (op) {
  case Operation::MUL: return a * b;
  case Operation::MIN: return std::fmin(a, b);
  case Operation::MAX: return std::fmax(a, b);
  case Operation::LOG_ADD: {
    const float high = std::fmax(a, b), low = std::fmin(a, b);
    return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
  }
  default: return a + b;
  }
}

static inline std::int32_t combine(Operation op, std::int32_t a, std::int32_t b, bool noSign) {
  const auto less = [noSign](std::int32_t x, std::int32_t y) {
    return noSign ? static_cast<std::uint32_t>(x) < static_cast<std::uint32_t>(y) : x < y;
  };
  switch (op) {
  case Operation::MUL: return applySigned(BinaryOpType::MULTIPLY, a, b);
  case Operation::MIN: return less(b, a) ? b : a;
  case Operation::MAX: return less(a, b) ? b : a;
  case Operation::LOGICAL_AND: return a && b;
  case Operation::LOGICAL_OR: return a || b;
  default: return applySigned(BinaryOpType::ADD, a, b);
  }
}

/// In halves, as the tiles and workers of a device do it: no long chain of roundings.
static inline float pairwise(Operation op, const float *x, std::size_t n) {
  if (n <= 8) {
    float sum = x[0];
    for (std::size_t i = 1; i != n; ++i)
      sum = combine(op, sum, x[i]);
    return sum;
  }
  return combine(op, pairwise(op, x, n / 2), pairwise(op, x + n / 2, n - n / 2));
}

/// Reduces the rows of a matrix whose columns are the reduced dimensions.
struct ReduceNode : poplar::detail::Node {
  ReduceParams params;
  poplar::Tensor in, out; // [results, reduced], [results]
  std::string user() const { return "reduce" + (name.empty() ? name : " '" + name + "'"); }
  void check(poplar::detail::Checker &) const override {
    poplar::detail::requireMapped(in, user());
    poplar::detail::requireMapped(out, user());
    if (params.useScale)
      poplar::detail::requireMapped(params.scale, user());
  }
  template <class T> std::vector<T> read(const poplar::detail::Runtime &runtime, const poplar::Tensor &t,
                                         void (*convert)(const poplar::Type &, const void *, T *, std::size_t)) const {
    runtime.requireWritten(t, user());
    std::vector<unsigned char> dense(t.numElements() * t.elementType().bytes());
    std::vector<T> values(t.numElements());
    runtime.load(t, dense.data());
    convert(t.elementType(), dense.data(), values.data(), values.size());
    return values;
  }
  void run(poplar::detail::Runtime &runtime) const override {
    const std::size_t rows = out.numElements(), columns = in.dim(1);
    std::vector<unsigned char> result(rows * out.elementType().bytes());
    if (isReal(in.elementType())) {
      std::vector<float> x = read<float>(runtime, in, toReals), y(rows, identity(params.op));
      if (params.op == Operation::SQUARE_ADD)
        for (float &value : x)
          value *= value;
      for (std::size_t r = 0; r != rows && columns != 0; ++r)
        y[r] = pairwise(params.op, x.data() + r * columns, columns);
      finish(runtime, y);
      fromReals(out.elementType(), y.data(), result.data(), rows);
    } else {
      const std::vector<std::int32_t> x = read<std::int32_t>(runtime, in, toIntegers);
      const bool noSign = in.elementType() == poplar::UNSIGNED_INT;
      std::vector<std::int32_t> y(rows, toInteger(identity(params.op), in.elementType()));
      for (std::size_t r = 0; r != rows; ++r)
        for (std::size_t c = 0; c != columns; ++c) {
          const std::int32_t value = x[r * columns + c];
          y[r] = combine(params.op, y[r],
                         params.op == Operation::SQUARE_ADD ? applySigned(BinaryOpType::MULTIPLY, value, value) : value,
                         noSign);
        }
      if (params.update) {
        const std::vector<std::int32_t> before = read<std::int32_t>(runtime, out, toIntegers);
        for (std::size_t r = 0; r != rows; ++r)
          y[r] = combine(Operation::ADD, before[r], y[r], noSign);
      }
      fromIntegers(out.elementType(), y.data(), result.data(), rows);
    }
    runtime.store(out, result.data());
  }
  void finish(const poplar::detail::Runtime &runtime, std::vector<float> &y) const {
    if (params.useScale) {
      const float scale = read<float>(runtime, params.scale, toReals)[0];
      for (float &value : y)
        value *= scale;
    }
    if (params.update) {
      const std::vector<float> before = read<float>(runtime, out, toReals);
      for (std::size_t r = 0; r != y.size(); ++r)
        y[r] = combine(params.op == Operation::LOG_ADD ? params.op : Operation::ADD, before[r], y[r]);
    }
  }
};

static inline void checkTypes(Operation op, const poplar::Type &in, const poplar::Type &out) {
  const bool logical = op == Operation::LOGICAL_AND || op == Operation::LOGICAL_OR;
  const bool order = op == Operation::MIN || op == Operation::MAX;
  const unsigned set = setOf(in);
  const bool fits = logical ? set == OnBool && in == out
                    : order ? (set & (OnReal | OnInt | OnUnsigned)) && in == out
                            : (set == OnReal && isReal(out)) || (set == OnInt && in == out && op != Operation::LOG_ADD);
  std::ostringstream name;
  name << op;
  if (!fits)
    throw poputil::poplibs_error("reduce: no codelet of Reduce" + name.str() + " has type " +
                                 in.toString().cloneAsString() + " and output type " +
                                 out.toString().cloneAsString());
}

/// The shape of the result, and the input as a matrix.
static inline poplar::Tensor reducedMatrix(const poplar::Tensor &in, const std::vector<std::size_t> &dims,
                                           std::vector<std::size_t> &shape) {
  poplar::detail::requireValid(in, "reduce");
  std::vector<bool> reduced(in.rank());
  for (const std::size_t d : dims) {
    if (d >= in.rank())
      throw poputil::poplibs_error("Invalid dimension " + std::to_string(d) + " for tensor rank " +
                                   std::to_string(in.rank()));
    reduced[d] = true;
  }
  std::vector<unsigned> order;
  std::size_t columns = 1;
  shape.clear();
  for (unsigned d = 0; d != in.rank(); ++d)
    if (!reduced[d]) {
      order.push_back(d);
      shape.push_back(in.dim(d));
    }
  for (unsigned d = 0; d != in.rank(); ++d)
    if (reduced[d]) {
      order.push_back(d);
      columns *= in.dim(d);
    }
  return in.dimShuffle(order).reshape({poplar::detail::product(shape), columns});
}

static inline void addReduction(const poplar::Tensor &matrix, const poplar::Tensor &out, const ReduceParams &params,
                                poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                                const poplar::OptionFlags &options) {
  for (const auto &option : options)
    if (option.first != "accumType.interTile" && option.first != "accumType.inVertex")
      throw poplar::invalid_option("reduce: no option '" + option.first + "'");
  auto node = std::make_shared<ReduceNode>();
  node->name = debugContext.getPathName();
  checkTypes(params.op, matrix.elementType(), out.elementType());
  if ((params.useScale || params.update) && !adds(params.op))
    throw poputil::poplibs_error(std::string(params.useScale ? "Scale" : "Update") +
                                 " can only be used with ADD, LOG_ADD or SQUARE_ADD");
  if (params.useScale && params.scale.elementType() != poplar::FLOAT)
    throw poputil::poplibs_error("Scale must be of type poplar::FLOAT");
  if (params.useScale && !isReal(matrix.elementType()))
    throw poputil::poplibs_error("the emulation scales reductions of float and half only");
  if (params.op == Operation::LOG_ADD && matrix.dim(1) <= 1)
    throw poputil::poplibs_error("Reduction operation LOG_ADD doesn't support reductions where there is no reduction "
                                 "required");
  poplar::detail::requireWriteable(out, node->user());
  if (out.intersectsWith(matrix))
    throw poplar::graph_connection_error(node->user() + ": the output meets the input");
  node->params = params;
  node->in = matrix;
  node->out = out;
  prog.add(poplar::program::Program(node));
}

} // namespace detail

POPLAR_EMULATION_FUNCTION poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in,
                                                const poplar::Type &outType, const std::vector<std::size_t> &dims,
                                                ReduceParams params, poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options) {
  if (params.update)
    throw poputil::poplibs_error("Cannot do an update using reduce(); call reduceWithOutput() instead");
  std::vector<std::size_t> shape;
  const poplar::Tensor matrix = detail::reducedMatrix(in, dims, shape);
  const poplar::Tensor out = graph.addVariable(outType, shape, debugContext);
  poputil::mapTensorLinearly(graph, out);
  detail::addReduction(matrix, out.flatten(), params, prog, debugContext, options);
  return out;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in,
                                                const std::vector<std::size_t> &dims, ReduceParams params,
                                                poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options) {
  return reduce(graph, in, in.elementType(), dims, params, prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION void reduceWithOutput(poplar::Graph &graph, const poplar::Tensor &in,
                                                const poplar::Tensor &out, const std::vector<std::size_t> &dims,
                                                ReduceParams params, poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options) {
  std::vector<std::size_t> shape;
  const poplar::Tensor matrix = detail::reducedMatrix(in, dims, shape);
  const auto withoutOnes = [](std::vector<std::size_t> s) {
    s.erase(std::remove(s.begin(), s.end(), std::size_t(1)), s.end());
    return s;
  };
  if (withoutOnes(shape) != withoutOnes(out.shape()))
    throw poputil::poplibs_error("Dimension mismatch in output. Input shape: " + in.shapeToString() +
                                 " Output shape: " + out.shapeToString() + " Reduced dimensions: " +
                                 poplar::detail::text(dims));
  bool complete = true;
  graph.getTileMapping(out, &complete);
  if (!complete)
    poputil::mapTensorLinearly(graph, out);
  detail::addReduction(matrix, out.flatten(), params, prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION void reduceMany(poplar::Graph &graph, const std::vector<SingleReduceOp> &reductions,
                                          std::vector<poplar::Tensor> &outputs, poplar::program::Sequence &prog,
                                          const poplar::DebugContext &debugContext,
                                          const poplar::OptionFlags &options) {
  if (!outputs.empty() && outputs.size() != reductions.size())
    throw poputil::poplibs_error("reduceMany: outputs must be the same size as reductions");
  const bool create = outputs.empty();
  for (std::size_t i = 0; i != reductions.size(); ++i) {
    const SingleReduceOp &one = reductions[i];
    if (create)
      outputs.push_back(reduce(graph, one.in, one.useOutType ? one.outType : one.in.elementType(), one.dims,
                               one.params, prog, debugContext, options));
    else
      reduceWithOutput(graph, one.in, outputs[i], one.dims, one.params, prog, debugContext, options);
  }
}

} // namespace popops

#endif
