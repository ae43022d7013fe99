// A device with a lowered Ir on it.
#ifndef POPART_POPX_DEVICEX_HPP
#define POPART_POPX_DEVICEX_HPP
#define POPART_DEVICEX_OPEN

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <poplar/Engine.hpp>

#include <popart/devicemanager.hpp>
#include <popart/ir.hpp>
#include <popart/istepio.hpp>
#include <popart/names.hpp>
#include <popart/popx/irlowering.hpp>
#include <popart/voiddata.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace popx {

class Devicex {
 public:
  /// For the emulation's own use.
  Devicex(Ir &ir, std::shared_ptr<DeviceInfo> device);

  IN_LIBRARY const Ir &ir() const { return ir_; }
  IN_LIBRARY IrLowering &lowering() { return *lowering_; }
  IN_LIBRARY const IrLowering &lowering() const { return *lowering_; }
  IN_LIBRARY const DeviceInfo *getDeviceInfo() const { return device_.get(); }

  /// Lowers the Ir and compiles the engine. Called once.
  void prepare();
  IN_LIBRARY bool prepareHasBeenCalled() const { return engine_ != nullptr; }
  void weightsFromHost();
  void weightsToHost();
  /// Runs one step: each batch takes its part of the inputs and gives its part of the anchors.
  void run(IStepIO &io);

 private:
  void connectStreams();
  void readAnchor(const TensorId &id, int batch, int batches);

  Ir &ir_;
  std::shared_ptr<DeviceInfo> device_;
  std::unique_ptr<IrLowering> lowering_;
  std::unique_ptr<poplar::Engine> engine_;
  IStepIO *io_ = nullptr;                          // of the step that runs
  std::map<TensorId, std::vector<char>> buffers_;  // the anchors of the last batch
  std::map<TensorId, std::vector<char>> sums_;     // anchors returned as SUM
};

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#undef POPART_DEVICEX_OPEN
#include <popart/emulation/define_popx.hpp>

#endif
