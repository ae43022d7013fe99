/* Tensors, the current device, and workspace, as plugins for TensorRT have them. */
#ifndef OPC_ADAPTERS_TENSORRT_TENSOR_H
#define OPC_ADAPTERS_TENSORRT_TENSOR_H

#include <algorithm>
#include <vector>

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

/* Workspace, lent piece by piece in the order of a stream; a piece that is given back is lent again. */
class Arena {
 public:
  explicit Arena(void *memory) : memory_(static_cast<char *>(memory)) {}

  int64_t most = 0; /* the most bytes that were lent at once */

  static void *allocate(void *arena, int64_t bytes, void *) { return static_cast<Arena *>(arena)->lend(bytes); }
  static void release(void *arena, void *memory, int64_t, void *) { static_cast<Arena *>(arena)->take(memory); }

 private:
  struct Piece {
    int64_t begin, end;
  };

  void *lend(int64_t bytes) {
    if (memory_ == nullptr) return nullptr;
    const int64_t begin = pieces_.empty() ? 0 : pieces_.back().end, end = begin + (bytes + 255) / 256 * 256;
    pieces_.push_back({begin, end});
    most = std::max(most, end);
    return memory_ + begin;
  }
  void take(const void *memory) {
    const int64_t begin = static_cast<const char *>(memory) - memory_;
    pieces_.erase(std::remove_if(pieces_.begin(), pieces_.end(), [begin](const Piece &p) { return p.begin == begin; }), pieces_.end());
  }

  char *memory_;
  std::vector<Piece> pieces_;
};

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_TENSOR_H */
