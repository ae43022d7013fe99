/* Runs statements as codelets on the emulation: what a call is comes as text, and tensors as rows of bytes. */
#ifndef TESTS_POPLAR_HARNESS_H
#define TESTS_POPLAR_HARNESS_H

#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "opc/poplar/placing.h"

namespace harness {

/* One line of text for each thing that a call fixes: its kind, its name, and what it is. */
class call {
 public:
  explicit call(const char *text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string kind, name, rest;
      words >> kind >> name;
      std::getline(words, rest);
      entries_[kind + " " + name] = rest.empty() ? rest : rest.substr(1);
    }
  }

  int64_t size(const std::string &name) const { return std::stoll(entry("size " + name)); }
  int64_t integer(const std::string &name) const { return std::stoll(entry("integer " + name)); }
  float real(const std::string &name) const { return std::stof(entry("real " + name)); }
  bool flag(const std::string &name) const { return entry("flag " + name) == "1"; }
  std::string text(const std::string &name) const { return entry("text " + name); }
  opc::ipu::shape shape(const std::string &name) const { return sizes("shape " + name); }
  /* A group that only absent operands have is empty. */
  opc::ipu::shape group(const std::string &name) const {
    return entries_.count("group " + name) == 0 ? opc::ipu::shape() : sizes("group " + name);
  }
  poplar::Type type(const std::string &name) const {
    for (const poplar::Type &t : {poplar::FLOAT, poplar::HALF, poplar::INT, poplar::UNSIGNED_INT, poplar::SHORT, poplar::UNSIGNED_SHORT,
                                  poplar::SIGNED_CHAR, poplar::UNSIGNED_CHAR, poplar::BOOL}) {
      if (std::string(t.toString()) == entry("type " + name)) return t;
    }
    throw std::runtime_error("there is no type " + entry("type " + name));
  }
  int number(const std::string &name) const { return std::stoi(entry("number " + name)); }

 private:
  std::map<std::string, std::string> entries_;

  const std::string &entry(const std::string &key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) throw std::runtime_error("the call has no " + key);
    return found->second;
  }
  opc::ipu::shape sizes(const std::string &key) const {
    std::istringstream words(entry(key));
    opc::ipu::shape found;
    for (std::size_t size = 0; words >> size;) found.push_back(size);
    return found;
  }
};

/* What runs: the graph, and the programs that make the outputs of the tensors that are given. */
struct run {
  poplar::Device device;
  poplar::Graph graph;
  poplar::program::Sequence prog;
  poplar::DebugContext debug{"op"};
  const call &of;
  std::vector<std::pair<std::string, std::size_t>> in, out;

  run(const call &c, const char *codelets) : device(model_of(c)), graph(device), of(c) { graph.addCodelets(codelets); }

  static poplar::Device model_of(const call &c) {
    poplar::IPUModel model;
    model.tilesPerIPU = static_cast<unsigned>(c.number("tiles"));
    model.memoryBytesPerTile = static_cast<unsigned>(c.number("bytes"));
    return model.createDevice();
  }

  poplar::Tensor input(const std::string &name, const poplar::Type &type, bool given) {
    if (!given) return poplar::Tensor();
    const poplar::Tensor t = graph.addVariable(type, of.shape(name), name);
    /* A piece on each tile. */
    const poplar::Tensor flat = t.flatten();
    const std::size_t tiles = graph.getTarget().getNumTiles(), count = flat.numElements(), piece = (count + tiles - 1) / tiles;
    for (std::size_t tile = 0; tile * piece < count; ++tile) {
      graph.setTileMapping(flat.slice(tile * piece, std::min(count, tile * piece + piece)), static_cast<unsigned>(tile));
    }
    if (t.numElements() > 0) graph.createHostWrite("in_" + name, t);
    in.emplace_back(name, t.numElements() * graph.getTarget().getTypeSize(type));
    return t;
  }
  void output(const std::string &name, const poplar::Tensor &t) {
    if (t.shape() != of.shape(name)) throw std::runtime_error(name + " has another shape");
    if (t.numElements() > 0) graph.createHostRead("out_" + name, t);
    out.emplace_back(name, t.numElements() * graph.getTarget().getTypeSize(t.elementType()));
  }

  void go(const void *const *inputs, void *const *outputs) {
    poplar::Engine engine(graph, prog);
    engine.load(device);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const char *from = static_cast<const char *>(inputs[i]);
      if (in[i].second > 0) engine.writeTensor("in_" + in[i].first, from, from + in[i].second);
    }
    engine.run();
    for (std::size_t i = 0; i < out.size(); ++i) {
      char *to = static_cast<char *>(outputs[i]);
      if (out[i].second > 0) engine.readTensor("out_" + out[i].first, to, to + out[i].second);
    }
  }
};

/* Makes and runs what a call of an op is; what is thrown becomes a message of no more than 1000 bytes, and 1 comes back. */
inline int run_call(void (*op)(run &, const call &), const char *text, const char *codelets, const void *const *in, void *const *out,
                    char *message) {
  try {
    const call c(text);
    run r(c, codelets);
    op(r, c);
    r.go(in, out);
    return 0;
  } catch (const std::exception &e) {
    std::strncpy(message, e.what(), 999);
    return 1;
  }
}

}  // namespace harness

#endif
