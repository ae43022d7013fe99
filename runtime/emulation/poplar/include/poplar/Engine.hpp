#ifndef poplar_Engine_hpp
#define poplar_Engine_hpp

#include <functional>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poplar {

/// Programs of a graph, checked and ready to run on a device.
class Engine {
  std::shared_ptr<detail::GraphState> graph;
  std::vector<detail::NodePtr> programs;
  detail::Runtime runtime;
  bool loaded = false;

  POPLAR_EMULATION_FUNCTION void prepare();
  POPLAR_EMULATION_FUNCTION const Tensor &handled(const std::map<std::string, Tensor> &tensors, StringRef handle,
                                                  const char *function) const;

public:
  /// Throws graph_memory_allocation_error where the graph doesn't fit the target's tiles.
  Engine(const Graph &g, const program::Program &program, const OptionFlags & = {}) : graph(g.state()) {
    programs.push_back(program.node());
    prepare();
  }
  Engine(const Graph &g, ArrayRef<program::Program> list, const OptionFlags & = {}) : graph(g.state()) {
    for (const program::Program &program : list)
      programs.push_back(program.node());
    prepare();
  }
  Engine(Engine &&) = default;
  Engine &operator=(Engine &&) = default;

  POPLAR_EMULATION_FUNCTION void load(const Device &device);
  POPLAR_EMULATION_FUNCTION void run(unsigned prog = 0, const std::string &debugName = "");
  void loadAndRun(const Device &device, unsigned prog = 0) {
    load(device);
    run(prog);
  }
  POPLAR_EMULATION_FUNCTION void readTensor(StringRef handle, void *buf, void *bufEnd);
  POPLAR_EMULATION_FUNCTION void writeTensor(StringRef handle, const void *buf, const void *bufEnd);
  template <class T> void readTensor(StringRef handle, std::vector<T> &values) {
    readTensor(handle, static_cast<void *>(values.data()), static_cast<void *>(values.data() + values.size()));
  }
  POPLAR_EMULATION_FUNCTION void connectStream(StringRef handle, void *begin, void *end);
  POPLAR_EMULATION_FUNCTION void connectStream(StringRef handle, void *p);
  POPLAR_EMULATION_FUNCTION void connectStreamToCallback(StringRef handle, std::function<void(void *)> callback);
  void setPrintTensorStream(std::ostream &stream) { runtime.print = &stream; }
  void disableExecutionProfiling() {}
  void enableExecutionProfiling() {}
};

} // namespace poplar

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplar/detail/engine_impl.hpp>
#endif
#endif
