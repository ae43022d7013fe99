/* What the body of an Opx is written with: values of stages kept as tensors, reductions, products, and results. */
#ifndef OPC_POPLAR_BODY_H
#define OPC_POPLAR_BODY_H

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>
#include <poplin/MatMul.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "opc/poplar/functions.h"
#include "opc/poplar/lowering.h"
#include "opc/poplar/sizes.h"
#include "opc/poplar/value.h"

namespace opc {
namespace ipu {

enum class reduction { sum, prod, max, min, any, all };

class body {
 public:
  body(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::DebugContext &debug)
      : graph_(graph), prog_(prog), debug_(debug) {}

  /* The indices of a loop's points along its axes, counted in row-major order from 0. */
  value index(const loops &stage, std::size_t loop) {
    shape sizes(stage.sizes().size(), 1);
    std::size_t count = 1;
    for (const std::size_t i : stage.positions(loop)) {
      sizes[i] = stage.sizes()[i];
      count *= sizes[i];
    }
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (count == 0) return value(variable(poplar::INT, sizes, "index"));
    const poplar::Tensor found = graph_.addConstant(poplar::INT, sizes, poplar::ArrayRef<int>(numbers), {debug_, "index"});
    poputil::mapTensorLinearly(graph_, found);
    return value(found);
  }

  /* A value kept in memory, in the type it is computed in. */
  value keep(const char *name, const value &a) {
    if (a.is_number() || a.is_absent()) return a;
    return typed(computed_tensor(name, a), a.type());
  }

  /* A value reduced along some loops, of whose axes size 1 is left. */
  value reduce(const char *name, reduction kind, const value &a, const loops &stage, list<std::size_t> over) {
    shape to = stage.sizes();
    for (const std::size_t loop : over) {
      for (const std::size_t i : stage.positions(loop)) to[i] = 1;
    }
    return a.is_absent() ? a : reduced(name, kind, a, stage.sizes(), to);
  }

  /* A tensor of an operand: a value of a stage, rounded to the tensor's type, whose axes lie along the loops as `axes` says. Of a value
   * that needs an operand which is absent there is none, and nothing reads it. */
  poplar::Tensor store(const char *name, const poplar::Type &type, const value &a, const loops &stage,
                       list<along> axes) {
    if (a.is_absent()) return poplar::Tensor();
    return stage.arranged(spread(name, tensor(name, a, type), stage.sizes_of(axes)), axes);
  }

  /* The same of the sum, or another reduction, of all points that go to one element; there are points along the loops `over`. */
  poplar::Tensor store(const char *name, const poplar::Type &type, reduction kind, const value &a, const loops &stage,
                       list<along> axes, list<std::size_t> over) {
    if (a.is_absent()) return poplar::Tensor();
    const shape to = stage.sizes_of(axes);
    shape from = to;
    for (const std::size_t loop : over) {
      for (const std::size_t i : stage.positions(loop)) from[i] = stage.sizes()[i];
    }
    return store(name, type, reduced(name, kind, a, from, to), stage, axes);
  }

  /* The product of two values, summed along the loops `over`. It has the axes `kept`; where these are a tensor's own, the products of
   * all points that they are broadcast along are added up. */
  value product(const char *name, const value &left, const value &right, const loops &stage, list<along> kept,
                list<std::size_t> over) {
    if (left.is_absent() || right.is_absent()) return absent();
    std::vector<bool> stays(stage.sizes().size(), true);
    shape whole(stage.sizes().size(), 1), sizes = whole;
    for (const along &a : kept) {
      for (const std::size_t i : stage.positions(a.loop)) sizes[i] = whole[i] = stage.sizes()[i];
    }
    for (const std::size_t loop : over) {
      for (const std::size_t i : stage.positions(loop)) {
        stays[i] = false;
        sizes[i] = stage.sizes()[i];
      }
    }
    const shape to = stage.sizes_of(kept);
    const poplar::Tensor a = factor_tensor(name, cast(poplar::FLOAT, left)), b = factor_tensor(name, cast(poplar::FLOAT, right));
    const value found = multiplied(name, a, b, sizes, stays);
    return to == whole ? found : reduced(name, reduction::sum, found, whole, to);
  }

  /* A tensor of its own, spread over the tiles. */
  poplar::Tensor variable(const poplar::Type &type, const shape &sizes, const char *name) {
    const poplar::Tensor found = graph_.addVariable(type, sizes, {debug_, name});
    poputil::mapTensorLinearly(graph_, found);
    return found;
  }

  /* A tensor of elements in float. */
  poplar::Tensor in_float(const char *name, const poplar::Tensor &t) {
    return t.elementType() == poplar::FLOAT ? t : computed_tensor(name, cast(poplar::FLOAT, value(t)));
  }

