// How many batches a step has, and what of which tensors comes back to the host.
#ifndef POPART_DATAFLOW_HPP
#define POPART_DATAFLOW_HPP

#include <map>
#include <string>
#include <vector>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class AnchorReturnTypeId { Final = 0, EveryN, All, Sum };

/// "FINAL" (the last batch), "ALL", "SUM" (over the batches) or "EVERYN" with its period.
class AnchorReturnType {
 public:
  IN_LIBRARY AnchorReturnType() : AnchorReturnType("ALL") {}
  IN_LIBRARY AnchorReturnType(std::string text) : artStr_(text), artId_(parse(text)), returnPeriod_(1) {
    if (artId_ == AnchorReturnTypeId::EveryN) throw error("Must specify return period with option 'EVERYN'");
  }
  IN_LIBRARY AnchorReturnType(std::string text, int returnPeriod) : artStr_(text), artId_(parse(text)), returnPeriod_(returnPeriod) {
    if (artId_ != AnchorReturnTypeId::EveryN) throw error("A return period should not be supplied for this anchor return type");
    if (returnPeriod <= 0) throw error("Anchor return period must be greater than zero");
  }

  IN_LIBRARY AnchorReturnTypeId id() const { return artId_; }
  IN_LIBRARY int rp() const {
    if (artId_ != AnchorReturnTypeId::EveryN) throw error("A return period should not be supplied for this anchor return type");
    return returnPeriod_;
  }
  IN_LIBRARY const std::string &str() const { return artStr_; }

 private:
  IN_LIBRARY static AnchorReturnTypeId parse(std::string text) {
    for (char &c : text) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    if (text == "FINAL") return AnchorReturnTypeId::Final;
    if (text == "EVERYN") return AnchorReturnTypeId::EveryN;
    if (text == "ALL") return AnchorReturnTypeId::All;
    if (text == "SUM") return AnchorReturnTypeId::Sum;
    throw error("Invalid anchor return type ID supplied: {}", text);
  }

  std::string artStr_;
  AnchorReturnTypeId artId_;
  int returnPeriod_;
};

using AnchorReturnTypeMap = std::map<TensorId, AnchorReturnType>;

class DataFlow {
 public:
  IN_LIBRARY DataFlow() : DataFlow(0) {}
  IN_LIBRARY explicit DataFlow(int batchesPerStep) : batchesPerStep_(batchesPerStep) {}
  IN_LIBRARY DataFlow(int batchesPerStep, const AnchorReturnTypeMap &anchors) : batchesPerStep_(batchesPerStep), m_anchors(anchors) {
    for (const auto &anchor : anchors) add(anchor.first, anchor.second);
  }
  IN_LIBRARY DataFlow(int batchesPerStep, const std::vector<TensorId> &anchors, const AnchorReturnType &type = AnchorReturnType("ALL"))
      : batchesPerStep_(batchesPerStep) {
    for (const auto &anchor : anchors) {
      m_anchors[anchor] = type;
      add(anchor, type);
    }
  }

  IN_LIBRARY bool isAnchored(const TensorId &id) const { return m_anchors.count(id) != 0; }
  IN_LIBRARY const std::vector<TensorId> &anchors() const { return v_anchors; }
  IN_LIBRARY int nAnchors() const { return static_cast<int>(v_anchors.size()); }
  IN_LIBRARY int batchesPerStep() const { return batchesPerStep_; }
  IN_LIBRARY void setBatchesPerStep(int batchesPerStep) { batchesPerStep_ = batchesPerStep; }
  IN_LIBRARY AnchorReturnType art(const TensorId &id) const {
    const auto found = m_anchors.find(id);
    if (found == m_anchors.end()) throw error("Tensor {} is not an anchor tensor", id);
    return found->second;
  }
  IN_LIBRARY const AnchorReturnTypeMap &getAnchorReturnTypeMap() const { return m_anchors; }

 private:
  IN_LIBRARY void add(const TensorId &id, const AnchorReturnType &type) {
    v_anchors.push_back(id);
    if (type.id() != AnchorReturnTypeId::EveryN) return;
    if (type.rp() <= 0 || type.rp() > batchesPerStep_ || batchesPerStep_ % type.rp() != 0) {
      throw error("Return period for tensor {} must divide batchesPerStep {}, and be at most it", id, batchesPerStep_);
    }
  }

  int batchesPerStep_;
  AnchorReturnTypeMap m_anchors;
  std::vector<TensorId> v_anchors;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
