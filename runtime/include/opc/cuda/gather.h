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

/* The places of a tile's points, and of its next terms, in shared memory, behind the number of the first term and how many there are: what
 * few threads need is in no register. A thread finds the place of a term for many steps at once. */
enum : int { place_table_head = 16, place_table_terms = 2 * threads_a_block };
template <int points, int stages, int count, typename At>
struct place_table {
  typedef typename At::place place;
  enum : int { steps = threads_a_block / count, entries = points + place_table_terms };
  enum : int { bytes = place_table_head + entries * static_cast<int>(sizeof(place)) };
  char *memory;
  const At &at;
  OPC_DEVICE_MEMBER place_table(char *memory_, const At &at_) : memory(memory_), at(at_) {}
  OPC_DEVICE_MEMBER place &point(int p) const { return reinterpret_cast<place *>(memory + place_table_head)[p]; }
  OPC_DEVICE_MEMBER place &term(int step, int t) const {
    return reinterpret_cast<place *>(memory + place_table_head)[points + (step * count + t) % place_table_terms];
  }
  OPC_DEVICE_MEMBER void begin(int64_t batch, int64_t first_point, int points_left, int64_t first_term, int64_t terms) const {
    for (int p = static_cast<int>(threadIdx.x); p < points; p += threads_a_block) {
      if (p < points_left) point(p) = at.points(batch, first_point + p);
    }
    if (!first_thread()) return;
    reinterpret_cast<int64_t *>(memory)[0] = first_term;
    reinterpret_cast<int64_t *>(memory)[1] = terms;
  }
  /* Of the first two steps of all, the first terms and those behind them; of another that is the first to use some, those behind these.
   * Nobody uses any more those before. */
  OPC_DEVICE_MEMBER void fill(int next_step, int) const {
    static_assert(stages >= 2, "the first two steps fill the table");
    if (next_step >= 2 && (next_step - 1) % steps != 0) return;
    const int ahead = next_step < 2 ? next_step * steps : next_step - 1 + steps;
    const int64_t *const head = reinterpret_cast<const int64_t *>(memory);
    const int64_t own = static_cast<int64_t>(ahead) * count + threadIdx.x;
    if (own < head[1]) term(ahead, static_cast<int>(threadIdx.x)) = at.terms(head[0] + own);
  }
  /* Where the element of a point and a term lies; null where there is none. */
  OPC_DEVICE_MEMBER const typename At::element *find(const place &point, const place &term) const {
    return at.holds(point, term) ? at.at(point, term) : nullptr;
  }
};

template <int points, int stages, int count, typename At, bool computed, bool gathers>
struct table_of_factor {
  typedef no_table<At> type;
};
template <int points, int stages, int count, typename At>
struct table_of_factor<points, stages, count, At, true, false> {
  typedef term_table<stages, count, At> type;
};
template <int points, int stages, int count, typename At>
struct table_of_factor<points, stages, count, At, false, true> {
  typedef place_table<points, stages, count, At> type;
};
template <int points, int stages, int count, typename At>
using factor_table = typename table_of_factor<points, stages, count, At, is_computed<At>, is_gathered<At>>::type;

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_GATHER_H
