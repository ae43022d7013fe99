#ifndef poplar_DeviceManager_hpp
#define poplar_DeviceManager_hpp

#include <poplar/IPUModel.hpp>
#include <vector>

namespace poplar {

/// Lists the devices of this machine; the emulation has no hardware to list.
class DeviceManager {
public:
  static DeviceManager createDeviceManager() { return DeviceManager(); }
  std::size_t getNumDevices() const { return 0; }
  std::vector<Device> getDevices(const OptionFlags & = {}) const { return {}; }
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags & = {}) const {
    if (type != TargetType::IPU_MODEL)
      return {};
    IPUModel model;
    model.numIPUs = requiredNumIPUs;
    return {model.createDevice()};
  }
};

} // namespace poplar

#endif
