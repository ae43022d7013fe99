/* The shapes of the tiles of weights, and what their kinds of multiplication share. */
#ifndef OPC_CUDA_WEIGH_TILES_H
#define OPC_CUDA_WEIGH_TILES_H

#include "opc/cuda/multiply_floats.h"
#include "opc/cuda/multiply_halves.h"

namespace opc {

/* Rows and columns of scores, terms of these that are in shared memory at once, elements across, and bytes of shared memory, for elements of
 * so many bytes. There are two kinds, of fewer and of more elements across; float32 has a third one, which needs little shared memory. */
struct weight_shape {
  int32_t rows, columns, depth, across, bytes;
};
OPC_HOST_DEVICE constexpr weight_shape shape_of_weights(int32_t kind, int32_t element) {
  return element == 2                ? (kind == 0 ? weight_shape{128, 64, 64, 64, 2 * (128 * 64 + 64 * 64 + 64 * 64)}
                                                  : weight_shape{128, 64, 128, 128, 2 * (128 * 128 + 64 * 128 + 64 * 128)})
         : element == 4 && kind != 2 ? (kind == 0 ? weight_shape{64, 64, 64, 64, 4 * (3 * 64 * 64 + 8 * 576)}
                                                  : weight_shape{64, 64, 64, 128, 4 * (2 * 64 * 64 + 64 * 128 + 8 * 576)})
                                     : weight_shape{32, 32, 0, 64, element * 8 * 4 * (32 + 4 + 2)};
}
/* What threads note of points that are no numbers: a bit each. */
OPC_HOST_DEVICE constexpr int32_t bytes_of_notes(int32_t kind, int32_t element) { return 256 * (element == 2 && kind == 1 ? 8 : 4); }

/* How many blocks of a kernel a multiprocessor is to have registers for at once. */
OPC_HOST_DEVICE constexpr int blocks_of_weights(int32_t kind, int bytes) { return kind == 1 && bytes == 2 ? 1 : 2; }

/* The shared memory of another pair of factors that scores are made of, and how many blocks of a kernel that weighs what is made of one or
 * two such pairs, or none. */
OPC_HOST_DEVICE constexpr int32_t bytes_of_factors(int32_t kind, int32_t element) {
  return element == 8 || (element == 4 && kind == 2) ? 0 : element * shape_of_weights(kind, element).depth * (shape_of_weights(kind, element).rows + shape_of_weights(kind, element).columns);
}
OPC_HOST_DEVICE constexpr int blocks_of_factors(int32_t kind, int bytes, int pairs) {
  return pairs > 0 && (bytes == 2 || (pairs == 2 && kind > 0)) ? 1 : 2;
}

inline namespace OPC_VARIANT {

/* How much smaller factors are made whose products, of a sum that is divided, are no numbers. */
constexpr float shrunk_by = 5.9604644775390625e-8f, grown_by = 16777216.0f;

/* A factor so much smaller, which is not 0 unless it was: an infinity times it stays one. */
template <typename T>
OPC_DEVICE T shrunk(T value) {
  const T small = value * T(shrunk_by), least = from_bits<T>(1);
  return small == T(0) && value != T(0) ? (value < T(0) ? -least : least) : small;
}

/* The reduction of the values of so many lanes side by side, which each of them gets; all lanes of a warp take part. */
template <typename Joins, int lanes, typename T>
OPC_DEVICE T lanes_in_warp(T value) {
  OPC_UNROLLED
  for (int distance = lanes / 2; distance > 0; distance /= 2) value = Joins::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_WEIGH_TILES_H
