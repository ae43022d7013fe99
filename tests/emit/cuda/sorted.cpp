/* Sorts the items of a scatter in CUDA's emulation, by words of 32 and of 64 bits: the arguments are how many items and keys
 * a segment has, and how many segments there are. */
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "opc/cuda/sort.h"

template <typename Word>
static bool sorts(int64_t items, int64_t key_count, int64_t segments) {
  const int64_t bytes = opc::digit_sort<Word>(nullptr, items, key_count, segments).bytes();
  std::vector<char> memory(static_cast<size_t>(bytes), 77);
  opc::digit_sort<Word> own(memory.data(), items, key_count, segments);
  const int64_t all = segments * items;
  uint64_t state = 1;
  for (int64_t i = 0; i < all; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    /* Every third item has one key, and some have no place. */
    own.keys[0][i] = static_cast<Word>(i % 3 == 0 ? key_count / 2 : static_cast<int64_t>((state >> 33) % (key_count + 1)));
  }
  const std::vector<Word> keys(own.keys[0], own.keys[0] + all);
  std::vector<int64_t> order(static_cast<size_t>(all));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t s = 0; s < segments; ++s) {
    std::stable_sort(order.begin() + s * items, order.begin() + (s + 1) * items, [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  }
  const opc_cuda_context context = {};
  own.run(&context);
  std::vector<Word> ranges(static_cast<size_t>(2 * segments * key_count), 0);
  for (int64_t i = 0; i < all; ++i) {
    const Word key = keys[order[i]];
    if (own.order[own.digits % 2][i] != static_cast<Word>(order[i]) || own.keys[own.digits % 2][i] != key) return false;
    if (static_cast<int64_t>(key) >= key_count) continue;
    const int64_t at = i / items * key_count + static_cast<int64_t>(key);
    if (ranges[2 * at + 1] == 0) ranges[2 * at] = static_cast<Word>(i);
    ranges[2 * at + 1] = static_cast<Word>(i + 1);
  }
  return std::equal(ranges.begin(), ranges.end(), own.ranges);
}

int main(int, char **arguments) {
  const int64_t items = atoll(arguments[1]), keys = atoll(arguments[2]), segments = atoll(arguments[3]);
  printf("%d %d\n", sorts<uint32_t>(items, keys, segments), sorts<uint64_t>(items, keys, segments));
}
