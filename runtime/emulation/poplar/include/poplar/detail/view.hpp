#ifndef poplar_detail_view_hpp
#define poplar_detail_view_hpp

#include <cstdint>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/exceptions.hpp>
#include <string>
#include <vector>

namespace poplar {
namespace detail {

using Shape = std::vector<std::size_t>;
/// A place in the memory of a graph, in elements of the tensor's type.
using Place = std::uint32_t;

inline std::string text(ArrayRef<std::size_t> shape) {
  std::string s = "[";
  for (std::size_t i = 0; i != shape.size(); ++i)
    s += (i ? "," : "") + std::to_string(shape[i]);
  return s + "]";
}

inline std::size_t product(ArrayRef<std::size_t> shape) {
  std::size_t n = 1;
  for (std::size_t extent : shape)
    n *= extent;
  return n;
}

/// What a tensor's elements are: an affine map from coordinates to places, or to the entries of a table of places.
/// All views but concatenation and the reshapes that no strides can express cost nothing; those make a table.
struct View {
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  std::shared_ptr<const std::vector<Place>> table;

  std::size_t rank() const { return shape.size(); }
  std::size_t size() const { return product(shape); }
  Place place(std::int64_t position) const {
    return table ? (*table)[static_cast<std::size_t>(position)] : static_cast<Place>(position);
  }
  /// Whether the elements lie one after the other; an empty or one-element view does.
  bool contiguous() const {
    if (table)
      return size() <= 1;
    std::int64_t step = 1;
    for (std::size_t d = rank(); d-- != 0;) {
      if (shape[d] == 1)
        continue;
      if (shape[d] == 0)
        return true;
      if (strides[d] != step)
        return false;
      step *= static_cast<std::int64_t>(shape[d]);
    }
    return true;
  }
  Place first() const { return place(offset); }
};

/// Calls `f(first place, step, count)` for each run of the innermost dimension, in order, or `f(place, 0, 1)` by table.
template <class F> void eachRun(const View &view, F &&f) {
  const std::size_t n = view.size();
  if (n == 0)
    return;
  if (view.contiguous()) {
    f(view.first(), std::int64_t(1), n);
    return;
  }
  const std::size_t rank = view.rank(), inner = view.shape[rank - 1];
  const std::int64_t step = view.strides[rank - 1];
  std::vector<std::size_t> at(rank, 0);
  std::int64_t position = view.offset;
  for (;;) {
    if (!view.table) {
      f(static_cast<Place>(position), step, inner);
    } else {
      for (std::size_t i = 0; i != inner; ++i)
        f(view.place(position + step * static_cast<std::int64_t>(i)), std::int64_t(0), std::size_t(1));
    }
    std::size_t d = rank - 1;
    for (;;) {
      if (d == 0)
        return;
      --d;
      position += view.strides[d];
      if (++at[d] != view.shape[d])
        break;
      position -= view.strides[d] * static_cast<std::int64_t>(view.shape[d]);
      at[d] = 0;
    }
  }
}

/// The places of all elements, in row-major order.
POPLAR_EMULATION_FUNCTION std::vector<Place> places(const View &view);
POPLAR_EMULATION_FUNCTION View contiguousView(Place first, Shape shape);
POPLAR_EMULATION_FUNCTION View tableView(std::vector<Place> table, Shape shape);
POPLAR_EMULATION_FUNCTION View reshapeView(const View &view, Shape shape);
POPLAR_EMULATION_FUNCTION View concatViews(const std::vector<const View *> &views, std::size_t dimension);
POPLAR_EMULATION_FUNCTION bool hasAliases(const View &view);
/// Whether two views of one element size share a place.
POPLAR_EMULATION_FUNCTION bool overlap(const View &a, const View &b);
/// The least and the largest place; only for views that have elements.
POPLAR_EMULATION_FUNCTION std::pair<Place, Place> bounds(const View &view);
POPLAR_EMULATION_FUNCTION bool sameElements(const View &a, const View &b);

} // namespace detail
} // namespace poplar

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplar/detail/view_impl.hpp>
#endif
#endif
