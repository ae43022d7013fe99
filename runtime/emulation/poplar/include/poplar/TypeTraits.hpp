#ifndef poplar_TypeTraits_hpp
#define poplar_TypeTraits_hpp

#include <cstddef>
#include <poplar/HalfFloat.hpp>
#include <type_traits>

namespace poplar {

/// What a value of the host is made of.
struct TypeTraits {
  std::size_t size = 0, align = 0;
  bool isIntegral = false, isFloat = false, isSigned = false;

  template <class T> static TypeTraits make() {
    TypeTraits t;
    t.size = sizeof(T);
    t.align = alignof(T);
    t.isIntegral = std::is_integral<T>::value;
    t.isFloat = std::is_floating_point<T>::value || std::is_same<T, half_t>::value;
    t.isSigned = std::is_signed<T>::value || t.isFloat;
    return t;
  }
  template <class T> static constexpr bool isSimpleType() {
    return std::is_arithmetic<T>::value || std::is_same<T, half_t>::value;
  }
};

} // namespace poplar

#endif
