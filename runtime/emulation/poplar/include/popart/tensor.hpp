// A tensor of a graph: its info, who makes it and who reads it.
#ifndef POPART_TENSOR_HPP
#define POPART_TENSOR_HPP
#define POPART_TENSOR_OPEN

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <popart/debugcontext.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/tensordata.hpp>
#include <popart/tensorinfo.hpp>
#include <popart/vertex.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Graph;
class Ir;
class Op;
class Tensor;

enum class TensorType { ActGrad = 0, Const, Stream, Unknown, Variable, N };

inline std::ostream &operator<<(std::ostream &stream, const TensorType &type) {
  static const char *const names[] = {"ActGrad", "Const", "Stream", "Unknown", "Variable", "N"};
  return stream << names[static_cast<int>(type)];
}

/// The ops that read a tensor, each with how often.
class Consumers {
 public:
  IN_LIBRARY int n(Op *op) const {
    const auto found = counts.find(op);
    return found == counts.end() ? 0 : found->second;
  }
  void increment(Op *op);
  void decrement(Op *op);
  int getTotal() const;
  /// In the order in which they were connected.
  IN_LIBRARY const std::vector<Op *> &getOps() const { return ops; }

 private:
  std::map<Op *, int> counts;
  std::vector<Op *> ops;
};

class Tensor : public Vertex {
 public:
  IN_LIBRARY Tensor(TensorId id_, TensorType type, Graph &graph_, const DebugContext & = {}) : id(std::move(id_)), graph(graph_), type_(type) {}

  TensorId id;
  Consumers consumers;
  TensorInfo info;

  IN_LIBRARY std::string str() const final { return id; }
  /// A tensor of the same info and data, without producer and consumers.
  std::unique_ptr<Tensor> clone(Graph &graph_) const;

  IN_LIBRARY TensorType tensorType() const { return type_; }
  IN_LIBRARY std::string tensor_type() const { return logging::internal::text(type_); }
  IN_LIBRARY void setTensorType(TensorType type) { type_ = type; }

  IN_LIBRARY bool hasProducer() const { return producer != nullptr; }
  IN_LIBRARY Op *getProducerUnsafe() const { return producer; }
  Op *getProducer() const;
  void setProducer(Op *op);
  IN_LIBRARY void resetProducer(Op *op) { producer = op; }

  bool isGraphInput() const;
  InIndex getGraphInputIndex() const;
  bool isGraphOutput() const;
  OutIndex getGraphOutputIndex() const;
  bool isAnchored() const;
  IN_LIBRARY bool isUnmodifiable() const { return type_ == TensorType::Const || type_ == TensorType::Variable; }

  IN_LIBRARY bool hasTensorData() const { return data_ != nullptr; }
  TensorData *tensorData();
  const TensorData *tensorData() const;
  IN_LIBRARY void setTensorData(TensorData data) { data_.reset(new TensorData(std::move(data))); }
  IN_LIBRARY void setTensorDataFromCopyOf(const void *src, std::size_t size) { setTensorData(TensorData::fromCopyOf(src, size)); }

  IN_LIBRARY Graph &getGraph() { return graph; }
  IN_LIBRARY const Graph &getGraph() const { return graph; }
  Ir &getIr();
  const Ir &getIr() const;

 private:
  Graph &graph;
  Op *producer = nullptr;
  TensorType type_;
  std::unique_ptr<TensorData> data_;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_TENSOR_OPEN
#include <popart/emulation/define.hpp>

#endif
