// Ops and tensors that belong together: the main graph, or one that ops call.
#ifndef POPART_GRAPH_HPP
#define POPART_GRAPH_HPP
#define POPART_GRAPH_OPEN

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <popart/debugcontext.hpp>
#include <popart/error.hpp>
#include <popart/graphid.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/scope.hpp>
#include <popart/tensor.hpp>
#include <popart/tensors.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Ir;

class Graph {
 public:
  enum class CopyInputMarkings { Yes = 1, No = 0 };
  enum class CopyOutputMarkings { Yes = 1, No = 0 };

  IN_LIBRARY Graph(Ir &ir_, const GraphId &id_) : id(id_), tensors(*this), ir(ir_) {}
  Graph(const Graph &) = delete;

  const GraphId id;

  IN_LIBRARY const std::map<OpId, std::unique_ptr<Op>> &getOps() const { return ops; }
  IN_LIBRARY std::map<OpId, std::unique_ptr<Op>> &getOps() { return ops; }
  std::vector<OpId> getOpIds() const;
  /// The op of that id. Raises popart::error where there is none.
  Op *getOp(OpId opId) const;
  OpId moveIntoGraph(std::unique_ptr<Op> op);
  void eraseOp(OpId opId);
  /// For the emulation's own use. Takes an op, with its connections as they are, out of the graph.
  std::unique_ptr<Op> takeOp(OpId opId);
  /// For the emulation's own use. The op of a node of a model.
  Op *growFromNode(const emulation::Node &node);

  IN_LIBRARY const Tensors &getTensors() const { return tensors; }
  IN_LIBRARY Tensors &getTensors() { return tensors; }
  IN_LIBRARY Tensor *getTensor(const TensorId &tensorId) { return tensors.get(tensorId); }
  IN_LIBRARY void addActGrad(const TensorId &tensorId) { tensors.addActGrad(tensorId); }
  IN_LIBRARY void addVarInit(const TensorId &tensorId, const TensorInfo &info, const void *src, const DebugContext &context) {
    tensors.addVarInit(tensorId, info, src, context);
  }
  IN_LIBRARY void addConstInit(const TensorId &tensorId, const TensorInfo &info, const void *src, const DebugContext &context) {
    tensors.addConstInit(tensorId, info, src, context);
  }
  IN_LIBRARY void addStream(const TensorId &tensorId, const TensorInfo &info, const DebugContext &context) {
    tensors.addStream(tensorId, info, context);
  }

  IN_LIBRARY const Ir &getIr() const { return ir; }
  IN_LIBRARY Ir &getIr() { return ir; }
  IN_LIBRARY Scope getScope() const { return Scope() / id.str(); }
  IN_LIBRARY const std::string &getGraphId() const { return id.str(); }
  IN_LIBRARY std::string getGraphString() const { return id == GraphId::root() ? "the main graph" : "subgraph '" + id.str() + "'"; }

  template <typename OP, typename... Args>
  OP *createOp(Args &&...args) {
    std::unique_ptr<Op> op(new OP(std::forward<Args>(args)...));
    return static_cast<OP *>(getOp(moveIntoGraph(std::move(op))));
  }

  /// An op made of `args`, connected to the tensors of `in`, its outputs made under the names of `out`, and set up.
  template <typename OP, typename... Args>
  OP *createConnectedOp(const std::map<InIndex, TensorId> &in, const std::map<OutIndex, TensorId> &out, Args &&...args) {
    OP *op = createOp<OP>(std::forward<Args>(args)...);
    connect(*op, in, out);
    return op;
  }

  /// For the emulation's own use. Inputs in order, "" where one is absent. Raises popart::error for an absent one that is not in
  /// optionalInputs().
  void connectInputs(const std::vector<TensorId> &inputs, OpId opId);
  /// For the emulation's own use.
  void connectOutputs(const std::vector<TensorId> &outputs, OpId opId);

  IN_LIBRARY const std::vector<TensorId> &getInputIds() const { return graph_inputs; }
  IN_LIBRARY TensorId getInputId(InIndex index) const { return graph_inputs.at(static_cast<std::size_t>(index)); }
  IN_LIBRARY InIndex getInputIndex(TensorId tensorId) const { return indexOf(graph_inputs, tensorId, "input"); }
  bool hasInputId(const TensorId &tensorId) const;
  IN_LIBRARY Tensor *getInputTensor(InIndex index) const { return tensors.get(getInputId(index)); }
  void addInput(const TensorId &tensorId, const TensorInfo &info);
  void addInput(const InIndex &index, const TensorId &tensorId, const TensorInfo &info, bool overwrite);
  TensorId addInput(const TensorInfo &info);
  void markAsInput(const TensorId &tensorId);
  void removeInput(const TensorId &tensorId);

  IN_LIBRARY const std::vector<TensorId> &getOutputIds() const { return graph_outputs; }
  IN_LIBRARY TensorId getOutputId(OutIndex index) const { return graph_outputs.at(static_cast<std::size_t>(index)); }
  IN_LIBRARY OutIndex getOutputIndex(TensorId tensorId) const { return indexOf(graph_outputs, tensorId, "output"); }
  bool hasOutputId(const TensorId &tensorId) const;
  IN_LIBRARY Tensor *getOutputTensor(OutIndex index) const { return tensors.get(getOutputId(index)); }
  void markAsOutput(const TensorId &tensorId);
  void removeOutput(const TensorId &tensorId);

  std::vector<const Graph *> getCalledGraphs() const;
  /// The ops in an order in which they can run; an op that modifies a tensor comes after the other readers of it.
  std::vector<Op *> getOpSchedule() const;
  /// Copies the ops (each through clone()) and tensors of `other` into this graph, under this graph's scope.
  void copyFrom(const Graph &other, CopyInputMarkings inputs = CopyInputMarkings::Yes,
                CopyOutputMarkings outputs = CopyOutputMarkings::Yes);

 private:
  void connect(Op &op, const std::map<InIndex, TensorId> &in, const std::map<OutIndex, TensorId> &out);
  int indexOf(const std::vector<TensorId> &ids, const TensorId &tensorId, const char *what) const;

  Tensors tensors;
  std::map<OpId, std::unique_ptr<Op>> ops;
  std::vector<TensorId> graph_inputs;
  std::vector<TensorId> graph_outputs;
  Ir &ir;
};

/// A tensor's name with, and without, the scope of its graph.
IN_LIBRARY TensorId addScope(const Graph &graph, const TensorId &id) { return (graph.getScope() / id).str(); }
TensorId removeScope(const Graph &graph, const TensorId &id);

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_GRAPH_OPEN
#include <popart/emulation/define.hpp>

#endif
