/* The arguments of an operator call on torch's stack: tensors, numbers, strings and lists, as kernels take them. */
#ifndef OPC_ADAPTERS_TORCH_ARGUMENTS_H
#define OPC_ADAPTERS_TORCH_ARGUMENTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "opc/abi.h"
#include "opc/adapters/blocks.h"
#include "opc/core/pages.h"
#include "opc/core/tensor.h"
#include "opc/adapters/torch_cuda.h"
#include "opc/adapters/torch_shim.h"

namespace opc {
namespace torch {

template <class T>
T unbox(StableIValue value) {
  T result;
  memcpy(&result, &value, sizeof result);  // the low bytes: little endian
  return result;
}

/* Torch's numbers of dtypes, which functions of its own return. */
inline const auto &dtype_numbers() {
  static const dtype_number<int32_t> table[] = {
#define OPC_ROW(name, c, cpp) {dtype_##name, aoti_torch_dtype_##c()},
      OPC_TORCH_DTYPES(OPC_ROW)
#undef OPC_ROW
      {dtype_complex64, aoti_torch_dtype_complex64()},
      {dtype_complex128, aoti_torch_dtype_complex128()},
  };
  return table;
}

/* The element type of a torch dtype; dtype_unknown for one that opc does not know (a quantised one, ...). */
inline opc::dtype element_type(int32_t torch_dtype) { return element_of(dtype_numbers(), torch_dtype); }

/* A torch dtype as kernels see it; one that no operand may have keeps its name at most, with which they refuse it. */
inline DLDataType to_dlpack(int32_t torch_dtype) { return dlpack_of(element_type(torch_dtype)); }

/* The torch dtype of an output; -1 where torch has none. */
inline int32_t to_torch(DLDataType type) { return number_of(dtype_numbers(), opc::dtype_of(type), int32_t{-1}); }

/* A tensor that this call owns a reference to, and the view of it that kernels take; empty for an absent optional one. */
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;
  ~Tensor() { release_handle(); }

  /* Takes over `handle`. Only a tensor that will be written may be asked for its data mutably: that ends sharing on write. Of a call
   * that torch has brought to the CPU's kernels, all tensors are there. */
  void take(AtenTensorHandle handle, bool written, bool cuda) {
    handle_ = handle;
    bool defined = true;
    aoti_torch_is_defined(handle, &defined);
    if (!defined) { /* None in Python, which a kernel refuses by the operand's name */
      release_handle();
      return;
    }
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
    view_.device = cuda ? device_of(handle) : DLDevice{kDLCPU, 0};
  }

  /* Becomes a fresh contiguous tensor on a device with the axes `front` and behind them those of `type`; false when torch has no
   * memory. */
  bool allocate(const DLDevice &device, const int64_t *front, int32_t front_count, const opc_tensor_type &type) {
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
    const bool cuda = device.device_type == kDLCUDA;
    const int32_t kind = cuda ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu();
    if (aoti_torch_empty_strided(ndim, shape_, strides_, to_torch(type.dtype), kind, device.device_id, &handle_) != 0) return false;
    void *data = nullptr;
    torch_get_mutable_data_ptr(handle_, &data);
    if (!cuda) opc_advise_huge_pages(data, static_cast<size_t>(elements) * static_cast<size_t>(itemsize(type.dtype)));
    view_ = {data, device, ndim, type.dtype, shape_, strides_, 0};
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
  void release_handle() {
    if (handle_) aoti_torch_delete_tensor_object(handle_);
    handle_ = nullptr;
  }

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
    char *copy = kept_.take<char>(length);
    memcpy(copy, characters, length);
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
    T *elements = kept_.take<T>(size);
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

  void tensor(Tensor &target, bool written, bool cuda) { target.take(unbox<AtenTensorHandle>(*next_++), written, cuda); }

  void optional_tensor(Tensor &target, bool cuda) {
    StableIValue *boxed = unbox<StableIValue *>(*next_++);
    if (!boxed) return;
    target.take(unbox<AtenTensorHandle>(*boxed), false, cuda);
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
  StableIValue *next_;
  Blocks kept_;
};

}  // namespace torch
}  // namespace opc

#endif /* OPC_ADAPTERS_TORCH_ARGUMENTS_H */
