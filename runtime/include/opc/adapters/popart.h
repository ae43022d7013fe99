/* What generated ops of PopART and PopXL share: a call's tensors as its rules take them, what these infer as PopART takes it, and
 * the tensors of a body in Poplar. C++14, for any SDK from 2.6 on.
 */
#ifndef OPC_ADAPTERS_POPART_H
#define OPC_ADAPTERS_POPART_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <popart/alias/aliasmodel.hpp>
#include <popart/attributes.hpp>
#include <popart/datatype.hpp>
#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/op.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/region.hpp>
#include <popart/shapeinference.hpp>
#include <popart/tensorinfo.hpp>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>

#include "opc/core/shape.h"
#include "opc/poplar/body.h"

namespace opc {
namespace ipu {

/* ---- dtypes ---- */

/* PopART's dtype in DLPack's terms, those too that Poplar lacks, for messages. A type that no operand may have becomes an opaque
 * one, which rules refuse. */
inline DLDataType dlpack_of(popart::DataType type) {
  switch (type) {
#define OPC_CASE(name, popart_name, poplar_name) \
  case popart::DataType::popart_name: return row_of(dtype_##name).dlpack;
    OPC_POPART_DTYPES(OPC_CASE)
#undef OPC_CASE
    case popart::DataType::INT64: return row_of(dtype_int64).dlpack;
    case popart::DataType::UINT64: return row_of(dtype_uint64).dlpack;
    case popart::DataType::DOUBLE: return row_of(dtype_float64).dlpack;
    case popart::DataType::BFLOAT16: return row_of(dtype_bfloat16).dlpack;
    case popart::DataType::COMPLEX64: return row_of(dtype_complex64).dlpack;
    case popart::DataType::COMPLEX128: return row_of(dtype_complex128).dlpack;
    default: return dlpack_of(dtype_unknown);
  }
}

/* The dtype of an inferred output, which rules give none that Poplar lacks; whole numbers of 64 bits are held in 32. */
inline popart::DataType data_type(DLDataType type) {
  switch (dtype_of(type)) {
#define OPC_CASE(name, popart_name, poplar_name) \
  case dtype_##name: return popart::DataType::popart_name;
    OPC_POPART_DTYPES(OPC_CASE)
#undef OPC_CASE
    case dtype_int64: return popart::DataType::INT32;
    default: throw popart::error("Poplar has no tensors of {}", dtype_name(dtype_of(type)));
  }
}

/* The position of a dtype attribute's value among opc's dtypes, -1 of one that opc does not know. */
inline int64_t position_of(const poplar::Type &type) {
#define OPC_CASE(name, popart_name, poplar_name) \
  if (type == poplar::poplar_name) return dtype_##name;
  OPC_POPART_DTYPES(OPC_CASE)
#undef OPC_CASE
  return -1;
}

/* ---- attributes ---- */

/* What reads attributes takes the op's name and theirs as messages spell them, and their key in a model where that is another. */
inline const char *key_of(const char *name, const char *key) { return key == nullptr ? name : key; }

/* An attribute that has no default must be there. */
inline void require(const popart::Attributes &given, const char *op, const char *name, const char *key = nullptr) {
  if (!given.hasAttribute(key_of(name, key))) throw popart::error("{}: the attribute {} must be given", op, name);
}

inline int64_t flag(const char *op, const char *name, int64_t value) {
  if (value != 0 && value != 1) throw popart::error("{}: {} must be 0 or 1, not {}", op, name, value);
  return value;
}

/* The dtype that a model names by ONNX's number. */
inline poplar::Type type_of(const char *op, const char *name, int64_t number) {
#define OPC_CASE(name, popart_name, poplar_name) {dtype_##name, poplar::poplar_name},
  const std::pair<dtype, poplar::Type> held[] = {OPC_POPART_DTYPES(OPC_CASE)};
#undef OPC_CASE
  dtype found = dtype_unknown;
#define OPC_CASE(name, onnx, ...) \
  if (number == onnx) found = dtype_##name;
  OPC_ONNX_DTYPES(OPC_CASE)
#undef OPC_CASE
  for (const auto &row : held)
    if (row.first == found) return row.second;
  if (found == dtype_unknown) throw popart::error("{}: {} must be ONNX's number of a dtype, not {}", op, name, number);
  throw popart::error("{}: {} is {}, which Poplar has no tensors of", op, name, dtype_name(found));
}

/* The same, where the model may name the dtype, too: Paddle's operators do. */
inline poplar::Type type_of(const popart::Attributes &given, const char *op, const char *name, const char *key = nullptr) {
  const std::string text = given.getAttribute<popart::Attributes::String>(key_of(name, key), std::string());
  if (text.empty()) return type_of(op, name, given.getAttribute<popart::Attributes::Int>(key_of(name, key)));
#define OPC_CASE(name, popart_name, poplar_name) \
  if (text == dtype_name(dtype_##name)) return poplar::poplar_name;
  OPC_POPART_DTYPES(OPC_CASE)
#undef OPC_CASE
  throw popart::error("{}: {} is {}, which Poplar has no tensors of", op, name, text);
}

/* A number that is held as text. */
inline float parsed(const char *op, const char *name, const std::string &text) {
  char *end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != 0) throw popart::error("{}: {} must be a number, not '{}'", op, name, text);
  return value;
}

/* An attribute's number. Paddle's operators hold numbers as text, which has all of their digits, and give them so to PopART's. */
inline float number(const popart::Attributes &given, const char *op, const char *name, const char *key = nullptr) {
  const std::string text = given.getAttribute<popart::Attributes::String>(key_of(name, key), std::string());
  return text.empty() ? given.getAttribute<popart::Attributes::Float>(key_of(name, key)) : parsed(op, name, text);
}

inline std::vector<float> numbers(const popart::Attributes &given, const char *op, const char *name, const char *key = nullptr) {
  std::vector<float> found = given.getAttribute<popart::Attributes::Floats>(key_of(name, key));
  if (!found.empty()) return found;
  for (const std::string &text : given.getAttribute<popart::Attributes::Strings>(key_of(name, key))) {
    found.push_back(parsed(op, name, text));
  }
  return found;
}

/* The position of a text among those that an attribute may be. */
inline int64_t choice(const char *op, const char *name, const std::string &given, std::initializer_list<const char *> values) {
  std::string admitted;
  int64_t position = 0;
  for (const char *value : values) {
    if (given == value) return position;
    admitted += (position++ == 0 ? "'" : ", '") + std::string(value) + "'";
  }
  throw popart::error("{}: {} = '{}' is not one of {}", op, name, given, admitted);
}

inline void has_length(const char *op, const char *name, size_t given, size_t length) {
  if (given != length) throw popart::error("{}: {} must have {} elements, but has {}", op, name, length, given);
}

/* A list of a fixed length, as rules take it. */
template <class To, class From>
void fill(const char *op, const char *name, const std::vector<From> &given, To *values, size_t length) {
  has_length(op, name, given.size(), length);
  for (size_t i = 0; i < length; ++i) values[i] = static_cast<To>(given[i]);
}

/* A list as one text, which distinguishes ops. */
template <class T>
std::string joined(const std::vector<T> &values, std::string (*text)(const T &)) {
  std::string all;
  for (const T &value : values) all += text(value) + ";";
  return all;
}
inline std::string quoted(const std::string &value) { return std::to_string(value.size()) + ":" + value; }
/* Nine digits distinguish any two numbers. */
inline std::string exact(const float &value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}
inline std::string type_name(const poplar::Type &type) { return type.toString().cloneAsString(); }

/* ---- rules ---- */

/* The inputs of a call as rules take them: types and sizes, no data. What is set must outlive this. */
class Described {
 public:
  explicit Described(size_t inputs) : tensors_(inputs), given_(inputs, nullptr) {}

  void set(size_t index, const popart::TensorInfo &info) {
    DLTensor &tensor = tensors_[index];
    tensor = {};
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(info.shape().size());
    tensor.dtype = dlpack_of(info.dataType());
    tensor.shape = const_cast<int64_t *>(info.shape().data());
    given_[index] = &tensor;
  }

  const DLTensor *const *given() const { return given_.data(); }

 private:
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor *> given_;
};

/* A type that is not deduced from an argument, to which a derived class then converts. */
template <class T>
struct Given {
  using type = T;
};

template <class Call, class Attributes>
using Rules = int32_t (*)(const DLTensor *const *inputs, const Attributes *attributes, Call &call, opc_tensor_type *outputs,
                          const opc_context *context);

/* What is known of the outputs of a call; popart::error with the rules' message when they refuse it. Without inputs the attributes
 * alone are checked. */
template <class Call, class Attributes>
std::vector<opc_tensor_type> infer(Rules<Call, Attributes> rules, const Described *inputs,
                                   const typename Given<Attributes>::type &attributes, size_t outputs) {
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  const opc_context context = {nullptr, nullptr, message, sizeof message};
  std::vector<opc_tensor_type> types(std::max<size_t>(outputs, 1));
  Call call;
  if (rules(inputs == nullptr ? nullptr : inputs->given(), &attributes, call, types.data(), &context) != OPC_OK) {
    throw popart::error("{}", message);
  }
  return types;
}

inline popart::TensorInfo info_of(const opc_tensor_type &type) {
  return {data_type(type.dtype), popart::Shape(type.shape, type.shape + type.ndim)};
}

/* An op's outputs by name, and which may be left out. */
struct Output {
  const char *name;
  bool optional;
};

/* `setup()` of an op: checks its inputs and attributes, and sizes the outputs that it has. `cotangents` are what stands for inputs
 * that autodiff left out, since no gradient arrives there. */
template <class Call, class Attributes>
void setup(popart::Op &op, const char *name, size_t inputs, std::initializer_list<Output> outputs, Rules<Call, Attributes> rules,
           const typename Given<Attributes>::type &attributes, const std::map<int, popart::TensorInfo> &cotangents = {}) {
  Described given(inputs);
  size_t count = 0;
  for (size_t i = 0; i < inputs; ++i) {
    const int index = static_cast<int>(i);
    const auto missing = cotangents.find(index);
    if (op.hasInput(index)) {
      given.set(i, op.inInfo(index));
      ++count;
    } else if (missing != cotangents.end()) {
      given.set(i, missing->second);
    }
  }
  if (op.inTensorCount() > count) {
    throw popart::error("{}: takes at most {} inputs, but has {}", name, inputs, op.inTensorCount());
  }
  const std::vector<opc_tensor_type> types = infer(rules, &given, attributes, outputs.size());
  size_t o = 0;
  for (const Output &output : outputs) {
    const opc_tensor_type &type = types[o];
    const int index = static_cast<int>(o++);
    if (!op.hasOutput(index)) {
      if (!output.optional) throw popart::error("{}: the output {} must be given", name, output.name);
    } else if (type.ndim < 0) {
      throw popart::error("{}: the output {} can't be computed: nothing that was given determines its shape", name, output.name);
    } else {
      op.outInfo(index) = info_of(type);
    }
  }
}

/* Of what a gradient may take, keeps what the op that it is the gradient of has: autodiff takes no mapping to an output that is left
 * out. */
inline void keep_connected(std::vector<popart::GradInOutMapper> &inputs, const popart::Op &forward) {
  std::vector<popart::GradInOutMapper> kept;
  for (const popart::GradInOutMapper &mapper : inputs) {
    if (mapper.type == popart::GradOpInType::In || forward.hasOutput(mapper.iNonGrad)) kept.push_back(mapper);
  }
  inputs = kept;
}

/* Shape inference of a Builder, which knows neither the sizes of every tensor nor which of the last operands are left out. */
template <class Call, class Attributes>
void infer_shapes(popart::ShapeInferenceContext &context, const char *name, size_t inputs, size_t outputs,
                  Rules<Call, Attributes> rules, const typename Given<Attributes>::type &attributes) {
  Described given(inputs);
  const size_t count = static_cast<size_t>(context.getNumInputs());
  if (count > inputs) throw popart::error("{}: takes at most {} inputs, but has {}", name, inputs, count);
  for (size_t i = 0; i < count; ++i) {
    const popart::TensorInfo &info = context.inInfo(static_cast<int>(i));
    if (info.dataType() == popart::DataType::UNDEFINED) return;
    given.set(i, info);
  }
  const std::vector<opc_tensor_type> types = infer(rules, &given, attributes, outputs);
  for (size_t o = 0; o < outputs && o < static_cast<size_t>(context.getNumOutputs()); ++o) {
    if (types[o].ndim >= 0) context.outInfo(static_cast<int>(o)) = info_of(types[o]);
  }
}

/* ---- bodies ---- */

/* The tensors of an op's inputs, one an input of its signature; a default-constructed one where it is left out. */
inline std::vector<poplar::Tensor> inputs_of(const popart::popx::Opx &opx, size_t inputs) {
  std::vector<poplar::Tensor> found(inputs);
  for (size_t i = 0; i < inputs; ++i) {
    const int index = static_cast<int>(i);
    if (opx.hasInput(index)) found[i] = opx.getInTensor(index);
  }
  return found;
}

/* Which outputs the op has. */
inline std::vector<bool> wanted_of(const popart::popx::Opx &opx, size_t outputs) {
  std::vector<bool> found(outputs);
  for (size_t o = 0; o < outputs; ++o) found[o] = opx.hasOutput(static_cast<int>(o));
  return found;
}

inline poplar::Type poplar_type(const popart::TensorInfo &info) {
  switch (info.dataType()) {
#define OPC_CASE(name, popart_name, poplar_name) \
  case popart::DataType::popart_name: return poplar::poplar_name;
    OPC_POPART_DTYPES(OPC_CASE)
#undef OPC_CASE
    default: throw popart::error("Poplar has no tensors of {}", info.data_type());
  }
}

/* The same, with zeros for the gradients that autodiff left out. */
inline std::vector<poplar::Tensor> inputs_of(const popart::popx::Opx &opx, size_t inputs,
                                             const std::map<int, popart::TensorInfo> &cotangents) {
  std::vector<poplar::Tensor> found = inputs_of(opx, inputs);
  for (const auto &missing : cotangents) {
    if (opx.hasInput(missing.first)) continue;
    const popart::Shape &shape = missing.second.shape();
    const std::vector<size_t> sizes(shape.begin(), shape.end());
    found[static_cast<size_t>(missing.first)] = opx.getConst(poplar_type(missing.second), sizes, 0.0, "no gradient");
  }
  return found;
}

inline void set_outputs(const popart::popx::Opx &opx, const std::vector<poplar::Tensor> &made) {
  for (size_t o = 0; o < made.size(); ++o) {
    if (opx.hasOutput(static_cast<int>(o))) opx.setOutTensor(static_cast<int>(o), made[o]);
  }
}

/* Writes the only output over an input, which it then aliases; a tensor whose elements share memory is left alone. */
inline void set_in_place(const popart::popx::Opx &opx, poplar::program::Sequence &prog, int input,
                         const std::vector<poplar::Tensor> &made) {
  const poplar::Tensor &place = opx.getInTensor(input);
  if (!place.isParallelWriteable()) return set_outputs(opx, made);
  prog.add(poplar::program::Copy(made[0], place, false, opx.debugContext("in place")));
  opx.setOutTensor(0, place);
}

}  // namespace ipu
}  // namespace opc

#endif /* OPC_ADAPTERS_POPART_H */
