/* Running sums and the like in one pass over memory.
 *
 * A line is what is carried along: the positions of one index of the target, at a place of the others. Lines that lie side by side go
 * together, so that threads read neighbours. A short line has some lanes of a warp, which go along it chunk by chunk. Of longer ones
 * each chunk has a block. The block reads its chunk once, shows what that comes to, and gets what all chunks before it come to from the
 * blocks that have these: they show what groups of chunks come to, and groups of groups, so that it asks few of them. It waits for blocks
 * that have begun before it, by the number that each draws when it begins.
 *
 * In which order values are joined depends on sizes alone, and not on which block comes first: all that is joined is shown when its own
 * terms are known, and a block waits for all of what it joins. */
#ifndef OPC_CUDA_SCAN_H
#define OPC_CUDA_SCAN_H

#include "opc/cuda/call.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A thread has some packs of a chunk, neighbours that are read and written at once: along a line, each lane has a pack, and then each has
 * its next one. */
enum : int { thread_packs = 4, most_pack = 8, block_warps = threads_a_block / threads_a_warp };

/* Neighbours in a pack: as many as 16 bytes have of the wider of two types. */
OPC_HOST_DEVICE constexpr int pack_of(int64_t a, int64_t b) {
  const int64_t count = 16 / (a < b ? b : a);
  return static_cast<int>(count < most_pack ? count : int64_t(most_pack));
}

/* The elements that the terms of a line are made of: term 0's is number `first(front, behind)` of `data`, each other one's `step` behind it. */
template <typename Stored, typename First>
struct read_along {
  typedef std::remove_cv_t<Stored> stored;
  enum : bool { reads = true };
  const stored *data;
  const First &first;
  int64_t step;
  OPC_DEVICE_MEMBER const stored *line(int64_t front, int64_t behind) const { return data + first(front, behind); }
};

/* Terms read for themselves. */
template <typename Stored>
struct nothing_along {
  typedef Stored stored;
  enum : bool { reads = false };
  int64_t step;
  OPC_DEVICE_MEMBER const stored *line(int64_t, int64_t) const { return nullptr; }
};

/* Of the elements that a thread has in a chunk, from the first of its packs on: those from `low` up to `high`, and whether all packs of
 * `count` that begin `pitch` behind each other have all of theirs or none. */
template <int count>
struct pack_range {
  int low, high;
  bool whole;
  OPC_DEVICE_MEMBER pack_range(int64_t from, int64_t to, int pitch) : low(within(from, pitch)), high(within(to, pitch)), whole(true) {
    OPC_UNROLLED
    for (int j = 0; j < thread_packs; ++j) whole = whole && !is_inside(low - j * pitch) && !is_inside(high - j * pitch);
  }
  OPC_DEVICE_MEMBER bool has(int i) const { return i >= low && i < high; }

 private:
  OPC_DEVICE_MEMBER static int within(int64_t i, int pitch) {
    const int64_t most = thread_packs * pitch;
    return static_cast<int>(i < 0 ? 0 : i < most ? i : most);
  }
  OPC_DEVICE_MEMBER static bool is_inside(int i) { return i > 0 && i < count; }
};

/* A pack in registers: words, where elements are narrower, for each of these would have a register. */
template <typename Stored, int count>
struct kept_pack {
  enum : int { words = sizeof(Stored) < 4 && sizeof(Stored) * count % 4 == 0 ? sizeof(Stored) * count / 4 : 0, bits = 8 * sizeof(Stored) };
  std::conditional_t<words != 0, uint32_t, Stored> kept[words != 0 ? words : count];
  OPC_DEVICE_MEMBER void take(const Stored *low) {
    const pack<Stored, count> found = *reinterpret_cast<const pack<Stored, count> *>(low);
    memcpy(kept, &found, sizeof found);
  }
  OPC_DEVICE_MEMBER void set(int i, Stored element) {
    if constexpr (words == 0) {
      kept[i] = element;
    } else {
      std::conditional_t<sizeof(Stored) == 1, uint8_t, uint16_t> own;
      memcpy(&own, &element, sizeof own);
      kept[i * bits / 32] |= static_cast<uint32_t>(own) << i * bits % 32;
    }
  }
  /* Lets the compiler forget what it has made of elements, so that it does not keep that in registers, but makes it again. */
  OPC_DEVICE_MEMBER void forget() {
    if constexpr (words != 0) {
      OPC_UNROLLED
      for (int w = 0; w < words; ++w) OPC_FORGET(kept[w]);
    }
  }
  OPC_DEVICE_MEMBER Stored get(int i) const {
    if constexpr (words == 0) {
      return kept[i];
    } else {
      const auto own = static_cast<std::conditional_t<sizeof(Stored) == 1, uint8_t, uint16_t>>(kept[i * bits / 32] >> i * bits % 32);
      Stored element;
      memcpy(&element, &own, sizeof own);
      return element;
    }
  }
};

