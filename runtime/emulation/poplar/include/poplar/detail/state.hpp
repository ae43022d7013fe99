#ifndef poplar_detail_state_hpp
#define poplar_detail_state_hpp

#include <map>
#include <memory>
#include <poplar/GraphElements.hpp>
#include <poplar/Target.hpp>
#include <poplar/detail/vertex_abi.hpp>
#include <set>

namespace poplar {
namespace detail {

struct Node;

/// A variable or constant; `base` is in bytes.
struct Variable {
  Type type;
  std::size_t base, elements;
  std::string name;
  bool constant;
};

struct FieldState {
  bool set = false;
  std::vector<Tensor> rows;          // what is connected
  std::vector<unsigned char> values; // or what the state is
};

struct VertexState {
  const VertexInfo *info = nullptr;
  int tile = -1;
  std::vector<FieldState> fields;
};

struct ComputeSetState {
  std::string name;
  std::vector<unsigned> vertices;
};

enum Flag : unsigned char { Initialised = 1, Constant = 2 };

/// All that a graph holds. The memory of every variable lies in one array of bytes, in the order of their making; the
/// first byte of an element says what holds for the element.
struct GraphState {
  Target target;
  std::vector<Variable> variables;
  std::vector<unsigned char> image; // initial values
  std::vector<unsigned char> flags;
  std::vector<std::int16_t> tiles; // -1 where nothing is mapped
  std::vector<VertexState> vertices;
  std::vector<ComputeSetState> sets;
  std::map<std::string, const VertexInfo *> vertexTypes;
  bool isolate = false;    // whether codelets are compiled for the address sanitizer
  bool concurrent = false; // whether they are compiled for the thread sanitizer
  std::set<std::string> codeletFiles;
  std::map<std::string, Tensor> hostWrites, hostReads;
  std::map<std::string, DataStream> streams;
  std::vector<std::shared_ptr<const Node>> functions;

  POPLAR_EMULATION_FUNCTION const Variable &variableAt(std::size_t byte) const;
  /// Names the element at `byte` as "element 3 of 'x'".
  POPLAR_EMULATION_FUNCTION std::string nameOf(std::size_t byte) const;
};

/// Calls `f(byte)` for each element of a tensor, in order.
template <class F> void eachByte(const Tensor &t, F &&f) {
  const std::int64_t bytes = t.elementType().bytes();
  eachRun(t.view(), [&](Place first, std::int64_t step, std::size_t count) {
    std::int64_t at = std::int64_t(first) * bytes;
    for (std::size_t i = 0; i != count; ++i, at += step * bytes)
      f(static_cast<std::size_t>(at));
  });
}

/// The first byte of an element that is on no tile, or ~0.
POPLAR_EMULATION_FUNCTION std::size_t firstUnmapped(const Tensor &t);
/// Throws invalid_tile_mapping where an element of `t` is on no tile.
POPLAR_EMULATION_FUNCTION void requireMapped(const Tensor &t, const std::string &user);
/// Throws graph_connection_error where `t` can't be written: it has a constant, or one element twice.
POPLAR_EMULATION_FUNCTION void requireWriteable(const Tensor &t, const std::string &user);
/// Throws where `t` is invalid or belongs to another graph.
POPLAR_EMULATION_FUNCTION void requireOf(const GraphState *graph, const Tensor &t, const std::string &user);
/// `t`, or an error that says that nothing was given.
POPLAR_EMULATION_FUNCTION const Tensor &requireValid(const Tensor &t, const std::string &user);

} // namespace detail
} // namespace poplar

#endif
