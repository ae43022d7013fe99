#ifndef poplar_Interval_hpp
#define poplar_Interval_hpp

#include <cstddef>
#include <ostream>

namespace poplar {

/// The half-open range of integers from `lower` to `upper`.
template <class T> class GenericInterval {
  T lower{}, upper{};

public:
  GenericInterval() = default;
  GenericInterval(T begin, T end) : lower(begin), upper(end) {}
  const T &begin() const { return lower; }
  const T &end() const { return upper; }
  T size() const { return upper - lower; }
};

using Interval = GenericInterval<std::size_t>;

template <class T> bool operator==(const GenericInterval<T> &a, const GenericInterval<T> &b) {
  return a.begin() == b.begin() && a.end() == b.end();
}
template <class T> bool operator!=(const GenericInterval<T> &a, const GenericInterval<T> &b) { return !(a == b); }
template <class T> bool operator<(const GenericInterval<T> &a, const GenericInterval<T> &b) {
  return a.begin() < b.begin() || (a.begin() == b.begin() && a.end() < b.end());
}
template <class T> std::ostream &operator<<(std::ostream &os, const GenericInterval<T> &i) {
  return os << '[' << i.begin() << ',' << i.end() << ')';
}

} // namespace poplar

#endif
