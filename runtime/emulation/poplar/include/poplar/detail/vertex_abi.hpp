#ifndef poplar_detail_vertex_abi_hpp
#define poplar_detail_vertex_abi_hpp

#include <cstddef>

/// What a compiled codelet file tells the graph of its vertices: plain data, so that it needs no other header.
namespace poplar {
namespace detail {

enum class Direction : unsigned char { State, Input, Output, InOut };

/// Elements in a row, as a field is given them.
struct Span {
  void *data;
  std::size_t size;
};

struct FieldInfo {
  const char *name;
  const char *type; // of an element, as Type::toString() says it
  Direction direction;
  unsigned char dimensions; // 0 one element, 1 a vector, 2 vectors
  unsigned elementBytes;
  unsigned minAlign;
  bool sized; // whether the codelet knows the number of elements
  void (*bind)(void *vertex, const Span *rows, std::size_t count);
};

struct VertexInfo {
  const char *name;
  std::size_t bytes;
  bool multi; // run once by each worker
  const FieldInfo *fields;
  std::size_t fieldCount;
  void (*compute)(void *vertex, unsigned worker);
};

/// For the address sanitizer every field gets memory of exactly its size; for the thread sanitizer the workers of a
/// MultiVertex are threads.
constexpr int sanitizedAddress = 1, sanitizedThread = 2;

struct VertexTable {
  int version;
  int sanitized; // what they were compiled for, see below
  const VertexInfo *vertices;
  std::size_t count;
};

/// Thrown where a codelet leaves its field.
struct __attribute__((visibility("default"))) OutOfField {
  std::size_t index, size;
};

} // namespace detail
} // namespace poplar

#endif
