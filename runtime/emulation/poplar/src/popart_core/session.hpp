// Sessions, what they are made with, and what they run on, as Python sees them.
#pragma once

#include "bindings.hpp"

#include <popart/dataflow.hpp>
#include <popart/devicemanager.hpp>
#include <popart/inputshapeinfo.hpp>
#include <popart/optimizer.hpp>
#include <popart/patterns/patterns.hpp>
#include <popart/session.hpp>
#include <popart/sessionoptions.hpp>
#include <popart/stepio.hpp>
#include <popart/tensornames.hpp>

#include <map>
#include <memory>
#include <sstream>

using popart::AnchorReturnType;
using popart::DataFlow;
using popart::DeviceInfo;
using popart::DeviceManager;
using popart::InferenceSession;
using popart::InputShapeInfo;
using popart::Patterns;
using popart::Session;
using popart::SessionOptions;
using popart::TensorId;
using popart::TrainingSession;
using popart::emulation::Model;

namespace {

// An array of NumPy, held for as long as a step may use it.
class NumpyArray : public popart::IArray {
 public:
  explicit NumpyArray(const py::array &array) : array_(array), info_(infoOf(array)) {}
  void *data() override { return const_cast<void *>(array_.data()); }
  popart::DataType dataType() const override { return info_.dataType(); }
  std::size_t rank() const override { return info_.shape().size(); }
  int64_t dim(std::size_t index) const override { return info_.shape().at(index); }
  std::size_t nelms() const override { return static_cast<std::size_t>(info_.nelms()); }
  const popart::Shape shape() const override { return info_.shape(); }

 private:
  py::array array_;
  popart::TensorInfo info_;
};

using Arrays = std::map<TensorId, py::array>;
using Held = std::map<TensorId, NumpyArray>;

Held hold(const Arrays &arrays, const char *what) {
  Held held;
  for (const auto &entry : arrays) {
    if (!(entry.second.flags() & py::array::c_style)) {
      throw popart::error("PyStepIO is unable to use the numpy {} array for tensor '{}' as it is not c-contiguous", what, entry.first);
    }
    held.emplace(entry.first, NumpyArray(entry.second));
  }
  return held;
}

std::map<TensorId, popart::IArray &> refer(Held &held) {
  std::map<TensorId, popart::IArray &> made;
  for (auto &entry : held) made.emplace(entry.first, entry.second);
  return made;
}

struct PyStepIO {
  PyStepIO(const Arrays &in, const Arrays &out)
      : inputs(hold(in, "input")), outputs(hold(out, "output")), io(refer(inputs), refer(outputs)) {}

