/* Reductions over the threads of a block, in a fixed order. */
#ifndef OPC_CUDA_REDUCE_H
#define OPC_CUDA_REDUCE_H

#include "opc/cuda/memory.h"

namespace opc {

/* A divisor of numbers below 2^63, and in 32 bits of those below 2^31, as a factor each and a shift: Granlund and Montgomery, Division by
 * Invariant Integers using Multiplication, 1994. A GPU calls a function to divide by another number of 64 bits. */
struct divisor {
  uint64_t wide_value, wide_magic;
  uint32_t value, magic, shift;
};

/* What divides numbers below 2^63, and in 32 bits those below 2^31. */
static inline divisor divisor_of(int64_t value) {
  const uint64_t by = static_cast<uint64_t>(value < 1 ? 1 : value);
  divisor d = {by, 0, static_cast<uint32_t>(by), 0, 0};
  while ((uint64_t(1) << d.shift) < by) ++d.shift;
  const uint64_t above = (uint64_t(1) << d.shift) - by;
  if (by <= INT32_MAX) d.magic = static_cast<uint32_t>((above << 32) / by + 1);
  d.wide_magic = static_cast<uint64_t>((static_cast<unsigned __int128>(above) << 64) / by + 1);
  return d;
}

/* The sizes of a group's axes as kernels get them. */
struct device_extents : extents {
  divisor by_size[OPC_MAX_RANK];
  device_extents(const extents &group) : extents(group) {
    for (int32_t a = 0; a < rank; ++a) by_size[a] = divisor_of(size[a]);
  }
};

inline namespace OPC_VARIANT {

OPC_DEVICE uint32_t quotient_by(const divisor &d, uint32_t number) { return (__umulhi(number, d.magic) + number) >> d.shift; }
OPC_DEVICE int64_t quotient_by(const divisor &d, int64_t number) {
  const uint64_t of = static_cast<uint64_t>(number);
  return static_cast<int64_t>((__umul64hi(of, d.wide_magic) + of) >> d.shift);
}

OPC_DEVICE int32_t quotient_by(const divisor &d, int32_t number) {
  return static_cast<int32_t>(quotient_by(d, static_cast<uint32_t>(number)));
}

/* Divisors that are known when kernels are compiled, or only as they run; numbers of at least 0 are divided by them. */
template <int64_t Value>
struct constant_divisor {};
template <typename Whole>
struct found_divisor {
  Whole value;
};
template <int64_t Value, typename Whole>
OPC_DEVICE Whole quotient_by(constant_divisor<Value>, Whole number) {
  return static_cast<Whole>(static_cast<std::make_unsigned_t<Whole>>(number) / static_cast<std::make_unsigned_t<Whole>>(Value));
}
OPC_DEVICE int32_t quotient_by(found_divisor<int32_t> d, int32_t number) {
  return static_cast<int32_t>(static_cast<uint32_t>(number) / static_cast<uint32_t>(d.value));
}
/* In 32 bits where these are enough. */
OPC_DEVICE int64_t quotient_by(found_divisor<int64_t> d, int64_t number) {
  if (number <= INT32_MAX && d.value <= INT32_MAX) return static_cast<uint32_t>(number) / static_cast<uint32_t>(d.value);
  return number / d.value;
}

/* The value of a divisor. */
template <typename Whole>
OPC_DEVICE Whole value_of(const divisor &d) {
  return sizeof(Whole) == 4 ? static_cast<Whole>(d.value) : static_cast<Whole>(d.wide_value);
}
template <typename Whole, int64_t Value>
OPC_DEVICE Whole value_of(constant_divisor<Value>) {
  return static_cast<Whole>(Value);
}
template <typename Whole>
OPC_DEVICE Whole value_of(found_divisor<Whole> d) {
  return d.value;
}

/* What is left of a number that is divided, of which this is the quotient. */
template <typename By, typename Whole>
OPC_DEVICE Whole rest_of(const By &by, Whole number, Whole quotient) {
  return number - quotient * value_of<Whole>(by);
}

/* A number divided by a divisor, rounded down, and what is left. */
template <typename Whole>
OPC_DEVICE Whole floor_by(const divisor &d, Whole number) {
  const Whole sign = number < 0 ? Whole(-1) : Whole(0);
  return quotient_by(d, number ^ sign) ^ sign;
}
template <typename Whole>
OPC_DEVICE Whole rest_by(const divisor &d, Whole number) {
  return number - floor_by(d, number) * value_of<Whole>(d);
}

/* A number without its last digit, which goes to `digit`, where that has as many values as a divisor. */
OPC_DEVICE int64_t without_last(int64_t number, const divisor &by, int64_t &digit) {
  const int64_t left = quotient_by(by, number);
  digit = number - left * static_cast<int64_t>(by.wide_value);
  return left;
}

/* A number without its last digit, which goes to `digit`, where that has `size` values. nvcc divides in 32 bits where these are enough. */
OPC_DEVICE int64_t without_last(int64_t number, int64_t size, int64_t &digit) {
  const int64_t left = number / size;
  digit = number - left * size;
  return left;
}

/* Of several operands, how many elements from its first something lies. */
template <int count>
struct offsets {
  int64_t at[count];
};

/* How partial results of a reduction are joined. */
struct joins_sum {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return T(a + b); }
};
struct joins_prod {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return T(a * b); }
};
struct joins_max {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return maximum(a, b); }
};
struct joins_min {
  template <typename T>
  OPC_INLINE T join(T a, T b) { return minimum(a, b); }
};
struct joins_any {
  OPC_INLINE bool join(bool a, bool b) { return a || b; }
};
struct joins_all {
  OPC_INLINE bool join(bool a, bool b) { return a && b; }
};

