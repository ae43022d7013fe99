#ifndef poplar_Target_hpp
#define poplar_Target_hpp

#include <poplar/Type.hpp>
#include <string>

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

/// What a graph is built for; the figures are those of a Mk2 IPU, the number of tiles is the model's.
class Target {
  unsigned tilesPerIPU = 1472, numIPUs = 1, bytesPerTile = 638976;
  TargetType type = TargetType::IPU_MODEL;

public:
  Target() = default;
  Target(unsigned tiles, unsigned ipus, unsigned bytes) : tilesPerIPU(tiles), numIPUs(ipus), bytesPerTile(bytes) {}
  static Target createIPUTarget(unsigned numIPUs, StringRef = "ipu2") { return Target(1472, numIPUs, 638976); }
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef = "ipu2") {
    return Target(tilesPerIPU, numIPUs, 638976);
  }

  TargetType getTargetType() const { return type; }
  StringRef getTargetArchString() const { return "ipu2"; }
  unsigned getNumIPUs() const { return numIPUs; }
  unsigned getTilesPerIPU() const { return tilesPerIPU; }
  unsigned getNumTiles() const { return tilesPerIPU * numIPUs; }
  unsigned getNumWorkerContexts() const { return 6; }
  unsigned getBytesPerTile() const { return bytesPerTile; }
  std::uint64_t getMemoryBytes() const { return std::uint64_t(bytesPerTile) * getNumTiles(); }
  unsigned getExchangeBytesPerCycle() const { return 4; }
  unsigned getDataPathWidth() const { return 64; }
  unsigned getAtomicStoreGranularity() const { return 4; }
  unsigned getVectorWidth(const Type &t) const { return t == FLOAT ? 2 : t == HALF ? 4 : 1; }
  unsigned getFloatVectorWidth() const { return 2; }
  unsigned getHalfVectorWidth() const { return 4; }
  std::size_t getTypeSize(const Type &t) const { return t.bytes(); }
  double getTileClockFrequency() const { return 1.33e9; }
  friend bool operator==(const Target &a, const Target &b) {
    return a.tilesPerIPU == b.tilesPerIPU && a.numIPUs == b.numIPUs && a.bytesPerTile == b.bytesPerTile;
  }
  friend bool operator!=(const Target &a, const Target &b) { return !(a == b); }
};

inline void copyFloatToDeviceHalf(const Target &, const float *src, void *dst, std::size_t numElements) {
  for (std::size_t i = 0; i != numElements; ++i) {
    const std::uint16_t bits = detail::halfBits(src[i]);
    std::memcpy(static_cast<char *>(dst) + 2 * i, &bits, 2);
  }
}

inline void copyDeviceHalfToFloat(const Target &, const void *src, float *dst, std::size_t numElements) {
  for (std::size_t i = 0; i != numElements; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char *>(src) + 2 * i, 2);
    dst[i] = detail::floatOfHalfBits(bits);
  }
}

} // namespace poplar

#endif
