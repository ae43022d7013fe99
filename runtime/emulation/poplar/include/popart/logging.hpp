// Text with `{}` in it, and the log (which the emulation keeps silent unless POPART_LOG_LEVEL asks for it).
#ifndef POPART_LOGGING_HPP
#define POPART_LOGGING_HPP

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <poplar/detail/config.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace logging {

struct FormatError : public std::runtime_error {
  IN_LIBRARY explicit FormatError(const std::string &reason) : std::runtime_error(reason) {}
};

// For the emulation's own use.
namespace internal {

template <typename T>
std::string text(const T &value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}
// The usual ones, so that not every file that formats compiles a stream.
IN_LIBRARY std::string text(const std::string &value) { return value; }
IN_LIBRARY std::string text(const char *value) { return value; }
IN_LIBRARY std::string text(int value) { return std::to_string(value); }
IN_LIBRARY std::string text(unsigned value) { return std::to_string(value); }
IN_LIBRARY std::string text(long value) { return std::to_string(value); }
IN_LIBRARY std::string text(unsigned long value) { return std::to_string(value); }

// Puts `arguments` in the places of `{}`, in order; `{{` and `}}` are braces; `{N}` names an argument, `{:..}` is taken as `{}`.
IN_LIBRARY std::string format(const std::string &reference, const std::string *arguments, std::size_t count) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const char c = reference[i];
    if (c == '}') {
      if (i + 1 >= reference.size() || reference[i + 1] != '}') throw FormatError("unmatched '}' in format");
      out += c;
      ++i;
    } else if (c != '{') {
      out += c;
    } else if (i + 1 < reference.size() && reference[i + 1] == '{') {
      out += c;
      ++i;
    } else {
      const std::size_t end = reference.find('}', i);
      if (end == std::string::npos) throw FormatError("invalid format string");
      const std::string field = reference.substr(i + 1, end - i - 1);
      const std::string name = field.substr(0, field.find(':'));
      const std::size_t index = name.empty() ? next++ : static_cast<std::size_t>(std::atoi(name.c_str()));
      if (index >= count) throw FormatError("argument index out of range");
      out += arguments[index];
      i = end;
    }
  }
  return out;
}

}  // namespace internal

/// `reference` with each `{}` replaced by the next argument. Raises FormatError where there are too few.
template <typename... Args>
std::string format(const std::string &reference, const Args &...args) {
  // With an element at the end that is no argument, since an array has one at least.
  const std::string texts[] = {internal::text(args)..., std::string()};
  return internal::format(reference, texts, sizeof...(args));
}

template <typename It>
std::string join(It begin, It end, const std::string &separator) {
  std::ostringstream stream;
  for (It it = begin; it != end; ++it) {
    if (it != begin) stream << separator;
    stream << *it;
  }
  return stream.str();
}

enum class Level { Trace = 0, Debug = 1, Info = 2, Warn = 3, Err = 4, Critical = 5, Off = 6, N = 7 };

/// For the emulation's own use.
inline Level logLevel() {
  static const Level level = [] {
    const char *text = std::getenv("POPART_LOG_LEVEL");
    const std::string name = text ? text : "OFF";
    const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERR", "CRITICAL"};
    for (int i = 0; i < 6; ++i) {
      if (name == names[i]) return static_cast<Level>(i);
    }
    return Level::Off;
  }();
  return level;
}

template <typename... Args>
void log(Level level, const std::string &reference, const Args &...args) {
  if (level >= logLevel()) std::cerr << format(reference, args...) << "\n";
}

template <typename... Args>
void trace(const std::string &s, const Args &...args) {
  log(Level::Trace, s, args...);
}
template <typename... Args>
void debug(const std::string &s, const Args &...args) {
  log(Level::Debug, s, args...);
}
template <typename... Args>
void info(const std::string &s, const Args &...args) {
  log(Level::Info, s, args...);
}
template <typename... Args>
void warn(const std::string &s, const Args &...args) {
  log(Level::Warn, s, args...);
}
template <typename... Args>
void err(const std::string &s, const Args &...args) {
  log(Level::Err, s, args...);
}

}  // namespace logging
}  // namespace popart
#pragma GCC visibility pop

#endif
