#include "cases.hpp"
#include <algorithm>
#include <random>

using namespace poplar;
using cases::Model;

/// What a tensor should be: a shape and the number of each element.
struct Expected {
  std::vector<std::size_t> shape;
  std::vector<float> values;
  std::size_t inner(std::size_t d) const {
    std::size_t n = 1;
    for (std::size_t i = d + 1; i < shape.size(); ++i)
      n *= shape[i];
    return n;
  }
  /// Takes, along a dimension, the given entries.
  Expected taken(std::size_t d, const std::vector<std::size_t> &entries) const {
    Expected out{shape, {}};
    out.shape[d] = entries.size();
    const std::size_t in = inner(d), extent = shape[d], outer = values.size() / std::max<std::size_t>(in * extent, 1);
    for (std::size_t o = 0; o != outer; ++o)
      for (const std::size_t e : entries)
        for (std::size_t i = 0; i != in; ++i)
          out.values.push_back(values[(o * extent + e) * in + i]);
    return out;
  }
  Expected permuted(const std::vector<unsigned> &order) const {
    Expected out;
    for (const unsigned d : order)
      out.shape.push_back(shape[d]);
    std::vector<std::size_t> at(shape.size(), 0);
    for (std::size_t n = 0; n != values.size(); ++n) {
      std::size_t rest = n, place = 0;
      for (std::size_t d = order.size(); d-- != 0;) {
        at[order[d]] = rest % out.shape[d];
        rest /= out.shape[d];
      }
      for (std::size_t d = 0; d != shape.size(); ++d)
        place = place * shape[d] + at[d];
      out.values.push_back(values[place]);
    }
    return out;
  }
};

static std::vector<std::size_t> range(std::size_t begin, std::size_t end, std::size_t step = 1) {
  std::vector<std::size_t> out;
  for (std::size_t i = begin; i < end; i += step)
    out.push_back(i);
  return out;
}

static Expected counted(std::vector<std::size_t> shape) {
  Expected e{std::move(shape), {}};
  for (std::size_t i = 0; i != poplar::detail::product(e.shape); ++i)
    e.values.push_back(static_cast<float>(i));
  return e;
}

/// Reads the tensor through a copy to a dense variable.
static std::vector<float> contents(Model &m, const Tensor &t) {
  const Tensor dense = m.variable(FLOAT, t.shape(), "dense");
  m.prog.add(program::Copy(t, dense));
  return m.read(dense);
}

CASE(random_chains_of_views_give_the_same_elements_as_their_definition) {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round != 150; ++round) {
    Model m;
    Expected e = counted({2 + pick(2), 1 + pick(4), 2 + pick(3)});
    Tensor t = m.floats(e.shape, e.values);
    for (int step = 0; step != 6 && t.numElements() < 2000; ++step) {
      const unsigned d = static_cast<unsigned>(pick(t.rank()));
      const std::size_t extent = e.shape[d];
      switch (pick(8)) {
      case 0: {
        const std::size_t begin = pick(extent + 1), end = begin + pick(extent - begin + 1);
        t = t.slice(begin, end, d);
        e = e.taken(d, range(begin, end));
        break;
      }
      case 1: {
        const unsigned stride = 1 + static_cast<unsigned>(pick(3));
        t = t.subSample(stride, d);
        e = e.taken(d, range(0, extent, stride));
        break;
      }
      case 2: {
        t = t.reverse(d);
        auto back = range(0, extent);
        std::reverse(back.begin(), back.end());
        e = e.taken(d, back);
        break;
      }
      case 3: {
        const unsigned n = 1 + static_cast<unsigned>(pick(3));
        t = t.broadcast(n, d);
        auto again = range(0, extent * n);
        for (auto &i : again)
          i %= extent;
        e = e.taken(d, again);
        break;
      }
      case 4: {
        std::vector<unsigned> order(t.rank());
        for (unsigned i = 0; i != order.size(); ++i)
          order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        t = t.dimShuffle(order);
        e = e.permuted(order);
        break;
      }
      case 5:
        if (d + 1 < t.rank()) {
          t = t.flatten(d, d + 2);
          e.shape[d] *= e.shape[d + 1];
          e.shape.erase(e.shape.begin() + d + 1);
        }
        break;
      case 6:
        t = concat(t, t.reverse(d), d);
        {
          auto twice = range(0, extent);
          for (std::size_t i = extent; i-- != 0;)
            twice.push_back(i);
          e = e.taken(d, twice);
        }
        break;
      default:
        t = t.expand({d});
        e.shape.insert(e.shape.begin() + d, 1);
      }
      CHECK(t.shape() == e.shape);
      if (t.numElements() == 0)
        break;
    }
    SAME(contents(m, t), e.values);
  }
}

