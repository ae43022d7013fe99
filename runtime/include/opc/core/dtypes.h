/* The table of dtypes, generated from opc/ir/dtypes.py by `python -m opc.emit.dtypes`; edits are lost. */
#ifndef OPC_CORE_DTYPES_H
#define OPC_CORE_DTYPES_H

/* Every dtype, in the order by which calls number them: X(name, code of DLPack, bits, computed in, accumulated in). */
#define OPC_DTYPES(X)                         \
  X(float16, 2, 16, float32, float32)         \
  X(bfloat16, 4, 16, float32, float32)        \
  X(float32, 2, 32, float32, float32)         \
  X(float64, 2, 64, float64, float64)         \
  X(int8, 0, 8, int8, int64)                  \
  X(int16, 0, 16, int16, int64)               \
  X(int32, 0, 32, int32, int64)               \
  X(int64, 0, 64, int64, int64)               \
  X(uint8, 1, 8, uint8, int64)                \
  X(bool, 6, 8, bool, int64)                  \
  X(uint16, 1, 16, uint16, int64)             \
  X(uint32, 1, 32, uint32, int64)             \
  X(uint64, 1, 64, uint64, uint64)            \
  X(float8_e4m3fn, 10, 8, float32, float32)   \
  X(float8_e5m2, 12, 8, float32, float32)     \
  X(float8_e4m3fnuz, 11, 8, float32, float32) \
  X(float8_e5m2fnuz, 13, 8, float32, float32) \
  X(int4, 0, 4, int8, int64)                  \
  X(uint4, 1, 4, int8, int64)                 \
  X(int2, 0, 2, int8, int64)                  \
  X(uint2, 1, 2, int8, int64)

/* Floating types that are computed in float32: X(name, stored as, bits of the fraction, bias, top). */
#define OPC_MINIFLOATS(X)                    \
  X(float16, uint16_t, 10, 15, ieee)         \
  X(bfloat16, uint16_t, 7, 127, ieee)        \
  X(float8_e4m3fn, uint8_t, 3, 7, nan)       \
  X(float8_e5m2, uint8_t, 2, 15, ieee)       \
  X(float8_e4m3fnuz, uint8_t, 3, 8, finite)  \
  X(float8_e5m2fnuz, uint8_t, 2, 16, finite)

/* Types that values are computed in: X(name, C++ type). */
#define OPC_COMPUTED_DTYPES(X) \
  X(float32, float)            \
  X(float64, double)           \
  X(int8, int8_t)              \
  X(int16, int16_t)            \
  X(int32, int32_t)            \
  X(int64, int64_t)            \
  X(uint8, uint8_t)            \
  X(bool, bool)                \
  X(uint16, uint16_t)          \
  X(uint32, uint32_t)          \
  X(uint64, uint64_t)

/* ONNX's, of a byte or more: X(name, number, name as enumerators have it). */
#define OPC_ONNX_DTYPES(X)                \
  X(float16, 10, Float16)                 \
  X(bfloat16, 16, Bfloat16)               \
  X(float32, 1, Float32)                  \
  X(float64, 11, Float64)                 \
  X(int8, 3, Int8)                        \
  X(int16, 5, Int16)                      \
  X(int32, 6, Int32)                      \
  X(int64, 7, Int64)                      \
  X(uint8, 2, Uint8)                      \
  X(bool, 9, Bool)                        \
  X(uint16, 4, Uint16)                    \
  X(uint32, 12, Uint32)                   \
  X(uint64, 13, Uint64)                   \
  X(float8_e4m3fn, 17, Float8_e4m3fn)     \
  X(float8_e5m2, 19, Float8_e5m2)         \
  X(float8_e4m3fnuz, 18, Float8_e4m3fnuz) \
  X(float8_e5m2fnuz, 20, Float8_e5m2fnuz)

