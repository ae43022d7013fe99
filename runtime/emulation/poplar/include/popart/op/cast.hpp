// Cast.
#ifndef POPART_OP_CAST_HPP
#define POPART_OP_CAST_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
