// A box of a tensor: lower bounds included, upper ones not.
#ifndef POPART_REGION_HPP
#define POPART_REGION_HPP

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <vector>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace view {

enum class AccessType { None = 0, Read = 1, Write = 2, ReadWrite = 3, N = 4 };

class Region {
 public:
  IN_LIBRARY Region(const std::vector<int64_t> &lower_, const std::vector<int64_t> &upper_) : Region(lower_, upper_, AccessType::None) {}
  IN_LIBRARY Region(const std::vector<int64_t> &lower_, const std::vector<int64_t> &upper_, const AccessType accessType_)
      : lower(lower_), upper(upper_), accessType(accessType_) {
    if (lower.size() != upper.size()) throw error("A region's bounds differ in rank: {} and {}", lower.size(), upper.size());
    for (std::size_t i = 0; i < lower.size(); ++i) {
      if (lower[i] > upper[i]) throw error("A region's lower bound {} is above its upper bound {}", lower[i], upper[i]);
    }
  }

  IN_LIBRARY static Region getEmpty(int64_t rank) {
    const std::vector<int64_t> zeros(static_cast<std::size_t>(rank), 0);
    Region out(zeros, zeros);
    out.isEmptyRank0 = rank == 0;
    return out;
  }
  IN_LIBRARY static Region getFull(const Shape &shape, AccessType accessType = AccessType::ReadWrite) {
    return {std::vector<int64_t>(shape.size(), 0), shape, accessType};
  }

  IN_LIBRARY int64_t rank() const { return static_cast<int64_t>(lower.size()); }
  IN_LIBRARY int64_t nelms() const {
    int64_t n = isEmptyRank0 ? 0 : 1;
    for (std::size_t i = 0; i < lower.size(); ++i) n *= upper[i] - lower[i];
    return n;
  }
  IN_LIBRARY bool isEmpty() const { return nelms() == 0; }
  IN_LIBRARY Region intersect(const Region &other) const {
    if (rank() != other.rank()) throw error("Cannot intersect regions of ranks {} and {}", rank(), other.rank());
    if (isEmptyRank0 || other.isEmptyRank0) return getEmpty(0);
    Region out = *this;
    for (std::size_t i = 0; i < lower.size(); ++i) {
      out.lower[i] = std::max(lower[i], other.lower[i]);
      out.upper[i] = std::max(out.lower[i], std::min(upper[i], other.upper[i]));
    }
    return out;
  }
  IN_LIBRARY bool contains(const Region &other) const { return intersect(other).nelms() == other.nelms(); }

  IN_LIBRARY bool operator==(const Region &o) const { return lower == o.lower && upper == o.upper && isEmptyRank0 == o.isEmptyRank0; }
  IN_LIBRARY bool operator!=(const Region &other) const { return !(*this == other); }

  IN_LIBRARY const std::vector<int64_t> &getLower() const { return lower; }
  IN_LIBRARY const std::vector<int64_t> &getUpper() const { return upper; }
  IN_LIBRARY AccessType getAccessType() const { return accessType; }
  IN_LIBRARY void setAccessType(AccessType type) { accessType = type; }

 private:
  std::vector<int64_t> lower;
  std::vector<int64_t> upper;
  bool isEmptyRank0{false};
  AccessType accessType{AccessType::None};
};

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const Region &r) {
  const auto &l = r.getLower(), &u = r.getUpper();
  return stream << "L:[" << logging::join(l.begin(), l.end(), " ") << "] U:[" << logging::join(u.begin(), u.end(), " ") << "]";
}

IN_LIBRARY bool nonEmptyRegion(const Regions &regions) {
  return std::any_of(regions.begin(), regions.end(), [](const Region &r) { return !r.isEmpty(); });
}

/// Whether any of `regions` is written.
IN_LIBRARY bool regionsModified(const Regions &regions) {
  return std::any_of(regions.begin(), regions.end(),
                     [](const Region &r) { return !r.isEmpty() && r.getAccessType() != AccessType::Read; });
}

}  // namespace view
}  // namespace popart
#pragma GCC visibility pop

#endif
