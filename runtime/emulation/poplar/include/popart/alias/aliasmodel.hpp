// What in-place variants tell of the tensors they share: each op that could modify an input has a gate, which a proposal opens.
#ifndef POPART_ALIAS_ALIASMODEL_HPP
#define POPART_ALIAS_ALIASMODEL_HPP
#define POPART_ALIASMODEL_OPEN

#include <map>
#include <vector>

#include <poprithms/memory/inplace/proposal.hpp>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Op;

class AliasModel {
 public:
  using PoprithmsOpId = poprithms::memory::inplace::OpId;

  /// An op of which input 0 could become the memory of output 0.
  IN_LIBRARY void insertUnaryModifier0(const Op &op) { insertUnaryModifier(op, 0); }
  /// The same of input `index`. Raises popart::error where the op lacks the input, or the shapes differ.
  void insertUnaryModifier(const Op &op, InIndex index);
  /// An op of which either of its two inputs could become the memory of its output.
  void insertBinaryModifier(const Op &op);
  void insertNG2aryModifier(const Op &op, unsigned numInputs);

  /// The gate of an op. Raises popart::error where the op has told of none.
  IN_LIBRARY PoprithmsOpId getGate(OpId id) const {
    if (!contains(id)) throw error("The alias model has no gate for the op {}", id);
    return PoprithmsOpId(id);
  }
  IN_LIBRARY bool contains(OpId id) const { return gates.count(id) != 0; }

  /// For the emulation's own use. The input that a proposal is about, in the numbering of the op.
  IN_LIBRARY InIndex input(const poprithms::memory::inplace::Proposal &proposal) const {
    const auto found = gates.find(static_cast<OpId>(proposal.gateId().get()));
    if (found == gates.end()) throw error("The alias model has no gate {}", proposal.gateId().get());
    const auto &inputs = found->second;
    if (proposal.inIndex() < 0 || static_cast<std::size_t>(proposal.inIndex()) >= inputs.size()) {
      throw error("The gate {} has no input {}", proposal.gateId().get(), proposal.inIndex());
    }
    return inputs[static_cast<std::size_t>(proposal.inIndex())];
  }

 private:
  std::map<OpId, std::vector<InIndex>> gates;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_ALIASMODEL_OPEN
#include <popart/emulation/define.hpp>

#endif
