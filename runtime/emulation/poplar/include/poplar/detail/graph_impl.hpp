#ifndef poplar_detail_graph_impl_hpp
#define poplar_detail_graph_impl_hpp

#include <algorithm>
#include <poplar/Graph.hpp>

namespace poplar {

namespace detail {

/// A host value as the device's type holds it.
static inline void convert(const unsigned char *from, const TypeTraits &traits, const Type &type, unsigned char *to) {
  double x = 0;
  std::int64_t i = 0;
  if (traits.isFloat) {
    if (traits.size == 2) {
      std::uint16_t h;
      std::memcpy(&h, from, 2);
      x = floatOfHalfBits(h);
    } else if (traits.size == 4) {
      float f;
      std::memcpy(&f, from, 4);
      x = f;
    } else {
      std::memcpy(&x, from, 8);
    }
    i = x > -9.2e18 && x < 9.2e18 ? static_cast<std::int64_t>(x) : 0;
  } else {
    std::memcpy(&i, from, traits.size); // The hosts of the SDK are little-endian.
    const unsigned unused = 64 - 8 * static_cast<unsigned>(traits.size);
    if (unused != 0) {
      const std::uint64_t top = static_cast<std::uint64_t>(i) << unused;
      i = traits.isSigned ? static_cast<std::int64_t>(top) >> unused : static_cast<std::int64_t>(top >> unused);
    }
    x = traits.isSigned ? static_cast<double>(i) : static_cast<double>(static_cast<std::uint64_t>(i));
  }
  if (type == FLOAT) {
    const float f = static_cast<float>(x);
    std::memcpy(to, &f, 4);
  } else if (type == HALF) {
    const std::uint16_t h = halfBits(static_cast<float>(x));
    std::memcpy(to, &h, 2);
  } else if (type == BOOL) {
    *to = traits.isFloat ? x != 0 : i != 0;
  } else {
    std::memcpy(to, &i, type.bytes());
  }
}

} // namespace detail

POPLAR_EMULATION_FUNCTION Graph::Graph(const Target &target, replication_factor r)
    : state_(std::make_shared<detail::GraphState>()) {
  if (r.value != 1)
    throw poplar_error("Graph: the emulation has no replicated graphs");
  if (target.getNumTiles() > INT16_MAX)
    throw poplar_error("Graph: the emulation has at most " + std::to_string(INT16_MAX) + " tiles");
  state_->target = target;
}

POPLAR_EMULATION_FUNCTION Tensor Graph::add(const Type &type, ArrayRef<std::size_t> shape, const std::string &name,
                                            bool constant) {
  detail::GraphState &g = *state_;
  const std::size_t n = detail::product(shape), base = (g.image.size() + 7) / 8 * 8, end = base + n * type.bytes();
  if (end > UINT32_MAX)
    throw tensor_creation_error("addVariable: '" + name + "' of shape " + detail::text(shape) +
                                " is more than the emulation can address");
  g.image.resize(end, 0);
  g.flags.resize(end, constant ? detail::Initialised | detail::Constant : 0);
  g.tiles.resize(end, -1);
  g.variables.push_back({type, base, n, name.empty() ? (constant ? "<const>" : "<unnamed>") : name, constant});
  return Tensor(state_.get(), type,
                detail::contiguousView(static_cast<detail::Place>(base / type.bytes()), shape.cloneAsVector()));
}

POPLAR_EMULATION_FUNCTION Tensor Graph::addVariable(const Type &type, ArrayRef<std::size_t> shape,
                                                    VariableMappingMethod method, const DebugContext &debugContext) {
  Tensor t = add(type, shape, debugContext.getPathName(), false);
  if (method == VariableMappingMethod::LINEAR && t.numElements() != 0) {
    const Tensor flat = t.flatten();
    const std::size_t tiles = getTarget().getNumTiles(), each = (t.numElements() + tiles - 1) / tiles;
    for (std::size_t begin = 0, tile = 0; begin < t.numElements(); begin += each, ++tile)
      setTileMapping(flat.slice(begin, std::min(begin + each, t.numElements())), static_cast<unsigned>(tile));
  }
  return t;
}

POPLAR_EMULATION_FUNCTION Tensor Graph::addConstant(const Type &type, ArrayRef<std::size_t> shape, const void *values,
                                                    const TypeTraits &traits, bool broadcast,
                                                    const DebugContext &debugContext) {
  Tensor t = add(type, shape, debugContext.getPathName(), true);
  const auto *from = static_cast<const unsigned char *>(values);
  detail::eachByte(t, [&](std::size_t byte) {
    detail::convert(from, traits, type, state_->image.data() + byte);
    if (!broadcast)
      from += traits.size;
  });
  return t;
}

POPLAR_EMULATION_FUNCTION Tensor Graph::addConstantHalf(const Type &type, ArrayRef<std::size_t> shape,
                                                        std::uint16_t value, const DebugContext &debugContext) {
  if (type != HALF)
    throw type_error("addConstantHalf: the type is " + type.toString().cloneAsString() + ", not half");
  return addConstant(type, shape, detail::floatOfHalfBits(value), debugContext);
}

POPLAR_EMULATION_FUNCTION void Graph::initialise(const Tensor &t, const void *values, const TypeTraits &traits,
                                                 std::size_t count) {
  detail::requireWriteable(t, "setInitialValue");
  if (count != t.numElements())
    throw poplar_error("setInitialValue: " + std::to_string(count) + " values for a tensor of shape " +
                       t.shapeToString());
  const auto *from = static_cast<const unsigned char *>(values);
  detail::eachByte(t, [&](std::size_t byte) {
    detail::convert(from, traits, t.elementType(), state_->image.data() + byte);
    state_->flags[byte] |= detail::Initialised;
    from += traits.size;
  });
}

POPLAR_EMULATION_FUNCTION Tensor Graph::clone(const Type &type, const Tensor &t, const DebugContext &debugContext,
                                              TensorCloneMethod method) {
  detail::requireValid(t, "Graph::clone");
  const std::string name = debugContext.getPathName().empty() ? t.getVarStr() : debugContext.getPathName();
  const bool aliased = t.containsAliases();
  if (!aliased || method == TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES ||
      method == TensorCloneMethod::CREATE_NEW_ORDER) {
    Tensor copy = add(type, t.shape(), name, false);
    const detail::GraphState &from = *t.state();
    std::size_t to = state_->variables.back().base;
    detail::eachByte(t, [&](std::size_t byte) {
      state_->tiles[to] = from.tiles[byte];
      to += type.bytes();
    });
    return copy;
  }
  // Elements that were one are one again.
  std::vector<detail::Place> distinct = detail::places(t.view()), table = distinct;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const Tensor fresh = add(type, {distinct.size()}, name, false);
  for (std::size_t i = 0; i != distinct.size(); ++i)
    state_->tiles[(fresh.view().first() + i) * type.bytes()] =
        t.state()->tiles[std::size_t(distinct[i]) * t.elementType().bytes()];
  for (detail::Place &place : table)
    place = fresh.view().first() +
            static_cast<detail::Place>(std::lower_bound(distinct.begin(), distinct.end(), place) - distinct.begin());
  return Tensor(state_.get(), type, detail::tableView(std::move(table), t.shape()));
}

static inline void requireTile(const Target &target, std::size_t tile) {
  if (tile >= target.getNumTiles())
    throw invalid_tile_mapping("setTileMapping: tile " + std::to_string(tile) + " of a target with " +
                               std::to_string(target.getNumTiles()) + " tiles");
}

POPLAR_EMULATION_FUNCTION void Graph::setTileMapping(VertexRef v, unsigned tileNum) {
  requireTile(getTarget(), tileNum);
  state_->vertices.at(v.getId()).tile = static_cast<int>(tileNum);
}

POPLAR_EMULATION_FUNCTION void Graph::setTileMapping(const Tensor &t, unsigned tileNum) {
  requireTile(getTarget(), tileNum);
  detail::requireOf(state_.get(), t, "setTileMapping");
  detail::eachByte(t, [&](std::size_t byte) { state_->tiles[byte] = static_cast<std::int16_t>(tileNum); });
}

POPLAR_EMULATION_FUNCTION void Graph::setTileMapping(const Tensor &t, const TileToTensorMapping &mapping) {
  const Tensor flat = detail::requireValid(t, "setTileMapping").flatten();
  for (std::size_t tile = 0; tile != mapping.size(); ++tile)
    for (const Interval &interval : mapping[tile])
      setTileMapping(flat.slice(interval), static_cast<unsigned>(tile));
}

POPLAR_EMULATION_FUNCTION Graph::TileToTensorMapping Graph::getTileMapping(const Tensor &t, bool *isComplete) const {
  detail::requireValid(t, "getTileMapping");
  TileToTensorMapping mapping(getTarget().getNumTiles());
  bool complete = true;
  std::size_t i = 0, begin = 0;
  int tile = -1;
  const auto close = [&]() {
    if (tile >= 0)
      mapping[static_cast<std::size_t>(tile)].emplace_back(begin, i);
  };
  detail::eachByte(t, [&](std::size_t byte) {
    const int here = state_->tiles[byte];
    complete = complete && here >= 0;
    if (here != tile) {
      close();
      begin = i;
      tile = here;
    }
    ++i;
  });
  close();
  if (isComplete)
    *isComplete = complete;
  return mapping;
}

POPLAR_EMULATION_FUNCTION Graph::TileToTensorMapping Graph::getTileMapping(const Tensor &t,
                                                                           bool requireComplete) const {
  if (requireComplete)
    detail::requireMapped(t, "getTileMapping");
  return getTileMapping(t, static_cast<bool *>(nullptr));
}

POPLAR_EMULATION_FUNCTION std::vector<std::vector<Interval>>
Graph::getSortedContiguousRegions(const Tensor &t, ArrayRef<Interval> regions, bool removeAliasedIntervals,
                                  std::vector<std::size_t> *aliases) const {
  if (removeAliasedIntervals || aliases)
    throw poplar_error("getSortedContiguousRegions: the emulation doesn't look for aliases");
  // Each group is what lies in a row in memory, in the order of memory.
  const auto list = detail::places(t.view());
  struct Run { std::size_t begin, end; detail::Place first; };
  std::vector<Run> runs;
  for (const Interval &region : regions)
    for (std::size_t i = region.begin(); i != region.end(); ++i) {
      if (!runs.empty() && runs.back().end == i && list[i] == list[i - 1] + 1 && i != region.begin())
        ++runs.back().end;
      else
        runs.push_back({i, i + 1, list[i]});
    }
  std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) { return a.first < b.first; });
  std::vector<std::vector<Interval>> sorted;
  detail::Place expected = 0;
  for (const Run &run : runs) {
    if (sorted.empty() || run.first != expected)
      sorted.emplace_back();
    sorted.back().emplace_back(run.begin, run.end);
    expected = run.first + static_cast<detail::Place>(run.end - run.begin);
  }
  return sorted;
}