/* Writes a pack at once. The compiler would divide the assignment of one whose elements are found from the last one on. */
template <bool down, typename Stored, int count>
OPC_DEVICE void write_pack(Stored *low, const pack<Stored, count> &found) {
#if defined(__CUDA_ARCH__)
  if constexpr (down && sizeof found == 16) {
    uint32_t words[4];
    memcpy(words, &found, sizeof found);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(low)), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<pack<Stored, count> *>(low) = found;
}

/* The lowest element of a pack whose first one, along a line that falls or rises, is at `first`. */
template <bool down, int count, typename Stored>
OPC_DEVICE Stored *lowest_of(Stored *first) {
  return down ? first - (count - 1) : first;
}
template <bool down, int count, typename Stored>
OPC_DEVICE bool lies_in_packs(Stored *first, int64_t step) {
  const uintptr_t low = reinterpret_cast<uintptr_t>(lowest_of<down, count>(first));
  return step == (down ? -1 : 1) && low % (sizeof(Stored) * count) == 0;
}

/* What a word of the board tells: nothing yet, or the half of a value. A value and that it is there are seen at once. */
template <typename T>
struct shown_value {
  enum : int { words = sizeof(T) > 4 ? 2 : 1 };
  OPC_DEVICE void show(uint64_t *board, uint32_t node, T value) {
    uint32_t halves[2] = {0, 0};
    memcpy(halves, &value, sizeof value);
    OPC_UNROLLED
    for (int w = 0; w < words; ++w) const_cast<volatile uint64_t *>(board)[size_t(node) * words + w] = uint64_t(1) << 32 | halves[w];
  }
  OPC_DEVICE T wait(const uint64_t *board, uint32_t node) {
    uint32_t halves[2] = {0, 0};
    OPC_UNROLLED
    for (int w = 0; w < words; ++w) {
      uint64_t word;
      OPC_WAIT_UNTIL(((word = const_cast<const volatile uint64_t *>(board)[size_t(node) * words + w]) >> 32) != 0);
      halves[w] = static_cast<uint32_t>(word);
    }
    T value;
    memcpy(&value, halves, sizeof value);
    return value;
  }
};

/* Reduces what lanes of a warp have for each column over the lanes before a lane and itself; several values at once, which do not wait for
 * each other. */
template <typename Joins, int count, typename T>
OPC_DEVICE void reduce_up_to(T (&values)[count], int columns, int reach, int lane) {
  OPC_ROLLED
  for (int distance = columns; distance < reach; distance *= 2) {
    OPC_UNROLLED
    for (int j = 0; j < count; ++j) {
      const T before = __shfl_up_sync(0xffffffffu, values[j], static_cast<unsigned>(distance));
      if ((lane & (reach - 1)) >= distance) values[j] = Joins::join(before, values[j]);
    }
  }
}

/* What the first `warps` of a block have for each column, over those before this one; `all` becomes that of all. Every thread of a warp
 * with the same column gives the same value. */
template <typename Joins, typename T>
OPC_DEVICE T warps_before(T value, T start, int warps, int column, int warp, T &all) {
  OPC_SHARED(T, totals, block_warps *threads_a_warp);
  totals[warp * threads_a_warp + column] = value;
  __syncthreads();
  T before = start;
  all = start;
  OPC_ROLLED
  for (int w = 0; w < warps; ++w) {
    if (w == warp) before = all;
    all = Joins::join(all, totals[w * threads_a_warp + column]);
  }
  __syncthreads();
  return before;
}

/* What the chunks before one come to, in a column of its lines, where `own` is what it comes to itself. The chunks of a line are the
 * leaves of a tree in which each node has as many children as `fan_bits` bits number; a node is shown by the block that has its last chunk. */
