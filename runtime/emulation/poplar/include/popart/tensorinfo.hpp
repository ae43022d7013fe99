// Data type and shape of a tensor, and NumPy's rules of broadcasting.
#ifndef POPART_TENSORINFO_HPP
#define POPART_TENSORINFO_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <popart/datatype.hpp>
#include <popart/error.hpp>
#include <popart/half.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

namespace emulation {
// The data type that a type of C++ stands for.
IN_LIBRARY DataType dataTypeOf(const int8_t *) { return DataType::INT8; }
IN_LIBRARY DataType dataTypeOf(const int16_t *) { return DataType::INT16; }
IN_LIBRARY DataType dataTypeOf(const int32_t *) { return DataType::INT32; }
IN_LIBRARY DataType dataTypeOf(const int64_t *) { return DataType::INT64; }
IN_LIBRARY DataType dataTypeOf(const uint8_t *) { return DataType::UINT8; }
IN_LIBRARY DataType dataTypeOf(const uint16_t *) { return DataType::UINT16; }
IN_LIBRARY DataType dataTypeOf(const uint32_t *) { return DataType::UINT32; }
IN_LIBRARY DataType dataTypeOf(const uint64_t *) { return DataType::UINT64; }
IN_LIBRARY DataType dataTypeOf(const bool *) { return DataType::BOOL; }
IN_LIBRARY DataType dataTypeOf(const float16_t *) { return DataType::FLOAT16; }
IN_LIBRARY DataType dataTypeOf(const float *) { return DataType::FLOAT; }
IN_LIBRARY DataType dataTypeOf(const double *) { return DataType::DOUBLE; }
}  // namespace emulation

template <typename T>
DataType getDataType() {
  return emulation::dataTypeOf(static_cast<const T *>(nullptr));
}

class DataTypeInfo {
 public:
  DataTypeInfo(DataType type__, int nbytes__, bool isFixedPoint__, std::string name__, std::string lcasename__)
      : type_(type__), nbytes_(nbytes__), isFixedPoint_(isFixedPoint__), name_(name__), lcasename_(lcasename__) {}

  DataType type() const { return type_; }
  const int &nbytes() const { return nbytes_; }
  const std::string &name() const { return name_; }
  const std::string &lcasename() const { return lcasename_; }
  bool isFixedPoint() const { return isFixedPoint_; }

 private:
  DataType type_;
  int nbytes_;  // -1 where an element has no fixed size
  bool isFixedPoint_;
  std::string name_;
  std::string lcasename_;
};

inline const std::map<DataType, DataTypeInfo> &getDataTypeInfoMap() {
  static const std::map<DataType, DataTypeInfo> infos = [] {
    std::map<DataType, DataTypeInfo> out;
    const auto add = [&out](DataType type, int bytes, bool fixed, const char *name, const char *lower) {
      out.emplace(type, DataTypeInfo(type, bytes, fixed, name, lower));
    };
    add(DataType::UINT8, 1, true, "UINT8", "uint8");
    add(DataType::INT8, 1, true, "INT8", "int8");
    add(DataType::FLOAT8_143, 1, false, "FLOAT8_143", "float8_143");
    add(DataType::FLOAT8_152, 1, false, "FLOAT8_152", "float8_152");
    add(DataType::UINT16, 2, true, "UINT16", "uint16");
    add(DataType::INT16, 2, true, "INT16", "int16");
    add(DataType::INT32, 4, true, "INT32", "int32");
    add(DataType::INT64, 8, true, "INT64", "int64");
    add(DataType::UINT32, 4, true, "UINT32", "uint32");
    add(DataType::UINT64, 8, true, "UINT64", "uint64");
    add(DataType::BOOL, 1, true, "BOOL", "bool");
    add(DataType::FLOAT, 4, false, "FLOAT", "float32");
    add(DataType::FLOAT16, 2, false, "FLOAT16", "float16");
    add(DataType::BFLOAT16, 2, false, "BFLOAT16", "bfloat16");
    add(DataType::DOUBLE, 8, false, "DOUBLE", "float64");
    add(DataType::COMPLEX64, 8, false, "COMPLEX64", "complex64");
    add(DataType::COMPLEX128, 16, false, "COMPLEX128", "complex128");
    add(DataType::STRING, -1, false, "STRING", "string");
    add(DataType::UNDEFINED, -1, false, "UNDEFINED", "undefined");
    return out;
  }();
  return infos;
}

IN_LIBRARY DataType dataTypeFromString(const std::string &name) {
  for (const auto &entry : getDataTypeInfoMap()) {
    if (entry.second.name() == name) return entry.first;
  }
  throw error("No DataType called {}", name);
}

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const DataType &type) {
  return stream << getDataTypeInfoMap().at(type).lcasename();
}

class TensorInfo {
 public:
  IN_LIBRARY TensorInfo() = default;
  IN_LIBRARY TensorInfo(DataType type, const Shape &shape) { set(type, shape); }
  IN_LIBRARY TensorInfo(DataType type, const Shape &shape, const Shape &metaShape) { set(type, shape, metaShape); }
  IN_LIBRARY TensorInfo(std::string type, const Shape &shape) { set(dataTypeFromString(type), shape); }
  /// `shape` as text: "(1,2,3)", "" or "()" for rank 0.
  IN_LIBRARY TensorInfo(std::string type, std::string shape) { set(dataTypeFromString(type), shapeFromString(shape)); }

  /// For the emulation's own use.
  IN_LIBRARY TensorInfo(const TensorInfo &) = default;
  /// For the emulation's own use.
  IN_LIBRARY TensorInfo &operator=(const TensorInfo &) = default;
  /// For the emulation's own use.
  IN_LIBRARY ~TensorInfo() = default;

