#ifndef poputil_detail_broadcast_impl_hpp
#define poputil_detail_broadcast_impl_hpp

#include <algorithm>
#include <poputil/Broadcast.hpp>

namespace poputil {

namespace detail {

POPLAR_EMULATION_FUNCTION std::vector<std::size_t> broadcastShape(const std::vector<std::size_t> &a,
                                                                  const std::vector<std::size_t> &b) {
  const std::size_t rank = std::max(a.size(), b.size());
  std::vector<std::size_t> shape(rank);
  for (std::size_t d = 0; d != rank; ++d) {
    const std::size_t x = d + a.size() < rank ? 1 : a[d + a.size() - rank];
    const std::size_t y = d + b.size() < rank ? 1 : b[d + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      throw poplibs_error("Cannot broadcast tensors to match: shapes " + poplar::detail::text(a) + " and " +
                          poplar::detail::text(b));
    shape[d] = x == 1 ? y : x;
  }
  return shape;
}

} // namespace detail

POPLAR_EMULATION_FUNCTION void expandToMatchRanks(poplar::Tensor &a, poplar::Tensor &b) {
  if (a.rank() < b.rank())
    a = a.expand(std::vector<std::size_t>(b.rank() - a.rank(), 0));
  else if (b.rank() < a.rank())
    b = b.expand(std::vector<std::size_t>(a.rank() - b.rank(), 0));
}

POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, const std::vector<std::size_t> &shape) {
  if (a.view().shape == shape)
    return;
  if (detail::broadcastShape(a.shape(), shape) != shape)
    throw poplibs_error("Cannot broadcast tensors to match: shape " + a.shapeToString() + " to " +
                        poplar::detail::text(shape));
  if (a.rank() < shape.size())
    a = a.expand(std::vector<std::size_t>(shape.size() - a.rank(), 0));
  for (unsigned d = 0; d != shape.size(); ++d)
    if (a.dim(d) != shape[d])
      a = a.broadcast(static_cast<unsigned>(shape[d]), d);
}

POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b) {
  const auto shape = detail::broadcastShape(a.shape(), b.shape());
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
}

POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b, poplar::Tensor &c) {
  const auto shape = detail::broadcastShape(detail::broadcastShape(a.shape(), b.shape()), c.shape());
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
  broadcastToMatch(c, shape);
}

POPLAR_EMULATION_FUNCTION bool canBroadcastToMatch(const poplar::Tensor &a, const poplar::Tensor &b) {
  for (std::size_t d = 1; d <= std::min(a.rank(), b.rank()); ++d) {
    const std::size_t x = a.view().shape[a.rank() - d], y = b.view().shape[b.rank() - d];
    if (x != y && x != 1 && y != 1)
      return false;
  }
  return true;
}

} // namespace poputil

#endif
