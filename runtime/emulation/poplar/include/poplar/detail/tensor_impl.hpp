#ifndef poplar_detail_tensor_impl_hpp
#define poplar_detail_tensor_impl_hpp

#include <algorithm>
#include <poplar/detail/state.hpp>

namespace poplar {

namespace detail {

POPLAR_EMULATION_FUNCTION const Variable &GraphState::variableAt(std::size_t byte) const {
  auto after = std::upper_bound(variables.begin(), variables.end(), byte,
                                [](std::size_t at, const Variable &v) { return at < v.base; });
  return *(after - 1);
}

POPLAR_EMULATION_FUNCTION std::string GraphState::nameOf(std::size_t byte) const {
  const Variable &v = variableAt(byte);
  return "element " + std::to_string((byte - v.base) / v.type.bytes()) + " of '" + v.name + "'";
}

POPLAR_EMULATION_FUNCTION const Tensor &requireValid(const Tensor &t, const std::string &user) {
  if (!t.valid())
    throw poplar_error(user + ": the tensor is invalid; nothing was assigned to it");
  return t;
}

POPLAR_EMULATION_FUNCTION void requireOf(const GraphState *graph, const Tensor &t, const std::string &user) {
  if (requireValid(t, user).state() != graph)
    throw poplar_error(user + ": the tensor '" + t.getVarStr() + "' belongs to another graph");
}

POPLAR_EMULATION_FUNCTION void requireMapped(const Tensor &t, const std::string &user) {
  const std::size_t byte = firstUnmapped(requireValid(t, user));
  if (byte != ~std::size_t(0))
    throw invalid_tile_mapping(user + ": no tile mapping: " + t.state()->nameOf(byte) + " is on no tile");
}

POPLAR_EMULATION_FUNCTION std::size_t firstUnmapped(const Tensor &t) {
  const std::int16_t *const tiles = t.state()->tiles.data();
  std::size_t found = ~std::size_t(0);
  eachByte(t, [&](std::size_t byte) {
    if (tiles[byte] < 0 && found == ~std::size_t(0))
      found = byte;
  });
  return found;
}

POPLAR_EMULATION_FUNCTION void requireWriteable(const Tensor &t, const std::string &user) {
  const GraphState &g = *requireValid(t, user).state();
  if (t.containsAliases())
    throw graph_connection_error(user + ": writes a tensor of shape " + t.shapeToString() +
                                 " that contains an element more than once");
  eachByte(t, [&](std::size_t byte) {
    if (g.flags[byte] & Constant)
      throw graph_connection_error(user + ": writes a constant: " + g.nameOf(byte));
  });
}

} // namespace detail

POPLAR_EMULATION_FUNCTION void Tensor::checkValid(const char *function) const {
  if (!valid())
    throw poplar_error(std::string("Tensor::") + function + ": the tensor is invalid; nothing was assigned to it");
}

POPLAR_EMULATION_FUNCTION void Tensor::checkDimension(std::size_t dimension, const char *function) const {
  checkValid(function);
  if (dimension >= rank())
    throw index_error(std::string("Tensor::") + function + ": dimension " + std::to_string(dimension) +
                      " of a tensor of rank " + std::to_string(rank()));
}

POPLAR_EMULATION_FUNCTION bool Tensor::containsConstant() const {
  bool found = false;
  if (valid())
    detail::eachByte(*this, [&](std::size_t byte) { found = found || (graph->flags[byte] & detail::Constant); });
  return found;
}

POPLAR_EMULATION_FUNCTION std::string Tensor::getVarStr() const {
  return valid() && numElements() ? graph->variableAt(std::size_t(view_.first()) * type.bytes()).name : std::string();
}

POPLAR_EMULATION_FUNCTION std::string Tensor::getDebugStr() const {
  return getVarStr() + ":" + type.toString().cloneAsString() + shapeToString();
}

POPLAR_EMULATION_FUNCTION const std::vector<Interval> Tensor::getContiguousRegions() const {
  checkValid("getContiguousRegions");
  std::vector<Interval> regions;
  std::size_t begin = 0, i = 0, expected = 0;
  detail::eachByte(*this, [&](std::size_t byte) {
    if (i != 0 && (byte != expected || graph->variableAt(byte).base == byte)) {
      regions.emplace_back(begin, i);
      begin = i;
    }
    expected = byte + type.bytes();
    ++i;
  });
  if (i != 0)
    regions.emplace_back(begin, i);
  return regions;
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::operator[](std::size_t i) const {
  checkDimension(0, "operator[]");
  if (i >= view_.shape[0])
    throw index_error("Tensor::operator[]: index " + std::to_string(i) + " of a tensor of shape " + shapeToString());
  Tensor part = slice(i, i + 1, 0);
  part.view_.shape.erase(part.view_.shape.begin());
  part.view_.strides.erase(part.view_.strides.begin());
  return part;
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor part = *this;
  for (const std::size_t i : indices)
    part = part[i];
  return part;
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  checkDimension(dimension, "slice");
  if (begin > end || end > view_.shape[dimension])
    throw index_error("Tensor::slice: [" + std::to_string(begin) + "," + std::to_string(end) + ") of dimension " +
                      std::to_string(dimension) + " of a tensor of shape " + shapeToString());
  detail::View part = view_;
  if (begin != end)
    part.offset += static_cast<std::int64_t>(begin) * part.strides[dimension];
  part.shape[dimension] = end - begin;
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  if (begin.size() != rank() || end.size() != rank())
    throw index_error("Tensor::slice: a tensor of rank " + std::to_string(rank()) + " takes as many bounds");
  Tensor part = *this;
  for (unsigned d = 0; d != rank(); ++d)
    part = part.slice(begin[d], end[d], d);
  return part;
}

POPLAR_EMULATION_FUNCTION std::vector<Tensor> Tensor::slices(ArrayRef<Interval> intervals, unsigned dimension) const {
  std::vector<Tensor> parts;
  parts.reserve(intervals.size());
  for (const Interval &interval : intervals)
    parts.push_back(slice(interval, dimension));
  return parts;
}

POPLAR_EMULATION_FUNCTION std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>> &intervals,
                                                             unsigned dimension) const {
  std::vector<Tensor> parts;
  for (const auto &group : intervals)
    parts.push_back(group.empty() ? slice(0, 0, dimension) : concat(slices(group, dimension), dimension));
  return parts;
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  checkDimension(dimension, "subSample");
  if (stride == 0)
    throw poplar_error("Tensor::subSample: the stride must not be 0");
  detail::View part = view_;
  part.strides[dimension] *= stride;
  part.shape[dimension] = (part.shape[dimension] + stride - 1) / stride;
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  checkDimension(dimension, "upsample");
  return expand({dimension + 1}).broadcast(scale, dimension + 1).flatten(dimension, dimension + 2);
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::reverse(unsigned dimension) const {
  checkDimension(dimension, "reverse");
  detail::View part = view_;
  if (part.shape[dimension] != 0)
    part.offset += part.strides[dimension] * static_cast<std::int64_t>(part.shape[dimension] - 1);
  part.strides[dimension] = -part.strides[dimension];
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::broadcast(unsigned n, unsigned dimension) const {
  checkDimension(dimension, "broadcast");
  if (n == 1)
    return *this;
  detail::View part = view_;
  if (part.shape[dimension] == 1) {
    part.strides[dimension] = 0;
    part.shape[dimension] = n;
    return with(std::move(part));
  }
  // The whole dimension again and again: a new outer dimension of stride 0, flattened with it.
  part.shape.insert(part.shape.begin() + dimension, n);
  part.strides.insert(part.strides.begin() + dimension, 0);
  return with(std::move(part)).flatten(dimension, dimension + 2);
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  checkValid("dimShuffle");
  std::vector<bool> seen(rank());
  if (permutation.size() != rank())
    throw poplar_error("Tensor::dimShuffle: the permutation has " + std::to_string(permutation.size()) +
                       " dimensions, the tensor " + std::to_string(rank()));
  detail::View part = view_;
  for (std::size_t d = 0; d != permutation.size(); ++d) {
    const unsigned from = permutation[d];
    if (from >= rank() || seen[from])
      throw poplar_error("Tensor::dimShuffle: not a permutation of the tensor's dimensions");
    seen[from] = true;
    part.shape[d] = view_.shape[from];
    part.strides[d] = view_.strides[from];
  }
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source,
                                                           ArrayRef<unsigned> destination) const {
  checkValid("dimShufflePartial");
  if (source.size() != destination.size())
    throw poplar_error("Tensor::dimShufflePartial: as many sources as destinations are needed");
  constexpr unsigned open = ~0u;
  std::vector<unsigned> permutation(rank(), open);
  std::vector<bool> taken(rank());
  for (std::size_t i = 0; i != source.size(); ++i) {
    if (source[i] >= rank() || destination[i] >= rank() || taken[source[i]] || permutation[destination[i]] != open)
      throw poplar_error("Tensor::dimShufflePartial: a dimension is out of range or named twice");
    permutation[destination[i]] = source[i];
    taken[source[i]] = true;
  }
  unsigned next = 0;
  for (unsigned &entry : permutation) {
    if (entry != open)
      continue;
    while (taken[next])
      ++next;
    entry = next++;
  }
  return dimShuffle(permutation);
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::dimRoll(unsigned dimension, unsigned newDimension) const {
  return dimShufflePartial({dimension}, {newDimension});
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::transpose() const {
  checkValid("transpose");
  if (rank() != 2)
    throw poplar_error("Tensor::transpose: the tensor has rank " + std::to_string(rank()) + ", not 2");
  return dimShuffle({1, 0});
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  checkValid("reshape");
  if (detail::product(shape) != numElements())
    throw poplar_error("Tensor::reshape: " + shapeToString() + " and " + detail::text(shape) +
                       " don't have equally many elements");
  return with(detail::reshapeView(view_, shape.cloneAsVector()));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::reshapePartial(unsigned begin, unsigned end,
                                                        ArrayRef<std::size_t> newDims) const {
  checkValid("reshapePartial");
  if (begin > end || end > rank())
    throw index_error("Tensor::reshapePartial: no dimensions [" + std::to_string(begin) + "," + std::to_string(end) +
                      ") in a tensor of rank " + std::to_string(rank()));
  std::vector<std::size_t> shape(view_.shape.begin(), view_.shape.begin() + begin);
  shape.insert(shape.end(), newDims.begin(), newDims.end());
  shape.insert(shape.end(), view_.shape.begin() + end, view_.shape.end());
  return reshape(shape);
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::flatten(unsigned dimBegin, unsigned dimEnd) const {
  checkValid("flatten");
  if (dimBegin > dimEnd || dimEnd > rank())
    throw index_error("Tensor::flatten: no dimensions [" + std::to_string(dimBegin) + "," + std::to_string(dimEnd) +
                      ") in a tensor of rank " + std::to_string(rank()));
  std::size_t n = 1;
  for (unsigned d = dimBegin; d != dimEnd; ++d)
    n *= view_.shape[d];
  return reshapePartial(dimBegin, dimEnd, {n});
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::expand(ArrayRef<std::size_t> indices) const {
  checkValid("expand");
  // Indices count the dimensions of this tensor, not of the result.
  std::vector<unsigned> before(rank() + 1, 0);
  for (const std::size_t i : indices) {
    if (i > rank())
      throw index_error("Tensor::expand: index " + std::to_string(i) + " of a tensor of rank " +
                        std::to_string(rank()));
    ++before[i];
  }
  detail::View part = view_;
  part.shape.clear();
  part.strides.clear();
  for (std::size_t d = 0; d <= rank(); ++d) {
    part.shape.insert(part.shape.end(), before[d], 1);
    part.strides.insert(part.strides.end(), before[d], 0);
    if (d != rank()) {
      part.shape.push_back(view_.shape[d]);
      part.strides.push_back(view_.strides[d]);
    }
  }
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::squeeze(ArrayRef<std::size_t> indices) const {
  checkValid("squeeze");
  std::vector<bool> drop(rank());
  for (const std::size_t i : indices) {
    checkDimension(i, "squeeze");
    if (view_.shape[i] != 1)
      throw poplar_error("Tensor::squeeze: dimension " + std::to_string(i) + " of " + shapeToString() + " isn't 1");
    drop[i] = true;
  }
  detail::View part = view_;
  part.shape.clear();
  part.strides.clear();
  for (std::size_t d = 0; d != rank(); ++d) {
    if (drop[d])
      continue;
    part.shape.push_back(view_.shape[d]);
    part.strides.push_back(view_.strides[d]);
  }
  return with(std::move(part));
}

POPLAR_EMULATION_FUNCTION Tensor Tensor::reinterpret(const Type &newType) const {
  checkValid("reinterpret");
  if (newType.bytes() != type.bytes())
    throw type_error("Tensor::reinterpret: " + (type.toString() + " and ") + newType.toString().cloneAsString() +
                     " differ in size");
  return Tensor(graph, newType, view_);
}

POPLAR_EMULATION_FUNCTION Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (tensors.empty())
    throw poplar_error("concat: no tensors");
  const Tensor &first = tensors[0];
  std::vector<const detail::View *> views;
  for (const Tensor &t : tensors) {
    detail::requireValid(t, "concat");
    bool fits = t.rank() == first.rank() && dimension < t.rank();
    for (unsigned d = 0; fits && d != t.rank(); ++d)
      fits = d == dimension || t.view().shape[d] == first.view().shape[d];
    if (!fits)
      throw poplar_error("concat: " + first.shapeToString() + " and " + t.shapeToString() +
                         " don't go together along dimension " + std::to_string(dimension));
    if (t.elementType() != first.elementType())
      throw type_error("concat: " + (first.elementType().toString() + " and ") +
                       t.elementType().toString().cloneAsString() + " don't go together");
    if (t.state() != first.state())
      throw poplar_error("concat: the tensors belong to different graphs");
    views.push_back(&t.view());
  }
  if (views.size() == 1)
    return first;
  return Tensor(first.state(), first.elementType(), detail::concatViews(views, dimension));
}

} // namespace poplar

#endif
