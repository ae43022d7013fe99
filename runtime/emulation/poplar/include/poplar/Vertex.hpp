#ifndef poplar_Vertex_hpp
#define poplar_Vertex_hpp

#include <cstddef>
#include <cstdint>
#include <poplar/HalfFloat.hpp>
#include <poplar/VectorTypes.hpp>
#include <poplar/detail/vertex_abi.hpp>

namespace poplar {

/// A codelet that one worker runs; it defines `void compute()`, or `bool compute()`, as all did before SDK 3.0.
class Vertex {};
/// A codelet that all workers run at the same time; it defines `void compute(unsigned workerId)`.
class MultiVertex : public Vertex {
public:
  static constexpr unsigned numWorkers() { return 6; }
};

/// Elements in a row. Where the layout has no size the codelet can't ask for it, the emulation still checks it.
template <class T, VectorLayout L = VectorLayout::SPAN, unsigned MinAlign = alignof(T), bool Interleaved = false>
class Vector {
protected:
  T *first;
  std::size_t length;
  static constexpr bool sized = L == VectorLayout::SPAN || L == VectorLayout::SHORT_SPAN;

public:
  using value_type = T;
  T &operator[](std::size_t i) const {
    if (i >= length)
      throw detail::OutOfField{i, length};
    return first[i];
  }
  T *begin() const { return first; }
  template <bool Sized = sized> T *end() const {
    static_assert(Sized, "a vector of this layout doesn't know its end");
    return first + length;
  }
  template <bool Sized = sized> std::size_t size() const {
    static_assert(Sized, "a vector of this layout doesn't know its size");
    return length;
  }
  /// For the emulation's own use.
  void emulationBind(T *data, std::size_t n) {
    first = data;
    length = n;
  }
};

/// Vectors, each with a size of its own.
template <class T, VectorListLayout L = VectorListLayout::DELTAN, unsigned MinAlign = alignof(T),
          bool Interleaved = false>
class VectorList {
  const detail::Span *rows;
  std::size_t length;

public:
  using value_type = T;
  Vector<T, VectorLayout::SPAN, MinAlign> operator[](std::size_t i) const {
    if (i >= length)
      throw detail::OutOfField{i, length};
    Vector<T, VectorLayout::SPAN, MinAlign> row;
    row.emulationBind(static_cast<T *>(rows[i].data), rows[i].size);
    return row;
  }
  std::size_t size() const { return length; }
  /// For the emulation's own use.
  void emulationBind(const detail::Span *list, std::size_t n) {
    rows = list;
    length = n;
  }
};

namespace detail {

/// What a field of elements of type T looks like to its codelet: one element, a vector or vectors.
template <class T> class Edge1 {
protected:
  T *element;

public:
  T &operator*() const { return *element; }
  operator T &() const { return *element; }
  void emulationBind(T *p) { element = p; }
};
template <class T> struct EdgeOf { using read = Edge1<const T>; using write = Edge1<T>; };
template <class T, VectorLayout L, unsigned A, bool I> struct EdgeOf<Vector<T, L, A, I>> {
  using read = Vector<const T, L, A, I>;
  using write = Vector<T, L, A, I>;
};
template <class T, VectorListLayout L, unsigned A, bool I> struct EdgeOf<VectorList<T, L, A, I>> {
  using read = VectorList<const T, L, A, I>;
  using write = VectorList<T, L, A, I>;
};

} // namespace detail

template <class T> class Input : public detail::EdgeOf<T>::read {};
template <class T> class Output;
template <class T> class InOut;

namespace detail {

/// A vector of edges, each a vector of its own.
template <class E> class Rows {
  const Span *rows;
  std::size_t length;

public:
  E operator[](std::size_t i) const {
    if (i >= length)
      throw OutOfField{i, length};
    E row;
    row.emulationBind(static_cast<typename E::value_type *>(rows[i].data), rows[i].size);
    return row;
  }
  std::size_t size() const { return length; }
  void emulationBindRows(const Span *list, std::size_t n) {
    rows = list;
    length = n;
  }
};

} // namespace detail

template <class T, VectorLayout L, unsigned A, bool I>
class Vector<Input<T>, L, A, I> : public detail::Rows<Input<T>> {};
template <class T, VectorLayout L, unsigned A, bool I>
class Vector<Output<T>, L, A, I> : public detail::Rows<Output<T>> {};
template <class T, VectorLayout L, unsigned A, bool I>
class Vector<InOut<T>, L, A, I> : public detail::Rows<InOut<T>> {};
template <class T> class Output : public detail::EdgeOf<T>::write {};
template <class T> class InOut : public detail::EdgeOf<T>::write {};

} // namespace poplar

#endif
