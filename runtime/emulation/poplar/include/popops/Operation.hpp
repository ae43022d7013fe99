#ifndef popops_Operation_hpp
#define popops_Operation_hpp

#include <ostream>
#include <popops/OperationDef.hpp>

namespace popops {

inline std::ostream &operator<<(std::ostream &os, const Operation &op) {
  static const char *const names[] = {"ADD", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOG_ADD"};
  return os << names[static_cast<int>(op)];
}

} // namespace popops

#endif
