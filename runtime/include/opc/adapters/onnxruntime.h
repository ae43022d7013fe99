/* What a generated ONNX Runtime custom-op library needs: ONNX Runtime's C interface as far as it is used, and the adapter between it
 * and the kernel C ABI of opc/abi.h, and for CUDA's provider that of opc/cuda/abi.h.
 *
 * No header of ONNX Runtime is included, for it ships none with its packages. `OrtApi` is a table of function pointers that only ever
 * grows at its end, so that a function is known by its index for good; `OrtCustomOp` is a struct of function pointers that grows
 * likewise, with the version it was written for in its first member. Both are described in ONNX Runtime's onnxruntime_c_api.h. The
 * library requests API version 18, the first that has all of the below.
 */
#ifndef OPC_ADAPTERS_ONNXRUNTIME_H
#define OPC_ADAPTERS_ONNXRUNTIME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "opc/abi.h"
#include "opc/adapters/blocks.h"
#include "opc/adapters/cuda_library.h"
#include "opc/core/output_axes.h"
#include "opc/core/tensor.h"
#include "opc/cuda/abi.h"

namespace opc::ort {

/* ---- ONNX Runtime's interface ---------------------------------------------------------------------------------------------- */

constexpr uint32_t kApiVersion = 18;

struct Status;
struct SessionOptions;
struct CustomOpDomain;
struct KernelInfo;
struct KernelContext;
struct ShapeInferContext;
struct TypeAndShape;
struct Value;
struct OpAttr;
struct Allocator;
struct MemoryInfo;

enum ErrorCode { kFail = 1, kInvalidArgument = 2, kRuntimeException = 6 };
enum Characteristic { kRequired = 0, kOptional = 1 };
enum OpAttrType { kAttrInt = 1, kAttrInts = 2, kAttrFloat = 3, kAttrFloats = 4, kAttrString = 5 };

/* Element types, numbered as in ONNX's TensorProto.DataType. */
enum ElementType {
  kUndefined = 0,
#define OPC_ENUMERATOR(name, number, enumerator) k##enumerator = number,
  OPC_ONNX_DTYPES(OPC_ENUMERATOR)
#undef OPC_ENUMERATOR
};

struct Api {
  void (*functions[1])();
};

struct ApiBase {
  const Api *(*get_api)(uint32_t version);
  const char *(*get_version)();
};

/* One function of the table: its index and its type. */
template <int Index, typename Signature>
struct Entry;

template <int Index, typename Result, typename... Arguments>
struct Entry<Index, Result(Arguments...)> {
  static Result call(const Api *api, Arguments... arguments) {
    return reinterpret_cast<Result (*)(Arguments...)>(api->functions[Index])(arguments...);
  }
};

using CreateStatus = Entry<0, Status *(ErrorCode, const char *)>;
using CreateCustomOpDomain = Entry<26, Status *(const char *, CustomOpDomain **)>;
using CustomOpDomainAdd = Entry<27, Status *(CustomOpDomain *, const struct CustomOp *)>;
using AddCustomOpDomain = Entry<28, Status *(SessionOptions *, CustomOpDomain *)>;
using GetTensorMutableData = Entry<51, Status *(Value *, void **)>;
using CreateTypeAndShape = Entry<57, Status *(TypeAndShape **)>;
using SetElementType = Entry<58, Status *(TypeAndShape *, ElementType)>;
using SetDimensions = Entry<59, Status *(TypeAndShape *, const int64_t *, size_t)>;
using GetElementType = Entry<60, Status *(const TypeAndShape *, ElementType *)>;
using GetDimensionsCount = Entry<61, Status *(const TypeAndShape *, size_t *)>;
using GetDimensions = Entry<62, Status *(const TypeAndShape *, int64_t *, size_t)>;
using GetSymbolicDimensions = Entry<63, Status *(const TypeAndShape *, const char **, size_t)>;
using GetTensorTypeAndShape = Entry<65, Status *(const Value *, TypeAndShape **)>;
using MemoryInfoGetId = Entry<72, Status *(const MemoryInfo *, int *)>;
using AllocatorAlloc = Entry<75, Status *(Allocator *, size_t, void **)>;
using AllocatorFree = Entry<76, Status *(Allocator *, void *)>;
using AllocatorGetInfo = Entry<77, Status *(const Allocator *, const MemoryInfo **)>;
using KernelInfoFloat = Entry<85, Status *(const KernelInfo *, const char *, float *)>;
using KernelInfoInt = Entry<86, Status *(const KernelInfo *, const char *, int64_t *)>;
using KernelInfoString = Entry<87, Status *(const KernelInfo *, const char *, char *, size_t *)>;
using GetInputCount = Entry<88, Status *(const KernelContext *, size_t *)>;
using GetInput = Entry<90, Status *(const KernelContext *, size_t, const Value **)>;
using GetOutput = Entry<91, Status *(KernelContext *, size_t, const int64_t *, size_t, Value **)>;
using ReleaseStatus = Entry<93, void(Status *)>;
using ReleaseTypeAndShape = Entry<99, void(TypeAndShape *)>;
using AddSessionConfigEntry = Entry<130, Status *(SessionOptions *, const char *, const char *)>;
using ReleaseAllocator = Entry<132, void(Allocator *)>;
using KernelInfoFloats = Entry<162, Status *(const KernelInfo *, const char *, float *, size_t *)>;
using KernelInfoInts = Entry<163, Status *(const KernelInfo *, const char *, int64_t *, size_t *)>;
using GetGpuComputeStream = Entry<193, Status *(const KernelContext *, void **)>;
using HasSessionConfigEntry = Entry<237, Status *(const SessionOptions *, const char *, int *)>;
using GetSessionConfigEntry = Entry<238, Status *(const SessionOptions *, const char *, char *, size_t *)>;
using InferInputCount = Entry<267, Status *(const ShapeInferContext *, size_t *)>;
using InferInputType = Entry<268, Status *(const ShapeInferContext *, size_t, TypeAndShape **)>;
using InferAttribute = Entry<269, Status *(const ShapeInferContext *, const char *, const OpAttr **)>;
using InferSetOutput = Entry<270, Status *(const ShapeInferContext *, size_t, const TypeAndShape *)>;
using SetSymbolicDimensions = Entry<271, Status *(TypeAndShape *, const char **, size_t)>;
using ReadOpAttr = Entry<272, Status *(const OpAttr *, OpAttrType, void *, size_t, size_t *)>;
using ParallelFor = Entry<274, Status *(const KernelContext *, void (*)(void *, size_t), size_t, size_t, void *)>;
using GetScratchBuffer = Entry<277, Status *(const KernelContext *, const MemoryInfo *, size_t, void **)>;
using KernelInfoGetAllocator = Entry<278, Status *(const KernelInfo *, int memory_type, Allocator **)>;

/* ONNX Runtime's OrtCustomOp, version 18. Members that stay NULL are those it allows to. */
struct CustomOp {
  uint32_t version;
  void *(*create_kernel)(const CustomOp *, const Api *, const KernelInfo *);
  const char *(*get_name)(const CustomOp *);
  const char *(*get_execution_provider_type)(const CustomOp *);
  ElementType (*get_input_type)(const CustomOp *, size_t index);
  size_t (*get_input_count)(const CustomOp *);
  ElementType (*get_output_type)(const CustomOp *, size_t index);
  size_t (*get_output_count)(const CustomOp *);
  void (*kernel_compute)(void *kernel, KernelContext *);
  void (*kernel_destroy)(void *kernel);
  Characteristic (*get_input_characteristic)(const CustomOp *, size_t index);
  Characteristic (*get_output_characteristic)(const CustomOp *, size_t index);
  int (*get_input_memory_type)(const CustomOp *, size_t index);
  int (*get_variadic_input_min_arity)(const CustomOp *);
  int (*get_variadic_input_homogeneity)(const CustomOp *);
  int (*get_variadic_output_min_arity)(const CustomOp *);
  int (*get_variadic_output_homogeneity)(const CustomOp *);
  Status *(*create_kernel_v2)(const CustomOp *, const Api *, const KernelInfo *, void **kernel);
  Status *(*kernel_compute_v2)(void *kernel, KernelContext *);
  Status *(*infer_output_shape)(const CustomOp *, ShapeInferContext *);
  int (*get_start_version)(const CustomOp *);
  int (*get_end_version)(const CustomOp *);
  size_t (*get_may_inplace)(int **input_index, int **output_index);
  void (*release_may_inplace)(int *input_index, int *output_index);
  size_t (*get_alias_map)(int **input_index, int **output_index);
  void (*release_alias_map)(int *input_index, int *output_index);
};

static_assert(sizeof(CustomOp) == 26 * sizeof(void *), "OrtCustomOp has 26 members in API version 18");

/* ---- What a generated library declares -------------------------------------------------------------------------------------- */

constexpr int kMaxOperands = 32;

/* An attribute: where its value lies in the family's attribute struct, and how ONNX carries it. The struct's defaults hold where a node
 * does not give it. */
enum AttributeKind { kInt, kFloat, kBoolean, kEnumeration, kString, kDtype };

struct Attribute {
  const char *name;
  AttributeKind kind;
  size_t offset;
  bool required;
  int length;                /* -1: a scalar; 0: a list of any length, with `length_offset`; n: a list of n */
  size_t length_offset;
  const char *const *values; /* of an enumeration, ending in NULL */
};

/* `scalar`: the spec gives it no axes. */
struct Operand {
  const char *name;
  bool optional;
  bool scalar;
};

using ::opc::Axes;
using ::opc::OutputShape;
using ::opc::Place;
using ::opc::SymbolicShape;

/* One op of a family, by the name of its type and that of its functions. `A` is the family's attribute struct. */
template <typename A>
struct Op {
  const char *type;
  const char *name;
  int version;
  int input_count, output_count;
  const Operand *inputs, *outputs;
  const OutputShape *shapes;
  ptrdiff_t axis_offset; /* of the axis attribute in A, or -1 */
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
  /* Members of A that are -1 where data tells them, and the op that computes them; see onnxruntime_sizes.h. */
  const Op *sizes;
  int told_count;
  const ptrdiff_t *told;
};

template <typename A>
struct Library;

/* One op for one choice of element types: the inputs' types, then the outputs'. */
template <typename A>
struct Overload {
  CustomOp base;
  const Library<A> *library;
  const Op<A> *op;
  const ElementType *types;
};

/* The library: what RegisterCustomOps registers, and a hash of the spec that it is made from. `api` is set then. */
template <typename A>
struct Library {
  const char *family;
  const char *source;
  const char *domain;
  const A *defaults;
  int attribute_count;
  const Attribute *attributes;
  int overload_count;
  const Overload<A> *overloads, *cuda_overloads; /* as many */
  const Api *api;
};

/* ---- Status ------------------------------------------------------------------------------------------------------------------ */

inline Status *error(const Api *api, const char *message) { return CreateStatus::call(api, kInvalidArgument, message); }

/* Drops a status whose failure is an answer and not an error; returns whether it was a success. */
inline bool succeeded(const Api *api, Status *status) {
  if (status == nullptr) return true;
  ReleaseStatus::call(api, status);
  return false;
}

#define OPC_ORT_TRY(expression)                                     \
  do {                                                              \
    if (::opc::ort::Status *status_ = (expression)) return status_; \
  } while (0)

inline Status *status_of(const Api *api, int32_t code, const char *message) {
  if (code == OPC_OK) return nullptr;
  return CreateStatus::call(api, code == OPC_OUT_OF_MEMORY || code == OPC_DEVICE_FAILED ? kRuntimeException : kInvalidArgument, message);
}

/* ---- Element types ----------------------------------------------------------------------------------------------------------- */

constexpr dtype_number<int64_t> dtype_numbers[] = {
#define OPC_ROW(name, number, ...) {dtype_##name, number},
    OPC_ONNX_DTYPES(OPC_ROW)
#undef OPC_ROW
};

inline DLDataType dlpack_type(ElementType type) { return dlpack_of(element_of(dtype_numbers, int64_t{type})); }

}  // namespace opc::ort

#include "opc/adapters/onnxruntime_attributes.h"
#include "opc/adapters/onnxruntime_cuda.h"
#include "opc/adapters/onnxruntime_sizes.h"
#include "opc/adapters/onnxruntime_kernel.h"
#include "opc/adapters/onnxruntime_library.h"

#endif /* OPC_ADAPTERS_ONNXRUNTIME_H */
