/* Sizes of a call for Poplar: the axes of its tensors, groups of axes, and whole numbers over them. */
#ifndef OPC_POPLAR_SIZES_H
#define OPC_POPLAR_SIZES_H

#include <poplar/Tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace opc {
namespace ipu {

/* The sizes of a tensor's axes, or of the axes of a group. */
using shape = std::vector<std::size_t>;

/* The number of points of a group. */
inline int64_t points(const shape &group) {
  int64_t product = 1;
  for (const std::size_t size : group) product *= static_cast<int64_t>(size);
  return product;
}

/* What stands in braces, without memory of its own. */
template <typename T>
using list = std::initializer_list<T>;

/* Division that rounds to minus infinity, and its remainder; by 0 they give 0. */
inline int64_t floordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t mod(int64_t a, int64_t b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
inline int64_t minimum(int64_t a, int64_t b) { return std::min(a, b); }

/* What groups broadcast to by NumPy's rules. */
inline shape broadcast(const shape &a, const shape &b) {
  shape found(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= found.size(); ++i) {
    const std::size_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    found[found.size() - i] = x == 1 ? y : x;
  }
  return found;
}

/* A tensor with axes of size 1 in front, up to some rank. */
inline poplar::Tensor ranked(const poplar::Tensor &of, std::size_t rank) {
  shape sizes = of.shape();
  if (sizes.size() == rank) return of;
  sizes.insert(sizes.begin(), rank - sizes.size(), 1);
  return of.reshape(sizes);
}

/* A tensor repeated along axes of size 1, as a view. */
inline poplar::Tensor repeated(const poplar::Tensor &of, const shape &sizes) {
  poplar::Tensor found = ranked(of, sizes.size());
  for (unsigned i = 0; i < sizes.size(); ++i) {
    if (found.dim(i) != sizes[i]) found = found.broadcast(static_cast<unsigned>(sizes[i]), i);
  }
  return found;
}

/* An axis of a tensor of some rank, counted from the front. */
inline int64_t axis_of(int64_t axis, std::size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

/* Goes through the axes of a tensor. */
class axes {
 public:
  explicit axes(const poplar::Tensor &tensor) : sizes_(tensor.shape()) {}

  int64_t next() { return static_cast<int64_t>(sizes_[at_++]); }
  void skip() { ++at_; }

  /* The next axes, `count` of them. */
  shape group(int64_t count) {
    const std::size_t begin = at_;
    at_ += static_cast<std::size_t>(std::max<int64_t>(count, 0));
    return shape(sizes_.begin() + static_cast<std::ptrdiff_t>(begin), sizes_.begin() + static_cast<std::ptrdiff_t>(at_));
  }

  /* How many axes a group takes, always leaving the last `after`: all of them but those of the groups behind; those up to `before`
   * axes before `axis`; as many as it was bound to. */
  int64_t rest(int64_t after, std::size_t behind = 0) const { return left(after) - static_cast<int64_t>(behind); }
  int64_t up_to(int64_t axis, int64_t before, int64_t after) const {
    return std::min(axis - before - static_cast<int64_t>(at_), left(after));
  }
  int64_t same(const shape &bound, int64_t after) const { return std::min(static_cast<int64_t>(bound.size()), left(after)); }

 private:
  shape sizes_;
  std::size_t at_ = 0;

  int64_t left(int64_t after) const { return static_cast<int64_t>(sizes_.size()) - after - static_cast<int64_t>(at_); }
};

/* The axes of one loop of a stage: a single one, or those of a group, which lives longer. */
class extent {
 public:
  extent(const shape &group) : group_(&group), size_(0) {}
  extent(int64_t size) : group_(nullptr), size_(static_cast<std::size_t>(size)) {}

  const std::size_t *begin() const { return group_ ? group_->data() : &size_; }
  const std::size_t *end() const { return begin() + (group_ ? group_->size() : 1); }

 private:
  const shape *group_;
  std::size_t size_;
};

/* The sizes of axes one after the other. */
inline shape joined(list<extent> extents) {
  shape found;
  for (const extent &e : extents) found.insert(found.end(), e.begin(), e.end());
  return found;
}

/* Axes of a tensor that lie along one loop of a stage: those that the loop has, or fewer that are broadcast along them. */
struct along {
  std::size_t loop;
  bool own;
  extent sizes;

  along(std::size_t loop_) : loop(loop_), own(false), sizes(0) {}
  along(std::size_t loop_, const extent &own_) : loop(loop_), own(true), sizes(own_) {}
};

/* The loops of a stage, in the order of its values' axes. */
class loops {
 public:
  loops(list<extent> extents) {
    for (const extent &e : extents) {
      first_.push_back(sizes_.size());
      sizes_.insert(sizes_.end(), e.begin(), e.end());
    }
    first_.push_back(sizes_.size());
  }

  const shape &sizes() const { return sizes_; }

  /* The positions of a loop's axes. */
  std::vector<std::size_t> positions(std::size_t loop) const {
    std::vector<std::size_t> found;
    for (std::size_t i = first_[loop]; i < first_[loop + 1]; ++i) found.push_back(i);
    return found;
  }

  /* The sizes of a value that varies along some loops as a tensor does, with 1 for all other axes. */
  shape sizes_of(list<along> axes) const {
    shape found(sizes_.size(), 1);
    for (const along &a : axes) {
      const shape own = sizes_along(a);
      std::copy(own.begin(), own.end(), found.begin() + static_cast<std::ptrdiff_t>(first_[a.loop + 1] - own.size()));
    }
    return found;
  }

  /* A tensor whose axes lie along these loops, as a value of the stage; an absent one stays so. Of an axis that is longer than its loop it
   * has the first elements. */
  poplar::Tensor view(const poplar::Tensor &tensor, list<along> axes) const {
    if (!tensor.valid()) return tensor;
    /* Axes in the order of the loops, then those of size 1 that the tensor lacks. */
    std::vector<std::pair<std::size_t, unsigned>> places;
    unsigned at = 0;
    for (const along &a : axes) {
      const std::size_t count = sizes_along(a).size();
      for (std::size_t i = 0; i < count; ++i) places.emplace_back(first_[a.loop + 1] - count + i, at++);
    }
    std::sort(places.begin(), places.end());
    std::vector<unsigned> order;
    for (const auto &place : places) order.push_back(place.second);
    /* An axis of the tensor may be several loops. */
    shape parts;
    for (const along &a : axes) {
      const shape own = sizes_along(a);
      parts.insert(parts.end(), own.begin(), own.end());
    }
    poplar::Tensor whole = tensor;
    if (whole.rank() == parts.size()) {
      for (unsigned i = 0; i < parts.size(); ++i) {
        if (whole.dim(i) > parts[i]) whole = whole.slice(0, parts[i], i);
      }
    }
    const poplar::Tensor ordered = whole.reshape(parts).dimShuffle(order);
    shape sizes(sizes_.size(), 1);
    for (std::size_t i = 0; i < places.size(); ++i) sizes[places[i].first] = ordered.dim(static_cast<unsigned>(i));
    return ordered.reshape(sizes);
  }

  /* The reverse: the axes of a value that lie along these loops, in this order; all others have size 1. */
  poplar::Tensor arranged(const poplar::Tensor &of, list<along> axes) const {
    std::vector<unsigned> order;
    shape sizes;
    std::vector<bool> used(sizes_.size(), false);
    for (const along &a : axes) {
      const std::size_t count = sizes_along(a).size(), begin = first_[a.loop + 1] - count;
      for (std::size_t i = begin; i < begin + count; ++i) {
        order.push_back(static_cast<unsigned>(i));
        sizes.push_back(of.dim(static_cast<unsigned>(i)));
        used[i] = true;
      }
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) order.push_back(static_cast<unsigned>(i));
    }
    return of.dimShuffle(order).reshape(sizes);
  }

 private:
  shape sizes_;
  std::vector<std::size_t> first_;

  shape sizes_along(const along &a) const {
    if (a.own) return shape(a.sizes.begin(), a.sizes.end());
    return shape(sizes_.begin() + static_cast<std::ptrdiff_t>(first_[a.loop]),
                 sizes_.begin() + static_cast<std::ptrdiff_t>(first_[a.loop + 1]));
  }
};

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_SIZES_H
