/* What a generated PyTorch library is made of: `opc::torch::Call`, which carries one operator call from torch's stack to a kernel and
 * back, and `opc::torch::Library`, which makes the operators known to torch. */
#ifndef OPC_ADAPTERS_TORCH_H
#define OPC_ADAPTERS_TORCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "opc/abi.h"
#include "opc/core/pages.h"
#include "opc/core/tensor.h"
#include "opc/adapters/torch_shim.h"

namespace opc {
namespace torch {

/* The version of torch whose boxing this file follows: 2.10. */
constexpr uint64_t boxing_version = (uint64_t{2} << 56) | (uint64_t{10} << 48);

template <class T>
T unbox(StableIValue value) {
  T result;
  memcpy(&result, &value, sizeof result);  // the low bytes: little endian
  return result;
}

/* A dtype as torch and as kernels number it. */
struct DType {
  int32_t torch;
  opc::dtype element;
};

/* The element type of a torch dtype; dtype_unknown for one that opc does not know (a quantised one, ...). */
inline opc::dtype element_type(int32_t torch_dtype) {
  static const DType table[] = {
#define OPC_ROW(name, c, cpp) {aoti_torch_dtype_##c(), dtype_##name},
      OPC_TORCH_DTYPES(OPC_ROW)
#undef OPC_ROW
      {aoti_torch_dtype_complex64(), dtype_complex64},
      {aoti_torch_dtype_complex128(), dtype_complex128},
  };
  for (const DType &row : table)
    if (row.torch == torch_dtype) return row.element;
  return dtype_unknown;
}

constexpr uint8_t kDLOpaqueHandle = 3;

/* What kernels are told of a torch dtype; of one that no operand may have, its name at most, with which they refuse it. */
inline DLDataType to_dlpack(int32_t torch_dtype) {
  const opc::dtype element = element_type(torch_dtype);
  return element == dtype_unknown ? DLDataType{kDLOpaqueHandle, 0, 1} : row_of(element).dlpack;
}

/* The torch dtype of an output; -1 where torch has none. */
inline int32_t to_torch(DLDataType type) {
  switch (opc::dtype_of(type)) {
#define OPC_CASE(name, c, cpp) \
  case dtype_##name: return aoti_torch_dtype_##c();
    OPC_TORCH_DTYPES(OPC_CASE)
#undef OPC_CASE
    default: return -1;
  }
}

/* A tensor that this call owns a reference to, and the view of it that kernels take; empty for an absent optional one. */
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;
  ~Tensor() {
    if (handle_) aoti_torch_delete_tensor_object(handle_);
  }

  /* Takes over `handle`. Only a tensor that will be written may be asked for its data mutably: that ends sharing on write. */
  void take(AtenTensorHandle handle, bool written) {
    handle_ = handle;
    int64_t ndim = 0;
    int32_t dtype = 0;
    aoti_torch_get_dim(handle, &ndim);
    aoti_torch_get_sizes(handle, &view_.shape);
    aoti_torch_get_strides(handle, &view_.strides);
    aoti_torch_get_dtype(handle, &dtype);
    if (written) {
      torch_get_mutable_data_ptr(handle, &view_.data);
    } else {
      const void *data = nullptr;
      torch_get_const_data_ptr(handle, &data);
      view_.data = const_cast<void *>(data);
    }
    view_.ndim = static_cast<int32_t>(ndim);
    view_.dtype = to_dlpack(dtype);
    view_.device = {kDLCPU, 0};
  }

  /* Becomes a fresh contiguous tensor with the axes `front` and behind them those of `type`; false when torch has no memory. */
  bool allocate(const int64_t *front, int32_t front_count, const opc_tensor_type &type) {
    const int32_t ndim = front_count + type.ndim;
    int64_t elements = 1;
    int64_t stride = 1;
    for (int32_t axis = ndim - 1; axis >= 0; --axis) {
      const int64_t size = axis < front_count ? front[axis] : type.shape[axis - front_count];
      shape_[axis] = size;
      strides_[axis] = stride;
      elements *= size;
      stride *= size > 1 ? size : 1;
    }
    const int32_t device = aoti_torch_device_type_cpu();
    if (aoti_torch_empty_strided(ndim, shape_, strides_, to_torch(type.dtype), device, 0, &handle_) != 0) return false;
    void *data = nullptr;
    torch_get_mutable_data_ptr(handle_, &data);
    opc_advise_huge_pages(data, static_cast<size_t>(elements) * (type.dtype.bits / 8));
    view_ = {data, {kDLCPU, 0}, ndim, type.dtype, shape_, strides_, 0};
    return true;
  }

