#include "cases.hpp"
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <sstream>

using namespace poplar;
using namespace poplar::program;
using cases::Model;
namespace pe = popops::expr;
using pe::_1;

/// A program that adds to the tensor.
static Sequence adding(Model &m, const Tensor &t, float x) {
  Sequence s;
  popops::mapInPlace(m.graph, _1 + x, {t}, s);
  return s;
}

CASE(branches) {
  for (const int which : {0, 1, 7}) {
    Model m;
    const Tensor x = m.floats({1}, {0}), c = m.ints({}, {which}, "c");
    m.prog.add(If(c, adding(m, x, 1), adding(m, x, 2)));
    m.prog.add(Switch(c, {{0, adding(m, x, 10)}, {7, adding(m, x, 20)}}, adding(m, x, 30)));
    SAME(m.read(x), {which == 0 ? 12.0f : which == 1 ? 31.0f : 21.0f});
  }
  Model m;
  REFUSED(control_program_error, "not one element", If(m.ints({2}, {1, 1}), Sequence(), Sequence()));
  REFUSED(control_program_error, "has type float", If(m.floats({}, {1}), Sequence(), Sequence()));
}

CASE(loops) {
  Model m;
  const Tensor x = m.floats({}, {0});
  m.prog.add(Repeat(5, adding(m, x, 2)));
  Sequence condition;
  const Tensor more = popops::map(m.graph, _1 < 16.0f, {x}, condition);
  m.prog.add(RepeatWhileTrue(condition, more, adding(m, x, 1)));
  SAME(m.read(x), {16});
}

CASE(functions) {
  Model m;
  const Tensor x = m.floats({1}, {0});
  const Function f = m.graph.addFunction(adding(m, x, 3));
  m.prog.add(Call(f));
  m.prog.add(Call(f));
  SAME(m.read(x), {6});
  Model n;
  n.graph.addFunction(Call(Function(0)));
  n.prog.add(Call(Function(0)));
  REFUSED(graph_recursion_error, "calls itself", n.run());
}

CASE(a_sequence_is_a_value) {
  Model m;
  const Tensor x = m.floats({1}, {0});
  Sequence part = adding(m, x, 1);
  m.prog.add(part);
  part.add(adding(m, x, 100)); // What was added before doesn't change.
  Sequence copy = m.prog;
  copy.add(adding(m, x, 100));
  m.prog.add(Sequence{adding(m, x, 1), adding(m, x, 1)});
  SAME(m.read(x), {3});
}

CASE(an_error_program_ends_the_run) {
  Model m;
  const Tensor status = m.ints({2}, {3, 41}, "status");
  m.prog.add(If(status[0], ErrorProgram("index out of range", status), Sequence()));
  REFUSED(application_runtime_error, "index out of range: [3,41]", m.run());
}

CASE(tensors_are_printed) {
  Model m;
  const Tensor h = m.halves({2}, {1.5f, -2});
  m.prog.add(PrintTensor("h", h));
  m.prog.add(PrintTensor(m.ints({1}, {-3}), "i"));
  std::ostringstream out;
  Engine engine(m.graph, m.prog);
  engine.load(m.device);
  engine.setPrintTensorStream(out);
  for (const auto &one : m.inputs)
    engine.writeTensor(one.first, one.second.data(), one.second.data() + one.second.size());
  engine.run();
  CHECK(out.str() == "h: [1.500000,-2.000000]\ni: [-3]\n");
}

CASE(copies) {
  Model m;
  const Tensor x = m.floats({2, 2}, {1, 2, 3, 4}), y = m.variable(FLOAT, {2, 2}, "y");
  m.prog.add(Copy(x.transpose(), y));
  m.prog.add(Copy(y.reverse(0), y)); // As if all were read first.
  SAME(m.read(y), {2, 4, 1, 3});
  REFUSED(poplar_error, "shape [2,2] to one of shape [4]", Copy(x, y.flatten()));
  REFUSED(type_error, "float to half", Copy(x, m.variable(HALF, {2, 2})));
  REFUSED(graph_connection_error, "more than once", Copy(x, y.slice(0, 1).broadcast(2, 0)));
  const Tensor c = m.graph.addConstant(FLOAT, {2}, 1.0f, "c");
  REFUSED(graph_connection_error, "element 0 of 'c'", Copy(x[0], c));
  REFUSED(poplar_error, "invalid", Copy(x, Tensor()));
}

CASE(constants_hold_what_they_are_given) {
  Model m;
  const float values[] = {0.1f, 70000.0f};
  const Tensor h = m.graph.addConstant(HALF, {2}, values), i = m.graph.addConstant(INT, {2}, ArrayRef<int>({-1, 2}));
  const Tensor b = m.graph.addConstant(BOOL, {}, true);
  for (const Tensor &t : {h, i, b})
    m.graph.setTileMapping(t, 1);
  SAME(m.read(h), {float(half(0.1f)), float(half(70000.0f))});
  Model n;
  const Tensor j = n.graph.addConstant(INT, {2}, ArrayRef<int>({-1, 2}));
  n.graph.setTileMapping(j, 0);
  SAME(n.read(j), {-1, 2});
  REFUSED(tensor_creation_error, "2 values for shape [3]", n.graph.addConstant(INT, {3}, ArrayRef<int>({-1, 2})));
  REFUSED(graph_connection_error, "constant", n.graph.createHostWrite("c", j));
}

