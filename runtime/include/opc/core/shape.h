/* Checks the tensors of a call against an op's signature and binds its dimensions, axis groups and types.
 *
 * Generated code drives a `matcher` step by step and stops at the first step that returns false; the matcher has then written the
 * message and `code` says what to return. Nothing here reads tensor data or allocates memory.
 */
#ifndef OPC_CORE_SHAPE_H
#define OPC_CORE_SHAPE_H

#include <string.h>

#include "opc/core/dims.h"

/* Where the tensors of a call lie; a file whose calls are for a GPU says so before its first header. */
#if defined(OPC_ON_GPU)
#define OPC_TENSOR_DEVICE kDLCUDA
#define OPC_TENSOR_PLACE "the GPU's memory"
#else
#define OPC_TENSOR_DEVICE kDLCPU
#define OPC_TENSOR_PLACE "the CPU's memory"
#endif

namespace opc {
#if defined(OPC_ON_GPU)
inline namespace on_gpu {
#endif

/* Starts the type of an output: rank 0 so far. */
static inline void start_type(opc_tensor_type &type, dtype element) {
  set_type(type, element);
  type.ndim = 0;
}

/* A set of element types. */
template <typename... Types>
static constexpr uint32_t one_of(Types... types) {
  const dtype members[] = {types...};
  uint32_t set = 0;
  for (dtype member : members) set |= 1u << member;
  return set;
}

/* Steps through a call's tensors. See the file's comment. */
class matcher {
 public:
  int32_t code = OPC_OK;

  matcher(const char *op, const opc_context *context) : op_(op), context_(context) {}

  /* Refuses the call with a printf-style message after the op's name; false. */
  __attribute__((cold, noinline, format(printf, 2, 3))) bool refuse(const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    code = fail(context_, OPC_INVALID_ARGUMENT, "%s: %s", op_, message);
    return false;
  }

  bool given(const char *what, const void *pointer) { return pointer != nullptr || refuse("%s must be given", what); }

  /* ---- types ---- */

  /* The tensor's dtype is one of `allowed`, and binds the type variable or agrees with it. */
  bool bind(type &variable, const char *name, uint32_t allowed, const char *operand, dtype element) {
    if (element == dtype_unknown || (allowed >> element & 1) == 0) return refuse_type(name, allowed, operand, element);
    if (variable.element == dtype_unknown) {
      variable.element = element;
      variable.origin = operand;
      return true;
    }
    if (variable.element == element) return true;
    return refuse("%s is %s in %s, but %s in %s", name, dtype_name(variable.element), variable.origin, dtype_name(element), operand);
  }

  /* The tensor's dtype is `expected`; unknown, the accumulator of a type nothing bound, admits any. */
  bool has_type(dtype expected, const char *operand, const DLTensor &tensor) {
    const dtype element = dtype_of(tensor);
    if (element == expected || expected == dtype_unknown) return true;
    return refuse("%s has dtype %s, but must have %s", operand, dtype_name(element), dtype_name(expected));
  }

  /* ---- attributes ---- */

  bool choice(const char *attribute, int64_t position, int64_t count, const char *choices) {
    if (0 <= position && position < count) return true;
    return refuse("%s = %lld is not one of %s", attribute, static_cast<long long>(position), choices);
  }

  bool list(const char *attribute, int64_t length, const void *elements) {
    if (length == 0 || (length > 0 && elements != nullptr)) return true;
    return refuse("%s is a list of length %lld", attribute, static_cast<long long>(length));
  }

  /* ---- inputs, axis by axis ---- */

  /* Starts matching an input, which is there, that has `fixed` axes, or at least as many when it has groups. */
  bool input(const char *name, const DLTensor *tensor, int32_t fixed, bool has_groups) {
    name_ = name;
    shape_ = tensor->shape;
    rank_ = tensor->ndim;
    at_ = 0;
    if (rank_ < 0 || rank_ > OPC_MAX_RANK) {
      return refuse("%s has %d axes, but at most %d are possible", name, static_cast<int>(rank_), static_cast<int>(OPC_MAX_RANK));
    }
    if (rank_ > 0 && shape_ == nullptr) return refuse("%s has axes, but no shape", name);
    if (tensor->device.device_type != OPC_TENSOR_DEVICE) return refuse("%s is not in " OPC_TENSOR_PLACE, name);
    for (int32_t i = 0; i < rank_; ++i) {
      if (shape_[i] < 0) return refuse("%s has shape %s", name, shape_text(shape_, rank_).text);
    }
    if (rank_ == fixed || (has_groups && rank_ > fixed)) return true;
    return refuse("%s must have %s%d %s, but has shape %s", name, has_groups ? "at least " : "", static_cast<int>(fixed),
                  fixed == 1 ? "axis" : "axes", shape_text(shape_, rank_).text);
  }

  /* Counts an axis attribute from the front, once; it lies between `first` axes in front and `last` behind it. Where it `adds` an axis
   * to those of the input, this one is counted too. */
  bool place(int64_t &axis, const char *attribute, int64_t given, int32_t first, int32_t last, bool adds = false) {
    if (axis >= 0) return true;
    const int64_t rank = rank_ + (adds ? 1 : 0), high = rank - last - 1;
    axis = given < 0 ? given + rank : given;
    if (first <= axis && axis <= high) return true;
    return refuse_place(attribute, given, name_, rank, first == 0 && last == 0 ? -rank : first, high, adds);
  }

  /* Counts listed axes from the front, once, among `rank` of an operand; none listed are all of them. */
  bool list(listed_axes &axes, const char *attribute, const int64_t *given, int64_t length, const char *operand, int64_t rank) {
    if (axes.rank >= 0) return true;
    if (rank > OPC_MAX_RANK) return refuse_rank();
    axes.rank = static_cast<int32_t>(rank);
    if (length == 0) axes.bits = (uint64_t{1} << rank) - 1;
    for (int64_t i = 0; i < length; ++i) {
      if (given[i] < -rank || given[i] >= rank) return refuse_listed(attribute, given, length, operand, rank);
    }
    for (int64_t i = 0; i < length; ++i) {
      const uint64_t bit = uint64_t{1} << (given[i] < 0 ? given[i] + rank : given[i]);
      if ((axes.bits & bit) != 0) {
        return refuse("%s = %s names an axis of %s twice", attribute, shape_text(given, length).text, operand);
      }
      axes.bits |= bit;
    }
    return true;
  }

  /* As many axes are listed as a group has. */
  bool lists(const listed_axes &axes, const char *attribute, const char *operand, const char *name, int32_t rank) {
    int32_t count = 0;
    for (int32_t a = 0; a < axes.rank; ++a) count += axes.has(a);
    if (count == rank) return true;
    return refuse("%s lists %d %s of %s, but %s has %d", attribute, static_cast<int>(count), count == 1 ? "axis" : "axes", operand, name,
                  static_cast<int>(rank));
  }

  /* The same of a permutation, which lists all axes; none listed are all in reverse. */
  bool permute(listed_axes &axes, const char *attribute, const int64_t *given, int64_t length, const char *operand, int64_t rank) {
    if (axes.rank >= 0) return has_rank(axes, operand, rank);
    if (!list(axes, attribute, given, length, operand, rank)) return false;
    if (length > 0 && length != rank) {
      return refuse("%s = %s does not name all %lld axes of %s", attribute, shape_text(given, length).text, static_cast<long long>(rank),
                    operand);
    }
    axes.count = axes.rank;
    for (int32_t i = 0; i < axes.count; ++i) {
      const int64_t axis = length == 0 ? rank - 1 - i : given[i] < 0 ? given[i] + rank : given[i];
      axes.placed[i] = static_cast<int8_t>(axis);
    }
    return true;
  }

  /* Counts an axis that an attribute places from the front, once, among `rank` of an operand; `last` is the last of such attributes. */
  bool place(listed_axes &axes, int32_t slot, const char *attribute, int64_t given, const char *operand, int64_t rank, bool last) {
    if (axes.rank >= 0) return has_rank(axes, operand, rank);
    if (rank > OPC_MAX_RANK) return refuse_rank();
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) return refuse_place(attribute, given, operand, rank, -rank, rank - 1);
    const uint64_t bit = uint64_t{1} << axis;
    if ((axes.bits & bit) != 0) {
      return refuse("%s = %lld is an axis of %s that another attribute places", attribute, static_cast<long long>(given), operand);
    }
    axes.bits |= bit;
    axes.placed[slot] = static_cast<int8_t>(axis);
    axes.count = slot + 1;
    if (last) axes.rank = static_cast<int32_t>(rank);
    return true;
  }

  /* The axis that an attribute places binds a dimension, or equals it. */
  bool next(dim &bound, const char *name, const listed_axes &axes, int32_t slot) {
    at_ = axes.placed[slot];
    return next(bound, name);
  }

  /* The axes that are listed, or the others, bind a group, or equal it. */
  bool next(group &bound, const char *name, const listed_axes &axes, bool listed) {
    int64_t sizes[OPC_MAX_RANK];
    int32_t count = 0;
    for (int32_t n = 0; n < rank_; ++n) {
      const int32_t a = listed && axes.count == rank_ ? axes.placed[n] : n;
      if (axes.has(a) == listed) sizes[count++] = shape_[a];
    }
    return bind(bound, name, sizes, count);
  }

  /* The same of the others, where those that are listed have size 1. */
  bool next_around(group &bound, const char *name, const listed_axes &axes) {
    for (int32_t a = 0; a < rank_; ++a) {
      if (axes.has(a) && shape_[a] != 1) {
        return refuse("axis %d of %s must have size 1, but has %lld", static_cast<int>(a), name_,
                      static_cast<long long>(shape_[a]));
      }
    }
    return next(bound, name, axes, false);
  }

  /* The next axis binds a dimension, or equals it. */
  bool next(dim &bound, const char *name) {
    const int64_t size = shape_[at_++];
    if (bound.size < 0) {
      bound.size = size;
      bound.origin = name_;
      return true;
    }
    if (bound.size == size) return true;
    return refuse("%s is %lld in %s, but %lld in %s", name, static_cast<long long>(bound.size), bound.origin,
                  static_cast<long long>(size), name_);
  }

  /* The next axes, `length` of them, bind a group, or equal it. */
  bool next(group &bound, const char *name, int64_t length) {
    const int64_t *sizes = shape_ + at_;
    if (length < 0) {
      return refuse("%s is %s in %s, but fewer axes in %s", name, shape_text(bound.size, bound.rank).text, bound.origin, name_);
    }
    at_ += static_cast<int32_t>(length);
    return bind(bound, name, sizes, length);
  }

  /* Sizes bind a group, or equal it. */
  bool bind(group &bound, const char *name, const int64_t *sizes, int64_t length) {
    if (bound.rank < 0) {
      bound.rank = static_cast<int32_t>(length);
      bound.origin = name_;
      for (int32_t i = 0; i < bound.rank; ++i) bound.size[i] = sizes[i];
      return true;
    }
    bool equal = bound.rank == length;
    for (int32_t i = 0; equal && i < bound.rank; ++i) equal = bound.size[i] == sizes[i];
    if (equal) return true;
    const shape_text before(bound.size, bound.rank);
    return refuse("%s is %s in %s, but %s in %s", name, before.text, bound.origin, shape_text(sizes, length).text, name_);
  }

  /* Passes over an axis whose size a later `has_size` compares. */
  bool skip() {
    ++at_;
    return true;
  }

  /* How many axes a group takes, always leaving the last `after`: all of them; those up to `before` axes before `axis`; as many as
   * it was bound to. */
  int64_t rest(int32_t after) const { return rank_ - after - at_; }
  /* The same, of which the groups behind take so many. */
  int64_t rest(int32_t after, int32_t behind) const { return rest(after) > behind ? rest(after) - behind : 0; }
  int64_t up_to(int64_t axis, int32_t before, int32_t after) const {
    const int64_t stop = axis - before;
    return (stop < rank_ - after ? stop : rank_ - after) - at_;
  }
  int64_t same(const group &bound, int32_t after) const { return bound.rank < rest(after) ? bound.rank : rest(after); }

  /* ---- sizes ---- */

  /* Binds `result` to what the `sources` that are bound broadcast to; bound already, each of them must expand to it. */
  bool broadcast(group &result, const group *const *sources, int32_t count) {
    const bool given = result.rank >= 0;
    for (int32_t s = 0; s < count; ++s) {
      const group &source = *sources[s];
      if (source.rank < 0) continue;
      if (result.rank < 0) result.rank = 0;
      const int32_t rank = result.rank > source.rank ? result.rank : source.rank;
      int64_t merged[OPC_MAX_RANK];
      for (int32_t i = 1; i <= rank; ++i) {
        const int64_t a = i <= result.rank ? result.size[result.rank - i] : 1;
        const int64_t b = i <= source.rank ? source.size[source.rank - i] : 1;
        if ((a != b && a != 1 && b != 1) || (given && (i > result.rank || (a == 1 && b != 1)))) {
          return refuse_broadcast(result, given, sources, s);
        }
        merged[rank - i] = a == 1 ? b : a;
      }
      result.rank = rank;
      for (int32_t i = 0; i < rank; ++i) result.size[i] = merged[i];
    }
    return true;
  }

  /* The derived size `name = text` is neither negative nor beyond 64 bits. */
  bool derive(dim &derived, const char *name, const char *text, integer value) {
    derived.size = value.value;
    derived.origin = text;
    if (value.fault == integer::none && value.fits() && value.value >= 0) return true;
    if (value.fault == integer::division) return refuse("%s = %s divides by zero", name, text);
    if (value.fault == integer::overflow || !value.fits()) return refuse("%s = %s is beyond 64 bits", name, text);
    return refuse("%s = %s would be %lld", name, text, static_cast<long long>(value.value));
  }

  /* An axis of an input has the size `text`; `axis` counts from the end when negative. */
  bool has_size(const char *operand, const DLTensor &tensor, int32_t axis, const char *text, integer value) {
    const int32_t at = axis < 0 ? axis + tensor.ndim : axis;
    char name[128];
    if (value.fault != integer::none || !value.fits() || value.value < 0) {
      snprintf(name, sizeof name, "axis %d of %s", static_cast<int>(at), operand);
      dim expected;
      return derive(expected, name, text, value);
    }
    if (tensor.shape[at] == value.value) return true;
    snprintf(name, sizeof name, "%lld", static_cast<long long>(value.value));
    const bool number = strcmp(name, text) == 0;
    return refuse("axis %d of %s must have size %s%s%s, but has %lld", static_cast<int>(at), operand, text, number ? "" : " = ",
                  number ? "" : name, static_cast<long long>(tensor.shape[at]));
  }

  /* ---- outputs ---- */

  /* Adds an axis to an output's shape. */
  bool append(opc_tensor_type &type, const char *name, const char *text, integer value) {
    dim size;
    if (!derive(size, name, text, value)) return false;
    if (type.ndim == OPC_MAX_RANK) return refuse_rank();
    type.shape[type.ndim++] = size.size;
    return true;
  }
  bool append(opc_tensor_type &type, const dim &size) {
    if (type.ndim == OPC_MAX_RANK) return refuse_rank();
    type.shape[type.ndim++] = size.size;
    return true;
  }
  bool append(opc_tensor_type &type, const group &axes) {
    if (type.ndim + axes.rank > OPC_MAX_RANK) return refuse_rank();
    for (int32_t i = 0; i < axes.rank; ++i) type.shape[type.ndim++] = axes.size[i];
    return true;
  }

  /* Adds the axes of two groups, those of the second at the places that are listed. */
  bool append(opc_tensor_type &type, const group &rest, const group &own, const listed_axes &axes) {
    if (type.ndim + rest.rank + own.rank > OPC_MAX_RANK) return refuse_rank();
    int32_t from_rest = 0, from_own = 0;
    for (int32_t a = 0; a < rest.rank + own.rank; ++a) {
      type.shape[type.ndim++] = axes.has(a) ? own.size[from_own++] : rest.size[from_rest++];
    }
    return true;
  }
  /* Gives the axis of an output that an attribute places its size. */
  bool put(opc_tensor_type &type, const listed_axes &axes, int32_t slot, const dim &size) {
    type.shape[axes.placed[slot]] = size.size;
    return true;
  }
  /* Adds the axes of a group, each where a permutation has it. */
  bool append_permuted(opc_tensor_type &type, const group &own, const listed_axes &axes) {
    for (int32_t i = 0; i < own.rank; ++i) type.shape[axes.placed[i]] = own.size[i];
    type.ndim = own.rank;
    return true;
  }
  /* Adds the axes of a group, with an axis of size 1 at each place that is listed. */
  bool append_around(opc_tensor_type &type, const group &rest, const listed_axes &axes) {
    if (axes.rank > OPC_MAX_RANK) return refuse_rank();
    int32_t from_rest = 0;
    for (int32_t a = 0; a < axes.rank; ++a) type.shape[type.ndim++] = axes.has(a) ? 1 : rest.size[from_rest++];
    return true;
  }

  /* The output is there if it must be, and has the inferred dtype and shape, contiguous, in the CPU's memory. */
  bool output(const char *name, const DLTensor *tensor, const opc_tensor_type &type, bool optional) {
    if (tensor == nullptr) return optional || refuse("the output %s must be given", name);
    if (type.ndim < 0) return refuse("the output %s can't be computed: nothing that was given determines its shape", name);
    const dtype element = dtype_of(*tensor);
    if (element != dtype_of(type.dtype)) {
      return refuse("the output %s has dtype %s, but must have %s", name, dtype_name(element), dtype_name(dtype_of(type.dtype)));
    }
    if (tensor->device.device_type != OPC_TENSOR_DEVICE) return refuse("the output %s is not in " OPC_TENSOR_PLACE, name);
    if (tensor->ndim > 0 && tensor->shape == nullptr) return refuse("the output %s has axes, but no shape", name);
    bool fits = tensor->ndim == type.ndim;
    for (int32_t i = 0; fits && i < type.ndim; ++i) fits = tensor->shape[i] == type.shape[i];
    if (!fits) {
      const shape_text expected(type.shape, type.ndim);
      return refuse("the output %s has shape %s, but must have %s", name, shape_text(tensor->shape, tensor->ndim).text,
                    expected.text);
    }
    return contiguous(*tensor) || refuse("the output %s must be contiguous", name);
  }

 private:
  const char *op_;
  const opc_context *context_;
  const char *name_ = "";
  const int64_t *shape_ = nullptr;
  int32_t rank_ = 0;
  int32_t at_ = 0;

  __attribute__((cold, noinline)) bool refuse_rank() {
    return refuse("an output would have more than %d axes", static_cast<int>(OPC_MAX_RANK));
  }

  /* Whether an operand has as many axes as the one that has told where they stand. */
  bool has_rank(const listed_axes &axes, const char *operand, int64_t rank) {
    return rank == axes.rank || refuse("%s must have %d %s, but has shape %s", operand, static_cast<int>(axes.rank),
                                       axes.rank == 1 ? "axis" : "axes", shape_text(shape_, rank_).text);
  }

  __attribute__((cold, noinline)) bool refuse_place(const char *attribute, int64_t given, const char *operand, int64_t rank, int64_t low,
                                                    int64_t high, bool adds = false) {
    const int64_t own = rank - (adds ? 1 : 0);
    return refuse("%s = %lld is out of range: %s has %lld %s%s, so it must be from %lld to %lld", attribute,
                  static_cast<long long>(given), operand, static_cast<long long>(own), own == 1 ? "axis" : "axes",
                  adds ? " beside the new one" : "", static_cast<long long>(low), static_cast<long long>(high));
  }

  __attribute__((cold, noinline)) bool refuse_listed(const char *attribute, const int64_t *given, int64_t length, const char *operand,
                                                    int64_t rank) {
    char must[96] = "";
    if (rank > 0) {
      snprintf(must, sizeof must, ", so each must be from %lld to %lld", static_cast<long long>(-rank),
               static_cast<long long>(rank - 1));
    }
    return refuse("%s = %s is out of range: %s has %lld %s%s", attribute, shape_text(given, length).text, operand,
                  static_cast<long long>(rank), rank == 1 ? "axis" : "axes", must);
  }

  static bool contiguous(const DLTensor &tensor) {
    if (tensor.strides == nullptr) return true;
    int64_t expected = 1;
    bool dense = true;
    for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
      if (tensor.shape[i] == 0) return true;
      if (tensor.shape[i] != 1) dense = dense && tensor.strides[i] == expected;
      expected *= tensor.shape[i];
    }
    return dense;
  }

