// The builder.
#ifndef POPART_EMULATION_BUILDER_IMPL_HPP
#define POPART_EMULATION_BUILDER_IMPL_HPP

#include <algorithm>

#include <popart/emulation/builtin.hpp>
#include <popart/shapeinference.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

inline TensorValue valueOf(const ConstVoidData &data) {
  const char *const bytes = static_cast<const char *>(data.data);
  return {data.info, std::vector<char>(bytes, bytes + data.info.nbytes())};
}

/// The attribute that a value of C++ becomes. Raises popart::error for a type that ONNX has no attribute for.
inline Attribute attributeOf(const popart::any &value) {
  const std::type_info &type = value.type();
  if (type == typeid(int32_t)) return Attribute(static_cast<int64_t>(any_cast<int32_t>(value)));
  if (type == typeid(uint32_t)) return Attribute(static_cast<int64_t>(any_cast<uint32_t>(value)));
  if (type == typeid(int64_t)) return Attribute(any_cast<int64_t>(value));
  if (type == typeid(uint64_t)) return Attribute(static_cast<int64_t>(any_cast<uint64_t>(value)));
  if (type == typeid(bool)) return Attribute(static_cast<int64_t>(any_cast<bool>(value)));
  if (type == typeid(std::vector<int64_t>)) return Attribute(any_cast<std::vector<int64_t>>(value));
  if (type == typeid(float)) return Attribute(any_cast<float>(value));
  if (type == typeid(std::vector<float>)) return Attribute(any_cast<std::vector<float>>(value));
  if (type == typeid(std::string)) return Attribute(any_cast<std::string>(value));
  if (type == typeid(const char *)) return Attribute(std::string(any_cast<const char *>(value)));
  if (type == typeid(std::vector<std::string>)) return Attribute(any_cast<std::vector<std::string>>(value));
  if (type == typeid(ConstVoidData)) return Attribute(valueOf(any_cast<ConstVoidData>(value)));
  throw error("Unsupported attribute value type {}", type.name());
}

}  // namespace emulation

POPLAR_EMULATION_FUNCTION std::unique_ptr<Builder> Builder::createFromModel(const emulation::Model &model) {
  std::unique_ptr<Builder> out(new Builder());
  out->model_ = model;
  for (const auto &in : model.inputs) out->known_.insert(in.first);
  for (const auto &value : model.initialisers) out->known_.insert(value.first);
  for (const auto &node : model.nodes) out->known_.insert(node.outputs.begin(), node.outputs.end());
  return out;
}

POPLAR_EMULATION_FUNCTION TensorId Builder::nextId(const std::string &name, int output) {
  const std::string base = output < 0 ? name : name + ":" + std::to_string(output);
  TensorId id = base;
  for (int i = 1; known_.count(id); ++i) id = base + sNameDelimiter + std::to_string(i);
  known_.insert(id);
  return id;
}

POPLAR_EMULATION_FUNCTION TensorId Builder::addInputTensor(const TensorInfo &info, const DebugContext &context) {
  const TensorId id = nextId(context.getPathName().empty() ? "input" : context.getPathName());
  model_.inputs.emplace_back(id, info);
  return id;
}

POPLAR_EMULATION_FUNCTION TensorId Builder::addInitializedInputTensor(const ConstVoidData &data, const DebugContext &context) {
  const TensorId id = nextId(context.getPathName().empty() ? "init_input" : context.getPathName());
  model_.initialisers.emplace_back(id, emulation::valueOf(data));
  return id;
}

POPLAR_EMULATION_FUNCTION void Builder::addOutputTensor(const TensorId &id) {
  if (!known_.count(id)) throw error("The tensor '{}' is not known to the builder", id);
  if (std::find(model_.outputs.begin(), model_.outputs.end(), id) == model_.outputs.end()) model_.outputs.push_back(id);
}

POPLAR_EMULATION_FUNCTION std::vector<TensorId> Builder::customOp(const OperatorIdentifier &opid, int opsetVersion,
                                                                  const std::vector<TensorId> &inputs, const unsigned numOutputs,
                                                                  const std::map<std::string, popart::any> &attributes,
                                                                  const DebugContext &context) {
  if (opid.numOutputs != 0 && opid.numOutputs < static_cast<int>(numOutputs)) {
    throw error("{} has an invalid number of outputs {}. Must be between 0..{}", opid.type, numOutputs, opid.numOutputs);
  }
  std::vector<TensorId> outputs;
  for (unsigned i = 0; i < numOutputs; ++i) outputs.push_back(nextId(opid.type, static_cast<int>(i)));
  customOp(opid, opsetVersion, inputs, outputs, attributes, context);
  return outputs;
}