  /* The elements of an axis at `(step * i + offset) / divisor`, rounded to minus infinity, for i from 0 to `count`, as a view; outside of the
   * axis they are `fill`. */
  poplar::Tensor taken(const char *name, const poplar::Tensor &tensor, std::size_t axis_, int64_t step, int64_t offset,
                       int64_t divisor, int64_t count, double fill = 0) {
    if (!tensor.valid()) return tensor;
    const unsigned axis = static_cast<unsigned>(axis_);
    poplar::Tensor t = tensor;
    if (divisor > 1) {
      /* Each element as often as it is found. */
      shape sizes = t.shape();
      sizes.insert(sizes.begin() + axis + 1, 1);
      t = t.reshape(sizes).broadcast(static_cast<unsigned>(divisor), axis + 1);
      sizes.erase(sizes.begin() + axis + 1);
      sizes[axis] *= static_cast<std::size_t>(divisor);
      t = t.reshape(sizes);
    }
    const int64_t size = static_cast<int64_t>(t.dim(axis));
    if (step < 0) {
      t = t.reverse(axis);
      offset = size - 1 - offset;
      step = -step;
    }
    count = std::max<int64_t>(count, 0);
    int64_t begin = 0, end = 0;
    if (step == 0) {
      end = 0 <= offset && offset < size ? count : 0;
    } else {
      begin = std::min(std::max<int64_t>(-floordiv(offset, step), 0), count);
      end = std::min(std::max(floordiv(size - 1 - offset, step) + 1, begin), count);
    }
    if (begin == end) {
      begin = end = 0;
      t = t.slice(0, 0, axis);
    } else if (step == 0) {
      t = t.slice(static_cast<std::size_t>(offset), static_cast<std::size_t>(offset + 1), axis).broadcast(static_cast<unsigned>(count), axis);
    } else {
      t = t.slice(static_cast<std::size_t>(offset + step * begin), static_cast<std::size_t>(offset + step * (end - 1) + 1), axis);
      if (step > 1) t = t.subSample(static_cast<unsigned>(step), axis);
    }
    return padded(name, t, axis, begin, count - end, fill);
  }

  /* The elements at one index of an axis, which is no more; zeros where that is outside of it. */
  poplar::Tensor picked(const char *name, const poplar::Tensor &tensor, std::size_t axis, int64_t index) {
    if (!tensor.valid()) return tensor;
    shape sizes = tensor.shape();
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
    return taken(name, tensor, axis, 1, index, 1, 1).reshape(sizes);
  }

  /* A tensor with one number around it along an axis, as a view. */
  poplar::Tensor padded(const char *, const poplar::Tensor &t, unsigned axis, int64_t lower, int64_t upper, double fill = 0) {
    std::vector<poplar::Tensor> parts;
    shape sizes = t.shape();
    for (const int64_t count : {lower, int64_t{-1}, upper}) {
      if (count < 0) parts.push_back(t);
      if (count <= 0) continue;
      sizes[axis] = static_cast<std::size_t>(count);
      /* One element, repeated. */
      const poplar::Tensor one = constant(value(fill), t.elementType()).reshape(shape(sizes.size(), 1));
      parts.push_back(repeated(one, sizes));
    }
    return parts.size() == 1 ? t : poplar::concat(parts, axis);
  }

  poplar::Graph &graph() { return graph_; }
  poplar::program::Sequence &prog() { return prog_; }
  const poplar::DebugContext &debug() const { return debug_; }

 private:
  poplar::Graph &graph_;
  poplar::program::Sequence &prog_;
  const poplar::DebugContext &debug_;

  /* ---- expressions to tensors ---- */

  /* The tensor of an expression, of its own, in a type that it is converted to. */
  poplar::Tensor mapped(const char *name, const node_ptr &expression, const poplar::Type &type) {
    const node_ptr e = value::converted(expression, type);
    if (e->what == node::kind::tensor) {
      const poplar::Tensor found = variable(type, e->tensor.shape(), name);
      prog_.add(poplar::program::Copy(e->tensor, found, false, {debug_, name}));
      return found;
    }
    lowering to(e, [&](const node_ptr &shared) { return mapped(name, shared, shared->type); });
    const pe::Any found = to.lower(e, true);
    shape sizes;
    for (const poplar::Tensor &t : to.tensors) sizes = broadcast(sizes, t.shape());
    if (points(sizes) == 0) return variable(type, sizes, name);
    /* As it is written: popops would take x + 0 for x, whose zero may have another sign. */
    return popops::map(graph_, found, to.tensors, prog_, {debug_, name}, {{"enableExpressionOptimizations", "false"}});
  }

