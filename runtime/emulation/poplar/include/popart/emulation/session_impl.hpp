// Sessions.
#ifndef POPART_EMULATION_SESSION_IMPL_HPP
#define POPART_EMULATION_SESSION_IMPL_HPP

#include <cstring>

#pragma GCC visibility push(default)
namespace popart {

POPLAR_EMULATION_FUNCTION Session::Session(std::shared_ptr<Ir> ir_, std::shared_ptr<DeviceInfo> device, std::string name)
    : ir(std::move(ir_)), name_(std::move(name)) {
  if (!device) throw error("Must pass a valid DeviceInfo to Session::Session constructor");
  if (!ir->isPrepared()) ir->finalise();
  device_.reset(new popx::Devicex(*ir, device));
}

POPLAR_EMULATION_FUNCTION std::shared_ptr<Ir> Session::makeIr(const emulation::Model &model, const DataFlow &dataFlow,
                                                              const TensorId &loss, const Optimizer *optimizer,
                                                              const InputShapeInfo &inputShapeInfo, const SessionOptions &options,
                                                              const Patterns &patterns) {
  std::shared_ptr<Ir> made = std::make_shared<Ir>();
  made->setDataFlow(dataFlow);
  made->setUserOptions(options);
  made->setPatterns(patterns);
  made->setInputShapeInfo(inputShapeInfo);
  made->setExecutionMode(optimizer ? Ir::ExecutionMode::Training : Ir::ExecutionMode::Inference);
  if (optimizer) made->setOptimizer(*optimizer);
  made->prepare(model, loss);
  return made;
}

POPLAR_EMULATION_FUNCTION void Session::prepareDevice(bool) {
  if (!device_->prepareHasBeenCalled()) device_->prepare();
  device_->weightsFromHost();
}

POPLAR_EMULATION_FUNCTION void Session::run(IStepIO &io, std::string) {
  if (!device_->prepareHasBeenCalled())
    throw error("Devicex::prepare() must be called before Devicex::run(const IStepIO &) is called.");
  device_->run(io);
}

POPLAR_EMULATION_FUNCTION TensorInfo Session::getInfo(TensorId id) const {
  const TensorInfo info = ir->getMainGraphTensors().get(id)->info;
  if (!info.isSet()) throw error("TensorInfo for `{}' not set", id);
  return info;
}

POPLAR_EMULATION_FUNCTION bool Session::hasInfo(TensorId id) const {
  return ir->getMainGraphTensors().contains(id) && ir->getMainGraphTensors().get(id)->info.isSet();
}

POPLAR_EMULATION_FUNCTION void Session::readWeights(std::map<TensorId, MutableVoidData> &weights) const {
  for (auto &entry : weights) {
    const Tensor *tensor = ir->getMainGraphTensors().get(entry.first);
    const TensorData *data = tensor->tensorData();
    if (entry.second.info != tensor->info) throw error("The weight {} is {}, not {}", entry.first, tensor->info, entry.second.info);
    if (data->size()) std::memcpy(entry.second.data, data->data(), data->size());
  }
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<InferenceSession> InferenceSession::createFromIr(std::shared_ptr<Ir> ir,
                                                                                           std::shared_ptr<DeviceInfo> device,
                                                                                           const std::string name) {
  return std::unique_ptr<InferenceSession>(new InferenceSession(ir, device, name));
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<InferenceSession> InferenceSession::createFromOnnxModel(
    const std::string &model, const DataFlow &dataFlow, std::shared_ptr<DeviceInfo> device, const InputShapeInfo &inputShapeInfo,
    const SessionOptions &options, const Patterns &patterns, const std::string name) {
  return createFromIr(makeIr(emulation::Model::parse(model), dataFlow, "", nullptr, inputShapeInfo, options, patterns), device, name);
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<TrainingSession> TrainingSession::createFromIr(std::shared_ptr<Ir> ir,
                                                                                         std::shared_ptr<DeviceInfo> device,
                                                                                         const std::string name) {
  return std::unique_ptr<TrainingSession>(new TrainingSession(ir, device, name));
}

POPLAR_EMULATION_FUNCTION std::unique_ptr<TrainingSession> TrainingSession::createFromOnnxModel(
    const std::string &model, const DataFlow &dataFlow, const TensorId &loss, const Optimizer &optimizer,
    std::shared_ptr<DeviceInfo> device, const InputShapeInfo &inputShapeInfo, const SessionOptions &options, const Patterns &patterns,
    const std::string name) {
  if (loss.empty()) throw error("A training session needs the loss");
  return createFromIr(makeIr(emulation::Model::parse(model), dataFlow, loss, &optimizer, inputShapeInfo, options, patterns), device,
                      name);
}

}  // namespace popart
#pragma GCC visibility pop

#endif
