// The name that something is made under, for messages and debugging.
#ifndef POPART_DEBUGCONTEXT_HPP
#define POPART_DEBUGCONTEXT_HPP

#include <cstdint>
#include <string>

#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class DebugContext {
 public:
  DebugContext() = default;
  IN_LIBRARY DebugContext(const char *name) : path(name) {}
  IN_LIBRARY DebugContext(const std::string &name) : path(name) {}

  IN_LIBRARY const std::string &getPathName() const { return path; }

 private:
  std::string path;
};

class DebugInfo {
 public:
  IN_LIBRARY DebugInfo(const DebugContext &context, const std::string &layer) : path(context.getPathName()), layer_(layer) {}
  virtual ~DebugInfo() = default;

  IN_LIBRARY uint64_t getId() const { return 0; }
  IN_LIBRARY const std::string &getPathName() const { return path; }

 private:
  std::string path;
  std::string layer_;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
