/* A tensor's copy in which one of its axes is the last one, through shared memory: neighbours are read, and neighbours are written. */
#ifndef OPC_CUDA_MOVE_H
#define OPC_CUDA_MOVE_H

#include "opc/cuda/nest.h"
#include "opc/cuda/tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Points along each side of a tile. */
enum : int { moved_points = 64 };

/* How elements lie in shared memory: narrow ones two in a word. */
template <typename Stored>
struct moved_words {
  typedef std::conditional_t<sizeof(Stored) == 8, uint64_t, uint32_t> word;
  enum : int { in_word = static_cast<int>(sizeof(word) / sizeof(Stored)), pitch = moved_points / in_word + 1, in_pack = 16 / static_cast<int>(sizeof(word)) };
  OPC_DEVICE_MEMBER static word of(const Stored (&elements)[in_word]) {
    word found;
    memcpy(&found, elements, sizeof(found));
    return found;
  }
  OPC_DEVICE_MEMBER static Stored element(word from, int place) {
    const word shifted = from >> (8 * static_cast<int>(sizeof(Stored)) * place);
    Stored found;
    memcpy(&found, &shifted, sizeof(found));
    return found;
  }
};

/* Copies, for each of some batches, the points of the axis at each of the points `across` that lie behind it. `from(batch, across)` tells
 * where the first of the axis is, the next is `step` further on. Copies of a row lie on end; 16 bytes are written at a time where they may. */
template <typename Stored, typename Nest, typename From>
OPC_DEVICE void move_axis(const Nest &n, const From &from, int64_t step, Stored *to) {
  typedef moved_words<Stored> in_words;
  typedef typename in_words::word word;
  constexpr int in_word = in_words::in_word, pitch = in_words::pitch, in_pack = in_words::in_pack;
  constexpr int together = in_word * in_pack, at_once = threads_a_block / moved_points, turns = moved_points / in_word / at_once;
  /* A point across has a row of words. */
  OPC_SHARED(word, tile, moved_points *pitch);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t across_tiles = (n.across + moved_points - 1) / moved_points, axis_tiles = (n.down + moved_points - 1) / moved_points;
  for (int64_t work = blockIdx.x; work < n.work; work += gridDim.x) {
    int64_t axis_tile, across_tile;
    const int64_t batch = without_last(without_last(work, axis_tiles, axis_tile), across_tiles, across_tile);
    const int64_t first = axis_tile * moved_points, first_across = across_tile * moved_points;
    const int points = n.down - first < moved_points ? static_cast<int>(n.down - first) : int(moved_points);
    const int acrosses = n.across - first_across < moved_points ? static_cast<int>(n.across - first_across) : int(moved_points);
    const int own = thread % moved_points, own_word = thread / moved_points;
    if (own < acrosses) {
      const Stored *row = from(batch, first_across + own) + (first + own_word * in_word) * step;
      const int points_left = points - own_word * in_word;
      const int64_t jump = at_once * in_word * step;
      Stored held[turns][in_word] = {};
      OPC_UNROLLED
      for (int i = 0; i < turns; ++i) {
        OPC_UNROLLED
        for (int k = 0; k < in_word; ++k) {
          if (i * at_once * in_word + k < points_left) held[i][k] = row[k * step];
        }
        row += jump;
      }
      OPC_UNROLLED
      for (int i = 0; i < turns; ++i) tile[own * pitch + own_word + i * at_once] = in_words::of(held[i]);
    }
    __syncthreads();
    Stored *const rows = to + (batch * n.across + first_across) * n.down + first;
    if (n.down % together == 0) {
      OPC_UNROLLED_2
      for (int e = thread; e < moved_points * moved_points / together; e += threads_a_block) {
        const int own_pack = e % (moved_points / together), across = e / (moved_points / together);
        if (own_pack * together >= points || across >= acrosses) continue;
        word found[in_pack];
        OPC_UNROLLED
        for (int k = 0; k < in_pack; ++k) found[k] = tile[across * pitch + own_pack * in_pack + k];
        uint32_t words[4];
        memcpy(words, found, sizeof(words));
        store_16_bytes(rows + across * n.down + own_pack * together, words);
      }
    } else {
      OPC_UNROLLED_2
      for (int e = thread; e < moved_points * moved_points; e += threads_a_block) {
        const int point = e % moved_points, across = e / moved_points;
        if (point >= points || across >= acrosses) continue;
        rows[across * n.down + point] = in_words::element(tile[across * pitch + point / in_word], point % in_word);
      }
    }
    __syncthreads();
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MOVE_H
