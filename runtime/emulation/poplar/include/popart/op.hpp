// An operation of a graph: what every op, a custom one too, derives from.
#ifndef POPART_OP_HPP
#define POPART_OP_HPP
#define POPART_OP_OPEN

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <poprithms/memory/inplace/proposal.hpp>

#include <popart/attributes.hpp>
#include <popart/basicoptionals.hpp>
#include <popart/bwdgraphinfo.hpp>
#include <popart/debugcontext.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/region.hpp>
#include <popart/scope.hpp>
#include <popart/tensorindex.hpp>
#include <popart/tensorinfo.hpp>
#include <popart/vertex.hpp>

#pragma GCC visibility push(default)
namespace popart {

class AliasModel;
class Graph;
class Ir;
class OpSerialiserBase;
class Tensor;

enum class RecomputeType { Undefined = 0, Checkpoint, Recompute, Recomputed };
enum class ExecutionContext {
  Normal = 0,
  AccumulateOuterFragment,
  WeightsFromHostFragment,
  WeightsToHostFragment,
  OptimizerFromHostFragment,
  Subgraph
};
enum class ReductionType { Sum = 0, Mean, NoReduction, N };
enum class TileSet { Compute = 0, IO, Undefined, N };

inline std::ostream &operator<<(std::ostream &stream, const RecomputeType &type) {
  static const char *const names[] = {"Undefined", "Checkpoint", "Recompute", "Recomputed"};
  return stream << names[static_cast<int>(type)];
}
inline std::ostream &operator<<(std::ostream &stream, const ReductionType &type) {
  static const char *const names[] = {"Sum", "Mean", "NoReduction", "N"};
  return stream << names[static_cast<int>(type)];
}

/// What an input of a gradient op is: an input or an output of the op it differentiates, or the gradient of an output.
enum class GradOpInType { In = 0, Out, GradOut };

class GradInOutMapper {
 public:
  IN_LIBRARY GradInOutMapper(InIndex iGrad_, int iNonGrad_, GradOpInType type_) : iGrad(iGrad_), iNonGrad(iNonGrad_), type(type_) {}

  InIndex iGrad;
  int iNonGrad;
  GradOpInType type;

  IN_LIBRARY bool operator==(const GradInOutMapper &rhs) const { return iGrad == rhs.iGrad && iNonGrad == rhs.iNonGrad && type == rhs.type; }
};

class Op : public Vertex {
 public:
  struct Settings {
    IN_LIBRARY Settings(Graph &graph_, const std::string &name_) : graph(graph_), name(name_) {}
    IN_LIBRARY Settings(Graph &graph_, const std::string &name_, const Scope &scope_) : graph(graph_), name(name_), scope(scope_) {}
    IN_LIBRARY Settings(Graph &graph_, const std::string &name_, const Scope &scope_, uint64_t parentId_)
        : graph(graph_), name(name_), scope(scope_), debugInfoId(parentId_) {}
    IN_LIBRARY Settings(Graph &graph_, const std::string &name_, uint64_t parentId_) : graph(graph_), name(name_), debugInfoId(parentId_) {}
    IN_LIBRARY Settings(const Settings &) = default;
    IN_LIBRARY virtual ~Settings() = default;

    IN_LIBRARY Settings copy(const std::string &new_name) {
      Settings out = *this;
      out.name = new_name;
      return out;
    }

    std::reference_wrapper<Graph> graph;
    std::string name = "";
    Scope scope;
    RecomputeType recomputeType = RecomputeType::Undefined;
    std::vector<std::tuple<std::string, float>> inplacePriorityVeto;
    std::unordered_set<std::string> excludePatterns;
    OptionalVGraphId vgraphId;
    OptionalPipelineStage pipelineStage;
    OptionalExecutionPhase executionPhase;
    OptionalBatchSerializedPhase batchSerializedPhase;
    TileSet tileSet{TileSet::Compute};
    ExecutionContext executionContext{ExecutionContext::Normal};
    std::map<InIndex, InIndex> inferTensorMappingToFrom;
    double schedulePriority{0.0};
    std::map<std::string, std::string> extraOutlineAttributes;
    uint64_t debugInfoId{0};
    bool optimizerOp{false};
    bool gradientClippingOp{false};

    virtual void setFromAttributes(const Attributes &attributes);
    Ir &getIr() const;
  };

  Op(const OperatorIdentifier &_opid, const Op::Settings &settings);
  /// A copy has an id of its own, and neither inputs nor outputs.
  Op(const Op &);
  Op &operator=(const Op &) = delete;
  IN_LIBRARY virtual ~Op() = default;

  std::unique_ptr<TensorIndexMap> input;
  std::unique_ptr<TensorIndexMap> output;
  OpId id{-1};
  OperatorIdentifier opid;
  bool pruneable = true;
  Settings settings;

