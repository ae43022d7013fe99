// All definitions of popart::popx.
#include <popart/emulation/opx_impl.hpp>
#include <popart/emulation/lowering_impl.hpp>
#include <popart/emulation/device_impl.hpp>
#include <popart/emulation/builtin_opx.hpp>
