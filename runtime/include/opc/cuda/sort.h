/* Scatters in a fixed order: the terms of a sum are sorted by the elements that they name, and each element adds up its own, in order.
 * The sort keeps the order of equal keys: digit by digit, by counting. No thread waits for another. */
#ifndef OPC_CUDA_SORT_H
#define OPC_CUDA_SORT_H

#include "opc/cuda/call.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A thread goes through `run_items` items in order, or adds up `run_counts` counts. */
enum : int64_t { digit_bits = 4, all_digits = 16, run_items = 32, run_counts = 64 };

/* How many items of each run have each digit: the counts of a digit lie together. */
OPC_KERNEL(threads_a_block) count_digits(const int64_t *keys, int64_t items, int32_t shift, int64_t *counts, int64_t runs) {
  for (int64_t r = own_thread(); r < runs; r += all_threads()) {
    const int64_t end = items - r * run_items < run_items ? items : (r + 1) * run_items;
    uint64_t found[2] = {0, 0}; /* eight digits each, a byte a digit */
    for (int64_t i = r * run_items; i < end; ++i) {
      const uint64_t digit = static_cast<uint64_t>(keys[i] >> shift) % all_digits;
      if (digit < 8) {
        found[0] += uint64_t(1) << digit * 8;
      } else {
        found[1] += uint64_t(1) << (digit - 8) * 8;
      }
    }
    OPC_UNROLLED
    for (int digit = 0; digit < all_digits; ++digit) counts[digit * runs + r] = found[digit / 8] >> digit % 8 * 8 & 0xff;
  }
}

/* Replaces each count by the sum of those before it in its run; the sum of a run goes to `totals`. */
OPC_KERNEL(threads_a_block) add_up_runs(int64_t *counts, int64_t count, int64_t *totals) {
  for (int64_t r = own_thread(); r * run_counts < count; r += all_threads()) {
    const int64_t end = count - r * run_counts < run_counts ? count : (r + 1) * run_counts;
    int64_t total = 0;
    for (int64_t i = r * run_counts; i < end; ++i) {
      const int64_t own = counts[i];
      counts[i] = total;
      total += own;
    }
    totals[r] = total;
  }
}
OPC_KERNEL(threads_a_block) add_totals(int64_t *counts, int64_t count, const int64_t *totals) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) counts[i] += totals[i / run_counts];
}

/* Brings items to their places by one digit; `order` is NULL where items still have their own numbers. */
OPC_KERNEL(threads_a_block) move_items(const int64_t *keys, const int64_t *order, int64_t items, int32_t shift, int64_t *counts,
                                       int64_t runs, int64_t *to_keys, int64_t *to_order) {
  for (int64_t r = own_thread(); r < runs; r += all_threads()) {
    const int64_t end = items - r * run_items < run_items ? items : (r + 1) * run_items;
    for (int64_t i = r * run_items; i < end; ++i) {
      const int64_t digit = static_cast<int64_t>(static_cast<uint64_t>(keys[i] >> shift) % all_digits);
      const int64_t place = counts[digit * runs + r]++;
      to_keys[place] = keys[i];
      to_order[place] = order == nullptr ? i : order[i];
    }
  }
}

}  // namespace OPC_VARIANT

/* The memory that a scatter of so many items by so many keys sorts in, and what is started for it. All of it depends on sizes alone. */
struct scatter_launch {
  int64_t size = 0;
  void *memory = nullptr;
  int64_t *keys[2] = {}, *order[2] = {}, *counts = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands>
  scatter_launch(device_nest<Operands> &d, const opc_cuda_context *context, int64_t items, int64_t key_count) : lent(context) {
    d.items = items;
    d.key_count = key_count;
    d.of = places;
    d.work = items;
    if (items == 0) return;
    const int64_t counted = count_of(items);
    size = 8 * (4 * items + counted + counted / (run_counts - 1) + 64);
    memory = device_memory(lent, size);
    int64_t *const all = static_cast<int64_t *>(memory);
    for (int32_t k = 0; k < 2; ++k) {
      keys[k] = all + k * items;
      order[k] = all + (2 + k) * items;
    }
    counts = all + 4 * items;
    d.keys = keys[0];
  }
  scatter_launch(const scatter_launch &) = delete;
  scatter_launch &operator=(const scatter_launch &) = delete;
  ~scatter_launch() {
    if (memory != nullptr && lent->release != nullptr) lent->release(lent->allocator, memory, size, lent->stream);
  }
  bool lacks_memory() const { return size > 0 && memory == nullptr; }

  /* Goes on from keys to sums: the first step names places, the second one adds up. */
  template <int32_t Operands>
  bool next_step(device_nest<Operands> &d, int32_t step) {
    if (step == 0) return true;
    if (step == 2) return false;
    if (d.items > 0) sort(d);
    d.of = whole;
    d.work = d.points;
    const int64_t most = d.key_count > 0 ? d.items / d.key_count : 0;
    d.team = most >= threads_a_warp ? int32_t(threads_a_warp) : 1;
    return true;
  }

 private:
  static int64_t runs_of(int64_t items) { return (items + run_items - 1) / run_items; }
  static int64_t count_of(int64_t items) { return runs_of(items) * all_digits; }

  template <int32_t Operands>
  void sort(device_nest<Operands> &d) {
    const int64_t runs = runs_of(d.items), counted = count_of(d.items);
    int32_t from = 0;
    bool first = true;
    for (int32_t shift = 0; shift == 0 || d.key_count >> shift != 0; shift += digit_bits) {
      const int64_t blocks = blocks_for(runs, threads_a_block);
      OPC_LAUNCH(count_digits, false, blocks, threads_a_block, 0, stream_of(lent), keys[from], d.items, shift, counts, runs);
      add_up(counts, counted);
      const int64_t *before = first ? nullptr : order[from];
      OPC_LAUNCH(move_items, false, blocks, threads_a_block, 0, stream_of(lent), keys[from], before, d.items, shift, counts, runs,
                 keys[1 - from], order[1 - from]);
      from = 1 - from;
      first = false;
    }
    d.keys = keys[from];
    d.order = order[from];
  }

  void add_up(int64_t *values, int64_t count) {
    int64_t *const totals = values + count;
    const int64_t runs = (count + run_counts - 1) / run_counts;
    OPC_LAUNCH(add_up_runs, false, blocks_for(runs, threads_a_block), threads_a_block, 0, stream_of(lent), values, count, totals);
    if (runs == 1) return;
    add_up(totals, runs);
    const int64_t *const found = totals;
    OPC_LAUNCH(add_totals, false, blocks_for(count, threads_a_block), threads_a_block, 0, stream_of(lent), values, count, found);
  }
};

}  // namespace opc
#endif  // OPC_CUDA_SORT_H
