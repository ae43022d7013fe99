/* Reading a node's attributes into a family's attribute struct. Included by opc/adapters/onnxruntime.h. */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_ATTRIBUTES_H
#define OPC_ADAPTERS_ONNXRUNTIME_ATTRIBUTES_H

namespace opc::ort {

/* What ONNX Runtime calls each kind, for messages. */
inline const char *expected(AttributeKind kind, bool list) {
  switch (kind) {
    case kFloat: return list ? "a list of floats" : "a float";
    case kEnumeration:
    case kString: return list ? "a list of strings" : "a string";
    default: return list ? "a list of integers" : "an integer";
  }
}

/* Attributes as a kernel sees them when it is created. Every getter says whether there is an attribute of that name and type. A getter
 * of lists given a NULL buffer only returns the length, which for a string includes the final NUL. */
struct KernelAttributes {
  const Api *api;
  const KernelInfo *info;

  bool integer(const char *name, int64_t *out) const { return succeeded(api, KernelInfoInt::call(api, info, name, out)); }
  bool number(const char *name, float *out) const { return succeeded(api, KernelInfoFloat::call(api, info, name, out)); }
  bool integers(const char *name, int64_t *out, size_t *size) const {
    return succeeded(api, KernelInfoInts::call(api, info, name, out, size));
  }
  bool numbers(const char *name, float *out, size_t *size) const {
    return succeeded(api, KernelInfoFloats::call(api, info, name, out, size));
  }
  bool text(const char *name, char *out, size_t *size) const {
    return succeeded(api, KernelInfoString::call(api, info, name, out, size));
  }
};

/* The same as shape inference sees them. */
struct InferAttributes {
  const Api *api;
  const ShapeInferContext *context;

  bool integer(const char *name, int64_t *out) const { return scalar(name, kAttrInt, out, sizeof *out); }
  bool number(const char *name, float *out) const { return scalar(name, kAttrFloat, out, sizeof *out); }
  bool integers(const char *name, int64_t *out, size_t *size) const { return list(name, kAttrInts, out, sizeof *out, size); }
  bool numbers(const char *name, float *out, size_t *size) const { return list(name, kAttrFloats, out, sizeof *out, size); }
  bool text(const char *name, char *out, size_t *size) const {
    if (!list(name, kAttrString, out, 1, size)) return false;
    if (out != nullptr) out[*size] = '\0';
    ++*size;
    return true;
  }

 private:
  bool scalar(const char *name, OpAttrType type, void *out, size_t size) const {
    const OpAttr *attribute = nullptr;
    size_t bytes = 0;
    return succeeded(api, InferAttribute::call(api, context, name, &attribute)) &&
           succeeded(api, ReadOpAttr::call(api, attribute, type, out, size, &bytes));
  }
  bool list(const char *name, OpAttrType type, void *out, size_t item, size_t *size) const {
    const OpAttr *attribute = nullptr;
    size_t bytes = 0;
    if (!succeeded(api, InferAttribute::call(api, context, name, &attribute))) return false;
    /* A buffer of no bytes makes ReadOpAttr fail, but return how many there are: none, where the attribute is of another type. */
    const bool read = succeeded(api, ReadOpAttr::call(api, attribute, type, out, out == nullptr ? 0 : *size * item, &bytes));
    *size = bytes / item;
    return read || bytes != 0;
  }
};

/* Reads the attributes of one node over the defaults in `struct_`. `Source` is KernelAttributes or InferAttributes. */
template <typename Source>
class AttributeReader {
 public:
  AttributeReader(const Source &source, const char *op, char *struct_, Blocks *memory)
      : source_(source), op_(op), struct_(struct_), memory_(memory) {}

  Status *read(const Attribute &a) {
    const bool found = a.length < 0 ? read_scalar(a) : read_list(a);
    if (message_[0] == '\0' && !found) {
      if (given(a.name))
        snprintf(message_, sizeof message_, "%s: attribute '%s' must be %s", op_, a.name, expected(a.kind, a.length >= 0));
      else if (a.required)
        snprintf(message_, sizeof message_, "%s: attribute '%s' is required", op_, a.name);
    }
    return message_[0] == '\0' ? nullptr : error(source_.api, message_);
  }

 private:
  template <typename T>
  T &field(size_t offset) {
    return *reinterpret_cast<T *>(struct_ + offset);
  }

  /* Whether there is an attribute of that name; of an empty list, whether what reads as one is an attribute of another type. */
  bool given(const char *name, bool empty_list = false) const {
    int64_t integer;
    float number;
    size_t integers = 0, numbers = 0, size = 0;
    return source_.integer(name, &integer) || source_.number(name, &number) || source_.text(name, nullptr, &size) ||
           (source_.integers(name, nullptr, &integers) && (integers != 0 || !empty_list)) ||
           (source_.numbers(name, nullptr, &numbers) && (numbers != 0 || !empty_list));
  }

