#ifndef poplar_IPUModel_hpp
#define poplar_IPUModel_hpp

#include <poplar/Device.hpp>

namespace poplar {

/// A model of IPUs. `tilesPerIPU` and `memoryBytesPerTile` may be made smaller to see what happens on few tiles.
struct IPUModel {
  unsigned numIPUs = 1;
  unsigned tilesPerIPU = 1472;
  /// For the emulation's own use.
  unsigned memoryBytesPerTile = 638976;
  unsigned numWorkerContexts = 6;
  bool compileIPUCode = true;

  explicit IPUModel(const char *version = "ipu2") {
    if (StringRef(version) != "ipu2" && StringRef(version) != "ipu21")
      throw invalid_machine_model(std::string("the emulation models ipu2 and ipu21, not ") + version);
  }
  Device createDevice(const OptionFlags & = {}, bool = false, unsigned = 0) const {
    return Device(Target(tilesPerIPU, numIPUs, memoryBytesPerTile));
  }
};

} // namespace poplar

#endif
