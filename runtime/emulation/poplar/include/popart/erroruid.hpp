// Identifiers of single errors.
#ifndef POPART_ERRORUID_HPP
#define POPART_ERRORUID_HPP

namespace popart __attribute__((visibility("default"))) {

enum class ErrorUid { E0 = 0 };

}  // namespace popart

#endif