POPLAR_EMULATION_FUNCTION void Builder::customOp(const OperatorIdentifier &opid, int opsetVersion, const std::vector<TensorId> &inputs,
                                                 const std::vector<TensorId> &outputs,
                                                 const std::map<std::string, popart::any> &attributes, const DebugContext &context) {
  const NumInputs &allowed = opid.numInputs;
  const int given = static_cast<int>(inputs.size());
  if (allowed.min > 0 && (given < allowed.min || (allowed.max > 0 && given > allowed.max))) {
    throw error("{} has invalid number of inputs {}. Must be between {}..{}", opid.type, given, allowed.min,
                allowed.max > 0 ? std::to_string(allowed.max) : "inf");
  }
  for (int i = 0; i < given; ++i) {
    const TensorId &input = inputs[static_cast<std::size_t>(i)];
    if (input.empty() && i >= allowed.min) continue;
    if (!known_.count(input)) {
      throw error("Unknown tensor '{}' (valid tensors are {}).", input, logging::join(known_.begin(), known_.end(), ", "));
    }
  }
  const auto opset = model_.opsets.emplace(opid.domain == Domain::ai_onnx ? "" : opid.domain, opsetVersion);
  if (opset.first->second != opsetVersion) {
    throw error("Invalid opset {} used to add an operation. Opset for domain {} already defined as {}", opsetVersion, opid.domain,
                opset.first->second);
  }

  emulation::Node node;
  node.domain = opset.first->first;
  node.type = opid.type;
  node.name = context.getPathName();
  node.inputs = inputs;
  node.outputs = outputs;
  for (const auto &attribute : attributes) node.attributes[attribute.first] = emulation::attributeOf(attribute.second);
  for (const TensorId &output : outputs) known_.insert(output);
  model_.nodes.push_back(node);
  inferShapes(opid, node);
  for (const TensorId &output : outputs) {
    if (!hasValueInfo(output)) unknown_.insert(output);
  }
}

POPLAR_EMULATION_FUNCTION void Builder::inferShapes(const OperatorIdentifier &opid, const emulation::Node &node) {
  std::map<int, TensorInfo> infos;
  const Attributes attributes(node.attributes);
  if (ShapeInferenceFunctions::hasFunction(opid)) {
    // As in PopART, an absent input is an error once a function is registered. One that inference told nothing of is UNDEFINED.
    for (std::size_t i = 0; i < node.inputs.size(); ++i) infos[static_cast<int>(i)] = getTensorInfo(node.inputs[i]);
    ShapeInferenceContext context(infos, attributes, static_cast<int>(node.outputs.size()));
    ShapeInferenceFunctions::getFunction(opid)(context);
    for (const auto &entry : context.getOutputInfos()) {
      const TensorInfo &info = entry.second;
      if (entry.first < 0 || static_cast<std::size_t>(entry.first) >= node.outputs.size()) {
        throw error("The shape inference of {} sets output {} of {}", opid, entry.first, node.outputs.size());
      }
      for (const int64_t size : info.shape()) {
        if (size < 0)
          throw error("Output '{}' of node '{}' has invalid shape, {}.", node.outputs[static_cast<std::size_t>(entry.first)], opid,
                      info);
      }
      model_.values[node.outputs[static_cast<std::size_t>(entry.first)]] = info;
    }
    return;
  }
  // Operators of ONNX itself: as an op would say. A custom op without a function stays unknown.
  if (node.domain != "" && opid.type != "IdentityLoss") return;
  for (const TensorId &input : node.inputs) {
    if (unknown_.count(input) || !hasValueInfo(input)) return;
  }
  if (opid.type == "Constant") {
    model_.values[node.outputs[0]] = node.attributes.at("value").t.info;
    return;
  }
  Ir ir;
  ir.setOpsets(model_.opsets);
  for (const TensorId &input : node.inputs) {
    if (!ir.containsTensor(input)) ir.getMainGraph().getTensors().addStream(input, getTensorInfo(input));
  }
  const Op *op = ir.getMainGraph().growFromNode(node);
  for (const auto &entry : op->output->tensorMap()) model_.values[entry.second->id] = entry.second->info;
}

POPLAR_EMULATION_FUNCTION emulation::Node &Builder::nodeOf(const std::set<TensorId> &outputs) {
  for (emulation::Node &node : model_.nodes) {
    if (std::set<TensorId>(node.outputs.begin(), node.outputs.end()) == outputs) return node;
  }
  throw error("Could not find a node with outputs {}", logging::join(outputs.begin(), outputs.end(), ", "));
}

