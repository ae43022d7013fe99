// Ops: connections, and the defaults of their virtual methods.
#ifndef POPART_EMULATION_OP_IMPL_HPP
#define POPART_EMULATION_OP_IMPL_HPP

#include <algorithm>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION Op::Op(const OperatorIdentifier &_opid, const Op::Settings &settings_)
    : input(new TensorIndexMap),
      output(new TensorIndexMap),
      id(settings_.getIr().getAndIncrOpsCounter()),
      opid(_opid),
      settings(settings_) {}

POPLAR_EMULATION_FUNCTION Op::Op(const Op &op)
    : Vertex(op),
      input(new TensorIndexMap),
      output(new TensorIndexMap),
      id(op.settings.getIr().getAndIncrOpsCounter()),
      opid(op.opid),
      pruneable(op.pruneable),
      settings(op.settings) {}

POPLAR_EMULATION_FUNCTION Ir &Op::Settings::getIr() const { return graph.get().getIr(); }
POPLAR_EMULATION_FUNCTION Ir &Op::getIr() { return getGraph().getIr(); }
POPLAR_EMULATION_FUNCTION const Ir &Op::getIr() const { return getGraph().getIr(); }

POPLAR_EMULATION_FUNCTION void Op::Settings::setFromAttributes(const Attributes &attributes) {
  if (attributes.hasAttribute(sVirtualGraphAttribute)) vgraphId = attributes.getAttribute<Attributes::Int>(sVirtualGraphAttribute);
  if (attributes.hasAttribute(sPipelineStageAttribute))
    pipelineStage = attributes.getAttribute<Attributes::Int>(sPipelineStageAttribute);
  if (attributes.hasAttribute(sRecomputeOutputAttribute)) {
    recomputeType = static_cast<RecomputeType>(attributes.getAttribute<Attributes::Int>(sRecomputeOutputAttribute));
  }
  if (attributes.hasAttribute(sExcludePatternsAttribute)) {
    for (const auto &name : attributes.getAttribute<Attributes::Strings>(sExcludePatternsAttribute)) excludePatterns.insert(name);
  }
  if (attributes.hasAttribute(sInplaceOpNames)) {
    const auto names = attributes.getAttribute<Attributes::Strings>(sInplaceOpNames);
    const auto priorities = attributes.getAttribute<Attributes::Floats>(sInplaceOpPriorities);
    if (names.size() != priorities.size())
      throw error("Expected as many inplace priorities as names, not {} and {}", priorities.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) inplacePriorityVeto.emplace_back(names[i], priorities[i]);
  }
}

POPLAR_EMULATION_FUNCTION std::string Op::str() const {
  return std::to_string(id) + " (" + logging::internal::text(opid) + ")" + (name().empty() ? "" : " '" + name() + "'");
}

POPLAR_EMULATION_FUNCTION std::string Op::debugName() const {
  const auto ids = [](const TensorIndexMap &map) {
    std::vector<TensorId> out;
    for (const auto &entry : map.tensorMap()) out.push_back(entry.second->id);
    return logging::join(out.begin(), out.end(), ", ");
  };
  return "Op(" + (name().empty() ? std::to_string(id) : name() + sNameDelimiter + std::to_string(id)) + ", " +
         logging::internal::text(opid) + ", inputs=[" + ids(*input) + "], outputs=[" + ids(*output) + "])";
}

POPLAR_EMULATION_FUNCTION void Op::defaultConnectInTensor(InIndex index, TensorId tensorId) {
  if (input->hasIndex(index)) {
    throw internal_error("error connecting input tensor '{}', {} already has an input at index {}", tensorId, debugName(), index);
  }
  Tensor *tensor = getGraph().getTensors().get(tensorId);
  input->insert(index, tensor);
  tensor->consumers.increment(this);
}

POPLAR_EMULATION_FUNCTION void Op::connectInTensor(InIndex index, TensorId tensorId) { defaultConnectInTensor(index, tensorId); }
POPLAR_EMULATION_FUNCTION void Op::connectInTensor(InIndex index, TensorId tensorId, VGraphId) { connectInTensor(index, tensorId); }

POPLAR_EMULATION_FUNCTION void Op::connectOutTensor(OutIndex index, TensorId tensorId) {
  if (output->hasIndex(index)) {
    throw internal_error("error connecting output tensor '{}', {} already has an output at index {}", tensorId, debugName(), index);
  }
  Tensor *tensor = getGraph().getTensors().get(tensorId);
  if (tensor->hasProducer())
    throw internal_error("error connecting output tensor '{}' to {}, tensor already has a producer", tensorId, debugName());
  output->insert(index, tensor);
  tensor->setProducer(this);
}

POPLAR_EMULATION_FUNCTION void Op::createAndConnectOutTensor(OutIndex index, TensorId tensorId) {
  if (output->hasIndex(index)) {
    throw internal_error("error connecting output tensor '{}', {} already has an output at index {}", tensorId, debugName(), index);
  }
  if (tensorId.find(getScope().str()) == std::string::npos) tensorId = (getScope() / tensorId).str();
  getGraph().getTensors().addActGrad(tensorId);
  connectOutTensor(index, tensorId);
}

