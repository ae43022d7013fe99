/* Sums of products in tiles: a block's threads bring parts of two factors to shared memory, and each adds up products in registers. */
#ifndef OPC_CUDA_MULTIPLY_H
#define OPC_CUDA_MULTIPLY_H

#include "opc/cuda/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A tile has `tile_points` points each way, a thread `own_points` of these; `tile_terms` terms are in shared memory at once. */
enum : int { tile_points = 64, tile_terms = 16, own_points = 4, tile_pitch = tile_points + 1 };

/* The tiles of a nest, a block each. `left(batch, down, term)` and `right(batch, across, term)` are the factors, and
 * `finish(batch, down, across, total)` stores a point. Terms are added in their order. */
template <typename T, typename Nest, typename Left, typename Right, typename Finish>
OPC_DEVICE void multiply_tiles(const Nest &n, const Left &left, const Right &right, const Finish &finish) {
  OPC_SHARED(T, lefts, tile_terms *tile_pitch);
  OPC_SHARED(T, rights, tile_terms *tile_pitch);
  constexpr int side = tile_points / own_points;
  const int own_down = static_cast<int>(threadIdx.x) / side, own_across = static_cast<int>(threadIdx.x) % side;
  for (int64_t tile = blockIdx.x; tile < n.work; tile += gridDim.x) {
    const int64_t across_tiles = (n.across + tile_points - 1) / tile_points, down_tiles = (n.down + tile_points - 1) / tile_points;
    const int64_t first_across = tile % across_tiles * tile_points;
    const int64_t first_down = tile / across_tiles % down_tiles * tile_points;
    const int64_t batch = tile / across_tiles / down_tiles;
    T totals[own_points][own_points] = {};
    for (int64_t first = 0; first < n.terms; first += tile_terms) {
      for (int e = static_cast<int>(threadIdx.x); e < tile_points * tile_terms; e += threads_a_block) {
        const int term = e % tile_terms, point = e / tile_terms;
        const bool some = first + term < n.terms;
        lefts[term * tile_pitch + point] = some && first_down + point < n.down ? left(batch, first_down + point, first + term) : T(0);
      }
      for (int e = static_cast<int>(threadIdx.x); e < tile_points * tile_terms; e += threads_a_block) {
        const int term = e / tile_points, point = e % tile_points;
        const bool some = first + term < n.terms;
        rights[term * tile_pitch + point] =
            some && first_across + point < n.across ? right(batch, first_across + point, first + term) : T(0);
      }
      __syncthreads();
      /* Beyond the last term there is none: a zero times an infinity would be one. */
      const int terms = n.terms - first < tile_terms ? static_cast<int>(n.terms - first) : int(tile_terms);
      for (int term = 0; term < terms; ++term) {
        T a[own_points], b[own_points];
        OPC_UNROLLED
        for (int i = 0; i < own_points; ++i) {
          a[i] = lefts[term * tile_pitch + own_down + i * side];
          b[i] = rights[term * tile_pitch + own_across + i * side];
        }
        OPC_UNROLLED
        for (int i = 0; i < own_points; ++i) {
          OPC_UNROLLED
          for (int j = 0; j < own_points; ++j) totals[i][j] += a[i] * b[j];
        }
      }
      __syncthreads();
    }
    OPC_UNROLLED
    for (int i = 0; i < own_points; ++i) {
      OPC_UNROLLED
      for (int j = 0; j < own_points; ++j) {
        const int64_t down = first_down + own_down + i * side, across = first_across + own_across + j * side;
        if (down < n.down && across < n.across) finish(batch, down, across, totals[i][j]);
      }
    }
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MULTIPLY_H
