// Graphs, tensors and ops, as Python sees them.
#pragma once

#include "bindings.hpp"

#include <popart/emulation/op_bindings_impl.hpp>
#include <popart/graph.hpp>
#include <popart/ir.hpp>
#include <popart/op.hpp>
#include <popart/op/call.hpp>
#include <popart/opmanager.hpp>
#include <popart/shapeinference.hpp>
#include <popart/transforms/autodiff.hpp>

#include <cstring>
#include <map>
#include <memory>

using popart::Graph;
using popart::GraphId;
using popart::Ir;
using popart::Op;
using popart::Tensor;
using popart::TensorId;
using popart::TensorInfo;

namespace {

constexpr auto reference = py::return_value_policy::reference;
// What a graph owns is kept alive by what Python has of the IR.
using InMap = std::map<popart::InIndex, TensorId>;
using OutMap = std::map<popart::OutIndex, TensorId>;

void checkData(const TensorInfo &info, const py::array &data) {
  if (infoOf(data) != info) throw popart::error("The data is {}, not {} as the info says", infoOf(data), info);
}

// An op of the registry, made from its identifier and attributes, connected and set up.
Op *createRegistered(Graph &graph, const popart::OperatorIdentifier &opid, const InMap &inputs, const OutMap &outputs, const py::dict &attributes,
                     const Op::Settings &settings) {
  auto made = popart::OpManager::createOp(opid, graph, settings.name, popart::Attributes(toAttributes(attributes)));
  if (!made) throw popart::error("No class for {}.{}:{}", opid.domain, opid.type, opid.version);
  Op *op = graph.getOp(graph.moveIntoGraph(std::move(made)));
  op->setScope(graph.getScope());
  for (const auto &input : inputs) op->connectInTensor(input.first, input.second);
  for (const auto &output : outputs) {
    if (graph.getTensors().contains(output.second)) {
      op->connectOutTensor(output.first, output.second);
    } else {
      op->createAndConnectOutTensor(output.first, output.second);
    }
  }
  op->setup();
  return op;
}

py::array valuesOf(Tensor &tensor) {
  const auto *data = tensor.tensorData();
  py::array array(dtypeOf(tensor.info.dataType()), tensor.info.shape());
  std::memcpy(array.mutable_data(), data->data(), data->size());
  return array;
}

void bindTensor(py::module_ &m) {
  py::class_<Tensor>(m, "Tensor")
      .def_property_readonly("id", [](const Tensor &self) { return self.id; })
      .def_readwrite("info", &Tensor::info)
      .def("tensor_type", &Tensor::tensor_type)
      .def("getGraph", [](Tensor &self) -> Graph & { return self.getGraph(); }, reference)
      .def("getIr", [](Tensor &self) -> Ir & { return self.getIr(); }, reference)
      .def("_data", &valuesOf)
      .def("_set_data", [](Tensor &self, const py::array &data) {
        checkData(self.info, data);
        const auto bytes = bytesOf(data);
        self.setTensorDataFromCopyOf(bytes.data(), bytes.size());
      });
}

void bindOp(py::module_ &m) {
  py::class_<Op::Settings>(m, "Settings")
      .def(py::init<Graph &, const std::string &>())
      .def_readwrite("name", &Op::Settings::name)
      .def_property(
          "vgraphId", [](const Op::Settings &self) { return self.vgraphId ? py::object(py::int_(*self.vgraphId)) : py::none(); },
          [](Op::Settings &self, popart::VGraphId id) { self.vgraphId = id; });

  py::class_<Op, std::shared_ptr<Op>>(m, "Op")
      .def_property_readonly("id", [](const Op &self) { return self.id; })
      .def_property_readonly("opid", [](const Op &self) { return self.opid; })
      .def("opType", [](const Op &self) { return self.opid.type; })
      .def("getGraph", [](Op &self) -> Graph & { return self.getGraph(); }, reference)
      .def("getName", &Op::getName)
      .def("debugName", &Op::debugName)
      .def("connectInTensor", [](Op &self, popart::InIndex index, const TensorId &id) { self.connectInTensor(index, id); })
      .def("createAndConnectOutTensor", &Op::createAndConnectOutTensor)
      .def("setup", &Op::setup)
      .def("inTensor", [](Op &self, popart::InIndex index) { return self.inTensor(index); }, reference)
      .def("outTensor", [](Op &self, popart::OutIndex index) { return self.outTensor(index); }, reference)
      .def("inId", [](Op &self, popart::InIndex index) { return self.inId(index); })
      .def("outId", [](Op &self, popart::OutIndex index) { return self.outId(index); })
      .def("getInputTensors", [](Op &self) { return self.input->tensors(); }, reference)
      .def("getOutputTensors", [](Op &self) { return self.output->tensors(); }, reference)
      .def("inInfo", [](Op &self, popart::InIndex index) { return self.inInfo(index); })
      .def("outInfo", [](Op &self, popart::OutIndex index) { return self.outInfo(index); })
      .def("getCalledGraphs", &Op::getCalledGraphs, reference);
  // For the modules of ops, which are compiled on their own.
  using popart::emulation::kBindOp;
  const popart::emulation::BindOp bind = &popart::emulation::bindParameterizedOp;
  m.add_object(kBindOp, py::capsule(reinterpret_cast<const void *>(bind), kBindOp));

  py::class_<popart::CallOp, Op, std::shared_ptr<popart::CallOp>>(m, "CallOp")
      .def("subgraphInToOpInIndex", [](const popart::CallOp &, int index) { return index; })
      .def("opInToSubgraphInIndex", [](const popart::CallOp &, int index) { return index; })
      .def("subgraphOutToOpOutIndex", [](const popart::CallOp &, int index) { return index; })
      .def("opOutToSubgraphOutIndex", [](const popart::CallOp &, int index) { return index; });
}

void bindGraph(py::module_ &m) {
  py::class_<GraphId>(m, "GraphId")
      .def(py::init<const std::string &>())
      .def("str", &GraphId::str)
      .def("__eq__", [](const GraphId &self, const GraphId &other) { return self == other; })
      .def("__hash__", [](const GraphId &self) { return py::hash(py::str(self.str())); });
  py::implicitly_convertible<std::string, GraphId>();

  py::class_<popart::Scope>(m, "Scope").def("str", &popart::Scope::str);

  py::class_<Graph>(m, "Graph")
      .def_property_readonly("id", [](const Graph &self) { return self.id; })
      .def("getScope", &Graph::getScope)
      .def("getIr", [](Graph &self) -> Ir & { return self.getIr(); }, reference)
      .def("addActGrad", &Graph::addActGrad)
      .def("addVarInit",
           [](Graph &self, const TensorId &id, const TensorInfo &info, const py::array &data) {
             checkData(info, data);
             self.addVarInit(id, info, bytesOf(data).data(), {});
           })
      .def("addConstInit",
           [](Graph &self, const TensorId &id, const TensorInfo &info, const py::array &data) {
             checkData(info, data);
             self.addConstInit(id, info, bytesOf(data).data(), {});
           })
      .def("addStream", [](Graph &self, const TensorId &id, const TensorInfo &info, const std::string &) { self.addStream(id, info, {}); })
      .def("getTensor", &Graph::getTensor, reference)
      .def("getTensors", [](Graph &self) { return self.getTensors().getAll(); }, reference)
      .def("__contains__", [](Graph &self, const TensorId &id) { return self.getTensors().contains(id); })
      .def("getInputIds", &Graph::getInputIds)
      .def("getInputIndex", &Graph::getInputIndex)
      .def("hasInputId", &Graph::hasInputId)
      .def("addInput", [](Graph &self, const TensorId &id, const TensorInfo &info) { self.addInput(id, info); })
      .def("getOutputIds", &Graph::getOutputIds)
      .def("getOutputIndex", &Graph::getOutputIndex)
      .def("hasOutputId", &Graph::hasOutputId)
      .def("markAsOutput", [](Graph &self, const TensorId &id) { self.markAsOutput(id); })
      .def("getOps",
           [](Graph &self) {
             std::vector<Op *> ops;
             for (const auto &entry : self.getOps()) ops.push_back(entry.second.get());
             return ops;
           },
           reference)
      .def("getOpSchedule", [](Graph &self) { return self.getOpSchedule(); }, reference)
      .def("createOp_CallOp",
           [](Graph &self, const popart::OperatorIdentifier &opid, Graph &called, const Op::Settings &settings) {
             return self.createOp<popart::CallOp>(opid, called, settings);
           },
           reference)
      .def("_createConnectedOp", &createRegistered, py::arg("opid"), py::arg("inputs"), py::arg("outputs"), py::arg("attributes"),
           py::arg("settings"), reference);

  m.def("addScope", [](const Graph &graph, const TensorId &id) { return popart::addScope(graph, id); });
  m.def("removeScope", [](const Graph &graph, const TensorId &id) { return popart::removeScope(graph, id); });
}

void bindAutodiff(py::module_ &m) {
  py::enum_<popart::ExpectedConnectionType>(m, "ExpectedConnectionType")
      .value("Fwd", popart::ExpectedConnectionType::Fwd)
      .value("FwdGrad", popart::ExpectedConnectionType::FwdGrad);
  py::class_<popart::ExpectedConnection>(m, "ExpectedConnection")
      .def_readonly("fwdId", &popart::ExpectedConnection::fwdId)
      .def_readonly("type", &popart::ExpectedConnection::type);
  py::class_<popart::BwdGraphInfo>(m, "BwdGraphInfo")
      .def_readonly("bwdGraphId", &popart::BwdGraphInfo::bwdGraphId)
      .def_readonly("expectedInputs", &popart::BwdGraphInfo::expectedInputs)
      .def_readonly("expectedOutputs", &popart::BwdGraphInfo::expectedOutputs);

  using Ids = std::vector<TensorId>;
  using Infos = popart::FwdGraphToBwdGraphInfo;
  py::class_<popart::Autodiff>(m, "Autodiff")
      .def(py::init<>())
      .def("apply", [](popart::Autodiff &self, Ir &ir, const GraphId &graph, const Ids &provided, const Ids &required, const Infos &called) {
        // What a gradient reads of the forward graph becomes an output of it, as PopXL says.
        return self.apply(ir, graph, provided, required, called, popart::AutodiffStitchStrategy::SafeAddFwdOutputs);
      });
}

}  // namespace

