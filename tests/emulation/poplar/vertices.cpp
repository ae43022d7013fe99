#include "cases.hpp"
#include <cstdlib>
#include <poputil/VertexTemplates.hpp>

using namespace poplar;
using cases::Model;
using poputil::templateVertex;

/// A model with the codelets, one compute set that the program runs, and its vertices on tile 1.
struct Vertices : Model {
  ComputeSet cs;
  Vertices() {
    graph.addCodelets(std::getenv("CODELETS"));
    cs = graph.addComputeSet("work");
    prog.add(program::Execute(cs));
  }
  VertexRef add(const std::string &type) {
    const VertexRef v = graph.addVertex(cs, type);
    graph.setTileMapping(v, 1);
    return v;
  }
  VertexRef scale(const Tensor &x, const Tensor &y) {
    const VertexRef v = add(templateVertex("Scale", x.elementType()));
    graph.connect(v["x"], x);
    graph.connect(v["y"], y);
    graph.setInitialValue(v["factor"], 2.0f);
    return v;
  }
};

CASE(names_of_templates) {
  CHECK(templateVertex("A") == "A" && templateVertex("A", FLOAT) == "A<float>");
  CHECK(templateVertex("A", HALF, 3, true, "x::Y") == "A<half,3,true,x::Y>");
  CHECK(templateVertex("A", UNSIGNED_INT, SIGNED_CHAR) == "A<unsigned int,signed char>");
}

CASE(elements_in_any_order_reach_the_codelet) {
  Vertices m;
  const Tensor x = m.floats({2, 3}, {1, 2, 3, 4, 5, 6}), y = m.variable(FLOAT, {3, 2}, "y");
  m.scale(x.transpose().flatten(), y.flatten().reverse(0));
  SAME(m.read(y), {12, 6, 10, 4, 8, 2});
}

CASE(halves_are_halves) {
  Vertices m;
  const Tensor x = m.halves({2}, {0.1f, 1024.5f}), y = m.variable(HALF, {2}, "y");
  m.scale(x, y);
  SAME(m.read(y), {2 * float(half(0.1f)), 2 * float(half(1024.5f))});
}

CASE(every_kind_of_field) {
  Vertices m;
  const Tensor f = m.floats({2, 3}, {1, 2, 3, 4, 5, 6}), i = m.ints({3}, {10, 20, 30}), t = m.floats({}, {0.5f}, "t");
  const VertexRef v = m.add("sums::Rows");
  m.graph.connect(v["rows"], f);
  m.graph.connect(v["more"], {i.slice(0, 1), i.slice(1, 3)});
  m.graph.connect(v["total"], t);
  m.graph.setInitialValue(v["table"], ArrayRef<int>({100, 200}));
  m.graph.setInitialValue(v["flag"], true);
  const Tensor u = m.input(UNSIGNED_INT, {}, std::vector<unsigned>{7}), w = m.variable(UNSIGNED_INT, {}, "w");
  const VertexRef next = m.graph.addVertex(m.cs, templateVertex("sums::Next", UNSIGNED_INT, 3, false),
                                           {{"x", u}, {"y", w}});
  m.graph.setTileMapping(next, 0);
  SAME(m.read(t), {1381.5f});
}

CASE(rows_are_connected_one_by_one) {
  Vertices m;
  const Tensor f = m.floats({3}, {1, 2, 3}), i = m.ints({1}, {0}), t = m.floats({}, {0}, "t");
  const VertexRef v = m.add("sums::Rows");
  m.graph.setFieldSize(v["rows"], 2);
  m.graph.connect(v["rows"][0], f.slice(0, 2));
  m.graph.connect(v["rows"][1], f.slice(2, 3));
  REFUSED(graph_connection_error, "connected already", m.graph.connect(v["rows"][1], f.slice(2, 3)));
  m.graph.connect(v["more"], ArrayRef<Tensor>({i}));
  m.graph.connect(v["total"], t);
  m.graph.setInitialValue(v["table"], ArrayRef<int>());
  m.graph.setInitialValue(v["flag"], false);
  SAME(m.read(t), {6});
}

CASE(all_workers_run_a_multi_vertex) {
  Vertices m;
  const Tensor who = m.variable(INT, {8});
  m.graph.connect(m.add("Workers")["who"], who);
  SAME(m.read(who), {0, 1, 2, 3, 4, 5, 0, 1});
}

CASE(unknown_types_and_fields) {
  Vertices m;
  REFUSED(unknown_vertex_type, "'Scale<int>'", m.add(templateVertex("Scale", INT)));
  REFUSED(unknown_vertex_type, "'Ghost'", m.add("Ghost"));
  const VertexRef v = m.add("Scale<float>");
  REFUSED(unknown_field, "'Scale<float>' has no field 'z'", m.graph.connect(v["z"], m.variable(FLOAT, {1})));
  REFUSED(file_load_error, "no file", m.graph.addCodelets("/nowhere.gp"));
}

