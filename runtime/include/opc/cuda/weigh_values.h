/* Weighed sums of any type, of elements in memory. */
#ifndef OPC_CUDA_WEIGH_VALUES_H
#define OPC_CUDA_WEIGH_VALUES_H

#include "opc/cuda/weigh_tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Any type, straight from memory: a warp has 4 rows, and a lane a column of each; then an element of the target in place of the column. */
template <typename T, typename Left, typename Right, typename Weighed>
struct weighs_values {
  enum : int { rows = 32, columns = 32, depth = 1 << 30, across = 64, lanes = 32, own_rows = 4, own_columns = 1, own_across = 2 };
  static constexpr bool scales = false, shrinks = true, many = false;
  static constexpr int turns = 1;
  const Left &left;
  const Right &right;
  const Weighed &weighed;
  T scores[own_rows][own_columns], totals[own_rows][own_across];
  int64_t batch, first_row, first_across, rows_all, across_all, columns_all;

  OPC_DEVICE_MEMBER weighs_values(const Left &left_, const Right &right_, const Weighed &weighed_)
      : left(left_), right(right_), weighed(weighed_) {}
  OPC_DEVICE_MEMBER static int row(int i) { return static_cast<int>(threadIdx.x) / 32 * own_rows + i; }
  OPC_DEVICE_MEMBER static int column(int) { return static_cast<int>(threadIdx.x) % 32; }
  OPC_DEVICE_MEMBER static int element(int k) { return static_cast<int>(threadIdx.x) % 32 + 32 * k; }
  OPC_DEVICE_MEMBER T &score(int i, int j) { return scores[i][j]; }
  OPC_DEVICE_MEMBER T &total(int i, int k) { return totals[i][k]; }
  template <typename Nest>
  OPC_DEVICE_MEMBER void start(const Nest &n, int64_t of, int64_t row_, int64_t across_) {
    batch = of;
    first_row = row_;
    first_across = across_;
    rows_all = n.down;
    across_all = n.across;
    columns_all = n.columns;
  }
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_scores(const Nest &, int64_t, int64_t, bool) {}
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_weighed(const Nest &, int64_t) {}
  OPC_DEVICE_MEMBER void multiply_scores(int64_t first_column, int terms, bool small = false) {
    const int64_t at = first_column + column(0);
    if (at >= columns_all) return;
    for (int term = 0; term < terms; ++term) {
      const T b = right(batch, at, term);
      OPC_UNROLLED
      for (int i = 0; i < own_rows; ++i) {
        if (first_row + row(i) >= rows_all) continue;
        const T a = left(batch, first_row + row(i), term);
        scores[i][0] += (small ? shrunk(a) : a) * b;
      }
    }
  }
  OPC_DEVICE_MEMBER void multiply_weights(int64_t first_column, int some, int, bool = false) {
    OPC_ROLLED
    for (int c = 0; c < some; ++c) {
      T b[own_across];
      OPC_UNROLLED
      for (int k = 0; k < own_across; ++k) {
        const int64_t at = first_across + element(k);
        b[k] = at < across_all ? T(weighed(batch, at, first_column + c)) : T(0);
      }
      OPC_UNROLLED
      for (int i = 0; i < own_rows; ++i) {
        const T weight = __shfl_sync(0xffffffffu, scores[i][0], c);
        OPC_UNROLLED
        for (int k = 0; k < own_across; ++k) totals[i][k] += weight * b[k];
      }
    }
  }
  OPC_DEVICE_MEMBER static T unscaled(T total, int) { return total; }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_WEIGH_VALUES_H
