// The registry of ops: who makes an op of a given identifier.
#ifndef POPART_OPMANAGER_HPP
#define POPART_OPMANAGER_HPP
#define POPART_OPMANAGER_OPEN

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/tensordata.hpp>
#include <popart/tensorinfo.hpp>
#include <popart/vendored/any.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Graph;
class Tensor;

/// What an op is said to support. As in PopART nothing of it is enforced.
class OpDefinition {
 public:
  struct Input {
    std::string name;
    std::vector<DataType> supportedTensors;
    bool constant;
    IN_LIBRARY Input(std::string n, std::vector<DataType> t, bool _constant = false) : name(n), supportedTensors(t), constant(_constant) {}
  };
  struct Output {
    std::string name;
    std::vector<DataType> supportedTensors;
    IN_LIBRARY Output(std::string n, std::vector<DataType> t) : name(n), supportedTensors(t) {}
  };
  struct Attribute {
    std::string supportedValuesRegex;
    IN_LIBRARY Attribute(std::string regex) : supportedValuesRegex(regex) {}
  };

  using DataTypes = std::vector<DataType>;
  using Inputs = std::vector<Input>;
  using Outputs = std::vector<Output>;
  using Attributes = std::map<std::string, Attribute>;

  IN_LIBRARY OpDefinition() = default;
  IN_LIBRARY OpDefinition(Inputs i, Outputs o, Attributes a) : inputs(i), outputs(o), attributes(a) {}

  /// For the emulation's own use.
  IN_LIBRARY OpDefinition(const OpDefinition &) = default;
  /// For the emulation's own use.
  IN_LIBRARY OpDefinition &operator=(const OpDefinition &) = default;
  /// For the emulation's own use.
  IN_LIBRARY ~OpDefinition() = default;

  Inputs inputs;
  Outputs outputs;
  Attributes attributes;
};

using OpDefinitions = std::map<OperatorIdentifier, OpDefinition, OperatorIdentifierLess>;

class OpCreatorInfo {
 public:
  IN_LIBRARY OpCreatorInfo(const OperatorIdentifier &_opid, const Op::Settings &_settings, const Attributes &_attributes,
                const std::vector<TensorId> &_inputIds, const std::vector<TensorId> &_outputIds)
      : opid(_opid), settings(_settings), attributes(_attributes), inputIds(_inputIds), outputIds(_outputIds) {}

  const OperatorIdentifier &opid;
  const Op::Settings &settings;
  const Attributes &attributes;

  IN_LIBRARY bool hasInputIds() const { return !inputIds.empty(); }
  IN_LIBRARY bool hasOutputIds() const { return !outputIds.empty(); }
  IN_LIBRARY const std::vector<TensorId> &getInputIds() const { return inputIds; }
  IN_LIBRARY const std::vector<TensorId> &getOutputIds() const { return outputIds; }
  bool hasInputTensor(int index) const;
  Tensor *getInputTensor(int index) const;
  TensorInfo &getInputTensorInfo(int index) const;
  TensorData *getInputTensorData(int index) const;
  IN_LIBRARY std::string debugName() const { return logging::format("Op(id:{}, name:{})", opid, settings.name); }

  /// The values of a constant input of rank 0 or 1. Raises popart::error where it is none of type T.
  template <typename T>
  std::vector<T> getInputData(int index) const {
    const TensorInfo &info = getInputTensorInfo(index);
    if (info.rank() > 1) throw error("Can only return data for rank 0 or rank 1 tensors. Tensor is of rank {}", info.rank());
    if (getDataType<T>() != info.dataType()) {
      throw error("Trying to get data as incorrect type. Trying to get data as {} but it is of type {}", getDataType<T>(),
                  info.dataType());
    }
    return getInputTensorData(index)->template copyDataAs<T>(static_cast<int>(info.nelms()));
  }
  template <typename T>
  T getInputScalarValue(int index) const {
    const std::vector<T> values = getInputData<T>(index);
    if (values.size() != 1) throw error("Expected input at index {} to has a shape of [1]. It has shape [{}]", index, values.size());
    return values[0];
  }
  template <typename T>
  T getInputScalarValue(int index, T defaultValue) const {
    return hasInputTensor(index) ? getInputScalarValue<T>(index) : defaultValue;
  }

 private:
  const std::vector<TensorId> &inputIds;
  const std::vector<TensorId> &outputIds;
};

class OpManager {
 public:
  using OpFactoryFunc = std::function<std::unique_ptr<Op>(const OpCreatorInfo &)>;
  using ComplexOpFactoryFunc = std::function<Op *(const OpCreatorInfo &, Graph &graph)>;

