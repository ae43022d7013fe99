// Reducesum.
#ifndef POPART_OP_REDUCESUM_HPP
#define POPART_OP_REDUCESUM_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
