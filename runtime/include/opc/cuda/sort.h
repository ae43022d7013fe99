/* Scatters in a fixed order: the terms of a sum are sorted by the elements that they name, and each element adds up its own, in order.
 *
 * The sort keeps the order of equal keys. It goes digit by digit, in one pass over memory for each: a block has a tile of items, and gets
 * from the blocks before it how many items these have of each digit. It waits for blocks that have begun before it, by the number that each
 * draws when it begins. Counts are whole numbers, so that it does not matter which of them are added first. Where each of some segments of
 * items has keys of its own, and is long, segments are sorted by themselves: their keys have fewer digits. */
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

/* The items that a thread goes through, of a segment that so many blocks have. */
struct own_items {
  int64_t segment, first, at, step;
  OPC_DEVICE_MEMBER own_items(int64_t items, int32_t blocks)
      : segment(blockIdx.x / static_cast<unsigned>(blocks)), first(segment * items),
        at(static_cast<int64_t>(blockIdx.x % static_cast<unsigned>(blocks)) * blockDim.x + threadIdx.x),
        step(static_cast<int64_t>(blocks) * blockDim.x) {}
};

/* How many items of each segment have each digit: all digits of the keys at once, those of the lowest one first. */
template <typename Word>
OPC_KERNEL(threads_a_block) count_digits(const Word *keys, int64_t items, int32_t blocks, int32_t digits, Word *counts) {
  OPC_SHARED(uint32_t, own, sizeof(Word) * all_digits);
  for (int d = 0; d < digits; ++d) own[d * all_digits + static_cast<int>(threadIdx.x)] = 0;
  __syncthreads();
  const own_items of(items, blocks);
  for (int64_t i = of.at; i < items; i += of.step) {
    const Word key = keys[of.first + i];
    for (int d = 0; d < digits; ++d) atomicAdd(&own[d * all_digits + digit_of(key, d * digit_bits)], 1u);
  }
  __syncthreads();
  for (int d = 0; d < digits; ++d) {
    const int at = d * all_digits + static_cast<int>(threadIdx.x);
    if (own[at] > 0) add_at(counts + of.segment * digits * all_digits + at, static_cast<Word>(own[at]));
  }
}

/* What a word of the board tells of a digit: nothing yet, how many items a tile has, or how many it and all before it have. */
template <typename Word>
struct tile_count {
  enum : int { bits = 8 * sizeof(Word) - 2 };
  OPC_DEVICE void show(Word *at, Word count, bool all) { *const_cast<volatile Word *>(at) = count | Word(all ? 2 : 1) << bits; }
  /* How many items the tiles before one have, from a first one on. */
  OPC_DEVICE Word before(const Word *board, int64_t tile, int64_t first) {
    Word found = 0;
    for (int64_t t = tile - 1; t >= first; --t) {
      Word word;
      OPC_WAIT_UNTIL((word = const_cast<const volatile Word *>(board)[t * all_digits]) != 0);
      found += word & ((Word(1) << bits) - 1);
      if (word >> bits == 2) break;
    }
    return found;
  }
};

/* Brings the items of segments to their places by one digit; `order` is NULL where items still have their own numbers. Where a segment has
 * one tile, all before an item are in it, and nobody asks for `counts`, of which those of a segment are so far from those of the next. */
