/* Sums of products in float32: a thread adds up 8 x 8 points, or 4 x 4, in registers. */
#ifndef OPC_CUDA_MULTIPLY_FLOATS_H
#define OPC_CUDA_MULTIPLY_FLOATS_H

#include "opc/cuda/tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A part of a factor in shared memory, 16 terms of `points` points each. Of term t, point p is at p ^ 4 (t % 8), so that neither those that
 * bring elements along terms nor those that read 4 points meet in a bank. */
template <typename Along, int points>
struct float_part {
  enum : int { terms = 16, bytes = points * terms * 4, words = points * terms / threads_a_block };
  static constexpr bool by_terms = std::is_same<Along, along_terms>::value;

  /* A thread's word number `i`. Along terms 8 lanes have neighbours, along points all. */
  OPC_DEVICE_MEMBER static int term_of(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return by_terms ? thread % 8 + i % 2 * 8 : thread / points + i * (threads_a_block / points);
  }
  OPC_DEVICE_MEMBER static int point_of(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return by_terms ? thread / 8 + i / 2 * (threads_a_block / 8) : thread % points;
  }
  OPC_DEVICE_MEMBER static int place(int term, int point) { return (term * points + (point ^ term % 8 * 4)) * 4; }
  /* Where `lanes` lanes with 4 points each find group number `i` of theirs, the first of which is at `point`: what does not depend on the
   * lane is a constant. */
  template <int lanes, int groups>
  OPC_DEVICE_MEMBER static int place_of_group(int term, int point, int i) {
    if constexpr (groups == 1) return place(term, point);
    constexpr int own = 4 * lanes - 4;
    const int moved = term % 8 * 4;
    return (point ^ (moved & own)) * 4 + (term * points + (i * 4 * lanes ^ (moved & ~own))) * 4;
  }

  /* Copies what lies in steps, from the first point and term of the part on. */
  OPC_DEVICE_MEMBER static void copy(shared_place part, const float *from, const factor_steps &steps, int points_left, int terms_left) {
    if (!by_terms && steps.how == packed) {
      constexpr int pieces_a_row = points / 4, rows_at_once = threads_a_block / pieces_a_row;
      const int row = static_cast<int>(threadIdx.x) / pieces_a_row, point = static_cast<int>(threadIdx.x) % pieces_a_row * 4;
      const float *own = from + row * steps.term + point;
      const int left = points_left - point, bytes = left <= 0 ? 0 : left < 4 ? 4 * left : 16;
      OPC_UNROLLED
      for (int i = 0; i < terms / rows_at_once; ++i) {
        const int term = row + i * rows_at_once;
        copy_16_bytes(part + place(term, point), own + i * rows_at_once * steps.term, term < terms_left ? bytes : 0);
      }
      return;
    }
    const float *own = from + point_of(0) * steps.point + term_of(0) * steps.term;
    OPC_UNROLLED
    for (int i = 0; i < words; ++i) {
      const int term = term_of(i), point = point_of(i);
      const int64_t offset = (point_of(i) - point_of(0)) * steps.point + (term_of(i) - term_of(0)) * steps.term;
      copy_4_bytes(part + place(term, point), own + offset, point < points_left && term < terms_left ? 4 : 0);
    }
  }

  /* Writes the values of a function. */
  template <typename Value>
  OPC_DEVICE_MEMBER static void write(shared_place part, const Value &value, int64_t batch, int64_t first_point, int64_t first_term,
                                      int points_left, int terms_left) {
    OPC_ROLLED
    for (int i = 0; i < words; ++i) {
      const int term = term_of(i), point = point_of(i);
      const bool some = point < points_left && term < terms_left;
      write_shared(part + place(term, point), some ? value(batch, first_point + point, first_term + term) : 0.0f);
    }
  }
};

/* Eight warps, each with its part of the points of the tile; lanes take every fourth point, 4 at a time. */
template <int Kind, typename LeftAlong, typename RightAlong, typename Nest, typename Left, typename LeftAt, typename Right,
          typename RightAt, typename Finish>
