/* Where codelets run: the points of a tensor are split into boxes, one for each tile, whose vertices are given what they read.
 *
 * What a box reads is found by interval arithmetic on the indices (R. E. Moore, Interval Analysis, 1966): an interval holds all the
 * values that an index takes while the indices of the target and of reductions go through theirs.
 */
#ifndef OPC_POPLAR_PLACING_H
#define OPC_POPLAR_PLACING_H

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "opc/poplar/cuts.h"
#include "opc/poplar/intervals.h"
#include "opc/poplar/sizes.h"
#include "opc/poplar/value.h"

namespace opc {
namespace ipu {

/* The type that a tensor between stages has, of operands stored as `stored`. */
inline poplar::Type kept(const poplar::Type &stored) { return stored == poplar::HALF ? poplar::FLOAT : stored; }

/* Which number of a vertex's a field holds: where its box begins and ends along an index; along which index its workers share it, how many
 * points along it and how many elements each has; the size and stride of an operand along an axis, and the
 * offset of its first element, were it there, from that of the part that is given. */
enum class place { begin, end, along, chunk, share, size, stride, first };

/* A field that tells where a vertex's box is, along an index of the target, or where the part of an operand is, along one of its axes; the
 * target comes after the operands. */
struct placed {
  const char *field;
  place what;
  std::size_t axis, operand;

  constexpr placed(const char *field_, place what_, std::size_t axis_ = 0, std::size_t operand_ = 0)
      : field(field_), what(what_), axis(axis_), operand(operand_) {}
};

/* A field that all vertices have alike, and what it holds. */
template <typename T>
struct alike {
  const char *field;
  T value;
};

/* What is read while the target's indices go through a box: of each operand, in order, and in how many steps. */
class reading {
 public:
  std::vector<box> boxes;
  int64_t count = 1;

  /* Of the next operand, along its axes. */
  void of(list<interval> axes_) { boxes.emplace_back(axes_); }
  /* Of the same operand once more. */
  void also(list<interval> axes_) { boxes.back() = hull(boxes.back(), axes_); }
  void steps(int64_t count_) { count = count_; }
};

/* A function that tells what is read, for as long as the function lives. */
class reader {
 public:
  template <typename Function>
  reader(const Function &of)
      : of_(&of), call_([](const void *function, const box &at, reading &to) { (*static_cast<const Function *>(function))(at, to); }) {}

  void operator()(const box &at, reading &to) const { call_(of_, at, to); }

 private:
  const void *of_;
  void (*call_)(const void *, const box &, reading &);
};

/* A statement run as vertices of one class. Names are literals. */
class codelet {
 public:
  codelet(poplar::Graph &graph, poplar::program::Sequence &prog, const char *name, list<poplar::Type> types,
          const poplar::DebugContext &debug)
      : graph_(graph), prog_(prog), name_(name), types_(types), debug_(debug) {
    const poplar::Target &target = graph.getTarget();
    on_ = {target.getNumTiles(), target.getNumWorkerContexts(), static_cast<int64_t>(target.getBytesPerTile())};
  }

  /* The target: its field, the type that the class has it in, the extents of its indices, and the type it is rounded to in the end. */
  void target(const char *field, const poplar::Type &type, list<int64_t> extents, const poplar::Type &stored) {
    target_ = {field, type, {}, extents};
    stored_ = stored;
  }

  /* An operand with its field, the type that the class has it in, and its sizes; an absent one is never read. */
  void input(const char *field, const poplar::Type &type, const poplar::Tensor &tensor, list<int64_t> extents) {
    operand o = {field, type, tensor, extents};
    if (tensor.valid() && points_of(extents) > 0) {
      if (tensor.elementType() != type) o.tensor = popops::cast(graph_, tensor, type, prog_, {debug_, in_stage(field)});
      o.tensor = o.tensor.reshape(sizes_of(extents));
    } else {
      o.tensor = poplar::Tensor();
    }
    operands_.push_back(o);
  }

