// The intermediate representation: all graphs of a model, and what is done to them before they are lowered.
#ifndef POPART_IR_HPP
#define POPART_IR_HPP
#define POPART_IR_OPEN

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <popart/alias/aliasmodel.hpp>
#include <popart/dataflow.hpp>
#include <popart/emulation/model.hpp>
#include <popart/graph.hpp>
#include <popart/graphid.hpp>
#include <popart/inputshapeinfo.hpp>
#include <popart/names.hpp>
#include <popart/optimizer.hpp>
#include <popart/patterns/patterns.hpp>
#include <popart/sessionoptions.hpp>
#include <popart/tensor.hpp>
#include <popart/tensorinfo.hpp>
#include <popart/util.hpp>

#pragma GCC visibility push(default)
namespace popart {

class DeviceInfo;

class Ir {
 public:
  enum class ExecutionMode { Inference, Training };

  Ir();
  ~Ir();
  Ir(const Ir &) = delete;
  Ir &operator=(const Ir &) = delete;

  // What a model is prepared with.
  IN_LIBRARY void setDataFlow(const DataFlow &flow) { dataFlow = flow; }
  IN_LIBRARY const DataFlow &getDataFlow() const { return dataFlow; }
  IN_LIBRARY void setUserOptions(const SessionOptions &options) { userOptions = options; }
  IN_LIBRARY SessionOptions &getSessionOptions() { return userOptions; }
  IN_LIBRARY const SessionOptions &getSessionOptions() const { return userOptions; }
  IN_LIBRARY void setPatterns(const Patterns &p) { patterns = p; }
  IN_LIBRARY const Patterns &getPatterns() const { return patterns; }
  IN_LIBRARY void setInputShapeInfo(const InputShapeInfo &info) { inputShapeInfo = info; }
  IN_LIBRARY void setOptimizer(const Optimizer &o) { optimizer = o.clone(); }
  IN_LIBRARY void setExecutionMode(ExecutionMode mode) { executionMode = mode; }
  IN_LIBRARY bool isTraining() const { return executionMode == ExecutionMode::Training; }
  IN_LIBRARY bool isTesting() const { return executionMode == ExecutionMode::Inference; }
  IN_LIBRARY bool canTrain() const { return isTraining(); }

  /// For the emulation's own use. Builds the main graph from a model, then the gradients of `loss` where it is named, then does as finalise().
  void prepare(const emulation::Model &model, const TensorId &loss = "");
  /// For the emulation's own use. Checks every op and puts its clone in its place, removes what no anchor wants, and makes ops in-place where patterns allow. Called
  /// once; raises popart::error for an op whose setup(), attributes or clone() are not what they should be.
  void finalise();
  IN_LIBRARY bool isPrepared() const { return prepared; }

  // Graphs.
  IN_LIBRARY const Graph &getMainGraph() const { return getGraph(GraphId::root()); }
  IN_LIBRARY Graph &getMainGraph() { return getGraph(GraphId::root()); }
  Graph &getGraph(const GraphId &id) const;
  IN_LIBRARY bool hasGraph(const GraphId &id) const { return graphs.count(id) != 0; }
  Graph &createGraph(const GraphId &id);
  IN_LIBRARY void removeGraph(const GraphId &id) { graphs.erase(id); }
  GraphId createUniqueSubgraphId(GraphId base);
  std::vector<const Graph *> getAllGraphs() const;
  IN_LIBRARY Tensors &getMainGraphTensors() { return getMainGraph().getTensors(); }
  IN_LIBRARY const Tensors &getMainGraphTensors() const { return getMainGraph().getTensors(); }
  IN_LIBRARY const std::map<OpId, std::unique_ptr<Op>> &getMainGraphOps() const { return getMainGraph().getOps(); }
  std::vector<Op *> getAllOps() const;
  Tensor *getTensor(const TensorId &id) const;
  bool containsTensor(const TensorId &id) const;
  std::set<TensorId> getAllTensorIds() const;

  // Names and counters.
  IN_LIBRARY OpId getAndIncrOpsCounter() { return opsCounter++; }
  IN_LIBRARY TensorId createIntermediateTensorId(const TensorId &base) { return base + "__t" + std::to_string(intermediateTensors++); }
  int getOpSetVersionFromModel(const std::string &domain) const;
  /// For the emulation's own use.
  void setOpsets(const std::map<std::string, int> &versions);

  // Anchors: tensors that come back to the host.
  IN_LIBRARY bool isAnchored(const TensorId &id) const { return anchors.count(id) != 0; }
  IN_LIBRARY std::set<TensorId> getAnchors() const { return anchors; }
  IN_LIBRARY void addAnchor(const TensorId &id) { anchors.insert(id); }

  IN_LIBRARY void setRequiresRandomSeed() { requiresRandomSeed_ = true; }
  IN_LIBRARY bool getRequiresRandomSeed() const { return requiresRandomSeed_; }
  IN_LIBRARY bool virtualGraphsEnabled() const { return false; }

  /// A hash of every op's attributes, infos and connections.
  std::size_t getHash() const;

 private:
  void constructForwards(const emulation::Model &model);
  void constructBackwards(const TensorId &loss);
  void growVariableUpdates();
  void connectSeed(Op &op);
  void verifyOp(Op &op) const;
  void replaceByClone(Graph &graph, Op &op);
  static std::string describe(const Op &op);
  void applyInplacePattern(Graph &graph);
  bool inplace(Op &op, const OperatorIdentifier &variant);
  void prune(Graph &graph);

  std::map<GraphId, std::unique_ptr<Graph>> graphs;
  std::vector<std::unique_ptr<Op>> retired;  // ops that others stand for now: kept, since someone may still point to them
  DataFlow dataFlow;
  SessionOptions userOptions;
  Patterns patterns;
  InputShapeInfo inputShapeInfo;
  std::unique_ptr<Optimizer> optimizer;
  ExecutionMode executionMode = ExecutionMode::Inference;
  std::map<std::string, int> opsets;
  std::set<TensorId> anchors;
  OpId opsCounter{100};
  uint64_t intermediateTensors{0};
  uint64_t subgraphs{0};
  bool prepared = false;
  bool requiresRandomSeed_ = false;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_IR_OPEN
#include <popart/emulation/define.hpp>

#endif
