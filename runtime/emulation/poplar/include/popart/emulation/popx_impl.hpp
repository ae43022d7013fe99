// All definitions of popart::popx.
#include <popart/popx/devicex.hpp>
#include <popart/popx/irlowering.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>

#include <popart/emulation/opx_impl.hpp>
#include <popart/emulation/lowering_impl.hpp>
#include <popart/emulation/device_impl.hpp>
#include <popart/emulation/builtin_opx.hpp>
