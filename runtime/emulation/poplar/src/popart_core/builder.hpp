// Models and the builder, as Python sees them.
#pragma once

#include "bindings.hpp"

#include <popart/builder.hpp>
#include <popart/shapeinference.hpp>

#include <map>

using popart::AiGraphcoreOpset1;
using popart::AiOnnxOpset;
using popart::Builder;
using popart::TensorId;
using popart::TensorInfo;
using popart::emulation::Model;
using popart::emulation::Node;

namespace {

using Ids = std::vector<TensorId>;

// The attributes that Builder.customOp takes from Python: texts, whole numbers, floats, and lists of whole numbers or of floats.
std::map<std::string, popart::any> toAny(const py::dict &values) {
  std::map<std::string, popart::any> made;
  for (const auto &entry : values) {
    const auto key = entry.first.cast<std::string>();
    const py::handle value = entry.second;
    if (py::isinstance<py::str>(value)) {
      made.emplace(key, value.cast<std::string>());
    } else if (py::isinstance<py::int_>(value)) {
      made.emplace(key, value.cast<int64_t>());
    } else if (py::isinstance<py::float_>(value)) {
      made.emplace(key, value.cast<float>());
    } else if (!py::isinstance<py::list>(value)) {
      throw popart::error("Invalid type provided in custom op attribute '{}'", key);
    } else if (allOf<py::int_>(value.cast<py::list>())) {
      made.emplace(key, value.cast<std::vector<int64_t>>());
    } else if (allOf<py::float_>(value.cast<py::list>())) {
      made.emplace(key, value.cast<std::vector<float>>());
    } else {
      throw popart::error("Invalid or mismatched python list type provided in custom op attribute '{}'", key);
    }
  }
  return made;
}

popart::ConstVoidData dataOf(const py::array &array) { return {array.data(), infoOf(array)}; }

py::array contiguous(const py::array &array) { return py::array::ensure(array, py::array::c_style); }

py::array arrayOf(const popart::emulation::TensorValue &value) {
  py::array array(dtypeOf(value.info.dataType()), value.info.shape());
  std::copy(value.data.begin(), value.data.end(), static_cast<char *>(array.mutable_data()));
  return array;
}

py::object attributeOf(const popart::emulation::Attribute &attribute) {
  using Kind = popart::emulation::Attribute::Kind;
  switch (attribute.kind) {
    case Kind::Int: return py::cast(attribute.i);
    case Kind::Ints: return py::make_tuple("ints", attribute.ints);
    case Kind::Float: return py::cast(attribute.f);
    case Kind::Floats: return py::make_tuple("floats", attribute.floats);
    case Kind::String: return py::bytes(attribute.s);
    case Kind::Strings: return py::make_tuple("strings", attribute.strings);
    case Kind::Tensor: return arrayOf(attribute.t);
    case Kind::Undefined: break;
  }
  return py::none();
}

py::dict attributesOf(const Node &node) {
  py::dict made;
  for (const auto &entry : node.attributes) made[py::str(entry.first)] = attributeOf(entry.second);
  return made;
}

void bindModel(py::module_ &m) {
  py::class_<Node>(m, "_Node")
      .def_readonly("domain", &Node::domain)
      .def_readonly("type", &Node::type)
      .def_readonly("name", &Node::name)
      .def_readonly("inputs", &Node::inputs)
      .def_readonly("outputs", &Node::outputs)
      .def_property_readonly("attributes", &attributesOf);
  py::class_<Model>(m, "_Model")
      .def(py::init<>())
      .def_readonly("inputs", &Model::inputs)
      .def_readwrite("outputs", &Model::outputs)
      .def_readonly("nodes", &Model::nodes)
      .def_readwrite("opsets", &Model::opsets)
      .def_readonly("values", &Model::values)
      .def_property_readonly("initialisers",
                             [](const Model &self) {
                               py::dict made;
                               for (const auto &entry : self.initialisers) made[py::str(entry.first)] = arrayOf(entry.second);
                               return made;
                             })
      .def("addInput", [](Model &self, const TensorId &id, const TensorInfo &info) { self.inputs.emplace_back(id, info); })
      .def("addInitialiser",
           [](Model &self, const TensorId &id, const py::array &array) {
             self.initialisers.emplace_back(id, popart::emulation::TensorValue{infoOf(array), bytesOf(array)});
           })
      .def("addValue", [](Model &self, const TensorId &id, const TensorInfo &info) { self.values[id] = info; })
      .def("addNode", [](Model &self, const std::string &domain, const std::string &type, const std::string &name, const Ids &inputs,
                         const Ids &outputs, const py::dict &attributes) {
        self.nodes.push_back(Node{domain, type, name, inputs, outputs, toAttributes(attributes)});
      });
}

void bindOpsets(py::module_ &m) {
  py::enum_<popart::ReductionType>(m, "ReductionType")
      .value("Sum", popart::ReductionType::Sum)
      .value("Mean", popart::ReductionType::Mean)
      .value("NoReduction", popart::ReductionType::NoReduction);

  const auto args = py::arg("args");
  const auto name = py::arg("debugContext") = "";
  py::class_<AiOnnxOpset>(m, "AiOnnxOpset")
      .def("constant",
           [](AiOnnxOpset &self, const py::array &value, const std::string &label) {
             const py::array held = contiguous(value);
             return self.constant(dataOf(held), label);
           },
           py::arg("value"), name)
      .def("identity", &AiOnnxOpset::identity, args, name)
      .def("add", &AiOnnxOpset::add, args, name)
      .def("mul", &AiOnnxOpset::mul, args, name)
      .def("sum", &AiOnnxOpset::sum, args, name)
      .def("cast", &AiOnnxOpset::cast, args, py::arg("to"), name)
      .def("reducesum",
           [](AiOnnxOpset &self, const Ids &ids, const py::object &axes, int64_t keepdims, const std::string &label) {
             nonstd::optional<std::vector<int64_t>> chosen;
             if (!axes.is_none()) chosen = axes.cast<std::vector<int64_t>>();
             return self.reducesum(ids, chosen, keepdims, label);
           },
           args, py::arg("axes") = py::none(), py::arg("keepdims") = 1, name);
  py::class_<AiGraphcoreOpset1>(m, "AiGraphcoreOpset1")
      .def("identityloss", &AiGraphcoreOpset1::identityloss, args, py::arg("reduction") = popart::ReductionType::Mean, name);
}

}  // namespace

