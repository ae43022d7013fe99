// pybind11 for modules that are linked with lib/pybind11_functions.o: its larger functions, which it marks as not to be inlined, are
// compiled there and in no module.
#ifndef POPART_EMULATION_PYBIND11_FUNCTIONS_HPP
#define POPART_EMULATION_PYBIND11_FUNCTIONS_HPP

#include <pybind11/detail/common.h>

#undef PYBIND11_NOINLINE
#if defined(POPART_EMULATION_PYBIND11)
#define PYBIND11_NOINLINE __attribute__((used, noinline)) inline
#else
#define PYBIND11_NOINLINE __attribute__((gnu_inline)) inline
#endif

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#endif
