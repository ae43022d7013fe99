/* One statement over the points of its target on a GPU, a thread a point, with reads at any index. */
#ifndef OPC_CUDA_NEST_H
#define OPC_CUDA_NEST_H

#include "opc/cuda/reduce.h"
#include "opc/nests/nest.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Of the terms at a point: all are reduced; or a part of them, which is kept; or what was kept of all parts. */
enum part : int32_t { whole, one_part, all_parts, places };

/* How a reduction is carried along an entry of the target's indices: see opc/cuda/scan.h. A line has the points of that entry; points of the
 * entries behind it lie side by side, and lines of as many `columns` go together. */
struct line_scan {
  int64_t size, behind;  /* points of the entry, and of those behind it */
  int64_t sides, groups; /* of lines that go together: behind a point of the entries ahead, and all */
  int64_t terms;         /* of a line */
  int64_t lead, skip;    /* terms ahead of the one that the first point is first to take in, or points ahead of the first that takes one */
  int64_t chunks;        /* of a line */
  uint32_t *drawn;       /* how many blocks have begun */
  uint64_t *board;       /* what they show each other */
  int32_t columns;       /* lanes of a warp that lie side by side */
  int32_t reach;         /* lanes of a warp that a group of lines has */
  int32_t fan_bits;      /* of a number among the chunks of a group, and the groups of the next one */
  bool exclusive;        /* a point has the terms before its own */
  bool blocks;           /* have a chunk each; else lanes go along all chunks of their lines */
};

/* How a factor of a sum of products is brought to shared memory: an element after the other, by the function of its values; or all from
 * steps between points and between terms; or so, several at once, along the axis on which they lie together; or by its function whatever
 * a call's operands are. */
enum bringing : int32_t { by_value, in_steps, packed, computed };
struct factor_steps {
  int64_t point, term; /* in elements */
  bringing how;
  int32_t place_bytes; /* of a place in the tables of one whose elements are found by their places; 0: it has none */
};

/* A type that is not deduced. */
template <typename T>
struct same {
  typedef T type;
};

/* A nest as kernels get it; `status` NULL: nobody asks what goes wrong. Teams of threads have a point, or one of its `parts`. */
template <int32_t Operands>
struct device_nest {
  typedef int64_t whole; /* numbers of points and places */
  int64_t points;
  int64_t packed; /* points that threads take several of at once: all, or none; of sums, pieces of work of those that have packs */
  int64_t work; /* for teams: points, or parts of them */
  int64_t parts;
  char *kept; /* for each part of each point 8 bytes, or a sum of products; of searches behind these as many for positions */
  int64_t *status;
  int32_t team;
  part of;
  int32_t level; /* of a reduction's loops, the one that threads share */
  int64_t down, across, terms; /* of sums of products: points each way, and terms */
  int64_t part_terms;          /* as many as a tile adds up, where its points have parts */
  int32_t tiles;               /* and which of the shapes that tiles may have these have */
  divisor left_together, right_together; /* of factors whose elements are found by their places: how many lie on end */
  bool stores_packs;           /* four of their points that are neighbours across may be stored at once */
  factor_steps left, right;
  int64_t columns;             /* of weighted sums: scores of a row, */
  factor_steps weighed;        /* what is multiplied with their weights, */
  const int32_t *infinite;     /* and whether some of that is not finite; NULL: nobody has looked */
  factor_steps more_left, more_right; /* of values that are made of another sum of products: its factors, */
  int64_t more_terms;
  bool leaves;                 /* whether columns may be left out that rows do not need, */
  bool falls;                  /* whether fewer columns count the further down a row is; */
  int64_t repeats;             /* and how often a tile goes through the columns, along other axes of a sum */
  int64_t groups, group_points; /* of an entry that is split in groups */
  int64_t items, key_count; /* of scatters: terms at points that name places, and how many places there are */
  int64_t segment_items, segment_keys; /* of segments that are sorted by themselves; or all */
  int64_t others;             /* points of the target that share each of these */
  void *keys;                 /* of each item; then sorted */
  const void *order;          /* the items, in the order of their keys */
  const void *ranges;         /* where the items of each key begin there, and where they end */
  int32_t halves;             /* of 32 bits in a word of these: 2 where there are more keys than one numbers, else 1 */
  bool small; /* the numbers of points have 32 bits */
  int32_t entries; /* of the target's indices */
  line_scan scan;
  int64_t size[max_axes];  /* of each entry of the target's indices */
  int64_t after[max_axes]; /* points of the entries behind it */
  divisor by_size[max_axes], by_after[max_axes]; /* the same */
  divisor by_points, by_step;                    /* and the terms from one of a thread to its next */
  nest_operand operands[Operands];
};

