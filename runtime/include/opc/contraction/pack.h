/* Packing the factors of contractions into panels. For the files compiled once for each instruction-set variant.
 *
 * A panel is packed line by line, along its points or, where inner points lie together, along these and then transposed. A line falls
 * into segments of elements that lie evenly apart, whose guards leave out a beginning and an end.
 */
#ifndef OPC_CONTRACTION_PACK_H
#define OPC_CONTRACTION_PACK_H

#include "opc/contraction/segments.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A segment of one line of a block that is packed: points, or inner points, that lie `move` elements apart, and whose indices are
 * step[g] apart in each guard. */
struct segment {
  int32_t first, count;
  int64_t move;
  int64_t step[max_guards];
};

enum { line_points = 640, many_guards = max_guards };

/* The points of a packing along one direction: the line, and across: what makes one line differ from the next. */
struct packed_line {
  const int64_t *along;
  const int64_t *across;
  const int64_t *guard_along[max_guards];
  const int64_t *guard_across[max_guards];
  int32_t segments;
  segment list[line_points];
};

static void find_segments(const packing &p, bool points, int64_t first, int64_t count, packed_line &line) {
  line.along = (points ? p.point : p.inner) + first;
  line.across = points ? p.inner : p.point;
  line.segments = 0;
  for (int32_t g = 0; g < p.guards; ++g) {
    line.guard_along[g] = (points ? p.guard[g].point : p.guard[g].inner) + first;
    line.guard_across[g] = points ? p.guard[g].inner : p.guard[g].point;
  }
  segment *last = nullptr;
  for (int64_t i = 0; i < count; ++i) {
    bool follows = last != nullptr;
    int64_t step[max_guards];
    int64_t moved = 0;
    if (follows) {
      moved = line.along[i] - line.along[i - 1];
      for (int32_t g = 0; g < p.guards; ++g) {
        step[g] = line.guard_along[g][i] - line.guard_along[g][i - 1];
        moved += step[g] * p.guard[g].stride;
        follows = follows && step[g] >= 0 && (last->count == 1 || step[g] == last->step[g]);
      }
      follows = follows && (last->count == 1 || moved == last->move);
    }
    if (!follows) {
      last = &line.list[line.segments++];
      last->first = static_cast<int32_t>(i);
      last->count = 1;
      last->move = 1;
      for (int32_t g = 0; g < p.guards; ++g) last->step[g] = 0;
    } else {
      if (last->count == 1) last->move = moved;
      for (int32_t g = 0; g < p.guards && last->count == 1; ++g) last->step[g] = step[g];
      ++last->count;
    }
  }
}

/* Whether elements or words that lie so far apart lie together. */
static inline bool lie_together(const packing &p, int64_t move) { return move == 1 || (move == 2 && p.second == 1); }

/* How good a direction is to pack along: long segments, of elements that lie together. */
static inline int64_t worth(const packing &p, const packed_line &line, int64_t length) {
  const int64_t average = length / (line.segments > 0 ? line.segments : 1);
  return (average < 16 ? average : 16) * (line.segments > 0 && lie_together(p, line.list[0].move) ? 4 : 1);
}

