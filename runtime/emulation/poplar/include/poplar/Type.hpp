#ifndef poplar_Type_hpp
#define poplar_Type_hpp

#include <cstdint>
#include <ostream>
#include <poplar/HalfFloat.hpp>
#include <poplar/StringRef.hpp>
#include <string>

namespace poplar {

/// The type of a tensor's elements on the device.
class Type {
public:
  /// For the emulation's own use.
  enum class Kind : unsigned char { Bool, Char, SignedChar, UnsignedChar, Short, UnsignedShort, Int, UnsignedInt,
                                    Long, UnsignedLong, LongLong, UnsignedLongLong, Half, Float };

private:
  Kind kind_;
  unsigned char size_;
  const char *name_;

public:
  constexpr Type() : kind_(Kind::Float), size_(4), name_("float") {}
  /// For the emulation's own use.
  constexpr Type(Kind kind, unsigned char size, const char *name) : kind_(kind), size_(size), name_(name) {}
  StringRef toString() const { return name_; }
  /// For the emulation's own use.
  constexpr Kind kind() const { return kind_; }
  /// For the emulation's own use.
  constexpr unsigned bytes() const { return size_; }
  friend constexpr bool operator==(const Type &a, const Type &b) { return a.kind_ == b.kind_; }
  friend constexpr bool operator!=(const Type &a, const Type &b) { return a.kind_ != b.kind_; }
  friend constexpr bool operator<(const Type &a, const Type &b) { return a.kind_ < b.kind_; }
};

inline std::ostream &operator<<(std::ostream &os, const Type &type) { return os << type.toString(); }

constexpr Type BOOL{Type::Kind::Bool, 1, "bool"};
constexpr Type CHAR{Type::Kind::Char, 1, "char"};
constexpr Type SIGNED_CHAR{Type::Kind::SignedChar, 1, "signed char"};
constexpr Type UNSIGNED_CHAR{Type::Kind::UnsignedChar, 1, "unsigned char"};
constexpr Type SHORT{Type::Kind::Short, 2, "short"};
constexpr Type UNSIGNED_SHORT{Type::Kind::UnsignedShort, 2, "unsigned short"};
constexpr Type INT{Type::Kind::Int, 4, "int"};
constexpr Type UNSIGNED_INT{Type::Kind::UnsignedInt, 4, "unsigned int"};
constexpr Type LONG{Type::Kind::Long, 4, "long"};
constexpr Type UNSIGNED_LONG{Type::Kind::UnsignedLong, 4, "unsigned long"};
constexpr Type LONGLONG{Type::Kind::LongLong, 8, "long long"};
constexpr Type UNSIGNED_LONGLONG{Type::Kind::UnsignedLongLong, 8, "unsigned long long"};
constexpr Type HALF{Type::Kind::Half, 2, "half"};
constexpr Type FLOAT{Type::Kind::Float, 4, "float"};

/// `equivalent_device_type<T>().value` is the device type that holds a T of the host.
template <class T> struct equivalent_device_type;
#define POPLAR_EMULATION_DEVICE_TYPE(T, TYPE)                                                                          \
  template <> struct equivalent_device_type<T> {                                                                       \
    const Type &value = TYPE;                                                                                          \
  };
POPLAR_EMULATION_DEVICE_TYPE(bool, BOOL)
POPLAR_EMULATION_DEVICE_TYPE(char, CHAR)
POPLAR_EMULATION_DEVICE_TYPE(signed char, SIGNED_CHAR)
POPLAR_EMULATION_DEVICE_TYPE(unsigned char, UNSIGNED_CHAR)
POPLAR_EMULATION_DEVICE_TYPE(short, SHORT)
POPLAR_EMULATION_DEVICE_TYPE(unsigned short, UNSIGNED_SHORT)
POPLAR_EMULATION_DEVICE_TYPE(int, INT)
POPLAR_EMULATION_DEVICE_TYPE(unsigned, UNSIGNED_INT)
POPLAR_EMULATION_DEVICE_TYPE(long, LONGLONG)
POPLAR_EMULATION_DEVICE_TYPE(unsigned long, UNSIGNED_LONGLONG)
POPLAR_EMULATION_DEVICE_TYPE(long long, LONGLONG)
POPLAR_EMULATION_DEVICE_TYPE(unsigned long long, UNSIGNED_LONGLONG)
POPLAR_EMULATION_DEVICE_TYPE(half_t, HALF)
POPLAR_EMULATION_DEVICE_TYPE(float, FLOAT)
POPLAR_EMULATION_DEVICE_TYPE(double, FLOAT)
#undef POPLAR_EMULATION_DEVICE_TYPE

} // namespace poplar

#endif