/* A tensor of the nest. */
template <typename T>
struct view {
  place_of<T> data;
  const int64_t *shape;
  const int64_t *stride;
  bool dense;
};

template <typename T, typename Nest>
OPC_DEVICE view<T> view_of(const Nest &n, int32_t operand) {
  const nest_operand &o = n.operands[operand];
  return {elements_of<T>(o), o.shape, o.stride, o.dense != 0};
}

/* The place of a number's digit that has `size` values, behind which there are digits of `after` values together. */
OPC_DEVICE int64_t place_in(int64_t number, int64_t after, int64_t size) {
  int64_t digit;
  if (after > 1) number = without_last(number, after, digit);
  without_last(number, size, digit);
  return digit;
}

/* The place of a point along an entry of the target's indices; in a group, the number of a position in row-major order. */
template <typename Nest>
OPC_DEVICE int64_t entry_place(const Nest &n, int64_t point, int32_t entry) {
  if (!n.small) {
    const int64_t wide = quotient_by(n.by_after[entry], point);
    return entry == 0 ? wide : wide - quotient_by(n.by_size[entry], wide) * n.size[entry];
  }
  const uint32_t left = quotient_by(n.by_after[entry], static_cast<uint32_t>(point));
  return entry == 0 ? left : left - quotient_by(n.by_size[entry], left) * n.by_size[entry].value;
}

/* The same where points are numbered along entries in another order, as factors for those behind each say. */
template <typename Nest>
OPC_DEVICE int64_t place_in_order(const Nest &n, int64_t point, int32_t entry) {
  if (!n.small) {
    const int64_t wide = quotient_by(n.by_after[entry], point);
    return wide - quotient_by(n.by_size[entry], wide) * n.size[entry];
  }
  const uint32_t left = quotient_by(n.by_after[entry], static_cast<uint32_t>(point));
  return left - quotient_by(n.by_size[entry], left) * n.by_size[entry].value;
}

/* The offset of a place in an axis group of an operand, whose axes begin at `axis`. `own` are the operand's sizes: it may have fewer axes
 * than the group, missing on the left, and axes of size 1 are broadcast. */
template <typename T>
OPC_DEVICE int64_t group_offset(const view<T> &v, int32_t axis, const device_extents &own, int64_t place, const device_extents &all) {
  int64_t offset = 0;
  /* Where nothing is broadcast, the number of the place is how many steps the last axis takes. */
  const bool at_once = v.dense && &own == &all && own.rank > 0;
  const int32_t first = at_once ? own.rank - 1 : 0;
  OPC_ROLLED
  for (int32_t i = own.rank - 1, a = all.rank - 1; i >= first; --i, --a) {
    int64_t digit = place; /* of the first axis, all that is left */
    if (i > first || a > i) place = without_last(place, all.by_size[a], digit);
    if (at_once || own.size[i] != 1) offset += digit * v.stride[axis + i];
  }
  return offset;
}

/* The strides of an operand along an axis group from an axis on. */
struct group_strides {
  const int64_t *stride;
  bool dense;
};
template <typename T>
OPC_DEVICE group_strides strides_of(const view<T> &v, int32_t axis) {
  return {v.stride + axis, v.dense};
}

