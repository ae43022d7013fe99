/* Attributes of a TensorRT plugin: read from fields, listed as fields, written to bytes and read from them. */
#ifndef OPC_ADAPTERS_TENSORRT_ATTRIBUTES_H
#define OPC_ADAPTERS_TENSORRT_ATTRIBUTES_H

#include <string.h>

#include <new>
#include <string>
#include <vector>

#include "opc/adapters/blocks.h"
#include "opc/adapters/tensorrt_messages.h"
#include "opc/adapters/tensorrt_op.h"

namespace opc {
namespace trt {

/* The names of all dtypes, which attributes carry. */
inline const char *const *dtype_names() {
  static constexpr const char *names[] = {
#define OPC_NAME(name, ...) #name,
      OPC_DTYPES(OPC_NAME)
#undef OPC_NAME
  };
  return names;
}

/* A copy of what a list or text of attributes points to. */
inline const char *copy(Blocks &blocks, const void *from, size_t size) {
  char *made = blocks.take<char>(size);
  if (made == nullptr) throw std::bad_alloc();
  if (size > 0) memcpy(made, from, size);
  return made;
}

/* ---- fields ---- */

/* The names of fields that are not attributes. */
constexpr const char *given_field = "opc_inputs";   /* for each input 1 where it is given, else 0 */
constexpr const char *format_field = "opc_format"; /* of what is serialised */
constexpr int32_t format_version = 1;

inline const nvinfer1::PluginField *find(const nvinfer1::PluginFieldCollection *fields, const char *name) {
  for (int32_t i = 0; fields != nullptr && i < fields->nbFields; ++i) {
    if (fields->fields[i].name != nullptr && strcmp(fields->fields[i].name, name) == 0) return &fields->fields[i];
  }
  return nullptr;
}

/* Reads element i of a field as a whole number, false where it is none. */
inline bool whole(const nvinfer1::PluginField &field, int32_t i, int64_t &value) {
  switch (field.type) {
    case nvinfer1::PluginFieldType::kINT8: value = static_cast<const int8_t *>(field.data)[i]; return true;
    case nvinfer1::PluginFieldType::kINT16: value = static_cast<const int16_t *>(field.data)[i]; return true;
    case nvinfer1::PluginFieldType::kINT32: value = static_cast<const int32_t *>(field.data)[i]; return true;
#if NV_TENSORRT_MAJOR >= 10
    case nvinfer1::PluginFieldType::kINT64: value = static_cast<const int64_t *>(field.data)[i]; return true;
#endif
    default: return false;
  }
}

/* The same of any number. */
inline bool real(const nvinfer1::PluginField &field, int32_t i, double &value) {
  int64_t number = 0;
  switch (field.type) {
    case nvinfer1::PluginFieldType::kFLOAT32: value = static_cast<double>(static_cast<const float *>(field.data)[i]); return true;
    case nvinfer1::PluginFieldType::kFLOAT64: value = static_cast<const double *>(field.data)[i]; return true;
    default:
      if (!whole(field, i, number)) return false;
      value = static_cast<double>(number);
      return true;
  }
}

/* Reads attributes from the fields that a creator was given; what has no field keeps its default. */
class FieldReader : public Visitor {
 public:
  FieldReader(const Op &op, const nvinfer1::PluginFieldCollection *fields, Blocks &memory)
      : op_(op), fields_(fields), memory_(memory) {}

  bool ok = true;

  void values(const char *name, Kind kind, void *data, int32_t count, bool required) override {
    const nvinfer1::PluginField *field = given(name, required);
    if (field == nullptr) return;
    if (field->length != count) {
      ok = refuse("%s: the field %s has %d values, but must have %d", op_.name, name, static_cast<int>(field->length),
                  static_cast<int>(count));
      return;
    }
    read(name, kind, *field, static_cast<char *>(data));
  }

  void list(const char *name, Kind kind, const void *&data, int64_t &length, bool required) override {
    const nvinfer1::PluginField *field = given(name, required);
    if (field == nullptr) return;
    std::vector<char> elements(size_of(kind) * static_cast<size_t>(field->length) + 1);
    read(name, kind, *field, elements.data());
    data = copy(memory_, elements.data(), elements.size() - 1);
    length = field->length;
  }

  void text(const char *name, const char *&value, bool required) override {
    const nvinfer1::PluginField *field = given(name, required);
    if (field == nullptr || !is_text(name, *field)) return;
    value = copy(memory_, field->data, static_cast<size_t>(field->length));
  }

  void choice(const char *name, int64_t &position, const char *const *texts, int32_t count, bool required) override {
    const nvinfer1::PluginField *field = given(name, required);
    if (field == nullptr || !is_text(name, *field)) return;
    const std::string text(static_cast<const char *>(field->data),
                           strnlen(static_cast<const char *>(field->data), static_cast<size_t>(field->length)));
    std::string admitted;
    for (int32_t i = 0; i < count; ++i) {
      if (text == texts[i]) {
        position = i;
        return;
      }
      admitted += std::string(i > 0 ? ", '" : "'") + texts[i] + "'";
    }
    ok = refuse("%s: %s = '%s' is not one of %s", op_.name, name, text.c_str(), admitted.c_str());
  }

 private:
  const nvinfer1::PluginField *given(const char *name, bool required) {
    const nvinfer1::PluginField *field = find(fields_, name);
    if (field == nullptr) {
      if (required) ok = refuse("%s: the field %s must be given", op_.name, name);
      return nullptr;
    }
    if (field->length >= 0 && (field->length == 0 || field->data != nullptr)) return field;
    ok = refuse("%s: the field %s has no values", op_.name, name);
    return nullptr;
  }

