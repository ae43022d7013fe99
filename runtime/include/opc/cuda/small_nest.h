/* A nest whose numbers have 32 bits, and whose points have one thread each, which has some along the last entry but one: what a GPU finds the
 * places of in a part of the time. A kernel that is a template over both has the same text for it as for any nest. */
#ifndef OPC_CUDA_SMALL_NEST_H
#define OPC_CUDA_SMALL_NEST_H

#include "opc/cuda/nest.h"

namespace opc {

/* What divides numbers below 2^31. */
struct small_divisor {
  uint32_t value, magic, shift;
};

struct small_operand {
  char *data;
  int32_t stored;
  int32_t shape[OPC_MAX_RANK];
  uint32_t stride[OPC_MAX_RANK]; /* so that offsets are found modulo 2^32, and a compiler adds none of them up in 64 bits */
};

template <int32_t Operands>
struct small_nest {
  typedef int32_t whole;
  int32_t work; /* lines of points */
  int32_t line; /* points of these */
  int32_t lined; /* the entry along which they lie */
  int64_t *status;
  int32_t size[max_axes], after[max_axes];         /* as a nest has them */
  small_divisor by_lines[max_axes], by_after[max_axes]; /* lines of each entry, and of those behind it */
  small_operand operands[Operands];
};

/* The most that a number in a small nest may be, so that sums of a few are no more than 2^31 either. */
enum : int64_t { small_number = int64_t(1) << 29 };

/* A size or an attribute as it bounds numbers that are made with it. */
static inline double magnitude(int64_t number) {
  return number > 1 ? static_cast<double>(number) : number < -1 ? -static_cast<double>(number) : 1.0;
}

static inline small_divisor small_divisor_of(int64_t value) {
  const divisor d = divisor_of(value);
  return {d.value, d.magic, d.shift};
}

/* How many threads a large GPU has something to do with. Emulation has lines in small calls too, and in calls whose threads run in random
 * order no small nests, so that both kinds of kernels run, and have to give the same. */
enum : int64_t { most_points_a_line = 8 };
#if defined(__CUDACC__)
enum : int64_t { enough_threads = int64_t(1) << 19 };
static inline bool may_be_small() { return true; }
#else
enum : int64_t { enough_threads = 4 };
static inline bool may_be_small() { return getenv("OPC_CUDA_SEED") == nullptr; }
#endif

/* Describes a nest as a small one, which it has to be: its points have a thread each, and none of its numbers is greater than `most`. */
template <int32_t Operands>
static inline bool to_small(small_nest<Operands> &s, const device_nest<Operands> &d, int32_t entries, double most) {
  if (!may_be_small() || d.team != 1 || d.parts != 1 || d.points > small_number || most > static_cast<double>(small_number)) return false;
  s.status = d.status;
  s.line = 1;
  s.lined = entries - 2;
  if (entries > 1) {
    while (s.line < most_points_a_line && 2 * s.line <= d.size[s.lined] && d.points / (2 * s.line) >= enough_threads) s.line *= 2;
  }
  int64_t lines = 1;
  for (int32_t e = entries - 1; e >= 0; --e) {
    s.size[e] = static_cast<int32_t>(d.size[e]);
    s.after[e] = static_cast<int32_t>(d.after[e]);
    const int64_t own = e == s.lined ? (d.size[e] + s.line - 1) / s.line : d.size[e];
    s.by_after[e] = small_divisor_of(lines);
    s.by_lines[e] = small_divisor_of(own);
    lines *= own;
  }
  s.work = static_cast<int32_t>(lines);
  for (int32_t k = 0; k < Operands; ++k) {
    const nest_operand &from = d.operands[k];
    small_operand &to = s.operands[k];
    to.data = from.data;
    to.stored = from.stored;
    double reach = 0;
    for (int32_t a = 0; a < from.ndim; ++a) {
      if (from.shape[a] > small_number) return false;
      to.shape[a] = static_cast<int32_t>(from.shape[a]);
      to.stride[a] = 0;
      if (from.shape[a] < 2) continue;
      if (from.stride[a] < 0) return false;
      to.stride[a] = static_cast<uint32_t>(from.stride[a]);
      reach += magnitude(from.stride[a]) * static_cast<double>(from.shape[a]);
    }
    if (reach > static_cast<double>(small_number)) return false;
  }
  return true;
}

inline namespace OPC_VARIANT {

template <typename T>
struct small_view {
  place_of<T> data;
  const int32_t *shape;
  const uint32_t *stride;
};
template <typename T, int32_t Operands>
OPC_DEVICE small_view<T> view_of(const small_nest<Operands> &n, int32_t operand) {
  const small_operand &o = n.operands[operand];
  return {elements_of<T>(o), o.shape, o.stride};
}

template <int32_t Operands>
OPC_DEVICE int32_t own_team(const small_nest<Operands> &) {
  return static_cast<int32_t>(own_thread());
}
template <int32_t Operands>
OPC_DEVICE int32_t all_teams(const small_nest<Operands> &) {
  return static_cast<int32_t>(all_threads());
}
template <int32_t Operands>
OPC_DEVICE int32_t point_of(const small_nest<Operands> &, int32_t work) { /* the number of a line stands for its first one */
  return work;
}
template <int32_t Operands>
OPC_DEVICE int32_t entry_place(const small_nest<Operands> &n, int32_t point, int32_t entry) {
  const auto quotient = [](const small_divisor &d, uint32_t number) { return (__umulhi(number, d.magic) + number) >> d.shift; };
  const uint32_t left = quotient(n.by_after[entry], static_cast<uint32_t>(point));
  const uint32_t place = entry == 0 ? left : left - quotient(n.by_lines[entry], left) * n.by_lines[entry].value;
  return static_cast<int32_t>(entry == n.lined ? place * static_cast<uint32_t>(n.line) : place);
}
template <int32_t Operands>
OPC_DEVICE int32_t end_of_line(const small_nest<Operands> &n, int32_t first, int32_t entry) {
  const int32_t end = first + n.line;
  return end < n.size[entry] ? end : n.size[entry];
}

/* A thread has all terms of its point. */
template <int32_t Operands>
OPC_DEVICE int32_t first_term(const small_nest<Operands> &, int32_t, int32_t) {
  return 0;
}
template <int32_t Operands>
OPC_DEVICE int32_t term_step(const small_nest<Operands> &, int32_t) {
  return 1;
}
template <int32_t Operands>
OPC_DEVICE int32_t count_own_terms(const small_nest<Operands> &, int32_t first, int32_t end, int32_t) {
  return end - first;
}
template <typename Joins, typename T, int32_t Operands>
OPC_DEVICE T join_terms(const small_nest<Operands> &, int32_t, T value) {
  return value;
}
template <typename Finds, typename T, int32_t Operands>
OPC_DEVICE int32_t join_search(const small_nest<Operands> &, int32_t, T, int32_t position) {
  return position;
}
template <int32_t Operands>
OPC_DEVICE bool stores_point(const small_nest<Operands> &) {
  return true;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_SMALL_NEST_H
