// Devices. The emulation has no hardware: a model of an IPU, or the CPU, which are the same here.
#ifndef POPART_DEVICEMANAGER_HPP
#define POPART_DEVICEMANAGER_HPP

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <poplar/Device.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Target.hpp>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class DeviceType { IpuModel = 0, Cpu, Ipu, OfflineIpu, Sim };
enum class DeviceConnectionType { Always = 0, OnDemand, Never };
enum class SyncPattern { Full = 0, SinglePipeline, ReplicaAndLadder };
enum class DeviceSelectionCriterion { First = 0, Random };

class DeviceInfo {
 public:
  /// For the emulation's own use.
  IN_LIBRARY DeviceInfo(DeviceType type, poplar::Device device) : type_(type), device_(std::move(device)) {}

  IN_LIBRARY bool attach() { return attached_ = true; }
  IN_LIBRARY void detach() { attached_ = false; }
  IN_LIBRARY bool isAttached() const { return attached_; }
  IN_LIBRARY DeviceType getType() const { return type_; }
  IN_LIBRARY int getId() const { return 0; }
  IN_LIBRARY std::string getVersion() const { return "emulated"; }
  IN_LIBRARY int getNumIpus() const { return 1; }
  IN_LIBRARY int getTilesPerIPU() const { return static_cast<int>(getTarget().getTilesPerIPU()); }
  IN_LIBRARY const poplar::Target &getTarget() const { return device_.getTarget(); }
  /// For the emulation's own use.
  IN_LIBRARY poplar::Device &device() { return device_; }
  IN_LIBRARY std::string toString() const { return type_ == DeviceType::Cpu ? "Device Type: CPU (emulated)" : "Device Type: IpuModel (emulated)"; }

 private:
  DeviceType type_;
  poplar::Device device_;
  bool attached_ = false;
};

class DeviceManager {
 public:
  static DeviceManager &createDeviceManager() {
    static DeviceManager instance;
    return instance;
  }

  /// Options "numIPUs" (1 only), "tilesPerIPU", "ipuVersion"; others raise popart::error.
  IN_LIBRARY std::shared_ptr<DeviceInfo> createIpuModelDevice(const std::map<std::string, std::string> &options) {
    poplar::IPUModel model;
    for (const auto &option : options) {
      if (option.first == "numIPUs") {
        if (option.second != "1") throw error("The emulation has one IPU, not {}", option.second);
      } else if (option.first == "tilesPerIPU") {
        model.tilesPerIPU = static_cast<unsigned>(std::stoul(option.second));
      } else if (option.first != "ipuVersion") {
        throw error("Unknown option '{}' of an IPU model", option.first);
      }
    }
    return std::make_shared<DeviceInfo>(DeviceType::IpuModel, model.createDevice());
  }
  IN_LIBRARY std::shared_ptr<DeviceInfo> createCpuDevice() {
    return std::make_shared<DeviceInfo>(DeviceType::Cpu, poplar::Device::createCPUDevice());
  }

  // There is no hardware to be had.
  IN_LIBRARY std::vector<std::shared_ptr<DeviceInfo>> enumerateDevices(SyncPattern = SyncPattern::Full, int = 1, DeviceType = DeviceType::Ipu,
                                                            DeviceConnectionType = DeviceConnectionType::Always, int = 0) {
    return {};
  }
  IN_LIBRARY std::shared_ptr<DeviceInfo> tryAcquireAvailableDevice(int = 1, int = 0, SyncPattern = SyncPattern::Full,
                                                        DeviceConnectionType = DeviceConnectionType::Always,
                                                        DeviceSelectionCriterion = DeviceSelectionCriterion::First) {
    return nullptr;
  }
  /// Raises popart::error: the emulation has no hardware.
  IN_LIBRARY std::shared_ptr<DeviceInfo> acquireAvailableDevice(int numIpus = 1, int tilesPerIPU = 0, SyncPattern = SyncPattern::Full,
                                                     DeviceConnectionType = DeviceConnectionType::Always,
                                                     DeviceSelectionCriterion = DeviceSelectionCriterion::First) {
    throw error("Failed to acquire device with {} IPUs and {} tiles per IPU: this is an emulation, without hardware", numIpus,
                tilesPerIPU);
  }
};

}  // namespace popart
#pragma GCC visibility pop

#endif