/* Packs lines [first, first + count), each contiguously, `pitch` apart, where there are `Guards` guards, or any number. */
template <typename Stored, typename T, int Guards>
static void pack_guarded_lines(const packing &p, const packed_line &line, int64_t first, int64_t count, T *to, int64_t pitch) {
  const auto from = read_from<Stored>::begin(p.from, p.second);
  const int guards = Guards == many_guards ? p.guards : Guards;
  int64_t size[Guards + 1], stride[Guards + 1], start[Guards + 1];
  const int64_t *across[Guards + 1];
  for (int g = 0; g < guards; ++g) {
    size[g] = p.guard[g].size;
    stride[g] = p.guard[g].stride;
    across[g] = line.guard_across[g] + first;
  }
  for (int32_t n = 0; n < line.segments; ++n) {
    const segment &s = line.list[n];
    const int64_t length = s.count;
    const int64_t along = line.along[s.first];
    for (int g = 0; g < guards; ++g) start[g] = p.guard[g].base + line.guard_along[g][s.first];
    T *row = to + s.first;
    for (int64_t k = 0; k < count; ++k, row += pitch) {
      int64_t at = along + line.across[first + k];
      int64_t begin = 0;
      int64_t end = length;
      for (int g = 0; g < guards; ++g) {
        const int64_t index = start[g] + across[g][k];
        const int64_t left = size[g] - index;
        at += index * stride[g];
        const bool outside = index < 0 || left <= 0;
        if (s.step[g] == 1) {
          begin = begin < -index ? -index : begin;
          end = end > left ? left : end;
        } else if (s.step[g] != 0) {
          const int64_t inside_from = index < 0 ? (s.step[g] - 1 - index) / s.step[g] : 0;
          const int64_t inside_to = left > 0 ? (left - 1) / s.step[g] + 1 : 0;
          begin = begin < inside_from ? inside_from : begin;
          end = end > inside_to ? inside_to : end;
        } else if (outside) {
          end = 0;
        }
      }
      if (s.move != 1 && begin < end) {
        clear_segment(row, begin);
        copy_strided(row + begin, from + at + begin * s.move, end - begin, s.move);
        clear_segment(row + end, length - end);
      } else if (begin == 0 && end == length) {
        copy_segment(row, from + at, length);
      } else if (begin >= end) {
        clear_segment(row, length);
      } else {
        clear_segment(row, begin);
        copy_segment(row + begin, from + at + begin, end - begin);
        clear_segment(row + end, length - end);
      }
    }
  }
}

template <typename Stored, typename T>
static void pack_lines(const packing &p, const packed_line &line, int64_t first, int64_t count, T *to, int64_t pitch) {
  switch (p.guards) {
    case 0: return pack_guarded_lines<Stored, T, 0>(p, line, first, count, to, pitch);
    case 1: return pack_guarded_lines<Stored, T, 1>(p, line, first, count, to, pitch);
    case 2: return pack_guarded_lines<Stored, T, 2>(p, line, first, count, to, pitch);
    default: return pack_guarded_lines<Stored, T, many_guards>(p, line, first, count, to, pitch);
  }
}

/* to[k * width + i] = rows[i][k] for four rows, which may lie as elements of `Aligned` bytes do; the next four are fetched meanwhile. */
template <int Aligned, typename T>
static void transpose_four(T *to, int64_t width, const T *const *rows, const T *const *next, int64_t depth) {
  typedef T quad __attribute__((vector_size(4 * sizeof(T)), aligned(Aligned), may_alias));
  constexpr int64_t fetched = 64 / sizeof(T); /* elements of a cache line */
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const quad a = *reinterpret_cast<const quad *>(rows[0] + k);
    const quad b = *reinterpret_cast<const quad *>(rows[1] + k);
    const quad c = *reinterpret_cast<const quad *>(rows[2] + k);
    const quad d = *reinterpret_cast<const quad *>(rows[3] + k);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    if (k % fetched == 0) {
      for (int i = 0; i < 4; ++i) __builtin_prefetch(next[i] + k);
    }
    T *at = to + k * width;
    *reinterpret_cast<quad *>(at) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *reinterpret_cast<quad *>(at + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *reinterpret_cast<quad *>(at + 2 * width) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *reinterpret_cast<quad *>(at + 3 * width) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < 4; ++i) memcpy(to + k * width + i, rows[i] + k, sizeof(T));
  }
}

/* A panel of a packing: `count` points from `first` on, `width` apart in `to`. */
template <typename T>
struct packed_panel {
  int64_t first, count, width;
  T *to;
};

