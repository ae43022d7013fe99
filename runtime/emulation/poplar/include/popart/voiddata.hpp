// Memory of the host with the info of what lies there.
#ifndef POPART_VOIDDATA_HPP
#define POPART_VOIDDATA_HPP

#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

class ConstVoidData {
 public:
  ConstVoidData() = default;
  IN_LIBRARY ConstVoidData(const void *data_, const TensorInfo &info_) : data(data_), info(info_) {}

  const void *data = nullptr;
  TensorInfo info;
};

class MutableVoidData {
 public:
  void *data = nullptr;
  TensorInfo info;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