  /* Gives the reference back to torch; an undefined tensor, None in Python, for an empty one. */
  StableIValue release() {
    if (!handle_) aoti_torch_new_uninitialized_tensor(&handle_);
    StableIValue value = 0;
    memcpy(&value, &handle_, sizeof handle_);
    handle_ = nullptr;
    return value;
  }

  DLTensor *view() { return handle_ ? &view_ : nullptr; }

 private:
  AtenTensorHandle handle_ = nullptr;
  DLTensor view_ = {};
  int64_t shape_[2 * OPC_MAX_RANK]; /* of a tensor that was allocated here */
  int64_t strides_[2 * OPC_MAX_RANK];
};

/* The arguments of a call, taken off torch's stack one after the other.
 *
 * All of them must be taken before anything may fail, since an argument that stays on the stack is never freed. So a bad value
 * is only noted, and `check` raises the first one. */
class Arguments {
 public:
  Arguments(const char *op, StableIValue *stack) : op_(op), next_(stack) { message_[0] = '\0'; }
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;
  ~Arguments() {
    while (kept_) {
      Block *block = kept_;
      kept_ = block->previous;
      free(block);
    }
  }

  double number() { return unbox<double>(*next_++); }
  int64_t integer() { return unbox<int64_t>(*next_++); }
  int32_t boolean() { return unbox<uint8_t>(*next_++) != 0; }

  /* An element type. */
  int64_t dtype(const char *name) {
    const opc::dtype element = element_type(unbox<int32_t>(*next_++));
    const bool known = element >= 0 && element < dtype_count;
    if (!known) note("%s: %s must be a dtype that opc knows", op_, name);
    return known ? element : dtype_unknown;
  }

  const char *text() {
    StringHandle handle = unbox<StringHandle>(*next_++);
    const char *characters = nullptr;
    size_t length = 0;
    torch_string_c_str(handle, &characters);
    torch_string_length(handle, &length);
    char *copy = keep<char>(length + 1);
    memcpy(copy, characters, length);
    copy[length] = '\0';
    torch_delete_string(handle);
    return copy;
  }

  /* The position of a string among the `count` values an attribute admits; `admitted` names them for the message. */
  int64_t choice(const char *name, const char *const *values, int64_t count, const char *admitted) {
    const char *given = text();
    for (int64_t i = 0; i < count; ++i)
      if (strcmp(values[i], given) == 0) return i;
    note("%s: %s = '%s' is not one of %s", op_, name, given, admitted);
    return 0;
  }

  /* The elements of a list, whose length goes to `length`; they live as long as this object. */
  template <class T>
  const T *list(int64_t *length) {
    StableListHandle handle = unbox<StableListHandle>(*next_++);
    size_t size = 0;
    torch_list_size(handle, &size);
    T *elements = keep<T>(size);
    for (size_t i = 0; i < size; ++i) {
      StableIValue item = 0;
      torch_list_get_item(handle, i, &item);
      elements[i] = unbox<T>(item);
    }
    torch_delete_list(handle);
    *length = static_cast<int64_t>(size);
    return elements;
  }

  /* The elements of a list that must have `length` of them. */
  template <class T>
  void list(const char *name, T *elements, int64_t length) {
    int64_t given = 0;
    const T *source = list<T>(&given);
    if (given == length)
      memcpy(elements, source, sizeof(T) * static_cast<size_t>(length));
    else
      note("%s: %s must have %lld elements, but has %lld", op_, name, static_cast<long long>(length),
           static_cast<long long>(given));
  }

