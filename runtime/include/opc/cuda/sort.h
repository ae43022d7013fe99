/* Scatters in a fixed order: the terms of a sum are sorted by the elements that they name, and each element adds up its own, in order.
 *
 * The sort keeps the order of equal keys. It goes digit by digit, in one pass over memory for each: a block has a tile of items, and gets
 * from the blocks before it how many items these have of each digit. It waits for blocks that have begun before it, by the number that each
 * draws when it begins. Counts are whole numbers, so that it does not matter which of them are added first. */
#ifndef OPC_CUDA_SORT_H
#define OPC_CUDA_SORT_H

#include "opc/cuda/call.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A thread has `thread_items` items of a tile: its warp goes through them 32 at a time. A digit has a thread. */
enum : int { digit_bits = 8, all_digits = 256, thread_items = 16, tile_items = thread_items * threads_a_block, sort_warps = 8 };
static_assert(int(all_digits) == int(threads_a_block) && sort_warps * threads_a_warp == threads_a_block, "each thread has a digit");

OPC_DEVICE int bits_of(unsigned word) {
#if defined(__CUDA_ARCH__)
  return __popc(word);
#else
  return __builtin_popcount(word);
#endif
}

template <typename Word>
OPC_DEVICE int digit_of(Word key, int shift) {
  return static_cast<int>(key >> shift) & (all_digits - 1);
}

/* The sum of the values of the threads of a block before this one. */
template <typename T>
OPC_DEVICE T sum_before(T value) {
  OPC_SHARED(T, sums, sort_warps);
  const int lane = static_cast<int>(threadIdx.x) % threads_a_warp, warp = static_cast<int>(threadIdx.x) / threads_a_warp;
  T up_to = value;
  for (int distance = 1; distance < threads_a_warp; distance *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, up_to, static_cast<unsigned>(distance));
    if (lane >= distance) up_to = T(up_to + before);
  }
  if (lane == threads_a_warp - 1) sums[warp] = up_to;
  __syncthreads();
  T before = T(up_to - value);
  for (int w = 0; w < warp; ++w) before = T(before + sums[w]);
  __syncthreads();
  return before;
}

/* How many items have each digit: all digits of the keys at once, those of the lowest one first. */
template <typename Word>
OPC_KERNEL(threads_a_block) count_digits(const Word *keys, int64_t items, int32_t digits, Word *counts) {
  OPC_SHARED(uint32_t, own, sizeof(Word) * all_digits);
  for (int d = 0; d < digits; ++d) own[d * all_digits + static_cast<int>(threadIdx.x)] = 0;
  __syncthreads();
  for (int64_t i = own_thread(); i < items; i += all_threads()) {
    const Word key = keys[i];
    for (int d = 0; d < digits; ++d) atomicAdd(&own[d * all_digits + digit_of(key, d * digit_bits)], 1u);
  }
  __syncthreads();
  for (int d = 0; d < digits; ++d) {
    const int at = d * all_digits + static_cast<int>(threadIdx.x);
    if (own[at] > 0) add_at(counts + at, static_cast<Word>(own[at]));
  }
}

/* What a word of the board tells of a digit: nothing yet, how many items a tile has, or how many it and all before it have. */
template <typename Word>
struct tile_count {
  enum : int { bits = 8 * sizeof(Word) - 2 };
  OPC_DEVICE void show(Word *at, Word count, bool all) { *const_cast<volatile Word *>(at) = count | Word(all ? 2 : 1) << bits; }
  /* How many items the tiles before one have. */
  OPC_DEVICE Word before(const Word *board, int64_t tile) {
    Word found = 0;
    for (int64_t t = tile - 1; t >= 0; --t) {
      Word word;
      OPC_WAIT_UNTIL((word = const_cast<const volatile Word *>(board)[t * all_digits]) != 0);
      found += word & ((Word(1) << bits) - 1);
      if (word >> bits == 2) break;
    }
    return found;
  }
};

/* Brings items to their places by one digit; `order` is NULL where items still have their own numbers. Where there is one tile, all before
 * an item are in it, and nobody asks for `counts`. */
