// libpopart.
#include <popart/builder.hpp>
#include <popart/session.hpp>

#include <popart/emulation/core_impl.hpp>
#include <popart/emulation/popx_impl.hpp>

#include <popart/emulation/builder_impl.hpp>
#include <popart/emulation/session_impl.hpp>
