// Infos of inputs that a model itself leaves open.
#ifndef POPART_INPUTSHAPEINFO_HPP
#define POPART_INPUTSHAPEINFO_HPP

#include <map>
#include <vector>

#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

class InputShapeInfo {
 public:
  IN_LIBRARY void add(TensorId id, const TensorInfo &info) { infos[id] = info; }
  IN_LIBRARY const TensorInfo &get(TensorId id) const {
    const auto found = infos.find(id);
    if (found == infos.end()) throw error("No input shape info for {}", id);
    return found->second;
  }
  IN_LIBRARY bool has(TensorId id) const { return infos.count(id) != 0; }
  IN_LIBRARY std::vector<TensorId> getAllTensorIds() const {
    std::vector<TensorId> out;
    for (const auto &entry : infos) out.push_back(entry.first);
    return out;
  }

 private:
  std::map<TensorId, TensorInfo> infos;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
