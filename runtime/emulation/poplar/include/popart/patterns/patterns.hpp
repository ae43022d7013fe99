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
  Patterns() : Patterns(PatternsLevel::Default) {}
  Patterns(PatternsLevel level) : inplace(level == PatternsLevel::Default || level == PatternsLevel::All) {}
  Patterns(const std::vector<std::string> &names) : inplace(false) {
    for (const auto &name : names) enablePattern(name, true);
  }

  bool isInPlaceEnabled() const { return inplace; }
  Patterns &enableInPlace(bool v) {
    inplace = v;
    return *this;
  }
  bool isPatternEnabled(const std::string &name) const {
    if (name == "InPlace") return inplace;
    const auto found = others.find(name);
    return found != others.end() && found->second;
  }
  Patterns &enablePattern(const std::string &name, bool v) {
    if (name == "InPlace") {
      inplace = v;
    } else {
      others[name] = v;
    }
    return *this;
  }
  Patterns &enableRuntimeAsserts(bool) { return *this; }

 private:
  bool inplace;
  std::map<std::string, bool> others;  // kept so that a script can ask, without effect
};

}  // namespace popart
#pragma GCC visibility pop

#endif
