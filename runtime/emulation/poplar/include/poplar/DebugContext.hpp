#ifndef poplar_DebugContext_hpp
#define poplar_DebugContext_hpp

#include <cstdint>
#include <poplar/StringRef.hpp>
#include <string>

namespace poplar {

using DebugId = std::uint64_t;

/// The path of a name, and the number under which a debugger would find it.
class DebugNameAndId {
  std::string path;
  DebugId id = 0;

public:
  DebugNameAndId() = default;
  DebugNameAndId(std::string name, DebugId debugId = 0, const std::string &parentPath = "")
      : path(parentPath.empty() ? std::move(name) : parentPath + "/" + name), id(debugId) {}
  DebugNameAndId(const char *name) : path(name) {}
  DebugNameAndId(const DebugNameAndId &parent, StringRef name)
      : path(parent.path.empty() ? name.cloneAsString()
             : name.empty()      ? parent.path
                                 : parent.path + "/" + name.cloneAsString()),
        id(parent.id) {}
  const std::string &getPathName() const { return path; }
  DebugId getDebugId() const { return id; }
};

/// Names what is made, for messages and profiles.
class DebugContext {
  DebugNameAndId nameAndId;

public:
  DebugContext() = default;
  DebugContext(const char *name) : nameAndId(name) {}
  DebugContext(const std::string &name) : nameAndId(name) {}
  DebugContext(StringRef name) : nameAndId(name.cloneAsString()) {}
  DebugContext(const DebugNameAndId &parent, StringRef name = "") : nameAndId(parent, name) {}
  DebugContext(const DebugContext &parent, StringRef name) : nameAndId(parent.nameAndId, name) {}
  const std::string &getPathName() const { return nameAndId.getPathName(); }
  const DebugNameAndId &getDebugNameAndId() const { return nameAndId; }
};

} // namespace poplar

#endif