  /* Fields that all vertices have alike, and those that differ. */
  void integers(list<alike<int64_t>> fields) {
    for (const alike<int64_t> &f : fields) integers_.push_back({f.field, fits(f.value, f.field)});
  }
  void reals(list<alike<float>> fields) { reals_ = fields; }
  void flags(list<alike<bool>> fields) { flags_ = fields; }
  void places(list<placed> fields) { places_ = fields; }

  /* What is said of what vertices find wrong, which they report as 1 and so on in this order: the text, or that an index is outside
   * of an axis. */
  void refusal(const char *message) { messages_.push_back(message); }
  void refusal(const char *op, const char *operand, std::size_t axis, int64_t size) {
    messages_.push_back(std::string(op) + ": an index of " + operand + " is outside axis " + std::to_string(axis) + " of size " +
                        std::to_string(size));
  }

  /* A target that is a reduction over axes of these extents may be computed in parts, which are reduced then. */
  void split(list<int64_t> extents, popops::Operation operation) {
    split_ = extents;
    operation_ = operation;
  }

  /* Indices of the target along which nothing is gained where workers share them: each goes through all terms. */
  void serial(list<std::size_t> indices) { serial_ = indices; }

  /* Whether any output that the statement takes part in has elements; without one nothing that its vertices find is wrong. */
  void asked(bool asked) { asked_ = asked; }

  /* Adds the vertices, which read what a function tells, and returns the target with these sizes. */
  poplar::Tensor run(const reader &reads, const shape &sizes) {
    reads_ = &reads;
    return placed_target().reshape(sizes);
  }

 private:
  struct operand {
    const char *field;
    poplar::Type type;
    poplar::Tensor tensor;
    std::vector<int64_t> extents;
  };

  poplar::Graph &graph_;
  poplar::program::Sequence &prog_;
  std::string name_;
  std::vector<poplar::Type> types_;
  const poplar::DebugContext &debug_;
  operand target_;
  poplar::Type stored_;
  tiles on_ = {1, 1, 0};
  std::set<std::size_t> serial_;
  std::vector<int64_t> split_;
  popops::Operation operation_ = popops::Operation::ADD;
  std::vector<operand> operands_;
  const reader *reads_ = nullptr;
  std::vector<alike<int>> integers_;
  std::vector<alike<float>> reals_;
  std::vector<alike<bool>> flags_;
  std::vector<placed> places_;
  std::vector<std::string> messages_;
  bool asked_ = true;
  std::map<std::string, poplar::Tensor> nothing_;

  /* Adds the vertices, and returns the target with one axis for each index. */
  poplar::Tensor placed_target() {
    shape sizes = sizes_of(target_.extents);
    if (points_of(target_.extents) <= 0) {
      const poplar::Tensor none = graph_.addVariable(stored_, sizes, {debug_, in_stage(target_.field)});
      graph_.setTileMapping(none, 0);
      return none;
    }
    check_reads();
    const cuts found = best_cuts();
    const int64_t parts = found.parts(), first = first_tile();
    sizes.insert(sizes.begin(), static_cast<std::size_t>(parts));
    poplar::Tensor out = graph_.addVariable(target_.type, sizes, {debug_, in_stage(target_.field)});
    const poplar::ComputeSet set = graph_.addComputeSet({debug_, name_});
    std::vector<poplar::Tensor> statuses;
    int64_t n = 0;
    found.each([&](const box &at) {
      const unsigned tile = static_cast<unsigned>((first + n) % on_.count);
      add_vertex(set, out[static_cast<std::size_t>(n % parts)], at, tile, statuses);
      ++n;
    });
    prog_.add(poplar::program::Execute(set, {debug_, name_}));
    if (!statuses.empty() && asked_) check(statuses);
    out = parts == 1 ? out[0] : popops::reduce(graph_, out, {0}, {operation_}, prog_, {debug_, in_stage("sum")});
    return stored_ == target_.type ? out : popops::cast(graph_, out, stored_, prog_, {debug_, in_stage(target_.field)});
  }