template <typename Joins, typename T, typename Nest>
OPC_DEVICE T chunks_before(const Nest &n, T own, T start, uint32_t group, uint32_t chunk, int column, int part, int parts, int warp) {
  const line_scan &s = n.scan;
  const uint32_t slot = static_cast<uint32_t>(warp * parts + part), all_ranks = (uint32_t(1) << s.fan_bits) - 1;
  /* Nodes are numbered level by level, the lines of each together. Few groups of lines have blocks, so that 32 bits are enough. */
  uint32_t first = 0, count = static_cast<uint32_t>(s.chunks), at = chunk;
  const int asked = (s.columns << s.fan_bits) / threads_a_warp; /* warps whose threads ask for a node */
  T before = start;
  bool last = true; /* whether the node at `at` ends with this chunk */
  OPC_ROLLED
  while (true) {
    const uint32_t node = first + (group * count + at) * static_cast<uint32_t>(s.columns) + static_cast<uint32_t>(column);
    if (last && slot == 0) shown_value<T>::show(s.board, node, own);
    if (at == 0) break;
    const uint32_t rank = at & all_ranks;
    T values[1] = {start}, all;
    if (slot < rank) values[0] = shown_value<T>::wait(s.board, node - (rank - slot) * static_cast<uint32_t>(s.columns));
    reduce_up_to<Joins>(values, s.columns, threads_a_warp, static_cast<int>(threadIdx.x) % threads_a_warp);
    values[0] = __shfl_sync(0xffffffffu, values[0], static_cast<unsigned>(threads_a_warp - s.columns + column));
    warps_before<Joins>(values[0], start, asked, column, warp, all);
    before = Joins::join(all, before);
    own = Joins::join(all, own);
    last = last && rank == all_ranks;
    first += static_cast<uint32_t>(s.groups) * count * static_cast<uint32_t>(s.columns);
    count >>= s.fan_bits;
    at >>= s.fan_bits;
    if (at == 0 && !last) break;
  }
  return before;
}

