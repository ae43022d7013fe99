// Which rewrites of the graph are on. Of PopART's the emulation has the one that makes ops in-place.
#ifndef POPART_PATTERNS_PATTERNS_HPP
#define POPART_PATTERNS_PATTERNS_HPP

#include <map>
#include <string>
#include <vector>

#include <popart/error.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class PatternsLevel { NoPatterns, Minimal, Default, All };

class Patterns {
 public:
  IN_LIBRARY Patterns() : Patterns(PatternsLevel::Default) {}
  IN_LIBRARY Patterns(PatternsLevel level) : inplace(level == PatternsLevel::Default || level == PatternsLevel::All) {}
  IN_LIBRARY Patterns(const std::vector<std::string> &names) : inplace(false) {
    for (const auto &name : names) enablePattern(name, true);
  }

  IN_LIBRARY bool isInPlaceEnabled() const { return inplace; }
  IN_LIBRARY Patterns &enableInPlace(bool v) {
    inplace = v;
    return *this;
  }
  IN_LIBRARY bool isPatternEnabled(const std::string &name) const {
    if (name == "InPlace") return inplace;
    const auto found = others.find(name);
    return found != others.end() && found->second;
  }
  IN_LIBRARY Patterns &enablePattern(const std::string &name, bool v) {
    if (name == "InPlace") {
      inplace = v;
    } else {
      others[name] = v;
    }
    return *this;
  }
  IN_LIBRARY Patterns &enableRuntimeAsserts(bool) { return *this; }

 private:
  bool inplace;
  std::map<std::string, bool> others;  // kept so that a script can ask, without effect
};

}  // namespace popart
#pragma GCC visibility pop

#endif
