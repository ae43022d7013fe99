/* Element types, shapes and memory layout of the tensors of a call. */
#ifndef OPC_TENSOR_H
#define OPC_TENSOR_H

#include "opc/status.h"

namespace opc {

/* The element types, in the order of the compiler's own list. */
enum dtype : int32_t {
  dtype_float16,
  dtype_bfloat16,
  dtype_float32,
  dtype_float64,
  dtype_int8,
  dtype_int16,
  dtype_int32,
  dtype_int64,
  dtype_uint8,
  dtype_bool,
  /* Of these no operand is; they have names in messages. */
  dtype_complex64,
  dtype_complex128,
  dtype_unknown = -1
};

static inline dtype dtype_of(DLDataType type) {
  if (type.lanes != 1) return dtype_unknown;
  switch (type.code << 8 | type.bits) {
    case kDLFloat << 8 | 16: return dtype_float16;
    case kDLBfloat << 8 | 16: return dtype_bfloat16;
    case kDLFloat << 8 | 32: return dtype_float32;
    case kDLFloat << 8 | 64: return dtype_float64;
    case kDLInt << 8 | 8: return dtype_int8;
    case kDLInt << 8 | 16: return dtype_int16;
    case kDLInt << 8 | 32: return dtype_int32;
    case kDLInt << 8 | 64: return dtype_int64;
    case kDLUInt << 8 | 8: return dtype_uint8;
    case kDLBool << 8 | 8: return dtype_bool;
    case kDLComplex << 8 | 64: return dtype_complex64;
    case kDLComplex << 8 | 128: return dtype_complex128;
    default: return dtype_unknown;
  }
}

static inline dtype dtype_of(const DLTensor &tensor) { return dtype_of(tensor.dtype); }

static inline const char *dtype_name(dtype type) {
  static const char *const names[] = {"float16", "bfloat16", "float32", "float64", "int8",      "int16",
                                      "int32",   "int64",    "uint8",   "bool",    "complex64", "complex128"};
  return type == dtype_unknown ? "that opc does not know" : names[type];
}

static inline int64_t itemsize(dtype type) {
  static const int8_t sizes[] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 1, 8, 16};
  return sizes[type];
}

/* The type values of an element type are computed in: float32 for the 16-bit floats, else itself. */
static inline dtype compute_dtype(dtype type) {
  return type == dtype_float16 || type == dtype_bfloat16 ? dtype_float32 : type;
}

/* The type acc(T) stands for. */
static inline dtype accumulator_dtype(dtype type) {
  return type == dtype_float64 ? type : type <= dtype_float32 ? dtype_float32 : dtype_int64;
}

static inline void set_type(opc_tensor_type &type, dtype element) {
  static const DLDataType types[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1},
                                     {kDLInt, 8, 1},    {kDLInt, 16, 1},    {kDLInt, 32, 1},   {kDLInt, 64, 1},
                                     {kDLUInt, 8, 1},   {kDLBool, 8, 1}};
  type.dtype = types[element];
}

/* The sizes of an axis group. */
struct extents {
  int32_t rank;
  int64_t size[OPC_MAX_RANK];
};

/* The number of points of a group: 1 for an empty one. */
static inline int64_t count(const extents &group) {
  int64_t product = 1;
  for (int32_t i = 0; i < group.rank; ++i) product *= group.size[i];
  return product;
}

static inline int64_t element_count(const opc_tensor_type &type) {
  int64_t product = 1;
  for (int32_t i = 0; i < type.ndim; ++i) product *= type.shape[i];
  return product;
}

static inline char *data_of(const DLTensor &tensor) { return static_cast<char *>(tensor.data) + tensor.byte_offset; }

}  // namespace opc
#endif  // OPC_TENSOR_H
