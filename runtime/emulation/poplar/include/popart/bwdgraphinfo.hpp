// What a backward graph wants and gives, in terms of the tensors of its forward graph.
#ifndef POPART_BWDGRAPHINFO_HPP
#define POPART_BWDGRAPHINFO_HPP

#include <map>
#include <vector>

#include <popart/graphid.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class ExpectedConnectionType {
  Fwd = 0,  // the tensor itself
  FwdGrad   // the gradient with respect to it
};

struct ExpectedConnection {
  TensorId fwdId;
  ExpectedConnectionType type;

  IN_LIBRARY bool operator==(const ExpectedConnection &other) const { return fwdId == other.fwdId && type == other.type; }
};

using ExpectedConnections = std::vector<ExpectedConnection>;

struct BwdGraphInfo {
  GraphId bwdGraphId;
  ExpectedConnections expectedInputs;
  ExpectedConnections expectedOutputs;
};

using FwdGraphToBwdGraphInfo = std::map<GraphId, BwdGraphInfo>;

}  // namespace popart
#pragma GCC visibility pop

#endif
