#ifndef poplin_detail_matmul_impl_hpp
#define poplin_detail_matmul_impl_hpp

#include <poplin/MatMul.hpp>
#include <poplin/detail/products.hpp>
#include <poputil/exceptions.hpp>

namespace poplin {

namespace detail {

struct MatMulNode : ProductNode {
  std::string user() const override { return "matMul" + (name.empty() ? name : " '" + name + "'"); }
  void multiply(const float *x, const float *y, float *z) const override {
    const std::size_t groups = a.dim(0), m = a.dim(1), k = a.dim(2), n = b.dim(2);
    for (std::size_t g = 0; g != groups; ++g, x += m * k, y += k * n, z += m * n)
      for (std::size_t i = 0; i != m; ++i)
        for (std::size_t l = 0; l != k; ++l) {
          const float factor = x[i * k + l];
          for (std::size_t j = 0; j != n; ++j)
            z[i * n + j] += factor * y[l * n + j];
        }
  }
};

static inline void checkOptions(const poplar::OptionFlags &options) {
  static const char *const known[] = {"availableMemoryProportion", "fullyConnectedPass", "inputRHSIsPreArranged",
                                      "use128BitConvUnitLoad", "enableMultiStageReduce", "enableFastReduce",
                                      "remapOutputTensor", "partialsType", "gatherOutput", "planConstraints",
                                      "disableSRForAMPVertices"};
  for (const auto &option : options) {
    bool found = false;
    for (const char *name : known)
      found = found || option.first == name;
    if (!found)
      throw poplar::invalid_option("matMul: no option '" + option.first + "'");
  }
}

static inline void addMatMul(const poplar::Tensor &A, const poplar::Tensor &B, const poplar::Tensor &out,
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                             const poplar::OptionFlags &options) {
  checkOptions(options);
  auto node = std::make_shared<MatMulNode>();
  node->name = debugContext.getPathName();
  node->a = A;
  node->b = B;
  node->out = out;
  if (out.shape() != std::vector<std::size_t>({A.dim(0), A.dim(1), B.dim(2)}))
    throw poputil::poplibs_error(node->user() + ": the output has shape " + out.shapeToString());
  checkOperands(*node);
  prog.add(poplar::program::Program(node));
}

static inline void checkMatrices(const poplar::Tensor &A, const poplar::Tensor &B, unsigned rank) {
  poplar::detail::requireValid(A, "matMul");
  poplar::detail::requireValid(B, "matMul");
  if (A.rank() != rank || B.rank() != rank)
    throw poputil::poplibs_error(rank == 2 ? "Operand to matrix multiplication is not a matrix."
                                           : "Operand to grouped matrix multiplication is not a matrix.");
  if (rank == 3 && A.dim(0) != B.dim(0))
    throw poputil::poplibs_error("Group dimensions for the two operands in the grouped multiplication must be the "
                                 "same");
  if (A.dim(rank - 1) != B.dim(rank - 2))
    throw poputil::poplibs_error("Second dimension of first operand to matrix multiplication does not match first "
                                 "dimension of second operand.");
}

} // namespace detail

POPLAR_EMULATION_FUNCTION poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::program::Sequence &prog, const poplar::Type &outputType,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options, PlanningCache *) {
  detail::checkMatrices(A, B, 2);
  const poplar::Tensor out = detail::linear(graph, outputType, {A.dim(0), B.dim(1)}, debugContext);
  detail::addMatMul(A.expand({0}), B.expand({0}), out.expand({0}), prog, debugContext, options);
  return out;
}

POPLAR_EMULATION_FUNCTION poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options, PlanningCache *cache) {
  return matMul(graph, A, B, prog, A.elementType(), debugContext, options, cache);
}

POPLAR_EMULATION_FUNCTION void matMulWithOutput(poplar::Graph &, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::Tensor &out, poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext,
                                                const poplar::OptionFlags &options, PlanningCache *) {
  detail::checkMatrices(A, B, 2);
  detail::addMatMul(A.expand({0}), B.expand({0}), out.expand({0}), prog, debugContext, options);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor matMulGrouped(poplar::Graph &graph, const poplar::Tensor &A,
                                                       const poplar::Tensor &B, poplar::program::Sequence &prog,
                                                       const poplar::Type &outputType,
                                                       const poplar::DebugContext &debugContext,
                                                       const poplar::OptionFlags &options, PlanningCache *) {
  detail::checkMatrices(A, B, 3);
  const poplar::Tensor out = detail::linear(graph, outputType, {A.dim(0), A.dim(1), B.dim(2)}, debugContext);
  detail::addMatMul(A, B, out, prog, debugContext, options);
  return out;
}

POPLAR_EMULATION_FUNCTION void matMulGroupedWithOutput(poplar::Graph &, const poplar::Tensor &A,
                                                       const poplar::Tensor &B, poplar::Tensor &out,
                                                       poplar::program::Sequence &prog,
                                                       const poplar::DebugContext &debugContext,
                                                       const poplar::OptionFlags &options, PlanningCache *) {
  detail::checkMatrices(A, B, 3);
  detail::addMatMul(A, B, out, prog, debugContext, options);
}

using Sizes = std::vector<std::size_t>;

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                              const poplar::Type &, const Sizes &aShape, const Sizes &,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, inputType, aShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &dataType,
                                                              const Sizes &aShape, const Sizes &,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, dataType, aShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                              const poplar::Type &, const Sizes &, const Sizes &bShape,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, inputType, bShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &dataType,
                                                              const Sizes &, const Sizes &bShape,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, dataType, bShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &,
                                                            const poplar::Type &outputType, const Sizes &aShape,
                                                            const Sizes &bShape,
                                                            const poplar::DebugContext &debugContext,
                                                            const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, outputType, {aShape.at(0), bShape.at(1)}, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &dataType,
                                                            const Sizes &aShape, const Sizes &bShape,
                                                            const poplar::DebugContext &debugContext,
                                                            const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, dataType, {aShape.at(0), bShape.at(1)}, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor
createMatMulGroupedInputLHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &,
                            const Sizes &aShape, const Sizes &, const poplar::DebugContext &debugContext,
                            const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, inputType, aShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor
createMatMulGroupedInputRHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &, const Sizes &,
                            const Sizes &bShape, const poplar::DebugContext &debugContext,
                            const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, inputType, bShape, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor
createMatMulGroupedOutput(poplar::Graph &graph, const poplar::Type &, const poplar::Type &outputType,
                          const Sizes &aShape, const Sizes &bShape, const poplar::DebugContext &debugContext,
                          const poplar::OptionFlags &, PlanningCache *) {
  return detail::linear(graph, outputType, {aShape.at(0), aShape.at(1), bShape.at(2)}, debugContext);
}

POPLAR_EMULATION_FUNCTION poplar::Tensor transposeGroupedMatrix(const poplar::Tensor &A) {
  if (A.rank() != 3)
    throw poputil::poplibs_error("Tensor is not a grouped matrix tensor");
  return A.dimShuffle({0, 2, 1});
}

} // namespace poplin

#endif
