/* Sizes of a TensorRT plugin's outputs as expressions over those of its inputs.
 *
 * `ShapeBuilder` is driven by generated code. A size is a number or one of TensorRT's expressions; numbers
 * are computed here. What depends on sizes, such as whether two of them are equal, is checked where they are numbers: else the kernel
 * checks them when it is called.
 */
#ifndef OPC_ADAPTERS_TENSORRT_SHAPES_H
#define OPC_ADAPTERS_TENSORRT_SHAPES_H

#include <map>
#include <string>
#include <vector>

#include "opc/adapters/tensorrt_messages.h"
#include "opc/adapters/tensorrt_op.h"

namespace opc {
namespace trt {

using Sizes = std::vector<Size>;

/* The sizes of TensorRT's tensors, as expressions or as numbers. */
inline std::vector<Sizes> sizes_of(const nvinfer1::DimsExprs *inputs, int32_t count) {
  std::vector<Sizes> found(static_cast<size_t>(count > 0 ? count : 0));
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t k = 0; k < inputs[i].nbDims; ++k) {
      const nvinfer1::IDimensionExpr *e = inputs[i].d[k];
      found[static_cast<size_t>(i)].push_back(e->isConstant() ? Size{nullptr, e->getConstantValue()} : Size{e, 0});
    }
  }
  return found;
}

class ShapeBuilder : public Shapes {
 public:
  /* `inputs` has the sizes of each input, null for one that is absent. Without a builder all sizes are numbers. */
  ShapeBuilder(const char *op, const Operand *operands, const Sizes *const *inputs, nvinfer1::IExprBuilder *builder)
      : op_(op), operands_(operands), inputs_(inputs), builder_(builder) {}

  bool ok = true;
  std::vector<Sizes> outputs;

  /* ---- inputs, axis by axis; steps of an absent one do nothing ---- */

  void operand(int32_t index, int32_t fixed, bool at_least) override {
    sizes_ = inputs_[index];
    name_ = operands_[index].name;
    at_ = 0;
    if (sizes_ == nullptr || rank() == fixed || (at_least && rank() > fixed)) return;
    fail("%s must have %s%d axes, but has %d", name_, at_least ? "at least " : "", static_cast<int>(fixed), static_cast<int>(rank()));
  }
  void place(const char *axis, int64_t given, int32_t first, int32_t last, bool adds) override {
    if (sizes_ == nullptr || axes_.count(axis) != 0) return;
    const int64_t whole = rank() + (adds ? 1 : 0), at = given < 0 ? given + whole : given;
    axes_[axis] = at;
    if (at < first || at >= whole - last) {
      const bool any = first == 0 && last == 0;
      fail("%s = %lld is out of range: %s has %d %s%s, so it must be from %lld to %lld", axis, static_cast<long long>(given), name_,
           static_cast<int>(rank()), rank() == 1 ? "axis" : "axes", adds ? " beside the new one" : "",
           static_cast<long long>(any ? -whole : first), static_cast<long long>(whole - last - 1));
    }
  }
  void next_dim(const char *name) override {
    if (sizes_ == nullptr || !room(1)) return;
    const Size size = (*sizes_)[static_cast<size_t>(at_++)];
    const auto found = dims_.emplace(name, size);
    if (!found.second) agree(name, found.first->second, size);
  }
  void next_group(const char *name, int64_t length) override {
    if (sizes_ == nullptr || !room(length)) return;
    const Sizes own(sizes_->begin() + at_, sizes_->begin() + at_ + length);
    at_ += length;
    bind(name, own);
  }
  void skip() override { ++at_; }

