// Call.
#ifndef POPART_OP_CALL_HPP
#define POPART_OP_CALL_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