/* Whether operands with all axes of a group, which has some, are dense, and how far in one the next place of the group is then. */
template <typename... T>
OPC_DEVICE bool are_dense(const view<T> &...v) {
  return (v.dense && ...);
}
template <typename T>
OPC_DEVICE int64_t dense_step(const view<T> &v, int32_t axis, const device_extents &own) {
  return own.rank > 0 ? v.stride[axis + own.rank - 1] : 0;
}

/* The offsets of a place in an axis group of several operands, none of which is broadcast. */
template <typename... Strides>
OPC_DEVICE offsets<sizeof...(Strides)> group_offsets(int64_t place, const device_extents &all, Strides... strides) {
  const group_strides of[] = {strides...};
  offsets<sizeof...(Strides)> found = {};
  const int32_t first = (strides.dense && ...) && all.rank > 0 ? all.rank - 1 : 0;
  OPC_ROLLED
  for (int32_t a = all.rank - 1; a >= first; --a) {
    int64_t digit = place;
    if (a > first) place = without_last(place, all.by_size[a], digit);
    OPC_UNROLLED
    for (int k = 0; k < static_cast<int>(sizeof...(Strides)); ++k) found.at[k] += digit * of[k].stride[a];
  }
  return found;
}

/* Which point of an axis group a place is. */
OPC_DEVICE int64_t group_index(const extents &, int64_t place) { return place; }

/* Whether an operand is broadcast along an axis of a group: it lacks it, or has one point. */
OPC_HOST_DEVICE static inline bool is_broadcast(const extents &all, const extents &own, int32_t axis) {
  const int32_t at = axis - (all.rank - own.rank);
  return at < 0 || own.size[at] != all.size[axis];
}

/* The points along the axes of a group along which an operand is broadcast. */
OPC_HOST_DEVICE static inline int64_t broadcast_points(const extents &all, const extents &own) {
  int64_t points = 1;
  OPC_ROLLED
  for (int32_t a = 0; a < all.rank; ++a) points *= is_broadcast(all, own, a) || all.size[a] == 0 ? all.size[a] : 1;
  return points;
}

/* The place in a group of point number `along` of these, where the operand itself is at `place`. */
OPC_DEVICE int64_t broadcast_place(const device_extents &all, const device_extents &own, int64_t place, int64_t along) {
  int64_t found = 0, scale = 1;
  OPC_ROLLED
  for (int32_t a = all.rank - 1, i = own.rank - 1; a >= 0; --a, --i) {
    int64_t digit = 0, of = 0;
    if (i >= 0) place = without_last(place, own.by_size[i], of);
    if (is_broadcast(all, own, a)) {
      along = without_last(along, all.by_size[a], digit);
    } else {
      digit = of;
    }
    found += digit * scale;
    scale *= all.size[a];
  }
  return found;
}

/* A number of at least 0 divided by one of at least 1; in 32 bits where these are enough. */
OPC_DEVICE int64_t divided_by(int64_t number, int64_t by) {
  if (number <= INT32_MAX && by <= INT32_MAX) return static_cast<uint32_t>(number) / static_cast<uint32_t>(by);
  return number / by;
}

/* A number divided by one of at least 1, rounded down; in 32 bits where these are enough. */
OPC_DEVICE int64_t quotient_down(int64_t number, int64_t by) {
  return number >= 0 ? divided_by(number, by) : ~divided_by(~number, by);
}

/* What is nearest to a number among those so far from the ends of 64 bits that small multiples of them, and sums with indices, fit. Where
 * numbers have 32 bits, they do so anyway. */
template <typename Whole>
OPC_DEVICE Whole far(Whole number) {
  if (sizeof(Whole) < sizeof(int64_t)) return number;
  const int64_t most = int64_t(1) << 48;
  return static_cast<Whole>(number < -1 - most ? -1 - most : number > most ? most : number);
}