/* The lines of a nest, with what is read along each, as `scan_lines` says. */
template <typename Joins, typename T, bool down, bool plain, typename Nest, typename Target, typename Source, typename Term, typename Value>
OPC_DEVICE void scan_along(const Nest &n, T start, Target *to, const Source &source, const Term &term, const Value &value) {
  typedef typename Source::stored stored;
  constexpr int count = pack_of(sizeof(stored), sizeof(Target));
  OPC_SHARED(uint32_t, drawn, 1);
  const line_scan &s = n.scan;
  const int lane = static_cast<int>(threadIdx.x) % threads_a_warp, warp = static_cast<int>(threadIdx.x) / threads_a_warp;
  const int column = lane & (s.columns - 1), parts = s.reach / s.columns, part = (lane & (s.reach - 1)) / s.columns;
  const int pitch = parts * count;
  int64_t group;
  uint32_t chunk = 0;
  if (s.blocks) {
    uint32_t number = blockIdx.x;
    if (s.chunks > 1) {
      if (first_thread()) drawn[0] = atomicAdd(s.drawn, 1u);
      __syncthreads();
      number = drawn[0];
    }
    chunk = number / static_cast<uint32_t>(s.groups);
    group = number % static_cast<uint32_t>(s.groups);
  } else {
    group = (static_cast<int64_t>(blockIdx.x) * block_warps + warp) * (threads_a_warp / s.reach) + lane / s.reach;
  }
  int64_t side;
  const int64_t front = without_last(group, s.sides, side), behind = side * s.columns + column;
  const bool some = group < s.groups && behind < s.behind;
  const int64_t base = front * s.size, store_step = down ? -s.behind : s.behind;
  /* A pack of a line whose elements lie together begins where a pack of the target does, whatever its first element is. */
  const int64_t shift = s.behind == 1 ? (down ? -(base + s.size + s.lead) : base - s.lead) & (count - 1) : 0;
  const stored *const line = source.line(some ? front : 0, some ? behind : 0);
  Target *const to_line = to + (down ? base + s.size - 1 : base) * s.behind + behind;
  const int64_t warp_chunk = static_cast<int64_t>(pitch) * thread_packs, chunk_warps = s.blocks ? blockDim.x / threads_a_warp : 1;
  T carried = start;
  do {
    const int64_t first = (chunk * chunk_warps + (s.blocks ? warp : 0)) * warp_chunk + part * count - shift;
    const int64_t first_term = first - s.skip, first_point = first - s.lead;
    /* All elements are read before one is used, and kept as they are stored. */
    kept_pack<stored, count> read[thread_packs] = {};
    const pack_range<count> terms(-first_term, some ? s.terms - first_term : 0, pitch);
    const stored *const from = line + first_term * source.step;
    if (!Source::reads) {
      /* There is nothing to read ahead. */
    } else if (terms.whole && lies_in_packs<down, count>(from, source.step)) {
      OPC_UNROLLED
      for (int j = 0; j < thread_packs; ++j) {
        if (terms.has(j * pitch)) read[j].take(lowest_of<down, count>(from) + (down ? -j * pitch : j * pitch));
      }
    } else {
      OPC_UNROLLED
      for (int j = 0; j < thread_packs; ++j) {
        const stored *at = from + j * pitch * source.step;
        OPC_UNROLLED
        for (int e = 0; e < count; ++e) {
          if (terms.has(j * pitch + e)) read[j].set(down ? count - 1 - e : e, *at);
          at += source.step;
        }
      }
    }
    const auto taken = [&](int j, int e) -> T {
      const stored element = read[j].get(down ? count - 1 - e : e);
      return plain || terms.has(j * pitch + e) ? T(term(front, behind, first_term + j * pitch + e, load(&element))) : start;
    };
    /* What comes before each pack in the chunk of a warp, and what the chunk comes to. */
    T before[thread_packs], all = start;
    OPC_UNROLLED
    for (int j = 0; j < thread_packs; ++j) {
      before[j] = taken(j, 0);
      OPC_UNROLLED
      for (int e = 1; e < count; ++e) before[j] = Joins::join(before[j], taken(j, e));
    }
    reduce_up_to<Joins>(before, s.columns, s.reach, lane);
    OPC_UNROLLED
    for (int j = 0; j < thread_packs; ++j) {
      const T lower = __shfl_up_sync(0xffffffffu, before[j], static_cast<unsigned>(s.columns));
      const T last = __shfl_sync(0xffffffffu, before[j], static_cast<unsigned>((lane | (s.reach - 1)) - s.columns + 1 + column));
      before[j] = part == 0 ? all : Joins::join(all, lower);
      all = Joins::join(all, last);
    }
    OPC_UNROLLED
    for (int j = 0; j < thread_packs; ++j) read[j].forget();
    T ahead = carried;
    if (s.blocks) {
      T chunk_all;
      ahead = warps_before<Joins>(all, start, static_cast<int>(blockDim.x) / threads_a_warp, column, warp, chunk_all);
      if (s.chunks > 1) {
        const T earlier = chunks_before<Joins>(n, chunk_all, start, static_cast<uint32_t>(group), chunk, column,
                                               part, parts, warp);
        ahead = Joins::join(earlier, ahead);
      }
    }
    carried = Joins::join(carried, all);
    const pack_range<count> points(-first_point, some ? s.size - first_point : 0, pitch);
    Target *const own_to = to_line + first_point * store_step;
    const bool in_packs = points.whole && lies_in_packs<down, count>(own_to, store_step);
    OPC_UNROLLED
    for (int j = 0; j < thread_packs; ++j) {
      T total = Joins::join(ahead, before[j]);
      Target own[count];
      OPC_UNROLLED
      for (int e = 0; e < count; ++e) {
        const T lower = total;
        total = Joins::join(total, taken(j, e));
        if (!plain && !points.has(j * pitch + e)) continue;
        const int64_t at = first_point + j * pitch + e;
        store(own + e, value(front, behind, down ? s.size - 1 - at : at, s.exclusive ? lower : total));
      }
      if (in_packs) {
        Target *const low = lowest_of<down, count>(own_to) + (down ? -j * pitch : j * pitch);
        if (!points.has(j * pitch)) continue;
        pack<Target, count> found;
        OPC_UNROLLED
        for (int e = 0; e < count; ++e) found.elements[e] = own[down ? count - 1 - e : e];
        write_pack<down>(low, found);
      } else {
        Target *at_to = own_to + j * pitch * store_step;
        OPC_UNROLLED
        for (int e = 0; e < count; ++e) {
          if (points.has(j * pitch + e)) *at_to = own[e];
          at_to += store_step;
        }
      }
    }
  } while (!s.blocks && ++chunk < s.chunks);
}

/* Carries a reduction along the lines of a nest, from `start` on, `down` from the last point of each or up. `front` and `behind` are the
 * places of the target's indices ahead of the one that it goes along, and behind it. `term(front, behind, t, element)` is term t of a line,
 * which is made of an element of `from`: number `first(front, behind)` for term 0, and each next one `step` behind that;
 * `value(front, behind, i, total)` is the target at point i, whose elements begin at `to`. In a `plain` one, term and value read nothing
 * further, and a term of an element that is zero is what a reduction starts from. */
