// The values that a constant or a variable has on the host.
#ifndef POPART_TENSORDATA_HPP
#define POPART_TENSORDATA_HPP

#include <cstddef>
#include <cstring>
#include <vector>

#include <popart/error.hpp>

#pragma GCC visibility push(default)
namespace popart {

class TensorData {
 public:
  IN_LIBRARY static TensorData fromCopyOf(const void *src, std::size_t size) {
    TensorData out;
    out.bytes.resize(size);
    if (size) std::memcpy(out.bytes.data(), src, size);
    return out;
  }
  IN_LIBRARY static TensorData fromEmplaceOf(std::vector<char> &&data) {
    TensorData out;
    out.bytes = std::move(data);
    return out;
  }

  IN_LIBRARY void *data() { return bytes.data(); }
  IN_LIBRARY const void *data() const { return bytes.data(); }
  IN_LIBRARY std::size_t size() const { return bytes.size(); }

  /// The values as T. Raises popart::error where the size is not that of `count` values.
  template <typename T>
  std::vector<T> copyDataAs(int count) const {
    if (size() != static_cast<std::size_t>(count) * sizeof(T)) {
      throw error("Size of data does not match expected result size. Expected data of {} bytes, but data is {} bytes in size.",
                  static_cast<std::size_t>(count) * sizeof(T), size());
    }
    std::vector<T> out(static_cast<std::size_t>(count));
    if (count) std::memcpy(static_cast<void *>(out.data()), bytes.data(), bytes.size());
    return out;
  }

 private:
  std::vector<char> bytes;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
