/* Expressions of values as expressions of popops, with a placeholder for each tensor. */
#ifndef OPC_POPLAR_LOWERING_H
#define OPC_POPLAR_LOWERING_H

#include <poplar/Tensor.hpp>
#include <popops/Expr.hpp>

#include <functional>
#include <map>
#include <vector>

#include "opc/poplar/value.h"

namespace opc {
namespace ipu {

struct lowering {
  /* The tensor of a part of the expression, kept in memory. */
  using keeping = std::function<poplar::Tensor(const node_ptr &)>;

  /* The tensors of the placeholders, in order. */
  std::vector<poplar::Tensor> tensors;

  lowering(const node_ptr &whole, const keeping &keep) : keep_(keep) { visit(whole); }

  /* A part, or the `top` of the expression. */
  pe::Any lower(const node_ptr &e, bool top) {
    if (e->what == node::kind::tensor) return placeholder(e.get(), e->tensor);
    if (!top && uses_[e.get()] > 1 && operations_[e.get()] >= worth_keeping) {
      auto known = kept_.find(e.get());
      if (known == kept_.end()) known = kept_.emplace(e.get(), keep_(e)).first;
      return placeholder(e.get(), known->second);
    }
    switch (e->what) {
      case node::kind::number:
        if (e->type == poplar::FLOAT) return pe::Const(static_cast<float>(e->real));
        if (e->type == poplar::BOOL) return pe::Const(e->whole != 0);
        if (e->type == poplar::UNSIGNED_INT) return pe::Const(static_cast<unsigned>(e->whole));
        return pe::Const(static_cast<int>(e->whole));
      case node::kind::unary:
        return pe::UnaryOp(e->unary, lower(e->parts[0], false));
      case node::kind::binary: {
        const pe::Any a = lower(e->parts[0], false), b = lower(e->parts[1], false);
        return pe::BinaryOp(e->binary, a, b);
      }
      case node::kind::select: {
        const pe::Any a = lower(e->parts[0], false), b = lower(e->parts[1], false), c = lower(e->parts[2], false);
        return pe::Select(a, b, c);
      }
      default:
        return pe::Cast(lower(e->parts[0], false), e->type);
    }
  }

 private:
  /* A part that is used several times is kept in memory where it holds at least so many operations. */
  static constexpr int worth_keeping = 3;

  keeping keep_;
  std::map<const node *, int> uses_, operations_;
  std::map<const node *, poplar::Tensor> kept_;
  std::map<const node *, unsigned> places_;

  /* Counts how often each part is used; the number of operations in one. */
  int visit(const node_ptr &e) {
    if (uses_[e.get()]++ > 0) return operations_[e.get()];
    int found = e->what == node::kind::number || e->what == node::kind::tensor ? 0 : 1;
    for (const node_ptr &part : e->parts) found += visit(part);
    return operations_[e.get()] = found;
  }

  pe::Any placeholder(const node *e, const poplar::Tensor &tensor) {
    const auto known = places_.find(e);
    if (known != places_.end()) return pe::PlaceHolder(known->second);
    tensors.push_back(tensor);
    const unsigned place = static_cast<unsigned>(tensors.size());
    places_.emplace(e, place);
    return pe::PlaceHolder(place);
  }
};

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_LOWERING_H