void bindIr(py::module_ &m) {
  bindTensor(m);
  bindOp(m);
  bindGraph(m);
  bindAutodiff(m);

  py::class_<Ir, std::shared_ptr<Ir>>(m, "Ir")
      .def(py::init<>())
      .def("getId", [](const Ir &self) { return reinterpret_cast<std::uintptr_t>(&self); })
      .def("getMainGraph", [](Ir &self) -> Graph & { return self.getMainGraph(); }, reference)
      .def("getGraph", [](Ir &self, const GraphId &id) -> Graph & { return self.getGraph(id); }, reference)
      .def("createGraph", [](Ir &self, const GraphId &id) -> Graph & { return self.createGraph(id); }, reference)
      .def("createUniqueSubgraphId", [](Ir &self, const std::string &id) { return self.createUniqueSubgraphId(GraphId(id)).str(); })
      .def("createIntermediateTensorId", &Ir::createIntermediateTensorId)
      .def("getTensor", &Ir::getTensor, reference)
      .def("addAnchor", &Ir::addAnchor)
      .def("getSessionOptions", [](Ir &self) -> popart::SessionOptions & { return self.getSessionOptions(); }, reference)
      .def("setDataFlow", &Ir::setDataFlow)
      .def("isPrepared", &Ir::isPrepared);
}
