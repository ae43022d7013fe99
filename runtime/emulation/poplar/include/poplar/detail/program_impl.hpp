#ifndef poplar_detail_program_impl_hpp
#define poplar_detail_program_impl_hpp

#include <iostream>
#include <poplar/Program.hpp>

namespace poplar {
namespace detail {

static inline std::string called(const std::string &kind, const std::string &name) {
  return name.empty() ? kind : kind + " '" + name + "'";
}

POPLAR_EMULATION_FUNCTION void Runtime::requireWritten(const Tensor &t, const std::string &user) const {
  eachByte(t, [&](std::size_t byte) {
    if (!written[byte])
      throw poplar_error(user + ": reads " + graph->nameOf(byte) + ", which nothing has written");
  });
}

POPLAR_EMULATION_FUNCTION void Runtime::markWritten(const Tensor &t, bool value) {
  eachByte(t, [&](std::size_t byte) { written[byte] = value; });
}

POPLAR_EMULATION_FUNCTION void Runtime::load(const Tensor &t, void *buffer) const {
  const std::size_t bytes = t.elementType().bytes();
  char *to = static_cast<char *>(buffer);
  eachRun(t.view(), [&](Place first, std::int64_t step, std::size_t count) {
    const unsigned char *from = data.data() + std::size_t(first) * bytes;
    if (step == 1 || count == 1) {
      std::memcpy(to, from, bytes * count);
    } else {
      const std::ptrdiff_t jump = step * static_cast<std::ptrdiff_t>(bytes);
      for (std::size_t i = 0; i != count; ++i)
        std::memcpy(to + i * bytes, from + static_cast<std::ptrdiff_t>(i) * jump, bytes);
    }
    to += bytes * count;
  });
}

POPLAR_EMULATION_FUNCTION void Runtime::store(const Tensor &t, const void *buffer) {
  const std::size_t bytes = t.elementType().bytes();
  const char *from = static_cast<const char *>(buffer);
  eachByte(t, [&](std::size_t byte) {
    std::memcpy(data.data() + byte, from, bytes);
    written[byte] = 1;
    from += bytes;
  });
}

/// One element of a control program, as an integer.
static inline std::int64_t controlValue(Runtime &runtime, const Tensor &t, const std::string &user) {
  runtime.requireWritten(t, user);
  std::int32_t value = 0;
  runtime.load(t, &value);
  return t.elementType() == UNSIGNED_INT ? std::int64_t(std::uint32_t(value)) : std::int64_t(value);
}

static inline void requireControl(const Tensor &t, const std::string &user) {
  const Type type = requireValid(t, user).elementType();
  if (t.numElements() != 1)
    throw control_program_error(user + ": the predicate has shape " + t.shapeToString() + ", not one element");
  if (type != BOOL && type != INT && type != UNSIGNED_INT)
    throw control_program_error(user + ": the predicate has type " + type.toString().cloneAsString() +
                                "; it must be bool, int or unsigned int");
}

struct ExecuteNode : Node {
  unsigned set;
  void check(Checker &checker) const override { checkComputeSet(checker, set); }
  void run(Runtime &runtime) const override { runComputeSet(runtime, set); }
};

struct CopyNode : Node {
  Tensor src, dst;
  void check(Checker &) const override {
    requireMapped(src, called("Copy", name));
    requireMapped(dst, called("Copy", name));
  }
  void run(Runtime &runtime) const override {
    runtime.requireWritten(src, called("Copy", name));
    std::vector<unsigned char> buffer(src.numElements() * src.elementType().bytes());
    runtime.load(src, buffer.data());
    runtime.store(dst, buffer.data());
  }
};

struct StreamNode : Node {
  DataStream stream;
  Tensor tensor;
  void check(Checker &) const override { requireMapped(tensor, called("Copy", name)); }
  void run(Runtime &runtime) const override {
    const std::string user = called("Copy of stream", stream.handle());
    const auto found = runtime.hostEnds.find(stream.handle());
    if (found == runtime.hostEnds.end())
      throw stream_connection_error(user + ": nothing is connected to the stream");
    HostEnd &host = found->second;
    std::vector<char> buffer(tensor.numElements() * tensor.elementType().bytes());
    if (!stream.hostToDevice()) {
      runtime.requireWritten(tensor, user);
      runtime.load(tensor, buffer.data());
    }
    if (host.callback) {
      host.callback(buffer.data());
    } else if (!buffer.empty()) {
      if (host.next + buffer.size() > host.end)
        host.next = host.begin;
      char *const to = stream.hostToDevice() ? buffer.data() : host.next;
      std::memcpy(to, stream.hostToDevice() ? host.next : buffer.data(), buffer.size());
      host.next += buffer.size();
    }
    if (stream.hostToDevice())
      runtime.store(tensor, buffer.data());
  }
};

struct UndefNode : Node {
  Tensor tensor;
  void run(Runtime &runtime) const override { runtime.markWritten(tensor, false); }
};

struct RepeatNode : Node {
  unsigned count;
  NodePtr body;
  void check(Checker &checker) const override { body->check(checker); }
  void run(Runtime &runtime) const override {
    for (unsigned i = 0; i != count; ++i)
      body->run(runtime);
  }
};

struct WhileNode : Node {
  bool wanted;
  Tensor predicate;
  NodePtr condition, body;
  void check(Checker &checker) const override {
    requireMapped(predicate, called("RepeatWhile", name));
    condition->check(checker);
    body->check(checker);
  }
  void run(Runtime &runtime) const override {
    for (;;) {
      condition->run(runtime);
      if ((controlValue(runtime, predicate, called("RepeatWhile", name)) != 0) != wanted)
        return;
      body->run(runtime);
    }
  }
};

/// If and Switch: runs the program of the value, or the last one.
struct BranchNode : Node {
  const char *kind;
  Tensor control;
  std::vector<std::pair<std::int64_t, NodePtr>> cases;
  NodePtr otherwise;
  void check(Checker &checker) const override {
    requireMapped(control, called(kind, name));
    for (const auto &branch : cases)
      branch.second->check(checker);
    otherwise->check(checker);
  }
  void run(Runtime &runtime) const override {
    const std::int64_t value = controlValue(runtime, control, called(kind, name));
    for (const auto &branch : cases)
      if (branch.first == value)
        return branch.second->run(runtime);
    otherwise->run(runtime);
  }
};

struct CallNode : Node {
  unsigned function;
  void check(Checker &checker) const override {
    if (function >= checker.graph->functions.size())
      throw control_program_error(called("Call", name) + ": no such function");
    if (!checker.functionsOpen.insert(function).second)
      throw graph_recursion_error(called("Call", name) + ": the function calls itself");
    if (checker.functionsSeen.insert(function).second)
      checker.graph->functions[function]->check(checker);
    checker.functionsOpen.erase(function);
  }
  void run(Runtime &runtime) const override { runtime.graph->functions[function]->run(runtime); }
};

static inline std::string elementsText(const Runtime &runtime, const Tensor &t) {
  std::vector<unsigned char> buffer(t.numElements() * t.elementType().bytes());
  runtime.load(t, buffer.data());
  std::string out = "[";
  for (std::size_t i = 0; i != t.numElements(); ++i) {
    const unsigned char *at = buffer.data() + i * t.elementType().bytes();
    std::string value;
    if (t.elementType() == FLOAT) {
      float x;
      std::memcpy(&x, at, 4);
      value = std::to_string(x);
    } else if (t.elementType() == HALF) {
      std::uint16_t x;
      std::memcpy(&x, at, 2);
      value = std::to_string(floatOfHalfBits(x));
    } else if (t.elementType().bytes() == 4) {
      std::int32_t x;
      std::memcpy(&x, at, 4);
      value = t.elementType() == UNSIGNED_INT ? std::to_string(std::uint32_t(x)) : std::to_string(x);
    } else if (t.elementType().bytes() == 2) {
      std::int16_t x;
      std::memcpy(&x, at, 2);
      value = t.elementType() == UNSIGNED_SHORT ? std::to_string(std::uint16_t(x)) : std::to_string(x);
    } else {
      value = t.elementType() == SIGNED_CHAR ? std::to_string(static_cast<signed char>(*at)) : std::to_string(*at);
    }
    out += (i ? "," : "") + value;
  }
  return out + "]";
}

struct PrintNode : Node {
  std::string title;
  Tensor tensor;
  bool error;
  void check(Checker &) const override { requireMapped(tensor, called(error ? "ErrorProgram" : "PrintTensor", name)); }
  void run(Runtime &runtime) const override {
    const std::string line = (title.empty() ? name : title) + ": " + elementsText(runtime, tensor);
    if (error)
      throw application_runtime_error(line);
    (runtime.print ? *runtime.print : std::cerr) << line << '\n';
  }
};

static inline NodePtr orNothing(const program::Program &program) {
  return program.isEmpty() ? std::make_shared<SequenceNode>() : program.node();
}

} // namespace detail

namespace program {

POPLAR_EMULATION_FUNCTION Execute::Execute(ComputeSet cs, const DebugContext &debugContext) {
  auto node = std::make_shared<detail::ExecuteNode>();
  node->name = debugContext.getPathName();
  node->set = cs.getId();
  node_ = node;
}

POPLAR_EMULATION_FUNCTION Copy::Copy(const Tensor &src, const Tensor &dst, bool, const DebugContext &debugContext) {
  const std::string user = detail::called("Copy", debugContext.getPathName());
  detail::requireValid(src, user);
  detail::requireOf(src.state(), dst, user);
  if (src.elementType() != dst.elementType())
    throw type_error(user + ": copies " + src.elementType().toString().cloneAsString() + " to " +
                     dst.elementType().toString().cloneAsString());
  if (src.shape() != dst.shape())
    throw poplar_error(user + ": copies a tensor of shape " + src.shapeToString() + " to one of shape " +
                       dst.shapeToString());
  detail::requireWriteable(dst, user);
  auto node = std::make_shared<detail::CopyNode>();
  node->name = debugContext.getPathName();
  node->src = src;
  node->dst = dst;
  node_ = node;
}

static inline detail::NodePtr streamNode(const DataStream &stream, const Tensor &t, bool toDevice,
                                         const DebugContext &debugContext) {
  const std::string user = detail::called("Copy of stream", stream.handle());
  detail::requireValid(t, user);
  if (stream.hostToDevice() != toDevice)
    throw stream_connection_error(user + ": the stream goes the other way");
  if (stream.elementType() != t.elementType() || stream.numElements() != t.numElements())
    throw stream_connection_error(user + ": the stream carries " + std::to_string(stream.numElements()) + " " +
                                  stream.elementType().toString().cloneAsString() + ", the tensor is " +
                                  t.getDebugStr());
  if (toDevice)
    detail::requireWriteable(t, user);
  auto node = std::make_shared<detail::StreamNode>();
  node->name = debugContext.getPathName();
  node->stream = stream;
  node->tensor = t;
  return node;
}

POPLAR_EMULATION_FUNCTION Copy::Copy(const DataStream &stream, const Tensor &dst, bool,
                                     const DebugContext &debugContext) {
  node_ = streamNode(stream, dst, true, debugContext);
}

POPLAR_EMULATION_FUNCTION Copy::Copy(const Tensor &src, const DataStream &stream, bool,
                                     const DebugContext &debugContext) {
  node_ = streamNode(stream, src, false, debugContext);
}

POPLAR_EMULATION_FUNCTION WriteUndef::WriteUndef(const Tensor &t, const DebugContext &debugContext) {
  detail::requireWriteable(t, detail::called("WriteUndef", debugContext.getPathName()));
  auto node = std::make_shared<detail::UndefNode>();
  node->name = debugContext.getPathName();
  node->tensor = t;
  node_ = node;
}

POPLAR_EMULATION_FUNCTION Repeat::Repeat(unsigned count, const Program &body, const DebugContext &debugContext) {
  auto node = std::make_shared<detail::RepeatNode>();
  node->name = debugContext.getPathName();
  node->count = count;
  node->body = detail::orNothing(body);
  node_ = node;
}

static inline detail::NodePtr whileNode(bool wanted, const Program &condition, const Tensor &predicate,
                                        const Program &body, const DebugContext &debugContext) {
  detail::requireControl(predicate, detail::called("RepeatWhile", debugContext.getPathName()));
  auto node = std::make_shared<detail::WhileNode>();
  node->name = debugContext.getPathName();
  node->wanted = wanted;
  node->predicate = predicate;
  node->condition = detail::orNothing(condition);
  node->body = detail::orNothing(body);
  return node;
}

POPLAR_EMULATION_FUNCTION RepeatWhileTrue::RepeatWhileTrue(const Program &condition, const Tensor &predicate,
                                                           const Program &body, const DebugContext &debugContext) {
  node_ = whileNode(true, condition, predicate, body, debugContext);
}

POPLAR_EMULATION_FUNCTION RepeatWhileFalse::RepeatWhileFalse(const Program &condition, const Tensor &predicate,
                                                             const Program &body, const DebugContext &debugContext) {
  node_ = whileNode(false, condition, predicate, body, debugContext);
}

POPLAR_EMULATION_FUNCTION If::If(const Tensor &predicate, const Program &trueBody, const Program &falseBody,
                                 const DebugContext &debugContext) {
  detail::requireControl(predicate, detail::called("If", debugContext.getPathName()));
  auto node = std::make_shared<detail::BranchNode>();
  node->name = debugContext.getPathName();
  node->kind = "If";
  node->control = predicate;
  node->cases.emplace_back(0, detail::orNothing(falseBody));
  node->otherwise = detail::orNothing(trueBody);
  node_ = node;
}

POPLAR_EMULATION_FUNCTION Switch::Switch(const Tensor &control,
                                         const std::vector<std::pair<std::int32_t, Program>> &cases,
                                         const DebugContext &debugContext)
    : Switch(control, cases, Program(), debugContext) {}

POPLAR_EMULATION_FUNCTION Switch::Switch(const Tensor &control,
                                         const std::vector<std::pair<std::int32_t, Program>> &cases,
                                         const Program &defaultCaseBody, const DebugContext &debugContext) {
  detail::requireControl(control, detail::called("Switch", debugContext.getPathName()));
  auto node = std::make_shared<detail::BranchNode>();
  node->name = debugContext.getPathName();
  node->kind = "Switch";
  node->control = control;
  for (const auto &branch : cases)
    node->cases.emplace_back(branch.first, detail::orNothing(branch.second));
  node->otherwise = detail::orNothing(defaultCaseBody);
  node_ = node;
}

POPLAR_EMULATION_FUNCTION Call::Call(Function f, const DebugContext &debugContext) {
  auto node = std::make_shared<detail::CallNode>();
  node->name = debugContext.getPathName();
  node->function = f.getId();
  node_ = node;
}

static inline detail::NodePtr printNode(bool error, StringRef title, const Tensor &t,
                                        const DebugContext &debugContext) {
  detail::requireValid(t, error ? "ErrorProgram" : "PrintTensor");
  auto node = std::make_shared<detail::PrintNode>();
  node->name = debugContext.getPathName();
  node->title = title.cloneAsString();
  node->tensor = t;
  node->error = error;
  return node;
}

POPLAR_EMULATION_FUNCTION PrintTensor::PrintTensor(StringRef title, const Tensor &t,
                                                   const DebugContext &debugContext) {
  node_ = printNode(false, title, t, debugContext);
}

POPLAR_EMULATION_FUNCTION ErrorProgram::ErrorProgram(StringRef message, const Tensor &t,
                                                     const DebugContext &debugContext) {
  node_ = printNode(true, message, t, debugContext);
}

} // namespace program
} // namespace poplar

#endif