OPC_DEVICE void multiply_floats(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                                const Finish &finish) {
  constexpr tile_shape shape = shape_of_tiles(Kind);
  constexpr int stages = shape.float_stages, terms = shape.floats;
  /* Of 64 x 64 points two rows of four warps have 32 x 16 each, and a thread 4 x 4; of 128 x 128 four rows of two have 32 x 64, and 8 x 8. */
  constexpr int own = shape.down == 64 ? 4 : 8, fours = own / 4, warps_across = shape.down == 64 ? 4 : 2;
  constexpr int lanes_down = shape.down == 64 ? 8 : 4, lanes_across = 32 / lanes_down;
  constexpr int warp_down = lanes_down * own, warp_across = lanes_across * own;
  typedef float_part<LeftAlong, shape.down> left_part;
  typedef float_part<RightAlong, shape.across> right_part;
  constexpr int stage_bytes = left_part::bytes + right_part::bytes;
  constexpr bool left_floats = std::is_same<stored_at<LeftAt>, float>::value;
  constexpr bool right_floats = std::is_same<stored_at<RightAt>, float>::value;
  OPC_DYNAMIC_SHARED(memory);
  const shared_place shared = place_of_shared(memory);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int own_down = warp / warps_across * warp_down + lane / lanes_across * 4;
  const int own_across = warp % warps_across * warp_across + lane % lanes_across * 4;
  for (int64_t tile = blockIdx.x; tile < n.work; tile += gridDim.x) {
    const tile_start start = start_of_tile<Kind>(n, tile);
    const int left_points = at_most(1 << 16, n.down - start.down), right_points = at_most(1 << 16, n.across - start.across);
    const float *left_from = nullptr, *right_from = nullptr;
    if constexpr (left_floats) left_from = left_at(start.batch) + start.down * n.left.point;
    if constexpr (right_floats) right_from = right_at(start.batch) + start.across * n.right.point;
    int64_t brought = 0; /* terms */
    int slot = 0;        /* of the stages, the next one to be brought */
    const auto bring = [&]() {
      const shared_place part = shared + slot * stage_bytes;
      const int terms_left = at_most(1 << 16, n.terms - brought);
      if (left_floats && n.left.how != by_value) {
        left_part::copy(part, left_from, n.left, left_points, terms_left);
        left_from += terms * n.left.term;
      } else {
        left_part::write(part, left, start.batch, start.down, brought, left_points, terms_left);
      }
      if (right_floats && n.right.how != by_value) {
        right_part::copy(part + left_part::bytes, right_from, n.right, right_points, terms_left);
        right_from += terms * n.right.term;
      } else {
        right_part::write(part + left_part::bytes, right, start.batch, start.across, brought, right_points, terms_left);
      }
      brought += terms;
      slot = slot + 1 == stages ? 0 : slot + 1;
    };
    float totals[own][own] = {};
    OPC_ROLLED
    for (int stage = 0; stage < stages - 1; ++stage) {
      if (brought < n.terms) bring();
      end_copies();
    }
    int current = 0;
    OPC_ROLLED
    for (int64_t first = 0; first < n.terms; first += terms) {
      wait_for_copies<stages - 2>();
      __syncthreads();
      /* Behind the barrier nobody reads the stage before this one. */
      if (brought < n.terms) bring();
      end_copies();
      const shared_place part = shared + current * stage_bytes;
      current = current + 1 == stages ? 0 : current + 1;
      OPC_UNROLLED
      for (int term = 0; term < terms; ++term) {
        float a[fours][4], b[fours][4];
        OPC_UNROLLED
        for (int i = 0; i < fours; ++i) {
          read_shared(part + left_part::template place_of_group<lanes_down, fours>(term, own_down, i), a[i]);
          read_shared(part + left_part::bytes + right_part::template place_of_group<lanes_across, fours>(term, own_across, i), b[i]);
        }
        OPC_UNROLLED
        for (int i = 0; i < own; ++i) {
          OPC_UNROLLED
          for (int j = 0; j < own; ++j) totals[i][j] += a[i / 4][i % 4] * b[j / 4][j % 4];
        }
      }
    }
    wait_for_copies<0>();
    __syncthreads();
    OPC_UNROLLED
    for (int i = 0; i < own; ++i) {
      OPC_UNROLLED
      for (int j = 0; j < own; ++j) {
        const int64_t down = start.down + own_down + i / 4 * 4 * lanes_down + i % 4;
        const int64_t across = start.across + own_across + j / 4 * 4 * lanes_across + j % 4;
        if (down < n.down && across < n.across) finish(start.batch, down, across, totals[i][j]);
      }
    }
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MULTIPLY_FLOATS_H
