/* The part of DLPack's C ABI that kernels use (DLPack 1.x: DLDevice, DLDataType, DLTensor), declared here so that a kernel
 * compiles with no other header. The layout is fixed by https://github.com/dmlc/dlpack and does not change between versions.
 * A file that includes DLPack's own header first keeps that one's declarations. */
#ifndef OPC_CORE_DLPACK_H
#define OPC_CORE_DLPACK_H
#ifndef DLPACK_DLPACK_H_

#include <stdint.h>

typedef struct DLDevice {
  int32_t device_type; /* kDLCPU = 1 */
  int32_t device_id;
} DLDevice;

enum { kDLCPU = 1, kDLCUDA = 2 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL means contiguous */
  uint64_t byte_offset;
} DLTensor;

#endif /* DLPACK_DLPACK_H_ */
#endif /* OPC_CORE_DLPACK_H */
