// PopART's debug contexts are Poplar's.
#ifndef POPART_POPX_DEBUGCONTEXTX_HPP
#define POPART_POPX_DEBUGCONTEXTX_HPP

#include <poplar/DebugContext.hpp>

#endif
