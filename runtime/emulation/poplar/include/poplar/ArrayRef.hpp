#ifndef poplar_ArrayRef_hpp
#define poplar_ArrayRef_hpp

#include <array>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace poplar {

/// A reference to elements in a row that somebody else owns.
template <class T> class ArrayRef {
  const T *first = nullptr;
  std::size_t length = 0;

public:
  using value_type = T;
  using const_iterator = const T *;

  ArrayRef() = default;
  ArrayRef(const T *p, std::size_t n) : first(p), length(n) {}
  template <class A> ArrayRef(const std::vector<T, A> &v) : first(v.data()), length(v.size()) {}
  template <std::size_t N> ArrayRef(const std::array<T, N> &a) : first(a.data()), length(N) {}
  template <std::size_t N> ArrayRef(const T (&a)[N]) : first(a), length(N) {}
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 9
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  // The list lives until the end of the full expression, as long as the call that it is an argument of.
  ArrayRef(const std::initializer_list<T> &list) : first(list.begin()), length(list.size()) {}
#pragma GCC diagnostic pop

  const T *data() const { return first; }
  std::size_t size() const { return length; }
  bool empty() const { return length == 0; }
  const T *begin() const { return first; }
  const T *end() const { return first + length; }
  const T *cbegin() const { return begin(); }
  const T *cend() const { return end(); }
  const T &front() const { return first[0]; }
  const T &back() const { return first[length - 1]; }
  const T &operator[](std::size_t i) const { return first[i]; }
  std::vector<T> cloneAsVector() const { return std::vector<T>(begin(), end()); }
  operator std::vector<T>() const { return cloneAsVector(); }
};

template <class T> bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i != a.size(); ++i)
    if (!(a[i] == b[i]))
      return false;
  return true;
}
template <class T> bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !(a == b); }

} // namespace poplar

#endif