  IN_LIBRARY void set(DataType type) { dataTypeInfo = &getDataTypeInfoMap().at(type); }
  IN_LIBRARY void set(DataType type, const Shape &shape) { set(type, shape, {}); }
  IN_LIBRARY void set(DataType type, const Shape &shape, const Shape &metaShape) {
    set(type);
    shape_v = shape;
    meta_shape_v = metaShape;
  }

  IN_LIBRARY const Shape &shape() const { return shape_v; }
  IN_LIBRARY const Shape &metaShape() const { return meta_shape_v; }
  IN_LIBRARY std::vector<std::size_t> shape_szt() const { return {shape_v.begin(), shape_v.end()}; }
  IN_LIBRARY Rank rank() const { return static_cast<int>(shape_v.size()); }
  IN_LIBRARY int64_t nelms() const { return std::accumulate(shape_v.begin(), shape_v.end(), int64_t(1), std::multiplies<int64_t>()); }
  IN_LIBRARY int64_t nbytes() const { return nelms() * static_cast<int64_t>(getDataTypeInfo()->nbytes()); }
  IN_LIBRARY int64_t dim(int i) const {
    if (i < 0 || i >= rank()) throw error("Invalid input dimension {}, tensor of rank {}", i, shape_v.size());
    return shape_v[static_cast<std::size_t>(i)];
  }

  IN_LIBRARY DataType dataType() const { return getDataTypeInfo()->type(); }
  IN_LIBRARY const std::string &data_type() const { return getDataTypeInfo()->name(); }
  IN_LIBRARY const std::string &data_type_lcase() const { return getDataTypeInfo()->lcasename(); }
  IN_LIBRARY bool isSet() const { return dataTypeInfo != nullptr; }
  IN_LIBRARY const DataTypeInfo *getDataTypeInfo() const {
    if (!dataTypeInfo) throw error("Data type is not set");
    return dataTypeInfo;
  }

  IN_LIBRARY bool operator==(const TensorInfo &other) const {
    return dataTypeInfo == other.dataTypeInfo && shape_v == other.shape_v && meta_shape_v == other.meta_shape_v;
  }
  IN_LIBRARY bool operator!=(const TensorInfo &other) const { return !(*this == other); }

  IN_LIBRARY void append(std::ostream &stream) const {
    stream << (isSet() ? data_type() : "UNDEFINED") << " (" << logging::join(shape_v.begin(), shape_v.end(), ", ") << ")";
  }

 private:
  IN_LIBRARY static Shape shapeFromString(const std::string &text) {
    Shape out;
    std::string digits;
    for (const char c : text + ")") {
      if (c >= '0' && c <= '9') {
        digits += c;
      } else if (c == ',' || c == ')') {
        if (!digits.empty()) out.push_back(std::stoll(digits));
        digits.clear();
      } else if (c != '(') {
        throw error("The shape {} has an unexpected character", text);
      }
    }
    return out;
  }

  const DataTypeInfo *dataTypeInfo = nullptr;
  Shape shape_v;
  Shape meta_shape_v;
};

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const TensorInfo &info) {
  info.append(stream);
  return stream;
}

/// As in PopART a dimension of size 0 broadcasts with nothing, not even with itself.
IN_LIBRARY bool npBroadcastable(const Shape &s0, const Shape &s1) {
  for (std::size_t i = 1; i <= std::min(s0.size(), s1.size()); ++i) {
    const int64_t a = s0[s0.size() - i], b = s1[s1.size() - i];
    if (a <= 0 || b <= 0 || (a != b && a != 1 && b != 1)) return false;
  }
  return true;
}

/// The shape that `s0` and `s1` broadcast to. Raises popart::error where they do not.
IN_LIBRARY Shape npOut(const Shape &s0, const Shape &s1, const std::string &debugName = "") {
  if (!npBroadcastable(s0, s1)) {
    throw error("np broadcasting failed{}, frames [{}] and [{}] are not aligned", debugName.empty() ? "" : " on '" + debugName + "'",
                logging::join(s0.begin(), s0.end(), ", "), logging::join(s1.begin(), s1.end(), ", "));
  }
  Shape out(std::max(s0.size(), s1.size()), 1);
  for (std::size_t i = 1; i <= out.size(); ++i) {
    const int64_t a = i <= s0.size() ? s0[s0.size() - i] : 1;
    const int64_t b = i <= s1.size() ? s1[s1.size() - i] : 1;
    out[out.size() - i] = a == 1 ? b : a;
  }
  return out;
}

/// As above for infos; with `checkDataType` both must have one data type.
IN_LIBRARY TensorInfo npOut(const TensorInfo &i0, const TensorInfo &i1, bool checkDataType, const std::string &debugName = "") {
  if (checkDataType && i0.dataType() != i1.dataType()) {
    throw error("np broadcasting failed{}{}, incompatible types {} and {}", debugName.empty() ? "" : " on ", debugName, i0.data_type(),
                i1.data_type());
  }
  return {i0.dataType(), npOut(i0.shape(), i1.shape(), debugName)};
}
IN_LIBRARY TensorInfo npOut(const TensorInfo &i0, const TensorInfo &i1, const std::string &debugName = "") {
  return npOut(i0, i1, true, debugName);
}

/// The axes of `out` along which a gradient is summed to have the shape `in` that was broadcast to it.
IN_LIBRARY std::vector<int64_t> npReductionAxis(const std::vector<int64_t> &in, const std::vector<int64_t> &out) {
  if (in.size() > out.size()) throw error("npReductionAxis: the rank of the input is above that of the output");
  const std::size_t prefix = out.size() - in.size();
  std::vector<int64_t> axes;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i < prefix || in[i - prefix] != out[i]) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

}  // namespace popart
#pragma GCC visibility pop

#endif
