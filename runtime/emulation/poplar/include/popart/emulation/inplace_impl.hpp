// Making ops in-place where nobody can tell the difference.
#ifndef POPART_EMULATION_INPLACE_IMPL_HPP
#define POPART_EMULATION_INPLACE_IMPL_HPP

#include <algorithm>
#include <tuple>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION void Ir::applyInplacePattern(Graph &graph) {
  using Candidate = std::tuple<float, OpId, OperatorIdentifier>;
  std::vector<Candidate> candidates;
  for (const auto &entry : graph.getOps()) {
    const Op &op = *entry.second;
    if (op.settings.excludePatterns.count("InPlace")) continue;
    std::set<OpType> chosen;
    for (const auto &priority : op.settings.inplacePriorityVeto) {
      candidates.emplace_back(std::get<1>(priority), op.id, OperatorIdentifier(Domain::ai_graphcore, std::get<0>(priority), 1));
      chosen.insert(std::get<0>(priority));
    }
    for (const auto &priority : op.inplacePriorityDefault()) {
      if (!chosen.count(std::get<0>(priority).type)) candidates.emplace_back(std::get<1>(priority), op.id, std::get<0>(priority));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) { return std::get<0>(a) > std::get<0>(b); });
  std::set<OpId> done;
  for (const Candidate &candidate : candidates) {
    if (std::get<0>(candidate) <= 0 || done.count(std::get<1>(candidate))) continue;
    if (inplace(*graph.getOp(std::get<1>(candidate)), std::get<2>(candidate))) done.insert(std::get<1>(candidate));
  }
}

/// Replaces `op` by its variant, or leaves everything as it was and says false: a modified input must be neither a constant, a variable,
/// an anchor, an input or an output of a graph nor shared with another tensor, and no op may read it after the variant has run.
POPLAR_EMULATION_FUNCTION bool Ir::inplace(Op &op, const OperatorIdentifier &variant) {
  AliasModel model;
  op.growAliasModel(model);
  const InIndex index = model.input(op.mapInplaceProposal(model, variant));
  Graph &graph = op.getGraph();
  Tensor *target = op.inTensor(index);
  const auto outside = [&](const Tensor *t) {
    return t->isUnmodifiable() || isAnchored(t->id) || graph.hasInputId(t->id) || graph.hasOutputId(t->id);
  };
  const auto shared = [](const Tensor *t) {
    const auto aliasedBy = [t](const Op *o) {
      for (const auto &in : o->input->tensorMap()) {
        for (const auto &out : o->output->tensorMap()) {
          if ((in.second == t || out.second == t) && o->doesAlias(in.first, out.first)) return true;
        }
      }
      return false;
    };
    const std::vector<Op *> readers = t->consumers.getOps();
    return (t->hasProducer() && aliasedBy(t->getProducer())) || std::any_of(readers.begin(), readers.end(), aliasedBy);
  };
  if (target->info.nelms() == 0 || outside(target) || shared(target) || target->consumers.n(&op) != 1) return false;

  std::unique_ptr<Op> made = op.getInplaceVariant(variant);
  if (!made || made->opid != variant)
    throw error("The in-place variant of {} is not the {} that was asked for", op.debugName(), variant);
  Op *replacement = graph.getOp(graph.moveIntoGraph(std::move(made)));
  const std::map<int, TensorId> inputs = op.input->tensorIdMap(), outputs = op.output->tensorIdMap();
  std::map<int, TensorInfo> infos;
  for (const auto &entry : op.output->tensorMap()) infos[entry.first] = entry.second->info;
  const auto connect = [&](Op &from, Op &to) {
    from.disconnectAllInputs();
    from.disconnectAllOutputs();
    for (const auto &entry : inputs) to.connectInTensor(entry.first, entry.second);
    for (const auto &entry : outputs) to.connectOutTensor(entry.first, entry.second);
  };
  connect(op, *replacement);
  replacement->setup();
  for (const auto &entry : replacement->output->tensorMap()) {
    if (entry.second->info != infos[entry.first]) {
      throw error("{} gives output {} the info {}, its out-of-place op {}", replacement->debugName(), entry.first, entry.second->info,
                  infos[entry.first]);
    }
  }
  if (!replacement->modifies() || !replacement->doesAlias()) {
    throw error("{} is an in-place variant that neither modifies an input nor shares one with its output", replacement->debugName());
  }
  bool legal = true;
  for (const auto &entry : replacement->input->tensorMap()) {
    if (replacement->modifiesIndex(entry.first))
      legal = legal && (entry.second == target || !(outside(entry.second) || shared(entry.second)));
  }
  const Op *own = replacement;
  retired.push_back(graph.takeOp(op.id));
  if (legal) {
    // Other readers must come first, and they can where none of them needs what the variant makes.
    try {
      graph.getOpSchedule();
    } catch (const error &) {
      legal = false;
    }
  }
  if (!legal) {
    std::unique_ptr<Op> back = std::move(retired.back());
    retired.pop_back();
    connect(*replacement, *back);
    retired.push_back(graph.takeOp(own->id));
    graph.moveIntoGraph(std::move(back));
  }
  return legal;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
