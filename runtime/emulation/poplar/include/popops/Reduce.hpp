#ifndef popops_Reduce_hpp
#define popops_Reduce_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popops/Operation.hpp>
#include <poputil/exceptions.hpp>
#include <vector>

namespace popops {

/// How a reduction is made: the operation, whether the result is added to the output, and a scale, which is a tensor.
struct ReduceParams {
  ReduceParams() = default;
  ReduceParams(popops::Operation operation, bool updateOutput = false) : op(operation), update(updateOutput) {}
  ReduceParams(popops::Operation operation, bool updateOutput, poplar::Tensor by)
      : op(operation), update(updateOutput), useScale(true), scale(by) {}
  ReduceParams(popops::Operation op, float constantScale, bool update = false) = delete;

  popops::Operation op = Operation::ADD;
  bool update = false;
  bool useScale = false;
  poplar::Tensor scale;
};

/// Reduces the dimensions away. Half is accumulated in float where the operation adds or multiplies.
POPLAR_EMULATION_FUNCTION poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in,
                                                const poplar::Type &outType, const std::vector<std::size_t> &dims,
                                                ReduceParams params, poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext = {},
                                                const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in,
                                                const std::vector<std::size_t> &dims, ReduceParams params,
                                                poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext = {},
                                                const poplar::OptionFlags &options = {});
POPLAR_EMULATION_FUNCTION void reduceWithOutput(poplar::Graph &graph, const poplar::Tensor &in,
                                                const poplar::Tensor &out, const std::vector<std::size_t> &dims,
                                                ReduceParams params, poplar::program::Sequence &prog,
                                                const poplar::DebugContext &debugContext = {},
                                                const poplar::OptionFlags &options = {});

struct SingleReduceOp {
  poplar::Tensor in;
  std::vector<std::size_t> dims;
  ReduceParams params;
  bool useOutType;
  poplar::Type outType;
  std::string debugName;

  SingleReduceOp(poplar::Tensor input, std::vector<std::size_t> dimensions, ReduceParams how, poplar::Type type,
                 std::string name = "")
      : in(std::move(input)), dims(std::move(dimensions)), params(std::move(how)), useOutType(true), outType(type),
        debugName(std::move(name)) {}
  SingleReduceOp(poplar::Tensor input, std::vector<std::size_t> dimensions, ReduceParams how, std::string name = "")
      : in(std::move(input)), dims(std::move(dimensions)), params(std::move(how)), useOutType(false),
        outType(poplar::BOOL), debugName(std::move(name)) {}
};

POPLAR_EMULATION_FUNCTION void reduceMany(poplar::Graph &graph, const std::vector<SingleReduceOp> &reductions,
                                          std::vector<poplar::Tensor> &outputs, poplar::program::Sequence &prog,
                                          const poplar::DebugContext &debugContext = {},
                                          const poplar::OptionFlags &options = {});

} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/reduce_impl.hpp>
#endif
#endif