void bindBuilder(py::module_ &m) {
  bindModel(m);
  bindOpsets(m);

  const auto keep = py::keep_alive<0, 1>();
  const auto name = py::arg("debugContext") = "";
  py::class_<Builder>(m, "_BuilderCore")
      .def(py::init([] { return Builder::create(); }))
      .def(py::init([](const Model &model) { return Builder::createFromModel(model); }))
      .def("setGraphName", &Builder::setGraphName, py::arg("name"))
      .def("addInputTensor",
           [](Builder &self, const TensorInfo &info, const std::string &label) { return self.addInputTensor(info, label); },
           py::arg("tensorInfo"), name)
      .def("addInputTensor",
           [](Builder &self, const std::string &type, const popart::Shape &shape, const std::string &label) {
             return self.addInputTensor(type, shape, label);
           },
           py::arg("dataType"), py::arg("shape"), name)
      .def("addInitializedInputTensor",
           [](Builder &self, const py::array &value, const std::string &label) {
             const py::array held = contiguous(value);
             return self.addInitializedInputTensor(dataOf(held), label);
           },
           py::arg("initVal"), name)
      .def("addOutputTensor", &Builder::addOutputTensor, py::arg("outputName"))
      .def("customOp",
           [](Builder &self, const std::string &type, int version, const std::string &domain, const Ids &inputs, const py::dict &attributes,
              unsigned outputs, const std::string &label) {
             // As in PopART: the model imports version 1 of the domain, whatever the version of the op.
             const popart::OperatorIdentifier opid(domain, type, static_cast<popart::OpVersion>(version));
             return self.customOp(opid, 1, inputs, outputs, toAny(attributes), label);
           },
           py::arg("opName"), py::arg("opVersion"), py::arg("domain"), py::arg("inputs"), py::arg("attributes"), py::arg("numOutputs") = 1,
           py::arg("name") = "")
      .def("addNodeAttribute",
           [](Builder &self, const std::string &key, const py::object &value, const std::set<TensorId> &outputs) {
             py::dict values;
             values[py::str(key)] = value;
             self.addNodeAttribute(key, toAny(values).at(key), outputs);
           },
           py::arg("attributeName"), py::arg("attributeValue"), py::arg("nodeOutputNames"))
      .def("nodeHasAttribute", &Builder::nodeHasAttribute, py::arg("attributeName"), py::arg("nodeOutputNames"))
      .def("excludePatterns", &Builder::excludePatterns, py::arg("nodeOutputName"), py::arg("patternNames"))
      .def("setInplacePreferences", &Builder::setInplacePreferences, py::arg("nodeOutputName"), py::arg("prefs"))
      .def("getInputTensorIds", &Builder::getInputTensorIds)
      .def("getOutputTensorIds", &Builder::getOutputTensorIds)
      .def("getTrainableTensorIds", &Builder::getTrainableTensorIds)
      .def("isInitializer", &Builder::isInitializer, py::arg("id"))
      .def("getTensorShape", &Builder::getTensorShape, py::arg("id"))
      .def("getTensorDtypeString", &Builder::getTensorDtypeString, py::arg("id"))
      .def("_model", &Builder::getModel, py::return_value_policy::copy)
      .def("_aiOnnxOpset6", &Builder::aiOnnxOpset6, keep)
      .def("_aiOnnxOpset7", &Builder::aiOnnxOpset7, keep)
      .def("_aiOnnxOpset8", &Builder::aiOnnxOpset8, keep)
      .def("_aiOnnxOpset9", &Builder::aiOnnxOpset9, keep)
      .def("_aiOnnxOpset10", &Builder::aiOnnxOpset10, keep)
      .def("_aiOnnxOpset11", &Builder::aiOnnxOpset11, keep)
      .def("_aiGraphcoreOpset1", &Builder::aiGraphcoreOpset1, keep);
}
