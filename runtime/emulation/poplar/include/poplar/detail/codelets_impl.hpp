#ifndef poplar_detail_codelets_impl_hpp
#define poplar_detail_codelets_impl_hpp

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <poplar/Graph.hpp>
#include <unistd.h>

namespace poplar {
namespace detail {

/// Runs popc on a source file; the result is kept by content, so that it is compiled once.
static inline std::string popcOutput(const std::string &source, const std::string &flags) {
  const char *popc = std::getenv("POPC");
  const std::string command = std::string(popc ? popc : "popc") + " --cached '" + source + "' " + flags;
  std::FILE *const pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[512];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe))
    out += buffer;
  if (!pipe || ::pclose(pipe) != 0)
    throw graph_object_load_error("addCodelets: popc failed on '" + source + "'");
  while (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

static inline void loadCodelets(GraphState &g, const std::string &path) {
  // A bare name would be looked for where libraries are.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void *const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw graph_object_load_error("addCodelets: '" + path + "': " + ::dlerror());
  using Entry = const VertexTable *(*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "poplar_emulation_vertices"));
  if (!entry || entry()->version != 3)
    throw graph_object_load_error("addCodelets: '" + path + "' isn't a codelet file of this popc");
  g.isolate = g.isolate || entry()->sanitized == sanitizedAddress;
  g.concurrent = g.concurrent || entry()->sanitized == sanitizedThread;
  for (std::size_t i = 0; i != entry()->count; ++i) {
    const VertexInfo &info = entry()->vertices[i];
    if (!g.vertexTypes.emplace(info.name, &info).second)
      throw graph_object_load_error("addCodelets: '" + path + "': the graph has a vertex type '" +
                                    std::string(info.name) + "' already");
  }
}

static inline VertexState &vertexOf(GraphState &g, VertexRef v) {
  if (v.getId() >= g.vertices.size())
    throw poplar_error("no such vertex");
  return g.vertices[v.getId()];
}

static inline std::size_t fieldNumber(const VertexState &vertex, const std::string &name) {
  for (std::size_t i = 0; i != vertex.info->fieldCount; ++i)
    if (name == vertex.info->fields[i].name)
      return i;
  throw unknown_field("vertex '" + std::string(vertex.info->name) + "' has no field '" + name + "'");
}

static inline void convert(const unsigned char *from, const TypeTraits &traits, const Type &type, unsigned char *to);

static inline Type typeNamed(const std::string &name) {
  for (const Type &type : {BOOL, CHAR, SIGNED_CHAR, UNSIGNED_CHAR, SHORT, UNSIGNED_SHORT, INT, UNSIGNED_INT, LONGLONG,
                           UNSIGNED_LONGLONG, HALF, FLOAT})
    if (type.toString() == StringRef(name))
      return type;
  throw type_error("no device type is called '" + name + "'");
}

static inline void connectRow(GraphState &g, const FieldRef &ref, const Tensor &t, std::size_t row) {
  VertexState &vertex = vertexOf(g, ref.getVertex());
  const std::size_t number = fieldNumber(vertex, ref.getName());
  const FieldInfo &field = vertex.info->fields[number];
  const auto user = [&]() { return "connect: field '" + ref.getName() + "' of vertex '" + vertex.info->name + "'"; };
  if (!t.valid())
    requireValid(t, user());
  if (field.direction == Direction::State)
    throw graph_connection_error(user() + " takes an initial value, not a tensor");
  if (t.elementType().toString() != StringRef(field.type))
    throw type_error(user() + " has elements of type " + field.type + ", the tensor of type " +
                     t.elementType().toString().cloneAsString());
  if (t.state() != &g)
    throw graph_connection_error(user() + ": the tensor belongs to another graph");
  if (field.dimensions == 0 && t.numElements() != 1)
    throw graph_connection_error(user() + " is one element, the tensor has shape " + t.shapeToString());
  if (field.dimensions != 0 && t.rank() != 1)
    throw graph_connection_error(user() + " takes tensors of rank 1, this one has shape " + t.shapeToString());
  if (field.direction != Direction::Input && !t.isParallelWriteable())
    requireWriteable(t, user());
  FieldState &state = vertex.fields[number];
  if (row >= state.rows.size())
    state.rows.resize(row + 1);
  if (state.rows[row].valid())
    throw graph_connection_error(user() + " is connected already");
  state.rows[row] = t;
  state.set = true;
}

} // namespace detail

POPLAR_EMULATION_FUNCTION bool Graph::addCodelets(StringRef src, CodeletFileType type, StringRef compileFlags,
                                                  StringRef) {
  const std::string path = src;
  if (!state_->codeletFiles.insert(path).second)
    return true; // The same file again adds nothing.
  if (!std::ifstream(path))
    throw file_load_error("addCodelets: no file '" + path + "'");
  const std::size_t dot = path.rfind('.');
  const bool compiled = dot != std::string::npos && path.substr(dot) == ".gp" && type == CodeletFileType::Auto;
  detail::loadCodelets(*state_, compiled ? path : detail::popcOutput(path, compileFlags));
  return true;
}

