#ifndef poplar_Program_hpp
#define poplar_Program_hpp

#include <initializer_list>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/detail/runtime.hpp>
#include <utility>
#include <vector>

namespace poplar {
namespace program {

/// A step of what the device does. Programs are values: a copy doesn't change with the original.
class Program {
protected:
  /// For the emulation's own use.
  detail::NodePtr node_;

public:
  Program() = default;
  /// For the emulation's own use.
  explicit Program(detail::NodePtr node) : node_(std::move(node)) {}
  /// For the emulation's own use.
  const detail::NodePtr &node() const { return node_; }
  bool isEmpty() const { return !node_; }
};

/// Steps one after the other.
class Sequence : public Program {
  std::shared_ptr<detail::SequenceNode> steps;
  void own() {
    if (steps && steps.use_count() == 2) // This object's two pointers.
      return;
    node_.reset();
    steps = steps ? std::make_shared<detail::SequenceNode>(*steps) : std::make_shared<detail::SequenceNode>();
    node_ = steps;
  }

public:
  Sequence(const DebugContext &debugContext = {}) {
    own();
    steps->name = debugContext.getPathName();
  }
  Sequence(std::initializer_list<Program> programs, const DebugContext &debugContext = {}) : Sequence(debugContext) {
    for (const Program &program : programs)
      add(program);
  }
  void add(const Program &program) {
    if (program.isEmpty())
      return;
    detail::NodePtr step = program.node(); // Before own(): a sequence may be added to itself.
    own();
    steps->steps.push_back(std::move(step));
  }
};

/// Runs all vertices of a compute set.
class Execute : public Program {
public:
  POPLAR_EMULATION_FUNCTION explicit Execute(ComputeSet cs, const DebugContext &debugContext = {});
};

/// Copies elements between tensors, or between a tensor and a stream.
class Copy : public Program {
public:
  POPLAR_EMULATION_FUNCTION Copy(const Tensor &src, const Tensor &dst, bool dontOutline = false,
                                 const DebugContext &debugContext = {});
  POPLAR_EMULATION_FUNCTION Copy(const DataStream &stream, const Tensor &dst, bool optimiseMemory = false,
                                 const DebugContext &debugContext = {});
  POPLAR_EMULATION_FUNCTION Copy(const Tensor &src, const DataStream &stream, bool optimiseMemory = false,
                                 const DebugContext &debugContext = {});
};

/// Says that the elements hold nothing from here on.
class WriteUndef : public Program {
public:
  POPLAR_EMULATION_FUNCTION explicit WriteUndef(const Tensor &t, const DebugContext &debugContext = {});
};

class Repeat : public Program {
public:
  POPLAR_EMULATION_FUNCTION Repeat(unsigned count, const Program &body, const DebugContext &debugContext = {});
};

class RepeatWhileTrue : public Program {
public:
  POPLAR_EMULATION_FUNCTION RepeatWhileTrue(const Program &condition, const Tensor &predicate, const Program &body,
                                            const DebugContext &debugContext = {});
};

class RepeatWhileFalse : public Program {
public:
  POPLAR_EMULATION_FUNCTION RepeatWhileFalse(const Program &condition, const Tensor &predicate, const Program &body,
                                             const DebugContext &debugContext = {});
};

/// Runs one of two programs; the predicate is one element of BOOL, INT or UNSIGNED_INT.
class If : public Program {
public:
  POPLAR_EMULATION_FUNCTION If(const Tensor &predicate, const Program &trueBody, const Program &falseBody,
                               const DebugContext &debugContext = {});
};

/// Runs the program whose number the control tensor holds, or the default one.
class Switch : public Program {
public:
  POPLAR_EMULATION_FUNCTION Switch(const Tensor &control,
                                   const std::vector<std::pair<std::int32_t, Program>> &cases,
                                   const DebugContext &debugContext = {});
  POPLAR_EMULATION_FUNCTION Switch(const Tensor &control,
                                   const std::vector<std::pair<std::int32_t, Program>> &cases,
                                   const Program &defaultCaseBody, const DebugContext &debugContext = {});
};

class Call : public Program {
public:
  POPLAR_EMULATION_FUNCTION explicit Call(Function f, const DebugContext &debugContext = {});
};

class PrintTensor : public Program {
public:
  explicit PrintTensor(const Tensor &t, const DebugContext &debugContext = {}) : PrintTensor("", t, debugContext) {}
  POPLAR_EMULATION_FUNCTION PrintTensor(StringRef title, const Tensor &t, const DebugContext &debugContext = {});
};

/// Ends the run with an error that has the message and the tensor's elements.
class ErrorProgram : public Program {
public:
  POPLAR_EMULATION_FUNCTION ErrorProgram(StringRef message, const Tensor &t, const DebugContext &debugContext = {});
};

class Sync : public Program {
public:
  enum class SyncType { INTERNAL, EXTERNAL, GLOBAL };
  explicit Sync(SyncType, const DebugContext & = {}) {}
};
using SyncType = Sync::SyncType;

} // namespace program
} // namespace poplar

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplar/detail/program_impl.hpp>
#include <poplar/detail/execute_impl.hpp>
#endif
#endif
