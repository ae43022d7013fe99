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
  IN_LIBRARY static std::string delimiter() { return sNameDelimiter; }

  IN_LIBRARY bool empty() const { return names.empty(); }
  IN_LIBRARY std::size_t depth() const { return names.size(); }
  IN_LIBRARY void pop() {
    if (names.empty()) throw error("Cannot pop from an empty scope");
    names.pop_back();
  }
  IN_LIBRARY bool operator==(const Scope &other) const { return names == other.names; }
  IN_LIBRARY bool operator!=(const Scope &other) const { return names != other.names; }

  IN_LIBRARY std::string str() const { return logging::join(names.begin(), names.end(), delimiter()); }
  IN_LIBRARY Scope operator/(const std::string &name) const {
    Scope out = *this;
    if (!name.empty()) out.names.push_back(name);
    return out;
  }
  IN_LIBRARY std::vector<std::string> getScopeNames() const { return names; }

 private:
  std::vector<std::string> names;
};

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const Scope &scope) { return stream << scope.str(); }

}  // namespace popart
#pragma GCC visibility pop

#endif
