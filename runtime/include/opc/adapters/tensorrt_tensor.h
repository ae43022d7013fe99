/* Tensors and the current device, as plugins for TensorRT have them. */
#ifndef OPC_ADAPTERS_TENSORRT_TENSOR_H
#define OPC_ADAPTERS_TENSORRT_TENSOR_H

#include <algorithm>
#include <vector>

#include "opc/adapters/arena.h"
#include "opc/adapters/tensorrt_op.h"

#if !defined(OPC_TENSORRT_DECLARATIONS)
#include <cuda_runtime_api.h>
#endif

namespace opc {
namespace trt {

/* Type and sizes of a tensor. */
struct Tensor {
  dtype element;
  int32_t rank;
  int64_t sizes[max_rank];

  int64_t bytes() const {
    int64_t count = element == dtype_unknown ? 0 : itemsize(element);
    for (int32_t i = 0; i < rank; ++i) count *= sizes[i];
    return count;
  }
};

inline Tensor tensor_of(nvinfer1::DataType type, const nvinfer1::Dims &dims) {
  Tensor t{dtype_of(type), dims.nbDims, {}};
  for (int32_t i = 0; i < t.rank && i < max_rank; ++i) t.sizes[i] = dims.d[i];
  return t;
}

/* The device that TensorRT has made the current one. */
inline int32_t current_device() {
#if defined(OPC_TENSORRT_DECLARATIONS)
  return 0;
#else
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : 0;
#endif
}

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_TENSOR_H */
