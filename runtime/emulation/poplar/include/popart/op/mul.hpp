// Mul.
#ifndef POPART_OP_MUL_HPP
#define POPART_OP_MUL_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