  IN_LIBRARY Settings &getSettings() { return settings; }
  IN_LIBRARY const Settings &getSettings() const { return settings; }
  IN_LIBRARY virtual Settings getInSettings(InIndex) const { return settings; }
  IN_LIBRARY virtual Settings getOutSettings(OutIndex) const { return settings; }

  Ir &getIr();
  const Ir &getIr() const;
  IN_LIBRARY Graph &getGraph() { return settings.graph.get(); }
  IN_LIBRARY const Graph &getGraph() const { return settings.graph.get(); }
  IN_LIBRARY const Scope &getScope() const { return settings.scope; }
  IN_LIBRARY void setScope(const Scope &scope) { settings.scope = scope; }
  IN_LIBRARY const std::string &getName() const { return settings.name; }
  IN_LIBRARY const std::string &name() const { return settings.name; }
  IN_LIBRARY void setName(const std::string &new_name) { settings.name = new_name; }
  std::string str() const final;
  std::string debugName() const;
  IN_LIBRARY DebugInfo getDebugInfo() const { return DebugInfo(DebugContext(debugName()), "popart"); }

  IN_LIBRARY const OptionalVGraphId getOptionalVGraphId() const { return settings.vgraphId; }
  IN_LIBRARY bool hasVirtualGraphId() const { return static_cast<bool>(settings.vgraphId); }
  IN_LIBRARY VGraphId getVirtualGraphId() const { return *settings.vgraphId; }
  IN_LIBRARY void setVirtualGraphId(const OptionalVGraphId vgid) { settings.vgraphId = vgid; }
  IN_LIBRARY bool hasPipelineStage() const { return static_cast<bool>(settings.pipelineStage); }
  IN_LIBRARY bool hasExecutionPhase() const { return static_cast<bool>(settings.executionPhase); }

  // Connections. Indices that are taken, and tensors that do not exist, raise popart::internal_error or popart::error.
  IN_LIBRARY virtual std::set<InIndex> optionalInputs() const { return {}; }
  void defaultConnectInTensor(InIndex index, TensorId id);
  virtual void connectInTensor(InIndex index, TensorId id);
  virtual void connectInTensor(InIndex index, TensorId id, VGraphId vgid);
  IN_LIBRARY void connectInTensorDispatch(InIndex index, TensorId id) { connectInTensor(index, id, unusedVGraphId); }
  void connectOutTensor(OutIndex index, TensorId id);
  void createAndConnectOutTensor(OutIndex index, TensorId id);
  void disconnectInTensor(Tensor *tensor);
  virtual void disconnectInTensor(InIndex index, Tensor *tensor);
  void disconnectInTensor(InIndex index);
  void disconnectOutTensor(Tensor *tensor);
  void disconnectAllInputs();
  void disconnectAllOutputs();

  IN_LIBRARY bool hasInput(InIndex index) const { return input->hasIndex(index); }
  IN_LIBRARY bool hasOutput(OutIndex index) const { return output->hasIndex(index); }
  IN_LIBRARY Tensor *inTensor(InIndex index) { return input->tensor(index); }
  IN_LIBRARY const Tensor *inTensor(InIndex index) const { return const_cast<const TensorIndexMap &>(*input).tensor(index); }
  IN_LIBRARY Tensor *outTensor(OutIndex index) { return output->tensor(index); }
  IN_LIBRARY const Tensor *outTensor(OutIndex index) const { return const_cast<const TensorIndexMap &>(*output).tensor(index); }
  IN_LIBRARY TensorId inId(InIndex index) { return input->id(index); }
  IN_LIBRARY const TensorId inId(InIndex index) const { return input->id(index); }
  IN_LIBRARY TensorId outId(OutIndex index) { return output->id(index); }
  IN_LIBRARY const TensorId outId(OutIndex index) const { return output->id(index); }
  TensorInfo &inInfo(InIndex index);
  const TensorInfo &inInfo(InIndex index) const;
  TensorInfo &outInfo(OutIndex index);
  const TensorInfo &outInfo(OutIndex index) const;
  IN_LIBRARY const Shape &inShape(InIndex index) const { return inInfo(index).shape(); }
  IN_LIBRARY const Shape &outShape(OutIndex index) const { return outInfo(index).shape(); }
  IN_LIBRARY Rank inRank(InIndex index) const { return inInfo(index).rank(); }
  IN_LIBRARY Rank outRank(OutIndex index) const { return outInfo(index).rank(); }
  IN_LIBRARY std::size_t inTensorCount() const { return static_cast<std::size_t>(input->n()); }
  IN_LIBRARY std::size_t outTensorCount() const { return static_cast<std::size_t>(output->n()); }
  IN_LIBRARY InIndex inIndex(Tensor *tensor) const { return input->indices(tensor).at(0); }
  IN_LIBRARY OutIndex outIndex(Tensor *tensor) const { return output->indices(tensor).at(0); }