CASE(fields_take_what_they_are_declared_for) {
  Vertices m;
  const VertexRef v = m.add("Scale<float>");
  const Tensor x = m.variable(FLOAT, {2, 2});
  REFUSED(type_error, "elements of type float, the tensor of type half",
          m.graph.connect(v["x"], m.variable(HALF, {2})));
  REFUSED(graph_connection_error, "rank 1, this one has shape [2,2]", m.graph.connect(v["x"], x));
  REFUSED(graph_connection_error, "one tensor, not a list", m.graph.connect(v["x"], {x[0], x[1]}));
  REFUSED(graph_connection_error, "initial value, not a tensor", m.graph.connect(v["factor"], x[0][0]));
  REFUSED(graph_connection_error, "a tensor, not an initial value", m.graph.setInitialValue(v["x"], 1.0f));
  REFUSED(graph_connection_error, "one element, not a vector",
          m.graph.setInitialValue(v["factor"], ArrayRef<float>({1, 2})));
  REFUSED(graph_connection_error, "is one element", m.graph.connect(m.add("sums::Rows")["total"], x[0]));
  REFUSED(graph_connection_error, "more than once", m.graph.connect(v["y"], x[0].slice(0, 1).broadcast(2, 0)));
  const Tensor c = m.graph.addConstant(FLOAT, {2}, 1.0f, "c");
  REFUSED(graph_connection_error, "constant", m.graph.connect(v["y"], c));
  m.graph.connect(v["x"], x[0]);
  REFUSED(graph_connection_error, "connected already", m.graph.connect(v["x"], x[1]));
}

CASE(every_field_is_connected_or_initialised) {
  Vertices m;
  const VertexRef v = m.add("Scale<float>");
  const Tensor x = m.variable(FLOAT, {2}), y = m.variable(FLOAT, {2}, "y");
  m.graph.connect(v["x"], x);
  m.graph.setInitialValue(v["factor"], 1);
  REFUSED(graph_connection_error, "field 'y' isn't connected", m.run());
  Vertices n;
  const VertexRef w = n.add("Scale<float>");
  n.graph.connect(w["x"], n.variable(FLOAT, {2}));
  n.graph.connect(w["y"], n.variable(FLOAT, {2}, "y"));
  REFUSED(graph_connection_error, "field 'factor' has no initial value", n.run());
}

CASE(vertices_and_what_they_read_are_on_tiles) {
  Vertices m;
  const VertexRef v = m.graph.addVertex(m.cs, "Workers");
  m.graph.connect(v["who"], m.variable(INT, {1}));
  REFUSED(invalid_tile_mapping, "compute set 'work', vertex 'Workers': the vertex is on no tile", m.run());
  REFUSED(invalid_tile_mapping, "tile 4", m.graph.setTileMapping(v, 4));
  Vertices n;
  n.graph.connect(n.add("Workers")["who"], n.graph.addVariable(INT, {1}, "nowhere"));
  REFUSED(invalid_tile_mapping, "field 'who': no tile mapping: element 0 of 'nowhere'", n.run());
}

CASE(vertices_of_a_set_do_not_meet) {
  Vertices m;
  const Tensor x = m.floats({4}, {1, 2, 3, 4}), y = m.variable(FLOAT, {4}, "y");
  m.scale(x.slice(0, 2), y.slice(0, 2));
  m.scale(x.slice(1, 3), y.slice(1, 3));
  REFUSED(graph_connection_error, "element 1 of 'y' is written by another vertex too", m.run());
  Vertices n;
  const Tensor a = n.floats({4}, {1, 2, 3, 4});
  n.scale(a.slice(0, 2), a.slice(2, 4));
  n.scale(a.slice(3, 4), n.variable(FLOAT, {1}, "b"));
  REFUSED(graph_connection_error, "reads element 3 of 'x', which another vertex writes", n.run());
  Vertices k;
  const Tensor c = k.floats({2}, {1, 2});
  k.scale(c, c);
  REFUSED(graph_connection_error, "which another of its fields writes", k.run());
  Vertices l; // Reading alike is no conflict.
  const Tensor d = l.floats({1}, {3}), e = l.variable(FLOAT, {2}, "e");
  l.scale(d, e.slice(0, 1));
  l.scale(d, e.slice(1, 2));
  SAME(l.read(e), {6, 6});
}

CASE(unwritten_elements_are_not_read) {
  Vertices m;
  m.scale(m.variable(FLOAT, {2}), m.variable(FLOAT, {2}, "y"));
  REFUSED(poplar_error, "field 'x': reads element 0 of 'x', which nothing has written", m.run());
}

CASE(an_index_beyond_a_field_is_an_error) {
  Vertices m;
  const VertexRef v = m.add("Beyond");
  m.graph.connect(v["x"], m.floats({3}, {1, 2, 3}));
  m.graph.connect(v["y"], m.variable(FLOAT, {1}, "y"));
  m.graph.setInitialValue(v["index"], 3);
  m.graph.setInitialValue(v["raw"], std::getenv("RAW") != nullptr);
  REFUSED(poplar_error, "vertex 'Beyond': index 3 of a field of 3 elements", m.run());
}

CASE(outputs_that_are_read_show_it) {
  Vertices m;
  const Tensor y = m.floats({2}, {1, 2});
  m.graph.connect(m.add("Careless")["y"], y);
  CHECK(std::isnan(m.read(y)[0]));
}

CASE(what_vertices_read_of_other_tiles_counts) {
  Vertices m;
  const unsigned n = m.graph.getTarget().getBytesPerTile() / 8 + 100;
  const Tensor x = m.graph.addVariable(FLOAT, {n}, "x"), y = m.graph.addVariable(FLOAT, {n}, "y");
  m.graph.setTileMapping(x, 0);
  m.graph.setTileMapping(y, 1);
  m.scale(x, y);
  const std::string bytes = std::to_string(8 * n);
  REFUSED(graph_memory_allocation_error, "tile 1: needs " + bytes + " bytes", m.run());
}

CASE(the_same_file_again_adds_nothing) {
  Vertices m;
  CHECK(m.graph.addCodelets(std::getenv("CODELETS")));
  CHECK(m.graph.addVertex(m.cs, "Workers").getId() == 0);
}