/* Narrows [low, high) to the i with by * i + rest >= 0, or by * i <= rest; what is left lies within it, also where that is nothing. Most
 * ranges need no narrowing. */
template <typename Whole, typename By>
OPC_DEVICE void narrow_low(Whole &low, Whole &high, const By &by, typename same<Whole>::type rest) {
  const Whole step = value_of<Whole>(by);
  if (step * low + rest >= 0) return;
  /* What divides is no more than there is, whatever number the rest is. */
  low = step * (high - 1) + rest < 0 ? high : quotient_by(by, -1 - rest) + 1;
}
template <typename Whole, typename By>
OPC_DEVICE void narrow_high(Whole &low, Whole &high, const By &by, typename same<Whole>::type rest) {
  if (rest - value_of<Whole>(by) * (high - 1) >= 0) return;
  const Whole end = rest < 0 ? low : quotient_by(by, rest) + 1;
  high = end > low ? end : low;
}

/* Narrows [low, high) to the i with factor * i + rest >= 0. */
template <typename Whole>
OPC_DEVICE void narrow_range(Whole &low, Whole &high, typename same<Whole>::type factor, typename same<Whole>::type rest) {
  if (factor > 0) {
    narrow_low(low, high, found_divisor<Whole>{factor}, rest);
  } else if (factor < 0) {
    narrow_high(low, high, found_divisor<Whole>{-factor}, rest);
  } else if (rest < 0) {
    high = low;
  }
}

/* Moves the start of [low, high) on by so much, at most to its end. */
template <typename Whole>
OPC_DEVICE void skip_ahead(Whole &low, Whole high, typename same<Whole>::type ahead) {
  low = ahead < high - low ? low + ahead : high;
}

/* The point of a piece of work: neighbours are of neighbouring points, and then of the next part of each. */
template <typename Nest>
OPC_DEVICE int64_t point_of(const Nest &n, int64_t work) {
  if (n.of != one_part) return work;
  int64_t point;
  without_last(work, n.by_points, point);
  return point;
}

/* Where the points end that a thread has along an entry of the target's indices, from a first one on. */
template <typename Nest>
OPC_DEVICE int64_t end_of_line(const Nest &, int64_t first, int32_t) {
  return first + 1;
}

/* The terms that a thread of a team takes, of the loop that its threads share, and all of others: the first, the step to the next, where
 * they end, and how many there are. Where all parts are joined there are none left. */
template <typename Nest>
OPC_DEVICE int64_t first_term(const Nest &n, int64_t work, int32_t level) {
  if (level != n.level) return 0;
  int64_t point;
  return n.of == one_part ? without_last(work, n.by_points, point) * n.team + thread_of_team(n) : int64_t(thread_of_team(n));
}
template <typename Nest>
OPC_DEVICE int64_t term_step(const Nest &n, int32_t level) {
  if (level != n.level) return 1;
  return n.of == all_parts ? 0 : n.of == one_part ? n.parts * n.team : n.team;
}
template <typename Nest>
OPC_DEVICE int64_t count_own_terms(const Nest &n, int64_t first, int64_t end, int32_t level) {
  if (first >= end || n.of == all_parts) return 0;
  return level == n.level ? quotient_by(n.by_step, end - first - 1) + 1 : end - first;
}
template <typename Whole, typename By>
OPC_DEVICE Whole count_terms(Whole first, Whole end, const By &step) {
  return first >= end ? Whole(0) : quotient_by(step, end - first - 1) + 1;
}

