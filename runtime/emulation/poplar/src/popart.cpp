/// What the headers of popart only declare where POPLAR_EMULATION_LIBRARIES is defined.
#define POPART_EMULATION_INSTANCES template
#include <popart/builder.hpp>
#include <popart/session.hpp>

#include <popart/emulation/core_impl.hpp>
#include <popart/emulation/popx_impl.hpp>

#include <popart/emulation/builder_impl.hpp>
#include <popart/emulation/session_impl.hpp>

#include <popart/emulation/instances.hpp>
#include <popart/ndarraywrapper.hpp>
#include <popart/patterns/patterns.hpp>
#include <popart/stepio.hpp>
