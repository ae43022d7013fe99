#ifndef poplar_Device_hpp
#define poplar_Device_hpp

#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>
#include <vector>

namespace poplar {

/// Somewhere an engine can run; the emulation's is always a model on this machine's CPU.
class Device {
  Target target;
  bool attached = false;

public:
  Device() = default;
  explicit Device(const Target &t) : target(t) {}
  static Device createCPUDevice(const OptionFlags & = {}) { return Device(Target(1, 1, 638976)); }
  unsigned getId() const { return 0; }
  std::vector<int> getDriverIDs() const { return {0}; }
  const Target &getTarget() const { return target; }
  bool attach() const { return true; }
  void detach() const {}
  bool isAttached() const { return attached; }
};

} // namespace poplar

#endif
