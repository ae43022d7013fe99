// Builds a model, node by node.
#ifndef POPART_BUILDER_HPP
#define POPART_BUILDER_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <popart/debugcontext.hpp>
#include <popart/emulation/model.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/tensorinfo.hpp>
#include <popart/vendored/any.hpp>
#include <popart/vendored/optional.hpp>
#include <popart/voiddata.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Builder;

/// For the emulation's own use. The operators of ai.onnx that the emulation has, in the versions of opsets 6 to 11.
class AiOnnxOpset {
 public:
  IN_LIBRARY AiOnnxOpset(Builder &builder, int version) : builder_(builder), version_(version) {}

  TensorId constant(const ConstVoidData &value, const std::string &name = "");
  TensorId identity(const std::vector<TensorId> &args, const std::string &name = "");
  TensorId add(const std::vector<TensorId> &args, const std::string &name = "");
  TensorId mul(const std::vector<TensorId> &args, const std::string &name = "");
  TensorId sum(const std::vector<TensorId> &args, const std::string &name = "");
  TensorId reducesum(const std::vector<TensorId> &args, const nonstd::optional<std::vector<int64_t>> &axes = nonstd::nullopt,
                     int64_t keepdims = 1, const std::string &name = "");
  TensorId cast(const std::vector<TensorId> &args, const std::string &to, const std::string &name = "");

 private:
  TensorId op(const char *type, int since, const std::vector<TensorId> &args, const std::map<std::string, popart::any> &attributes);

  Builder &builder_;
  int version_;
};

/// The operators of ai.graphcore that the emulation has.
class AiGraphcoreOpset1 {
 public:
  IN_LIBRARY explicit AiGraphcoreOpset1(Builder &builder) : builder_(builder) {}

  TensorId identityloss(const std::vector<TensorId> &args, const ReductionType reduction = ReductionType::Mean,
                        const std::string &name = "");

 private:
  Builder &builder_;
};

class Builder {
 public:
  IN_LIBRARY static std::unique_ptr<Builder> create() { return std::unique_ptr<Builder>(new Builder()); }
  /// For the emulation's own use.
  static std::unique_ptr<Builder> createFromModel(const emulation::Model &model);

  TensorId addInputTensor(const TensorInfo &info, const DebugContext &context = {});
  IN_LIBRARY TensorId addInputTensor(const std::string &dataType, const Shape &shape, const DebugContext &context = {}) {
    return addInputTensor(TensorInfo(dataType, shape), context);
  }
  /// A variable: an input with a value of its own.
  TensorId addInitializedInputTensor(const ConstVoidData &data, const DebugContext &context = {});
  void addOutputTensor(const TensorId &id);

  IN_LIBRARY AiOnnxOpset aiOnnxOpset6() { return AiOnnxOpset(*this, 6); }
  IN_LIBRARY AiOnnxOpset aiOnnxOpset7() { return AiOnnxOpset(*this, 7); }
  IN_LIBRARY AiOnnxOpset aiOnnxOpset8() { return AiOnnxOpset(*this, 8); }
  IN_LIBRARY AiOnnxOpset aiOnnxOpset9() { return AiOnnxOpset(*this, 9); }
  IN_LIBRARY AiOnnxOpset aiOnnxOpset10() { return AiOnnxOpset(*this, 10); }
  IN_LIBRARY AiOnnxOpset aiOnnxOpset11() { return AiOnnxOpset(*this, 11); }
  IN_LIBRARY AiGraphcoreOpset1 aiGraphcoreOpset1() { return AiGraphcoreOpset1(*this); }

  /// Adds a node. Raises popart::error for a number of inputs or outputs outside of the identifier's, for inputs that are unknown or absent
  /// below the least number, for a second version of a domain's opset, and for an attribute of no kind that ONNX has.
  std::vector<TensorId> customOp(const OperatorIdentifier &opid, int opsetVersion, const std::vector<TensorId> &inputs,
                                 const unsigned numOutputs, const std::map<std::string, popart::any> &attributes,
                                 const DebugContext &context = {});
  void customOp(const OperatorIdentifier &opid, int opsetVersion, const std::vector<TensorId> &inputs,
                const std::vector<TensorId> &outputs, const std::map<std::string, popart::any> &attributes,
                const DebugContext &context = {});

  void addNodeAttribute(const std::string &name, const popart::any &value, const std::set<TensorId> &nodeOutputNames);
  bool nodeHasAttribute(const std::string &name, const std::set<TensorId> &nodeOutputNames);
  IN_LIBRARY void excludePatterns(const TensorId &nodeOutputName, const std::vector<std::string> &patterns) {
    addNodeAttribute(sExcludePatternsAttribute, patterns, {nodeOutputName});
  }
  void setInplacePreferences(const TensorId &nodeOutputName, const std::map<OpType, float> &preferences);

  /// The model as bytes that a session takes. In Python it is an ONNX file's.
  IN_LIBRARY std::string getModelProto() const { return model_.serialise(); }
  /// For the emulation's own use.
  IN_LIBRARY const emulation::Model &getModel() const { return model_; }

  std::vector<TensorId> getInputTensorIds() const;
  IN_LIBRARY std::vector<TensorId> getOutputTensorIds() const { return model_.outputs; }
  std::vector<TensorId> getTrainableTensorIds() const;
  bool hasValueInfo(const TensorId &id) const;
  bool isInitializer(const TensorId &id) const;
  /// For the emulation's own use. Info of an input, or of an output that shape inference reached. Raises popart::error for any other tensor.
  TensorInfo getTensorInfo(const TensorId &id) const;
  IN_LIBRARY std::vector<int64_t> getTensorShape(const TensorId id) const { return getTensorInfo(id).shape(); }
  IN_LIBRARY std::string getTensorDtypeString(const TensorId id) const { return getTensorInfo(id).data_type_lcase(); }
  IN_LIBRARY DataType getTensorDataType(const TensorId id) const { return getTensorInfo(id).dataType(); }
  IN_LIBRARY void setGraphName(const std::string &) {}

 private:
  Builder() = default;
  TensorId nextId(const std::string &name, int output = -1);
  void inferShapes(const OperatorIdentifier &opid, const emulation::Node &node);
  emulation::Node &nodeOf(const std::set<TensorId> &outputs);

  emulation::Model model_;
  std::set<TensorId> known_;    // every tensor that a node may read
  std::set<TensorId> unknown_;  // of these, the outputs of which inference told nothing
};

}  // namespace popart
#pragma GCC visibility pop

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popart/emulation/builder_impl.hpp>
#endif

#endif
