// Add.
#ifndef POPART_OP_ADD_HPP
#define POPART_OP_ADD_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
