#ifndef poplar_detail_engine_impl_hpp
#define poplar_detail_engine_impl_hpp

#include <algorithm>
#include <poplar/Engine.hpp>

namespace poplar {

POPLAR_EMULATION_FUNCTION void Engine::prepare() {
  const detail::GraphState &g = *graph;
  detail::Checker checker;
  checker.graph = &g;
  checker.resident.resize(g.target.getNumTiles(), 0);
  checker.transient.resize(g.target.getNumTiles(), 0);
  for (auto &program : programs) {
    if (!program)
      program = std::make_shared<detail::SequenceNode>();
    program->check(checker);
  }
  for (const detail::Variable &v : g.variables)
    for (std::size_t i = 0, byte = v.base; i != v.elements; ++i, byte += v.type.bytes())
      if (g.tiles[byte] >= 0)
        checker.resident[static_cast<std::size_t>(g.tiles[byte])] += v.type.bytes();
  for (std::size_t tile = 0; tile != checker.resident.size(); ++tile) {
    const std::size_t needed = checker.resident[tile] + checker.transient[tile];
    if (needed > g.target.getBytesPerTile())
      throw graph_memory_allocation_error(
          "Out of memory on tile " + std::to_string(tile) + ": needs " + std::to_string(needed) + " bytes (" +
          std::to_string(checker.resident[tile]) + " for variables, " + std::to_string(checker.transient[tile]) +
          " for what a compute set reads of other tiles), a tile has " + std::to_string(g.target.getBytesPerTile()));
  }
}

POPLAR_EMULATION_FUNCTION void Engine::load(const Device &device) {
  if (device.getTarget() != graph->target)
    throw poplar_error("Engine::load: the graph was built for another target");
  runtime.graph = graph.get();
  runtime.data = graph->image;
  runtime.written.assign(graph->flags.begin(), graph->flags.end());
  loaded = true;
}

POPLAR_EMULATION_FUNCTION void Engine::run(unsigned prog, const std::string &) {
  if (!loaded)
    throw poplar_error("Engine::run: the engine isn't loaded on a device");
  if (prog >= programs.size())
    throw poplar_error("Engine::run: program " + std::to_string(prog) + " of " + std::to_string(programs.size()));
  programs[prog]->run(runtime);
}

POPLAR_EMULATION_FUNCTION const Tensor &Engine::handled(const std::map<std::string, Tensor> &tensors, StringRef handle,
                                                        const char *function) const {
  const auto found = tensors.find(handle);
  if (found == tensors.end())
    throw tensor_io_state_error(std::string("Engine::") + function + ": no handle '" + handle.cloneAsString() + "'");
  if (!loaded)
    throw tensor_io_state_error(std::string("Engine::") + function + ": the engine isn't loaded on a device");
  return found->second;
}

static inline void requireBytes(const Tensor &t, const void *begin, const void *end, const char *function) {
  const std::size_t given = static_cast<std::size_t>(static_cast<const char *>(end) - static_cast<const char *>(begin));
  const std::size_t needed = t.numElements() * t.elementType().bytes();
  if (given != needed)
    throw poplar_error(std::string("Engine::") + function + ": a buffer of " + std::to_string(given) +
                       " bytes for a tensor of " + std::to_string(needed));
}

POPLAR_EMULATION_FUNCTION void Engine::readTensor(StringRef handle, void *buf, void *bufEnd) {
  const Tensor &t = handled(graph->hostReads, handle, "readTensor");
  requireBytes(t, buf, bufEnd, "readTensor");
  runtime.requireWritten(t, "Engine::readTensor '" + handle.cloneAsString() + "'");
  runtime.load(t, buf);
}

POPLAR_EMULATION_FUNCTION void Engine::writeTensor(StringRef handle, const void *buf, const void *bufEnd) {
  const Tensor &t = handled(graph->hostWrites, handle, "writeTensor");
  requireBytes(t, buf, bufEnd, "writeTensor");
  runtime.store(t, buf);
}

POPLAR_EMULATION_FUNCTION void Engine::connectStream(StringRef handle, void *begin, void *end) {
  const auto found = graph->streams.find(handle);
  if (found == graph->streams.end())
    throw stream_connection_error("Engine::connectStream: no stream '" + handle.cloneAsString() + "'");
  detail::HostEnd host;
  host.begin = host.next = static_cast<char *>(begin);
  host.end = static_cast<char *>(end);
  const std::size_t needed = found->second.numElements() * found->second.elementType().bytes();
  if (host.begin + needed > host.end)
    throw stream_connection_error("Engine::connectStream: the buffer of '" + handle.cloneAsString() +
                                  "' is smaller than the " + std::to_string(needed) + " bytes of a transfer");
  runtime.hostEnds[handle] = host;
}

POPLAR_EMULATION_FUNCTION void Engine::connectStream(StringRef handle, void *p) {
  const auto found = graph->streams.find(handle);
  if (found == graph->streams.end())
    throw stream_connection_error("Engine::connectStream: no stream '" + handle.cloneAsString() + "'");
  connectStream(handle, p,
                static_cast<char *>(p) + found->second.numElements() * found->second.elementType().bytes());
}

POPLAR_EMULATION_FUNCTION void Engine::connectStreamToCallback(StringRef handle,
                                                               std::function<void(void *)> callback) {
  if (graph->streams.find(handle) == graph->streams.end())
    throw stream_connection_error("Engine::connectStreamToCallback: no stream '" + handle.cloneAsString() + "'");
  runtime.hostEnds[handle].callback = std::move(callback);
}

} // namespace poplar

#endif