CASE(initial_values_are_there_before_anything_runs) {
  Model m;
  const Tensor x = m.variable(FLOAT, {2});
  m.graph.setInitialValue(x[0], 4);
  REFUSED(poplar_error, "element 1 of 'x'", m.read(x));
  Model n;
  const Tensor y = n.variable(HALF, {2});
  n.graph.setInitialValue<float>(y, ArrayRef<float>({1, 2}));
  SAME(n.read(y), {1, 2});
}

CASE(what_was_undefined_is_unwritten_again) {
  Model m;
  const Tensor x = m.floats({1}, {1}), y = m.variable(FLOAT, {1}, "y");
  m.prog.add(WriteUndef(x));
  m.prog.add(Copy(x, y));
  REFUSED(poplar_error, "Copy: reads element 0 of 'x'", m.run());
}

CASE(streams) {
  Model m;
  const Tensor x = m.variable(FLOAT, {2});
  const DataStream in = m.graph.addHostToDeviceFIFO("in", FLOAT, 2), out = m.graph.addDeviceToHostFIFO("out", FLOAT, 2);
  m.prog.add(Repeat(2, Sequence{Copy(in, x), adding(m, x, 1), Copy(x, out)}));
  REFUSED(stream_connection_error, "carries 2 float", Copy(in, x[0]));
  REFUSED(stream_connection_error, "other way", Copy(out, x));
  REFUSED(stream_connection_error, "is taken", m.graph.addHostToDeviceFIFO("in", FLOAT, 2));
  Engine engine(m.graph, m.prog);
  engine.load(m.device);
  REFUSED(stream_connection_error, "nothing is connected", engine.run());
  float from[] = {1, 2, 3, 4}, to[4] = {};
  engine.connectStream("in", from, from + 4);
  engine.connectStream("out", to, to + 4);
  engine.run();
  SAME(std::vector<float>(to, to + 4), {2, 3, 4, 5});
  int called = 0;
  engine.connectStreamToCallback("in", [&](void *p) {
    static_cast<float *>(p)[0] = static_cast<float *>(p)[1] = static_cast<float>(++called);
  });
  engine.run();
  CHECK(called == 2 && to[3] == 3);
  REFUSED(stream_connection_error, "no stream 'none'", engine.connectStream("none", from, from + 2));
  REFUSED(stream_connection_error, "smaller than the 8 bytes", engine.connectStream("in", from, from + 1));
}

CASE(engines) {
  Model m;
  const Tensor x = m.floats({2}, {1, 2});
  m.graph.createHostRead("x", x);
  Engine engine(m.graph, {adding(m, x, 1), adding(m, x, 10)});
  float buffer[2] = {1, 2};
  REFUSED(poplar_error, "isn't loaded", engine.run());
  REFUSED(tensor_io_state_error, "isn't loaded", engine.readTensor("x", buffer, buffer + 2));
  REFUSED(poplar_error, "another target", engine.load(Model::make(5)));
  engine.load(m.device);
  engine.writeTensor(m.inputs[0].first, buffer, buffer + 2);
  engine.run(1);
  engine.run(0);
  engine.readTensor("x", buffer, buffer + 2);
  SAME(std::vector<float>(buffer, buffer + 2), {12, 13});
  REFUSED(poplar_error, "program 2 of 2", engine.run(2));
  REFUSED(poplar_error, "a buffer of 4 bytes for a tensor of 8", engine.readTensor("x", buffer, buffer + 1));
  REFUSED(tensor_io_state_error, "no handle 'y'", engine.readTensor("y", buffer, buffer + 2));
}

CASE(a_graph_that_does_not_fit_is_refused_with_the_figure) {
  Model m(2);
  const unsigned bytes = m.graph.getTarget().getBytesPerTile();
  CHECK(bytes == 638976 && IPUModel().createDevice().getTarget().getNumTiles() == 1472);
  const Tensor x = m.graph.addVariable(FLOAT, {bytes / 4 + 1}, "x");
  m.graph.setTileMapping(x, 1);
  REFUSED(graph_memory_allocation_error, "Out of memory on tile 1: needs 638980 bytes", m.run());
  m.graph.setTileMapping(x.slice(0, 1), 0);
  m.run();
  REFUSED(poplar_error, "at most", Graph(Target(100000, 1, bytes)));
}

CASE(a_model_takes_known_versions) { REFUSED(invalid_machine_model, "not ipu7", IPUModel("ipu7")); }
