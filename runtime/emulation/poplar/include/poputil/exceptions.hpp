#ifndef poputil_exceptions_hpp
#define poputil_exceptions_hpp

#include <poplar/detail/config.hpp>
#include <stdexcept>
#include <string>

namespace poputil {

/// What poplibs throws.
struct POPLAR_EMULATION_SHARED poplibs_error : public std::runtime_error {
  std::string type = "poplibs_error";
  explicit poplibs_error(const std::string &message) : std::runtime_error(message) {}
  explicit poplibs_error(const char *message) : std::runtime_error(message) {}
};

} // namespace poputil

#endif
