/* Sums of products in tiles: a block's threads bring parts of two factors to shared memory, and add up products in registers, by tensor
 * cores where both factors are elements of 16 bits. */
#ifndef OPC_CUDA_MULTIPLY_H
#define OPC_CUDA_MULTIPLY_H

#include "opc/cuda/multiply_floats.h"
#include "opc/cuda/multiply_halves.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A tile of any type: `tile_terms` terms are in shared memory at once. */
enum : int { tile_points = 64, tile_terms = 16, own_points = 4, tile_pitch = tile_points + 1 };

template <typename T, typename Nest, typename Left, typename LeftAt, typename Right, typename RightAt, typename Finishing>
OPC_DEVICE void multiply_values(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                                const Finishing &f) {
  OPC_SHARED(T, lefts, tile_terms *tile_pitch);
  OPC_SHARED(T, rights, tile_terms *tile_pitch);
  constexpr int side = tile_points / own_points;
  const int own_down = static_cast<int>(threadIdx.x) / side, own_across = static_cast<int>(threadIdx.x) % side;
  for (int64_t tile = blockIdx.x; tile < n.work; tile += gridDim.x) {
    const tile_start start = start_of_tile<small_tiles>(n, tile);
    const int64_t first_across = start.across, first_down = start.down, batch = start.batch;
    const int64_t end = start.first_term + start.terms;
    T totals[own_points][own_points] = {};
    for (int64_t first = start.first_term; first < end; first += tile_terms) {
      for (int e = static_cast<int>(threadIdx.x); e < tile_points * tile_terms; e += threads_a_block) {
        const int term = e % tile_terms, point = e / tile_terms;
        const bool some = first + term < end;
        lefts[term * tile_pitch + point] =
            some && first_down + point < n.down ? T(value_of(left_at, left, batch, first_down + point, first + term)) : T(0);
      }
      for (int e = static_cast<int>(threadIdx.x); e < tile_points * tile_terms; e += threads_a_block) {
        const int term = e / tile_points, point = e % tile_points;
        const bool some = first + term < end;
        rights[term * tile_pitch + point] =
            some && first_across + point < n.across ? T(value_of(right_at, right, batch, first_across + point, first + term)) : T(0);
      }
      __syncthreads();
      /* Beyond the last term there is none: a zero times an infinity would be one. */
      const int terms = end - first < tile_terms ? static_cast<int>(end - first) : int(tile_terms);
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
    [[maybe_unused]] doubts<1, own_points *own_points> doubtful;
    OPC_ROLLED
    for (int point = 0; point < own_points * own_points; ++point) {
      const int i = point / own_points, j = point % own_points;
      T total = 0;
      OPC_UNROLLED
      for (int of = 0; of < own_points * own_points; ++of) {
        if (of == point) total = totals[of / own_points][of % own_points];
      }
      const int64_t across = first_across + own_across + j * side;
      finish_point(n, start, first_down + own_down + i * side, across, f.ends(across), total, f);
      if constexpr (!Finishing::is_exact) doubtful.add(0, point, is_doubtful(total));
    }
    if constexpr (!Finishing::is_exact) {
      doubtful.template settle<T>(n, start, f, [&](int, int place, int64_t &down, int64_t &across) {
        down = first_down + own_down + place / own_points * side;
        across = first_across + own_across + place % own_points * side;
      });
    }
  }
}

/* The same by what says the value of each factor, point by point: for places too far from one another for tables. */
template <typename T, typename Nest, typename Left, typename LeftAt, typename Right, typename RightAt, typename Finishing>
OPC_DEVICE void multiply_points(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                                const Finishing &f) {
  for (int64_t tile = blockIdx.x; tile < n.work; tile += gridDim.x) {
    const tile_start start = start_of_tile<small_tiles>(n, tile);
    OPC_ROLLED
    for (int point = static_cast<int>(threadIdx.x); point < tile_points * tile_points; point += threads_a_block) {
      const int64_t down = start.down + point / tile_points, across = start.across + point % tile_points;
      if (down >= n.down || across >= n.across) continue;
      T total = 0;
      OPC_ROLLED
      for (int64_t term = start.first_term; term < start.first_term + start.terms; ++term) {
        total += T(value_of(left_at, left, start.batch, down, term)) * T(value_of(right_at, right, start.batch, across, term));
      }
      const digits places = f.ends(across);
      if constexpr (!Finishing::is_exact) {
        if (n.parts == 1 && is_doubtful(total)) total = T(f.again(start.batch, down, places));
      }
      finish_point(n, start, down, across, places, total, f);
    }
  }
}

/* Whether the elements of a factor are found by places that are far. */
template <typename At>
OPC_DEVICE bool is_far(const factor_steps &steps) {
  return is_gathered<At> && steps.how == by_value;
}

/* The tiles of a nest, a block each, of the shape number `Tiles`. `left(batch, down, term)` and `right(batch, across, term)` are the factors,
 * `left_at(batch)` and `right_at(batch)` tell where the elements of their first points and terms lie, or are `computed_places` whose digits
 * the factors are computed from, or what is `gathered`. `ends(across)`, `finish(batch, down, places, total)`, `to(batch, down, places)` and
 * `again(batch, down, places)` are those of `finishing`. Where both factors are elements of one
 * type, or 0, it is `Stored`, and otherwise void. Each factor lies along terms or along points, where it is as its op has it. Terms are
 * added in their order, in the type T; tensor cores add up 16 at a time. Of few points with many terms several blocks take a part each, and
 * the kernel runs again to join them. */
template <typename T, typename Stored, int Tiles, typename LeftAlong, typename RightAlong, typename Nest, typename Left, typename LeftAt,
          typename Right, typename RightAt, typename Ends, typename Finish, typename To, typename Again = never_again>
OPC_DEVICE void multiply_tiles(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                               const Ends &ends, const Finish &finish, const To &to, const Again &again = Again()) {
  const finishing<Ends, Finish, To, Again> f(ends, finish, to, again);
  if (n.of == all_parts) {
    join_tiles<T>(n, f);
    return;
  }
  if constexpr (Tiles == small_tiles && (is_gathered<LeftAt> || is_gathered<RightAt>)) {
    if (is_far<LeftAt>(n.left) || is_far<RightAt>(n.right)) {
      multiply_points<T>(n, left, left_at, right, right_at, f);
      return;
    }
  }
  if constexpr (is_for_tensors<Stored>) {
    multiply_halves<Stored, Tiles, LeftAlong, RightAlong>(n, left, left_at, right, right_at, f);
  } else if constexpr (sizeof(T) == 4) {
    multiply_floats<Tiles, LeftAlong, RightAlong>(n, left, left_at, right, right_at, f);
  } else {
    multiply_values<T>(n, left, left_at, right, right_at, f);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MULTIPLY_H