POPLAR_EMULATION_FUNCTION void Builder::addNodeAttribute(const std::string &name, const popart::any &value,
                                                         const std::set<TensorId> &outputs) {
  if (!nodeOf(outputs).attributes.emplace(name, emulation::attributeOf(value)).second) {
    throw error("Node already has attribute {}.", name);
  }
}

POPLAR_EMULATION_FUNCTION bool Builder::nodeHasAttribute(const std::string &name, const std::set<TensorId> &outputs) {
  return nodeOf(outputs).attributes.count(name) != 0;
}

POPLAR_EMULATION_FUNCTION void Builder::setInplacePreferences(const TensorId &output, const std::map<OpType, float> &preferences) {
  std::vector<std::string> names;
  std::vector<float> priorities;
  for (const auto &preference : preferences) {
    names.push_back(preference.first);
    priorities.push_back(preference.second);
  }
  addNodeAttribute(sInplaceOpNames, names, {output});
  addNodeAttribute(sInplaceOpPriorities, priorities, {output});
}

POPLAR_EMULATION_FUNCTION std::vector<TensorId> Builder::getInputTensorIds() const {
  std::vector<TensorId> out;
  for (const auto &in : model_.inputs) out.push_back(in.first);
  return out;
}

POPLAR_EMULATION_FUNCTION std::vector<TensorId> Builder::getTrainableTensorIds() const {
  std::vector<TensorId> out;
  for (const auto &value : model_.initialisers) out.push_back(value.first);
  return out;
}

POPLAR_EMULATION_FUNCTION bool Builder::isInitializer(const TensorId &id) const {
  const std::vector<TensorId> ids = getTrainableTensorIds();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

POPLAR_EMULATION_FUNCTION TensorInfo Builder::getTensorInfo(const TensorId &id) const {
  for (const auto &in : model_.inputs) {
    if (in.first == id) return in.second;
  }
  for (const auto &value : model_.initialisers) {
    if (value.first == id) return value.second.info;
  }
  const auto found = model_.values.find(id);
  if (found != model_.values.end()) return found->second;
  if (unknown_.count(id)) return {DataType::UNDEFINED, {}};
  throw error("{} is not an known tensor. Must be one of (inputs:{}) (outputs:{})", id,
              logging::join(known_.begin(), known_.end(), ", "), logging::join(model_.outputs.begin(), model_.outputs.end(), ", "));
}

POPLAR_EMULATION_FUNCTION bool Builder::hasValueInfo(const TensorId &id) const {
  const auto input = [&id](const std::pair<std::string, TensorInfo> &in) { return in.first == id; };
  return std::any_of(model_.inputs.begin(), model_.inputs.end(), input) || isInitializer(id) || model_.values.count(id) != 0 ||
         unknown_.count(id) != 0;
}

POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::op(const char *type, int since, const std::vector<TensorId> &args,
                                                   const std::map<std::string, popart::any> &attributes) {
  const OperatorIdentifier opid(Domain::ai_onnx, type, static_cast<OpVersion>(since));
  return builder_.customOp(opid, version_, args, 1, attributes)[0];
}

POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::constant(const ConstVoidData &value, const std::string &) {
  return op("Constant", 1, {}, {{"value", value}});
}
POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::identity(const std::vector<TensorId> &args, const std::string &) {
  return op("Identity", 1, args, {});
}
POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::add(const std::vector<TensorId> &args, const std::string &) {
  return op("Add", 6, args, {});
}
POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::mul(const std::vector<TensorId> &args, const std::string &) {
  return op("Mul", 6, args, {});
}
POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::sum(const std::vector<TensorId> &args, const std::string &) {
  return op("Sum", 6, args, {});
}

POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::reducesum(const std::vector<TensorId> &args,
                                                          const nonstd::optional<std::vector<int64_t>> &axes, int64_t keepdims,
                                                          const std::string &) {
  std::map<std::string, popart::any> attributes{{"keepdims", keepdims}};
  if (axes) attributes["axes"] = *axes;
  return op("ReduceSum", 1, args, attributes);
}

POPLAR_EMULATION_FUNCTION TensorId AiOnnxOpset::cast(const std::vector<TensorId> &args, const std::string &to, const std::string &) {
  return op("Cast", 6, args, {{"to", to}});
}

POPLAR_EMULATION_FUNCTION TensorId AiGraphcoreOpset1::identityloss(const std::vector<TensorId> &args, const ReductionType reduction,
                                                                   const std::string &) {
  return builder_.customOp(emulation::graphcore("IdentityLoss", 1), 1, args, 1, {{"reduction", static_cast<int64_t>(reduction)}})[0];
}

}  // namespace popart
#pragma GCC visibility pop

#endif
