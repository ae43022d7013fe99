/* What a kernel does with a call as a whole: refusing overlapping memory, and choosing among functions by element type. */
#ifndef OPC_CORE_CALL_H
#define OPC_CORE_CALL_H

#include <stdlib.h>

#include "opc/core/stage.h"
#include "opc/core/workspace.h"

namespace opc {

/* The bytes a tensor's elements lie in: [begin, end), empty for no elements; and why they can't lie there, or NULL. */
struct extent {
  const char *begin;
  const char *end;
  const char *fault;
};

static inline extent extent_of(const DLTensor &tensor) {
  const char *data = data_of(tensor);
  int64_t low = 0;
  int64_t high = 1;
  int64_t contiguous = 1;
  bool beyond = false;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    const int64_t size = tensor.shape[i];
    if (size == 0) return {data, data, nullptr};
    int64_t reach, &end = (tensor.strides != nullptr && tensor.strides[i] < 0) ? low : high;
    beyond |= __builtin_mul_overflow(size - 1, tensor.strides != nullptr ? tensor.strides[i] : contiguous, &reach);
    beyond |= __builtin_add_overflow(end, reach, &end);
    beyond |= __builtin_mul_overflow(contiguous, size, &contiguous);
  }
  const int64_t item = itemsize(tensor.dtype);
  beyond |= __builtin_mul_overflow(low, item, &low);
  beyond |= __builtin_mul_overflow(high, item, &high);
  if (beyond) return {data, data, "has more elements than 64 bits count"};
  if (tensor.data == nullptr) return {data, data, "has elements, but no data"};
  return {data + low, data + high, nullptr};
}

static inline bool overlap(const extent &a, const extent &b) { return a.begin < b.end && b.begin < a.end; }

/* Whether two tensors of one shape and dtype have the same elements in the same memory. */
static inline bool same_memory(const DLTensor &a, const DLTensor &b) {
  const extent ea = extent_of(a);
  const extent eb = extent_of(b);
  if (ea.begin != eb.begin || ea.end != eb.end || a.ndim != b.ndim || a.dtype.bits != b.dtype.bits) return false;
  int64_t contiguous = 1;
  for (int32_t i = a.ndim - 1; i >= 0; --i) {
    if (a.shape[i] != b.shape[i]) return false;
    if (a.shape[i] != 1 && a.strides != nullptr && a.strides[i] != contiguous) return false;
    if (b.shape[i] != 1 && b.strides != nullptr && b.strides[i] != contiguous) return false;
    contiguous *= a.shape[i];
  }
  return true;
}

/* An output that may reuse the memory of an input. */
struct inplace_pair {
  int32_t output;
  int32_t input;
};

/* Refuses tensors whose elements can't be where they are said to be, and outputs that overlap inputs, other than the pairs declared in
 * place, or each other. `names` are the inputs' and then the outputs' names. */
static inline int32_t check_overlap(const char *op, const char *const *names, const DLTensor *const *inputs, int32_t input_count,
                                    DLTensor *const *outputs, int32_t output_count, const inplace_pair *pairs,
                                    int32_t pair_count, const opc_context *context) {
  for (int32_t o = 0; o < output_count; ++o) {
    if (outputs[o] == nullptr) continue;
    const extent written = extent_of(*outputs[o]);
    if (written.fault != nullptr) {
      return fail(context, OPC_INVALID_ARGUMENT, "%s: the output %s %s", op, names[input_count + o], written.fault);
    }
    for (int32_t i = 0; i < input_count; ++i) {
      if (inputs[i] == nullptr) continue;
      const extent read = extent_of(*inputs[i]);
      if (read.fault != nullptr) return fail(context, OPC_INVALID_ARGUMENT, "%s: %s %s", op, names[i], read.fault);
      if (!overlap(written, read)) continue;
      bool allowed = false;
      for (int32_t p = 0; p < pair_count; ++p) {
        allowed = allowed || (pairs[p].output == o && pairs[p].input == i && same_memory(*outputs[o], *inputs[i]));
      }
      if (!allowed) {
        return fail(context, OPC_INVALID_ARGUMENT, "%s: the output %s overlaps the input %s in memory", op,
                    names[input_count + o], names[i]);
      }
    }
    for (int32_t other = 0; other < o; ++other) {
      if (outputs[other] != nullptr && overlap(written, extent_of(*outputs[other]))) {
        return fail(context, OPC_INVALID_ARGUMENT, "%s: the outputs %s and %s overlap in memory", op,
                    names[input_count + other], names[input_count + o]);
      }
    }
  }
  return OPC_OK;
}

