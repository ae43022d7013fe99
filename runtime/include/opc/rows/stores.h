/* Stores of rows, element by element: non-temporal ones where those are wanted.
 *
 * A line of memory that is stored whole by such stores is not fetched before, which is a third of the traffic of a loop that reads one
 * tensor and writes another. Compilers make no such stores of a vectorised loop; here they get the value of one vector at a time.
 */
#ifndef OPC_ROWS_STORES_H
#define OPC_ROWS_STORES_H

#include "opc/core/lanes.h"
#include "opc/core/stage.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPC_STORES_ARE_WATCHED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OPC_STORES_ARE_WATCHED
#endif
#endif

namespace opc {
inline namespace OPC_VARIANT {

typedef long long raw_vector __attribute__((vector_size(vector_bytes), may_alias));

/* The bytes from an address up to the next whole vector. */
OPC_INLINE int64_t bytes_to_vector(const void *address) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(address) & (vector_bytes - 1));
}

/* An output of a loop that stores: its row, and for non-temporal stores the values of one vector. Where elements are `Stored` otherwise than
 * they are computed, see opc/rows/converted_rows.h. */
template <typename T, bool Wanted, typename Stored = T>
struct row_store;

template <typename T, bool Wanted>
struct row_store<T, Wanted, T> {
  typedef T type;
  static constexpr bool wanted = Wanted;
  T *row;
  T lane[vector_bytes / sizeof(T)];
  OPC_INLINED explicit row_store(T *to) : row(to) {}
};

/* Stores a vector past the caches. */
OPC_INLINE void store_nontemporal(void *to, raw_vector value) {
  raw_vector *target = static_cast<raw_vector *>(to);
#if defined(OPC_STORES_ARE_WATCHED)
  *target = value; /* sanitizers see ordinary stores only */
#elif defined(__clang__)
  __builtin_nontemporal_store(value, target);
#elif defined(__AVX512F__)
  __builtin_ia32_movntdq512(target, value);
#elif defined(__AVX2__)
  __builtin_ia32_movntdq256(target, value);
#elif defined(__SSE2__)
  __builtin_ia32_movntdq(target, value);
#else
  *target = value;
#endif
}

/* Stores the lanes of an output from element `at` on: past the caches where that is aligned. */
template <typename Store>
OPC_INLINE void store_lanes(const Store &store, int64_t at) {
  if constexpr (Store::wanted) {
    raw_vector value;
    memcpy(&value, store.lane, sizeof value);
    typename Store::type *to = store.row + at;
    if (bytes_to_vector(to) == 0) {
      store_nontemporal(to, value);
    } else {
      memcpy(to, &value, sizeof value);
    }
  }
}

/* What a sum begins with: changes no value that is added to it, not even the sign of a zero. */
template <typename T>
constexpr T nothing = T(-T(0));

/* Runs `step` at elements [begin, end), at each of which it finds its outputs as sums begin. */
template <typename Step, typename... Stores>
OPC_INLINE void store_initialised(int64_t begin, int64_t end, const Step &step, Stores &...stores) {
  for (int64_t i = begin; i < end; ++i) {
    (..., (stores.row[i] = nothing<typename Stores::type>));
    step(i, stores.row[i]...);
  }
}

/* Runs `step` at elements [begin, end) of a row with non-temporal stores of the outputs; the row `aligned` is the one whose lines are
 * stored whole, as others' are that lie alike. */
template <int Lanes, typename T, typename Ahead, typename Step, typename... Stores>
OPC_INLINE void store_range_nontemporal(int64_t begin, int64_t end, const T *aligned, const Ahead &ahead, const Step &step,
                                        Stores &...stores) {
  int64_t i = begin + bytes_to_vector(aligned + begin) * Lanes / vector_bytes;
  if (i > end) i = end;
  store_initialised(begin, i, step, stores...);
  for (; i + Lanes <= end; i += Lanes) {
    ahead(i);
    OPC_SIMD_LANES
    for (int lane = 0; lane < Lanes; ++lane) {
      (..., (stores.lane[lane] = nothing<typename Stores::type>));
      step(i + lane, stores.lane[lane]...);
    }
    (store_lanes(stores, i), ...);
  }
  store_initialised(i, end, step, stores...);
}

/* Whether rows of a type are stored so: those that large tensors are made of. Each form of a loop takes time to compile. */
template <typename T>
constexpr bool is_nontemporal = T(0.5) != T(0) && sizeof(T) == 4;

/* The first row of some outputs that is wanted. */
template <typename Store, typename... Stores>
OPC_INLINE auto first_wanted(const Store &store, const Stores &...stores) {
  if constexpr (Store::wanted || sizeof...(Stores) == 0) {
    return store.row;
  } else {
    return first_wanted(stores...);
  }
}

/* Runs `step` at elements [begin, end) of a row with the outputs' elements there; all outputs have one type, as which they are stored. */
template <typename Ahead, typename Step, typename Store, typename... Stores>
OPC_INLINE void store_range(const tile &t, int64_t begin, int64_t end, const Ahead &ahead, const Step &step, Store &store,
                            Stores &...stores) {
  typedef typename Store::type T;
  constexpr int lanes = vector_bytes / int(sizeof(T));
  if constexpr (is_nontemporal<T>) {
    if (t.nontemporal) return store_range_nontemporal<lanes>(begin, end, first_wanted(store, stores...), ahead, step, store, stores...);
  }
  if constexpr (looks_ahead<Ahead>) {
    for (; begin + lanes <= end; begin += lanes) {
      ahead(begin);
      OPC_SIMD_LANES
      for (int64_t i = begin; i < begin + lanes; ++i) step(i, store.row[i], stores.row[i]...);
    }
  }
  OPC_SIMD
  for (int64_t i = begin; i < end; ++i) step(i, store.row[i], stores.row[i]...);
}

/* Runs `step` at each element of a row. */
template <typename Ahead, typename Step, typename T, bool Wanted, typename... Stores>
OPC_INLINE void store_row(const tile &t, const Ahead &ahead, const Step &step, row_store<T, Wanted, T> &store, Stores &...stores) {
  store_range(t, 0, t.columns, ahead, step, store, stores...);
}

/* Runs a step at each element of a row: `step_at(k)` is the one with element k of each inner-invariant operand, which is that of a
 * whole segment of columns, or of column k only. */
template <typename Ahead, typename StepAt, typename... Stores>
OPC_INLINE void store_segments(const tile &t, const Ahead &ahead, const StepAt &step_at, Stores &...stores) {
  if (t.segment == 0) {
    store_row(t, ahead, [&](int64_t i, auto &...here) OPC_INLINED { step_at(i)(i, here...); }, stores...);
    return;
  }
  for (int64_t k = 0; k * t.segment < t.columns; ++k) {
    store_range(t, k * t.segment, (k + 1) * t.segment, ahead, step_at(k), stores...);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_STORES_H
