/* A tensor's copy in which one of its axes is the last one, through shared memory: neighbours are read, and neighbours are written. */
#ifndef OPC_CUDA_MOVE_H
#define OPC_CUDA_MOVE_H

#include "opc/cuda/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Points along each side of a tile. */
enum : int { moved_points = 64 };

/* Copies, for each of some batches, the points of the axis at each of the points `across` that lie behind it. `from(batch, across)` tells
 * where the first of the axis is, the next is `step` further on. Copies of a row lie on end; 16 bytes are written at a time where they may. */
template <typename Stored, typename Nest, typename From>
OPC_DEVICE void move_axis(const Nest &n, const From &from, int64_t step, Stored *to) {
  constexpr int pitch = moved_points + 1, together = 16 / static_cast<int>(sizeof(Stored)), turns = moved_points * moved_points / threads_a_block;
  OPC_SHARED(Stored, tile, moved_points *pitch);
  struct alignas(16) pack {
    Stored elements[together];
  };
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t across_tiles = (n.across + moved_points - 1) / moved_points, axis_tiles = (n.down + moved_points - 1) / moved_points;
  for (int64_t work = blockIdx.x; work < n.work; work += gridDim.x) {
    int64_t axis_tile, across_tile;
    const int64_t batch = without_last(without_last(work, axis_tiles, axis_tile), across_tiles, across_tile);
    const int64_t first = axis_tile * moved_points, first_across = across_tile * moved_points;
    const int points = n.down - first < moved_points ? static_cast<int>(n.down - first) : int(moved_points);
    const int acrosses = n.across - first_across < moved_points ? static_cast<int>(n.across - first_across) : int(moved_points);
    const int own = thread % moved_points, own_point = thread / moved_points;
    if (own < acrosses) {
      const Stored *const row = from(batch, first_across + own) + (first + own_point) * step;
      constexpr int at_once = threads_a_block / moved_points;
      Stored held[turns];
      OPC_UNROLLED
      for (int i = 0; i < turns; ++i) {
        if (own_point + i * at_once < points) held[i] = row[i * at_once * step];
      }
      OPC_UNROLLED
      for (int i = 0; i < turns; ++i) {
        if (own_point + i * at_once < points) tile[(own_point + i * at_once) * pitch + own] = held[i];
      }
    }
    __syncthreads();
    Stored *const rows = to + (batch * n.across + first_across) * n.down + first;
    if (n.down % together == 0) {
      for (int e = thread; e < moved_points * moved_points / together; e += threads_a_block) {
        const int point = e % (moved_points / together) * together, across = e / (moved_points / together);
        if (point >= points || across >= acrosses) continue;
        pack found;
        OPC_UNROLLED
        for (int k = 0; k < together; ++k) found.elements[k] = tile[(point + k) * pitch + across];
        *reinterpret_cast<pack *>(rows + across * n.down + point) = found;
      }
    } else {
      for (int e = thread; e < moved_points * moved_points; e += threads_a_block) {
        const int point = e % moved_points, across = e / moved_points;
        if (point < points && across < acrosses) rows[across * n.down + point] = tile[point * pitch + across];
      }
    }
    __syncthreads();
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MOVE_H