POPLAR_EMULATION_FUNCTION void Op::disconnectInTensor(Tensor *tensor) {
  for (const int index : input->indices(tensor)) disconnectInTensor(index, tensor);
}

POPLAR_EMULATION_FUNCTION void Op::disconnectInTensor(InIndex index, Tensor *tensor) {
  if (inTensor(index) != tensor) {
    throw internal_error("error disconnecting input tensor '{}', tensor is not input {} of {}", tensor->id, index, debugName());
  }
  tensor->consumers.decrement(this);
  input->erase(index);
}

POPLAR_EMULATION_FUNCTION void Op::disconnectInTensor(InIndex index) { disconnectInTensor(index, inTensor(index)); }

POPLAR_EMULATION_FUNCTION void Op::disconnectOutTensor(Tensor *tensor) {
  for (const int index : output->indices(tensor)) {
    if (tensor->getProducerUnsafe() != this) throw internal_error("error disconnecting output, tensor is not produced by this op");
    tensor->resetProducer(nullptr);
    output->erase(index);
  }
}

POPLAR_EMULATION_FUNCTION void Op::disconnectAllInputs() {
  for (Tensor *tensor : input->tensors()) disconnectInTensor(tensor);
}

POPLAR_EMULATION_FUNCTION void Op::disconnectAllOutputs() {
  for (Tensor *tensor : output->tensors()) disconnectOutTensor(tensor);
}

POPLAR_EMULATION_FUNCTION TensorInfo &Op::inInfo(InIndex index) { return inTensor(index)->info; }
POPLAR_EMULATION_FUNCTION const TensorInfo &Op::inInfo(InIndex index) const { return inTensor(index)->info; }
POPLAR_EMULATION_FUNCTION TensorInfo &Op::outInfo(OutIndex index) { return outTensor(index)->info; }
POPLAR_EMULATION_FUNCTION const TensorInfo &Op::outInfo(OutIndex index) const { return outTensor(index)->info; }

POPLAR_EMULATION_FUNCTION void Op::setup() { throw error("No setup() for {}", opid); }
POPLAR_EMULATION_FUNCTION std::vector<std::unique_ptr<Op>> Op::getGradOps() { return {}; }
POPLAR_EMULATION_FUNCTION const std::vector<GradInOutMapper> &Op::gradInputInfo() const {
  throw error("Op {} cannot get `grad input info'", opid);
}
POPLAR_EMULATION_FUNCTION const std::map<int, int> &Op::gradOutToNonGradIn() const {
  throw error("Op {} cannot get `grad out to non grad in'", opid);
}
POPLAR_EMULATION_FUNCTION int Op::getNonGradInIndex(int gradOpOutIndex) const {
  const auto found = gradOutToNonGradIn().find(gradOpOutIndex);
  if (found == gradOutToNonGradIn().end())
    throw error("Op {} does not say of what its output {} is the gradient", opid, gradOpOutIndex);
  return found->second;
}
POPLAR_EMULATION_FUNCTION InIndex Op::getSeedInIndex() const { throw error("Op {} does not have random seed input tensor", str()); }

POPLAR_EMULATION_FUNCTION std::unique_ptr<Op> Op::getInplaceVariant(const OperatorIdentifier &variant) const {
  throw error("Op {} cannot return inplace variant {} ", opid, variant);
}

POPLAR_EMULATION_FUNCTION void Op::growAliasModel(AliasModel &) const {
  if (doesAlias()) throw error("Ops which alias must implement growAliasModel, this for {} ", str());
  if (!inplacePriorityDefault().empty()) throw error("Ops with inplace variants must implement growAliasModel, this for {} ", str());
}

POPLAR_EMULATION_FUNCTION poprithms::memory::inplace::Proposal Op::mapInplaceProposal(const AliasModel &, OperatorIdentifier) const {
  throw error("Ops with inplace variants must implement mapInplaceProposal, this for {} ", str());
}

POPLAR_EMULATION_FUNCTION poprithms::memory::inplace::Proposal Op::mapInplaceProposalGate0(const AliasModel &model,
                                                                                           OperatorIdentifier) const {
  if (!isOutplace())
    throw error("Inplacing logic error: Ops which are not outplace should never set Proposals. This for Op {}. ", str());
  return {model.getGate(id), 0};
}

POPLAR_EMULATION_FUNCTION view::Regions Op::modifies(InIndex index) const { return {view::Region::getEmpty(inRank(index))}; }
POPLAR_EMULATION_FUNCTION view::Regions Op::uses(InIndex index) const { return {view::Region::getFull(inShape(index))}; }
POPLAR_EMULATION_FUNCTION view::Regions Op::aliases(InIndex in, OutIndex) const { return {view::Region::getEmpty(inRank(in))}; }

