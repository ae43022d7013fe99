// Sum.
#ifndef POPART_OP_SUM_HPP
#define POPART_OP_SUM_HPP

#include <popart/op.hpp>
#include <popart/emulation/builtin.hpp>

#endif