/* The reduction of the partial results of a warp's lanes, which each of them gets. */
template <typename Joins, typename T>
OPC_DEVICE T warp_reduce(T value) {
  for (int distance = threads_a_warp / 2; distance > 0; distance /= 2) {
    value = Joins::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

/* The same of so many lanes side by side, a power of two; the other lanes of the warp may be elsewhere. */
template <typename Joins, typename T>
OPC_DEVICE T lanes_reduce(int32_t lanes, T value) {
  const unsigned first = threadIdx.x % threads_a_warp & ~(unsigned(lanes) - 1);
  const unsigned own = 0xffffffffu >> (threads_a_warp - lanes) << first;
  OPC_UNROLLED
  for (int distance = threads_a_warp / 2; distance > 0; distance /= 2) {
    if (distance < lanes) value = Joins::join(value, __shfl_xor_sync(own, value, distance));
  }
  return value;
}

/* The reduction of what the warps of a block have come to, which every thread gets. Blocks have whole warps. */
template <typename Joins, typename T>
OPC_DEVICE T warps_reduce(T value) {
  OPC_SHARED(T, parts, most_warps);
  const int warps = static_cast<int>(blockDim.x) / threads_a_warp;
  if (threadIdx.x % threads_a_warp == 0) parts[threadIdx.x / threads_a_warp] = value;
  __syncthreads();
  value = parts[0];
  OPC_UNROLLED
  for (int warp = 1; warp < most_warps; ++warp) {
    if (warp < warps) value = Joins::join(value, parts[warp]);
  }
  __syncthreads();
  return value;
}

/* The reduction of the threads' partial results, which every thread of the block gets: lanes of each warp, then warps. */
template <typename Joins, typename T>
OPC_DEVICE T block_reduce(T value) {
  return warps_reduce<Joins>(warp_reduce<Joins>(value));
}

/* Teams, of a power of two of threads: which one a thread is of, which thread of it, and how many there are in the grid. */
template <typename Tile>
OPC_DEVICE int64_t all_teams(const Tile &t) {
  return static_cast<int64_t>(gridDim.x) * (blockDim.x / static_cast<unsigned>(t.team));
}
template <typename Tile>
OPC_DEVICE int64_t own_team(const Tile &t) {
  const unsigned team = static_cast<unsigned>(t.team);
  return static_cast<int64_t>(blockIdx.x) * (blockDim.x / team) + threadIdx.x / team;
}
template <typename Tile>
OPC_DEVICE int32_t thread_of_team(const Tile &t) {
  return static_cast<int32_t>(threadIdx.x & (static_cast<unsigned>(t.team) - 1));
}
template <typename Tile>
OPC_DEVICE bool first_of_team(const Tile &t) {
  return thread_of_team(t) == 0;
}

/* The reduction of the partial results of a team's threads, which each of them gets. */
template <typename Joins, typename T, typename Tile>
OPC_DEVICE T team_reduce(const Tile &t, T value) {
  /* Of all lanes of a warp, shuffles are quicker. */
  if (t.team < threads_a_warp) return lanes_reduce<Joins>(t.team, value);
  value = warp_reduce<Joins>(value);
  return t.team > threads_a_warp ? warps_reduce<Joins>(value) : value;
}

/* How the positions that searches find are joined: the first NaN, or else the first of the best values. No term is as good as the first
 * position with the worst value. */
struct finds_max {
  template <typename T>
  OPC_INLINE bool ahead(T a, T b) { return a > b; }
  template <typename T>
  OPC_INLINE bool behind(T a, T b) { return a <= b; }
};
struct finds_min {
  template <typename T>
  OPC_INLINE bool ahead(T a, T b) { return a < b; }
  template <typename T>
  OPC_INLINE bool behind(T a, T b) { return a >= b; }
};

/* Whether a value comes before the best of those before it: it is ahead, or the first NaN. Without a branch, so that a thread reads the
 * next values meanwhile. */
template <typename Finds, typename T>
OPC_INLINE bool leads(T here, T best) {
  return static_cast<bool>(int(!Finds::behind(here, best)) & int(best == best));
}

template <typename Finds, typename T>
OPC_INLINE void join_found(T &value, int64_t &position, T other, int64_t at) {
  const bool nan = value != value, other_nan = other != other;
  const bool tie = nan ? other_nan : !other_nan && !Finds::ahead(value, other) && !Finds::ahead(other, value);
  if (tie ? at < position : other_nan || (!nan && Finds::ahead(other, value))) {
    value = other;
    position = at;
  }
}

/* The best value that a team's threads have found, and its position, which each of them gets. */
template <typename Finds, typename T, typename Tile>
OPC_DEVICE void team_search(const Tile &t, T &value, int64_t &position) {
  const int lanes = t.team < threads_a_warp ? t.team : int(threads_a_warp);
  const unsigned first = threadIdx.x % threads_a_warp / unsigned(lanes) * unsigned(lanes);
  const unsigned own = lanes == threads_a_warp ? 0xffffffffu : ((1u << lanes) - 1u) << first;
  OPC_ROLLED
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const T other = T(__shfl_xor_sync(own, value, distance));
    const int64_t at = __shfl_xor_sync(own, position, distance);
    join_found<Finds>(value, position, other, at);
  }
  if (t.team <= threads_a_warp) return;
  OPC_SHARED(T, values, most_warps);
  OPC_SHARED(int64_t, positions, most_warps);
  const int warps = static_cast<int>(blockDim.x) / threads_a_warp;
  if (threadIdx.x % threads_a_warp == 0) {
    values[threadIdx.x / threads_a_warp] = value;
    positions[threadIdx.x / threads_a_warp] = position;
  }
  __syncthreads();
  value = values[0];
  position = positions[0];
  for (int warp = 1; warp < warps; ++warp) {
    const T other = values[warp];
    const int64_t at = positions[warp];
    join_found<Finds>(value, position, other, at);
  }
  __syncthreads();
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_REDUCE_H