POPLAR_EMULATION_FUNCTION void Graph::createHostWrite(StringRef handle, const Tensor &t, bool) {
  detail::requireWriteable(t, "createHostWrite");
  if (!state_->hostWrites.emplace(handle.cloneAsString(), t).second)
    throw poplar_error("createHostWrite: the handle '" + handle.cloneAsString() + "' is taken");
}

POPLAR_EMULATION_FUNCTION void Graph::createHostRead(StringRef handle, const Tensor &t, bool) {
  detail::requireValid(t, "createHostRead");
  if (!state_->hostReads.emplace(handle.cloneAsString(), t).second)
    throw poplar_error("createHostRead: the handle '" + handle.cloneAsString() + "' is taken");
}

static inline DataStream addStream(detail::GraphState &g, StringRef handle, const Type &type, std::size_t n,
                                   bool toDevice) {
  const DataStream stream(handle, type, n, toDevice);
  if (!g.streams.emplace(handle.cloneAsString(), stream).second)
    throw stream_connection_error("the handle '" + handle.cloneAsString() + "' of a stream is taken");
  return stream;
}

POPLAR_EMULATION_FUNCTION DataStream Graph::addHostToDeviceFIFO(StringRef handle, const Type &elementType,
                                                                std::size_t numElements, ReplicatedStreamMode,
                                                                const OptionFlags &) {
  return addStream(*state_, handle, elementType, numElements, true);
}

POPLAR_EMULATION_FUNCTION DataStream Graph::addDeviceToHostFIFO(StringRef handle, const Type &elementType,
                                                                std::size_t numElements, const OptionFlags &) {
  return addStream(*state_, handle, elementType, numElements, false);
}

POPLAR_EMULATION_FUNCTION Function Graph::addFunction(const program::Program &program) {
  state_->functions.push_back(program.isEmpty() ? std::make_shared<detail::SequenceNode>() : program.node());
  return Function(static_cast<unsigned>(state_->functions.size() - 1));
}

} // namespace poplar

#endif