  __attribute__((cold, noinline)) bool refuse_type(const char *name, uint32_t allowed, const char *operand, dtype element) {
    char names[512];
    size_t at = 0;
    for (int32_t i = 0; i < dtype_count; ++i) {
      if (allowed >> i & 1) {
        at += static_cast<size_t>(
            snprintf(names + at, sizeof names - at, "%s%s", at > 0 ? ", " : "", dtype_name(static_cast<dtype>(i))));
      }
    }
    const char *one = element == dtype_unknown ? "a " : "";
    return refuse("%s has %sdtype %s, but %s is one of %s", operand, one, dtype_name(element), name, names);
  }

  __attribute__((cold, noinline)) bool refuse_broadcast(const group &result, bool given, const group *const *sources, int32_t s) {
    char origins[512] = "";
    size_t at = 0;
    for (int32_t i = 0; i < s && !given && at + 1 < sizeof origins; ++i) {
      if (sources[i]->rank < 0) continue;
      const int written = snprintf(origins + at, sizeof origins - at, "%s%s", at > 0 ? ", " : "", sources[i]->origin);
      at += static_cast<size_t>(written);
    }
    const shape_text other(result.size, result.rank);
    return refuse("%s %s does not %s %s of %s", sources[s]->origin, shape_text(sources[s]->size, sources[s]->rank).text,
                  given ? "expand to" : "broadcast with", other.text, given ? result.origin : origins);
  }
};

#if defined(OPC_ON_GPU)
}  // namespace on_gpu
#endif
}  // namespace opc
#endif  // OPC_CORE_SHAPE_H
