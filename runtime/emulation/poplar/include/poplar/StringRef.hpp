#ifndef poplar_StringRef_hpp
#define poplar_StringRef_hpp

#include <cstring>
#include <ostream>
#include <string>

namespace poplar {

/// A reference to characters that somebody else owns.
class StringRef {
  const char *text = "";
  std::size_t length = 0;

public:
  StringRef() = default;
  StringRef(const char *s) : text(s), length(std::strlen(s)) {}
  StringRef(const char *s, std::size_t n) : text(s), length(n) {}
  StringRef(const std::string &s) : text(s.data()), length(s.size()) {}

  const char *data() const { return text; }
  std::size_t size() const { return length; }
  bool empty() const { return length == 0; }
  const char *begin() const { return text; }
  const char *end() const { return text + length; }
  char operator[](std::size_t i) const { return text[i]; }
  std::string cloneAsString() const { return std::string(text, length); }
  operator std::string() const { return cloneAsString(); }
};

inline bool operator==(StringRef a, StringRef b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
inline bool operator!=(StringRef a, StringRef b) { return !(a == b); }
inline std::string operator+(StringRef a, StringRef b) { return a.cloneAsString() += b.cloneAsString(); }
inline std::ostream &operator<<(std::ostream &os, StringRef s) {
  return os.write(s.data(), static_cast<std::streamsize>(s.size()));
}

} // namespace poplar

#endif
