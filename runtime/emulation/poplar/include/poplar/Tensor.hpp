#ifndef poplar_Tensor_hpp
#define poplar_Tensor_hpp

#include <ostream>
#include <poplar/ArrayRef.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Type.hpp>
#include <poplar/detail/view.hpp>
#include <string>
#include <vector>

namespace poplar {

namespace detail {
struct GraphState;
}

enum class UpsampleMethod { REPEAT };

enum class TensorCloneMethod {
  PRESERVE_ORDER_AND_ALIASES,
  CREATE_NEW_ORDER,
  PRESERVE_ORDER_UNLESS_ALIASES,
  GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES
};

/// A view of elements of a graph's variables and constants. Views share elements: writing one writes all.
class Tensor {
  Type type;
  detail::GraphState *graph = nullptr;
  detail::View view_;

  Tensor with(detail::View view) const { return Tensor(graph, type, std::move(view)); }
  POPLAR_EMULATION_FUNCTION void checkDimension(std::size_t dimension, const char *function) const;
  POPLAR_EMULATION_FUNCTION void checkValid(const char *function) const;

public:
  Tensor() = default;
  /// For the emulation's own use.
  Tensor(detail::GraphState *g, Type t, detail::View view) : type(t), graph(g), view_(std::move(view)) {}
  /// For the emulation's own use.
  const detail::View &view() const { return view_; }
  /// For the emulation's own use.
  detail::GraphState *state() const { return graph; }

  bool valid() const { return graph != nullptr; }
  Type elementType() const { return type; }
  std::vector<std::size_t> shape() const { return view_.shape; }
  std::size_t dim(unsigned i) const { checkDimension(i, "dim"); return view_.shape[i]; }
  unsigned rank() const { return static_cast<unsigned>(view_.rank()); }
  std::size_t numElements() const { return valid() ? view_.size() : 0; }
  std::string shapeToString() const { return detail::text(view_.shape); }
  bool isContiguous() const { return view_.contiguous(); }
  bool containsAliases() const { return detail::hasAliases(view_); }
  POPLAR_EMULATION_FUNCTION bool containsConstant() const;
  bool isParallelWriteable() const { return !containsAliases() && !containsConstant(); }
  /// For the emulation's own use.
  bool intersectsWith(const Tensor &other) const;
  POPLAR_EMULATION_FUNCTION std::string getVarStr() const;
  POPLAR_EMULATION_FUNCTION std::string getDebugStr() const;
  POPLAR_EMULATION_FUNCTION const std::vector<Interval> getContiguousRegions() const;

  POPLAR_EMULATION_FUNCTION Tensor operator[](std::size_t i) const;
  POPLAR_EMULATION_FUNCTION Tensor index(ArrayRef<std::size_t> indices) const;
  POPLAR_EMULATION_FUNCTION Tensor slice(std::size_t begin, std::size_t end, unsigned dimension = 0) const;
  Tensor slice(const Interval &region, unsigned dimension = 0) const {
    return slice(region.begin(), region.end(), dimension);
  }
  POPLAR_EMULATION_FUNCTION Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  POPLAR_EMULATION_FUNCTION std::vector<Tensor> slices(ArrayRef<Interval> intervals, unsigned dimension = 0) const;
  POPLAR_EMULATION_FUNCTION std::vector<Tensor> slices(const std::vector<std::vector<Interval>> &intervals,
                                                       unsigned dimension = 0) const;
  POPLAR_EMULATION_FUNCTION Tensor subSample(unsigned stride, unsigned dimension) const;
  POPLAR_EMULATION_FUNCTION Tensor upsample(unsigned scale, unsigned dimension, UpsampleMethod method) const;
  POPLAR_EMULATION_FUNCTION Tensor reverse(unsigned dimension) const;
  POPLAR_EMULATION_FUNCTION Tensor broadcast(unsigned n, unsigned dimension) const;
  POPLAR_EMULATION_FUNCTION Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  POPLAR_EMULATION_FUNCTION Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  POPLAR_EMULATION_FUNCTION Tensor dimRoll(unsigned dimension, unsigned newDimension = 0) const;
  POPLAR_EMULATION_FUNCTION Tensor transpose() const;
  POPLAR_EMULATION_FUNCTION Tensor reshape(ArrayRef<std::size_t> shape) const;
  POPLAR_EMULATION_FUNCTION Tensor reshapePartial(unsigned begin, unsigned end, ArrayRef<std::size_t> newDims) const;
  Tensor flatten() const { return flatten(0, rank()); }
  POPLAR_EMULATION_FUNCTION Tensor flatten(unsigned dimBegin, unsigned dimEnd) const;
  POPLAR_EMULATION_FUNCTION Tensor expand(ArrayRef<std::size_t> indices) const;
  POPLAR_EMULATION_FUNCTION Tensor squeeze(ArrayRef<std::size_t> indices) const;
  POPLAR_EMULATION_FUNCTION Tensor reinterpret(const Type &newType) const;

  friend bool operator==(const Tensor &a, const Tensor &b) {
    return a.graph == b.graph && a.type == b.type && (!a.valid() || detail::sameElements(a.view_, b.view_));
  }
  friend bool operator!=(const Tensor &a, const Tensor &b) { return !(a == b); }
};

inline bool Tensor::intersectsWith(const Tensor &other) const {
  return graph == other.graph && valid() && type.bytes() == other.type.bytes() && detail::overlap(view_, other.view_);
}

POPLAR_EMULATION_FUNCTION Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);
inline Tensor concat(const Tensor &first, const Tensor &second, unsigned dimension = 0) {
  const Tensor both[] = {first, second};
  return concat(ArrayRef<Tensor>(both), dimension);
}
/// Like concat, of a tensor and another that lacks the dimension.
inline Tensor append(const Tensor &first, const Tensor &second, unsigned dimension) {
  return concat(first, second.expand({dimension}), dimension);
}
inline Tensor append(const Tensor &first, const Tensor &second) { return append(first, second, 0); }

inline std::ostream &operator<<(std::ostream &os, const Tensor &t) {
  return os << "Tensor<" << t.elementType() << ">" << t.shapeToString();
}

} // namespace poplar

#include <poplar/detail/state.hpp>
#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplar/detail/tensor_impl.hpp>
#endif
#endif
