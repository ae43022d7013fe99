/* What codelets are written with. They are compiled by popc for tiles, which have neither exceptions nor a heap, as C++14.
 *
 * Values are computed in float and int32_t; integers of fewer bits wrap in their own type.
 */
#ifndef OPC_POPLAR_CODELET_H
#define OPC_POPLAR_CODELET_H

#include <cstdint>
#include <limits>
#include <type_traits>

#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

#include "opc/poplar/codelet_math.h"

namespace opc {

/* The type that elements stored as S are computed in. */
template <typename S>
struct compute_of {
  typedef S type;
};
template <>
struct compute_of<half> {
  typedef float type;
};
template <typename S>
using compute = typename compute_of<S>::type;

/* The type acc(T) stands for, of a compute type T. */
template <typename T>
using accumulator = typename std::conditional<std::is_floating_point<T>::value, T, int64_t>::type;

/* What such a sum is between stages. */
template <typename T>
using kept_sum = typename std::conditional<std::is_floating_point<T>::value, T, int>::type;

template <typename S>
inline compute<S> load(const S &from) {
  return static_cast<compute<S>>(from);
}

/* Stores a value, rounded once where it has more digits than its element. */
template <typename S, typename T>
inline void store(S &to, T value) {
  to = static_cast<S>(value);
}

/* A whole number that operands of int64 hold, of which Poplar has 32 bits. */
inline int32_t saturated(int64_t value) {
  const int64_t most = INT32_MAX, least = INT32_MIN;
  return static_cast<int32_t>(value > most ? most : value < least ? least : value);
}

/* Whether an index lies outside of an axis. */
inline bool outside(int32_t index, int32_t size) { return static_cast<uint32_t>(index) >= static_cast<uint32_t>(size); }
inline bool outside(int64_t index, int32_t size) { return static_cast<uint64_t>(index) >= static_cast<uint64_t>(size); }

/* Says what is wrong, by a number, and about which value; code 0 is said first, and what comes after it stays. */
inline void report(int *status, int32_t code, int64_t value) {
  if (code != 0 && status[0] != 0) return;
  status[0] = code;
  status[1] = saturated(value);
}

/* Each worker takes `chunk` points along one index of a box, `along`, and all points along the others. */
inline int32_t share_begin(int32_t begin, int32_t end, bool along, unsigned worker, int32_t chunk) {
  return along ? minimum(begin + static_cast<int32_t>(worker) * chunk, end) : begin;
}
inline int32_t share_end(int32_t begin, int32_t end, bool along, unsigned worker, int32_t chunk) {
  return along ? minimum(begin + (static_cast<int32_t>(worker) + 1) * chunk, end) : end;
}
/* The place of a worker's first element, where each has `share` of them. */
inline int32_t share_first(unsigned worker, int32_t share) { return static_cast<int32_t>(worker) * share; }

}  // namespace opc
#endif  // OPC_POPLAR_CODELET_H
