// Growing the gradient ops of a graph, by the rules of PopART.
#ifndef POPART_EMULATION_AUTODIFF_HPP
#define POPART_EMULATION_AUTODIFF_HPP

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <popart/graph.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

/// Grows, into `backward`, the gradients of tensors of `forward`. The two may be one graph.
/// - A tensor that several ops on a path to the loss read has the sum of the parts, of which an op may leave some out.
/// - A tensor of which no part comes has no gradient. If it is on a path to the loss, then its producer has no gradient ops at all.
/// - An output that is on no path to the loss gives its gradient op an absent input, which optionalInputs() of that op must allow.
class GradGrower {
 public:
  GradGrower(Graph &forward, Graph &backward, const FwdGraphToBwdGraphInfo &called) : fwd(forward), bwd(backward), calledInfo(called) {}

  /// Starts from `loss`, whose gradient is a constant of `value`.
  void growFromLoss(const TensorId &loss, float value);
  /// Starts from tensors whose gradients are inputs of the backward graph.
  void growFromProvided(const std::vector<TensorId> &provided);

  /// The gradient of a tensor of the forward graph, "" where there is none.
  TensorId gradientOf(const TensorId &fwdId) const {
    const auto found = gradients.find(fwdId);
    return found == gradients.end() ? TensorId() : found->second;
  }
  /// The tensor of the backward graph that stands for one of the forward graph.
  TensorId cloneOf(const TensorId &fwdId) const { return &fwd == &bwd ? fwdId : addScope(bwd, removeScope(fwd, fwdId)); }

 private:
  struct Edges {
    int expected = 0;
    std::vector<TensorId> parts;
    bool done = false;
  };

  void findPaths(const std::vector<TensorId> &losses);
  void growAll();
  void tryTensor(const TensorId &id);
  void growSum(const TensorId &id);
  void gradientArrived(Tensor &tensor);
  void gradientFailed(Tensor &tensor);
  void tryOp(Op &op);
  void growOps(Op &op);
  TensorId inputOf(const Op &grad, Op &op, const GradInOutMapper &mapper);
  void lackGradients(Op &op, const std::vector<Op *> &grads);
  TensorId newGradId(const TensorId &fwdId);

  Graph &fwd;
  Graph &bwd;
  const FwdGraphToBwdGraphInfo &calledInfo;
  std::set<const Op *> opsToLoss;
  std::set<TensorId> tensorsToLoss;
  std::map<TensorId, Edges> edges;
  std::map<TensorId, TensorId> gradients;
  std::map<OpId, std::set<OutIndex>> arrived;  // outputs whose gradient is there
  std::set<OpId> done;
  std::deque<TensorId> readyTensors;
  std::deque<Op *> readyOps;
};

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#endif