  void tensor(Tensor &target, bool written = false) { target.take(unbox<AtenTensorHandle>(*next_++), written); }

  void optional_tensor(Tensor &target) {
    StableIValue *boxed = unbox<StableIValue *>(*next_++);
    if (!boxed) return;
    target.take(unbox<AtenTensorHandle>(*boxed), false);
    ::operator delete(boxed);
  }

 protected:
  template <class... Values>
  void note(const char *format, Values... values) {
    if (!message_[0]) snprintf(message_, sizeof message_, format, values...);
  }

  /* Raises the message that was noted here or that a kernel left, if there is one, as torch's error. */
  void check() {
    if (message_[0]) aoti_torch_check(false, op_, op_, 0, message_);
  }

  const char *op_;
  char message_[512];

 private:
  struct Block {
    Block *previous;
  };

  template <class T>
  T *keep(size_t count) {
    Block *block = static_cast<Block *>(malloc(sizeof(Block) + sizeof(T) * count));
    block->previous = kept_;
    kept_ = block;
    return reinterpret_cast<T *>(block + 1);
  }

  StableIValue *next_;
  Block *kept_ = nullptr;
};

/* Runs a kernel's loop on torch's threads. */
inline void parallel_for(void *, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  constexpr int64_t most_ranges = 64;
  struct Ranges {
    opc_range_body body;
    void *argument;
    int64_t count, length, next;
  } ranges = {body, argument, count, (count + most_ranges - 1) / most_ranges, 0};
  if (ranges.length < grain) ranges.length = grain;
  /* torch gives every thread an equal share. Taking small ranges in turn instead, a thread that was delayed delays no other. */
  torch_parallel_for(
      0, (count + ranges.length - 1) / ranges.length, 1,
      [](int64_t, int64_t, void *data) {
        Ranges *r = static_cast<Ranges *>(data);
        for (;;) {
          const int64_t begin = __atomic_fetch_add(&r->next, r->length, __ATOMIC_RELAXED);
          if (begin >= r->count) return;
          r->body(r->argument, begin, begin + r->length < r->count ? begin + r->length : r->count);
        }
      },
      &ranges);
}

/* One call of an operator with `InputCount` tensors in and `OutputCount` out.
 *
 * Take the arguments in the order of the schema: inputs, then what the operator has of attributes, `output_mask`, `batch_axes`
 * and given outputs; then `run`, then `give`. */
template <int InputCount, int OutputCount>
class Call : public Arguments {
 public:
  Call(const char *op, StableIValue *stack) : Arguments(op, stack) {
    for (bool &wanted : wanted_) wanted = true;
  }

  void input() { tensor(inputs_[taken_++]); }
  void optional_input() { optional_tensor(inputs_[taken_++]); }

  /* Which outputs are wanted: the others are not computed. */
  void output_mask() { list<bool>("output_mask", wanted_, OutputCount); }

  /* How many leading axes of every tensor are batch axes, which the kernel knows nothing of and is called once for each point of. */
  void batch_axes() { batch_axes_ = static_cast<int32_t>(integer()); }

  /* The tensors to write to, instead of fresh ones. */
  void given_outputs() {
    for (Tensor &output : outputs_) tensor(output, true);
    given_ = true;
  }

  template <class Attributes>
  void run(int32_t (*infer)(const DLTensor *const *, const Attributes *, opc_tensor_type *, const opc_context *),
           int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const Attributes *, const opc_context *),
           const Attributes &attributes) {
    check();
    const opc_context context = {parallel_for, nullptr, message_, sizeof message_};
    DLTensor *views[InputCount + OutputCount];
    DLTensor **outputs = views + InputCount;
    for (int i = 0; i < InputCount; ++i) views[i] = inputs_[i].view();
    strip_batch_axes(views, InputCount);
    if (!given_) {
      opc_tensor_type types[OutputCount];
      infer(views, &attributes, types, &context);
      check();
      for (int i = 0; i < OutputCount; ++i)
        if (wanted_[i] && !outputs_[i].allocate(batch_shape_, batch_axes_, types[i]))
          note("%s: torch has no memory for the outputs", op_);
      check();
    }
    for (int i = 0; i < OutputCount; ++i) outputs[i] = outputs_[i].view();
    strip_batch_axes(outputs, OutputCount);
    const int64_t points = batch_points();
    for (int64_t point = 0; point < points; ++point) {
      if (batch_axes_ > 0) move_to(point, views);
      kernel(views, outputs, &attributes, &context);
      check();
    }
  }

