// As define.hpp, for the headers of popart::popx.
#include <popart/popx/devicex.hpp>
#include <popart/popx/irlowering.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>

#if defined(POPART_OPX_DECLARED) && defined(POPART_IRLOWERING_DECLARED) && defined(POPART_DEVICEX_DECLARED) && !defined(POPART_EMULATION_POPX_DEFINED)
#define POPART_EMULATION_POPX_DEFINED
#include <popart/emulation/opx_impl.hpp>
#include <popart/emulation/lowering_impl.hpp>
#include <popart/emulation/device_impl.hpp>
#include <popart/emulation/builtin_opx.hpp>
#endif
