/* Factors of sums of products that are windows: an element lies where a point and a term tell together, or is 0. */
#ifndef OPC_CUDA_GATHER_H
#define OPC_CUDA_GATHER_H

#include "opc/cuda/finish.h"

namespace opc {
inline namespace OPC_VARIANT {

/* What a point, or a term, adds to the place of an element: to the offset, and to each of some coordinates; and behind these, where places
 * are divided, which remainder a term has, or one needs to have for a point. */
template <int Count>
struct placed {
  int64_t offset;
  int64_t at[Count > 0 ? Count : 1];
  template <typename... Places>
  OPC_DEVICE_MEMBER explicit placed(int64_t offset_, Places... places) : offset(offset_), at{places...} {}
};

/* The same in 32 bits, for calls where these are enough. */
template <int Count>
struct near_place {
  int64_t offset;
  int32_t at[Count > 0 ? Count : 1];
  near_place() = default;
  OPC_DEVICE_MEMBER near_place(const placed<Count> &whole) : offset(whole.offset) {
    OPC_UNROLLED
    for (int i = 0; i < Count; ++i) at[i] = static_cast<int32_t>(whole.at[i]);
  }
};

/* A factor: the element at `data` + both offsets where each coordinate is below its size and the remainders are the same; else
 * 0. `points(batch, point)` and `terms(term)` return what is `placed`. */
template <int Tests, int Remainders, typename Element, typename Points, typename Terms>
struct gathered {
  typedef Element element;
  typedef near_place<Tests + Remainders> place;
  enum : int { numbers = Tests + Remainders };
  const Element *data;
  const Points &points;
  const Terms &terms;
  int64_t size[Tests > 0 ? Tests : 1];
  uint32_t near_size[Tests > 0 ? Tests : 1];

  /* Whether there is an element. */
  OPC_DEVICE_MEMBER bool holds(const place &point, const place &term) const {
    bool found = true;
    if constexpr (Remainders > 0) {
      OPC_UNROLLED
      for (int i = Tests; i < Tests + Remainders; ++i) found = found & (point.at[i] == term.at[i]);
    }
    if constexpr (Tests > 0) {
      OPC_UNROLLED
      for (int i = 0; i < Tests; ++i) found = found & (static_cast<uint32_t>(point.at[i]) + static_cast<uint32_t>(term.at[i]) < near_size[i]);
    }
    return found;
  }
  OPC_DEVICE_MEMBER const Element *at(const place &point, const place &term) const { return data + (point.offset + term.offset); }
  /* The value at any coordinates. What is below a size that is divided may take all of 64 bits. */
  OPC_DEVICE_MEMBER compute<Element> value(int64_t batch, int64_t point, int64_t term) const {
    const placed<numbers> own = points(batch, point), other = terms(term);
    bool found = true;
    OPC_UNROLLED
    for (int i = Tests; i < Tests + Remainders; ++i) found = found & (own.at[i] == other.at[i]);
    OPC_UNROLLED
    for (int i = 0; i < Tests; ++i) {
      const int64_t both = own.at[i] + other.at[i];
      found = found & (both >= 0) & (static_cast<uint64_t>(both) < static_cast<uint64_t>(size[i]));
    }
    if (!found) return compute<Element>(0);
    return load(data + (own.offset + other.offset));
  }
};

template <int Tests, int Remainders, typename Element, typename Points, typename Terms, typename... Sizes>
OPC_DEVICE gathered<Tests, Remainders, std::remove_const_t<Element>, Points, Terms> gathered_places(Element *data, const Points &points,
                                                                                                 const Terms &terms, Sizes... sizes) {
  return {data, points, terms, {sizes...}, {static_cast<uint32_t>(sizes < INT32_MAX ? sizes : INT32_MAX)...}};
}

/* The same of 16 bytes, or of an element that is brought alone: to the offset, in as many elements as these are, and in which places of the
 * window it is, of 32 that follow each other. There is an element where a point and a term have one of these in common. */
struct short_place {
  uint32_t offset, window;
  /* In a word, so that it is read at once. */
  OPC_DEVICE_MEMBER uint64_t word() const { return static_cast<uint64_t>(window) << 32 | offset; }
  OPC_DEVICE_MEMBER static short_place of(uint64_t word) { return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)}; }
};

