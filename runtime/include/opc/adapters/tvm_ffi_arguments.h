/* The arguments of a call through tvm-ffi: tensors by their place, attributes in order. */
#ifndef OPC_ADAPTERS_TVM_FFI_ARGUMENTS_H
#define OPC_ADAPTERS_TVM_FFI_ARGUMENTS_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "opc/adapters/blocks.h"
#include "opc/adapters/tvm_ffi_api.h"
#include "opc/core/tensor.h"

namespace opc {
namespace tvm {

/* The first argument that does not fit is remembered; what is read after it is zero. What lists and texts point to lives as long as this
 * object. */
class Arguments {
 public:
  Arguments(const char *op, const Value *attributes) : op_(op), next_(attributes) {}
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  bool fit() const { return kind_ == nullptr; }

  /* Raises what did not fit; the result of the call. */
  int raise() const { return TVMFFIErrorSetRaisedFromCStr(kind_, message_), -1; }

  /* Remembers a message, with the kind of Python's error. */
  __attribute__((cold, format(printf, 3, 4))) void refuse(const char *kind, const char *format, ...) {
    if (kind_ != nullptr) return;
    kind_ = kind;
    const int head = snprintf(message_, sizeof message_, "%s: ", op_);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message_ + head, sizeof message_ - static_cast<size_t>(head), format, arguments);
    va_end(arguments);
  }

  /* The tensor of an argument, NULL for None. */
  DLTensor *tensor(const char *name, const Value &value) {
    if (value.kind == none) return nullptr;
    DLTensor *found = nullptr;
    if (value.kind == tensor_pointer) found = static_cast<DLTensor *>(value.pointer);
    if (value.kind == tensor_object) found = const_cast<DLTensor *>(content<DLTensor>(value));
    if (found == nullptr) refuse("TypeError", "%s must be a tensor", name);
    if (found != nullptr) hold(name, dtype_of(*found));
    return found;
  }

  double number(const char *name) { return number(name, *next_++); }
  int64_t integer(const char *name) { return integer(name, *next_++); }
  int32_t boolean(const char *name) { return boolean(name, *next_++); }
  const char *text(const char *name) { return text(name, *next_++); }

  /* The position of a text among the `count` values that an attribute admits, which `admitted` names. */
  int64_t choice(const char *name, const char *const *values, int64_t count, const char *admitted) {
    const char *given = text(name);
    for (int64_t i = 0; i < count; ++i)
      if (strcmp(values[i], given) == 0) return i;
    refuse("ValueError", "%s = '%s' is not one of %s", name, given, admitted);
    return 0;
  }

  /* An element type: a dtype of any framework, or its name. */
  int64_t dtype(const char *name) {
    const Value &value = *next_;
    if (value.kind == data_type) return ++next_, known(name, value.dtype);
    const char *given = text(name);
    for (int64_t i = 0; i < dtype_count; ++i)
      if (strcmp(dtype_name(static_cast<opc::dtype>(i)), given) == 0) return hold(name, static_cast<opc::dtype>(i));
    refuse("ValueError", "%s must be a dtype that opc knows, not '%s'", name, given);
    return 0;
  }

  /* The elements of a list, whose length goes to `length`. */
  template <class T>
  const T *list(const char *name, int64_t *length) {
    const Value &value = *next_++;
    *length = 0;
    if (value.kind == shape_object) {
      const Shape &shape = *content<Shape>(value);
      return elements<T>(name, length, shape.size, [&](size_t i) { return Value{whole_number, 0, {shape.data[i]}}; });
    }
    if (value.kind == array_object || value.kind == list_object) {
      const Sequence &sequence = *content<Sequence>(value);
      return elements<T>(name, length, static_cast<size_t>(sequence.size), [&](size_t i) { return sequence.data[i]; });
    }
    refuse("TypeError", "%s must be a sequence", name);
    return nullptr;
  }

  /* The elements of a list that must have `length` of them. */
  template <class T>
  void list(const char *name, T *target, int64_t length) {
    int64_t given = 0;
    const T *source = list<T>(name, &given);
    if (fit() && given != length)
      refuse("ValueError", "%s must have %lld elements, but has %lld", name, static_cast<long long>(length),
             static_cast<long long>(given));
    for (int64_t i = 0; fit() && i < length; ++i) target[i] = source[i];
  }

 private:
  /* A dtype, which has no fewer than 8 bits: DLPack packs several elements of one that has in a byte, and kernels have a byte for each. */
  int64_t hold(const char *name, opc::dtype type) {
    if (type >= 0 && type < dtype_count && row_of(type).dlpack.bits < 8)
      refuse("TypeError", "%s is %s, which tvm-ffi has no tensors of", name, dtype_name(type));
    return type;
  }

  double number(const char *name, const Value &value) {
    if (value.kind == real_number) return value.real;
    if (value.kind == whole_number) return static_cast<double>(value.whole);
    refuse("TypeError", "%s must be a number", name);
    return 0;
  }

  int64_t integer(const char *name, const Value &value) {
    if (value.kind == whole_number) return value.whole;
    if (value.kind == big_number)
      refuse("ValueError", "%s does not fit 64 bits", name);
    else
      refuse("TypeError", "%s must be an integer", name);
    return 0;
  }

  int32_t boolean(const char *name, const Value &value) {
    if (value.kind == truth) return value.whole != 0;
    refuse("TypeError", "%s must be True or False", name);
    return 0;
  }

  const char *text(const char *name, const Value &value) {
    switch (value.kind) {
      case raw_text: return value.text;
      case small_text: return kept(value.small, value.length);
      case text_object: return kept(content<Bytes>(value)->data, content<Bytes>(value)->size);
      default: refuse("TypeError", "%s must be a text", name); return "";
    }
  }

  const char *kept(const char *characters, size_t size) {
    char *const copy = blocks_.take<char>(size); /* a zero follows it */
    if (copy == nullptr) return out_of_memory(), "";
    memcpy(copy, characters, size);
    return copy;
  }

  void out_of_memory() { refuse("MemoryError", "no memory for the attributes"); }

  int64_t known(const char *name, DLDataType type) {
    const opc::dtype found = dtype_of(type);
    if (found >= 0 && found < dtype_count) return hold(name, found);
    refuse("ValueError", "%s must be a dtype that opc knows", name);
    return 0;
  }

  void read(const char *name, const Value &value, double &element) { element = number(name, value); }
  void read(const char *name, const Value &value, int64_t &element) { element = integer(name, value); }
  void read(const char *name, const Value &value, int32_t &element) { element = boolean(name, value); }
  void read(const char *name, const Value &value, const char *&element) { element = text(name, value); }

  template <class T, class At>
  const T *elements(const char *name, int64_t *length, size_t size, At at) {
    T *const found = blocks_.take<T>(size);
    if (found == nullptr) return out_of_memory(), nullptr;
    for (size_t i = 0; i < size; ++i) read(name, at(i), found[i]);
    *length = static_cast<int64_t>(size);
    return found;
  }

  const char *const op_;
  const Value *next_;
  const char *kind_ = nullptr;
  char message_[1024];
  Blocks blocks_;
};

}  // namespace tvm
}  // namespace opc

#endif /* OPC_ADAPTERS_TVM_FFI_ARGUMENTS_H */
