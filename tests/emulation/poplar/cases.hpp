/// Small test cases: each checks something, and main prints one line for each that fails or passes.
#ifndef cases_hpp
#define cases_hpp

#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
#include <poputil/exceptions.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace cases {

inline std::map<std::string, std::function<void()>> &all() {
  static std::map<std::string, std::function<void()>> cases;
  return cases;
}

struct Case {
  Case(const char *name, std::function<void()> run) { all()[name] = std::move(run); }
};

[[noreturn]] inline void fail(const std::string &what, int line) {
  throw std::logic_error("line " + std::to_string(line) + ": " + what);
}

/// A graph with a tile mapping by hand, its one program and what the host reads and writes.
struct Model {
  poplar::Device device;
  poplar::Graph graph;
  poplar::program::Sequence prog;
  std::vector<std::pair<std::string, std::vector<char>>> inputs;
  std::unique_ptr<poplar::Engine> engine;

  explicit Model(unsigned tiles = 4) : device(make(tiles)), graph(device) {}
  static poplar::Device make(unsigned tiles) {
    poplar::IPUModel model;
    model.tilesPerIPU = tiles;
    return model.createDevice();
  }
  poplar::Tensor variable(const poplar::Type &type, std::vector<std::size_t> shape, const std::string &name = "x") {
    const poplar::Tensor t = graph.addVariable(type, shape, name);
    graph.setTileMapping(t, 0);
    return t;
  }
  /// A variable that the host writes before the program runs.
  template <class T>
  poplar::Tensor input(const poplar::Type &type, std::vector<std::size_t> shape, std::vector<T> values,
                       const std::string &name = "x") {
    const poplar::Tensor t = variable(type, shape, name);
    const std::string handle = name + std::to_string(inputs.size());
    graph.createHostWrite(handle, t);
    const char *const data = reinterpret_cast<const char *>(values.data());
    inputs.emplace_back(handle, std::vector<char>(data, data + values.size() * sizeof(T)));
    return t;
  }
  poplar::Tensor floats(std::vector<std::size_t> shape, std::vector<float> values, const std::string &name = "x") {
    return input(poplar::FLOAT, shape, values, name);
  }
  poplar::Tensor halves(std::vector<std::size_t> shape, const std::vector<float> &values,
                        const std::string &name = "x") {
    return input(poplar::HALF, shape, std::vector<half>(values.begin(), values.end()), name);
  }
  poplar::Tensor ints(std::vector<std::size_t> shape, std::vector<int> values, const std::string &name = "x") {
    return input(poplar::INT, shape, values, name);
  }
  void run() {
    engine.reset(new poplar::Engine(graph, prog));
    engine->load(device);
    for (const auto &one : inputs)
      engine->writeTensor(one.first, one.second.data(), one.second.data() + one.second.size());
    engine->run();
  }
  /// Runs and gives the elements of a tensor.
  template <class T> std::vector<T> values(const poplar::Tensor &t) {
    graph.createHostRead("result", t);
    run();
    std::vector<T> out(t.numElements());
    engine->readTensor("result", out.data(), out.data() + out.size());
    return out;
  }
  std::vector<float> read(const poplar::Tensor &t) {
    if (t.elementType() == poplar::FLOAT)
      return values<float>(t);
    if (t.elementType() == poplar::HALF) {
      const std::vector<half> h = values<half>(t);
      return std::vector<float>(h.begin(), h.end());
    }
    if (t.elementType() == poplar::INT) {
      const std::vector<int> i = values<int>(t);
      return std::vector<float>(i.begin(), i.end());
    }
    if (t.elementType() == poplar::UNSIGNED_INT) {
      const std::vector<unsigned> i = values<unsigned>(t);
      return std::vector<float>(i.begin(), i.end());
    }
    const std::vector<unsigned char> b = values<unsigned char>(t);
    return std::vector<float>(b.begin(), b.end());
  }
};

template <class T> std::string text(const std::vector<T> &values) {
  std::string s = "[";
  for (std::size_t i = 0; i != values.size(); ++i)
    s += (i ? " " : "") + std::to_string(values[i]);
  return s + "]";
}

} // namespace cases

#define CASE(name)                                                                                                     \
  static void name();                                                                                                  \
  static const cases::Case name##_case(#name, name);                                                                   \
  static void name()

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      cases::fail(#condition, __LINE__);                                                                               \
  } while (false)

/// The statement throws `type` with a message that contains `words`.
#define REFUSED(type, words, ...)                                                                                      \
  do {                                                                                                                 \
    bool thrown = false;                                                                                               \
    try {                                                                                                              \
      __VA_ARGS__;                                                                                                     \
    } catch (const type &error) {                                                                                      \
      thrown = true;                                                                                                   \
      if (std::string(error.what()).find(words) == std::string::npos)                                                  \
        cases::fail(std::string("another message: ") + error.what(), __LINE__);                                        \
    } catch (const std::exception &error) {                                                                            \
      cases::fail(std::string("another error: ") + error.what(), __LINE__);                                            \
    }                                                                                                                  \
    if (!thrown)                                                                                                       \
      cases::fail("not refused: " #__VA_ARGS__, __LINE__);                                                             \
  } while (false)

#define SAME(actual, ...)                                                                                              \
  do {                                                                                                                 \
    const std::vector<float> is = actual, should = __VA_ARGS__;                                                        \
    if (is != should)                                                                                                  \
      cases::fail(#actual " is " + cases::text(is) + ", not " + cases::text(should), __LINE__);                        \
  } while (false)

#endif
