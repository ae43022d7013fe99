/// What the headers of poputil only declare where POPLAR_EMULATION_LIBRARIES is defined.
#include <poputil/detail/broadcast_impl.hpp>
#include <poputil/detail/util_impl.hpp>