  /// Sets the info of every output. Raises popart::error where an op does not say how.
  virtual void setup();
  virtual std::unique_ptr<Op> clone() const = 0;

  // Gradients.
  virtual std::vector<std::unique_ptr<Op>> getGradOps();
  virtual const std::vector<GradInOutMapper> &gradInputInfo() const;
  virtual const std::map<int, int> &gradOutToNonGradIn() const;
  virtual int getNonGradInIndex(int gradOpOutIndex) const;
  IN_LIBRARY virtual void setCalledSubgraphGradInfo(const FwdGraphToBwdGraphInfo &) {}

  // In-place variants.
  IN_LIBRARY virtual std::vector<std::tuple<OperatorIdentifier, float>> inplacePriorityDefault() const { return {}; }
  virtual std::unique_ptr<Op> getInplaceVariant(const OperatorIdentifier &) const;
  virtual void growAliasModel(AliasModel &aliasModel) const;
  virtual poprithms::memory::inplace::Proposal mapInplaceProposal(const AliasModel &aliasModel, OperatorIdentifier) const;
  virtual view::Regions modifies(InIndex) const;
  virtual view::Regions uses(InIndex) const;
  virtual view::Regions aliases(InIndex, OutIndex) const;
  virtual view::RegMap fwdRegMap(InIndex, OutIndex) const;
  virtual view::RegMap bwdRegMap(InIndex, OutIndex) const;
  bool doesAlias() const;
  IN_LIBRARY bool doesAlias(InIndex inIndex, OutIndex outIndex) const { return view::nonEmptyRegion(aliases(inIndex, outIndex)); }
  IN_LIBRARY bool isOutplace() const { return !doesAlias(); }
  bool modifies() const;
  IN_LIBRARY bool modifiesIndex(InIndex index) const { return view::regionsModified(modifies(index)); }
  bool modifiesTensor(Tensor *tensor) const;

  // What an op says of itself.
  virtual void appendAttributes(OpSerialiserBase &) const;
  virtual void appendOutlineAttributes(OpSerialiserBase &) const;
  virtual void appendMore(OpSerialiserBase &) const;
  void append(std::stringstream &stream) const;
  /// Text that two ops have in common only where one may be run in place of the other.
  std::string getSubgraphEquivId() const;
  virtual float getSubgraphValue() const = 0;
  IN_LIBRARY float getHighSubgraphValue() const { return 1000.0f; }
  IN_LIBRARY float getLowSubgraphValue() const { return 0.1f; }
  IN_LIBRARY virtual bool isOutlineable() const { return true; }
  IN_LIBRARY virtual bool hasSideEffect() const { return false; }
  IN_LIBRARY virtual bool canRecompute() const { return true; }
  IN_LIBRARY virtual bool isNorm() const { return false; }
  IN_LIBRARY virtual bool canBeReplacedByIdentity() const { return false; }
  IN_LIBRARY virtual bool isLossOp() const { return false; }
  IN_LIBRARY virtual bool isIpuCopyOp() const { return false; }
  IN_LIBRARY virtual bool isOptimizerOp() const { return settings.optimizerOp; }
  IN_LIBRARY virtual bool isInplaceViewChange() const { return false; }
  IN_LIBRARY virtual bool isOutplaceViewChange() const { return false; }
  IN_LIBRARY virtual bool canShard() const { return false; }
  IN_LIBRARY virtual int getInBatchAxis(InIndex) const { return 0; }
  IN_LIBRARY virtual int getOutBatchAxis(OutIndex) const { return 0; }
  IN_LIBRARY virtual bool requiresRandomSeed() const { return false; }
  virtual InIndex getSeedInIndex() const;
  IN_LIBRARY virtual std::vector<const Graph *> getCalledGraphs() const { return {}; }
  IN_LIBRARY virtual ReplicatedTensorShardingIndices getReplicatedTensorShardingIndices() const { return {}; }

  IN_LIBRARY Shape prettyNpOut(const Shape &s0, const Shape &s1) const { return npOut(s0, s1, "Op " + str()); }
  IN_LIBRARY TensorInfo prettyNpOut(const TensorInfo &i0, const TensorInfo &i1, bool checkDataType = true) const {
    return npOut(i0, i1, checkDataType, "Op " + str());
  }

  template <typename T>
  bool isConvertibleTo() const {
    return dynamic_cast<const T *>(this) != nullptr;
  }

 protected:
  void growAliasModelMulti(AliasModel &) const {}
  virtual poprithms::memory::inplace::Proposal mapInplaceProposalGate0(const AliasModel &aliasModel, OperatorIdentifier) const;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_OP_OPEN
#include <popart/emulation/define.hpp>

#endif