template <typename Word>
OPC_KERNEL(threads_a_block) sort_digit(const Word *keys, const Word *order, int64_t items, int32_t shift, const Word *counts, Word *board,
                                       uint32_t *drawn, Word *to_keys, Word *to_order) {
  OPC_SHARED(uint32_t, ranks, sort_warps *all_digits);
  OPC_SHARED(Word, moved, tile_items);
  OPC_SHARED(Word, offsets, all_digits);
  OPC_SHARED(uint32_t, own_number, 1);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % threads_a_warp, warp = thread / threads_a_warp;
  if (first_thread()) own_number[0] = atomicAdd(drawn, 1u);
  for (int w = 0; w < sort_warps; ++w) ranks[w * all_digits + thread] = 0;
  __syncthreads();
  const int64_t tile = own_number[0], first = tile * tile_items;
  const int count = items - first < tile_items ? static_cast<int>(items - first) : int(tile_items);
  const int own = warp * thread_items * threads_a_warp + lane;
  const int left = count - (own - lane); /* items from the warp's first one on */
  Word key[thread_items];
  int place[thread_items];
  /* Behind the last item there are greatest keys, which come last. */
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    const int at = own + i * threads_a_warp;
    key[i] = at < count ? keys[first + at] : Word(~Word(0));
  }
  /* Of items of a warp with the same digit, each comes behind those of lower lanes, and all behind those that came before. */
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    if (i * threads_a_warp >= left) break;
    const int digit = digit_of(key[i], shift);
    unsigned same = 0xffffffffu;
    OPC_UNROLLED
    for (int bit = 0; bit < digit_bits; ++bit) {
      const bool set = (digit >> bit & 1) != 0;
      const unsigned found = __ballot_sync(0xffffffffu, set);
      same &= set ? found : ~found;
    }
    uint32_t &rank = ranks[warp * all_digits + digit];
    const int lower = bits_of(same & ((1u << lane) - 1));
    place[i] = static_cast<int>(rank) + lower;
    __syncwarp();
    if (lower == 0) rank += static_cast<uint32_t>(bits_of(same));
    __syncwarp();
  }
  __syncthreads();
  uint32_t total = 0;
  for (int w = 0; w < sort_warps; ++w) {
    const uint32_t found = ranks[w * all_digits + thread];
    ranks[w * all_digits + thread] = total;
    total += found;
  }
  Word *const shown = board + tile * all_digits + thread;
  if (tile > 0) tile_count<Word>::show(shown, total, false);
  const uint32_t local = sum_before(total);
  offsets[thread] = 0;
  if (gridDim.x > 1) {
    const Word base = sum_before(counts[thread]), before = tile_count<Word>::before(board + thread, tile);
    tile_count<Word>::show(shown, before + total, true);
    offsets[thread] = Word(base + before - local);
  }
  for (int w = 0; w < sort_warps; ++w) ranks[w * all_digits + thread] += local;
  __syncthreads();
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    if (i * threads_a_warp >= left) break;
    place[i] += static_cast<int>(ranks[warp * all_digits + digit_of(key[i], shift)]);
    moved[place[i]] = key[i];
  }
  __syncthreads();
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    const int at = i * threads_a_block + thread;
    if (at >= count) break;
    const Word found = moved[at];
    key[i] = Word(offsets[digit_of(found, shift)] + static_cast<Word>(at));
    to_keys[key[i]] = found;
  }
  __syncthreads();
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    const int at = own + i * threads_a_warp;
    if (i * threads_a_warp >= left) break;
    moved[place[i]] = order == nullptr ? static_cast<Word>(first + at) : at < count ? order[first + at] : Word(0);
  }
  __syncthreads();
  OPC_UNROLLED
  for (int i = 0; i < thread_items; ++i) {
    const int at = i * threads_a_block + thread;
    if (at >= count) break;
    to_order[key[i]] = moved[at];
  }
}

/* Where the items of each key begin and end; there are zeros for keys that no item has. */
template <typename Word>
OPC_KERNEL(threads_a_block) find_ranges(const Word *keys, int64_t items, int64_t key_count, Word *ranges) {
  for (int64_t i = own_thread(); i < items; i += all_threads()) {
    const Word key = keys[i];
    if (static_cast<uint64_t>(key) >= static_cast<uint64_t>(key_count)) continue;
    if (i == 0 || keys[i - 1] != key) ranges[2 * key] = static_cast<Word>(i);
    if (i + 1 == items || keys[i + 1] != key) ranges[2 * key + 1] = static_cast<Word>(i + 1);
  }
}

}  // namespace OPC_VARIANT

/* The memory that so many items with keys up to `key_count` are sorted in, which is that of items that have no place, in words of a type
 * that numbers them; and what is started for it. */
template <typename Word>
struct digit_sort {
  int64_t items, key_count, tiles;
  int32_t digits = 1;
  Word *keys[2], *order[2], *ranges, *counts, *board, *end;
  uint32_t *drawn;