  bool is_text(const char *name, const nvinfer1::PluginField &field) {
    if (field.type == nvinfer1::PluginFieldType::kCHAR && field.length > 0) return true;
    return ok = refuse("%s: the field %s must be a text", op_.name, name);
  }

  void read(const char *name, Kind kind, const nvinfer1::PluginField &field, char *to) {
    for (int32_t i = 0; ok && i < field.length; ++i) {
      int64_t number = 0;
      double value = 0;
      if (kind == real_kind ? !real(field, i, value) : !whole(field, i, number)) {
        ok = refuse("%s: the field %s must be %s", op_.name, name, kind == real_kind ? "a number" : "a whole number");
        return;
      }
      const int32_t flag = number != 0;
      const void *from = kind == real_kind   ? static_cast<const void *>(&value)
                         : kind == flag_kind ? static_cast<const void *>(&flag)
                                             : &number;
      memcpy(to + static_cast<size_t>(i) * size_of(kind), from, size_of(kind));
    }
  }

  const Op &op_;
  const nvinfer1::PluginFieldCollection *fields_;
  Blocks &memory_;
};

/* Lists attributes as fields, which point to the struct that was visited. */
class FieldLister : public Visitor {
 public:
  std::vector<nvinfer1::PluginField> fields;

  void values(const char *name, Kind kind, void *data, int32_t count, bool) override { add(name, kind, data, count); }
  void list(const char *name, Kind kind, const void *&data, int64_t &length, bool) override {
    add(name, kind, data, static_cast<int32_t>(length));
  }
  void text(const char *name, const char *&value, bool) override { add_text(name, value == nullptr ? "" : value); }
  void choice(const char *name, int64_t &position, const char *const *texts, int32_t count, bool) override {
    add_text(name, 0 <= position && position < count ? texts[position] : "");
  }

 private:
  void add(const char *name, Kind kind, const void *data, int32_t count) {
#if NV_TENSORRT_MAJOR >= 10
    const nvinfer1::PluginFieldType whole = nvinfer1::PluginFieldType::kINT64;
#else
    const nvinfer1::PluginFieldType whole = nvinfer1::PluginFieldType::kINT32; /* of names alone: nothing is read by this type */
#endif
    const nvinfer1::PluginFieldType types[] = {whole, nvinfer1::PluginFieldType::kFLOAT64, nvinfer1::PluginFieldType::kINT32};
    fields.emplace_back(name, data, types[kind], count);
  }
  void add_text(const char *name, const char *text) {
    fields.emplace_back(name, text, nvinfer1::PluginFieldType::kCHAR, static_cast<int32_t>(strlen(text) + 1));
  }
};

/* ---- bytes ---- */

/* Writes bytes, or counts them where there is nowhere to write. */
class Writer : public Visitor {
 public:
  explicit Writer(char *to) : to_(to) {}

  size_t size = 0;

  void bytes(const void *from, size_t count) {
    if (to_ != nullptr && count > 0) memcpy(to_ + size, from, count);
    size += count;
  }
  template <typename T>
  void one(const T &value) {
    bytes(&value, sizeof value);
  }

  void values(const char *, Kind kind, void *data, int32_t count, bool) override {
    bytes(data, size_of(kind) * static_cast<size_t>(count));
  }
  void list(const char *, Kind kind, const void *&data, int64_t &length, bool) override {
    one(length);
    bytes(data, size_of(kind) * static_cast<size_t>(length));
  }
  void text(const char *, const char *&value, bool) override {
    const int64_t length = value == nullptr ? 0 : static_cast<int64_t>(strlen(value));
    one(length);
    bytes(value, static_cast<size_t>(length));
  }
  void choice(const char *, int64_t &position, const char *const *, int32_t, bool) override { one(position); }

 private:
  char *to_;
};

/* Reads bytes, and never beyond their end. */
class Loader : public Visitor {
 public:
  Loader(const void *from, size_t size, Blocks &memory) : at_(static_cast<const char *>(from)), left_(size), memory_(memory) {}

  bool ok = true;

  void bytes(void *to, size_t count) {
    ok = ok && count <= left_;
    if (!ok) return;
    if (count > 0) memcpy(to, at_, count);
    at_ += count;
    left_ -= count;
  }
  template <typename T>
  T one() {
    T value{};
    bytes(&value, sizeof value);
    return value;
  }
  bool at_end() const { return ok && left_ == 0; }

  void values(const char *, Kind kind, void *data, int32_t count, bool) override {
    bytes(data, size_of(kind) * static_cast<size_t>(count));
  }
  void list(const char *, Kind kind, const void *&data, int64_t &length, bool) override {
    length = one<int64_t>();
    data = block(length, size_of(kind));
  }
  void text(const char *, const char *&value, bool) override { value = static_cast<const char *>(block(one<int64_t>(), 1)); }
  void choice(const char *, int64_t &position, const char *const *, int32_t count, bool) override {
    position = one<int64_t>();
    ok = ok && 0 <= position && position < count;
  }

 private:
  const void *block(int64_t length, size_t each) {
    ok = ok && length >= 0 && static_cast<uint64_t>(length) <= left_ / each;
    if (!ok) return nullptr;
    const void *found = copy(memory_, at_, static_cast<size_t>(length) * each);
    at_ += static_cast<size_t>(length) * each;
    left_ -= static_cast<size_t>(length) * each;
    return found;
  }

  const char *at_;
  size_t left_;
  Blocks &memory_;
};

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_ATTRIBUTES_H */
