// The tensors at the inputs, or at the outputs, of an op.
#ifndef POPART_TENSORINDEX_HPP
#define POPART_TENSORINDEX_HPP
#define POPART_TENSORINDEX_OPEN

#include <map>
#include <string>
#include <vector>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Tensor;
class TensorInfo;

class TensorIndexMap {
 public:
  void insert(int index, Tensor *tensor);
  IN_LIBRARY void reset(int index, Tensor *tensor) { tensor_map.at(index) = tensor; }
  IN_LIBRARY void erase(int index) { tensor_map.erase(index); }
  IN_LIBRARY void clear() { tensor_map.clear(); }

  IN_LIBRARY bool contains(Tensor *tensor) const { return !indices(tensor).empty(); }
  IN_LIBRARY bool hasIndex(int index) const { return tensor_map.count(index) != 0; }
  /// The tensor at `index`. Raises popart::error where there is none.
  Tensor *tensor(int index);
  const Tensor *tensor(int index) const;
  TensorId id(int index) const;
  std::vector<int> indices(Tensor *tensor) const;
  IN_LIBRARY const std::map<int, Tensor *> &tensorMap() const { return tensor_map; }
  std::map<int, TensorId> tensorIdMap() const;
  std::vector<Tensor *> tensors() const;
  IN_LIBRARY int n() const { return static_cast<int>(tensor_map.size()); }
  void setInfoIfIndex(const TensorInfo &info, int index);
  IN_LIBRARY int minIndex() const { return tensor_map.empty() ? -1 : tensor_map.begin()->first; }
  IN_LIBRARY int maxIndex() const { return tensor_map.empty() ? -1 : tensor_map.rbegin()->first; }

 private:
  std::map<int, Tensor *> tensor_map;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_TENSORINDEX_OPEN
#include <popart/emulation/define.hpp>

#endif
