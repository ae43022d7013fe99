// The registry of ops: finding and making them.
#ifndef POPART_EMULATION_OPMANAGER_IMPL_HPP
#define POPART_EMULATION_OPMANAGER_IMPL_HPP

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION Tensor *OpCreatorInfo::getInputTensor(int index) const {
  if (!hasInputTensor(index)) throw error("{} has no input {}", debugName(), index);
  const Graph &graph = settings.graph.get();
  const Tensors &tensors = graph.getTensors();
  return tensors.get(tensors.find(inputIds[static_cast<std::size_t>(index)], settings.scope));
}

POPLAR_EMULATION_FUNCTION bool OpCreatorInfo::hasInputTensor(int index) const {
  const std::size_t at = static_cast<std::size_t>(index);
  return index >= 0 && at < inputIds.size() && !inputIds[at].empty();
}

POPLAR_EMULATION_FUNCTION TensorInfo &OpCreatorInfo::getInputTensorInfo(int index) const { return getInputTensor(index)->info; }
POPLAR_EMULATION_FUNCTION TensorData *OpCreatorInfo::getInputTensorData(int index) const {
  Tensor *tensor = getInputTensor(index);
  if (!tensor->hasTensorData()) throw error("Tensor {} of {} is no constant", tensor->id, debugName());
  return tensor->tensorData();
}

POPLAR_EMULATION_FUNCTION Attributes OpManager::getAttributesFromAnyMap(std::map<std::string, popart::any> attributes) {
  Attributes out;
  for (const auto &entry : attributes) {
    const std::type_info &type = entry.second.type();
    if (type == typeid(Attributes::Int)) {
      Attributes::Int value = any_cast<Attributes::Int>(entry.second);
      out.setAttribute(entry.first, value);
    } else if (type == typeid(Attributes::Ints)) {
      Attributes::Ints value = any_cast<Attributes::Ints>(entry.second);
      out.setAttribute(entry.first, value);
    } else if (type == typeid(Attributes::String)) {
      Attributes::String value = any_cast<Attributes::String>(entry.second);
      out.setAttribute(entry.first, value);
    } else {
      throw error("Unsupported attribute type: {}", type.name());
    }
  }
  return out;
}

POPLAR_EMULATION_FUNCTION const OpManager::OpInfo *OpManager::find(const OpDomain &domain, const OpType &type, int opsetVersion) {
  emulation::registerBuiltinOps();
  const auto found = getInstance().ops.find(std::make_pair(domain.empty() ? OpDomain(Domain::ai_onnx) : domain, type));
  if (found == getInstance().ops.end()) return nullptr;
  auto next = found->second.upper_bound(opsetVersion);
  return next == found->second.begin() ? nullptr : &std::prev(next)->second;
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> OpManager::create(const OpInfo &info, Graph &graph, const std::string &name,
                                                                const Scope &scope, const Attributes &attributes,
                                                                const std::vector<TensorId> &inputIds,
                                                                const std::vector<TensorId> &outputIds) {
  Op::Settings settings(graph, name, scope);
  settings.setFromAttributes(attributes);
  const OpCreatorInfo creator(info.id, settings, attributes, inputIds, outputIds);
  if (!info.simpleFactory) throw error("The op {} can be made inside of a graph only", info.id);
  return info.simpleFactory(creator);
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> OpManager::createOp(const OpDomain &domain, const OpType &type, const int opsetVersion,
                                                                  Graph &graph, const std::string &name, const Scope &scope,
                                                                  const Attributes &attributes, const std::vector<TensorId> &inputIds,
                                                                  const std::vector<TensorId> &outputIds) {
  const OpInfo *info = find(domain, type, opsetVersion);
  return info ? create(*info, graph, name, scope, attributes, inputIds, outputIds) : nullptr;
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> OpManager::createOp(const OperatorIdentifier &opid, Graph &graph, const std::string &name,
                                                                  const Attributes &attributes) {
  return createOpWithInputs(opid, graph, name, attributes, {});
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> OpManager::createOpWithInputs(const OperatorIdentifier &opid, Graph &graph,
                                                                            const std::string &name, const Attributes &attributes,
                                                                            const std::vector<TensorId> &inIds) {
  const OpInfo *info = find(opid.domain, opid.type, static_cast<int>(opid.version));
  if (!info || info->id.version != opid.version) return nullptr;
  return create(*info, graph, name, graph.getScope(), attributes, inIds, {});
}

POPLAR_EMULATION_FUNCTION Op *OpManager::createOpInGraph(const emulation::Node &node, Graph &graph) {
  const OpDomain domain = node.domain.empty() ? OpDomain(Domain::ai_onnx) : node.domain;
  const int version = graph.getIr().getOpSetVersionFromModel(domain);
  const OpInfo *info = find(domain, node.type, version);
  if (!info) throw error("No class for {}.{}:{}", domain, node.type, version);
  const Attributes attributes(node.attributes);
  OpId opId;
  if (info->complexFactory) {
    Op::Settings settings(graph, node.name, graph.getScope());
    settings.setFromAttributes(attributes);
    opId = info->complexFactory(OpCreatorInfo(info->id, settings, attributes, node.inputs, node.outputs), graph)->id;
  } else {
    opId = graph.moveIntoGraph(create(*info, graph, node.name, graph.getScope(), attributes, node.inputs, node.outputs));
  }
  graph.connectInputs(node.inputs, opId);
  graph.connectOutputs(node.outputs, opId);
  Op *op = graph.getOp(opId);
  dropEmptyConstants(*op);
  op->setup();
  return op;
}

/// As PopART does: constants without elements are disconnected, and the inputs after them move up.
POPLAR_EMULATION_FUNCTION void OpManager::dropEmptyConstants(Op &op) {
  std::vector<TensorId> kept;
  for (const auto &entry : op.input->tensorMap()) {
    const bool empty = entry.second->tensorType() == TensorType::Const && entry.second->info.nelms() == 0;
    if (!empty) kept.push_back(entry.second->id);
  }
  if (kept.size() == op.inTensorCount()) return;
  op.disconnectAllInputs();
  for (std::size_t i = 0; i < kept.size(); ++i) op.connectInTensor(static_cast<InIndex>(i), kept[i]);
}

POPLAR_EMULATION_FUNCTION const std::vector<OperatorIdentifier> OpManager::getSupportedOperations(bool includePrivate) {
  std::vector<OperatorIdentifier> out;
  for (const auto &entry : getSupportedOperationsDefinition(includePrivate)) out.push_back(entry.first);
  return out;
}

POPLAR_EMULATION_FUNCTION const OpDefinitions OpManager::getSupportedOperationsDefinition(bool includePrivate) {
  emulation::registerBuiltinOps();
  OpDefinitions out;
  for (const auto &versions : getInstance().ops) {
    for (const auto &version : versions.second) {
      if (version.second.isPublic || includePrivate) out.emplace(version.second.id, version.second.details);
    }
  }
  return out;
}

POPLAR_EMULATION_FUNCTION OpVersion OpManager::getOpVersionFromOpSet(const OpDomain &domain, const OpType &type,
                                                                     const int opsetVersion) {
  const OpInfo *info = find(domain, type, opsetVersion);
  if (!info) throw error("No op version found for {} in opset {} of {}", type, opsetVersion, domain);
  return info->id.version;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
