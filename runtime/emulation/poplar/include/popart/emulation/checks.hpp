// A step of a program that sees whether an op changed what it should only read.
#ifndef POPART_EMULATION_CHECKS_HPP
#define POPART_EMULATION_CHECKS_HPP

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poplar/Program.hpp>

#include <popart/error.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

/// The bytes of tensors as they were before an op ran.
struct Snapshot {
  std::string op;
  std::vector<std::pair<int, poplar::Tensor>> inputs;
  std::vector<std::vector<char>> bytes;

  static std::vector<char> read(const poplar::detail::Runtime &runtime, const poplar::Tensor &tensor) {
    std::vector<char> out(tensor.numElements() * tensor.elementType().bytes());
    runtime.load(tensor, out.data());
    return out;
  }
};

struct SnapshotNode : poplar::detail::Node {
  std::shared_ptr<Snapshot> snapshot;
  void run(poplar::detail::Runtime &runtime) const override {
    snapshot->bytes.clear();
    for (const auto &input : snapshot->inputs) snapshot->bytes.push_back(Snapshot::read(runtime, input.second));
  }
};

struct UnchangedNode : poplar::detail::Node {
  std::shared_ptr<Snapshot> snapshot;
  void run(poplar::detail::Runtime &runtime) const override {
    for (std::size_t i = 0; i < snapshot->inputs.size(); ++i) {
      if (Snapshot::read(runtime, snapshot->inputs[i].second) == snapshot->bytes[i]) continue;
      throw error("{} modified its input {}, which it does not say it modifies", snapshot->op, snapshot->inputs[i].first);
    }
  }
};

/// The program of an op, `body`, with a check around it that the inputs are as before.
inline poplar::program::Sequence checkUnchanged(const std::string &op, std::vector<std::pair<int, poplar::Tensor>> inputs,
                                                const poplar::program::Sequence &body) {
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->op = op;
  snapshot->inputs = std::move(inputs);
  const auto before = std::make_shared<SnapshotNode>();
  const auto after = std::make_shared<UnchangedNode>();
  before->snapshot = after->snapshot = snapshot;
  poplar::program::Sequence out;
  out.add(poplar::program::Program(before));
  out.add(body);
  out.add(poplar::program::Program(after));
  return out;
}

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#endif
