// What an Opx can do about the layout of an input.
#ifndef POPART_POPX_INPUTCREATORTYPE_HPP
#define POPART_POPX_INPUTCREATORTYPE_HPP

#pragma GCC visibility push(default)
namespace popart {
namespace popx {

enum class InputCreatorType { CanCreate = 0, CanUnwind, CanCreateOrUnwind, Deadend, CanDelegate, CanDelegateOrUnwind };

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#endif
