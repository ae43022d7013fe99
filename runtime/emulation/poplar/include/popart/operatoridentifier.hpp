// Domain, type and version of an operator, and how many inputs it takes.
#ifndef POPART_OPERATORIDENTIFIER_HPP
#define POPART_OPERATORIDENTIFIER_HPP

#include <ostream>
#include <string>
#include <tuple>

#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

namespace Domain {
constexpr const char *ai_onnx = "ai.onnx";
constexpr const char *ai_onnx_ml = "ai.onnx.ml";
constexpr const char *ai_graphcore = "ai.graphcore";
}  // namespace Domain

/// Least and most inputs; a `max` of 0 or less means no upper bound, a `min` of 0 that nothing is checked.
struct NumInputs {
  int min;
  int max;

  IN_LIBRARY NumInputs() : min(0), max(0) {}
  IN_LIBRARY NumInputs(int f) : min(f), max(f) {}
  IN_LIBRARY NumInputs(int _min, int _max) : min(_min), max(_max) {}
};

struct OperatorIdentifier {
  IN_LIBRARY OperatorIdentifier(const OpDomain &_domain, const OpType &_type, OpVersion _version, NumInputs inputs = {}, int outputs = 0)
      : domain(_domain.empty() ? OpDomain(Domain::ai_onnx) : _domain),
        type(_type),
        version(_version),
        numInputs(inputs),
        numOutputs(outputs) {}

  /// For the emulation's own use.
  IN_LIBRARY OperatorIdentifier(const OperatorIdentifier &) = default;
  /// For the emulation's own use.
  IN_LIBRARY OperatorIdentifier &operator=(const OperatorIdentifier &) = default;
  /// For the emulation's own use.
  IN_LIBRARY ~OperatorIdentifier() = default;

  OpDomain domain;
  OpType type;
  OpVersion version;

  NumInputs numInputs;
  int numOutputs;

  IN_LIBRARY bool operator==(const OperatorIdentifier &rhs) const { return domain == rhs.domain && type == rhs.type && version == rhs.version; }
  IN_LIBRARY bool operator!=(const OperatorIdentifier &rhs) const { return !(*this == rhs); }
  IN_LIBRARY bool operator<(const OperatorIdentifier &rhs) const {
    return std::tie(domain, type, version) < std::tie(rhs.domain, rhs.type, rhs.version);
  }
};

struct OperatorIdentifierLess {
  IN_LIBRARY bool operator()(const OperatorIdentifier &lhs, const OperatorIdentifier &rhs) const { return lhs < rhs; }
};

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const OperatorIdentifier &opid) {
  return stream << opid.domain << "." << opid.type << ":" << opid.version;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