  /* Puts the outputs on the stack. */
  void give(StableIValue *stack) {
    for (int i = 0; i < OutputCount; ++i) stack[i] = outputs_[i].release();
  }

 private:
  /* Takes the batch axes off the views and checks that all have the same ones. */
  void strip_batch_axes(DLTensor **views, int count) {
    if (batch_axes_ == 0) return;
    for (int i = 0; i < count; ++i) {
      DLTensor *view = views[i];
      if (!view) continue;
      if (!batch_shape_) batch_shape_ = view->shape;
      if (view->ndim < batch_axes_ || memcmp(view->shape, batch_shape_, sizeof(int64_t) * batch_axes_) != 0)
        note("%s: every tensor must have the same %d batch axes in front", op_, batch_axes_);
      view->ndim -= batch_axes_;
      view->shape += batch_axes_;
      view->strides += batch_axes_;
    }
    check();
  }

  int64_t batch_points() const {
    int64_t points = 1;
    for (int axis = 0; axis < batch_axes_; ++axis) points *= batch_shape_[axis];
    return points;
  }

  /* Moves the data pointers of the views to one point of the batch axes. */
  void move_to(int64_t point, DLTensor **views) {
    for (int i = 0; i < InputCount + OutputCount; ++i) {
      DLTensor *view = views[i];
      if (!view) continue;
      int64_t elements = 0;
      int64_t rest = point;
      for (int axis = batch_axes_ - 1; axis >= 0; --axis) {
        elements += rest % batch_shape_[axis] * view->strides[axis - batch_axes_];
        rest /= batch_shape_[axis];
      }
      view->byte_offset = static_cast<uint64_t>(elements * (view->dtype.bits / 8));
    }
  }

  Tensor inputs_[InputCount];
  Tensor outputs_[OutputCount];
  bool wanted_[OutputCount];
  bool given_ = false;
  int taken_ = 0;
  int32_t batch_axes_ = 0;
  const int64_t *batch_shape_ = nullptr;
};

/* One operator: the schemas that return fresh tensors and that write to given ones, and their functions for the CPU. */
struct Registration {
  const char *schema;
  const char *out_schema;
  opc_torch_function call;
  opc_torch_function write;
};

/* Makes operators known to torch: `name`, to which Python adds kernels for autograd and vmap, `_name`, which has none but the
 * CPU's, and `name.out`. torch keeps the library for the rest of the process, as these functions stay loaded. */
class Library {
 public:
  template <int Count>
  Library(const char *name_space, const char *file, const Registration (&operators)[Count]) {
    bool ok = aoti_torch_library_init_fragment(name_space, file, 0, &schemas_) == 0 &&
              aoti_torch_library_init_impl(name_space, "CPU", file, 0, &kernels_) == 0;
    for (const Registration &op : operators) {
      char raw[4096];
      snprintf(raw, sizeof raw, "_%s", op.schema);
      ok = ok && add(op.schema, op.call) && add(raw, op.call) && add(op.out_schema, op.write);
    }
  }

 private:
  /* Says whether torch took the operator; if not, it has said why on stderr, and loading the package fails for lack of it. */
  bool add(const char *schema, opc_torch_function function) {
    char name[512];
    snprintf(name, sizeof name, "%.*s", static_cast<int>(strcspn(schema, "(")), schema);
    return aoti_torch_library_def(schemas_, schema) == 0 &&
           torch_library_impl(kernels_, name, function, boxing_version) == 0;
  }

  TorchLibraryHandle schemas_ = nullptr;
  TorchLibraryHandle kernels_ = nullptr;
};

}  // namespace torch
}  // namespace opc

#endif /* OPC_ADAPTERS_TORCH_H */
