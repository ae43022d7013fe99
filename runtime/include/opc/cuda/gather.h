/* Factors of sums of products that are windows: an element lies where a point and a term tell together, or is 0. */
#ifndef OPC_CUDA_GATHER_H
#define OPC_CUDA_GATHER_H

#include "opc/cuda/tiles.h"

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

/* The places of a tile's points, and of the terms of the next steps, in shared memory. */
template <int points, int stages, int count, typename At>
struct place_table {
  enum : int { steps = stages + 1, entries = points + steps * count, bytes = entries * static_cast<int>(sizeof(typename At::place)) };
  typedef typename At::place place;
  place *table;
  const At &at;
  OPC_DEVICE_MEMBER place_table(char *memory, const At &at_) : table(reinterpret_cast<place *>(memory)), at(at_) {}
  OPC_DEVICE_MEMBER void fill_points(int64_t batch, int64_t first_point, int points_left) const {
    for (int p = static_cast<int>(threadIdx.x); p < points; p += threads_a_block) {
      if (p < points_left) table[p] = at.points(batch, first_point + p);
    }
  }
  OPC_DEVICE_MEMBER void fill(int step, int64_t first_term, int terms_left) const {
    const int term = static_cast<int>(threadIdx.x);
    if (term < terms_left) table[points + step % steps * count + term] = at.terms(first_term + term);
  }
  /* Where the element of a point and a term of a step lies; null where there is none. Both are there. */
  OPC_DEVICE_MEMBER const typename At::element *find(int point, int step, int term) const {
    const place &own = table[point], &other = table[points + step % steps * count + term];
    return at.holds(own, other) ? at.at(own, other) : nullptr;
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