/* Packs lines of inner points, four at a time, and transposes them. */
template <typename Stored, typename T>
static void pack_across(const packing &p, const packed_line &line, const packed_panel<T> &panel) {
  T buffer[4][line_points];
  constexpr bool words = read_from<Stored>::words;
  constexpr int item = read_from<Stored>::item;
  const bool as_stored = words ? item != 0 && p.second == 1 && line.list[0].move == 2 : item == sizeof(T) && line.list[0].move == 1;
  for (int64_t i = 0; i < panel.count; i += 4) {
    const int64_t count = panel.count - i < 4 ? panel.count - i : 4;
    const T *rows[4], *next[4];
    for (int64_t r = 0; r < count; ++r) {
      if (as_stored && p.guards == 0 && line.segments == 1) {
        const int64_t point = panel.first + i + r;
        const auto at = [&](int64_t n) { return reinterpret_cast<const T *>(p.from + (p.inner[0] + p.point[n]) * item); };
        rows[r] = at(point);
        next[r] = at(point + 4 < p.count ? point + 4 : point);
      } else {
        pack_lines<Stored, T>(p, line, panel.first + i + r, 1, buffer[r], 0);
        rows[r] = next[r] = buffer[r];
      }
    }
    if (count == 4) {
      transpose_four<words ? alignof(int16_t) : alignof(T)>(panel.to + i, panel.width, rows, next, p.depth);
      continue;
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < p.depth; ++k) memcpy(panel.to + k * panel.width + i + r, rows[r] + k, sizeof(T));
    }
  }
}

/* The element of one point where all guards hold, else 0. */
template <typename Stored, typename T>
static T guarded_element(const packing &p, int64_t point, int64_t inner) {
  int64_t at = p.point[point] + p.inner[inner];
  for (int32_t g = 0; g < p.guards; ++g) {
    int64_t index = p.guard[g].base + p.guard[g].point[point] + p.guard[g].inner[inner];
    if (p.guard[g].divisor != 1) {
      if (index % p.guard[g].divisor != 0) return 0;
      index /= p.guard[g].divisor;
    }
    if (index < 0 || index >= p.guard[g].size) return 0;
    at += index * p.guard[g].stride;
  }
  return load(read_from<Stored>::begin(p.from, p.second) + at);
}

template <typename Stored, typename T>
static void pack_panel(const packing &p, const packed_panel<T> &panel, bool divided, const packed_line &inner, packed_line &points) {
  for (int64_t k = 0; k < p.depth && panel.count < panel.width; ++k) {
    for (int64_t i = panel.count; i < panel.width; ++i) panel.to[k * panel.width + i] = 0;
  }
  find_segments(p, true, panel.first, panel.count, points);
  if (divided) {
    for (int64_t k = 0; k < p.depth; ++k) {
      for (int64_t i = 0; i < panel.count; ++i) {
        panel.to[k * panel.width + i] = guarded_element<Stored, T>(p, panel.first + i, k);
      }
    }
  } else if (worth(p, points, panel.count) >= worth(p, inner, p.depth)) {
    pack_lines<Stored, T>(p, points, 0, p.depth, panel.to, panel.width);
  } else {
    pack_across<Stored, T>(p, inner, panel);
  }
}

/* Packs panels of elements of T, each of which has room for as many of `Slot` bytes, and calls done(panel) for each. */
template <typename Stored, typename T, int Slot = sizeof(T), typename F>
static void pack_panels(const packing &p, F done) {
  bool divided = false;
  for (int32_t g = 0; g < p.guards; ++g) divided = divided || p.guard[g].divisor != 1;
  packed_line points, inner;
  find_segments(p, false, 0, p.depth, inner);
  for (int64_t first = 0; first < p.count; first += p.width) {
    const int64_t count = p.count - first < p.width ? p.count - first : p.width;
    const int64_t width = (count + p.grain - 1) / p.grain * p.grain;
    T *const to = reinterpret_cast<T *>(static_cast<char *>(p.to) + first * p.depth * Slot);
    const packed_panel<T> panel = {first, count, width, to};
    pack_panel<Stored, T>(p, panel, divided, inner, points);
    done(panel);
  }
}