template <typename Joins, typename T, bool down, bool plain, typename Nest, typename Target, typename Stored, typename First, typename Term, typename Value>
OPC_DEVICE void scan_lines(const Nest &n, T start, Target *to, Stored *from, const First &first, int64_t step, const Term &term,
                           const Value &value) {
  scan_along<Joins, T, down, plain>(n, start, to, read_along<Stored, First>{from, first, step}, term, value);
}

/* The same with `term(front, behind, t)`, which reads for itself. */
template <typename Joins, typename T, bool down, bool plain, typename Nest, typename Target, typename Term, typename Value>
OPC_DEVICE void scan_lines(const Nest &n, T start, Target *to, const Term &term, const Value &value) {
  const auto alone = [&](int64_t front, int64_t behind, int64_t t, compute<Target>) { return term(front, behind, t); };
  scan_along<Joins, T, down, plain>(n, start, to, nothing_along<Target>{0}, alone, value);
}

}  // namespace OPC_VARIANT

/* How lines are given to lanes and blocks, and the memory by which blocks tell each other what chunks come to. All of it depends on sizes
 * alone, and so do results. */
struct scan_launch {
  enum : int64_t { many_groups = 8192, some_groups = 2048, few_chunks = 8 };
  int64_t blocks = 0;
  int64_t threads = 0; /* of a block */
  int64_t size = 0;
  void *memory = nullptr;
  const opc_cuda_context *lent;

  /* The lines along entry `along` of the target; `first` terms are taken in at the first point that is passed, one more at each further
   * one; what is carried has `value_bytes` bytes, and neighbours go in packs of so many. */
  template <int32_t Operands>
  scan_launch(device_nest<Operands> &d, const opc_cuda_context *context, int32_t along, int64_t first, int64_t value_bytes,
              int64_t pack)
      : lent(context) {
    line_scan &s = d.scan;
    s.size = d.size[along];
    s.behind = d.after[along];
    if (d.points == 0) return;
    s.exclusive = first <= 0;
    s.lead = first > 1 ? first - 1 : 0;
    s.skip = first < 0 ? -first : 0;
    s.terms = at_least_0(s.size - 1 + first);
    s.columns = 1;
    while (s.columns < s.behind && s.columns < threads_a_warp) s.columns *= 2;
    s.sides = (s.behind + s.columns - 1) / s.columns;
    s.groups = d.points / s.size / s.behind * s.sides;
    const bool shifts = s.behind == 1 && (s.size % pack != 0 || s.lead % pack != 0);
    const int64_t span = s.size + s.lead + (shifts ? pack - 1 : 0);
    s.reach = s.columns;
    const int64_t positions = thread_packs * pack;
    while (s.reach < threads_a_warp && s.reach / s.columns * positions < span) s.reach *= 2;
    const int64_t warp_chunk = s.reach / s.columns * positions, chunks = (span + warp_chunk - 1) / warp_chunk;
    s.blocks = chunks > 2 && s.groups < many_groups && (chunks > few_chunks || s.groups < some_groups);
    s.fan_bits = s.columns == 32 ? 3 : s.columns == 16 ? 4 : 5; /* so many threads of a block have a column */
    if (!s.blocks) {
      const int64_t warps = (s.groups + threads_a_warp / s.reach - 1) / (threads_a_warp / s.reach);
      s.chunks = chunks;
      blocks = (warps + block_warps - 1) / block_warps;
      threads = threads_for(warps * threads_a_warp);
      return;
    }
    const int64_t warps = chunks < block_warps ? chunks : int64_t(block_warps);
    s.chunks = (chunks + warps - 1) / warps;
    blocks = s.groups * s.chunks;
    threads = warps * threads_a_warp;
    if (s.chunks == 1) return;
    size = 2;
    for (int64_t count = s.chunks; count > 0; count >>= s.fan_bits) size += s.groups * s.columns * count * (value_bytes > 4 ? 2 : 1);
    size *= 8;
    memory = device_memory(lent, size);
    s.drawn = static_cast<uint32_t *>(memory);
    s.board = static_cast<uint64_t *>(memory) + 2;
    if (memory != nullptr) set_zero(lent, memory, size);
  }
  scan_launch(const scan_launch &) = delete;
  scan_launch &operator=(const scan_launch &) = delete;
  ~scan_launch() {
    if (memory != nullptr && lent->release != nullptr) lent->release(lent->allocator, memory, size, lent->stream);
  }
  bool lacks_memory() const { return size > 0 && memory == nullptr; }
};

}  // namespace opc
#endif  // OPC_CUDA_SCAN_H
