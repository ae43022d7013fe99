// Identity.
#ifndef POPART_OP_IDENTITY_HPP
#define POPART_OP_IDENTITY_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
