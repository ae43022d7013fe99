#ifndef popops_detail_map_impl_hpp
#define popops_detail_map_impl_hpp

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ElementWiseUtil.hpp>
#include <popops/detail/eval.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>

namespace popops {

namespace detail {

/// Elements of `out` computed from those of the inputs, all of one shape.
struct MapNode : poplar::detail::Node {
  Steps steps;
  Tensors inputs;
  poplar::Tensor out;
  std::string user() const { return "map" + (name.empty() ? name : " '" + name + "'"); }
  void check(poplar::detail::Checker &) const override {
    for (const unsigned input : steps.inputs)
      poplar::detail::requireMapped(inputs[input], user());
    poplar::detail::requireMapped(out, user());
  }
  void run(poplar::detail::Runtime &runtime) const override {
    runtime.store(out, evaluate(steps, inputs, out.numElements(), runtime, user()).data());
  }
};

static inline std::shared_ptr<MapNode> mapNode(const poplar::Graph &graph, const expr::Expr &e, const Tensors &ts,
                                               const std::string &name, const poplar::OptionFlags &options,
                                               std::vector<std::size_t> &shape) {
  bool rewrite = true;
  for (const auto &option : options) {
    if (option.first == "enableExpressionOptimizations")
      rewrite = option.second == "true";
    else if (option.first != "enableGenerateCodelet" && option.first != "forceGenerateCodelet" &&
             option.first != "enableVectorBroadcastOptimisations")
      throw poplar::invalid_option("map: no option '" + option.first + "'");
  }
  auto node = std::make_shared<MapNode>();
  node->name = name;
  for (const poplar::Tensor &t : ts)
    poplar::detail::requireOf(graph.state().get(), t, node->user());
  node->steps = compile(e, ts, rewrite);
  node->inputs = ts;
  shape.clear();
  for (const unsigned input : node->steps.inputs)
    shape = poputil::detail::broadcastShape(shape, ts[input].shape());
  for (const unsigned input : node->steps.inputs)
    poputil::broadcastToMatch(node->inputs[input], shape);
  return node;
}

/// The result goes to `out`, which may be one of the inputs but not meet one anywhere else.
static inline void mapTo(const poplar::Graph &graph, const expr::Expr &e, const Tensors &ts,
                         const poplar::Tensor &out, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext, const poplar::OptionFlags &options) {
  std::vector<std::size_t> shape;
  const auto node = mapNode(graph, e, ts, debugContext.getPathName(), options, shape);
  const std::string user = node->user();
  poplar::detail::requireOf(graph.state().get(), out, user);
  poplar::detail::requireWriteable(out, user);
  if (node->steps.type != out.elementType())
    throw poputil::poplibs_error(user + ": the expression has type " + node->steps.type.toString().cloneAsString() +
                                 ", the output " + out.elementType().toString().cloneAsString());
  if (shape != out.view().shape)
    throw poputil::poplibs_error(user + ": the expression has shape " + poplar::detail::text(shape) +
                                 ", the output " + out.shapeToString());
  for (const unsigned input : node->steps.inputs)
    if (out.intersectsWith(node->inputs[input]) && out != node->inputs[input])
      throw poplar::graph_connection_error(user + ": the output meets input " + std::to_string(input + 1) +
                                           " at other places: an element would be read while it is written");
  node->out = out;
  prog.add(poplar::program::Program(node));
}

} // namespace detail

POPLAR_EMULATION_FUNCTION poplar::Tensor createOutputForElementWiseOp(poplar::Graph &graph,
                                                                      const std::vector<poplar::Tensor> &inputs,
                                                                      const poplar::Type &outputType,
                                                                      const poplar::DebugContext &debugContext) {
  std::vector<std::size_t> shape;
  for (const poplar::Tensor &t : inputs) {
    poplar::detail::requireMapped(t, "createOutputForElementWiseOp");
    shape = poputil::detail::broadcastShape(shape, t.shape());
  }
  for (const poplar::Tensor &t : inputs)
    if (t.view().shape == shape && !t.containsAliases())
      return graph.clone(outputType, t, debugContext);
  const poplar::Tensor out = graph.addVariable(outputType, shape, debugContext);
  poputil::mapTensorLinearly(graph, out);
  return out;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor map(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                             poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext,
                                             const poplar::OptionFlags &options) {
  std::vector<std::size_t> shape;
  const auto node = detail::mapNode(graph, expr, ts, debugContext.getPathName(), options, shape);
  Tensors used;
  for (const unsigned input : node->steps.inputs)
    used.push_back(ts[input]);
  node->out = createOutputForElementWiseOp(graph, used, node->steps.type, debugContext);
  prog.add(poplar::program::Program(node));
  return node->out;
}

POPLAR_EMULATION_FUNCTION Tensors map(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const Tensors &ts,
                                      poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                                      const poplar::OptionFlags &options) {
  Tensors outs;
  for (const expr::Any &e : exprs)
    outs.push_back(map(graph, static_cast<const expr::Expr &>(e), ts, prog, debugContext, options));
  return outs;
}

POPLAR_EMULATION_FUNCTION void mapInPlace(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                          poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                                          const poplar::OptionFlags &options) {
  if (ts.empty())
    throw poputil::poplibs_error("mapInPlace requires a tensor to write");
  detail::mapTo(graph, expr, ts, ts[0], prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION void mapInPlace(poplar::Graph &graph, const std::vector<expr::Any> &exprs,
                                          const Tensors &ts, poplar::program::Sequence &prog,
                                          const poplar::DebugContext &debugContext,
                                          const poplar::OptionFlags &options) {
  if (ts.size() < exprs.size())
    throw poputil::poplibs_error("mapInPlace requires number of expressions (" + std::to_string(exprs.size()) +
                                 ") be less or equal to a number of tensors provided (" + std::to_string(ts.size()) +
                                 ")");
  const Tensors results = map(graph, exprs, ts, prog, debugContext, options);
  for (std::size_t i = 0; i != results.size(); ++i)
    prog.add(poplar::program::Copy(results[i], ts[i], false, debugContext));
}

POPLAR_EMULATION_FUNCTION void mapWithOutput(poplar::Graph &graph, const expr::Expr &expr, const Tensors &ts,
                                             const poplar::Tensor &out, poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext,
                                             const poplar::OptionFlags &options) {
  detail::mapTo(graph, expr, ts, out, prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION void mapWithOutput(poplar::Graph &graph, const std::vector<expr::Any> &exprs,
                                             const Tensors &ts, const Tensors &outs, poplar::program::Sequence &prog,
                                             const poplar::DebugContext &debugContext,
                                             const poplar::OptionFlags &options) {
  if (exprs.size() != outs.size())
    throw poputil::poplibs_error("mapWithOutput requires vector of output tensors to have the same size as "
                                 "expressions vector. Expected " +
                                 std::to_string(exprs.size()) + " but got " + std::to_string(outs.size()));
  for (std::size_t i = 0; i != exprs.size(); ++i)
    mapWithOutput(graph, static_cast<const expr::Expr &>(exprs[i]), ts, outs[i], prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src,
                                              const poplar::Type &dstType, poplar::program::Sequence &prog,
                                              const poplar::DebugContext &debugContext) {
  return map(graph, expr::Cast(expr::_1, dstType), Tensors{src}, prog, debugContext);
}

POPLAR_EMULATION_FUNCTION void castWithOutput(poplar::Graph &graph, const poplar::Tensor &src,
                                              const poplar::Tensor &dst, poplar::program::Sequence &prog,
                                              const poplar::DebugContext &debugContext) {
  if (src.shape() != dst.shape())
    throw poputil::poplibs_error("Attempting to cast between tensors with different shapes");
  mapWithOutput(graph, expr::Cast(expr::_1, dst.elementType()), Tensors{src}, dst, prog, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::program::Program cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst,
                                                        const poplar::DebugContext &debugContext) {
  poplar::program::Sequence prog(debugContext);
  castWithOutput(graph, src, dst, prog, debugContext);
  return prog;
}

} // namespace popops

#endif
