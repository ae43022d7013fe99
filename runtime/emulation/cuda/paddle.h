/* Before an op's library for Paddle on GPUs, where there is none: Paddle's tensors in host memory count as a GPU's. */
#ifndef OPC_EMULATION_CUDA_PADDLE_H
#define OPC_EMULATION_CUDA_PADDLE_H

#include "paddle/common/enforce.h"
#include "paddle/common/errors.h"
#include "paddle/phi/api/ext/op_meta_info.h"
#include "paddle/phi/api/include/api.h"

#include "counted.h"

#define OPC_PADDLE_STREAM(tensor) &emulated_stream
#define is_gpu is_cpu

#endif /* OPC_EMULATION_CUDA_PADDLE_H */