  std::string in_stage(const std::string &what) const { return name_ + "/" + what; }

  static int64_t points_of(const std::vector<int64_t> &extents) {
    int64_t points = 1;
    for (const int64_t extent : extents) points *= std::max<int64_t>(extent, 0);
    return points;
  }

  int fits(int64_t value, const std::string &what) const {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
      throw poplar::poplar_error(name_ + ": " + what + " is " + std::to_string(value) + ", and tiles count in 32 bits");
    }
    return static_cast<int>(value);
  }

  static shape sizes_of(const std::vector<int64_t> &extents) {
    shape sizes;
    for (const int64_t extent : extents) sizes.push_back(static_cast<std::size_t>(std::max<int64_t>(extent, 0)));
    return sizes;
  }

  /* A box has an interval for each index of the target, and then one for each axis that its reduction may be split along. */
  std::size_t rank() const { return target_.extents.size(); }
  box target_of(const box &at) const { return box(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank())); }

  std::vector<int64_t> extents() const {
    std::vector<int64_t> all = target_.extents;
    for (const int64_t extent : split_) all.push_back(std::max<int64_t>(extent, 0));
    return all;
  }

  reading read_in(const box &at) const {
    reading found;
    (*reads_)(at, found);
    return found;
  }

  /* Refuses indices that a tile's integers can't hold. */
  void check_reads() const {
    box everything;
    for (const int64_t extent : extents()) everything.push_back(whole(extent));
    const std::vector<box> all = read_in(everything).boxes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const interval &axis : all[i]) {
        const std::string what = std::string("an index of ") + operands_[i].field;
        fits(axis.low, what);
        fits(axis.high, what);
      }
    }
  }

  /* What is given of an operand: what is read of it and is there, at least one element. */
  static box part(const box &read, const std::vector<int64_t> &extents) {
    box given;
    for (std::size_t n = 0; n < extents.size(); ++n) {
      const int64_t last = extents[n] - 1, low = std::min(std::max<int64_t>(read[n].low, 0), last);
      given.push_back(interval(low, std::max(low, std::min(read[n].high, last))));
    }
    return given;
  }

  int64_t bytes_of(const operand &o, int64_t elements) const {
    return elements * static_cast<int64_t>(graph_.getTarget().getTypeSize(o.type));
  }

  needs needed_for(const box &at) const {
    int64_t bytes = bytes_of(target_, points_in(target_of(at)));
    const reading read = read_in(at);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const operand &o = operands_[i];
      bytes += bytes_of(o, o.tensor.valid() ? points_in(part(read.boxes[i], o.extents)) : 1);
    }
    const int64_t fields = static_cast<int64_t>(integers_.size() + reals_.size() + flags_.size() + places_.size());
    return {bytes + 4 * fields + 8 * static_cast<int64_t>(operands_.size() + 2), read.count};
  }

  cuts best_cuts() const {
    cuts found(extents(), rank(), serial_, on_, [this](const box &at) { return needed_for(at); });
    if (!found.choose()) {
      const std::string needed = std::to_string(found.fewest_bytes()), room = std::to_string(on_.room);
      throw poplar::poplar_error(name_ + ": a tile would need " + needed + " bytes and has " + room);
    }
    return found;
  }

  /* Small stages of one name begin on one tile, others elsewhere, so that not all are on the first. */
  int64_t first_tile() const {
    uint32_t hash = 2166136261u;
    for (const char c : name_) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash % on_.count;
  }

  /* How the workers of a tile share a box: along the first index that has several points, so that no two write to one word. */
  struct sharing {
    int64_t along, chunk, elements;
  };

  sharing shared(const box &at) const {
    if (rank() == 0) return {0, 1, 1};
    const std::size_t along = shared_index(at, rank(), serial_);
    const int64_t length = at[along].size(), word = graph_.getTarget().getAtomicStoreGranularity();
    int64_t inner = 1, outer = 1;
    for (std::size_t n = 0; n < rank(); ++n) {
      if (n != along) (n < along ? outer : inner) *= at[n].size();
    }
    int64_t step = 1;
    while (step * bytes_of(target_, inner) % word != 0) ++step;
    if (outer > 1 && length % step != 0) step = length;
    const int64_t wanted = (length + on_.workers - 1) / on_.workers, chunk = (wanted + step - 1) / step * step;
    return {static_cast<int64_t>(along), chunk, chunk * inner};
  }

  /* Adds the vertex of a box. */
  void add_vertex(poplar::ComputeSet set, const poplar::Tensor &out, const box &at, unsigned tile, std::vector<poplar::Tensor> &statuses) {
    const std::vector<box> read = read_in(at).boxes;
    const poplar::VertexRef v = graph_.addVertex(set, class_name());
    std::vector<box> parts;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const operand &o = operands_[i];
      parts.push_back(o.tensor.valid() ? part(read[i], o.extents) : box(o.extents.size()));
      graph_.connect(v[o.field], o.tensor.valid() ? slice(o.tensor, parts.back()).flatten() : nothing(o.type));
    }
    const poplar::Tensor own = slice(out, target_of(at));
    graph_.setTileMapping(own, tile);
    graph_.connect(v[target_.field], own.flatten());
    for (const auto &f : integers_) graph_.setInitialValue(v[f.field], f.value);
    for (const auto &f : reals_) graph_.setInitialValue(v[f.field], f.value);
    for (const auto &f : flags_) graph_.setInitialValue(v[f.field], f.value);
    for (const placed &f : places_) graph_.setInitialValue(v[f.field], fits(value_of(f, at, parts), f.field));
    graph_.setTileMapping(v, tile);
    /* What a model of an IPU takes a step for. */
    graph_.setPerfEstimate(v, static_cast<uint64_t>(product(needed_for(at).steps, 16) / on_.workers));
    if (messages_.empty()) return;
    const std::size_t workers = static_cast<std::size_t>(on_.workers);
    const poplar::Tensor status = graph_.addVariable(poplar::INT, {workers, 2}, {debug_, in_stage("status")});
    graph_.setTileMapping(status, tile);
    graph_.connect(v["status"], status.flatten());
    statuses.push_back(status);
  }

  std::string class_name() const {
    std::string types;
    for (const poplar::Type &type : types_) types += (types.empty() ? "<" : ",") + std::string(type.toString());
    return types.empty() ? name_ : name_ + types + ">";
  }

  int64_t value_of(const placed &f, const box &at, const std::vector<box> &parts) const {
    switch (f.what) {
      case place::begin:
        return at[f.axis].low;
      case place::end:
        return at[f.axis].high + 1;
      case place::along:
        return shared(at).along;
      case place::chunk:
        return shared(at).chunk;
      case place::share:
        return shared(at).elements;
      case place::size:
        return operands_[f.operand].extents[f.axis];
      default:
        break;
    }
    int64_t stride = 1, first = 0;
    const box part = f.operand < parts.size() ? parts[f.operand] : target_of(at);
    for (std::size_t n = part.size(); n-- > 0;) {
      if (f.what == place::stride && n == f.axis) return stride;
      first -= part[n].low * stride;
      stride *= part[n].size();
    }
    return first;
  }

  static poplar::Tensor slice(const poplar::Tensor &tensor, const box &at) {
    shape begin, end;
    for (const interval &axis : at) {
      begin.push_back(static_cast<std::size_t>(axis.low));
      end.push_back(static_cast<std::size_t>(axis.high + 1));
    }
    return at.empty() ? tensor : tensor.slice(begin, end);
  }

  /* An element that stands for an operand that is absent, or has none. */
  poplar::Tensor nothing(const poplar::Type &type) {
    const std::string name = type.toString();
    auto found = nothing_.find(name);
    if (found == nothing_.end()) {
      const poplar::Tensor none = graph_.addConstant(type, {1}, 0, {debug_, in_stage("nothing")});
      graph_.setTileMapping(none, 0);
      found = nothing_.emplace(name, none).first;
    }
    return found->second;
  }

  /* Ends the run with the message of what a vertex found wrong. */
  void check(const std::vector<poplar::Tensor> &statuses) {
    const poplar::Tensor all = poplar::concat(statuses), codes = all.slice(0, 1, 1).flatten();
    const poplar::Tensor code = popops::reduce(graph_, codes, {0}, {popops::Operation::MAX}, prog_, {debug_, in_stage("code")});
    poplar::program::Sequence refuse;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      namespace pe = popops::expr;
      const int own = static_cast<int>(i) + 1;
      poplar::program::Sequence one;
      /* The value that the message is about is one of those that go with the code. */
      const poplar::Tensor values = popops::map(graph_, pe::Select(pe::_2, pe::Const(std::numeric_limits<int>::min()), pe::_1 == own),
                                                {codes, all.slice(1, 2, 1).flatten()}, one, {debug_, in_stage("values")});
      const poplar::Tensor value = popops::reduce(graph_, values, {0}, {popops::Operation::MAX}, one, {debug_, in_stage("value")});
      one.add(poplar::program::ErrorProgram(messages_[i], value, {debug_, name_}));
      const poplar::Tensor is_own = popops::map(graph_, pe::_1 == own, {code}, refuse, {debug_, in_stage("is_code")});
      refuse.add(poplar::program::If(is_own, one, poplar::program::Sequence(), {debug_, name_}));
    }
    const poplar::Tensor wrong = popops::map(graph_, popops::expr::_1 > 0, {code}, prog_, {debug_, in_stage("wrong")});
    prog_.add(poplar::program::If(wrong, refuse, poplar::program::Sequence(), {debug_, name_}));
  }
};

