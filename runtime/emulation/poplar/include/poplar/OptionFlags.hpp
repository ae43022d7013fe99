#ifndef poplar_OptionFlags_hpp
#define poplar_OptionFlags_hpp

#include <initializer_list>
#include <map>
#include <poplar/StringRef.hpp>
#include <poplar/exceptions.hpp>
#include <string>
#include <utility>

namespace poplar {

/// Options by name, as text.
class OptionFlags {
  std::map<std::string, std::string> flags;

public:
  using OptionFlag = std::pair<const std::string, std::string>;
  using iterator = std::map<std::string, std::string>::const_iterator;

  OptionFlags() = default;
  OptionFlags(std::initializer_list<OptionFlag> list) { set(list); }
  void set(std::initializer_list<OptionFlag> list) {
    for (const auto &flag : list)
      flags[flag.first] = flag.second;
  }
  void set(StringRef option, StringRef value) { flags[option] = value.cloneAsString(); }
  StringRef at(StringRef option) const {
    const auto found = flags.find(option);
    if (found == flags.end())
      throw poplar_error("OptionFlags: no option named '" + option.cloneAsString() + "'");
    return found->second;
  }
  void clear() { flags.clear(); }
  iterator begin() const { return flags.begin(); }
  iterator end() const { return flags.end(); }
  friend bool operator==(const OptionFlags &a, const OptionFlags &b) { return a.flags == b.flags; }
  friend bool operator<(const OptionFlags &a, const OptionFlags &b) { return a.flags < b.flags; }
};

} // namespace poplar

#endif