/* What a thread keeps of such places, of its points or of its place along them. */
template <int count>
struct kept_places {
  short_place at[count];
};

/* The places of a tile's points, and of the terms of some steps, a round, in shared memory, behind the number of the first term and how many
 * there are, and where the tile begins in its place of the window and how many of these it has: what few threads need is in no register.
 * `Part` is the part of the factor that is in shared memory at once. */
enum : int { place_table_head = 48, place_table_terms = 4 * threads_a_block };
template <typename Part, typename At>
struct place_table {
  typedef typename At::place place;
  static constexpr bool by_terms = Part::by_terms, tests = At::numbers > 0;
  enum : int { points = Part::all_points, count = Part::terms, unit = Part::unit, terms_each = Part::terms_each, pack_count = count / terms_each };
  enum : int { entries = points + place_table_terms, bytes = place_table_head + entries * static_cast<int>(sizeof(place)) };
  /* Short places take less room: of terms, and behind these of points. */
  enum : int { shorts = place_table_terms * static_cast<int>(sizeof(place)) / 8 - points, steps = place_table_terms / count, pack_steps = shorts / pack_count };
  char *memory;
  const At &at;
  const divisor &together;
  bool packs;
  OPC_DEVICE_MEMBER place_table(char *memory_, const At &at_, const divisor &together_, bool packs_)
      : memory(memory_), at(at_), together(together_), packs(packs_) {}
  OPC_DEVICE_MEMBER place &point(int p) const { return reinterpret_cast<place *>(memory + place_table_head)[p]; }
  /* A term of a step of a round; and the first place of a step, of those that are short. */
  OPC_DEVICE_MEMBER place &term(int step, int t) const { return reinterpret_cast<place *>(memory + place_table_head)[points + step * count + t]; }
  OPC_DEVICE_MEMBER uint64_t *first(int step) const {
    return reinterpret_cast<uint64_t *>(memory + place_table_head + points * static_cast<int>(sizeof(place))) + step * pack_count;
  }
  OPC_DEVICE_MEMBER uint64_t &kept(int p) const { return first(0)[shorts + p]; }
  OPC_DEVICE_MEMBER int64_t *head() const { return reinterpret_cast<int64_t *>(memory); }
  /* What else a tile keeps: two numbers. */
  OPC_DEVICE_MEMBER int &number(int which) const { return reinterpret_cast<int *>(memory + 32)[which]; }
  OPC_DEVICE_MEMBER void set_numbers(int first, int second) const {
    if (!first_thread()) return;
    number(0) = first;
    number(1) = second;
  }
  OPC_DEVICE_MEMBER void begin(int64_t batch, int64_t first_point, int points_left, int64_t first_term, int64_t terms) const {
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    OPC_ROLLED
    for (int p = thread; p < points; p += threads_a_block) {
      if (p < points_left) point(p) = at.points(batch, first_point + p);
    }
    if (!first_thread()) return;
    head()[0] = first_term;
    head()[1] = terms;
    if (by_terms) return;
    without_last(first_point, together, head()[2]);
    head()[3] = quotient_by(together, points_left - 1 + head()[2]) + 1;
  }
  /* The step behind the last one of the round that begins with a step. */
  OPC_DEVICE_MEMBER int end_of(int step) const {
    if (!packs) return step + steps;
    if constexpr (by_terms && tests) {
      const int64_t end = (window_at(step) + 32) * static_cast<int64_t>(together.wide_value) - head()[0];
      return at_most(step + pack_steps, end / count);
    }
    return step + pack_steps;
  }
  OPC_DEVICE_MEMBER int64_t window_at(int step) const { return quotient_by(together, head()[0] + static_cast<int64_t>(step) * count); }
  /* Finds the places of a round's terms. */
  OPC_DEVICE_MEMBER void fill(int step, int end) const {
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    const int64_t begin = static_cast<int64_t>(step) * count;
    const int all = (end - step) * (packs ? int(pack_count) : int(count));
    OPC_ROLLED
    for (int e = thread; e < all; e += threads_a_block) {
      const int64_t own = begin + e * (packs ? int(terms_each) : 1);
      if (own < head()[1]) {
        const place found = at.terms(head()[0] + own);
        if (packs) {
          first(0)[e] = shortened(found, window_of(head()[0] + own, found)).word();
        } else {
          term(0, e) = found;
        }
      } else if (packs) {
        /* Behind the last term nothing has an element. */
        first(0)[e] = 0;
      }
    }
  }
  OPC_DEVICE_MEMBER static short_place shortened(const place &whole, uint32_t window) {
    return {static_cast<uint32_t>(whole.offset / unit), window};
  }
  /* Along terms, a term is in one place of the window. Along points, one has elements for some of the tile's. */
  OPC_DEVICE_MEMBER uint32_t window_of(int64_t term, const place &found) const {
    if constexpr (!tests) return ~0u;
    if constexpr (by_terms) return 1u << (quotient_by(together, term) % 32);
    uint32_t window = 0;
    const int skipped = static_cast<int>(head()[2]);
    OPC_ROLLED
    for (int w = 0; w < static_cast<int>(head()[3]); ++w) {
      const int own = w == 0 ? 0 : w * static_cast<int>(together.value) - skipped;
      window |= static_cast<uint32_t>(at.holds(point(own), found)) << w;
    }
    return window;
  }
  /* Keeps the places of a thread's points from `first_point` on, `behind` points behind each other, or along points that of the first of
   * those that it brings together. Along terms, they are tested for the places of the window from those of a step on: each lane finds
   * one of 32. */
  template <int own>
  OPC_DEVICE_MEMBER void keep(kept_places<own> &kept, int step, int first_point, int behind, int points_left) const {
    if (!packs) return;
    OPC_UNROLLED
    for (int i = 0; i < own; ++i) {
      const int p = first_point + i * behind;
      kept.at[i] = {0, 0};
      if (p >= points_left) continue;
      const int skipped = by_terms ? 0 : static_cast<int>(head()[2]);
      kept.at[i] = shortened(point(p), !by_terms ? 1u << quotient_by(together, p + skipped) : tests ? 0u : ~0u);
    }
    if constexpr (by_terms && tests) {
      int now = static_cast<int>(threadIdx.x);
      forget(now);
      const int64_t begin = window_at(step), end = quotient_by(together, head()[0] + head()[1] - 1) + 1;
      const int some = at_most(32, end - begin), lane = now % 32;
      const place mine = at.terms((begin + (lane < some ? lane : 0)) * static_cast<int64_t>(together.wide_value));
      OPC_ROLLED
      for (int w = 0; w < some; ++w) {
        place other;
        other.offset = 0;
        OPC_UNROLLED
        for (int k = 0; k < At::numbers; ++k) other.at[k] = __shfl_sync(0xffffffffu, mine.at[k], static_cast<unsigned>(w));
        OPC_UNROLLED
        for (int i = 0; i < own; ++i) {
          const int p = first_point + i * behind;
          if (p < points_left && at.holds(point(p), other)) kept.at[i].window |= 1u << (begin + w) % 32;
        }
      }
    }
  }
  /* Where the element of a point and a term lies; null where there is none. */
  OPC_DEVICE_MEMBER const typename At::element *find(const place &point, const place &term) const {
    return at.holds(point, term) ? at.at(point, term) : nullptr;
  }
  OPC_DEVICE_MEMBER const typename At::element *find(const short_place &point, const short_place &term) const {
    return at.data + static_cast<int64_t>(static_cast<int32_t>(point.offset + term.offset)) * unit;
  }
  OPC_DEVICE_MEMBER static bool holds(const short_place &point, const short_place &term) { return (point.window & term.window) != 0; }
};

template <typename Part, int stages, typename At, bool computed, bool gathers>
struct table_of_factor {
  typedef no_table<At> type;
};
template <typename Part, int stages, typename At>
struct table_of_factor<Part, stages, At, true, false> {
  typedef term_table<stages, Part::terms, At> type;
};
template <typename Part, int stages, typename At>
struct table_of_factor<Part, stages, At, false, true> {
  typedef place_table<Part, At> type;
};
template <typename Part, int stages, typename At>
using factor_table = typename table_of_factor<Part, stages, At, is_computed<At>, is_gathered<At>>::type;

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_GATHER_H