POPLAR_EMULATION_FUNCTION void Graph::addCodelets(std::stringstream &stream, StringRef compileFlags, CodeletFileType,
                                                  StringRef) {
  char path[] = "/tmp/codelets-XXXXXX.cpp";
  const int file = ::mkstemps(path, 4);
  if (file < 0)
    throw file_load_error("addCodelets: can't write a temporary file");
  ::close(file);
  std::ofstream(path) << stream.str();
  std::string compiled;
  try {
    compiled = detail::popcOutput(path, compileFlags);
  } catch (...) {
    ::unlink(path);
    throw;
  }
  ::unlink(path);
  detail::loadCodelets(*state_, compiled);
}

POPLAR_EMULATION_FUNCTION ComputeSet Graph::addComputeSet(const DebugContext &debugContext) {
  state_->sets.push_back({debugContext.getPathName(), {}});
  return ComputeSet(static_cast<unsigned>(state_->sets.size() - 1));
}

POPLAR_EMULATION_FUNCTION VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType) {
  const auto found = state_->vertexTypes.find(vertexType);
  if (found == state_->vertexTypes.end())
    throw unknown_vertex_type("addVertex: no vertex type '" + vertexType.cloneAsString() + "'");
  if (cs.getId() >= state_->sets.size())
    throw poplar_error("addVertex: no such compute set");
  detail::VertexState vertex;
  vertex.info = found->second;
  vertex.fields.resize(vertex.info->fieldCount);
  state_->vertices.push_back(std::move(vertex));
  const unsigned id = static_cast<unsigned>(state_->vertices.size() - 1);
  state_->sets[cs.getId()].vertices.push_back(id);
  return VertexRef(id);
}

POPLAR_EMULATION_FUNCTION VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType,
                                                     ArrayRef<ConnectionDesc> connections) {
  const VertexRef v = addVertex(cs, vertexType);
  for (const ConnectionDesc &connection : connections) {
    if (connection.isRow)
      connect(v[connection.field], connection.tensors[0]);
    else
      connect(v[connection.field], connection.tensors);
  }
  return v;
}

POPLAR_EMULATION_FUNCTION void Graph::connect(FieldRef field, const Tensor &tensor) {
  detail::VertexState &vertex = detail::vertexOf(*state_, field.getVertex());
  const detail::FieldInfo &info = vertex.info->fields[detail::fieldNumber(vertex, field.getName())];
  if (info.dimensions != 2 || field.isIndexed())
    return detail::connectRow(*state_, field, tensor, field.isIndexed() ? field.getIndex() : 0);
  detail::requireValid(tensor, "connect: field '" + field.getName() + "'");
  if (tensor.rank() != 2)
    throw graph_connection_error("connect: field '" + field.getName() + "' of vertex '" + vertex.info->name +
                                 "' takes tensors of rank 2, this one has shape " + tensor.shapeToString());
  for (std::size_t row = 0; row != tensor.dim(0); ++row)
    detail::connectRow(*state_, field, tensor[row], row);
}

POPLAR_EMULATION_FUNCTION void Graph::connect(FieldRef field, ArrayRef<Tensor> tensors) {
  detail::VertexState &vertex = detail::vertexOf(*state_, field.getVertex());
  const std::size_t number = detail::fieldNumber(vertex, field.getName());
  if (vertex.info->fields[number].dimensions != 2)
    throw graph_connection_error("connect: field '" + field.getName() + "' of vertex '" + vertex.info->name +
                                 "' takes one tensor, not a list");
  vertex.fields[number].set = true; // Of no rows too.
  for (std::size_t row = 0; row != tensors.size(); ++row)
    detail::connectRow(*state_, field, tensors[row], row);
}

POPLAR_EMULATION_FUNCTION void Graph::setFieldSize(FieldRef field, std::size_t size) {
  detail::VertexState &vertex = detail::vertexOf(*state_, field.getVertex());
  vertex.fields[detail::fieldNumber(vertex, field.getName())].rows.resize(size);
}

POPLAR_EMULATION_FUNCTION void Graph::initialise(const FieldRef &ref, const void *values, const TypeTraits &traits,
                                                 std::size_t count, bool vector) {
  detail::VertexState &vertex = detail::vertexOf(*state_, ref.getVertex());
  const std::size_t number = detail::fieldNumber(vertex, ref.getName());
  const detail::FieldInfo &info = vertex.info->fields[number];
  const std::string user = "setInitialValue: field '" + ref.getName() + "' of vertex '" + vertex.info->name + "'";
  detail::FieldState &field = vertex.fields[number];
  const bool state = info.direction == detail::Direction::State;
  if (!state)
    throw graph_connection_error(user + " takes a tensor, not an initial value");
  if (vector != (info.dimensions == 1))
    throw graph_connection_error(user + (vector ? " is one element, not a vector" : " is a vector"));
  const Type type = detail::typeNamed(info.type);
  field.values.resize(count * info.elementBytes);
  for (std::size_t i = 0; i != count; ++i)
    detail::convert(static_cast<const unsigned char *>(values) + i * traits.size, traits, type,
                    field.values.data() + i * info.elementBytes);
  field.set = true;
}

} // namespace poplar

#endif
