/* Factors of sums of products that are windows: an element lies where a point and a term tell together, or is 0. */
#ifndef OPC_CUDA_GATHER_H
#define OPC_CUDA_GATHER_H

#include "opc/cuda/finish.h"

namespace opc {
inline namespace OPC_VARIANT {

/* What a point, or a term, adds to the place of an element: to the offset, and to each of some coordinates; and behind these, where places
 * are divided, which remainder a term has, or one needs to have for a point. Axes have at most 2^31 points. */
template <int Count>
struct placed {
  int64_t offset;
  int32_t at[Count > 0 ? Count : 1];
  template <typename... Places>
  OPC_DEVICE_MEMBER explicit placed(int64_t offset_, Places... places) : offset(offset_), at{within(places)...} {}
  placed() = default;
  OPC_DEVICE_MEMBER static int32_t within(int64_t place) {
    constexpr int64_t least = -(int64_t(1) << 30), most = (int64_t(1) << 31) - 1;
    return static_cast<int32_t>(place < least ? least : place > most ? most : place);
  }
};

/* A factor: the element at `data` + both offsets where each coordinate is below its size and the remainders are the same; else
 * 0. `points(batch, point)` and `terms(term)` return what is `placed`. */
template <int Tests, int Remainders, typename Element, typename Points, typename Terms>
struct gathered {
  typedef Element element;
  typedef placed<Tests + Remainders> place;
  enum : int { numbers = Tests + Remainders, tests = numbers };
  const Element *data;
  const Points &points;
  const Terms &terms;
  uint32_t size[Tests > 0 ? Tests : 1];

  /* Whether there is an element. */
  OPC_DEVICE_MEMBER bool holds(const place &point, const place &term) const {
    bool found = true;
    if constexpr (Remainders > 0) {
      OPC_UNROLLED
      for (int i = Tests; i < Tests + Remainders; ++i) found = found & (point.at[i] == term.at[i]);
    }
    if constexpr (Tests > 0) {
      OPC_UNROLLED
      for (int i = 0; i < Tests; ++i) found = found & (static_cast<uint32_t>(point.at[i]) + static_cast<uint32_t>(term.at[i]) < size[i]);
    }
    return found;
  }
  OPC_DEVICE_MEMBER const Element *at(const place &point, const place &term) const { return data + (point.offset + term.offset); }
  OPC_DEVICE_MEMBER compute<Element> value(int64_t batch, int64_t point, int64_t term) const {
    const place own = points(batch, point), other = terms(term);
    if (!holds(own, other)) return compute<Element>(0);
    return load(at(own, other));
  }
};

template <int Tests, int Remainders, typename Element, typename Points, typename Terms, typename... Sizes>
OPC_DEVICE gathered<Tests, Remainders, std::remove_const_t<Element>, Points, Terms> gathered_places(Element *data, const Points &points,
                                                                                                 const Terms &terms, Sizes... sizes) {
  return {data, points, terms, {static_cast<uint32_t>(sizes)...}};
}

/* The same of 16 bytes, or of an element that is brought alone: to the offset, in as many elements as these are, and in which places of the
 * window it is, of 32 that follow each other. There is an element where a point and a term have one of these in common. */
struct short_place {
  uint32_t offset, window;
};

/* What a thread keeps of such places, of its points or of its place along them. */
template <int count>
struct kept_places {
  short_place at[count];
  int until; /* the first step for whose terms points have to be tested again */
};

/* The places of a tile's points, and of its next terms, in shared memory, behind the number of the first term and how many there are, and
 * where the tile begins in its place of the window and how many of these it has: what few threads need is in no register. A thread finds
 * the place of a term for many steps at once. `Part` is the part of the factor that is in shared memory at once. */
enum : int { place_table_head = 32, place_table_terms = 2 * threads_a_block };
template <typename Part, int stages, typename At>
struct place_table {
  typedef typename At::place place;
  typedef short_place shorter;
  static constexpr bool by_terms = Part::by_terms, tests = At::tests > 0;
  enum : int { points = Part::all_points, count = Part::terms, unit = Part::unit, terms_each = Part::terms_each, pack_count = count / terms_each };
  enum : int { entries = points + place_table_terms, bytes = place_table_head + entries * static_cast<int>(sizeof(place)) };
  char *memory;
  const At &at;
  const divisor &together;
  bool packs;
  OPC_DEVICE_MEMBER place_table(char *memory_, const At &at_, const divisor &together_, bool packs_)
      : memory(memory_), at(at_), together(together_), packs(packs_) {}
  OPC_DEVICE_MEMBER place &point(int p) const { return reinterpret_cast<place *>(memory + place_table_head)[p]; }
  OPC_DEVICE_MEMBER place &term(int step, int t) const {
    return reinterpret_cast<place *>(memory + place_table_head)[points + (step * count + t) % place_table_terms];
  }
  /* The first place of a step, of those that are short. */
  OPC_DEVICE_MEMBER short_place *first(int step) const {
    return reinterpret_cast<short_place *>(memory + place_table_head + points * static_cast<int>(sizeof(place))) + step * pack_count % place_table_terms;
  }
  OPC_DEVICE_MEMBER int64_t *head() const { return reinterpret_cast<int64_t *>(memory); }
  OPC_DEVICE_MEMBER void begin(int64_t batch, int64_t first_point, int points_left, int64_t first_term, int64_t terms) const {
    for (int p = static_cast<int>(threadIdx.x); p < points; p += threads_a_block) {
      if (p < points_left) point(p) = at.points(batch, first_point + p);
    }
    if (!first_thread()) return;
    head()[0] = first_term;
    head()[1] = terms;
    if (by_terms) return;
    without_last(first_point, together, head()[2]);
    head()[3] = quotient_by(together, points_left - 1 + head()[2]) + 1;
  }
  /* Of the first two steps of all, the first terms and those behind them; of another that is the first to use some, those behind these.
   * Nobody uses any more those before. */
  OPC_DEVICE_MEMBER void fill(int next_step, int) const {
    static_assert(stages >= 2, "the first two steps fill the table");
    const int a_step = packs ? pack_count : count, steps = packs ? threads_a_block / pack_count : threads_a_block / count;
    if (next_step >= 2 && (next_step - 1) % steps != 0) return;
    const int ahead = next_step < 2 ? next_step * steps : next_step - 1 + steps;
    const int64_t own = (static_cast<int64_t>(ahead) * a_step + threadIdx.x) * (packs ? terms_each : 1);
    const bool some = own < head()[1];
    if (!packs && !some) return;
    place found;
    if (some) found = at.terms(head()[0] + own);
    if (!packs) {
      term(ahead, static_cast<int>(threadIdx.x)) = found;
      return;
    }
    /* Behind the last term nothing has an element. */
    first(ahead)[threadIdx.x] = some ? shortened(found, window_of(head()[0] + own, found)) : short_place{0, 0};
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
  /* Keeps the places of a thread's points `first` and so on, or along points that of the first of those that it brings together. */
  template <int own>
  OPC_DEVICE_MEMBER void keep(kept_places<own> &kept, int first_point, int behind, int points_left) const {
    kept.until = 0;
    if (!packs) return;
    OPC_UNROLLED
    for (int i = 0; i < own; ++i) {
      const int p = first_point + i * behind;
      kept.at[i] = {0, 0};
      if (p >= points_left) continue;
      const int skipped = by_terms ? 0 : static_cast<int>(head()[2]);
      kept.at[i] = shortened(point(p), by_terms ? ~0u : 1u << quotient_by(together, p + skipped));
    }
  }
  /* Along terms, tests a thread's points for the places of the window from those of a step on; each lane finds one of 32. */
  template <int own>
  OPC_DEVICE_MEMBER void test(kept_places<own> &kept, int step, int first_point, int behind, int points_left) const {
    if constexpr (by_terms && tests) {
      if (step < kept.until) return;
      const int64_t first_term = head()[0], begin = quotient_by(together, first_term + static_cast<int64_t>(step) * count);
      const int64_t ends = quotient_by(together, first_term + head()[1] - 1) + 1, last = begin + 32;
      const int some = last < ends ? 32 : static_cast<int>(ends - begin), lane = static_cast<int>(threadIdx.x) % 32;
      const place mine = at.terms((begin + (lane < some ? lane : 0)) * static_cast<int64_t>(together.wide_value));
      kept.until = last < ends ? static_cast<int>(quotient_by_count(last * static_cast<int64_t>(together.wide_value) - first_term)) : INT32_MAX;
      OPC_UNROLLED
      for (int i = 0; i < own; ++i) kept.at[i].window = 0;
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
  OPC_DEVICE_MEMBER static int64_t quotient_by_count(int64_t terms) { return terms / count; }
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
  typedef place_table<Part, stages, At> type;
};
template <typename Part, int stages, typename At>
using factor_table = typename table_of_factor<Part, stages, At, is_computed<At>, is_gathered<At>>::type;

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_GATHER_H
