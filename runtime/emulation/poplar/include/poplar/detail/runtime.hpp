#ifndef poplar_detail_runtime_hpp
#define poplar_detail_runtime_hpp

#include <functional>
#include <poplar/Tensor.hpp>

namespace poplar {
namespace detail {

/// Where a stream's elements come from or go to on the host.
struct HostEnd {
  char *begin = nullptr, *end = nullptr, *next = nullptr;
  std::function<void(void *)> callback;
};

/// The memory of a running graph.
struct Runtime {
  const GraphState *graph;
  std::vector<unsigned char> data;
  std::vector<unsigned char> written; // by the first byte of an element
  std::map<std::string, HostEnd> hostEnds;
  std::ostream *print = nullptr;

  /// Throws where an element of `t` was never written.
  POPLAR_EMULATION_FUNCTION void requireWritten(const Tensor &t, const std::string &reader) const;
  POPLAR_EMULATION_FUNCTION void markWritten(const Tensor &t, bool value = true);
  /// Copies elements between the tensor and a dense buffer of the device's types.
  POPLAR_EMULATION_FUNCTION void load(const Tensor &t, void *buffer) const;
  POPLAR_EMULATION_FUNCTION void store(const Tensor &t, const void *buffer);
};

/// What a graph's programs are checked against before they run.
struct Checker {
  const GraphState *graph;
  std::vector<unsigned> writer, reader; // by byte: the stamp of the vertex that touched it last
  unsigned stamp = 0;
  std::vector<std::size_t> resident, transient; // bytes of each tile: variables, and the most that a step needs beside
  std::set<unsigned> functionsSeen, functionsOpen;
};

/// A step of a program.
struct Node {
  std::string name;
  virtual ~Node() = default;
  virtual void check(Checker &) const {}
  virtual void run(Runtime &) const = 0;
};

using NodePtr = std::shared_ptr<const Node>;

struct SequenceNode : Node {
  std::vector<NodePtr> steps;
  void check(Checker &checker) const override {
    for (const auto &step : steps)
      step->check(checker);
  }
  void run(Runtime &runtime) const override {
    for (const auto &step : steps)
      step->run(runtime);
  }
};

POPLAR_EMULATION_FUNCTION void checkComputeSet(Checker &checker, unsigned set);
POPLAR_EMULATION_FUNCTION void runComputeSet(Runtime &runtime, unsigned set);

} // namespace detail
} // namespace poplar

#endif
