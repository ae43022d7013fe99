/* What a generated custom op of RKNN's C runtime is made of: callbacks on the board's processor, over the kernel C ABI of opc/abi.h.
 *
 * The runtime hands an op tensors in float32 where they are floating, with the axes of the ONNX model. A refused call is reported on
 * standard error, since a callback returns nothing but a number.
 */
#ifndef OPC_ADAPTERS_RKNN_H
#define OPC_ADAPTERS_RKNN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opc/abi.h"
#include "opc/adapters/blocks.h"
#include "opc/adapters/rknn_api.h"
#include "opc/core/tensor.h"

/* Runs a kernel's loop on the library's own threads, since RKNN lends none. */
extern "C" void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);

namespace opc {
namespace rknn {

/* The most operands an op may have on one side. */
constexpr uint32_t max_operands = 32;

/* A node's attributes, read over defaults. What lists and texts point to lives as long as this object. */
class Reader {
 public:
  Reader(rknn_custom_op_context *context, const char *op) : context_(context), op_(op) {}
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  /* What is wrong with an attribute; empty when all are right. */
  const char *message() const { return message_; }

  template <class T>
  void read(const char *name, T *out, bool required) {
    rknn_custom_op_attr a;
    if (find(name, &a, required) && !element(a, 0, out)) refuse(name);
  }

  /* A list of `length`. */
  template <class T>
  void read(const char *name, T *out, int64_t length, bool required) {
    rknn_custom_op_attr a;
    if (!find(name, &a, required)) return;
    bool right = a.n_elems == length;
    for (uint32_t i = 0; right && i < a.n_elems; ++i) right = element(a, i, &out[i]);
    if (!right) refuse(name);
  }

  /* A list of any length. */
  template <class T>
  void read(const char *name, const T **out, int64_t *length, bool required) {
    rknn_custom_op_attr a;
    if (!find(name, &a, required)) return;
    T *list = kept_.take<T>(a.n_elems);
    bool right = list != nullptr;
    for (uint32_t i = 0; right && i < a.n_elems; ++i) right = element(a, i, &list[i]);
    if (!right) return refuse(name);
    *out = list;
    *length = a.n_elems;
  }

  /* One of `values`, by its position. A text that is none of them goes to the kernel, which refuses it. */
  void read_choice(const char *name, int64_t *out, const char *const *values, bool required) {
    const char *text = nullptr;
    read(name, &text, required);
    if (text == nullptr) return;
    for (*out = 0; values[*out] != nullptr; ++*out)
      if (strcmp(values[*out], text) == 0) return;
    *out = -1;
  }

  /* A dtype, by its position among opc's; a model holds ONNX's number of it. */
  void read_dtype(const char *name, int64_t *out, bool required) {
    int64_t number = -1;
    read(name, &number, required);
    if (number < 0) return;
    switch (number) {
#define OPC_CASE(name, number, ...) \
  case number: *out = dtype_##name; return;
      OPC_ONNX_DTYPES(OPC_CASE)
#undef OPC_CASE
      default: *out = -1;
    }
  }

 private:
  bool find(const char *name, rknn_custom_op_attr *a, bool required) {
    memset(a, 0, sizeof *a);
    rknn_custom_op_get_op_attr(context_, name, a);
    const bool found = a->n_elems != 0 && a->data != nullptr;
    if (!found && required && message_[0] == '\0') snprintf(message_, sizeof message_, "%s: attribute '%s' is required", op_, name);
    return found;
  }

  void refuse(const char *name) {
    if (message_[0] == '\0') snprintf(message_, sizeof message_, "%s: attribute '%s' has another type", op_, name);
  }

  static bool element(const rknn_custom_op_attr &a, uint32_t i, int64_t *out) {
    if (a.dtype == RKNN_TENSOR_INT64) return *out = static_cast<const int64_t *>(a.data)[i], true;
    if (a.dtype == RKNN_TENSOR_INT32) return *out = static_cast<const int32_t *>(a.data)[i], true;
    return false;
  }

  static bool element(const rknn_custom_op_attr &a, uint32_t i, int32_t *out) {
    int64_t value;
    if (!element(a, i, &value)) return false;
    return *out = value != 0, true;
  }

  static bool element(const rknn_custom_op_attr &a, uint32_t i, double *out) {
    if (a.dtype == RKNN_TENSOR_FLOAT32) return *out = static_cast<const float *>(a.data)[i], true;
    int64_t value;
    if (!element(a, i, &value)) return false;
    return *out = static_cast<double>(value), true;
  }