/* What the terms at a point come to, of which a thread has reduced its own. */
constexpr int parts_at_once = 16;
template <typename Joins, typename T, typename Nest>
OPC_DEVICE T join_terms(const Nest &n, int64_t work, T value) {
  if (n.of == all_parts) {
    const auto part = [&](int64_t p) { return *reinterpret_cast<const T *>(n.kept + 8 * (p * n.points + work)); };
    int64_t p = thread_of_team(n);
    /* Where a thread joins all parts of its point there are few threads: each has many loads under way. */
    for (; p + (parts_at_once - 1) * n.team < n.parts; p += parts_at_once * n.team) {
      T parts[parts_at_once];
      OPC_UNROLLED
      for (int i = 0; i < parts_at_once; ++i) parts[i] = part(p + i * n.team);
      OPC_UNROLLED
      for (int i = 0; i < parts_at_once; ++i) value = Joins::join(value, parts[i]);
    }
    for (; p < n.parts; p += n.team) value = Joins::join(value, part(p));
  }
  value = team_reduce<Joins, T>(n, value);
  if (n.of == one_part && first_of_team(n)) *reinterpret_cast<T *>(n.kept + 8 * work) = value;
  return value;
}

/* Of threads that have packs of points: no terms; whether they have parts of these; and the total of one at a point, which is kept. */
template <typename T, int count>
OPC_DEVICE computed_pack<T, count> no_terms() {
  return {};
}
template <typename Nest>
OPC_DEVICE bool is_part(const Nest &n) {
  return n.of == one_part;
}
template <typename T, typename Nest>
OPC_DEVICE void keep_terms(const Nest &n, int64_t work, int64_t point, T total) {
  int64_t own;
  *reinterpret_cast<T *>(n.kept + 8 * (without_last(work, n.by_points, own) * n.points + point)) = total;
}

/* The position that a search at a point finds, of whose terms a thread has searched its own. */
template <typename Finds, typename T, typename Nest>
OPC_DEVICE int64_t join_search(const Nest &n, int64_t work, T value, int64_t position) {
  if (n.of == all_parts) {
    const int64_t *const positions = reinterpret_cast<const int64_t *>(n.kept) + n.parts * n.points;
    for (int64_t p = thread_of_team(n); p < n.parts; p += n.team) {
      const int64_t kept = p * n.points + work;
      const T other = *reinterpret_cast<const T *>(n.kept + 8 * kept);
      const int64_t at = positions[kept];
      join_found<Finds>(value, position, other, at);
    }
  }
  team_search<Finds, T>(n, value, position);
  if (n.of == one_part && first_of_team(n)) {
    *reinterpret_cast<T *>(n.kept + 8 * work) = value;
    reinterpret_cast<int64_t *>(n.kept)[n.parts * n.points + work] = position;
  }
  return position;
}

/* Whether this thread writes what its team has computed. */
template <typename Nest>
OPC_DEVICE bool stores_point(const Nest &n) {
  return n.of != one_part && first_of_team(n);
}

/* Reports what went wrong, by its number among what the family's kernels report, unless something else has been. */
template <typename Nest>
OPC_DEVICE void report(const Nest &n, int64_t what, int64_t axis, int64_t value, int64_t size) {
  if (n.status == nullptr) return;
  typedef unsigned long long word;
  word *status = reinterpret_cast<word *>(n.status);
  if (atomicCAS(status, word(0), static_cast<word>(what)) != 0) return;
  n.status[1] = axis;
  n.status[2] = value;
  n.status[3] = size;
}

/* Scatters: whether items find what they name; an item names nothing, or a place; and then the items that name one, which the threads of
 * a team take in turns. */
template <typename Nest>
OPC_DEVICE bool finds_places(const Nest &n) {
  return n.of == places;
}
template <typename Nest>
OPC_DEVICE void name_key(const Nest &n, int64_t item, int64_t key) {
  if (n.halves == 2) {
    static_cast<uint64_t *>(n.keys)[item] = static_cast<uint64_t>(key);
  } else {
    static_cast<uint32_t *>(n.keys)[item] = static_cast<uint32_t>(key);
  }
}
/* A place has a number among those of the item's segment, and one among all. */
template <typename Nest>
OPC_DEVICE void name_place(const Nest &n, int64_t item, int64_t own, int64_t key) {
  name_key(n, item, n.segment_keys < n.key_count ? own : key);
}
template <typename Nest>
OPC_DEVICE void name_nothing(const Nest &n, int64_t item) {
  name_key(n, item, n.segment_keys);
}
/* Word `i` among those that number items, whose lower half is enough. */
template <typename Nest>
OPC_DEVICE int64_t item_number(const Nest &n, const void *words, int64_t i) {
  return static_cast<const uint32_t *>(words)[i * n.halves];
}
template <typename Nest>
OPC_DEVICE int64_t item_at(const Nest &n, int64_t place) {
  return item_number(n, n.order, place);
}