template <typename Stored, typename T>
static void pack_stored(const packing &p) {
  pack_panels<Stored, T>(p, [](const packed_panel<T> &) {});
}

/* Copies the lines of a padded input. */
template <typename Stored, typename T>
static void copy_box(const padded_copy &job) {
  const auto from = read_from<Stored>::begin(job.from, job.second);
  T *to = static_cast<T *>(job.to);
  const auto &line = job.loop[job.loops - 1];
  int64_t at[OPC_MAX_RANK + max_guards + 2] = {};
  int64_t index[OPC_MAX_RANK + max_guards];
  int64_t place = 0;
  for (int32_t n = 0; n < job.axes; ++n) {
    index[n] = job.axis[n].start;
    place += index[n] * job.axis[n].stride;
  }
  const int64_t move = line.step * job.axis[line.axis].stride;
  for (bool more = true; more; to += line.count) {
    bool inside = true;
    for (int32_t n = 0; n < job.axes; ++n) {
      if (job.axis[n].guarded && n != line.axis) inside = inside && index[n] >= 0 && index[n] < job.axis[n].size;
    }
    int64_t begin = 0;
    int64_t end = inside ? line.count : 0;
    if (inside && job.axis[line.axis].guarded) {
      if (index[line.axis] < 0) begin = (-1 - index[line.axis]) / line.step + 1;
      if (begin > end) begin = end;
      const int64_t left = job.axis[line.axis].size - (index[line.axis] + begin * line.step);
      const int64_t held = left > 0 ? (left - 1) / line.step + 1 : 0;
      if (held < end - begin) end = begin + held;
    }
    clear_segment(to, begin);
    if (begin < end && move == 1) {
      copy_segment(to + begin, from + place + begin, end - begin);
    } else if (begin < end) {
      copy_strided(to + begin, from + place + begin * move, end - begin, move);
    }
    clear_segment(to + end, line.count - end);
    more = false;
    for (int32_t i = job.loops - 2; i >= 0 && !more; --i) {
      const auto &loop = job.loop[i];
      more = ++at[i] < loop.count;
      const int64_t moved = more ? loop.step : (1 - loop.count) * loop.step;
      if (!more) at[i] = 0;
      index[loop.axis] += moved;
      place += moved * job.axis[loop.axis].stride;
    }
  }
}

static void copy_float(const padded_copy &job) {
  const auto copy = [&](auto zero) { copy_box<decltype(zero), float>(job); };
  if (!with_narrow_factor(job.stored, copy)) copy_box<float, float>(job);
}

static void pack_float(const packing &p) {
  const auto pack = [&](auto zero) { pack_stored<decltype(zero), float>(p); };
  if (!with_narrow_factor(p.stored, pack)) pack_stored<float, float>(p);
}

static void pack_double(const packing &p) {
  const auto pack = [&](auto zero) { pack_stored<decltype(zero), double>(p); };
  if (!with_type_of(p.stored, factor_integers(), pack)) pack_stored<double, double>(p);
}

static void copy_double(const padded_copy &job) {
  const auto copy = [&](auto zero) { copy_box<decltype(zero), double>(job); };
  if (!with_type_of(job.stored, factor_integers(), copy)) copy_box<double, double>(job);
}

static inline void copy_words(const padded_copy &job) {
  const auto copy = [&](auto zero) { copy_box<two_of<decltype(zero)>, int32_t>(job); };
  if (!with_type_of(job.stored, factor_integers(), copy)) copy_box<two_of<int16_t>, int32_t>(job);
}

static inline void pack_words(const packing &p) {
  const auto pack = [&](auto zero) { pack_stored<two_of<decltype(zero)>, int32_t>(p); };
  if (!with_type_of(p.stored, factor_integers(), pack)) pack_stored<two_of<int16_t>, int32_t>(p);
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_PACK_H