  bool read_scalar(const Attribute &a) {
    if (a.kind == kFloat) {
      float value;
      if (!source_.number(a.name, &value)) return false;
      set(field<double>(a.offset), value);
      return true;
    }
    if (a.kind == kEnumeration || a.kind == kString) return read_text(a);
    int64_t value;
    if (!source_.integer(a.name, &value)) return false;
    set_integer(a, struct_ + a.offset, 0, value);
    return true;
  }

  bool read_list(const Attribute &a) {
    size_t count = 0;
    const bool found = a.kind == kFloat ? source_.numbers(a.name, nullptr, &count) : source_.integers(a.name, nullptr, &count);
    if (!found) return false;
    if (count == 0 && given(a.name, true)) return false;
    if (a.length > 0 && count != static_cast<size_t>(a.length)) {
      snprintf(message_, sizeof message_, "%s: attribute '%s' must have %d values, not %zu", op_, a.name, a.length, count);
      return true;
    }
    if (count == 0) {
      field<int64_t>(a.length_offset) = 0;
      return true;
    }
    void *values = memory_->take<int64_t>(count);
    void *target = a.length > 0 ? struct_ + a.offset : memory_->take<char>(count * sizeof(double));
    if (values == nullptr || target == nullptr) {
      snprintf(message_, sizeof message_, "%s: out of memory", op_);
      return true;
    }
    if (a.length == 0) {
      field<int64_t>(a.length_offset) = static_cast<int64_t>(count);
      field<void *>(a.offset) = target;
    }
    if (a.kind == kFloat) {
      if (!source_.numbers(a.name, static_cast<float *>(values), &count)) return false;
      for (size_t i = 0; i < count; ++i) static_cast<double *>(target)[i] = static_cast<float *>(values)[i];
    } else {
      if (!source_.integers(a.name, static_cast<int64_t *>(values), &count)) return false;
      for (size_t i = 0; i < count; ++i) set_integer(a, target, i, static_cast<int64_t *>(values)[i]);
    }
    return true;
  }

  bool read_text(const Attribute &a) {
    size_t size = 0;
    if (!source_.text(a.name, nullptr, &size)) return false;
    char *value = memory_->take<char>(size);
    if (value == nullptr) {
      snprintf(message_, sizeof message_, "%s: out of memory", op_);
      return true;
    }
    if (!source_.text(a.name, value, &size)) return false;
    if (a.kind == kString) {
      field<const char *>(a.offset) = value;
      return true;
    }
    int count = 0;
    while (a.values[count] != nullptr && strcmp(a.values[count], value) != 0) ++count;
    field<int64_t>(a.offset) = count;
    if (a.values[count] == nullptr) {
      int length = snprintf(message_, sizeof message_, "%s: attribute '%s' is '%s', must be one of", op_, a.name, value);
      for (int i = 0; a.values[i] != nullptr && length < static_cast<int>(sizeof message_); ++i)
        length += snprintf(message_ + length, sizeof message_ - static_cast<size_t>(length), "%s '%s'", i == 0 ? "" : ",", a.values[i]);
    }
    return true;
  }

  /* ONNX holds a float attribute in single precision. The default, written out in a model, is still the default. */
  static void set(double &target, float value) {
    if (static_cast<float>(target) != value) target = static_cast<double>(value);
  }

  void set_integer(const Attribute &a, void *target, size_t i, int64_t value) {
    if (a.kind == kBoolean) {
      if (value != 0 && value != 1)
        snprintf(message_, sizeof message_, "%s: attribute '%s' must be 0 or 1, not %lld", op_, a.name, static_cast<long long>(value));
      static_cast<int32_t *>(target)[i] = static_cast<int32_t>(value);
      return;
    }
    const int64_t position = a.kind == kDtype ? int64_t{element_of(dtype_numbers, value)} : value;
    if (position < 0 && a.kind == kDtype)
      snprintf(message_, sizeof message_, "%s: attribute '%s' is no known element type: %lld", op_, a.name, static_cast<long long>(value));
    static_cast<int64_t *>(target)[i] = position;
  }

  const Source &source_;
  const char *op_;
  char *struct_;
  Blocks *memory_;
  char message_[512] = "";
};

/* Fills `out` with the defaults and the node's attributes. */
template <typename A, typename Source>
Status *read_attributes(const Library<A> &library, const Source &source, const char *op, A *out, Blocks *memory) {
  *out = *library.defaults;
  for (int i = 0; i < library.attribute_count; ++i) {
    AttributeReader<Source> reader(source, op, reinterpret_cast<char *>(out), memory);
    OPC_ORT_TRY(reader.read(library.attributes[i]));
  }
  return nullptr;
}

}  // namespace opc::ort

#endif /* OPC_ADAPTERS_ONNXRUNTIME_ATTRIBUTES_H */