  /* The axes that an attribute lists, counted from the front by the first input that tells; none listed are all. */
  void list(const char *axes, const int64_t *given, int64_t length) override {
    if (sizes_ == nullptr || listed_.count(axes) != 0) return;
    std::vector<bool> &listed = listed_[axes];
    listed.assign(sizes_->size(), length == 0);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = given[i] < 0 ? given[i] + rank() : given[i];
      if (at < 0 || at >= rank()) {
        fail("%s names axis %lld: %s has %d", axes, static_cast<long long>(given[i]), name_, static_cast<int>(rank()));
        return;
      }
      if (listed[static_cast<size_t>(at)]) fail("%s names an axis of %s twice", axes, name_);
      listed[static_cast<size_t>(at)] = true;
    }
  }
  /* The same of a permutation, which lists all axes; none listed are all in reverse. */
  void permute(const char *axes, const int64_t *given, int64_t length) override {
    if (sizes_ == nullptr || orders_.count(axes) != 0) return;
    list(axes, given, length);
    if (length > 0 && length != rank()) fail("%s does not name all %d axes of %s", axes, static_cast<int>(rank()), name_);
    std::vector<size_t> &order = orders_[axes];
    for (int64_t i = 0; ok && i < rank(); ++i) {
      const int64_t at = length == 0 ? rank() - 1 - i : given[i] < 0 ? given[i] + rank() : given[i];
      order.push_back(static_cast<size_t>(at));
    }
  }
  void next_permuted(const char *name, const char *axes) override {
    const std::vector<size_t> &order = orders_[axes];
    if (sizes_ == nullptr || !ok) return;
    if (order.size() != sizes_->size()) {
      fail("%s must have %d axes", name_, static_cast<int>(order.size()));
      return;
    }
    Sizes own;
    for (const size_t a : order) own.push_back((*sizes_)[a]);
    bind(name, own);
  }
  void next_among(const char *name, const char *axes, bool listed) override {
    if (sizes_ == nullptr) return;
    Sizes own;
    for (size_t a = 0; a < sizes_->size(); ++a) {
      if (is_listed(axes, a) == listed) own.push_back((*sizes_)[a]);
    }
    bind(name, own);
  }
  void next_around(const char *name, const char *axes, bool keeps) override {
    if (keeps) {
      next_among(name, axes, false);
    } else {
      next_group(name, rest(0));
    }
  }

  /* The axes that no attribute places, and one that an attribute does. */
  void next_apart(const char *name, std::initializer_list<const char *> axes) override {
    if (sizes_ == nullptr) return;
    Sizes own;
    for (int64_t a = 0; a < rank(); ++a) {
      bool is_placed = false;
      for (const char *axis : axes) is_placed = is_placed || axes_[axis] == a;
      if (!is_placed) own.push_back((*sizes_)[static_cast<size_t>(a)]);
    }
    if (own.size() + axes.size() != sizes_->size()) fail("an axis of %s is placed twice, or is none of it", name_);
    bind(name, own);
  }
  void next_at(const char *name, const char *axis) override {
    if (sizes_ == nullptr || !ok) return;
    at_ = axes_[axis];
    next_dim(name);
  }

  int64_t rest(int32_t after, std::initializer_list<const char *> groups = {}) const override {
    int64_t left = rank() - after - at_;
    for (const char *name : groups) {
      const auto found = groups_.find(name);
      left -= found == groups_.end() ? 0 : static_cast<int64_t>(found->second.size());
    }
    return groups.size() > 0 && left < 0 ? 0 : left;
  }
  int64_t up_to(const char *axis, int32_t before, int32_t after) const override {
    const auto found = axes_.find(axis);
    const int64_t stop = found == axes_.end() ? 0 : found->second - before;
    return (stop < rank() - after ? stop : rank() - after) - at_;
  }
  int64_t same(const char *name, int32_t after) const override {
    const auto found = groups_.find(name);
    const int64_t bound = found == groups_.end() ? 0 : static_cast<int64_t>(found->second.size());
    return bound < rest(after) ? bound : rest(after);
  }

  /* ---- sizes ---- */

  /* A group is what others broadcast to; where an operand has bound it, they expand to it. */
  void broadcast(const char *name, std::initializer_list<const char *> sources) override {
    if (groups_.count(name) != 0) return;
    Sizes whole;
    bool any = false;
    for (const char *source : sources) {
      const auto found = groups_.find(source);
      if (found == groups_.end()) continue;
      any = true;
      const Sizes &own = found->second;
      if (own.size() > whole.size()) whole.insert(whole.begin(), own.size() - whole.size(), number(1));
      for (size_t i = 1; i <= own.size(); ++i) whole[whole.size() - i] = broadcast_of(whole[whole.size() - i], own[own.size() - i]);
    }
    if (any) groups_.emplace(name, whole);
  }
  void derive(const char *name, Size size) override { dims_.emplace(name, size); }

  Size number(int64_t value) const override { return {nullptr, value}; }
  Size dim(const char *name) override {
    const auto found = dims_.find(name);
    if (found != dims_.end()) return found->second;
    fail("%s is unknown", name);
    return number(0);
  }
  /* The number of points of a group. */
  Size points(const char *name) override {
    Size product = number(1);
    for (const Size &size : group(name)) product = multiply(product, size);
    return product;
  }

  /* ---- arithmetic, rounding to minus infinity ---- */

  Size add(Size a, Size b) override {
    if (b.known() && b.number == 0) return a;
    return operate(nvinfer1::DimensionOperation::kSUM, a, b);
  }
  Size subtract(Size a, Size b) override {
    if (b.known() && b.number == 0) return a;
    return operate(nvinfer1::DimensionOperation::kSUB, a, b);
  }
  Size multiply(Size a, Size b) override {
    if (b.known() && b.number == 1) return a;
    if (a.known() && a.number == 1) return b;
    return operate(nvinfer1::DimensionOperation::kPROD, a, b);
  }
  Size floor_divide(Size a, Size b) override {
    if (b.known() && b.number == 0) {
      fail("%s", "a size divides by zero");
      return a;
    }
    if (b.known() && b.number == 1) return a;
    return operate(nvinfer1::DimensionOperation::kFLOOR_DIV, a, b);
  }
  Size modulo(Size a, Size b) override { return subtract(a, multiply(floor_divide(a, b), b)); }
  Size minimum(Size a, Size b) override { return operate(nvinfer1::DimensionOperation::kMIN, a, b); }

  /* ---- outputs ---- */

  void start() override { outputs.emplace_back(); }
  void append(Size size) override { outputs.back().push_back(size); }
  void append_group(const char *name) override {
    for (const Size &size : group(name)) append(size);
  }
  void append_mixed(const char *rest, const char *own, const char *axes) override { mix(group(rest), group(own), axes); }
  void append_around(const char *rest, const char *axes, bool keeps) override {
    size_t count = 0;
    for (const bool listed : listed_[axes]) count += listed && keeps ? 1 : 0;
    mix(group(rest), Sizes(count, number(1)), axes);
  }
  void append_permuted(const char *name, const char *axes) override {
    const std::vector<size_t> &order = orders_[axes];
    const Sizes &own = group(name);
    Sizes &made = outputs.back();
    made.resize(own.size());
    for (size_t i = 0; ok && i < order.size(); ++i) made[order[i]] = own[i];
  }
  void append_apart(const char *rest, std::initializer_list<const char *> axes, std::initializer_list<Size> sizes) override {
    Sizes made = group(rest);
    const int64_t rank = static_cast<int64_t>(made.size() + sizes.size());
    size_t from_rest = 0;
    for (int64_t a = 0; ok && a < rank; ++a) {
      const Size *placed = nullptr;
      for (size_t n = 0; n < axes.size(); ++n) {
        if (axes_[axes.begin()[n]] == a) placed = sizes.begin() + n;
      }
      append(placed != nullptr ? *placed : made[from_rest++]);
    }
  }

  /* A size as TensorRT has it; null where this version can't express it. */
  const nvinfer1::IDimensionExpr *expression(Size size) {
    if (!size.known()) return size.expression;
    using Constant = decltype(builder_->constant(0)->getConstantValue());
    if (static_cast<int64_t>(static_cast<Constant>(size.number)) != size.number) {
      fail("the size %lld is beyond the %d bits of this TensorRT's sizes", static_cast<long long>(size.number),
           static_cast<int>(8 * sizeof(Constant)));
      return nullptr;
    }
    return builder_->constant(static_cast<Constant>(size.number));
  }
  /* The sizes of an output, as TensorRT has them. */
  bool write(int32_t output, nvinfer1::DimsExprs &of) {
    const Sizes &made = outputs[static_cast<size_t>(output)];
    if (made.size() > max_rank) return refuse("%s: an output would have more axes than TensorRT's tensors", op_);
    of.nbDims = static_cast<int32_t>(made.size());
    for (size_t k = 0; k < made.size(); ++k) of.d[k] = expression(made[k]);
    return ok;
  }

 private:
  template <typename... Arguments>
  __attribute__((cold, noinline)) void fail(const char *format, Arguments... arguments) {
    if (ok) ok = refuse((std::string("%s: ") + format).c_str(), op_, arguments...);
  }

  bool is_listed(const char *axes, size_t axis) {
    const std::vector<bool> &listed = listed_[axes];
    return axis < listed.size() && listed[axis];
  }

  void bind(const char *name, const Sizes &own) {
    const auto found = groups_.emplace(name, own);
    if (found.second) return;
    Sizes &bound = found.first->second;
    if (bound.size() != own.size()) {
      fail("%s has %d axes, but %d in %s", name, static_cast<int>(bound.size()), static_cast<int>(own.size()), name_);
      return;
    }
    for (size_t i = 0; i < own.size(); ++i) agree(name, bound[i], own[i]);
  }

  /* Adds the axes of two groups, those of the second where they are listed. */
  void mix(const Sizes &rest, const Sizes &own, const char *axes) {
    size_t from_rest = 0, from_own = 0;
    while (ok && from_rest + from_own < rest.size() + own.size()) {
      const bool listed = own.size() > 0 && is_listed(axes, from_rest + from_own);
      append(listed ? own[from_own++] : rest[from_rest++]);
    }
  }

  int64_t rank() const { return sizes_ == nullptr ? 0 : static_cast<int64_t>(sizes_->size()); }

  bool room(int64_t length) {
    if (ok && (length < 0 || at_ + length > rank())) fail("%s has too few axes", name_);
    return ok;
  }

  /* A size that was bound by an expression is better known from a number. */
  void agree(const char *name, Size &bound, Size size) {
    if (!size.known()) return;
    if (!bound.known()) {
      bound = size;
    } else if (bound.number != size.number) {
      fail("%s is %lld, but %lld in %s", name, static_cast<long long>(bound.number), static_cast<long long>(size.number), name_);
    }
  }

  const Sizes &group(const char *name) {
    const auto found = groups_.find(name);
    if (found != groups_.end()) return found->second;
    fail("%s is unknown", name);
    return none_;
  }

  /* The other where one is 1: a + (a == 1) * (b - a), which is right for sizes of 0 too. */
  Size broadcast_of(Size a, Size b) {
    if (a.known() && (a.number == 1 || (b.known() && a.number == b.number))) return b;
    if (b.known() && b.number == 1) return a;
    if (a.known() && b.known()) {
      fail("sizes %lld and %lld do not broadcast", static_cast<long long>(a.number), static_cast<long long>(b.number));
      return a;
    }
    if (a.known() != b.known()) return a.known() ? a : b; /* a number that is not 1: the other is 1 or the same */
    if (a.expression == b.expression) return a;
    const Size is_one = operate(nvinfer1::DimensionOperation::kEQUAL, a, number(1));
    return add(a, multiply(is_one, subtract(b, a)));
  }

  Size operate(nvinfer1::DimensionOperation operation, Size a, Size b) {
    if (a.known() && b.known()) return computed(operation, a.number, b.number);
    const nvinfer1::IDimensionExpr *first = expression(a), *second = expression(b);
    const nvinfer1::IDimensionExpr *made =
        first == nullptr || second == nullptr ? nullptr : builder_->operation(operation, *first, *second);
    if (made == nullptr) {
      fail("%s", "TensorRT made no expression of a size");
      return number(0);
    }
    return {made, 0};
  }

  Size computed(nvinfer1::DimensionOperation operation, int64_t a, int64_t b) {
    int64_t result = 0;
    bool fits = true;
    switch (operation) {
      case nvinfer1::DimensionOperation::kSUM: fits = !__builtin_add_overflow(a, b, &result); break;
      case nvinfer1::DimensionOperation::kSUB: fits = !__builtin_sub_overflow(a, b, &result); break;
      case nvinfer1::DimensionOperation::kPROD: fits = !__builtin_mul_overflow(a, b, &result); break;
      case nvinfer1::DimensionOperation::kMIN: result = a < b ? a : b; break;
      case nvinfer1::DimensionOperation::kEQUAL: result = a == b; break;
      default: /* a floor division: the divisor is not 0 */
        fits = !(b == -1 && a == INT64_MIN);
        result = fits ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
    }
    if (!fits) fail("%s", "a size is beyond 64 bits");
    return number(result);
  }

  const char *op_;
  const Operand *operands_;
  const Sizes *const *inputs_;
  nvinfer1::IExprBuilder *builder_;
  const Sizes *sizes_ = nullptr;
  const char *name_ = "";
  int64_t at_ = 0;
  std::map<std::string, int64_t> axes_;
  std::map<std::string, std::vector<bool>> listed_;
  std::map<std::string, std::vector<size_t>> orders_;
  std::map<std::string, Size> dims_;
  std::map<std::string, Sizes> groups_;
  const Sizes none_;
};

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_SHAPES_H */