  struct OpInfo {
    IN_LIBRARY OpInfo(const OperatorIdentifier &id_, bool isPublic_, const OpDefinition &details_, OpFactoryFunc f)
        : isPublic(isPublic_), id(id_), details(details_), simpleFactory(f) {}
    IN_LIBRARY OpInfo(const OperatorIdentifier &id_, bool isPublic_, const OpDefinition &details_, ComplexOpFactoryFunc f)
        : isPublic(isPublic_), id(id_), details(details_), complexFactory(f) {}

    bool isPublic;
    OperatorIdentifier id;
    OpDefinition details;
    OpFactoryFunc simpleFactory;
    ComplexOpFactoryFunc complexFactory;
  };

  IN_LIBRARY static void registerOp(const OpInfo &info) {
    // As in PopART the first registration stays.
    getInstance().ops[std::make_pair(info.id.domain, info.id.type)].emplace(static_cast<int>(info.id.version), info);
  }

  /// For the emulation's own use.
  IN_LIBRARY static void registerOps(const OpDefinitions &definitions, const OpFactoryFunc &func, bool isPublic) {
    for (const auto &entry : definitions) registerOp({entry.first, isPublic, entry.second, func});
  }
  /// For the emulation's own use.
  IN_LIBRARY static void registerOps(const OpDefinitions &definitions, const ComplexOpFactoryFunc &func, bool isPublic) {
    for (const auto &entry : definitions) registerOp({entry.first, isPublic, entry.second, func});
  }

  /// Values of Int, Ints and String; anything else raises popart::error, Float too.
  static Attributes getAttributesFromAnyMap(std::map<std::string, popart::any> attributes);

  /// An op of the highest version up to that of the opset; nothing where none is registered.
  static std::unique_ptr<Op> createOp(const OpDomain &domain, const OpType &type, const int opsetVersion, Graph &graph,
                                      const std::string &name = "", const Scope &scope = {}, const Attributes &attributes = {},
                                      const std::vector<TensorId> &inputIds = {}, const std::vector<TensorId> &outputIds = {});
  static std::unique_ptr<Op> createOp(const OperatorIdentifier &opid, Graph &graph, const std::string &name = "",
                                      const Attributes &attributes = {});
  static std::unique_ptr<Op> createOpWithInputs(const OperatorIdentifier &opid, Graph &graph, const std::string &name,
                                                const Attributes &attributes, const std::vector<TensorId> &inIds);
  /// For the emulation's own use. The op of a node of a model, connected and set up. Raises popart::error where it is unknown, or its inputs are not there.
  static Op *createOpInGraph(const emulation::Node &node, Graph &graph);

  static const std::vector<OperatorIdentifier> getSupportedOperations(bool includePrivate);
  static const OpDefinitions getSupportedOperationsDefinition(bool includePrivate);
  /// The version of an op in an opset. Raises popart::error where it has none.
  static OpVersion getOpVersionFromOpSet(const OpDomain &domain, const OpType &type, const int opsetVersion);

 private:
  using Versions = std::map<int, OpInfo>;

  // Always inline, so that it is one for the process whichever library was compiled how.
  static OpManager &getInstance() {
    static OpManager instance;
    return instance;
  }
  static const OpInfo *find(const OpDomain &domain, const OpType &type, int opsetVersion);
  static std::unique_ptr<Op> create(const OpInfo &info, Graph &graph, const std::string &name, const Scope &scope,
                                    const Attributes &attributes, const std::vector<TensorId> &inputIds,
                                    const std::vector<TensorId> &outputIds);

  static void dropEmptyConstants(Op &op);

  std::map<std::pair<OpDomain, OpType>, Versions> ops;
};

template <class OP>
class OpCreator {
 public:
  OpCreator(const OpDefinitions &opDefinitions, bool isPublic = true) {
    OpManager::registerOps(opDefinitions, OpManager::OpFactoryFunc(&OpCreator::make), isPublic);
  }
  OpCreator(const OpDefinitions &opDefinitions, OpManager::OpFactoryFunc func, bool isPublic = true) {
    OpManager::registerOps(opDefinitions, func, isPublic);
  }
  OpCreator(const OpDefinitions &opDefinitions, OpManager::ComplexOpFactoryFunc func, bool isPublic = true) {
    OpManager::registerOps(opDefinitions, func, isPublic);
  }

 private:
  static std::unique_ptr<Op> make(const OpCreatorInfo &info) { return std::unique_ptr<Op>(new OP(info.opid, info.settings)); }
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_OPMANAGER_OPEN
#include <popart/emulation/define.hpp>

#endif
