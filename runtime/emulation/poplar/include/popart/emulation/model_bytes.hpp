// A model as bytes, and the numbers that ONNX has for data types.
#ifndef POPART_EMULATION_MODEL_BYTES_HPP
#define POPART_EMULATION_MODEL_BYTES_HPP

#include <cstring>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

/// The data type that ONNX's TensorProto numbers `number`. Raises popart::error where PopART has none.
inline DataType onnxDataType(int64_t number) {
  static const DataType types[] = {DataType::UNDEFINED,  DataType::FLOAT,   DataType::UINT8,  DataType::INT8,   DataType::UINT16,
                                   DataType::INT16,      DataType::INT32,   DataType::INT64,  DataType::STRING, DataType::BOOL,
                                   DataType::FLOAT16,    DataType::DOUBLE,  DataType::UINT32, DataType::UINT64, DataType::COMPLEX64,
                                   DataType::COMPLEX128, DataType::BFLOAT16};
  if (number < 1 || number > 16) throw error("ONNX has no data type of the number {} that PopART knows", number);
  return types[number];
}

class ModelWriter {
 public:
  std::string bytes = "opc-popart-model-1\n";

  void operator()(int64_t v) { bytes.append(reinterpret_cast<const char *>(&v), sizeof v); }
  void operator()(int v) { (*this)(static_cast<int64_t>(v)); }
  void operator()(float v) { bytes.append(reinterpret_cast<const char *>(&v), sizeof v); }
  void operator()(const std::string &v) {
    (*this)(static_cast<int64_t>(v.size()));
    bytes += v;
  }
  void operator()(const std::vector<char> &v) { (*this)(std::string(v.begin(), v.end())); }
  void operator()(const TensorInfo &v) {
    (*this)(v.isSet() ? v.data_type() : std::string());
    (*this)(v.shape());
  }
  void operator()(const TensorValue &v) { fields(v.info, v.data); }
  void operator()(const Attribute &v) {
    (*this)(static_cast<int64_t>(v.kind));
    fields(v.i, v.ints, v.f, v.floats, v.s, v.strings, v.t);
  }
  void operator()(const Node &v) { fields(v.domain, v.type, v.name, v.inputs, v.outputs, v.attributes); }
  template <typename T>
  void operator()(const std::vector<T> &values) {
    (*this)(static_cast<int64_t>(values.size()));
    for (const T &v : values) (*this)(v);
  }
  template <typename A, typename B>
  void operator()(const std::pair<A, B> &v) {
    fields(v.first, v.second);
  }
  template <typename A, typename B>
  void operator()(const std::map<A, B> &values) {
    (*this)(static_cast<int64_t>(values.size()));
    for (const auto &v : values) fields(v.first, v.second);
  }

  void fields() {}
  template <typename T, typename... Rest>
  void fields(const T &first, const Rest &...rest) {
    (*this)(first);
    fields(rest...);
  }
};

class ModelReader {
 public:
  explicit ModelReader(const std::string &bytes_) : bytes(bytes_) {
    const std::string header = ModelWriter().bytes;
    if (bytes.compare(0, header.size(), header) != 0) throw error("These bytes are no model that a builder made");
    at = header.size();
  }

  void operator()(int64_t &v) { take(&v, sizeof v); }
  void operator()(int &v) {
    int64_t wide = 0;
    (*this)(wide);
    v = static_cast<int>(wide);
  }
  void operator()(float &v) { take(&v, sizeof v); }
  void operator()(std::string &v) {
    v.resize(count());
    if (!v.empty()) take(&v[0], v.size());
  }
  void operator()(std::vector<char> &v) {
    std::string text;
    (*this)(text);
    v.assign(text.begin(), text.end());
  }
  void operator()(TensorInfo &v) {
    std::string type;
    Shape shape;
    fields(type, shape);
    if (!type.empty()) v.set(dataTypeFromString(type), shape);
  }
  void operator()(TensorValue &v) { fields(v.info, v.data); }
  void operator()(Attribute &v) {
    int64_t kind = 0;
    (*this)(kind);
    v.kind = static_cast<Attribute::Kind>(kind);
    fields(v.i, v.ints, v.f, v.floats, v.s, v.strings, v.t);
  }
  void operator()(Node &v) { fields(v.domain, v.type, v.name, v.inputs, v.outputs, v.attributes); }
  template <typename T>
  void operator()(std::vector<T> &values) {
    values.resize(count());
    for (T &v : values) (*this)(v);
  }
  template <typename A, typename B>
  void operator()(std::pair<A, B> &v) {
    fields(v.first, v.second);
  }
  template <typename A, typename B>
  void operator()(std::map<A, B> &values) {
    for (std::size_t n = count(); n; --n) {
      A key;
      (*this)(key);
      (*this)(values[key]);
    }
  }

  void fields() {}
  template <typename T, typename... Rest>
  void fields(T &first, Rest &...rest) {
    (*this)(first);
    fields(rest...);
  }

 private:
  std::size_t count() {
    int64_t n = 0;
    (*this)(n);
    if (n < 0 || static_cast<std::size_t>(n) > bytes.size() - at) throw error("The bytes of the model are cut off");
    return static_cast<std::size_t>(n);
  }
  void take(void *to, std::size_t n) {
    if (n > bytes.size() - at) throw error("The bytes of the model are cut off");
    std::memcpy(to, bytes.data() + at, n);
    at += n;
  }

  const std::string &bytes;
  std::size_t at = 0;
};

inline std::string Model::serialise() const {
  ModelWriter writer;
  writer.fields(inputs, outputs, initialisers, nodes, opsets, values);
  return writer.bytes;
}

inline Model Model::parse(const std::string &bytes) {
  Model out;
  ModelReader reader(bytes);
  reader.fields(out.inputs, out.outputs, out.initialisers, out.nodes, out.opsets, out.values);
  return out;
}

}  // namespace emulation
}  // namespace popart
#pragma GCC visibility pop

#endif
