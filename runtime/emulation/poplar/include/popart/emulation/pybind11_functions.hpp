// pybind11 for modules that are linked with lib/pybind11_functions.o: its functions that are no templates are compiled there and in no
// module. That is GCC's `#pragma interface`, which stands here in each of pybind11's headers: a compiler that doesn't know it compiles
// them in each module too, and the linker keeps one.
#ifndef POPART_EMULATION_PYBIND11_FUNCTIONS_HPP
#define POPART_EMULATION_PYBIND11_FUNCTIONS_HPP

#include <deque>
#include <vector>

#include <pybind11/detail/common.h>

#if defined(__GNUC__) && !defined(__clang__)
#undef PYBIND11_NAMESPACE_BEGIN
#define PYBIND11_NAMESPACE_BEGIN(name) _Pragma("interface \"pybind11_functions\"") namespace name { PYBIND11_WARNING_PUSH
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
#undef PYBIND11_INSTANCE

#endif
