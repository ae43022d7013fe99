// Data types, infos, identifiers, attributes and errors, as Python sees them.
#pragma once

#include "bindings.hpp"

#include <popart/error.hpp>
#include <popart/operatoridentifier.hpp>
#include <poplar/exceptions.hpp>
#include <poputil/exceptions.hpp>

#include <cstring>
#include <map>
#include <sstream>

using popart::DataType;
using popart::TensorInfo;
using popart::emulation::Attribute;
using popart::emulation::AttributeMap;

namespace {

const std::map<std::string, DataType> &numpyTypes() {
  static const std::map<std::string, DataType> types = {
      {"float16", DataType::FLOAT16}, {"float32", DataType::FLOAT},  {"float64", DataType::DOUBLE}, {"bool", DataType::BOOL},
      {"int8", DataType::INT8},       {"int16", DataType::INT16},    {"int32", DataType::INT32},    {"int64", DataType::INT64},
      {"uint8", DataType::UINT8},     {"uint16", DataType::UINT16},  {"uint32", DataType::UINT32},  {"uint64", DataType::UINT64},
  };
  return types;
}

Attribute toList(const std::string &key, const py::sequence &values) {
  if (allOf<py::int_>(values)) return values.cast<std::vector<int64_t>>();
  if (allOf<py::float_>(values)) return values.cast<std::vector<float>>();
  if (allOf<py::str>(values) || allOf<py::bytes>(values)) return values.cast<std::vector<std::string>>();
  throw popart::error("Invalid or mismatched python list type provided in custom op attribute '{}'", key);
}

Attribute ofKind(const std::string &key, const std::string &kind, const py::handle &value) {
  if (kind == "ints") return value.cast<std::vector<int64_t>>();
  if (kind == "floats") return value.cast<std::vector<float>>();
  if (kind == "strings") return value.cast<std::vector<std::string>>();
  throw popart::error("Attribute '{}' is of the unknown kind {}", key, kind);
}

Attribute toAttribute(const std::string &key, const py::handle &value) {
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<float>();
  if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value)) return value.cast<std::string>();
  if (py::isinstance<py::tuple>(value)) {
    const auto pair = value.cast<py::tuple>();
    if (pair.size() == 2 && py::isinstance<py::str>(pair[0])) return ofKind(key, pair[0].cast<std::string>(), pair[1]);
  }
  if (py::isinstance<py::list>(value)) return toList(key, value.cast<py::sequence>());
  if (py::isinstance<py::array>(value)) {
    const auto array = value.cast<py::array>();
    return popart::emulation::TensorValue{infoOf(array), bytesOf(array)};
  }
  throw popart::error("Invalid type provided in custom op attribute '{}'", key);
}

void bindErrors(py::module_ &m) {
  // Made once and never freed: exceptions may be raised until the interpreter ends.
  static py::handle popartError, popartInternal, popartRuntime, poplibsError, poplarError, poplarRuntime;
  const auto make = [&m](const char *name, const py::handle &base) {
    return py::exception<std::exception>(m, name, base).release();
  };
  popartError = make("popart_exception", PyExc_RuntimeError);
  popartInternal = make("popart_internal_exception", popartError);
  popartRuntime = make("popart_runtime_error", popartError);
  poplibsError = make("poplibs_exception", PyExc_RuntimeError);
  poplarError = make("poplar_exception", PyExc_RuntimeError);
  poplarRuntime = make("poplar_runtime_error", poplarError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const popart::internal_error &error) {
      PyErr_SetString(popartInternal.ptr(), error.what());
    } catch (const popart::runtime_error &error) {
      PyErr_SetString(popartRuntime.ptr(), error.what());
    } catch (const popart::error &error) {
      PyErr_SetString(popartError.ptr(), error.what());
    } catch (const poputil::poplibs_error &error) {
      PyErr_SetString(poplibsError.ptr(), error.what());
    } catch (const poplar::runtime_error &error) {
      PyErr_SetString(poplarRuntime.ptr(), error.what());
    } catch (const poplar::poplar_error &error) {
      PyErr_SetString(poplarError.ptr(), error.what());
    }
  });
}

}  // namespace

AttributeMap toAttributes(const py::dict &values) {
  AttributeMap made;
  for (const auto &entry : values) {
    const auto key = entry.first.cast<std::string>();
    made.emplace(key, toAttribute(key, entry.second));
  }
  return made;
}

TensorInfo infoOf(const py::array &array) {
  const auto name = py::str(array.dtype()).cast<std::string>();
  const auto found = numpyTypes().find(name);
  if (found == numpyTypes().end()) throw popart::error("No numpy type {} registered in map to DataType", name);
  return TensorInfo(found->second, popart::Shape(array.shape(), array.shape() + array.ndim()));
}

py::dtype dtypeOf(DataType type) {
  for (const auto &entry : numpyTypes()) {
    if (entry.second == type) return py::dtype(entry.first);
  }
  throw popart::error("NumPy has no type for {}", type);
}

std::vector<char> bytesOf(const py::array &array) {
  const auto contiguous = py::array::ensure(array, py::array::c_style);
  const auto *data = static_cast<const char *>(contiguous.data());
  return std::vector<char>(data, data + contiguous.nbytes());
}

void bindTypes(py::module_ &m) {
  bindErrors(m);

  py::enum_<DataType> types(m, "DataType");
  for (const auto &entry : popart::getDataTypeInfoMap()) types.value(entry.second.name().c_str(), entry.first);

  py::class_<TensorInfo>(m, "_TensorInfoCore")
      .def(py::init<std::string, const popart::Shape &>(), py::arg("dataType"), py::arg("shape"))
      .def(py::init<DataType, const popart::Shape &>(), py::arg("dataType"), py::arg("shape"))
      .def("data_type_lcase", &TensorInfo::data_type_lcase)
      .def("dataType", &TensorInfo::dataType)
      .def("shape", &TensorInfo::shape)
      .def("rank", &TensorInfo::rank)
      .def("nelms", &TensorInfo::nelms)
      .def("nbytes", &TensorInfo::nbytes)
      .def("__eq__", [](const TensorInfo &self, const TensorInfo &other) { return self == other; })
      .def("__repr__", [](const TensorInfo &self) {
        std::ostringstream text;
        text << self;
        return text.str();
      });

  py::class_<popart::NumInputs>(m, "NumInputs")
      .def(py::init<>())
      .def(py::init<int>(), py::arg("f"))
      .def(py::init<int, int>(), py::arg("_min"), py::arg("_max"))
      .def_readwrite("min", &popart::NumInputs::min)
      .def_readwrite("max", &popart::NumInputs::max);

  using popart::OperatorIdentifier;
  py::class_<OperatorIdentifier>(m, "OperatorIdentifier")
      .def(py::init<const popart::OpDomain &, const popart::OpType &, popart::OpVersion, popart::NumInputs, int>(), py::arg("_domain"),
           py::arg("_type"), py::arg("_version"), py::arg("inputs") = popart::NumInputs(), py::arg("outputs") = 0)
      .def_readonly("domain", &OperatorIdentifier::domain)
      .def_readonly("type", &OperatorIdentifier::type)
      .def_readonly("version", &OperatorIdentifier::version)
      .def("__eq__", [](const OperatorIdentifier &self, const OperatorIdentifier &other) { return self == other; })
      .def("__repr__", [](const OperatorIdentifier &self) {
        std::ostringstream text;
        text << self;
        return text.str();
      });
}
