// The tensors of a graph, by name.
#ifndef POPART_TENSORS_HPP
#define POPART_TENSORS_HPP
#define POPART_TENSORS_OPEN

#include <map>
#include <memory>
#include <vector>

#include <popart/debugcontext.hpp>
#include <popart/tensor.hpp>
#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Graph;
class Scope;

class Tensors {
 public:
  IN_LIBRARY explicit Tensors(Graph &graph_) : graph(graph_) {}

  /// The tensor of that name. Raises popart::error where there is none.
  Tensor *get(TensorId id) const;
  IN_LIBRARY void remove(TensorId id) { tensors.erase(id); }
  IN_LIBRARY bool contains(TensorId id) const { return tensors.count(id) != 0; }
  IN_LIBRARY std::size_t n() const { return tensors.size(); }

  /// The name under which `id` is found in `scope`, or in one around it.
  TensorId find(TensorId id, const Scope &scope) const;
  bool contains(TensorId id, const Scope &scope) const;

  void addVarInit(const TensorId &id, const TensorInfo &info, const void *src, const DebugContext & = {});
  void addConstInit(const TensorId &id, const TensorInfo &info, const void *src, const DebugContext & = {});
  void addStream(TensorId id, const TensorInfo &info, const DebugContext & = {});
  void addActGrad(TensorId id, const DebugContext & = {});
  TensorId moveIntoTensors(std::unique_ptr<Tensor> tensor);

  std::vector<TensorId> getIds(TensorType type) const;
  std::vector<Tensor *> getAll() const;
  std::vector<Tensor *> getOfType(TensorType type) const;
  std::vector<TensorId> getAllTensorIds() const;

 private:
  Tensor *insert(const TensorId &id, TensorType type);

  std::map<TensorId, std::unique_ptr<Tensor>> tensors;
  Graph &graph;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_TENSORS_OPEN
#include <popart/emulation/define.hpp>

#endif
