/* The shapes of the tiles of sums of products, and where their factors' elements are. */
#ifndef OPC_CUDA_TILES_H
#define OPC_CUDA_TILES_H

#include "opc/cuda/nest.h"
#include "opc/cuda/tensor.h"

/* For a loop whose body is long and seldom runs, and one of which a few steps are to be under way at once. */
#if defined(__CUDACC__)
#define OPC_ROLLED OPC_PRAGMA(unroll 1)
#define OPC_UNROLLED_2 OPC_PRAGMA(unroll 2)
#define OPC_UNROLLED_4 OPC_PRAGMA(unroll 4)
#else
#define OPC_ROLLED
#define OPC_UNROLLED_2
#define OPC_UNROLLED_4
#endif

namespace opc {

/* Shapes that tiles may have: of few points, so that many blocks have some; of more, each of which is brought to shared memory less often;
 * and where tensor cores add up elements of 16 bits that are brought packed. */
enum tile_kind : int32_t { small_tiles, medium_tiles, large_tiles };

/* How many blocks of a kernel a multiprocessor is to have registers for at once, if its factors have elements of so many bytes. */
OPC_HOST_DEVICE constexpr int blocks_of_tiles(int32_t kind, int bytes) { return kind == medium_tiles && bytes != 2 ? 2 : 1; }

/* Points down and across, terms of 16 bits and of 32 that a stage of shared memory has, stages of 16 bits and of 32, and how many tiles on
 * top of each other blocks take before they go on across, so that factors are found in the cache. */
struct tile_shape {
  int32_t down, across, halves, floats, half_stages, float_stages, band;
};
OPC_HOST_DEVICE constexpr tile_shape shape_of_tiles(int32_t kind) {
  return kind == large_tiles    ? tile_shape{128, 256, 32, 16, 4, 0, 16}
         : kind == medium_tiles ? tile_shape{128, 128, 32, 16, 3, 3, 8}
                                : tile_shape{64, 64, 32, 16, 3, 3, 8};
}

inline namespace OPC_VARIANT {

/* Where a factor's elements lie together. */
struct along_terms {};
struct along_points {};

/* The places of a point along entries of a target, or of a term along axes of a sum. */
struct digits {
  int64_t at[4];
  template <typename... Places>
  OPC_DEVICE_MEMBER explicit digits(Places... places) : at{places...} {}
  digits() = default;
};

/* The places of a point along these entries of a target, none of which is split in groups. */
template <int... Entries, typename Nest>
OPC_DEVICE digits digits_of(const Nest &n, int64_t point) {
  constexpr int entries[] = {Entries...}, count = static_cast<int>(sizeof...(Entries));
  digits found = {};
  OPC_UNROLLED
  for (int k = count - 1; k > 0; --k) point = without_last(point, n.by_size[entries[k]], found.at[k]);
  found.at[0] = point;
  return found;
}

template <int Which, int... Entries, typename Nest>
OPC_DEVICE int64_t digit_of(const Nest &n, int64_t point) {
  return digits_of<Entries...>(n, point).at[Which];
}

/* A factor that is computed from such places, which `points(point)` and `terms(term)` find. */
template <typename Points, typename Terms>
struct computed_places {
  const Points &points;
  const Terms &terms;
  OPC_DEVICE_MEMBER computed_places(const Points &points_, const Terms &terms_) : points(points_), terms(terms_) {}
  OPC_DEVICE_MEMBER const void *operator()(int64_t) const { return nullptr; }
};

/* What the elements of a factor are stored as, by what tells where they lie; void where they are computed. */
template <typename At>
struct element_of_factor {
  typedef std::remove_const_t<std::remove_pointer_t<decltype(std::declval<const At &>()(int64_t()))>> type;
};
template <typename At>
using stored_at = typename element_of_factor<At>::type;

/* Factors that are windows: see opc/cuda/gather.h. */
template <int Tests, int Remainders, typename Element, typename Points, typename Terms>
struct gathered;
template <typename At>
struct gathers : std::false_type {};
template <int Tests, int Remainders, typename Element, typename Points, typename Terms>
struct gathers<gathered<Tests, Remainders, Element, Points, Terms>> : std::true_type {};
template <typename At>
constexpr bool is_gathered = gathers<At>::value;
template <int Tests, int Remainders, typename Element, typename Points, typename Terms>
struct element_of_factor<gathered<Tests, Remainders, Element, Points, Terms>> {
  typedef Element type;
};

/* Whether the elements of a factor are computed, or lie in steps along points and terms. */
template <typename At>
constexpr bool is_computed = std::is_void<stored_at<At>>::value;
template <typename At>
constexpr bool lies_in_steps = !is_computed<At> && !is_gathered<At>;

/* Whether tensor cores multiply elements of a type. */
template <typename Stored>
constexpr bool is_for_tensors = std::is_same<Stored, float16>::value || std::is_same<Stored, bfloat16>::value;

/* Where a factor's elements of some point and term lie. */
template <typename At>
OPC_DEVICE const stored_at<At> *first_element(const At &at, const factor_steps &steps, int64_t batch, int64_t point, int64_t term) {
  if constexpr (!lies_in_steps<At>) return nullptr;
  if constexpr (lies_in_steps<At>) return at(batch) + point * steps.point + term * steps.term;
}

/* A factor's value at the point and the term of these numbers. */
template <typename At, typename Value>
OPC_DEVICE auto value_of(const At &at, const Value &value, int64_t batch, int64_t point, int64_t term) {
  if constexpr (is_gathered<At>) {
    return at.value(batch, point, term);
  } else if constexpr (is_computed<At>) {
    return value(batch, at.points(point), at.terms(term));
  } else {
    return value(batch, point, term);
  }
}

/* The places of the terms of the next steps, in shared memory, for a factor that is computed. */
template <int stages, int count, typename At>
struct term_table {
  enum : int { steps = stages + 1, bytes = steps * count * static_cast<int>(sizeof(digits)) };
  digits *table;
  const At &at;
  int64_t first_term = 0;
  OPC_DEVICE_MEMBER term_table(char *memory, const At &at_, const divisor &, bool) : table(reinterpret_cast<digits *>(memory)), at(at_) {}
  OPC_DEVICE_MEMBER void begin(int64_t, int64_t, int, int64_t first_term_, int64_t) { first_term = first_term_; }
  OPC_DEVICE_MEMBER void fill(int step, int terms_left) const {
    const int term = static_cast<int>(threadIdx.x);
    if (term < terms_left) table[step % steps * count + term] = at.terms(first_term + static_cast<int64_t>(step) * count + term);
  }
  OPC_DEVICE_MEMBER const digits &of(int step, int term) const { return table[step % steps * count + term]; }
};

/* For a factor whose elements lie in steps there is nothing to keep. */
template <typename At>
struct no_table {
  enum : int { bytes = 0 };
  OPC_DEVICE_MEMBER no_table(char *, const At &, const divisor &, bool) {}
  OPC_DEVICE_MEMBER void begin(int64_t, int64_t, int, int64_t, int64_t) {}
  OPC_DEVICE_MEMBER void fill(int, int) const {}
};

/* The least of two numbers, the second of which may not fit. */
OPC_DEVICE int at_most(int most, int64_t count) { return count < most ? static_cast<int>(count) : most; }

/* The stage of shared memory behind another. */
template <int stages>
OPC_DEVICE int stage_after(int stage) {
  return stage + 1 == stages ? 0 : stage + 1;
}

/* Has a compiler compute anew what depends on a number, and keep nothing of it in registers meanwhile. */
#if defined(__CUDACC__)
OPC_DEVICE void forget(int64_t &number) { asm volatile("" : "+l"(number)); }
OPC_DEVICE void forget(int &number) { asm volatile("" : "+r"(number)); }
#else
template <typename T>
OPC_DEVICE void forget(T &) {}
#endif

/* Where a tile begins, and which terms are added to its points: all, or a part of them. */
struct tile_start {
  int64_t batch, down, across;
  int64_t part, first_term;
  int64_t terms;
};
template <int Kind, typename Nest>
OPC_DEVICE tile_start start_of_tile(const Nest &n, int64_t tile) {
  constexpr tile_shape shape = shape_of_tiles(Kind);
  int64_t down = n.down, across_all = n.across;
  forget(down);
  forget(across_all);
  const int64_t down_tiles = (down + shape.down - 1) / shape.down, across_tiles = (across_all + shape.across - 1) / shape.across;
  int64_t part = 0, in_batch, in_band, row;
  if (n.parts > 1) tile = without_last(tile, n.parts, part);
  const int64_t batch = without_last(tile, down_tiles * across_tiles, in_batch);
  const int64_t first = without_last(in_batch, shape.band * across_tiles, in_band) * shape.band;
  const int64_t rows = down_tiles - first < shape.band ? down_tiles - first : int64_t(shape.band);
  const int64_t across = without_last(in_band, rows, row);
  const int64_t first_term = part * n.part_terms, left = n.terms - first_term;
  return {batch, (first + row) * shape.down, across * shape.across, part, first_term, left < n.part_terms ? left : n.part_terms};
}

/* The tile that a block has at a turn. */
OPC_DEVICE int64_t tile_at(int turn) { return blockIdx.x + static_cast<int64_t>(turn) * gridDim.x; }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_TILES_H
