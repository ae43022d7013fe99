// pybind11 for modules that are linked with lib/pybind11_functions.o: its larger functions, which it marks as not to be inlined, are
// compiled there and in no module.
#ifndef POPART_EMULATION_PYBIND11_FUNCTIONS_HPP
#define POPART_EMULATION_PYBIND11_FUNCTIONS_HPP

#include <deque>
#include <vector>

#include <pybind11/detail/common.h>

#undef PYBIND11_NOINLINE
#if defined(POPART_EMULATION_PYBIND11)
#define PYBIND11_NOINLINE __attribute__((used, noinline)) inline
#else
#define PYBIND11_NOINLINE __attribute__((gnu_inline)) inline
#endif

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

// Containers that calls and types are kept in.
#if defined(POPART_EMULATION_PYBIND11)
#define PYBIND11_INSTANCE template
#else
#define PYBIND11_INSTANCE extern template
#endif
PYBIND11_INSTANCE class std::deque<bool>;
PYBIND11_INSTANCE class std::vector<char *>;
PYBIND11_INSTANCE class std::vector<PyObject *>;
PYBIND11_INSTANCE class std::vector<pybind11::handle>;
PYBIND11_INSTANCE class std::vector<pybind11::detail::type_info *>;
#ifdef __GLIBCXX__
PYBIND11_INSTANCE class std::_Deque_base<bool, std::allocator<bool>>;
#endif
#undef PYBIND11_INSTANCE

#endif
