// The registry of Opxs: who lowers an op of a given identifier.
#ifndef POPART_POPX_OPXMANAGER_HPP
#define POPART_POPX_OPXMANAGER_HPP
#define POPART_OPXMANAGER_OPEN

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <popart/error.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/popx/opx.hpp>

#pragma GCC visibility push(default)
namespace popart {
namespace popx {

class OpxManager {
 public:
  using OpxFactoryFunc = std::function<std::unique_ptr<Opx>(Op *op, Devicex *devicex)>;

  // As in PopART the first registration stays.
  IN_LIBRARY static void registerOpx(const OperatorIdentifier &opid, OpxFactoryFunc func) { getInstance().factory.emplace(opid, func); }
  /// For the emulation's own use.
  IN_LIBRARY static void registerOpx(const std::vector<OperatorIdentifier> &opids, const OpxFactoryFunc &func) {
    for (const auto &opid : opids) registerOpx(opid, func);
  }
  /// Nothing where no Opx is registered for the op.
  IN_LIBRARY static std::unique_ptr<Opx> createOpx(Op *op, Devicex *devicex) {
    const auto found = getInstance().factory.find(op->opid);
    return found == getInstance().factory.end() ? nullptr : found->second(op, devicex);
  }

 private:
  static OpxManager &getInstance() {
    static OpxManager instance;
    return instance;
  }

  std::map<OperatorIdentifier, OpxFactoryFunc, OperatorIdentifierLess> factory;
};

template <class OPX>
class OpxCreator {
 public:
  OpxCreator(const OperatorIdentifier &opid) : OpxCreator(std::vector<OperatorIdentifier>{opid}) {}
  OpxCreator(const std::vector<OperatorIdentifier> &opids)
      : OpxCreator(opids, OpxManager::OpxFactoryFunc(&OpxCreator::make)) {}
  OpxCreator(const OperatorIdentifier &opid, std::string message) : OpxCreator(std::vector<OperatorIdentifier>{opid}, message) {}
  OpxCreator(const std::vector<OperatorIdentifier> &opids, std::string message)
      : OpxCreator(opids, [message](Op *, Devicex *) -> std::unique_ptr<Opx> { throw error(message); }) {}
  OpxCreator(const OperatorIdentifier &opid, OpxManager::OpxFactoryFunc func)
      : OpxCreator(std::vector<OperatorIdentifier>{opid}, func) {}
  OpxCreator(const std::vector<OperatorIdentifier> &opids, OpxManager::OpxFactoryFunc func) {
    OpxManager::registerOpx(opids, func);
  }

 private:
  static std::unique_ptr<Opx> make(Op *op, Devicex *devicex) { return std::unique_ptr<Opx>(new OPX(op, devicex)); }
};

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#undef POPART_OPXMANAGER_OPEN
#include <popart/emulation/define_popx.hpp>
#ifdef POPLAR_EMULATION_LIBRARIES
#include <popart/emulation/instances.hpp>
#endif

#endif
