// Losses: the identity loss.
#ifndef POPART_OP_LOSS_HPP
#define POPART_OP_LOSS_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
