/* Outputs that reduce over the points of a stage: partial results of each chunk of the stage, and their combination. */
#ifndef OPC_ROWS_ACCUMULATE_H
#define OPC_ROWS_ACCUMULATE_H

#include "opc/core/math.h"
#include "opc/core/minifloat.h"
#include "opc/rows/rows.h"

namespace opc {

/* Calls f(T()) for the type T of a compute dtype. */
template <typename F>
static inline void with_type(dtype type, F f) {
  with_type_of(type, computed_types(), f);
}

template <typename T>
static inline T combine(role what, T a, T b) {
  switch (what) {
    case role_sum: return T(a + b);
    case role_prod: return T(a * b);
    case role_max: return maximum(a, b);
    case role_min: return minimum(a, b);
    case role_any: return T(a || b);
    default: return T(a && b);
  }
}

/* Sets partial results to what changes nothing when something is combined with it: for a sum that is -0, unless it stays empty. */
static void reset(dtype type, role what, void *partial, int64_t count, bool empty) {
  with_type(type, [=](auto zero) {
    using T = decltype(zero);
    const T value = what == role_prod || what == role_all ? T(1)
                    : what == role_max                    ? limits<T>::lowest
                    : what == role_min                    ? limits<T>::highest
                    : empty                               ? T(0)
                                                          : T(-T(0));
    T *to = static_cast<T *>(partial);
    const int64_t first = count < 64 ? count : 64;
    for (int64_t i = 0; i < first; ++i) to[i] = value;
    /* What is there is copied behind itself: these files are compiled without vectors, but memcpy has them. */
    for (int64_t done = first; done < count; done *= 2) {
      memcpy(to + done, to, static_cast<size_t>(count - done < done ? count - done : done) * sizeof(T));
    }
  });
}

/* Adds the rows of a tile to partial sums laid out by `b`, where a stride of 0 sums. The sums of a tile are formed first and then
 * added, so that the error of a long sum grows with the number of tiles, not of elements. */
template <typename T>
static inline void sum_block(T *partial, const block &b, const T *in, int64_t pitch, T (*sum_row)(const void *, int64_t),
                             void (*sum_columns)(void *, const void *, int64_t, int64_t, int64_t)) {
  if (b.column_stride == 0) {
    T total = T(-T(0));
    for (int64_t r = 0; r < b.rows; ++r) {
      const T sum = sum_row(in + r * pitch, b.columns);
      if (b.row_stride != 0) partial[r * b.row_stride] += sum;
      total += sum;
    }
    if (b.row_stride == 0) *partial += total;
  } else if (b.column_stride == 1 && b.row_stride == 0) {
    sum_columns(partial, in, pitch, b.rows, b.columns);
  } else if (b.column_stride == 1) {
    for (int64_t r = 0; r < b.rows; ++r) sum_columns(partial + r * b.row_stride, in + r * pitch, pitch, 1, b.columns);
  } else {
    for (int64_t r = 0; r < b.rows; ++r) {
      for (int64_t c = 0; c < b.columns; ++c) partial[r * b.row_stride + c * b.column_stride] += in[r * pitch + c];
    }
  }
}

/* Combines the rows of a tile into partial results laid out by `b`. */
static void reduce_block(const row_functions &f, dtype type, role what, char *partial, const block &b, const char *in,
                         int64_t pitch) {
  if (what == role_sum && type == dtype_float32) {
    sum_block(reinterpret_cast<float *>(partial), b, reinterpret_cast<const float *>(in), pitch, f.sum_float, f.sum_columns_float);
  } else if (what == role_sum && type == dtype_float64) {
    sum_block(reinterpret_cast<double *>(partial), b, reinterpret_cast<const double *>(in), pitch, f.sum_double,
              f.sum_columns_double);
  } else {
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      T *to = reinterpret_cast<T *>(partial);
      const T *from = reinterpret_cast<const T *>(in);
      for (int64_t r = 0; r < b.rows; ++r) {
        for (int64_t c = 0; c < b.columns; ++c) {
          T &p = to[r * b.row_stride + c * b.column_stride];
          p = combine(what, p, from[r * pitch + c]);
        }
      }
    });
  }
}

/* Adds up, or combines, partial results: to[i] with from[i]. */
static void combine_all(const row_functions &f, dtype type, role what, char *to, const char *from, int64_t count) {
  if (what == role_sum && type == dtype_float32) {
    f.sum_columns_float(to, from, count, 1, count);
  } else if (what == role_sum && type == dtype_float64) {
    f.sum_columns_double(to, from, count, 1, count);
  } else if (type == dtype_float32 && (what == role_max || what == role_min)) {
    (what == role_max ? f.max_float : f.min_float)(to, from, count);
  } else if (type == dtype_float64 && (what == role_max || what == role_min)) {
    (what == role_max ? f.max_double : f.min_double)(to, from, count);
  } else {
    with_type(type, [=](auto zero) {
      using T = decltype(zero);
      T *p = reinterpret_cast<T *>(to);
      for (int64_t i = 0; i < count; ++i) p[i] = combine(what, p[i], reinterpret_cast<const T *>(from)[i]);
    });
  }
}

/* Combines elements [begin, end) of the partial results of all chunks, each `count` long, into the first chunk's, as a balanced tree. */
static void fold(const row_functions &f, dtype type, role what, char *partials, int64_t count, int64_t chunks, int64_t begin, int64_t end) {
  const int64_t block = 1024, item = itemsize(type); /* of all chunks: what a cache holds */
  for (int64_t low = begin; low < end; low += block) {
    const int64_t held = end - low < block ? end - low : block;
    for (int64_t width = 1; width < chunks; width *= 2) {
      for (int64_t chunk = 0; chunk + width < chunks; chunk += 2 * width) {
        combine_all(f, type, what, partials + (chunk * count + low) * item, partials + ((chunk + width) * count + low) * item, held);
      }
    }
  }
}

}  // namespace opc
#endif  // OPC_ROWS_ACCUMULATE_H
