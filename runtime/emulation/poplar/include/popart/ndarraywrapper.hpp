// An array of the host over memory that someone else holds.
#ifndef POPART_NDARRAYWRAPPER_HPP
#define POPART_NDARRAYWRAPPER_HPP

#include <vector>

#include <popart/iarray.hpp>
#include <popart/tensorinfo.hpp>

#pragma GCC visibility push(default)
namespace popart {

template <typename T>
class NDArrayWrapper : public IArray {
 public:
  NDArrayWrapper(T *data, const TensorInfo &info) : data_(data), info_(info) {}
  NDArrayWrapper(T *data, const std::vector<int64_t> &shape) : data_(data), info_(getDataType<T>(), shape) {}

  void *data() override { return data_; }
  DataType dataType() const override { return info_.dataType(); }
  std::size_t rank() const override { return info_.shape().size(); }
  int64_t dim(std::size_t index) const override { return info_.shape().at(index); }
  std::size_t nelms() const override { return static_cast<std::size_t>(info_.nelms()); }
  const Shape shape() const override { return info_.shape(); }

 private:
  T *data_;
  TensorInfo info_;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
