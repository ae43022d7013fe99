/* Weighted sums in float32: a thread adds up 4 x 4 scores, and 4 x 4 or 4 x 8 points of the target, in registers. */
#ifndef OPC_CUDA_WEIGH_FLOATS_H
#define OPC_CUDA_WEIGH_FLOATS_H

#include "opc/cuda/weigh_tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Eight warps with 8 rows each, and all columns; 16 lanes share 4 rows. */
template <int Kind, typename LeftAlong, typename RightAlong, typename WeighedAlong, typename LeftAt, typename RightAt, typename WeighedAt>
struct weighs_floats {
  static constexpr weight_shape shape = shape_of_weights(Kind, 4);
  enum : int { rows = shape.rows, columns = shape.columns, depth = shape.depth, across = shape.across, lanes = 16 };
  enum : int { own_rows = 4, own_columns = 4, own_across = across / 16 };
  static constexpr bool scales = false, shrinks = true;
  static constexpr bool many = false;
  static constexpr int turns = 1;
  typedef float_part<LeftAlong, rows> left_part;
  typedef float_part<RightAlong, columns> right_part;
  typedef float_part<WeighedAlong, across> weighed_part;
  enum : int { part_terms = left_part::terms, score_parts = depth / part_terms, weighed_parts = columns / part_terms };
  enum : int { rights = score_parts * left_part::bytes, weigheds = rights + score_parts * right_part::bytes };
  /* Weights of a warp: of each column those of its 8 rows, 4 words further on with each fourth column, so that lanes meet in no bank. */
  enum : int { weights = weigheds + weighed_parts * weighed_part::bytes, warp_bytes = 4 * 9 * columns };
  static_assert(weights + 8 * warp_bytes == shape.bytes, "what a launch asks for");
  const LeftAt &left_at;
  const RightAt &right_at;
  const WeighedAt &weighed_at;
  shared_place shared;
  float scores[own_rows][own_columns], totals[own_rows][own_across];
  const stored_at<LeftAt> *left_from;
  const stored_at<RightAt> *right_from;
  const stored_at<WeighedAt> *weighed_from;
  int rows_left, across_left;

  OPC_DEVICE_MEMBER weighs_floats(const LeftAt &left, const RightAt &right, const WeighedAt &weighed)
      : left_at(left), right_at(right), weighed_at(weighed) {
    OPC_DYNAMIC_SHARED(memory);
    shared = place_of_shared(memory);
  }
  OPC_DEVICE_MEMBER static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  OPC_DEVICE_MEMBER static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  OPC_DEVICE_MEMBER static int row(int i) { return 8 * warp() + lane() / 16 * 4 + i; }
  OPC_DEVICE_MEMBER static int column(int j) { return lane() % 16 * 4 + j; }
  OPC_DEVICE_MEMBER static int element(int k) { return k / 4 * 64 + column(k % 4); }
  OPC_DEVICE_MEMBER float &score(int i, int j) { return scores[i][j]; }
  OPC_DEVICE_MEMBER float &total(int i, int k) { return totals[i][k]; }
  OPC_DEVICE_MEMBER static float unscaled(float total, int) { return total; }
  template <typename Nest>
  OPC_DEVICE_MEMBER void start(const Nest &n, int64_t batch, int64_t first_row, int64_t first_across) {
    left_from = left_at(batch) + first_row * n.left.point;
    right_from = right_at(batch);
    weighed_from = weighed_at(batch) + first_across * n.weighed.point;
    rows_left = at_most(rows, n.down - first_row);
    across_left = at_most(across, n.across - first_across);
  }

  template <int parts, typename Part, typename Stored>
  OPC_DEVICE_MEMBER static void bring(shared_place to, const Stored *from, const factor_steps &steps, int points_left, int terms_left) {
    OPC_ROLLED
    for (int p = 0; p < parts; ++p) {
      Part::copy(to + p * Part::bytes, from, steps, points_left, terms_left - p * part_terms);
      from += part_terms * steps.term;
    }
  }
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_scores(const Nest &n, int64_t first_column, int64_t chunk, bool both) {
    const int terms_left = at_most(depth, n.terms - chunk * depth);
    if (both) bring<score_parts, left_part>(shared, left_from + chunk * depth * n.left.term, n.left, rows_left, terms_left);
    const auto *const from = right_from + first_column * n.right.point + chunk * depth * n.right.term;
    bring<score_parts, right_part>(shared + rights, from, n.right, at_most(columns, n.columns - first_column), terms_left);
  }
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_weighed(const Nest &n, int64_t first_column) {
    const auto *const from = weighed_from + first_column * n.weighed.term;
    bring<weighed_parts, weighed_part>(shared + weigheds, from, n.weighed, across_left, at_most(columns, n.columns - first_column));
  }
  OPC_DEVICE_MEMBER void multiply_scores(int64_t, int terms, bool small = false) {
    if (small) {
      add_scores<true>(terms);
    } else {
      add_scores<false>(terms);
    }
  }
  template <bool small>
  OPC_DEVICE_MEMBER void add_scores(int terms) {
    OPC_ROLLED
    for (int first = 0; first < terms; first += 8) {
      const shared_place lefts = shared + first * rows * 4, rights_now = shared + rights + first * columns * 4;
      int down = row(0), over = column(0);
      forget(down);
      forget(over);
      OPC_UNROLLED
      for (int term = 0; term < 8; ++term) {
        float a[4], b[4];
        read_shared(lefts + left_part::place(term, down), a);
        read_shared(rights_now + right_part::place(term, over), b);
        OPC_UNROLLED
        for (int i = 0; i < own_rows; ++i) {
          if (small) a[i] = shrunk(a[i]);
          OPC_UNROLLED
          for (int j = 0; j < own_columns; ++j) scores[i][j] += a[i] * b[j];
        }
      }
    }
  }
  /* Lanes get the weights of all columns from each other, by shared memory. */
  OPC_DEVICE_MEMBER void multiply_weights(int64_t, int some, int, bool = false) {
    const shared_place own = shared + weights + warp() * warp_bytes;
    OPC_UNROLLED
    for (int j = 0; j < own_columns; ++j) {
      const float four[4] = {scores[0][j], scores[1][j], scores[2][j], scores[3][j]};
      write_shared(own + 4 * (8 * column(j) + column(j) / 4 * 4 + lane() / 16 * 4), four);
    }
    __syncwarp();
    OPC_ROLLED
    for (int first = 0; first < some; first += 8) {
      const shared_place lefts = own + 36 * first, rights_now = shared + weigheds + first * across * 4;
      int over = column(0), down = lane() / 16 * 4;
      forget(over);
      forget(down);
      OPC_UNROLLED
      for (int c = 0; c < 8; ++c) {
        float a[4];
        read_shared(lefts + 4 * (8 * c + c / 4 * 4 + down), a);
        OPC_UNROLLED
        for (int k = 0; k < own_across / 4; ++k) {
          float b[4];
          read_shared(rights_now + weighed_part::template place_of_group<16, own_across / 4>(c, over, k), b);
          OPC_UNROLLED
          for (int i = 0; i < own_rows; ++i) {
            OPC_UNROLLED
            for (int j = 0; j < 4; ++j) totals[i][4 * k + j] += a[i] * b[j];
          }
        }
      }
    }
  }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_WEIGH_FLOATS_H
