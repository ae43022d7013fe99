/* What generated ops of PopXL include first: PopART's part, the bindings of Python, and the ops that both make. C++14. */
#ifndef OPC_ADAPTERS_POPXL_H
#define OPC_ADAPTERS_POPXL_H

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <popart/op/custom/parameterizedop.hpp>
#include <popart/op/custom/parameterizedopbinder.hpp>

#include "opc/adapters/popart.h"

#endif /* OPC_ADAPTERS_POPXL_H */