  Held inputs;
  Held outputs;
  popart::StepIO io;
};

std::map<std::string, std::string> textOptions(const py::dict &options) {
  std::map<std::string, std::string> made;
  for (const auto &entry : options) made.emplace(py::str(entry.first).cast<std::string>(), py::str(entry.second).cast<std::string>());
  return made;
}

void bindDataFlow(py::module_ &m) {
  py::enum_<popart::AnchorReturnTypeId>(m, "AnchorReturnTypeId")
      .value("Final", popart::AnchorReturnTypeId::Final)
      .value("EveryN", popart::AnchorReturnTypeId::EveryN)
      .value("All", popart::AnchorReturnTypeId::All)
      .value("Sum", popart::AnchorReturnTypeId::Sum);
  py::class_<AnchorReturnType>(m, "AnchorReturnType")
      .def(py::init<std::string>(), py::arg("anchorReturnTypeString"))
      .def(py::init<std::string, int>(), py::arg("anchorReturnTypeString"), py::arg("returnPeriod"))
      .def("id", &AnchorReturnType::id)
      .def("rp", &AnchorReturnType::rp);
  py::class_<DataFlow>(m, "DataFlow")
      .def(py::init<int, const popart::AnchorReturnTypeMap &>(), py::arg("batchesPerStep"), py::arg("anchorTensors"))
      .def(py::init<int, const std::vector<TensorId> &, const AnchorReturnType &>(), py::arg("batchesPerStep"), py::arg("anchorIds"),
           py::arg("anchorReturnType") = AnchorReturnType("All"))
      .def("isAnchored", &DataFlow::isAnchored)
      .def("nAnchors", &DataFlow::nAnchors)
      .def("batchesPerStep", &DataFlow::batchesPerStep)
      .def("setBatchesPerStep", &DataFlow::setBatchesPerStep)
      .def("anchors", &DataFlow::anchors)
      .def("art", &DataFlow::art);
  py::class_<InputShapeInfo>(m, "InputShapeInfo")
      .def(py::init<>())
      .def("add", &InputShapeInfo::add)
      .def("get", &InputShapeInfo::get)
      .def("has", &InputShapeInfo::has);
}

void bindDevices(py::module_ &m) {
  py::enum_<popart::DeviceType>(m, "DeviceType")
      .value("IpuModel", popart::DeviceType::IpuModel)
      .value("Cpu", popart::DeviceType::Cpu)
      .value("Ipu", popart::DeviceType::Ipu)
      .value("OfflineIpu", popart::DeviceType::OfflineIpu)
      .value("Sim", popart::DeviceType::Sim);
  py::class_<DeviceInfo, std::shared_ptr<DeviceInfo>>(m, "DeviceInfo")
      .def("attach", &DeviceInfo::attach)
      .def("detach", &DeviceInfo::detach)
      .def_property_readonly("isAttached", &DeviceInfo::isAttached)
      .def_property_readonly("type", &DeviceInfo::getType)
      .def_property_readonly("id", &DeviceInfo::getId)
      .def_property_readonly("version", &DeviceInfo::getVersion)
      .def_property_readonly("numIpus", &DeviceInfo::getNumIpus)
      .def_property_readonly("tilesPerIPU", &DeviceInfo::getTilesPerIPU)
      .def("__enter__", [](std::shared_ptr<DeviceInfo> self) { return self; })
      .def("__exit__", [](DeviceInfo &self, const py::args &) { self.detach(); })
      .def("__repr__", &DeviceInfo::toString);
  py::class_<DeviceManager, std::unique_ptr<DeviceManager, py::nodelete>>(m, "DeviceManager")
      .def(py::init([] { return std::unique_ptr<DeviceManager, py::nodelete>(&DeviceManager::createDeviceManager()); }))
      .def("createIpuModelDevice", [](DeviceManager &self, const py::dict &options) { return self.createIpuModelDevice(textOptions(options)); })
      .def("createCpuDevice", &DeviceManager::createCpuDevice)
      .def("tryAcquireAvailableDevice", [](DeviceManager &self, int, int) { return self.tryAcquireAvailableDevice(); }, py::arg("numIpus") = 1,
           py::arg("tilesPerIpu") = 0)
      .def("acquireAvailableDevice", [](DeviceManager &self, int ipus, int tiles) { return self.acquireAvailableDevice(ipus, tiles); },
           py::arg("numIpus") = 1, py::arg("tilesPerIpu") = 0)
      .def("enumerateDevices", [](DeviceManager &self) { return self.enumerateDevices(); });
}

void bindOptions(py::module_ &m) {
  py::enum_<popart::PatternsLevel>(m, "PatternsLevel")
      .value("NoPatterns", popart::PatternsLevel::NoPatterns)
      .value("Minimal", popart::PatternsLevel::Minimal)
      .value("Default", popart::PatternsLevel::Default)
      .value("All", popart::PatternsLevel::All);
  py::class_<Patterns>(m, "Patterns")
      .def(py::init<>())
      .def(py::init<popart::PatternsLevel>(), py::arg("level"))
      .def(py::init<const std::vector<std::string> &>(), py::arg("patterns"))
      .def_property("InPlace", &Patterns::isInPlaceEnabled, &Patterns::enableInPlace)
      .def("isPatternEnabled", &Patterns::isPatternEnabled)
      .def("enablePattern", &Patterns::enablePattern, py::return_value_policy::reference)
      .def("enableRuntimeAsserts", &Patterns::enableRuntimeAsserts, py::return_value_policy::reference);

  py::class_<SessionOptions>(m, "SessionOptions")
      .def(py::init<>())
      .def_readwrite("enableOutlining", &SessionOptions::enableOutlining)
      .def_readwrite("outlineThreshold", &SessionOptions::outlineThreshold)
      .def_readwrite("constantWeights", &SessionOptions::constantWeights)
      .def_readwrite("enableFloatingPointChecks", &SessionOptions::enableFloatingPointChecks)
      .def_readwrite("enableEngineCaching", &SessionOptions::enableEngineCaching)
      .def_readwrite("cachePath", &SessionOptions::cachePath)
      .def_readwrite("opxAliasChecking", &SessionOptions::opxAliasChecking)
      .def_readwrite("opxModifyChecking", &SessionOptions::opxModifyChecking)
      .def_readwrite("strictOpVersions", &SessionOptions::strictOpVersions)
      .def_readwrite("enableSupportedDataTypeCasting", &SessionOptions::enableSupportedDataTypeCasting)
      .def_readwrite("customCodelets", &SessionOptions::customCodelets)
      .def_readwrite("customCodeletCompileFlags", &SessionOptions::customCodeletCompileFlags)
      .def_readwrite("logDir", &SessionOptions::logDir);

  py::class_<popart::Optimizer>(m, "Optimizer").def("getLossScalingVal", &popart::Optimizer::getFinalLossScalingVal);
  py::class_<popart::ConstSGD, popart::Optimizer>(m, "ConstSGD")
      .def(py::init<float, float, float>(), py::arg("learning_rate"), py::arg("weight_decay") = 0.0f, py::arg("loss_scaling") = 1.0f);
}

}  // namespace

