#ifndef poplar_detail_view_impl_hpp
#define poplar_detail_view_impl_hpp

#include <algorithm>
#include <poplar/detail/view.hpp>

namespace poplar {
namespace detail {

POPLAR_EMULATION_FUNCTION std::vector<Place> places(const View &view) {
  std::vector<Place> list;
  list.reserve(view.size());
  eachRun(view, [&](Place first, std::int64_t step, std::size_t count) {
    std::int64_t place = first;
    for (std::size_t i = 0; i != count; ++i, place += step)
      list.push_back(static_cast<Place>(place));
  });
  return list;
}

static inline std::vector<std::int64_t> rowMajor(const Shape &shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- != 0;) {
    strides[d] = step;
    step *= static_cast<std::int64_t>(shape[d]);
  }
  return strides;
}

POPLAR_EMULATION_FUNCTION View contiguousView(Place first, Shape shape) {
  View view;
  view.strides = rowMajor(shape);
  view.shape = std::move(shape);
  view.offset = first;
  return view;
}

POPLAR_EMULATION_FUNCTION View tableView(std::vector<Place> table, Shape shape) {
  bool consecutive = !table.empty();
  for (std::size_t i = 1; i < table.size() && consecutive; ++i)
    consecutive = table[i] == table[0] + i;
  if (consecutive)
    return contiguousView(table[0], std::move(shape));
  View view = contiguousView(0, std::move(shape));
  view.table = std::make_shared<const std::vector<Place>>(std::move(table));
  return view;
}

/// Strides that give `shape` to the elements of `view` in the same order, where there are such.
static inline bool stridesFor(const View &view, const Shape &shape, std::vector<std::int64_t> &strides) {
  strides.assign(shape.size(), 1);
  std::size_t d = 0, e = 0;
  while (d != view.rank() && e != shape.size()) {
    // The smallest groups of dimensions, from the left, that have equally many elements on both sides.
    std::size_t from = view.shape[d], to = shape[e], dEnd = d + 1, eEnd = e + 1;
    while (from != to) {
      if (from < to) {
        if (dEnd == view.rank())
          return false;
        from *= view.shape[dEnd++];
      } else {
        if (eEnd == shape.size())
          return false;
        to *= shape[eEnd++];
      }
    }
    // The dimensions of the group that aren't 1 must lie evenly in each other.
    std::int64_t step = 1;
    bool started = false;
    std::int64_t expected = 0;
    for (std::size_t i = dEnd; i-- != d;) {
      if (view.shape[i] == 1)
        continue;
      if (!started) {
        step = view.strides[i];
        started = true;
      } else if (view.strides[i] != expected) {
        return false;
      }
      expected = view.strides[i] * static_cast<std::int64_t>(view.shape[i]);
    }
    for (std::size_t i = eEnd; i-- != e;) {
      strides[i] = step;
      step *= static_cast<std::int64_t>(shape[i]);
    }
    d = dEnd;
    e = eEnd;
  }
  return true; // What is left over on either side has extent 1.
}

POPLAR_EMULATION_FUNCTION View reshapeView(const View &view, Shape shape) {
  View result;
  result.offset = view.offset;
  result.table = view.table;
  if (view.size() == 0) {
    result.strides = rowMajor(shape);
  } else if (!stridesFor(view, shape, result.strides)) {
    return tableView(places(view), std::move(shape));
  }
  result.shape = std::move(shape);
  return result;
}

POPLAR_EMULATION_FUNCTION View concatViews(const std::vector<const View *> &views, std::size_t dimension) {
  Shape shape = views[0]->shape;
  shape[dimension] = 0;
  for (const View *view : views)
    shape[dimension] += view->shape[dimension];
  std::size_t outer = 1;
  for (std::size_t d = 0; d != dimension; ++d)
    outer *= shape[d];
  std::vector<std::vector<Place>> lists;
  lists.reserve(views.size());
  for (const View *view : views)
    lists.push_back(places(*view));
  std::vector<Place> table;
  table.reserve(product(shape));
  for (std::size_t o = 0; o != outer; ++o)
    for (const auto &list : lists) {
      const std::size_t chunk = list.size() / outer;
      table.insert(table.end(), list.begin() + static_cast<std::ptrdiff_t>(o * chunk),
                   list.begin() + static_cast<std::ptrdiff_t>((o + 1) * chunk));
    }
  return tableView(std::move(table), std::move(shape));
}

POPLAR_EMULATION_FUNCTION bool hasAliases(const View &view) {
  if (view.size() <= 1)
    return false;
  if (!view.table) {
    // Dimensions sorted by stride, each wider than all inner ones together, can't meet.
    std::vector<std::pair<std::int64_t, std::int64_t>> dims;
    for (std::size_t d = 0; d != view.rank(); ++d) {
      if (view.shape[d] == 1)
        continue;
      if (view.strides[d] == 0)
        return true;
      dims.emplace_back(std::abs(view.strides[d]), static_cast<std::int64_t>(view.shape[d]));
    }
    std::sort(dims.begin(), dims.end());
    std::int64_t reach = 0;
    bool apart = true;
    for (const auto &dim : dims) {
      apart = apart && dim.first > reach;
      reach += dim.first * (dim.second - 1);
    }
    if (apart)
      return false;
  }
  auto list = places(view);
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

POPLAR_EMULATION_FUNCTION std::pair<Place, Place> bounds(const View &view) {
  if (view.table) {
    Place low = UINT32_MAX, high = 0;
    eachRun(view, [&](Place first, std::int64_t, std::size_t) {
      low = std::min(low, first);
      high = std::max(high, first);
    });
    return {low, high};
  }
  std::int64_t low = view.offset, high = view.offset;
  for (std::size_t d = 0; d != view.rank(); ++d) {
    const std::int64_t reach = view.strides[d] * (static_cast<std::int64_t>(view.shape[d]) - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {static_cast<Place>(low), static_cast<Place>(high)};
}

POPLAR_EMULATION_FUNCTION bool overlap(const View &a, const View &b) {
  if (a.size() == 0 || b.size() == 0)
    return false;
  const auto inA = bounds(a), inB = bounds(b);
  if (inA.second < inB.first || inB.second < inA.first)
    return false;
  if (a.contiguous() && b.contiguous())
    return true;
  auto listA = places(a), listB = places(b);
  std::sort(listA.begin(), listA.end());
  for (const Place place : listB)
    if (std::binary_search(listA.begin(), listA.end(), place))
      return true;
  return false;
}

POPLAR_EMULATION_FUNCTION bool sameElements(const View &a, const View &b) {
  if (a.shape != b.shape)
    return false;
  if (a.table == b.table && a.strides == b.strides && a.offset == b.offset)
    return true;
  return places(a) == places(b);
}

} // namespace detail
} // namespace poplar

#endif
