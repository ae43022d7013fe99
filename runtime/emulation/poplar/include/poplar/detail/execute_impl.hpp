#ifndef poplar_detail_execute_impl_hpp
#define poplar_detail_execute_impl_hpp

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <poplar/detail/runtime.hpp>
#include <thread>
#include <vector>

namespace poplar {
namespace detail {

static inline std::string vertexText(const ComputeSetState &set, const VertexState &vertex, const FieldInfo *field) {
  std::string s = "compute set '" + set.name + "', vertex '" + vertex.info->name + "'";
  return field ? s + ", field '" + field->name + "'" : s;
}

static inline const FieldInfo &fieldOf(const VertexState &vertex, std::size_t i) { return vertex.info->fields[i]; }

static inline bool writes(const FieldInfo &field) {
  return field.direction == Direction::Output || field.direction == Direction::InOut;
}

static inline void checkFields(const Checker &checker, const ComputeSetState &set, const VertexState &vertex) {
  const unsigned tiles = checker.graph->target.getNumTiles();
  if (vertex.tile < 0)
    throw invalid_tile_mapping(vertexText(set, vertex, nullptr) + ": the vertex is on no tile");
  if (vertex.tile >= static_cast<int>(tiles))
    throw invalid_tile_mapping(vertexText(set, vertex, nullptr) + ": tile " + std::to_string(vertex.tile) + " of " +
                               std::to_string(tiles));
  for (std::size_t i = 0; i != vertex.info->fieldCount; ++i) {
    const FieldInfo &field = fieldOf(vertex, i);
    if (!vertex.fields[i].set)
      throw graph_connection_error(
          vertexText(set, vertex, &field) +
          (field.direction == Direction::State ? " has no initial value" : " isn't connected"));
    for (const Tensor &row : vertex.fields[i].rows) {
      if (!row.valid())
        throw graph_connection_error(vertexText(set, vertex, &field) + ": a row isn't connected");
      if (firstUnmapped(row) != ~std::size_t(0))
        requireMapped(row, vertexText(set, vertex, &field));
    }
  }
}

/// No element is written by two vertices, nor written by one and read by another.
POPLAR_EMULATION_FUNCTION void checkComputeSet(Checker &checker, unsigned number) {
  const GraphState &graph = *checker.graph;
  if (number >= graph.sets.size())
    throw poplar_error("Execute: no such compute set");
  const ComputeSetState &set = graph.sets[number];
  checker.writer.resize(graph.image.size(), 0);
  const unsigned before = checker.stamp;
  std::map<int, std::size_t> exchanged;
  for (const unsigned id : set.vertices) {
    const VertexState &vertex = graph.vertices[id];
    checkFields(checker, set, vertex);
    const unsigned own = ++checker.stamp;
    for (std::size_t i = 0; i != vertex.info->fieldCount; ++i) {
      const FieldInfo &field = fieldOf(vertex, i);
      for (const Tensor &row : vertex.fields[i].rows)
        eachByte(row, [&](std::size_t byte) {
          if (graph.tiles[byte] != vertex.tile)
            exchanged[vertex.tile] += row.elementType().bytes();
          if (!writes(field))
            return;
          if (checker.writer[byte] > before)
            throw graph_connection_error(vertexText(set, vertex, &field) + ": " + graph.nameOf(byte) +
                                         (checker.writer[byte] == own ? " is written twice by the vertex"
                                                                      : " is written by another vertex too"));
          checker.writer[byte] = own;
        });
    }
  }
  unsigned own = before;
  for (const unsigned id : set.vertices) {
    const VertexState &vertex = graph.vertices[id];
    ++own;
    for (std::size_t i = 0; i != vertex.info->fieldCount; ++i) {
      const FieldInfo &field = fieldOf(vertex, i);
      if (field.direction != Direction::Input)
        continue;
      for (const Tensor &row : vertex.fields[i].rows)
        eachByte(row, [&](std::size_t byte) {
          if (checker.writer[byte] > before)
            throw graph_connection_error(vertexText(set, vertex, &field) + ": reads " + graph.nameOf(byte) +
                                         (checker.writer[byte] == own ? ", which another of its fields writes"
                                                                      : ", which another vertex writes"));
        });
    }
  }
  for (const auto &tile : exchanged)
    checker.transient[tile.first] = std::max(checker.transient[tile.first], tile.second);
}

/// The elements of one row while its vertex runs: in place, or a copy where they don't lie in a row.
struct Edge {
  const Tensor *row;
  void *copy;
};

static inline Span openEdge(Runtime &runtime, const Tensor &row, const ComputeSetState &set, const VertexState &vertex,
                            const FieldInfo &field, bool isolate, std::vector<Edge> &edges) {
  const std::size_t n = row.numElements(), bytes = row.elementType().bytes();
  if (field.direction != Direction::Output)
    eachByte(row, [&](std::size_t byte) {
      if (!runtime.written[byte])
        throw poplar_error(vertexText(set, vertex, &field) + ": reads " + runtime.graph->nameOf(byte) +
                           ", which nothing has written");
    });
  Edge edge{&row, nullptr};
  void *data = nullptr;
  if (n != 0 && row.view().contiguous() && !isolate)
    data = runtime.data.data() + std::size_t(row.view().first()) * bytes;
  const std::size_t align = std::max<std::size_t>(field.minAlign, bytes);
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % align != 0) {
    // Of exactly this size, so that a sanitizer sees who goes beyond it.
    if (posix_memalign(&edge.copy, std::max(align, sizeof(void *)), n * bytes) != 0)
      throw std::bad_alloc();
    data = edge.copy;
    if (field.direction != Direction::Output)
      runtime.load(row, data);
  }
  if (field.direction == Direction::Output && n != 0)
    std::memset(data, 0xff, n * bytes); // Whoever reads an Output, or leaves it out, shall see it.
  edges.push_back(edge);
  return Span{data, n};
}

static inline void closeEdges(Runtime &runtime, const VertexState &vertex, std::vector<Edge> &edges, bool store) {
  std::size_t next = 0;
  for (std::size_t i = 0; i != vertex.info->fieldCount; ++i)
    for (const Tensor &row : vertex.fields[i].rows) {
      if (next == edges.size())
        return;
      const Edge &edge = edges[next++];
      if (store && writes(fieldOf(vertex, i))) {
        if (edge.copy)
          runtime.store(row, edge.copy);
        else
          runtime.markWritten(row);
      }
      std::free(edge.copy);
    }
}

/// Runs the workers one after the other, or at once, as the device does. Throws what the first of them threw.
static inline void runWorkers(const VertexInfo &info, void *memory, unsigned workers, bool concurrent) {
  if (!concurrent) {
    for (unsigned worker = 0; worker != workers; ++worker)
      info.compute(memory, worker);
    return;
  }
  std::vector<std::exception_ptr> failed(workers);
  const auto run = [&](unsigned worker) {
    try {
      info.compute(memory, worker);
    } catch (...) {
      failed[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker != workers; ++worker)
    threads.emplace_back(run, worker);
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &error : failed)
    if (error)
      std::rethrow_exception(error);
}

static inline void runVertex(Runtime &runtime, const ComputeSetState &set, const VertexState &vertex) {
  const VertexInfo &info = *vertex.info;
  std::vector<std::uint64_t> memory(info.bytes / 8 + 1, 0);
  std::vector<Edge> edges;
  std::vector<Span> spans; // of all fields: vectors of vectors keep a pointer into it
  std::size_t rows = 0;
  for (const FieldState &state : vertex.fields)
    rows += std::max<std::size_t>(state.rows.size(), 1);
  spans.reserve(rows);
  try {
    for (std::size_t i = 0; i != info.fieldCount; ++i) {
      const FieldInfo &field = info.fields[i];
      const FieldState &state = vertex.fields[i];
      const std::size_t begin = spans.size();
      if (field.direction == Direction::State) {
        const std::size_t n = state.values.size() / field.elementBytes;
        spans.push_back(Span{const_cast<unsigned char *>(state.values.data()), n});
      } else {
        for (const Tensor &row : state.rows)
          spans.push_back(openEdge(runtime, row, set, vertex, field, runtime.graph->isolate, edges));
      }
      field.bind(memory.data(), spans.data() + begin, spans.size() - begin);
    }
    const unsigned workers = info.multi ? runtime.graph->target.getNumWorkerContexts() : 1;
    runWorkers(info, memory.data(), workers, runtime.graph->concurrent && info.multi);
  } catch (const OutOfField &out) {
    closeEdges(runtime, vertex, edges, false);
    throw poplar_error(vertexText(set, vertex, nullptr) + ": index " + std::to_string(out.index) +
                       " of a field of " + std::to_string(out.size) + " elements");
  } catch (...) {
    closeEdges(runtime, vertex, edges, false);
    throw;
  }
  closeEdges(runtime, vertex, edges, true);
}

POPLAR_EMULATION_FUNCTION void runComputeSet(Runtime &runtime, unsigned number) {
  const ComputeSetState &set = runtime.graph->sets[number];
  for (const unsigned id : set.vertices) {
    const VertexState &vertex = runtime.graph->vertices[id];
    runVertex(runtime, set, vertex);
  }
}

} // namespace detail
} // namespace poplar

#endif