CASE(aliases_are_seen) {
  Model m;
  const Tensor t = m.variable(FLOAT, {4, 3});
  CHECK(!t.containsAliases() && !t.transpose().containsAliases() && !t.subSample(2, 0).containsAliases());
  CHECK(t.slice(0, 1, 0).broadcast(2, 0).containsAliases());
  CHECK(concat(t, t).containsAliases());
  CHECK(!concat(t.slice(0, 2), t.slice(2, 4)).containsAliases());
  CHECK(!t.slice(0, 1, 0).broadcast(2, 0).isParallelWriteable());
  const Tensor c = m.graph.addConstant(FLOAT, {2}, 1.0f);
  CHECK(c.containsConstant() && !c.isParallelWriteable() && !t.containsConstant());
}

CASE(a_concatenation_of_neighbours_is_one_region) {
  Model m;
  const Tensor t = m.variable(FLOAT, {10});
  CHECK(concat(t.slice(0, 4), t.slice(4, 10)).isContiguous());
  CHECK(concat(t.slice(0, 4), t.slice(4, 10)) == t);
  const auto regions = concat(t.slice(6, 9), t.slice(0, 2)).getContiguousRegions();
  CHECK(regions.size() == 2 && regions[0] == Interval(0, 3) && regions[1] == Interval(3, 5));
}

CASE(expand_counts_the_dimensions_of_the_tensor) {
  Model m;
  const Tensor t = m.variable(FLOAT, {5});
  CHECK(t.expand({0, 1}).shape() == std::vector<std::size_t>({1, 5, 1}));
  CHECK(t.expand({1, 1}).shape() == std::vector<std::size_t>({5, 1, 1}));
  CHECK(t.expand({0, 1}).squeeze({0, 2}) == t);
  REFUSED(index_error, "index 2", t.expand({2}));
  REFUSED(poplar_error, "isn't 1", t.squeeze({0}));
}

CASE(partial_shuffles) {
  Model m;
  const Tensor t = m.variable(FLOAT, {2, 3, 4});
  CHECK(t.dimShufflePartial({0}, {2}).shape() == std::vector<std::size_t>({3, 4, 2}));
  CHECK(t.dimShufflePartial({1, 2}, {2, 1}).shape() == std::vector<std::size_t>({2, 4, 3}));
  CHECK(t.dimRoll(2).shape() == std::vector<std::size_t>({4, 2, 3}));
  CHECK(t.reshapePartial(1, 3, {6, 2}).shape() == std::vector<std::size_t>({2, 6, 2}));
  CHECK(t.upsample(2, 1, UpsampleMethod::REPEAT).shape() == std::vector<std::size_t>({2, 6, 4}));
  REFUSED(poplar_error, "named twice", t.dimShufflePartial({0, 0}, {1, 2}));
  REFUSED(poplar_error, "permutation", t.dimShuffle({0, 1, 1}));
}

CASE(views_out_of_range_are_refused) {
  Model m;
  const Tensor t = m.variable(FLOAT, {2, 3});
  REFUSED(index_error, "[1,4)", t.slice(1, 4, 1));
  REFUSED(index_error, "dimension 2", t.slice(0, 1, 2));
  REFUSED(index_error, "index 2", t[2]);
  REFUSED(poplar_error, "[2,3] and [4]", t.reshape({4}));
  REFUSED(poplar_error, "rank 3", t.expand({0}).transpose());
  REFUSED(poplar_error, "don't go together", concat(t, m.variable(FLOAT, {2, 4})));
  REFUSED(type_error, "float and int", concat(t, m.variable(INT, {2, 3})));
  REFUSED(type_error, "differ in size", t.reinterpret(HALF));
  REFUSED(poplar_error, "invalid", Tensor().slice(0, 1));
  REFUSED(poplar_error, "invalid", Tensor().flatten());
  CHECK(!Tensor().valid() && t.reinterpret(INT).elementType() == INT);
}

CASE(a_clone_keeps_the_tiles_and_asked_for_the_aliases) {
  Model m;
  const Tensor t = m.variable(HALF, {4});
  m.graph.setTileMapping(t.slice(1, 3), 2);
  const Tensor c = m.graph.clone(FLOAT, t.reverse(0));
  CHECK(c.elementType() == FLOAT && m.graph.getTileMapping(c)[2][0] == Interval(1, 3));
  const Tensor twice = concat(t, t);
  CHECK(!m.graph.clone(twice).containsAliases());
  CHECK(m.graph.clone(twice, {}, TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES).containsAliases());
}

CASE(mappings_are_given_back_in_order) {
  Model m;
  const Tensor t = m.graph.addVariable(FLOAT, {6}, "t");
  m.graph.setTileMapping(t, {{}, {{0, 2}, {5, 6}}, {{2, 5}}});
  const auto mapping = m.graph.getTileMapping(t);
  CHECK(mapping.size() == 4 && mapping[1].size() == 2 && mapping[1][1] == Interval(5, 6));
  REFUSED(invalid_tile_mapping, "tile 4", m.graph.setTileMapping(t, 4));
  const Tensor u = m.graph.addVariable(FLOAT, {2}, "u");
  REFUSED(invalid_tile_mapping, "element 0 of 'u'", m.graph.getTileMapping(u));
  bool complete = true;
  m.graph.getTileMapping(u, &complete);
  CHECK(!complete && m.graph.getTileMapping(u, false)[0].empty());
}
