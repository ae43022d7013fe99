/* The stable order of rows, whole or in part: for the files compiled once for each instruction-set variant.
 *
 * An element becomes a whole number that is ordered as it is, and with its place behind it an item; no two items are equal, so that any
 * way to order them is stable. Short rows of items are sorted by comparisons, long ones digit by digit from the lowest one on, as radix
 * sort does. Of a few of the least, a row is read once: what is less than the greatest of those found so far joins them.
 */
#ifndef OPC_NESTS_ORDER_H
#define OPC_NESTS_ORDER_H

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <type_traits>

#include "opc/nests/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Whole numbers of the width of T without a sign. */
template <typename T>
using order_word = std::conditional_t<
    sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

/* What turns a key of max_key, as a number without a sign, into one that is ordered as elements are, or the other way round. */
template <typename T>
OPC_INLINE order_word<T> order_mask(bool descending) {
  typedef order_word<T> word;
  constexpr word sign = T(-1) < T(0) ? word(word(1) << (8 * sizeof(T) - 1)) : word(0);
  return descending ? word(~sign) : sign;
}

/* An element as a number that is ordered as the mask says: zeros of both signs are one, and NaN is the greatest element. */
template <typename T>
OPC_INLINE order_word<T> sort_key(T value, order_word<T> mask) {
  typedef order_word<T> word;
  if constexpr (is_floating<T>) value = value + T(0);
  return word(word(max_key(value)) ^ mask);
}

/* An item of a key that leaves room for the place beside it, and one of a longer key. */
struct short_item {
  uint64_t both;
  OPC_INLINED static short_item of(uint64_t key, int64_t place) { return {key << 32 | static_cast<uint64_t>(place)}; }
  OPC_INLINED uint64_t key() const { return both >> 32; }
  OPC_INLINED int64_t place() const { return static_cast<int64_t>(both & 0xffffffff); }
  OPC_INLINED bool operator<(const short_item &o) const { return both < o.both; }
};
struct long_item {
  uint64_t word;
  int64_t at;
  OPC_INLINED static long_item of(uint64_t key, int64_t place) { return {key, place}; }
  OPC_INLINED uint64_t key() const { return word; }
  OPC_INLINED int64_t place() const { return at; }
  OPC_INLINED bool operator<(const long_item &o) const { return word != o.word ? word < o.word : at < o.at; }
};

/* Memory of the items of rows. */
struct order_memory {
  void *data = nullptr;
  int64_t bytes = 0;
  order_memory() = default;
  order_memory(const order_memory &) = delete;
  order_memory &operator=(const order_memory &) = delete;
  ~order_memory() { free(data); }

  /* Returns so many bytes, NULL where there are not. */
  void *take(int64_t wanted) {
    if (wanted > bytes) {
      free(data);
      data = malloc(static_cast<size_t>(wanted));
      bytes = data == nullptr ? 0 : wanted;
    }
    return data;
  }
};

enum : int64_t {
  most_digits = 6,
  order_digit_bits = 11,
  order_digits = 1 << order_digit_bits,
  order_long_row = 1024, /* shorter rows are sorted by comparisons: to count digits takes longer */
  order_block = 32,      /* elements of which it is asked together whether one is among the least */
  order_few = 32         /* so few of the least are kept sorted */
};

/* Sorts items digit by digit; `other` has room for as many, `counts` for one of each value of each digit. Returns where the items are
 * then: in one of the two. */
