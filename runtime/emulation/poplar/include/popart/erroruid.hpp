// Identifiers of single errors.
#ifndef POPART_ERRORUID_HPP
#define POPART_ERRORUID_HPP

#pragma GCC visibility push(default)
namespace popart {

enum class ErrorUid { E0 = 0 };

}  // namespace popart
#pragma GCC visibility pop

#endif