  /* A number as a tensor without axes. */
  poplar::Tensor constant(const value &number, const poplar::Type &type) {
    const value n = number.as(type);
    poplar::Tensor found;
    if (type == poplar::FLOAT || type == poplar::HALF) {
      found = graph_.addConstant(type, {}, static_cast<float>(n.real()), {debug_, "number"});
    } else if (type == poplar::BOOL) {
      found = graph_.addConstant(type, {}, n.whole() != 0, {debug_, "number"});
    } else if (type == poplar::UNSIGNED_INT) {
      found = graph_.addConstant(type, {}, static_cast<unsigned>(n.whole()), {debug_, "number"});
    } else {
      found = graph_.addConstant(type, {}, static_cast<int>(n.whole()), {debug_, "number"});
    }
    graph_.setTileMapping(found, 0);
    return found;
  }

  poplar::Tensor tensor(const char *name, const value &a, const poplar::Type &type) {
    if (a.is_number()) return constant(a, type);
    /* What is converted to another type than it is computed in wraps or saturates first. */
    const value converted = cast(type, a);
    return mapped(name, converted.expression(computed(converted.type())), type);
  }

  /* The tensor of a value in the type it is computed in: one that is there, where it is one. */
  poplar::Tensor computed_tensor(const char *name, const value &a) {
    if (a.is_number()) return constant(a, computed(a.type()));
    const node_ptr e = a.expression(computed(a.type()));
    return e->what == node::kind::tensor ? e->tensor : mapped(name, e, e->type);
  }

  /* The same, or one of half where the value is that alone. */
  poplar::Tensor factor_tensor(const char *name, const value &a) {
    if (!a.is_number() && !a.is_absent() && a.type() == poplar::FLOAT) {
      const node_ptr e = a.expression(poplar::FLOAT);
      if (e->what == node::kind::cast && e->parts[0]->what == node::kind::tensor && e->parts[0]->type == poplar::HALF) {
        return e->parts[0]->tensor;
      }
    }
    return computed_tensor(name, a);
  }

  /* The value of a tensor of elements in the type that they are computed in. */
  static value typed(const poplar::Tensor &found, const poplar::Type &type) {
    const value whole(found);
    return value(whole.expression(computed(type)), type);
  }

  /* The same with memory of its own. */
  poplar::Tensor spread(const char *name, const poplar::Tensor &of, const shape &sizes) {
    if (of.shape() == sizes && !of.containsConstant()) return of;
    const poplar::Tensor found = variable(of.elementType(), sizes, name);
    if (points(sizes) > 0) prog_.add(poplar::program::Copy(repeated(of, sizes), found, false, {debug_, name}));
    return found;
  }

  /* ---- reductions ---- */

  static popops::Operation operation(reduction kind) {
    switch (kind) {
      case reduction::sum: return popops::Operation::ADD;
      case reduction::prod: return popops::Operation::MUL;
      case reduction::max: return popops::Operation::MAX;
      case reduction::min: return popops::Operation::MIN;
      case reduction::any: return popops::Operation::LOGICAL_OR;
      default: return popops::Operation::LOGICAL_AND;
    }
  }

  /* What is left of nothing; the greatest and the least of it are asked for by no point. */
  static value nothing(reduction kind, const poplar::Type &type) {
    if (kind == reduction::any || kind == reduction::all) return value(kind == reduction::all);
    if (kind == reduction::sum || kind == reduction::prod) return value(kind == reduction::prod ? 1 : 0).as(type);
    const bool least = kind == reduction::max;
    if (type == poplar::FLOAT) return value(std::numeric_limits<float>::infinity() * (least ? -1.0f : 1.0f)).as(type);
    return value(least ? limits_of(type).first : limits_of(type).second).as(type);
  }

  poplar::Tensor reduced_tensor(const char *name, reduction kind, const poplar::Tensor &of, const std::vector<std::size_t> &dims,
                                const shape &to) {
    /* Sums and products of half are taken in float; the greatest of half is one. */
    const bool adds = kind == reduction::sum || kind == reduction::prod;
    const poplar::Type type = adds ? computed(of.elementType()) : of.elementType();
    return popops::reduce(graph_, of, type, dims, popops::ReduceParams(operation(kind)), prog_, {debug_, name}).reshape(to);
  }

