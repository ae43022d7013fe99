/* An op as its TensorRT plugins see it, and what they drive its generated code by; dtypes as TensorRT numbers them. */
#ifndef OPC_ADAPTERS_TENSORRT_OP_H
#define OPC_ADAPTERS_TENSORRT_OP_H

#include <stdint.h>

#include <initializer_list>

#include "NvInferRuntime.h"
#include "opc/core/tensor.h"
#include "opc/cuda/abi.h"

namespace opc {
namespace trt {

/* The most inputs and outputs of an op, and the most type variables. */
enum : int32_t { max_operands = 32, max_variables = 8, max_rank = nvinfer1::Dims::MAX_DIMS };

/* An operand's element type: of those in `dtypes`, and the same for all operands of one type variable (-1: of none); or the type that
 * sums of that are in. */
struct Operand {
  const char *name;
  bool optional;
  int32_t variable;
  bool accumulated;
  uint32_t dtypes;
};

/* How an attribute's values are stored in the struct: int64_t, double, or an int32_t that is 0 or 1. */
enum Kind { integer_kind, real_kind, flag_kind };

inline size_t size_of(Kind kind) { return kind == flag_kind ? sizeof(int32_t) : sizeof(int64_t); }

/* Goes through the members of an op's attribute struct, in order; generated code calls these. */
class Visitor {
 public:
  virtual ~Visitor() = default;
  /* A number, or a list of so many. */
  virtual void values(const char *name, Kind kind, void *data, int32_t count, bool required) = 0;
  /* A list of any length. */
  virtual void list(const char *name, Kind kind, const void *&data, int64_t &length, bool required) = 0;
  virtual void text(const char *name, const char *&value, bool required) = 0;
  /* One of some texts, by its position. */
  virtual void choice(const char *name, int64_t &position, const char *const *texts, int32_t count, bool required) = 0;

  /* A list whose elements have this type. */
  template <typename T>
  void list_of(const char *name, Kind kind, const T *&data, int64_t &length, bool required) {
    const void *elements = data;
    list(name, kind, elements, length, required);
    data = static_cast<const T *>(elements);
  }
};

/* A number, where there is no expression. */
struct Size {
  const nvinfer1::IDimensionExpr *expression;
  int64_t number;

  bool known() const { return expression == nullptr; }
};

/* Makes the sizes of outputs of those of inputs, step by step; generated code calls these by the op's shape rules. */
class Shapes {
 public:
  virtual ~Shapes() = default;

  /* Inputs, axis by axis; steps of an absent one do nothing. */
  virtual void operand(int32_t index, int32_t fixed, bool at_least) = 0;
  virtual void place(const char *axis, int64_t given, int32_t first, int32_t last, bool adds = false) = 0;
  virtual void next_dim(const char *name) = 0;
  virtual void next_group(const char *name, int64_t length) = 0;
  virtual void list(const char *axes, const int64_t *given, int64_t length) = 0;
  virtual void permute(const char *axes, const int64_t *given, int64_t length) = 0;
  virtual void next_among(const char *name, const char *axes, bool listed) = 0;
  virtual void next_around(const char *name, const char *axes, bool keeps) = 0;
  virtual void next_permuted(const char *name, const char *axes) = 0;
  virtual void next_apart(const char *name, std::initializer_list<const char *> axes) = 0;
  virtual void next_at(const char *name, const char *axis) = 0;
  virtual void skip() = 0;
  virtual int64_t rest(int32_t after, std::initializer_list<const char *> groups = {}) const = 0;
  virtual int64_t up_to(const char *axis, int32_t before, int32_t after) const = 0;
  virtual int64_t same(const char *name, int32_t after) const = 0;

  /* Sizes, and arithmetic that rounds to minus infinity. */
  virtual void broadcast(const char *name, std::initializer_list<const char *> sources) = 0;
  virtual void derive(const char *name, Size size) = 0;
  virtual Size number(int64_t value) const = 0;
  virtual Size dim(const char *name) = 0;
  virtual Size points(const char *name) = 0;
  virtual Size add(Size a, Size b) = 0;
  virtual Size subtract(Size a, Size b) = 0;
  virtual Size multiply(Size a, Size b) = 0;
  virtual Size floor_divide(Size a, Size b) = 0;
  virtual Size modulo(Size a, Size b) = 0;
  virtual Size minimum(Size a, Size b) = 0;

  /* Outputs. */
  virtual void start() = 0;
  virtual void append(Size size) = 0;
  virtual void append_group(const char *name) = 0;
  virtual void append_mixed(const char *rest, const char *own, const char *axes) = 0;
  virtual void append_around(const char *rest, const char *axes, bool keeps) = 0;
  virtual void append_permuted(const char *name, const char *axes) = 0;
  virtual void append_apart(const char *rest, std::initializer_list<const char *> axes, std::initializer_list<Size> sizes) = 0;
};

/* What plugins need to know of an op. `attributes` is the struct of the C ABI. */
struct Op {
  const char *name;
  const char *static_name, *dynamic_name, *plugin_name, *plugin_namespace;
  uint64_t signature; /* of the attributes: what is serialised is read by the same signature alone */
  int32_t inputs, outputs;
  const Operand *operands; /* inputs, then outputs */
  size_t attributes_size;
  void (*defaults)(void *attributes);
  void (*visit)(Visitor &visitor, void *attributes);
  void (*bind)(const void *attributes, dtype *variables); /* the type variables that attributes bind */
  void (*shapes)(Shapes &s, const void *attributes);
  int32_t (*infer)(const DLTensor *const *inputs, const void *attributes, opc_tensor_type *outputs, const opc_cuda_context *context);
  int32_t (*run)(const DLTensor *const *inputs, DLTensor *const *outputs, const void *attributes, const opc_cuda_context *context);
  int64_t *(*status)(); /* where kernels write what they find in data, on the current device; null where that can't be had */
};

/* ---- dtypes ---- */

/* TensorRT 8.6 has none behind this. */
constexpr int32_t last_of_8_6 = 6;

inline bool has_number(int32_t number) { return NV_TENSORRT_MAJOR >= 10 || number <= last_of_8_6; }

constexpr dtype_number<int32_t> dtype_numbers[] = {
#define OPC_ROW(name, number) {dtype_##name, number},
    OPC_TENSORRT_DTYPES(OPC_ROW)
#undef OPC_ROW
};

inline dtype dtype_of(nvinfer1::DataType type) {
  const int32_t number = static_cast<int32_t>(type);
  return has_number(number) ? element_of(dtype_numbers, number) : dtype_unknown;
}

/* False for a dtype that this TensorRT has no tensors of. */
inline bool to_tensorrt(dtype element, nvinfer1::DataType &type) {
  const int32_t number = number_of(dtype_numbers, element, int32_t{-1});
  if (number >= 0) type = static_cast<nvinfer1::DataType>(number);
  return number >= 0 && has_number(number);
}

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_OP_H */
