// Proposal of an in-place change: which gate of the alias model is opened, and at which input.
#ifndef POPRITHMS_MEMORY_INPLACE_PROPOSAL_HPP
#define POPRITHMS_MEMORY_INPLACE_PROPOSAL_HPP

#include <cstdint>

#pragma GCC visibility push(default)
namespace poprithms {
namespace memory {
namespace inplace {

using InIndex = int64_t;

class OpId {
 public:
  OpId(int64_t id) : id_(id) {}
  int64_t get() const { return id_; }
  bool operator==(const OpId &other) const { return id_ == other.id_; }

 private:
  int64_t id_;
};

class Proposal {
 public:
  Proposal(OpId gate, InIndex input) : gate_(gate), input_(input) {}
  OpId gateId() const { return gate_; }
  InIndex inIndex() const { return input_; }

 private:
  OpId gate_;
  InIndex input_;
};

}  // namespace inplace
}  // namespace memory
}  // namespace poprithms
#pragma GCC visibility pop

#endif