  digit_sort(void *memory, int64_t item_count, int64_t key_end) : items(item_count), key_count(key_end) {
    while (digits < int32_t(sizeof(Word)) && static_cast<uint64_t>(key_end) >> digits * digit_bits != 0) ++digits;
    tiles = (items + tile_items - 1) / tile_items;
    Word *at = static_cast<Word *>(memory);
    for (int32_t k = 0; k < 2; ++k) {
      keys[k] = at + k * items;
      order[k] = at + (2 + k) * items;
    }
    /* What follows begins with zeros. */
    ranges = at + 4 * items;
    counts = ranges + 2 * key_count;
    board = counts + digits * all_digits;
    drawn = reinterpret_cast<uint32_t *>(board + digits * tiles * all_digits);
    end = board + digits * tiles * all_digits + digits;
  }
  int64_t bytes() const { return (end - keys[0]) * int64_t(sizeof(Word)); }

  /* Sorts `keys[0]`, and leaves the sorted keys, the items in their order, and where each key's begin and end. */
  void run(const opc_cuda_context *lent) {
    set_zero(lent, ranges, (end - ranges) * int64_t(sizeof(Word)));
    if (items == 0) return;
    const int64_t some = blocks_for(items, threads_a_block);
    const Word *const first = keys[0];
    if (tiles > 1) {
      OPC_LAUNCH(count_digits<Word>, true, some, threads_a_block, 0, stream_of(lent), first, items, digits, counts);
    }
    for (int32_t d = 0; d < digits; ++d) {
      const Word *const from = keys[d % 2], *const before = d == 0 ? nullptr : order[d % 2];
      const Word *const own = counts + d * all_digits;
      OPC_LAUNCH(sort_digit<Word>, true, tiles, threads_a_block, 0, stream_of(lent), from, before, items, d * digit_bits, own,
                 board + d * tiles * all_digits, drawn + d, keys[1 - d % 2], order[1 - d % 2]);
    }
    const Word *const sorted = keys[digits % 2];
    OPC_LAUNCH(find_ranges<Word>, false, some, threads_a_block, 0, stream_of(lent), sorted, items, key_count, ranges);
  }
};

/* The memory that a scatter of so many items by so many keys sorts in, and what is started for it. All of it depends on sizes alone. */
struct scatter_launch {
  int64_t size = 0;
  int64_t runs = 0;
  void *memory = nullptr;
  char *kept = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands>
  scatter_launch(device_nest<Operands> &d, const opc_cuda_context *context, int64_t items, int64_t key_count) : lent(context) {
    d.items = items;
    d.key_count = key_count;
    d.of = places;
    d.work = items;
    /* The words of the board that the sort uses count 30 or 62 bits. */
    d.halves = items >= int64_t(1) << 30 || key_count >= UINT32_MAX ? 2 : 1;
    size = d.halves == 2 ? digit_sort<uint64_t>(nullptr, items, key_count).bytes() : digit_sort<uint32_t>(nullptr, items, key_count).bytes();
    size = (size + 7) / 8 * 8;
    d.others = key_count > 0 ? d.points / key_count : 0;
    runs = items / run_items;
    const int64_t sorted = size;
    size += 8 * runs * d.others;
    if (items > UINT32_MAX) return; /* of which no GPU has so much that they could be sorted in it */
    memory = device_memory(lent, size);
    d.keys = memory;
    kept = static_cast<char *>(memory) + sorted;
  }
  scatter_launch(const scatter_launch &) = delete;
  scatter_launch &operator=(const scatter_launch &) = delete;
  ~scatter_launch() {
    if (memory != nullptr && lent->release != nullptr) lent->release(lent->allocator, memory, size, lent->stream);
  }
  bool lacks_memory() const { return memory == nullptr; }

  /* Goes on from keys to sums: the first step names places, the second one adds up runs of items with the same key, and the third one all
   * of each element. */
  template <int32_t Operands>
  bool next_step(device_nest<Operands> &d, int32_t step) {
    if (step == 0) return true;
    if (step == 3) return false;
    if (step == 1) {
      if (d.halves == 2) {
        sort<uint64_t>(d);
      } else {
        sort<uint32_t>(d);
      }
      d.kept = runs * d.others > 0 ? kept : nullptr;
      d.of = one_part;
      d.work = runs * d.others;
      d.team = d.others < threads_a_warp ? int32_t(threads_a_warp) : 1;
      return true;
    }
    d.of = whole;
    d.work = d.points;
    const int64_t most = d.key_count > 0 ? d.items / d.key_count : 0;
    d.team = most >= threads_a_warp ? int32_t(threads_a_warp) : 1;
    return true;
  }

 private:
  template <typename Word, int32_t Operands>
  void sort(device_nest<Operands> &d) {
    digit_sort<Word> sorting(memory, d.items, d.key_count);
    sorting.run(lent);
    d.keys = sorting.keys[sorting.digits % 2];
    d.order = sorting.order[sorting.digits % 2];
    d.ranges = sorting.ranges;
  }
};

}  // namespace opc
#endif  // OPC_CUDA_SORT_H
