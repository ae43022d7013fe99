#ifndef poplar_GraphElements_hpp
#define poplar_GraphElements_hpp

#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>
#include <string>

namespace poplar {

class FieldRef;

/// Refers to a set of vertices that run at the same time.
class ComputeSet {
  unsigned id = ~0u;

public:
  ComputeSet() = default;
  explicit ComputeSet(unsigned i) : id(i) {}
  unsigned getId() const { return id; }
};
inline bool operator==(const ComputeSet &a, const ComputeSet &b) { return a.getId() == b.getId(); }
inline bool operator!=(const ComputeSet &a, const ComputeSet &b) { return !(a == b); }

/// Refers to a vertex of a graph.
class VertexRef {
  unsigned id = ~0u;

public:
  VertexRef() = default;
  explicit VertexRef(unsigned i) : id(i) {}
  unsigned getId() const { return id; }
  FieldRef operator[](StringRef fieldName) const;
};

/// Refers to a field of a vertex, or to one row of a field of vectors.
class FieldRef {
  VertexRef vertex;
  std::string field;
  std::size_t row = ~std::size_t(0);

public:
  FieldRef(VertexRef v, std::string name, std::size_t subField = ~std::size_t(0))
      : vertex(v), field(std::move(name)), row(subField) {}
  FieldRef operator[](std::size_t index) const { return FieldRef(vertex, field, index); }
  VertexRef getVertex() const { return vertex; }
  const std::string &getName() const { return field; }
  bool isIndexed() const { return row != ~std::size_t(0); }
  std::size_t getIndex() const { return row; }
};

inline FieldRef VertexRef::operator[](StringRef fieldName) const { return FieldRef(*this, fieldName); }

/// Refers to a program that is compiled once and called from many places.
class Function {
  unsigned id = ~0u;

public:
  Function() = default;
  explicit Function(unsigned i) : id(i) {}
  unsigned getId() const { return id; }
};

enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

/// Refers to a queue between the host and the device.
class DataStream {
  std::string handle_;
  Type type;
  std::size_t elements = 0;
  bool toDevice = false;

public:
  DataStream() = default;
  DataStream(std::string handle, Type t, std::size_t n, bool hostToDevice)
      : handle_(std::move(handle)), type(t), elements(n), toDevice(hostToDevice) {}
  const std::string &handle() const { return handle_; }
  std::size_t numElements() const { return elements; }
  Type elementType() const { return type; }
  bool valid() const { return !handle_.empty(); }
  /// For the emulation's own use.
  bool hostToDevice() const { return toDevice; }
};

} // namespace poplar

#endif
