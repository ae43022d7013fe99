// Where the inputs of a step come from, and where its anchors go.
#ifndef POPART_ISTEPIO_HPP
#define POPART_ISTEPIO_HPP

#include <cstdint>

#include <popart/names.hpp>
#include <popart/voiddata.hpp>

#pragma GCC visibility push(default)
namespace popart {

class IStepIO {
 public:
  virtual ~IStepIO() = default;
  /// The next `numElements` values of an input.
  virtual ConstVoidData in(TensorId id, int64_t numElements, bool prefetch, const bool isBroadcast = false) = 0;
  virtual void inComplete(TensorId id, int64_t numElements, const bool isBroadcast = false) = 0;
  /// Where the next `numElements` values of an anchor go.
  virtual MutableVoidData out(TensorId id, int64_t numElements) = 0;
  IN_LIBRARY virtual void outComplete(TensorId) {}
  IN_LIBRARY void enableRuntimeAsserts(bool b) { runtimeAssertsOn = b; }
  IN_LIBRARY bool runtimeAssertsEnabled() const { return runtimeAssertsOn; }

 private:
  bool runtimeAssertsOn{true};
};

}  // namespace popart
#pragma GCC visibility pop

#endif
