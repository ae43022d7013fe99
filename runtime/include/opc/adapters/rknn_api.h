/* The part of RKNN's C interface for custom ops that generated code uses.
 *
 * The vendor's headers are taken where they are: with RKNN_API_ROOT set while opc builds, -DOPC_RKNN_HEADERS includes
 * <rknn_custom_op.h>. Otherwise the same is declared here anew, after the public documentation. The assertions below hold for both,
 * so that a build with the vendor's headers checks these declarations.
 */
#ifndef OPC_ADAPTERS_RKNN_API_H
#define OPC_ADAPTERS_RKNN_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(OPC_RKNN_HEADERS)
#include <rknn_custom_op.h>
#else

#define RKNN_MAX_DIMS 16
#define RKNN_MAX_NAME_LEN 256

#define RKNN_SUCC 0
#define RKNN_ERR_FAIL -1
#define RKNN_ERR_PARAM_INVALID -5

extern "C" {

typedef uint64_t rknn_context;

typedef enum _rknn_tensor_type {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16 = 1,
  RKNN_TENSOR_INT8 = 2,
  RKNN_TENSOR_UINT8 = 3,
  RKNN_TENSOR_INT16 = 4,
  RKNN_TENSOR_UINT16 = 5,
  RKNN_TENSOR_INT32 = 6,
  RKNN_TENSOR_UINT32 = 7,
  RKNN_TENSOR_INT64 = 8,
  RKNN_TENSOR_BOOL = 9
} rknn_tensor_type;

typedef enum _rknn_tensor_format {
  RKNN_TENSOR_NCHW = 0,
  RKNN_TENSOR_NHWC = 1,
  RKNN_TENSOR_NC1HWC2 = 2,
  RKNN_TENSOR_UNDEFINED = 3
} rknn_tensor_format;

typedef struct _rknn_tensor_attr {
  uint32_t index;
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_elems;
  uint32_t size; /* in bytes */
  rknn_tensor_format fmt;
  rknn_tensor_type type;
  int qnt_type;
  int8_t fl;
  int32_t zp;
  float scale;
  uint32_t w_stride;
  uint32_t size_with_stride;
  uint8_t pass_through;
  uint32_t h_stride;
} rknn_tensor_attr;

typedef struct _rknn_tensor_memory {
  void *virt_addr; /* the tensor begins at `offset` bytes from here */
  uint64_t phys_addr;
  int32_t fd;
  int32_t offset;
  uint32_t size;
  uint32_t flags;
  void *priv_data;
} rknn_tensor_mem;

typedef enum _rknn_target_type { RKNN_TARGET_TYPE_CPU = 1, RKNN_TARGET_TYPE_GPU = 2 } rknn_target_type;

typedef struct _rknn_gpu_op_context {
  void *cl_context;
  void *cl_command_queue;
  void *cl_kernel;
} rknn_gpu_op_context;

typedef struct _rknn_custom_op_context {
  rknn_target_type target;
  uintptr_t internal_ctx;
  rknn_gpu_op_context gpu_ctx;
  void *priv_data;
} rknn_custom_op_context;

typedef struct _rknn_custom_op_tensor {
  rknn_tensor_attr attr;
  rknn_tensor_mem mem;
} rknn_custom_op_tensor;

/* An attribute of a node: `n_elems` of `dtype` at `data`; none where the node has no such attribute. */
typedef struct _rknn_custom_op_attr {
  char name[RKNN_MAX_NAME_LEN];
  rknn_tensor_type dtype;
  uint32_t n_elems;
  void *data;
} rknn_custom_op_attr;

typedef struct _rknn_custom_op {
  uint32_t version;
  rknn_target_type target;
  char op_type[RKNN_MAX_NAME_LEN];
  char cl_kernel_name[RKNN_MAX_NAME_LEN];
  char *cl_kernel_source;
  uint64_t cl_source_size;
  char cl_build_options[RKNN_MAX_NAME_LEN];
  int (*init)(rknn_custom_op_context *, rknn_custom_op_tensor *, uint32_t, rknn_custom_op_tensor *, uint32_t);
  int (*prepare)(rknn_custom_op_context *, rknn_custom_op_tensor *, uint32_t, rknn_custom_op_tensor *, uint32_t);
  int (*compute)(rknn_custom_op_context *, rknn_custom_op_tensor *, uint32_t, rknn_custom_op_tensor *, uint32_t);
  int (*compute_native)(rknn_custom_op_context *, rknn_custom_op_tensor *, uint32_t, rknn_custom_op_tensor *, uint32_t);
  int (*destroy)(rknn_custom_op_context *);
} rknn_custom_op;

int rknn_register_custom_ops(rknn_context context, rknn_custom_op *ops, uint32_t count);
void rknn_custom_op_get_op_attr(rknn_custom_op_context *context, const char *name, rknn_custom_op_attr *attribute);

} /* extern "C" */

#endif /* OPC_RKNN_HEADERS */

static_assert(offsetof(rknn_tensor_attr, fmt) == 336 && sizeof(rknn_tensor_attr) == 376, "rknn_tensor_attr");
static_assert(offsetof(rknn_tensor_mem, offset) == sizeof(void *) + 12, "rknn_tensor_mem");
static_assert(offsetof(rknn_custom_op_tensor, mem) == 376, "rknn_custom_op_tensor");
static_assert(offsetof(rknn_custom_op_attr, data) == 264, "rknn_custom_op_attr");
static_assert(offsetof(rknn_custom_op, cl_kernel_source) == 520, "rknn_custom_op");

#endif /* OPC_ADAPTERS_RKNN_API_H */
