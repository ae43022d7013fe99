// An array of the host.
#ifndef POPART_IARRAY_HPP
#define POPART_IARRAY_HPP

#include <cstddef>
#include <cstdint>

#include <popart/datatype.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class IArray {
 public:
  virtual ~IArray() = default;
  virtual void *data() = 0;
  virtual DataType dataType() const = 0;
  virtual std::size_t rank() const = 0;
  virtual int64_t dim(std::size_t index) const = 0;
  virtual std::size_t nelms() const = 0;
  virtual const Shape shape() const = 0;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