  /* A text is a list of bytes, in quotes where the runtime wraps it. */
  bool element(const rknn_custom_op_attr &a, uint32_t, const char **out) {
    if (a.dtype != RKNN_TENSOR_UINT8 && a.dtype != RKNN_TENSOR_INT8) return false;
    const char *from = static_cast<const char *>(a.data);
    size_t length = strnlen(from, a.n_elems);
    if (length >= 2 && from[0] == '"' && from[length - 1] == '"') {
      from += 1;
      length -= 2;
    }
    char *text = kept_.take<char>(length);
    if (text == nullptr) return false;
    memcpy(text, from, length);
    return *out = text, true;
  }

  rknn_custom_op_context *context_;
  const char *op_;
  Blocks kept_;
  char message_[256] = "";
};

/* The op of one library. `A` is the family's attribute struct. */
template <class A>
struct Op {
  const char *name;
  uint32_t inputs, outputs;
  void (*attributes)(Reader &, A &);
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
};

inline int refused(const char *message) {
  fprintf(stderr, "%s\n", message);
  return RKNN_ERR_PARAM_INVALID;
}

constexpr dtype_number<int32_t> dtype_numbers[] = {
#define OPC_ROW(name, number) {dtype_##name, number},
    OPC_RKNN_DTYPES(OPC_ROW)
#undef OPC_ROW
};

inline DLDataType dtype_of(rknn_tensor_type type) { return dlpack_of(element_of(dtype_numbers, static_cast<int32_t>(type))); }

/* A tensor of the runtime as the kernel takes it. */
struct Tensor {
  int64_t shape[OPC_MAX_RANK];
  DLTensor dl;

  void set(const rknn_custom_op_tensor &from) {
    dl = {};
    dl.data = static_cast<char *>(from.mem.virt_addr) + from.mem.offset;
    dl.device = {kDLCPU, 0};
    dl.ndim = static_cast<int32_t>(from.attr.n_dims);
    dl.dtype = dtype_of(from.attr.type);
    for (uint32_t i = 0; i < from.attr.n_dims; ++i) shape[i] = from.attr.dims[i];
    dl.shape = shape;
  }
};

inline int64_t size_of(const int64_t *shape, int32_t rank) {
  int64_t size = 1;
  for (int32_t i = 0; i < rank; ++i) size *= shape[i];
  return size;
}

/* The callback `compute`. */
template <class A>
int compute(const Op<A> &op, const A &defaults, rknn_custom_op_context *context, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
            rknn_custom_op_tensor *outputs, uint32_t n_outputs) {
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  if (n_inputs > op.inputs || n_outputs != op.outputs) {
    snprintf(message, sizeof message, "%s: %u inputs and %u outputs, where it has %u and %u", op.name, n_inputs, n_outputs, op.inputs,
             op.outputs);
    return refused(message);
  }
  Reader reader(context, op.name);
  A attributes = defaults;
  op.attributes(reader, attributes);
  if (reader.message()[0] != '\0') return refused(reader.message());

  const opc_context call = {opc_host_parallel_for, nullptr, message, sizeof message};
  Tensor in[max_operands], out[max_operands];
  const DLTensor *given[max_operands] = {};
  DLTensor *made[max_operands] = {};
  for (uint32_t i = 0; i < n_inputs; ++i) {
    if (inputs[i].attr.fmt == RKNN_TENSOR_NHWC || inputs[i].attr.fmt == RKNN_TENSOR_NC1HWC2) {
      snprintf(message, sizeof message, "%s: input %u does not have the axes of the model", op.name, i);
      return refused(message);
    }
    in[i].set(inputs[i]);
    given[i] = &in[i].dl;
  }
  opc_tensor_type types[max_operands];
  if (op.infer(given, &attributes, types, &call) != OPC_OK) return refused(message);
  for (uint32_t i = 0; i < n_outputs; ++i) {
    /* The runtime may write a shape in another way: no axes as one of size 1. */
    out[i].set(outputs[i]);
    const DLDataType dtype = out[i].dl.dtype;
    if (size_of(types[i].shape, types[i].ndim) != size_of(out[i].shape, out[i].dl.ndim) || dtype.code != types[i].dtype.code ||
        dtype.bits != types[i].dtype.bits) {
      snprintf(message, sizeof message, "%s: output %u has another size or type in the model", op.name, i);
      return refused(message);
    }
    memcpy(out[i].shape, types[i].shape, sizeof types[i].shape);
    out[i].dl.ndim = types[i].ndim;
    made[i] = &out[i].dl;
  }
  return op.kernel(given, made, &attributes, &call) == OPC_OK ? RKNN_SUCC : refused(message);
}

/* The description that the runtime takes. */
inline rknn_custom_op describe(const char *op_type, decltype(rknn_custom_op::compute) compute) {
  rknn_custom_op op;
  memset(&op, 0, sizeof op);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  strncpy(op.op_type, op_type, sizeof op.op_type - 1);
  op.compute = compute;
  return op;
}

}  // namespace rknn
}  // namespace opc

#endif /* OPC_ADAPTERS_RKNN_H */