POPLAR_EMULATION_FUNCTION view::RegMap Op::fwdRegMap(InIndex in, OutIndex out) const {
  if (inShape(in) != outShape(out)) throw error("default fwdRegMap not valid : should be specialised for {}", str());
  return [](const view::Region &region) { return view::Regions{region}; };
}
POPLAR_EMULATION_FUNCTION view::RegMap Op::bwdRegMap(InIndex in, OutIndex out) const {
  if (inShape(in) != outShape(out)) throw error("default bwdRegMap not valid : should be specialised for {}", str());
  return [](const view::Region &region) { return view::Regions{region}; };
}

POPLAR_EMULATION_FUNCTION bool Op::doesAlias() const {
  for (const auto &in : input->tensorMap()) {
    for (const auto &out : output->tensorMap()) {
      if (doesAlias(in.first, out.first)) return true;
    }
  }
  return false;
}

POPLAR_EMULATION_FUNCTION bool Op::modifies() const {
  for (const auto &in : input->tensorMap()) {
    if (modifiesIndex(in.first)) return true;
  }
  return false;
}

POPLAR_EMULATION_FUNCTION bool Op::modifiesTensor(Tensor *tensor) const {
  for (const int index : input->indices(tensor)) {
    if (modifiesIndex(index)) return true;
  }
  return false;
}

POPLAR_EMULATION_FUNCTION void Op::appendAttributes(OpSerialiserBase &os) const {
  appendOutlineAttributes(os);
  os.appendAttribute(sExecutionPhaseAttribute, settings.executionPhase);
  os.appendAttribute(sExecutionContextAttribute, static_cast<int64_t>(settings.executionContext));
  os.appendAttribute(sPipelineStageAttribute, settings.pipelineStage);
  os.appendAttribute("scope", getScope());
  os.appendAttribute("recomputetype", settings.recomputeType);
}

POPLAR_EMULATION_FUNCTION void Op::appendOutlineAttributes(OpSerialiserBase &os) const {
  os.appendAttribute("recompute", std::string(settings.recomputeType == RecomputeType::Recompute ? "YES" : "NO"));
  os.appendAttribute(sVirtualGraphAttribute, getOptionalVGraphId());
  os.appendAttribute("tileSet", static_cast<int64_t>(settings.tileSet));
  for (const auto &attribute : settings.extraOutlineAttributes)
    os.appendAttribute(attribute.first, attribute.first + ":" + attribute.second);
}

POPLAR_EMULATION_FUNCTION void Op::appendMore(OpSerialiserBase &os) const {
  os.appendAttribute("schedulePriority", static_cast<float>(settings.schedulePriority));
}

POPLAR_EMULATION_FUNCTION void Op::append(std::stringstream &stream) const {
  OpSerialiser os(this, stream);
  appendAttributes(os);
  appendMore(os);
}

POPLAR_EMULATION_FUNCTION std::string Op::getSubgraphEquivId() const {
  if (!isOutlineable()) return str() + "_uid_" + std::to_string(id);
  OpEquivIdCreator os(this);
  appendOutlineAttributes(os);
  return os.str();
}

POPLAR_EMULATION_FUNCTION void emulation::TextSerialiser::appendForwardOp(const Op *op) { op->appendAttributes(*this); }

POPLAR_EMULATION_FUNCTION OpSerialiser::OpSerialiser(const Op *op, std::stringstream &stream) : stream_(stream) {
  stream_ << "\nOp " << op->debugName() << " of type " << op->opid << "\n    attributes\n";
}

POPLAR_EMULATION_FUNCTION OpEquivIdCreator::OpEquivIdCreator(const Op *op) {
  stream_ << op->opid.domain << "::" << op->opid.type << "::" << op->opid.version << "_";
  for (const TensorIndexMap *map : {op->input.get(), op->output.get()}) {
    for (const auto &entry : map->tensorMap()) stream_ << entry.first << entry.second->info << ",";
    stream_ << "_";
  }
}

POPLAR_EMULATION_FUNCTION void AliasModel::insertUnaryModifier(const Op &op, InIndex index) {
  if (!op.hasInput(index)) throw error("The alias model is told of input {} of {}, which it lacks", index, op.str());
  if (op.inShape(index) != op.outShape(0)) {
    throw error("Input {} of {} can't become the memory of its output: their shapes differ", index, op.str());
  }
  gates[op.id] = {index};
}

POPLAR_EMULATION_FUNCTION void AliasModel::insertBinaryModifier(const Op &op) { insertNG2aryModifier(op, 2); }

POPLAR_EMULATION_FUNCTION void AliasModel::insertNG2aryModifier(const Op &op, unsigned numInputs) {
  std::vector<InIndex> inputs;
  for (unsigned i = 0; i < numInputs; ++i) inputs.push_back(static_cast<InIndex>(i));
  gates[op.id] = inputs;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