/* Whether an output is to be computed: the caller gives it, and it has an element. */
static inline bool wanted(const DLTensor *output) {
  if (output == nullptr) return false;
  for (int32_t i = 0; i < output->ndim; ++i) {
    if (output->shape[i] == 0) return false;
  }
  return true;
}

/* Whether there is nothing to compute: no output that is wanted has an element. */
static inline bool nothing_wanted(DLTensor *const *outputs, int32_t count) {
  for (int32_t o = 0; o < count; ++o) {
    if (wanted(outputs[o])) return false;
  }
  return true;
}

/* The position of an element type's compute type among the compute types that a function is instantiated for. */
template <dtype... Types>
static inline int32_t type_index(dtype element) {
  constexpr dtype types[] = {Types...};
  int32_t index = 0;
  while (types[index] != compute_dtype(element)) ++index;
  return index;
}

/* The position of an element type among the types that a function is instantiated for, which are some compute types and, behind them,
 * those that it converts; of another one that of its compute type. */
template <dtype... Types>
static inline int32_t row_index(dtype element) {
  constexpr dtype types[] = {Types...};
  int32_t index = 0;
  for (const dtype type : types) {
    if (type == element) return index;
    ++index;
  }
  return type_index<Types...>(element);
}

/* The position of an element type among those that a function is instantiated for. */
template <dtype... Types>
static inline int32_t stored_index(dtype element) {
  constexpr dtype types[] = {Types...};
  int32_t index = 0;
  while (types[index] != element) ++index;
  return index;
}

/* A tensor between the stages of a call, contiguous. That of a single number needs no memory of its own. */
struct temporary {
  void *data = nullptr;
  int64_t bytes = 0; /* at `data` */
  int32_t ndim = 0;
  int64_t shape[max_axes];
  int64_t number[1];
  bool lent = false; /* the memory is that of an output */
  temporary() = default;
  temporary(const temporary &) = delete;
  temporary &operator=(const temporary &) = delete;
  ~temporary() { release(); }
  void release() {
    if (data != number && !lent) give_memory(data);
    lent = false;
  }
};

/* Memory that one thread keeps from one block of rows to the next, and what it is laid out for; and whether the elements at `checked` were
 * all finite. */
struct kept_memory {
  void *data = nullptr;
  int64_t layout[4] = {};
  const void *checked = nullptr;
  bool finite = false;
  kept_memory() = default;
  kept_memory(const kept_memory &) = delete;
  kept_memory &operator=(const kept_memory &) = delete;
  ~kept_memory() { give_memory(data); }
};

/* The rows of a block of a slice; `kept` is there for its stages, NULL where there is one block only. At `columns`, where that is not NULL,
 * goes how many of the columns that blocks can do without a block has computed. */
struct row_block {
  int64_t first, count;
  kept_memory *kept;
  int64_t *columns = nullptr;
};

/* A size below zero is none: what looks an element up compares its place with the size that stands here. */
static inline void append_axes(temporary &t, int64_t size) { t.shape[t.ndim++] = size < 0 ? 0 : size; }
static inline void append_axes(temporary &t, const extents &group) {
  for (int32_t i = 0; i < group.rank; ++i) t.shape[t.ndim++] = group.size[i];
}

/* Gives a temporary axes of these sizes and groups. */
template <typename... Sizes>
static inline void describe(temporary &t, const Sizes &...sizes) {
  t.ndim = 0;
  (append_axes(t, sizes), ...);
}

