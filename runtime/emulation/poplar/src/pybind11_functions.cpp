// What modules take from lib/pybind11_functions.o.
#define POPART_EMULATION_PYBIND11
#if defined(__GNUC__) && !defined(__clang__)
#pragma implementation "pybind11_functions"
#endif
#include <popart/emulation/pybind11_functions.hpp>

// The one of these that is a template, of what is no template itself.
template bool pybind11::detail::type_caster_generic::load_impl<pybind11::detail::type_caster_generic>(pybind11::handle, bool);

#include <popart/emulation/op_bindings_impl.hpp>
