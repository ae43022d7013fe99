#ifndef poplar_detail_codelet_registry_hpp
#define poplar_detail_codelet_registry_hpp

#include <poplar/Vertex.hpp>

/// What popc adds to a codelet file: a table of its vertices, made from their types.
namespace poplar {
namespace detail {

template <class T> struct ElementName;
#define POPLAR_EMULATION_NAME(T, NAME)                                                                                 \
  template <> struct ElementName<T> {                                                                                  \
    static constexpr const char *value = NAME;                                                                         \
  };
POPLAR_EMULATION_NAME(bool, "bool")
POPLAR_EMULATION_NAME(char, "char")
POPLAR_EMULATION_NAME(signed char, "signed char")
POPLAR_EMULATION_NAME(unsigned char, "unsigned char")
POPLAR_EMULATION_NAME(short, "short")
POPLAR_EMULATION_NAME(unsigned short, "unsigned short")
POPLAR_EMULATION_NAME(int, "int")
POPLAR_EMULATION_NAME(unsigned, "unsigned int")
POPLAR_EMULATION_NAME(long long, "long long")
POPLAR_EMULATION_NAME(unsigned long long, "unsigned long long")
POPLAR_EMULATION_NAME(half_t, "half")
POPLAR_EMULATION_NAME(float, "float")
#undef POPLAR_EMULATION_NAME

/// How a field of type F is described and given its elements. The first case is a scalar of the vertex' state.
template <class F> struct FieldKind {
  static_assert(!__is_class(F) || sizeof(ElementName<F>) != 0, "a field is an edge, a vector or a scalar");
  using Element = F;
  static constexpr Direction direction = Direction::State;
  static constexpr unsigned char dimensions = 0;
  static constexpr unsigned align = alignof(F);
  static constexpr bool sized = true;
  static void bind(F &field, const Span *rows, std::size_t) { field = *static_cast<const F *>(rows->data); }
};
template <class T> struct FieldKind<const T> : FieldKind<T> {
  static void bind(const T &field, const Span *rows, std::size_t n) {
    FieldKind<T>::bind(const_cast<T &>(field), rows, n);
  }
};
template <class T, VectorLayout L, unsigned A, bool I> struct FieldKind<Vector<T, L, A, I>> {
  using Element = T;
  static constexpr Direction direction = Direction::State;
  static constexpr unsigned char dimensions = 1;
  static constexpr unsigned align = A;
  static constexpr bool sized = L == VectorLayout::SPAN || L == VectorLayout::SHORT_SPAN;
  static void bind(Vector<T, L, A, I> &field, const Span *rows, std::size_t) {
    field.emulationBind(static_cast<T *>(rows->data), rows->size);
  }
};

/// The edges: which way the elements go, and what they are.
template <class F, class T, Direction D> struct ScalarEdge {
  using Element = T;
  static constexpr Direction direction = D;
  static constexpr unsigned char dimensions = 0;
  static constexpr unsigned align = alignof(T);
  static constexpr bool sized = true;
  static void bind(F &field, const Span *rows, std::size_t) { field.emulationBind(static_cast<T *>(rows->data)); }
};
template <class F, class V, Direction D> struct VectorEdge;
template <class F, class T, VectorLayout L, unsigned A, bool I, Direction D>
struct VectorEdge<F, Vector<T, L, A, I>, D> : FieldKind<Vector<T, L, A, I>> {
  static constexpr Direction direction = D;
  static void bind(F &field, const Span *rows, std::size_t) {
    field.emulationBind(static_cast<T *>(rows->data), rows->size);
  }
};
template <class F, class T, VectorListLayout L, unsigned A, bool I, Direction D>
struct VectorEdge<F, VectorList<T, L, A, I>, D> {
  using Element = T;
  static constexpr Direction direction = D;
  static constexpr unsigned char dimensions = 2;
  static constexpr unsigned align = A;
  static constexpr bool sized = true;
  static void bind(F &field, const Span *rows, std::size_t n) { field.emulationBind(rows, n); }
};

template <class F, class T, Direction D> struct EdgeKind : ScalarEdge<F, T, D> {};
template <class F, class T, VectorLayout L, unsigned A, bool I, Direction D>
struct EdgeKind<F, Vector<T, L, A, I>, D> : VectorEdge<F, Vector<T, L, A, I>, D> {};
template <class F, class T, VectorListLayout L, unsigned A, bool I, Direction D>
struct EdgeKind<F, VectorList<T, L, A, I>, D> : VectorEdge<F, VectorList<T, L, A, I>, D> {};
template <class T> struct FieldKind<Input<T>> : EdgeKind<Input<T>, T, Direction::Input> {};
template <class T> struct FieldKind<Output<T>> : EdgeKind<Output<T>, T, Direction::Output> {};
template <class T> struct FieldKind<InOut<T>> : EdgeKind<InOut<T>, T, Direction::InOut> {};

/// Vectors of edges.
template <class V, class Edge> struct RowsKind : FieldKind<Edge> {
  static constexpr unsigned char dimensions = 2;
  static void bind(V &field, const Span *rows, std::size_t n) { field.emulationBindRows(rows, n); }
};
template <class T, VectorLayout L, unsigned A, bool I>
struct FieldKind<Vector<Input<T>, L, A, I>> : RowsKind<Vector<Input<T>, L, A, I>, Input<T>> {};
template <class T, VectorLayout L, unsigned A, bool I>
struct FieldKind<Vector<Output<T>, L, A, I>> : RowsKind<Vector<Output<T>, L, A, I>, Output<T>> {};
template <class T, VectorLayout L, unsigned A, bool I>
struct FieldKind<Vector<InOut<T>, L, A, I>> : RowsKind<Vector<InOut<T>, L, A, I>, InOut<T>> {};

template <class V, class F, F V::*member> void bindField(void *vertex, const Span *rows, std::size_t n) {
  FieldKind<F>::bind(static_cast<V *>(vertex)->*member, rows, n);
}

template <class V, class F, F V::*member> constexpr FieldInfo fieldInfo(const char *name) {
  using Kind = FieldKind<F>;
  return FieldInfo{name, ElementName<typename Kind::Element>::value, Kind::direction, Kind::dimensions,
                   sizeof(typename Kind::Element), Kind::align, Kind::sized, &bindField<V, F, member>};
}

// What compute returns, if anything, says nothing.
template <class V> void compute(V &vertex, unsigned, Vertex *) { static_cast<void>(vertex.compute()); }
template <class V> void compute(V &vertex, unsigned worker, MultiVertex *) {
  static_cast<void>(vertex.compute(worker));
}
template <class V> void computeVertex(void *vertex, unsigned worker) {
  V *const v = static_cast<V *>(vertex);
  compute(*v, worker, v);
}

template <class V> constexpr VertexInfo vertexInfo(const char *name, const FieldInfo *fields, std::size_t count) {
  return VertexInfo{name, sizeof(V), __is_base_of(MultiVertex, V), fields, count, &computeVertex<V>};
}

} // namespace detail
} // namespace poplar

#if defined(__SANITIZE_ADDRESS__)
#define POPLAR_EMULATION_SANITIZED ::poplar::detail::sanitizedAddress
#elif defined(__SANITIZE_THREAD__)
#define POPLAR_EMULATION_SANITIZED ::poplar::detail::sanitizedThread
#else
#define POPLAR_EMULATION_SANITIZED 0
#endif
#define POPLAR_EMULATION_FIELD(V, member) ::poplar::detail::fieldInfo<V, decltype(V::member), &V::member>(#member)

#endif
