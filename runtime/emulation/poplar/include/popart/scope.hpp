// The path of names that a tensor of a subgraph has in front of its own.
#ifndef POPART_SCOPE_HPP
#define POPART_SCOPE_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Scope {
 public:
  static std::string delimiter() { return sNameDelimiter; }

  bool empty() const { return names.empty(); }
  std::size_t depth() const { return names.size(); }
  void pop() {
    if (names.empty()) throw error("Cannot pop from an empty scope");
    names.pop_back();
  }
  bool operator==(const Scope &other) const { return names == other.names; }
  bool operator!=(const Scope &other) const { return names != other.names; }

  std::string str() const { return logging::join(names.begin(), names.end(), delimiter()); }
  Scope operator/(const std::string &name) const {
    Scope out = *this;
    if (!name.empty()) out.names.push_back(name);
    return out;
  }
  std::vector<std::string> getScopeNames() const { return names; }

 private:
  std::vector<std::string> names;
};

inline std::ostream &operator<<(std::ostream &stream, const Scope &scope) { return stream << scope.str(); }

}  // namespace popart
#pragma GCC visibility pop

#endif
