/* Rows that are put element by element, where asked for past the caches.
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

typedef long long stream_vector __attribute__((vector_size(vector_bytes), may_alias));

/* The bytes from an address up to the next whole vector. */
OPC_INLINE int64_t bytes_to_vector(const void *address) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(address) & (vector_bytes - 1));
}

/* An output of a loop that puts: its row, and of a streamed row the values of one vector. */
template <typename T, bool Wanted>
struct row_put {
  typedef T type;
  static constexpr bool wanted = Wanted;
  T *row;
  T lane[vector_bytes / sizeof(T)];
  OPC_INLINED explicit row_put(T *to) : row(to) {}
};

/* Stores a vector past the caches. */
OPC_INLINE void stream_aligned(void *to, stream_vector value) {
  stream_vector *target = static_cast<stream_vector *>(to);
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
template <typename Put>
OPC_INLINE void stream_lanes(const Put &put, int64_t at) {
  if constexpr (Put::wanted) {
    stream_vector value;
    memcpy(&value, put.lane, sizeof value);
    typename Put::type *to = put.row + at;
    if (bytes_to_vector(to) == 0) {
      stream_aligned(to, value);
    } else {
      memcpy(to, &value, sizeof value);
    }
  }
}

/* What a sum begins with: changes no value that is added to it, not even the sign of a zero. */
template <typename T>
constexpr T nothing = T(-T(0));

/* Runs `step` at elements [begin, end), at each of which it finds its outputs as sums begin. */
template <typename Step, typename... Puts>
OPC_INLINE void put_afresh(int64_t begin, int64_t end, const Step &step, Puts &...puts) {
  for (int64_t i = begin; i < end; ++i) {
    (..., (puts.row[i] = nothing<typename Puts::type>));
    step(i, puts.row[i]...);
  }
}

/* Runs `step` at elements [begin, end) of a row and streams the outputs; the row `aligned` is the one whose lines are stored whole, as
 * others' are that lie alike. */
template <int Lanes, typename T, typename Ahead, typename Step, typename... Puts>
OPC_INLINE void stream_range(int64_t begin, int64_t end, const T *aligned, const Ahead &ahead, const Step &step, Puts &...puts) {
  int64_t i = begin + bytes_to_vector(aligned + begin) * Lanes / vector_bytes;
  if (i > end) i = end;
  put_afresh(begin, i, step, puts...);
  for (; i + Lanes <= end; i += Lanes) {
    ahead(i);
    OPC_SIMD_LANES
    for (int lane = 0; lane < Lanes; ++lane) {
      (..., (puts.lane[lane] = nothing<typename Puts::type>));
      step(i + lane, puts.lane[lane]...);
    }
    (stream_lanes(puts, i), ...);
  }
  put_afresh(i, end, step, puts...);
}

/* Whether rows of a type are streamed: those that large tensors are made of. A form more of each loop takes its time to compile. */
template <typename T>
constexpr bool is_streamed = T(0.5) != T(0) && sizeof(T) == 4;

/* The first row of some outputs that is wanted. */
template <typename Put, typename... Puts>
OPC_INLINE const typename Put::type *first_wanted(const Put &put, const Puts &...puts) {
  if constexpr (Put::wanted || sizeof...(Puts) == 0) {
    return put.row;
  } else {
    return first_wanted(puts...);
  }
}

/* Runs `step` at elements [begin, end) of a row with the outputs' elements there; all outputs have one type. */
template <typename Ahead, typename Step, typename Put, typename... Puts>
OPC_INLINE void put_range(const tile &t, int64_t begin, int64_t end, const Ahead &ahead, const Step &step, Put &put, Puts &...puts) {
  typedef typename Put::type T;
  constexpr int lanes = vector_bytes / int(sizeof(T));
  if constexpr (is_streamed<T>) {
    if (t.streams) return stream_range<lanes>(begin, end, first_wanted(put, puts...), ahead, step, put, puts...);
  }
  if constexpr (looks_ahead<Ahead>) {
    for (; begin + lanes <= end; begin += lanes) {
      ahead(begin);
      OPC_SIMD_LANES
      for (int64_t i = begin; i < begin + lanes; ++i) step(i, put.row[i], puts.row[i]...);
    }
  }
  OPC_SIMD
  for (int64_t i = begin; i < end; ++i) step(i, put.row[i], puts.row[i]...);
}

/* Runs `step` at each element of a row. */
template <typename Ahead, typename Step, typename... Puts>
OPC_INLINE void put_row(const tile &t, const Ahead &ahead, const Step &step, Puts &...puts) {
  put_range(t, 0, t.columns, ahead, step, puts...);
}

/* Runs a step at each element of a row: `step_at(k)` is the one with element k of each operand that stands still, which is that of a
 * whole stretch of columns, or of column k only. */
template <typename Ahead, typename StepAt, typename... Puts>
OPC_INLINE void put_stretches(const tile &t, const Ahead &ahead, const StepAt &step_at, Puts &...puts) {
  if (t.stretch == 0) {
    put_row(t, ahead, [&](int64_t i, auto &...here) OPC_INLINED { step_at(i)(i, here...); }, puts...);
    return;
  }
  for (int64_t k = 0; k * t.stretch < t.columns; ++k) {
    put_range(t, k * t.stretch, (k + 1) * t.stretch, ahead, step_at(k), puts...);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_STORES_H
