// The Poplar graph of an Ir: the tensors by name, and the program.
#ifndef POPART_POPX_IRLOWERING_HPP
#define POPART_POPX_IRLOWERING_HPP
#define POPART_IRLOWERING_OPEN

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>

#include <popart/error.hpp>
#include <popart/graph.hpp>
#include <popart/ir.hpp>
#include <popart/names.hpp>
#include <popart/popx/opx.hpp>

#pragma GCC visibility push(default)
namespace popart {
class CallOp;

namespace popx {

class Devicex;

/// The Poplar type of a data type. Raises popart::error for INT64, UINT64, DOUBLE, BFLOAT16, complex types and strings.
poplar::Type popType(DataType type);
poplar::Type popType(const TensorInfo &info);

class PopTensors {
 public:
  IN_LIBRARY const poplar::Tensor &get(const TensorId &id) const {
    const auto found = tensors.find(id);
    if (found == tensors.end()) throw error("no tensor {}", id);
    return found->second;
  }
  IN_LIBRARY bool contains(const TensorId &id) const { return tensors.count(id) != 0; }
  IN_LIBRARY void insert(const TensorId &id, const poplar::Tensor &tensor) {
    if (contains(id)) throw internal_error("poplar::Tensor {} already in map", id);
    tensors.emplace(id, tensor);
  }
  /// For the emulation's own use.
  IN_LIBRARY void erase(const TensorId &id) { tensors.erase(id); }

 private:
  std::map<TensorId, poplar::Tensor> tensors;
};

class IrLowering {
 public:
  /// For the emulation's own use.
  IrLowering(Ir &ir, const poplar::Target &target, Devicex &device);

  IN_LIBRARY const Ir &ir() const { return ir_; }
  IN_LIBRARY poplar::Graph &graph() { return graph_; }
  IN_LIBRARY PopTensors &tensors() { return tensors_; }
  IN_LIBRARY const PopTensors &tensors() const { return tensors_; }
  poplar::Tensor getConst(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape, double value,
                          const poplar::DebugContext &context);
  poplar::Tensor getScalarVariable(poplar::Graph &graph, const poplar::Type &type, const poplar::DebugContext &context);

  /// Lowers every op of the main graph. Called once.
  void prepareGraph();
  /// For the emulation's own use. Checks a tensor that an Opx gives its output: mapped, as setup() said, and sharing no elements but those the op says it shares.
  void checkOutput(const Op &op, OutIndex index, const poplar::Tensor &tensor) const;
  /// For the emulation's own use. The ops that were lowered, in order.
  IN_LIBRARY const std::vector<std::string> &grownOps() const { return grown_; }

  /// For the emulation's own use.
  IN_LIBRARY poplar::program::Sequence &program() { return program_; }
  /// For the emulation's own use.
  IN_LIBRARY poplar::program::Sequence &weightsFromHostProgram() { return weightsFromHost_; }
  /// For the emulation's own use.
  IN_LIBRARY poplar::program::Sequence &weightsToHostProgram() { return weightsToHost_; }

 private:
  void createInputs();
  void createConstants(const Graph &graph);
  poplar::Tensor createTensor(const Tensor &tensor);
  bool createWithOpx(const Tensor &tensor, poplar::Tensor &out, int depth);
  void checkTensor(const std::string &who, const TensorInfo &info, const poplar::Tensor &tensor) const;
  Opx &opxOf(Op &op);
  void growGraph(const Graph &graph, poplar::program::Sequence &prog);
  void growOp(Op &op, poplar::program::Sequence &prog);
  void growOpx(Op &op, poplar::program::Sequence &prog);
  void growCall(const CallOp &call, poplar::program::Sequence &prog);
  void growOutlined(Op &op, poplar::program::Sequence &prog);
  bool isOutlined(const Op &op) const;
  std::string outlineKey(const Op &op) const;

  template <typename T>
  poplar::Tensor addConstant(const poplar::Type &type, const std::vector<std::size_t> &shape, const char *data, const TensorId &id) {
    return graph_.addConstant(type, shape, reinterpret_cast<const T *>(data), poplar::DebugContext(id));
  }

  struct Outlined;

  Ir &ir_;
  Devicex &device_;
  poplar::Graph graph_;
  PopTensors tensors_;
  poplar::program::Sequence program_;
  poplar::program::Sequence weightsFromHost_;
  poplar::program::Sequence weightsToHost_;
  std::map<OpId, std::unique_ptr<Opx>> opxs_;
  std::map<std::string, std::shared_ptr<Outlined>> outlined_;
  std::map<std::string, int> outlineCounts_;
  std::vector<std::string> grown_;
  unsigned constants_ = 0;
  unsigned scalars_ = 0;
};

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#undef POPART_IRLOWERING_OPEN
#include <popart/emulation/define_popx.hpp>

#endif
