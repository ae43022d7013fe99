#ifndef poputil_VertexTemplates_hpp
#define poputil_VertexTemplates_hpp

#include <poplar/Type.hpp>
#include <string>

namespace poputil {

/// How a template argument is spelled in the name of a vertex.
template <class T> struct VertexTemplateToString {
  static std::string to_string(const T &x) { return std::to_string(x); }
};
template <> struct VertexTemplateToString<poplar::StringRef> {
  static std::string to_string(const poplar::StringRef &s) { return s; }
};

namespace detail {
inline std::string templateArgument(const std::string &s) { return s; }
inline std::string templateArgument(const char *s) { return s; }
inline std::string templateArgument(const poplar::Type &type) { return type.toString(); }
inline std::string templateArgument(bool b) { return b ? "true" : "false"; }
template <class T> std::string templateArgument(const T &x) { return VertexTemplateToString<T>::to_string(x); }
} // namespace detail

/// The name of an instance of a vertex template: `templateVertex("Foo", poplar::FLOAT, 3)` is "Foo<float,3>".
inline std::string templateVertex(const std::string &name) { return name; }
template <class First, class... Rest>
std::string templateVertex(const std::string &name, const First &first, const Rest &...rest) {
  std::string s = name + "<" + detail::templateArgument(first);
  const std::string more[] = {std::string(), detail::templateArgument(rest)...};
  for (std::size_t i = 1; i <= sizeof...(rest); ++i)
    s += "," + more[i];
  return s + ">";
}

} // namespace poputil

#endif
