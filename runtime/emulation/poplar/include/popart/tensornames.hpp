// Names that PopART makes itself.
#ifndef POPART_TENSORNAMES_HPP
#define POPART_TENSORNAMES_HPP

#include <string>

#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

constexpr const char *reservedGradientPrefix() { return "Gradient___"; }
constexpr const char *reservedUpdatedVarPrefix() { return "UpdatedVar___"; }
constexpr const char *reservedRandomSeedPrefix() { return "RandomSeed___"; }

inline TensorId getGradId(const TensorId &id) { return reservedGradientPrefix() + id; }

/// Name of the part of a gradient that comes through input `index` of op `id`.
inline TensorId getEdgeGradId(OpId id, InIndex index) { return getGradId(std::to_string(id) + "_" + std::to_string(index)); }

inline bool isGradId(const TensorId &id) { return id.rfind(reservedGradientPrefix(), 0) == 0; }

inline TensorId getNonGradId(const TensorId &id) { return id.substr(std::string(reservedGradientPrefix()).size()); }

}  // namespace popart
#pragma GCC visibility pop

#endif
