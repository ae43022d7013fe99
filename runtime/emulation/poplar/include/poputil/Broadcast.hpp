#ifndef poputil_Broadcast_hpp
#define poputil_Broadcast_hpp

#include <poplar/Tensor.hpp>
#include <poputil/exceptions.hpp>

namespace poputil {

/// Gives the tensor of lower rank leading dimensions of extent 1.
POPLAR_EMULATION_FUNCTION void expandToMatchRanks(poplar::Tensor &a, poplar::Tensor &b);
/// Broadcasts by NumPy's rules; poplibs_error where they don't allow it.
POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, const std::vector<std::size_t> &shape);
POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b);
POPLAR_EMULATION_FUNCTION void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b, poplar::Tensor &c);
POPLAR_EMULATION_FUNCTION bool canBroadcastToMatch(const poplar::Tensor &a, const poplar::Tensor &b);

namespace detail {
/// The shape that two shapes are broadcast to.
POPLAR_EMULATION_FUNCTION std::vector<std::size_t> broadcastShape(const std::vector<std::size_t> &a,
                                                                  const std::vector<std::size_t> &b);
} // namespace detail

} // namespace poputil

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poputil/detail/broadcast_impl.hpp>
#endif
#endif