/* Sorted items are in runs of `run_items`. What a run comes to whose items all have one key is kept, for each point that has this key, so
 * that many share the items of a key that nearly all have. */
enum : int { run_items = 128 };
template <typename Nest>
OPC_DEVICE bool adds_runs(const Nest &n) {
  return n.of == one_part;
}
template <typename Nest>
OPC_DEVICE int64_t key_of_run(const Nest &n, int64_t run) {
  const int64_t first = run * run_items, last = first + run_items - 1, segment = first / n.segment_items;
  const uint32_t *const small = static_cast<const uint32_t *>(n.keys);
  const uint64_t *const keys = static_cast<const uint64_t *>(n.keys);
  const uint64_t key = n.halves == 1 ? small[first] : keys[first], other = n.halves == 1 ? small[last] : keys[last];
  const bool same = key == other && segment == last / n.segment_items && key < static_cast<uint64_t>(n.segment_keys);
  return same ? segment * n.segment_keys + static_cast<int64_t>(key) : n.key_count;
}
/* What the threads of a team, which is one or a warp, have taken in, joined; that of a run is kept. */
template <typename Joins, typename T, typename Nest>
OPC_DEVICE T join_items(const Nest &n, int64_t work, T value) {
  if (n.team > 1) value = warp_reduce<Joins>(value);
  if (n.of == one_part && first_of_team(n)) *reinterpret_cast<T *>(n.kept + 8 * work) = value;
  return value;
}

/* The items of a key: those that are added up one by one, and the runs between them. */
struct key_items {
  int64_t first, head, tail, count, first_run, end_run;
  /* The place of the item that is number `i` of those that are added up one by one. */
  OPC_DEVICE_MEMBER int64_t at(int64_t i) const { return i < head ? first + i : tail + (i - head); }
};
template <typename Nest>
OPC_DEVICE key_items items_of_key(const Nest &n, int64_t key) {
  const int64_t first = item_number(n, n.ranges, 2 * key), end = item_number(n, n.ranges, 2 * key + 1);
  const int64_t first_run = (first + run_items - 1) / run_items, end_run = end / run_items;
  if (n.kept == nullptr || first_run >= end_run) return {first, end - first, end, end - first, 0, 0};
  const int64_t head = first_run * run_items - first, tail = end_run * run_items;
  return {first, head, tail, head + end - tail, first_run, end_run};
}
template <typename Joins, typename T, typename Nest>
OPC_DEVICE T join_runs(const Nest &n, const key_items &items, int64_t other, T total) {
  for (int64_t run = items.first_run + thread_of_team(n); run < items.end_run; run += n.team) {
    total = Joins::join(total, *reinterpret_cast<const T *>(n.kept + 8 * (run * n.others + other)));
  }
  return total;
}

/* Adds to an element that other threads may add to. */
template <typename T>
OPC_DEVICE void add_at(T *element, T value) {
  if constexpr (std::is_floating_point<T>::value || sizeof(T) == 4) {
    atomicAdd(element, value);
  } else {
    typedef unsigned long long word;
    static_assert(sizeof(T) == sizeof(word), "integers of 64 bits");
    atomicAdd(reinterpret_cast<word *>(element), static_cast<word>(value));
  }
}

OPC_DEVICE bool outside(int64_t index, int64_t size) { return static_cast<uint64_t>(index) >= static_cast<uint64_t>(size); }

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_NEST_H