/* A tensor of which the axes between `before` and `after` are broadcast to a group. */
inline poplar::Tensor spread(poplar::Tensor tensor, std::size_t before, std::size_t after, const shape &group) {
  if (!tensor.valid()) return tensor;
  while (tensor.rank() < before + after + group.size()) tensor = tensor.expand({before});
  for (std::size_t i = 0; i < group.size(); ++i) {
    const unsigned axis = static_cast<unsigned>(before + i);
    if (tensor.dim(axis) != group[i]) tensor = tensor.broadcast(static_cast<unsigned>(group[i]), axis);
  }
  return tensor;
}

/* A group's axes that an operand, whose own axes are `own`, has as they are, and those along which it is broadcast. */
struct broadcast_parts {
  std::vector<unsigned> kept, rest;
  int64_t own = 1, others = 1;

  broadcast_parts(const shape &group, const shape &of) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t missing = group.size() - of.size();
      const bool same = i >= missing && of[i - missing] == group[i];
      (same ? kept : rest).push_back(static_cast<unsigned>(i));
      (same ? own : others) *= static_cast<int64_t>(group[i]);
    }
  }

  /* A tensor that has the group's axes after `before` others, with those that are kept ahead of the rest. */
  poplar::Tensor apart(const poplar::Tensor &tensor, std::size_t before) const {
    if (!tensor.valid()) return tensor;
    std::vector<unsigned> order;
    const unsigned first = static_cast<unsigned>(before), count = static_cast<unsigned>(kept.size() + rest.size());
    for (unsigned i = 0; i < first; ++i) order.push_back(i);
    for (const unsigned i : kept) order.push_back(first + i);
    for (const unsigned i : rest) order.push_back(first + i);
    for (unsigned i = first + count; i < tensor.rank(); ++i) order.push_back(i);
    return tensor.dimShuffle(order);
  }
};

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_PLACING_H
