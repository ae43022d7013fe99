/* Element types, shapes and memory layout of the tensors of a call. */
#ifndef OPC_CORE_TENSOR_H
#define OPC_CORE_TENSOR_H

#include "opc/core/dtypes.h"
#include "opc/core/status.h"

namespace opc {

/* The element types, in the order of the compiler's own list. */
enum dtype : int32_t {
#define OPC_ENUMERATOR(name, ...) dtype_##name,
  OPC_DTYPES(OPC_ENUMERATOR)
#undef OPC_ENUMERATOR
  dtype_count,
  /* Of these no operand is; they have names in messages. */
  dtype_complex64 = dtype_count,
  dtype_complex128,
  dtype_unknown = -1
};

/* What is known of an element type. */
struct dtype_row {
  const char *name;
  DLDataType dlpack;
  dtype computed; /* the type values of this type are computed in: float32 for floating types of fewer bits, else itself */
  dtype accumulated; /* the type acc(T) stands for */
};

static inline const dtype_row &row_of(dtype type) {
  static constexpr dtype_row rows[] = {
#define OPC_ROW(name, code, bits, computed, accumulated) {#name, {code, bits, 1}, dtype_##computed, dtype_##accumulated},
      OPC_DTYPES(OPC_ROW)
#undef OPC_ROW
      {"complex64", {kDLComplex, 64, 1}, dtype_complex64, dtype_complex64},
      {"complex128", {kDLComplex, 128, 1}, dtype_complex128, dtype_complex128},
  };
  return rows[type];
}

__attribute__((noinline)) static inline dtype dtype_of(DLDataType type) {
  if (type.lanes != 1) return dtype_unknown;
  switch (type.code << 8 | type.bits) {
#define OPC_CASE(name, code, bits, ...) \
  case code << 8 | bits: return dtype_##name;
    OPC_DTYPES(OPC_CASE)
#undef OPC_CASE
    case kDLComplex << 8 | 64: return dtype_complex64;
    case kDLComplex << 8 | 128: return dtype_complex128;
    default: return dtype_unknown;
  }
}

static inline dtype dtype_of(const DLTensor &tensor) { return dtype_of(tensor.dtype); }

static inline const char *dtype_name(dtype type) { return type == dtype_unknown ? "that opc does not know" : row_of(type).name; }

/* In DLPack's terms; an unknown type is an opaque one, which kernels refuse. */
static inline DLDataType dlpack_of(dtype type) { return type == dtype_unknown ? DLDataType{3, 0, 1} : row_of(type).dlpack; }

/* What a framework calls a dtype: a table of these has those that it knows. */
template <class Number>
struct dtype_number {
  dtype element;
  Number number;
};

/* The dtype of a framework's number, dtype_unknown of one that is not in its table; and the number of a dtype, or `none`. */
template <class Number, size_t Count>
constexpr dtype element_of(const dtype_number<Number> (&table)[Count], Number number) {
  for (const dtype_number<Number> &row : table)
    if (row.number == number) return row.element;
  return dtype_unknown;
}
template <class Number, size_t Count>
constexpr Number number_of(const dtype_number<Number> (&table)[Count], dtype element, Number none) {
  for (const dtype_number<Number> &row : table)
    if (row.element == element) return row.number;
  return none;
}

/* Bytes of an element; one of fewer than 8 bits has a byte of its own. */
static inline int64_t itemsize(DLDataType type) { return (type.bits + 7) / 8; }
static inline int64_t itemsize(dtype type) { return itemsize(row_of(type).dlpack); }

static inline dtype compute_dtype(dtype type) { return row_of(type).computed; }

static inline dtype accumulator_dtype(dtype type) { return row_of(type).accumulated; }

static inline void set_type(opc_tensor_type &type, dtype element) { type.dtype = row_of(element).dlpack; }

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

/* Sets the strides of a tensor, of which `strides` NULL means contiguous; returns the number of its elements. */
static inline int64_t find_strides(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t *found) {
  int64_t contiguous = 1;
  for (int32_t a = ndim - 1; a >= 0; --a) {
    found[a] = strides != nullptr ? strides[a] : contiguous;
    contiguous *= shape[a];
  }
  return contiguous;
}

static inline char *data_of(const DLTensor &tensor) { return static_cast<char *>(tensor.data) + tensor.byte_offset; }

}  // namespace opc
#endif  // OPC_CORE_TENSOR_H
