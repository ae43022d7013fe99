/* What small nests number, and numbers that are divided by factors, in CUDA's emulation: prints 1 for each that is right. */
#include <stdio.h>

#include <vector>

#include "opc/cuda/call.h"

/* Whether lines of points have each point once. */
static bool has_each_point(int64_t a, int64_t b, int64_t c) {
  opc::nest_operand operands[1] = {};
  opc::nest_fault fault;
  opc::nest nest;
  opc::start(nest, nullptr, operands, fault);
  for (const int64_t size : {a, b, c}) opc::add_entry(nest, size);
  opc::add_tensor(nest, nullptr);
  opc::device_nest<1> described;
  opc::to_device(described, nest, nullptr);
  opc::small_nest<1> small;
  if (!opc::to_small(small, described, 3, 10)) return false;
  std::vector<int> found(static_cast<size_t>(described.points));
  for (int32_t work = 0; work < small.work; ++work) {
    const int32_t point = opc::point_of(small, work), first = opc::entry_place(small, point, 1);
    const int32_t x = opc::entry_place(small, point, 0), z = opc::entry_place(small, point, 2);
    for (int32_t y = first; y < opc::end_of_line(small, first, 1); ++y) {
      ++found[static_cast<size_t>(x * small.after[0] + y * small.after[1] + z * small.after[2])];
    }
  }
  for (const int times : found) {
    if (times != 1) return false;
  }
  return small.line > 1 || b < 2;
}

/* Whether ranges are narrowed to where a sum is not negative, by numbers of either width. */
template <typename Whole>
static bool narrows() {
  for (Whole by = 1; by < 5; ++by) {
    const opc::divisor d = opc::divisor_of(by);
    for (Whole rest = -20; rest <= 20; ++rest) {
      Whole low = 2, high = 9, low_too = 2, high_too = 9, below = 2, above = 9, below_too = 2, above_too = 9;
      opc::narrow_low(low, high, d, rest);
      opc::narrow_range(low_too, high_too, by, rest);
      opc::narrow_high(below, above, d, rest);
      opc::narrow_range(below_too, above_too, -by, rest);
      if (low != low_too || high != high_too || below != below_too || above != above_too) return false;
      for (Whole i = 2; i < 9; ++i) {
        if ((i >= low && i < high) != (by * i + rest >= 0) || (i >= below && i < above) != (rest - by * i >= 0)) return false;
      }
      const Whole quotient = opc::floor_by(d, rest), left = opc::rest_by(d, rest);
      if (quotient != opc::floordiv(rest, by) || left != opc::mod(rest, by)) return false;
    }
  }
  return true;
}

/* Whether what has more than 29 bits is not small. */
static bool is_small(int64_t shape, int64_t stride, double most) {
  opc::device_nest<1> described = {};
  described.team = 1;
  described.parts = 1;
  described.points = 1;
  described.operands[0].ndim = 1;
  described.operands[0].shape[0] = shape;
  described.operands[0].stride[0] = stride;
  opc::small_nest<1> small;
  return opc::to_small(small, described, 0, most);
}

OPC_KERNEL(32) nothing(int32_t) {}

int main() {
  OPC_LAUNCH(nothing, false, 1, 32, 0, nullptr, 0);
  printf("%d %d %d ", has_each_point(2, 9, 5), has_each_point(3, 1, 2), has_each_point(1, 64, 3));
  printf("%d %d ", narrows<int32_t>(), narrows<int64_t>());
  printf("%d %d %d %d\n", is_small(1000, 1000, 1000), !is_small(1000, -1, 0), !is_small(1 << 20, 1 << 20, 0), !is_small(1, 1, 1e9));
}