  value reduced(const char *name, reduction kind, const value &a, const shape &sizes, const shape &to) {
    shape from = to;
    std::vector<std::size_t> dims;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i] == 1 && sizes[i] != 1) {
        dims.push_back(i);
        from[i] = sizes[i];
      }
    }
    if (dims.empty()) return keep(name, a);
    const poplar::Type in = computed(a.type());
    if (points(from) == 0) return nothing(kind, in);
    poplar::Tensor whole = ranked(factor_tensor(name, a), from.size());
    /* Along the axes that stay the value may have size 1. */
    shape wanted = whole.shape(), left = wanted;
    for (const std::size_t i : dims) {
      wanted[i] = from[i];
      left[i] = 1;
    }
    whole = repeated(whole, wanted);
    const value found(reduced_tensor(name, kind, whole, dims, left));
    /* Sums of narrow integers are not cut back to their type. */
    const bool adds = kind == reduction::sum || kind == reduction::prod;
    const value typed_found(found.expression(in), adds ? in : a.type());
    if (in != poplar::FLOAT || (kind != reduction::max && kind != reduction::min)) return typed_found;
    /* popops' maximum leaves NaN out. */
    const value unordered(value(whole) != value(whole));
    const poplar::Tensor any = reduced_tensor(name, reduction::any, computed_tensor(name, unordered), dims, left);
    return select(value(any), std::numeric_limits<float>::quiet_NaN(), typed_found);
  }

  /* ---- products ---- */

  /* Every axis is one of these: along both factors and the result, along one factor and the result, or summed over. */
  value multiplied(const char *name, poplar::Tensor left, poplar::Tensor right, const shape &sizes,
                   const std::vector<bool> &stays) {
    if (left.elementType() != right.elementType()) {
      left = in_float(name, left);
      right = in_float(name, right);
    }
    const auto rank = static_cast<unsigned>(sizes.size());
    left = ranked(left, rank);
    right = ranked(right, rank);
    std::vector<unsigned> both, rows, columns, summed;
    shape result(rank, 1);
    for (unsigned i = 0; i < rank; ++i) {
      const bool in_left = left.dim(i) == sizes[i] && sizes[i] != 1, in_right = right.dim(i) == sizes[i] && sizes[i] != 1;
      if (!stays[i]) {
        summed.push_back(i);
        if (!in_left) left = left.broadcast(static_cast<unsigned>(sizes[i]), i);
        if (!in_right) right = right.broadcast(static_cast<unsigned>(sizes[i]), i);
        continue;
      }
      if (in_left || in_right) result[i] = sizes[i];
      (in_left && in_right ? both : in_right ? columns : rows).push_back(i);
    }
    const auto count = [&](const std::vector<unsigned> &axes_, const shape &of) {
      std::size_t product = 1;
      for (const unsigned i : axes_) product *= of[i];
      return product;
    };
    const std::size_t groups = count(both, result), m = count(rows, result), n = count(columns, result), k = count(summed, sizes);
    if (groups * m * n == 0) return value(variable(poplar::FLOAT, result, name));
    if (k == 0) return 0.0f;
    const auto ordered = [](const poplar::Tensor &t, std::initializer_list<const std::vector<unsigned> *> parts, const shape &to) {
      std::vector<unsigned> order;
      for (const auto *part : parts) order.insert(order.end(), part->begin(), part->end());
      return t.dimShuffle(order).reshape(to);
    };
    const poplar::Tensor a = ordered(left, {&both, &rows, &summed, &columns}, {groups, m, k});
    const poplar::Tensor b = ordered(right, {&both, &summed, &columns, &rows}, {groups, k, n});
    const poplar::DebugContext debug(debug_, name);
    poplar::Tensor c = groups == 1 ? poplin::matMul(graph_, a.reshape({m, k}), b.reshape({k, n}), prog_, poplar::FLOAT, debug)
                                   : poplin::matMulGrouped(graph_, a, b, prog_, poplar::FLOAT, debug);
    /* Back to the order of the loops, with the axes that were summed over at the end. */
    shape sizes_in_order;
    std::vector<unsigned> places(rank);
    unsigned at = 0;
    for (const auto *part : {&both, &rows, &columns, &summed}) {
      for (const unsigned i : *part) {
        sizes_in_order.push_back(result[i]);
        places[i] = at++;
      }
    }
    return value(c.reshape(sizes_in_order).dimShuffle(places));
  }
};

/* The results that the caller asked for. */
inline std::vector<poplar::Tensor> results(const std::vector<poplar::Tensor> &all, const std::vector<bool> &wanted) {
  std::vector<poplar::Tensor> found(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!wanted[i]) continue;
    if (!all[i].valid()) throw poplar::poplar_error("output " + std::to_string(i) + " needs an operand that is absent");
    found[i] = all[i];
  }
  return found;
}

/* The element type of the first tensor that is given, FLOAT where none is. */
inline poplar::Type type_of(std::initializer_list<const poplar::Tensor *> tensors) {
  for (const poplar::Tensor *t : tensors) {
    if (t->valid()) return t->elementType();
  }
  return poplar::FLOAT;
}

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_BODY_H