/* Finds the bytes of a contiguous tensor; false when they are beyond 64 bits. One without elements has none. */
static inline bool bytes_of(const int64_t *shape, int32_t ndim, dtype type, int64_t &bytes) {
  bytes = 0;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] <= 0) return true;
  }
  bytes = itemsize(type);
  for (int32_t i = 0; i < ndim; ++i) {
    if (__builtin_mul_overflow(bytes, shape[i], &bytes)) return false;
  }
  return true;
}

/* Gets uninitialised memory, or takes what the temporary has, for a tensor with axes of these sizes and groups; false when there is
 * none. */
template <typename... Sizes>
static inline bool allocate(temporary &t, dtype type, const Sizes &...sizes) {
  describe(t, sizes...);
  int64_t bytes = 0;
  if (!bytes_of(t.shape, t.ndim, type, bytes)) return false;
  if (t.data != nullptr && bytes <= t.bytes) return true;
  t.release();
  t.bytes = bytes;
  t.data = bytes <= int64_t(sizeof(t.number)) ? t.number : take_memory(bytes);
  return t.data != nullptr;
}

/* Takes the memory of an output whose elements are stored as the temporary's are computed, in the same order; else the same as
 * `allocate`. */
template <typename... Sizes>
static inline bool allocate_in(const DLTensor *output, temporary &t, dtype type, const Sizes &...sizes) {
  if (output == nullptr || dtype_of(*output) != type) return allocate(t, type, sizes...);
  int64_t strides[max_axes], contiguous[max_axes];
  find_strides(output->ndim, output->shape, output->strides, strides);
  find_strides(output->ndim, output->shape, nullptr, contiguous);
  for (int32_t i = 0; i < output->ndim; ++i) {
    if (output->shape[i] > 1 && strides[i] != contiguous[i]) return allocate(t, type, sizes...);
  }
  describe(t, sizes...);
  t.data = data_of(*output);
  t.lent = true;
  return true;
}

/* One step of a temporary whose first axis is that of the steps, in its memory. */
struct one_step : temporary {
  one_step(const temporary &whole, dtype type, int64_t step) {
    bytes = itemsize(type);
    for (ndim = 0; ndim < whole.ndim - 1; ++ndim) {
      shape[ndim] = whole.shape[ndim + 1];
      bytes *= shape[ndim];
    }
    data = whole.data == nullptr ? nullptr : static_cast<char *>(whole.data) + step * bytes;
  }
  ~one_step() { data = nullptr; /* it is not freed here */ }
};

/* Adds a temporary to a stage. */
template <typename... Axes>
static inline void add_temporary(stage &s, role what, bool along_row, const temporary &t, dtype computed, Axes... places) {
  const axes list[] = {places..., axes{}};
  operand &o = add_operand(s, what, along_row, static_cast<char *>(t.data), computed, computed);
  place(o, t.ndim, t.shape, nullptr, list, static_cast<int32_t>(sizeof...(places)));
}

template <typename Nest>
static inline void add_temporary(Nest &n, const temporary &t) {
  add_strided(n, static_cast<char *>(t.data), t.ndim, t.shape, nullptr);
}

/* Adds a temporary to a nest over rows, entry e of `axes[e]` axes. */
template <typename Nest>
static inline void add_temporary(Nest &n, const temporary &t, dtype computed, int32_t entries, const int32_t *axes) {
  auto &o = n.operands[n.operand_count++];
  o.data = static_cast<char *>(t.data);
  o.stored = computed;
  o.entries = entries;
  int64_t contiguous = 1;
  for (int32_t e = entries - 1, a = t.ndim; e >= 0; --e) {
    o.size[e] = 1;
    for (int32_t i = 0; i < axes[e]; ++i) o.size[e] *= t.shape[--a];
    o.stride[e] = contiguous;
    contiguous *= o.size[e];
  }
}

}  // namespace opc
#endif  // OPC_CORE_CALL_H