template <typename Item>
__attribute__((noinline)) static Item *sort_by_digits(Item *items, Item *other, int64_t count, int32_t bits, int64_t *counts) {
  const int32_t digits = (bits + order_digit_bits - 1) / order_digit_bits;
  memset(counts, 0, sizeof(int64_t) * static_cast<size_t>(order_digits * digits));
  for (int64_t i = 0; i < count; ++i) {
    uint64_t key = items[i].key();
    for (int32_t d = 0; d < digits; ++d, key >>= order_digit_bits) ++counts[d * order_digits + int64_t(key & (order_digits - 1))];
  }
  for (int32_t d = 0; d < digits; ++d) {
    int64_t *const first = counts + d * order_digits;
    const int32_t shift = d * order_digit_bits;
    if (first[items[0].key() >> shift & (order_digits - 1)] == count) continue; /* all have the same */
    for (int64_t v = 0, sum = 0; v < order_digits; ++v) {
      const int64_t own = first[v];
      first[v] = sum;
      sum += own;
    }
    for (int64_t i = 0; i < count; ++i) other[first[items[i].key() >> shift & (order_digits - 1)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

/* The functions of the standard library, compiled once for a kind of items and not for each type of elements. */
template <typename Item>
__attribute__((noinline)) static void sort_items(Item *begin, Item *end) {
  std::sort(begin, end);
}
template <typename Item>
__attribute__((noinline)) static void partition_items(Item *begin, Item *at, Item *end) {
  std::nth_element(begin, at, end);
}

/* Moves the items of places [low, high) of the order there, sorted. */
template <typename Item>
__attribute__((noinline)) static void sort_part(Item *items, int64_t count, int64_t low, int64_t high) {
  if (low > 0) partition_items(items, items + low, items + count);
  if (high < count && (low == 0 || high > low + 1)) partition_items(items + low, items + high - 1, items + count);
  sort_items(items + low, items + high);
}

/* Calls take(key, place) for the elements of a row whose keys are less than `most`, which it may lower, and for those that stand in one
 * block with such ones perhaps. */
template <typename Word, typename Key, typename Take>
OPC_INLINE void below(int64_t count, const Word &most, Key key, Take take) {
  Word keys[order_block];
  int64_t i = 0;
  for (; i + order_block <= count; i += order_block) {
    OPC_SIMD
    for (int64_t u = 0; u < order_block; ++u) keys[u] = key(i + u);
    Word least = keys[0];
    for (int64_t u = 1; u < order_block; ++u) least = keys[u] < least ? keys[u] : least;
    if (least >= most) continue;
    for (int64_t u = 0; u < order_block; ++u) take(keys[u], i + u);
  }
  for (; i < count; ++i) take(key(i), i);
}

/* Finds the `wanted` least items of a row, sorted, in memory for 2 * wanted + order_block of them; key(i) is that of element i. An element
 * as great as the greatest of those found stands behind it. */
template <typename Item, typename Key>
OPC_INLINE void find_least(Item *items, int64_t count, int64_t wanted, Key key) {
  typedef decltype(key(0)) word;
  int64_t held = wanted;
  if (wanted <= order_few) {
    for (int64_t i = 0; i < wanted; ++i) items[i] = Item::of(key(i), i);
    sort_items(items, items + wanted);
    word most = word(items[wanted - 1].key());
    const auto insert = [&](word own, int64_t place) OPC_INLINED {
      if (own >= most) return;
      int64_t at = wanted - 1;
      for (; at > 0 && word(items[at - 1].key()) > own; --at) items[at] = items[at - 1];
      items[at] = Item::of(own, place);
      most = word(items[wanted - 1].key());
    };
    below(count - wanted, most, [=](int64_t i) OPC_INLINED { return key(wanted + i); },
          [&](word own, int64_t i) OPC_INLINED { insert(own, wanted + i); });
    return;
  }
  const int64_t room = 2 * wanted;
  for (int64_t i = 0; i < room; ++i) items[i] = Item::of(key(i), i);
  partition_items(items, items + wanted - 1, items + room);
  word most = word(items[wanted - 1].key());
  below(count - room, most, [=](int64_t i) OPC_INLINED { return key(room + i); },
        [&](word own, int64_t i) OPC_INLINED {
          if (own >= most) return;
          items[held++] = Item::of(own, room + i);
          if (held < room) return;
          partition_items(items, items + wanted - 1, items + held);
          held = wanted;
          most = word(items[wanted - 1].key());
        });
  if (held > wanted) partition_items(items, items + wanted - 1, items + held);
  sort_items(items, items + wanted);
}

/* Orders one row and stores the places of the elements that stand at `first`, first + step, ... of the order, `wanted` of them. */
template <typename Item, typename Key>
OPC_INLINE void order_items(int64_t *counts, int64_t count, int32_t bits, Key key, int64_t first, int64_t step, int64_t wanted,
                            int64_t *out, int64_t out_stride) {
  const int64_t last = first + step * (wanted - 1);
  const int64_t low = step < 0 ? last : first, high = (step < 0 ? first : last) + 1;
  Item *const items = reinterpret_cast<Item *>(counts + most_digits * order_digits);
  const Item *found = items;
  if (high <= count / 8) {
    find_least(items, count, high, key);
  } else {
    for (int64_t i = 0; i < count; ++i) items[i] = Item::of(key(i), i);
    if (high - low >= order_long_row) {
      found = sort_by_digits(items, items + count, count, bits, counts); /* they stand in the order of their places */
    } else {
      sort_part(items, count, low, high);
    }
  }
  for (int64_t i = 0; i < wanted; ++i) out[i * out_stride] = found[first + step * i].place();
}

/* Orders `columns` rows of `count` elements, which begin at `from` and `across` elements from one another, and whose elements are `along`
 * apart. The places of those that stand at first, first + step, ... are stored `out_along` apart, `out_across` from row to row. */
template <typename T>
OPC_ROW_NEST __attribute__((noinline)) static void order_rows(const row_nest &n, order_memory &memory, const T *from, int64_t count,
                                                              int64_t along, int64_t columns, int64_t across, int64_t first,
                                                              int64_t step, bool descending, int64_t *out) {
  typedef order_word<T> word;
  const int64_t wanted = n.scan_size;
  if (count <= 0) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < wanted; ++i) out[c * n.column_stride + i * n.scan_stride] = 0;
    }
  }
  if (wanted <= 0 || count <= 0) return;
  const word mask = order_mask<T>(descending);
  const bool is_short = sizeof(T) <= 4 && count <= int64_t(0xffffffff);
  const int64_t items = 2 * count + 2 * order_block, size = is_short ? sizeof(short_item) : sizeof(long_item);
  const bool copies = (along != 1 && columns > 1) || (sizeof(T) <= 4 && !is_short); /* long rows of short keys: compiled once */
  const int64_t counts = most_digits * order_digits * int64_t(sizeof(int64_t));
  char *const data = static_cast<char *>(memory.take(counts + items * size + (copies ? columns * count * int64_t(sizeof(word)) : 0)));
  if (data == nullptr) {
    report(n, nullptr, -2, 0, 0);
    return;
  }
  word *const keys = reinterpret_cast<word *>(data + counts + items * size);
  int64_t *const digits = reinterpret_cast<int64_t *>(data);
  if (copies) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < columns; ++c) keys[c * count + i] = sort_key(from[i * along + c * across], mask);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    int64_t *const to = out + c * n.column_stride;
    const auto order = [&](auto item, auto key) OPC_INLINED {
      order_items<decltype(item)>(digits, count, 8 * sizeof(T), key, first, step, wanted, to, n.scan_stride);
    };
    typedef std::conditional_t<sizeof(T) <= 4, short_item, long_item> usual_item;
    if (copies) {
      const word *const own = keys + c * count;
      const auto key = [=](int64_t i) OPC_INLINED { return own[i]; };
      if (is_short) {
        order(usual_item{}, key);
      } else {
        order(long_item{}, key);
      }
    } else {
      const T *const own = from + c * across;
      with_step(along, [&](auto distance) OPC_INLINED {
        order(usual_item{}, [=](int64_t i) OPC_INLINED { return sort_key(own[i * distance], mask); });
      });
    }
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_ORDER_H
