/* Elements of tensors in a GPU's memory: stored narrow, computed in wider types, several at once where they lie together. */
#ifndef OPC_CUDA_MEMORY_H
#define OPC_CUDA_MEMORY_H

#include <type_traits>

#include "opc/core/math.h"
#include "opc/core/minifloat.h"
#include "opc/cuda/device.h"

namespace opc {
inline namespace OPC_VARIANT {

/* An element in the type it is computed in. */
template <typename Stored>
OPC_INLINE compute<Stored> load(const Stored *element) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    return widen(*element);
  } else {
    return *element;
  }
}

/* Rounds a value to an element. */
template <typename Stored>
OPC_INLINE void store(Stored *element, compute<Stored> value) {
  if constexpr (sizeof(compute<Stored>) != sizeof(Stored)) {
    *element = narrow<Stored>(value);
  } else {
    *element = value;
  }
}

/* An attribute that is a number, in the type that is asked for: to convert it on the device takes a unit that is rare there. */
struct real_number {
  double wide;
  float narrow;
  real_number() = default;
  explicit real_number(double value) : wide(value), narrow(static_cast<float>(value)) {}
  template <typename T>
  OPC_HOST_DEVICE T as() const {
    if constexpr (sizeof(T) == 4 && T(0.5) != T(0)) {
      return narrow;
    } else {
      return static_cast<T>(wide);
    }
  }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MEMORY_H
