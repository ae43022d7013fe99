// A model on a device.
#ifndef POPART_SESSION_HPP
#define POPART_SESSION_HPP

#include <map>
#include <memory>
#include <set>
#include <string>

#include <popart/dataflow.hpp>
#include <popart/devicemanager.hpp>
#include <popart/inputshapeinfo.hpp>
#include <popart/ir.hpp>
#include <popart/istepio.hpp>
#include <popart/optimizer.hpp>
#include <popart/patterns/patterns.hpp>
#include <popart/popx/devicex.hpp>
#include <popart/sessionoptions.hpp>
#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

const std::string DefaultInferenceSessionName = "inference";
const std::string DefaultTrainingSessionName = "training";

class Session {
 public:
  virtual ~Session() = default;

  /// Lowers and compiles. Raises popart::error, or what Poplar raises, where an op can't be lowered.
  void prepareDevice(bool loadEngine = true);
  IN_LIBRARY void weightsFromHost() { device_->weightsFromHost(); }
  IN_LIBRARY void weightsToHost() { device_->weightsToHost(); }
  IN_LIBRARY void setRandomSeed(uint64_t) {}
  void run(IStepIO &io, std::string debugName = "");
  /// The info of a tensor of the main graph, gradients too. Raises popart::error where there is none.
  TensorInfo getInfo(TensorId id) const;
  bool hasInfo(TensorId id) const;
  IN_LIBRARY std::set<TensorId> getAllTensorIds() const { return ir->getAllTensorIds(); }
  /// For the emulation's own use. Writes the weights as they are on the host into `weights`.
  void readWeights(std::map<TensorId, MutableVoidData> &weights) const;

  IN_LIBRARY const Ir &getIr() const { return *ir; }
  IN_LIBRARY popx::Devicex &getDevice() { return *device_; }
  IN_LIBRARY const popx::Devicex &getDevice() const { return *device_; }
  /// For the emulation's own use.
  IN_LIBRARY const std::string &getName() const { return name_; }

 protected:
  /// For the emulation's own use.
  Session(std::shared_ptr<Ir> ir_, std::shared_ptr<DeviceInfo> device, std::string name);
  /// For the emulation's own use.
  static std::shared_ptr<Ir> makeIr(const emulation::Model &model, const DataFlow &dataFlow, const TensorId &loss,
                                    const Optimizer *optimizer, const InputShapeInfo &inputShapeInfo, const SessionOptions &options,
                                    const Patterns &patterns);

  std::shared_ptr<Ir> ir;
  std::unique_ptr<popx::Devicex> device_;
  std::string name_;
};

class InferenceSession : public Session {
 public:
  /// `ir` is one that finalise() has been called on, or is about to be.
  static std::unique_ptr<InferenceSession> createFromIr(std::shared_ptr<Ir> ir, std::shared_ptr<DeviceInfo> device,
                                                        const std::string name = DefaultInferenceSessionName);
  /// `model` as Builder::getModelProto() gives it.
  static std::unique_ptr<InferenceSession> createFromOnnxModel(const std::string &model, const DataFlow &dataFlow,
                                                               std::shared_ptr<DeviceInfo> device,
                                                               const InputShapeInfo &inputShapeInfo = InputShapeInfo(),
                                                               const SessionOptions &options = SessionOptions(),
                                                               const Patterns &patterns = Patterns(),
                                                               const std::string name = DefaultInferenceSessionName);

 private:
  using Session::Session;
};

class TrainingSession : public Session {
 public:
  static std::unique_ptr<TrainingSession> createFromIr(std::shared_ptr<Ir> ir, std::shared_ptr<DeviceInfo> device,
                                                       const std::string name = DefaultTrainingSessionName);
  static std::unique_ptr<TrainingSession> createFromOnnxModel(const std::string &model, const DataFlow &dataFlow, const TensorId &loss,
                                                              const Optimizer &optimizer, std::shared_ptr<DeviceInfo> device,
                                                              const InputShapeInfo &inputShapeInfo = InputShapeInfo(),
                                                              const SessionOptions &options = SessionOptions(),
                                                              const Patterns &patterns = Patterns(),
                                                              const std::string name = DefaultTrainingSessionName);

 private:
  using Session::Session;
};

}  // namespace popart
#pragma GCC visibility pop

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popart/emulation/session_impl.hpp>
#endif

#endif
