// As define.hpp, for the headers of popart::popx.
#if !defined(POPLAR_EMULATION_LIBRARIES) && !defined(POPART_EMULATION_POPX_DEFINED) && !defined(POPART_OPX_OPEN) && \
    !defined(POPART_IRLOWERING_OPEN) && !defined(POPART_DEVICEX_OPEN) && !defined(POPART_OPXMANAGER_OPEN)
#include <popart/popx/devicex.hpp>
#include <popart/popx/irlowering.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#ifndef POPART_EMULATION_POPX_DEFINED
#define POPART_EMULATION_POPX_DEFINED
#include <popart/emulation/popx_impl.hpp>
#endif
#endif