template <typename Word>
OPC_KERNEL(threads_a_block) sort_digit(const Word *keys, const Word *order, int64_t items, int64_t tiles, int32_t shift, const Word *counts,
                                       int32_t counted, Word *board, uint32_t *drawn, Word *to_keys, Word *to_order) {
  OPC_SHARED(uint32_t, ranks, sort_warps *all_digits);
  OPC_SHARED(Word, moved, tile_items);
  OPC_SHARED(Word, offsets, all_digits);
  OPC_SHARED(uint32_t, own_number, 1);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % threads_a_warp, warp = thread / threads_a_warp;
  if (first_thread()) own_number[0] = atomicAdd(drawn, 1u);
  for (int w = 0; w < sort_warps; ++w) ranks[w * all_digits + thread] = 0;
  __syncthreads();
  const int64_t tile = own_number[0], segment = tile / tiles, first_tile = segment * tiles;
  const int64_t first = segment * items + (tile - first_tile) * tile_items, after = (segment + 1) * items - first;
  const int count = after < tile_items ? static_cast<int>(after) : int(tile_items);
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
  if (tile > first_tile) tile_count<Word>::show(shown, total, false);
  const uint32_t local = sum_before(total);
  offsets[thread] = Word(segment * items);
  if (tiles > 1) {
    const Word base = sum_before(counts[segment * counted + thread]), before = tile_count<Word>::before(board + thread, tile, first_tile);
    tile_count<Word>::show(shown, before + total, true);
    offsets[thread] = Word(offsets[thread] + base + before - local);
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

/* Where the items of each key of each segment begin and end; there are zeros for keys that no item has. */
template <typename Word>
OPC_KERNEL(threads_a_block) find_ranges(const Word *keys, int64_t items, int32_t blocks, int64_t key_count, Word *ranges) {
  const own_items of(items, blocks);
  keys += of.first;
  ranges += 2 * key_count * of.segment;
  for (int64_t i = of.at; i < items; i += of.step) {
    const Word key = keys[i];
    if (static_cast<uint64_t>(key) >= static_cast<uint64_t>(key_count)) continue;
    const int64_t at = of.first + i;
    if (i == 0 || keys[i - 1] != key) ranges[2 * static_cast<int64_t>(key)] = static_cast<Word>(at);
    if (i + 1 == items || keys[i + 1] != key) ranges[2 * static_cast<int64_t>(key) + 1] = static_cast<Word>(at + 1);
  }
}

}  // namespace OPC_VARIANT

/* How many digits numbers up to one have. */
static inline int32_t digits_of(int64_t most, int32_t bytes) {
  int32_t digits = 1;
  while (digits < bytes && static_cast<uint64_t>(most) >> digits * digit_bits != 0) ++digits;
  return digits;
}

/* The memory that some segments of so many items each are sorted in, whose keys are up to `key_count`, which is that of items that have no
 * place, in words of a type that numbers all items; and what is started for it. */
template <typename Word>
struct digit_sort {
  int64_t segments, items, key_count, tiles; /* of a segment */
  int32_t digits;
  Word *keys[2], *order[2], *ranges, *counts, *board, *end;
  uint32_t *drawn;

  digit_sort(void *memory, int64_t item_count, int64_t key_end, int64_t segment_count = 1)
      : segments(segment_count), items(item_count), key_count(key_end), digits(digits_of(key_end, sizeof(Word))) {
    tiles = (items + tile_items - 1) / tile_items;
    Word *at = static_cast<Word *>(memory);
    for (int32_t k = 0; k < 2; ++k) {
      keys[k] = at + k * segments * items;
      order[k] = at + (2 + k) * segments * items;
    }
    /* What follows begins with zeros. */
    ranges = at + 4 * segments * items;
    counts = ranges + 2 * segments * key_count;
    board = counts + segments * digits * all_digits;
    drawn = reinterpret_cast<uint32_t *>(board + digits * segments * tiles * all_digits);
    end = board + digits * segments * tiles * all_digits + digits;
  }
  int64_t bytes() const { return (end - keys[0]) * int64_t(sizeof(Word)); }

  /* Sorts `keys[0]`, and leaves the sorted keys, the items in their order, and where each key's begin and end. */
  void run(const opc_cuda_context *lent) {
    set_zero(lent, ranges, (end - ranges) * int64_t(sizeof(Word)));
    if (items == 0) return;
    const int64_t some = blocks_for(segments * items, threads_a_block);
    const int32_t blocks = static_cast<int32_t>(some < 2 * segments ? 1 : some / segments);
    const Word *const first = keys[0];
    if (tiles > 1) {
      OPC_LAUNCH(count_digits<Word>, true, segments * blocks, threads_a_block, 0, stream_of(lent), first, items, blocks, digits, counts);
    }
    for (int32_t d = 0; d < digits; ++d) {
      const Word *const from = keys[d % 2], *const before = d == 0 ? nullptr : order[d % 2];
      const Word *const own = counts + d * all_digits;
      OPC_LAUNCH(sort_digit<Word>, true, segments * tiles, threads_a_block, 0, stream_of(lent), from, before, items, tiles, d * digit_bits, own,
                 digits * all_digits, board + d * segments * tiles * all_digits, drawn + d, keys[1 - d % 2], order[1 - d % 2]);
    }
    const Word *const sorted = keys[digits % 2];
    OPC_LAUNCH(find_ranges<Word>, false, segments * blocks, threads_a_block, 0, stream_of(lent), sorted, items, blocks, key_count, ranges);
  }
};

/* Whether segments of so many items are sorted by themselves, by so many keys each: where that saves a digit, and segments fill their tiles.
 * In emulation all are. */
static inline bool sorts_segments(int64_t segments, int64_t items, int64_t key_count, int32_t bytes) {
#if defined(__CUDACC__)
  return items >= 4 * tile_items && digits_of(key_count, bytes) < digits_of(segments * key_count, bytes);
#else
  static_cast<void>(key_count);
  static_cast<void>(bytes);
  return segments > 1 && items > 0;
#endif
}

/* The memory that a scatter of segments of so many items by so many keys each sorts in, and what is started for it. All of it depends on sizes
 * alone. `order` are the entries of the target's indices, those that keys have first. */
struct scatter_launch {
  int64_t size = 0;
  int64_t segments = 1;
  const int32_t *order;
  int64_t runs = 0;
  void *memory = nullptr;
  char *kept = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands>
  scatter_launch(device_nest<Operands> &d, const opc_cuda_context *context, int64_t segment_count, int64_t segment_items, int64_t segment_keys,
                 const int32_t *entries)
      : order(entries), lent(context) {
    const int64_t items = segment_count * segment_items, key_count = segment_count * segment_keys;
    d.items = items;
    d.key_count = key_count;
    d.of = places;
    d.work = items;
    /* The words of the board that the sort uses count 30 or 62 bits. */
    d.halves = items >= int64_t(1) << 30 || key_count >= UINT32_MAX ? 2 : 1;
    if (sorts_segments(segment_count, segment_items, segment_keys, 4 * d.halves)) segments = segment_count;
    d.segment_items = items / segments;
    d.segment_keys = key_count / segments;
    size = d.halves == 2 ? memory_of<uint64_t>(d) : memory_of<uint32_t>(d);
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
    int64_t behind = 1;
    for (int32_t k = d.entries - 1; k >= 0; --k) {
      d.by_after[order[k]] = divisor_of(behind);
      behind *= d.size[order[k]];
    }
    const int64_t most = d.key_count > 0 ? d.items / d.key_count : 0;
    d.team = most >= threads_a_warp ? int32_t(threads_a_warp) : 1;
    return true;
  }

 private:
  template <typename Word, int32_t Operands>
  int64_t memory_of(const device_nest<Operands> &d) const {
    return digit_sort<Word>(nullptr, d.segment_items, d.segment_keys, segments).bytes();
  }
  template <typename Word, int32_t Operands>
  void sort(device_nest<Operands> &d) {
    digit_sort<Word> sorting(memory, d.segment_items, d.segment_keys, segments);
    sorting.run(lent);
    d.keys = sorting.keys[sorting.digits % 2];
    d.order = sorting.order[sorting.digits % 2];
    d.ranges = sorting.ranges;
  }
};

}  // namespace opc
#endif  // OPC_CUDA_SORT_H