void bindSession(py::module_ &m) {
  bindDataFlow(m);
  bindDevices(m);
  bindOptions(m);

  py::class_<PyStepIO>(m, "PyStepIO")
      .def(py::init<const Arrays &, const Arrays &>(), py::arg("inputs"), py::arg("outputs"))
      .def("enableRuntimeAsserts", [](PyStepIO &self, bool on) { self.io.enableRuntimeAsserts(on); });

  const auto weights = [](const Session &self, const std::map<TensorId, py::array> &arrays) {
    std::map<TensorId, popart::MutableVoidData> made;
    for (const auto &entry : arrays) made[entry.first] = {const_cast<void *>(entry.second.data()), infoOf(entry.second)};
    self.readWeights(made);
  };
  py::class_<Session>(m, "_SessionCore")
      .def("prepareDevice", &Session::prepareDevice, py::arg("loadEngine") = true)
      .def("weightsFromHost", &Session::weightsFromHost)
      .def("weightsToHost", &Session::weightsToHost)
      .def("setRandomSeed", &Session::setRandomSeed, py::arg("seedValue"))
      .def("run", [](Session &self, PyStepIO &io, const std::string &name) { self.run(io.io, name); }, py::arg("stepio"),
           py::arg("debugName") = "")
      .def("getInfo", &Session::getInfo)
      .def("getAllTensorIds", &Session::getAllTensorIds)
      .def("_readWeights", weights)
      .def("_getDataFlow", [](const Session &self) { return self.getIr().getDataFlow(); })
      .def("getIr", &Session::getIr, py::return_value_policy::reference);

  py::class_<InferenceSession, Session>(m, "_InferenceSessionCore")
      .def(py::init([](const Model &model, const DataFlow &flow, std::shared_ptr<DeviceInfo> device, const InputShapeInfo &shapes,
                       const SessionOptions &options, const Patterns &patterns, const std::string &name) {
             return InferenceSession::createFromOnnxModel(model.serialise(), flow, device, shapes, options, patterns, name);
           }),
           py::arg("model"), py::arg("dataFlow"), py::arg("deviceInfo"), py::arg("inputShapeInfo"), py::arg("userOptions"),
           py::arg("patterns"), py::arg("name") = "inference")
      .def(py::init([](std::shared_ptr<popart::Ir> ir, std::shared_ptr<DeviceInfo> device, const std::string &name) {
             return InferenceSession::createFromIr(ir, device, name);
           }),
           py::arg("ir"), py::arg("deviceInfo"), py::arg("name") = "fromIr");

  py::class_<TrainingSession, Session>(m, "_TrainingSessionCore")
      .def(py::init([](const Model &model, const DataFlow &flow, const TensorId &loss, const popart::Optimizer &optimizer,
                       std::shared_ptr<DeviceInfo> device, const InputShapeInfo &shapes, const SessionOptions &options,
                       const Patterns &patterns, const std::string &name) {
             return TrainingSession::createFromOnnxModel(model.serialise(), flow, loss, optimizer, device, shapes, options, patterns, name);
           }),
           py::arg("model"), py::arg("dataFlow"), py::arg("loss"), py::arg("optimizer"), py::arg("deviceInfo"), py::arg("inputShapeInfo"),
           py::arg("userOptions"), py::arg("patterns"), py::arg("name") = "training");

  m.def("getTensorInfo", &infoOf);
  m.def("reservedGradientPrefix", [] { return std::string(popart::reservedGradientPrefix()); });
  m.def("versionString", [] { return std::string("3.4.0+emulated"); });
}