/* PyTorch's: X(name, name in C, name in C++). */
#define OPC_TORCH_DTYPES(X)                            \
  X(float16, float16, Half)                            \
  X(bfloat16, bfloat16, BFloat16)                      \
  X(float32, float32, Float)                           \
  X(float64, float64, Double)                          \
  X(int8, int8, Char)                                  \
  X(int16, int16, Short)                               \
  X(int32, int32, Int)                                 \
  X(int64, int64, Long)                                \
  X(uint8, uint8, Byte)                                \
  X(bool, bool, Bool)                                  \
  X(uint16, uint16, UInt16)                            \
  X(uint32, uint32, UInt32)                            \
  X(uint64, uint64, UInt64)                            \
  X(float8_e4m3fn, float8_e4m3fn, Float8_e4m3fn)       \
  X(float8_e5m2, float8_e5m2, Float8_e5m2)             \
  X(float8_e4m3fnuz, float8_e4m3fnuz, Float8_e4m3fnuz) \
  X(float8_e5m2fnuz, float8_e5m2fnuz, Float8_e5m2fnuz)

/* Paddle's: X(name, name there). */
#define OPC_PADDLE_DTYPES(X)      \
  X(float16, FLOAT16)             \
  X(bfloat16, BFLOAT16)           \
  X(float32, FLOAT32)             \
  X(float64, FLOAT64)             \
  X(int8, INT8)                   \
  X(int16, INT16)                 \
  X(int32, INT32)                 \
  X(int64, INT64)                 \
  X(uint8, UINT8)                 \
  X(bool, BOOL)                   \
  X(float8_e4m3fn, FLOAT8_E4M3FN) \
  X(float8_e5m2, FLOAT8_E5M2)

/* MindSpore's: X(name, number). */
#define OPC_MINDSPORE_DTYPES(X) \
  X(float16, 42)                \
  X(bfloat16, 45)               \
  X(float32, 43)                \
  X(float64, 44)                \
  X(int8, 32)                   \
  X(int16, 33)                  \
  X(int32, 34)                  \
  X(int64, 35)                  \
  X(uint8, 37)                  \
  X(bool, 30)                   \
  X(uint16, 38)                 \
  X(uint32, 39)                 \
  X(uint64, 40)

/* RKNN's: X(name, number). */
#define OPC_RKNN_DTYPES(X) \
  X(float16, 1)            \
  X(float32, 0)            \
  X(int8, 2)               \
  X(int16, 4)              \
  X(int32, 6)              \
  X(int64, 8)              \
  X(uint8, 3)              \
  X(bool, 9)               \
  X(uint16, 5)             \
  X(uint32, 7)

/* Graphcore's: X(name, name in PopART, name in Poplar). */
#define OPC_POPART_DTYPES(X)        \
  X(float16, FLOAT16, HALF)         \
  X(float32, FLOAT, FLOAT)          \
  X(int8, INT8, SIGNED_CHAR)        \
  X(int16, INT16, SHORT)            \
  X(int32, INT32, INT)              \
  X(uint8, UINT8, UNSIGNED_CHAR)    \
  X(bool, BOOL, BOOL)               \
  X(uint16, UINT16, UNSIGNED_SHORT) \
  X(uint32, UINT32, UNSIGNED_INT)

/* TensorRT's: X(name, number). */
#define OPC_TENSORRT_DTYPES(X) \
  X(float16, 1)                \
  X(bfloat16, 7)               \
  X(float32, 0)                \
  X(int8, 2)                   \
  X(int32, 3)                  \
  X(int64, 8)                  \
  X(float8_e4m3fn, 6)

/* XLA's: X(name, number). */
#define OPC_XLA_DTYPES(X) \
  X(float16, 10)          \
  X(bfloat16, 16)         \
  X(float32, 11)          \
  X(float64, 12)          \
  X(int8, 2)              \
  X(int16, 3)             \
  X(int32, 4)             \
  X(int64, 5)             \
  X(uint8, 6)             \
  X(bool, 1)              \
  X(uint16, 7)            \
  X(uint32, 8)            \
  X(uint64, 9)            \
  X(float8_e4m3fn, 20)    \
  X(float8_e5m2, 19)      \
  X(float8_e4m3fnuz, 25)  \
  X(float8_e5m2fnuz, 24)

#endif  // OPC_CORE_DTYPES_H
