#ifndef poplin_MatMul_hpp
#define poplin_MatMul_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/Convolution.hpp>

namespace poplin {

namespace matmul {
class PlanningCache : public poplin::PlanningCache {
public:
  poplin::PlanningCache &getImpl() { return *this; }
};
} // namespace matmul

#define POPLIN_EMULATION_LAST                                                                                          \
  const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr
#define POPLIN_EMULATION_CREATE                                                                                        \
  const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,                                      \
      const poplar::DebugContext &debugContext, const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr

/// [m, k] times [k, n], accumulated in float.
POPLAR_EMULATION_FUNCTION poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::program::Sequence &prog, const poplar::Type &outputType,
                                                POPLIN_EMULATION_LAST);
POPLAR_EMULATION_FUNCTION poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::program::Sequence &prog, POPLIN_EMULATION_LAST);
POPLAR_EMULATION_FUNCTION void matMulWithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                                                poplar::Tensor &out, poplar::program::Sequence &prog,
                                                POPLIN_EMULATION_LAST);
/// [g, m, k] times [g, k, n].
POPLAR_EMULATION_FUNCTION poplar::Tensor matMulGrouped(poplar::Graph &graph, const poplar::Tensor &A,
                                                       const poplar::Tensor &B, poplar::program::Sequence &prog,
                                                       const poplar::Type &outputType, POPLIN_EMULATION_LAST);
POPLAR_EMULATION_FUNCTION void matMulGroupedWithOutput(poplar::Graph &graph, const poplar::Tensor &A,
                                                       const poplar::Tensor &B, poplar::Tensor &out,
                                                       poplar::program::Sequence &prog, POPLIN_EMULATION_LAST);

POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                              const poplar::Type &outputType,
                                                              POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &dataType,
                                                              POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                              const poplar::Type &outputType,
                                                              POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &dataType,
                                                              POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &inputType,
                                                            const poplar::Type &outputType, POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &dataType,
                                                            POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulGroupedInputLHS(poplar::Graph &graph,
                                                                     const poplar::Type &inputType,
                                                                     const poplar::Type &outputType,
                                                                     POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulGroupedInputRHS(poplar::Graph &graph,
                                                                     const poplar::Type &inputType,
                                                                     const poplar::Type &outputType,
                                                                     POPLIN_EMULATION_CREATE);
POPLAR_EMULATION_FUNCTION poplar::Tensor createMatMulGroupedOutput(poplar::Graph &graph,
                                                                   const poplar::Type &inputType,
                                                                   const poplar::Type &outputType,
                                                                   POPLIN_EMULATION_CREATE);
#undef POPLIN_EMULATION_LAST
#undef POPLIN_EMULATION_CREATE

/// [g, m, k] as [g, k, m].
POPLAR_EMULATION_FUNCTION poplar::Tensor transposeGroupedMatrix(const poplar::Tensor &A);

} // namespace poplin

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplin/detail/matmul_impl.hpp>
#endif
#endif
