// What the parts of the Python module `popart_core` share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/emulation/model.hpp>
#include <popart/names.hpp>
#include <popart/tensorinfo.hpp>

namespace py = pybind11;

void bindTypes(py::module_ &module);
void bindBuilder(py::module_ &module);
void bindIr(py::module_ &module);
void bindSession(py::module_ &module);

// Whether all elements of a sequence of Python are of one type.
template <typename T>
bool allOf(const py::sequence &values) {
  for (const py::handle value : values) {
    if (!py::isinstance<T>(value)) return false;
  }
  return true;
}

// The attributes of an op from a dict: numbers, texts and lists of them. A list without elements is one of whole numbers unless the value is
// a pair of a kind ("ints", "floats", "strings") and a list, as it comes from ONNX. Raises popart::error for anything else.
popart::emulation::AttributeMap toAttributes(const py::dict &values);

// What NumPy says of an array's elements and sizes. Raises popart::error for a dtype that PopART has no name for.
popart::TensorInfo infoOf(const py::array &array);

// NumPy's dtype for elements of a type.
py::dtype dtypeOf(popart::DataType type);

// A row-major copy of the array's bytes.
std::vector<char> bytesOf(const py::array &array);
