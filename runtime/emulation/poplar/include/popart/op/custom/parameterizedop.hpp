// An op whose attributes are one struct: the base that custom ops of PopXL derive from.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include <popart/graph.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>

namespace popart {

// `Derived` is the op itself, `Params` the struct of its attributes. `Params` has
//   void appendAttributes(popart::OpSerialiserBase &) const;
//   static Params makeFromAttributes(const popart::Attributes &);
// and `Derived` has
//   static popart::OperatorIdentifier defaultOperatorId();
template <typename Derived, typename Params>
class ParameterizedOp : public Op {
public:
  using ParamsType = Params;

  ParameterizedOp(const OperatorIdentifier &opid, const ParamsType &params, const Op::Settings &settings)
      : Op(opid, settings), m_params(params) {}

  ParameterizedOp(const ParamsType &params, const Op::Settings &settings)
      : Op(Derived::defaultOperatorId(), settings), m_params(params) {}

  // From another op that has the same struct, as the op of the gradient is made from the forward op.
  template <typename Other>
  ParameterizedOp(const OperatorIdentifier &opid, const ParameterizedOp<Other, Params> &other)
      : Op(opid, other.settings), m_params(other.params()) {}

  template <typename Other>
  ParameterizedOp(const ParameterizedOp<Other, Params> &other)
      : Op(Derived::defaultOperatorId(), other.settings), m_params(other.params()) {}

  std::unique_ptr<Op> clone() const override {
    return std::unique_ptr<Op>(new Derived(*static_cast<const Derived *>(this)));
  }

  // The factory that an OpCreator takes.
  static std::unique_ptr<Derived> createOpFromCreatorInfo(const OpCreatorInfo &info) {
    return std::unique_ptr<Derived>(new Derived(info.opid, Params::makeFromAttributes(info.attributes), info.settings));
  }

  static Derived *createOpInGraph(Graph &graph,
                                  const std::map<InIndex, TensorId> &in,
                                  const std::map<OutIndex, TensorId> &out,
                                  const OperatorIdentifier &opid,
                                  const Params &params,
                                  const Op::Settings &settings) {
    return graph.createConnectedOp<Derived>(in, out, opid, params, settings);
  }

  static Derived *createOpInGraph(Graph &graph,
                                  const std::map<InIndex, TensorId> &in,
                                  const std::map<OutIndex, TensorId> &out,
                                  const Params &params,
                                  const Op::Settings &settings) {
    return graph.createConnectedOp<Derived>(in, out, Derived::defaultOperatorId(), params, settings);
  }

  void appendAttributes(OpSerialiserBase &os) const override {
    Op::appendAttributes(os);
    m_params.appendAttributes(os);
  }

  void appendOutlineAttributes(OpSerialiserBase &os) const override {
    Op::appendOutlineAttributes(os);
    m_params.appendAttributes(os);
  }

  float getSubgraphValue() const override { return getHighSubgraphValue(); }

  bool requiresRandomSeed() const override { return false; }

  const Params &params() const { return m_params; }

protected:
  ParamsType m_params;
};

} // namespace popart
