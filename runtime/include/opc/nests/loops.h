/* What the functions of loop nests over rows are built from: for the files compiled once for each instruction-set variant. */
#ifndef OPC_NESTS_LOOPS_H
#define OPC_NESTS_LOOPS_H

#include "opc/core/lanes.h"
#include "opc/nests/copy.h"
#include "opc/nests/gather.h"
#include "opc/nests/rows.h"
#include "opc/nests/points.h"

/* Rows of nests are short: vectors of 32 bytes, and of 16 for what is left, leave fewer elements over than those of 64 do. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define OPC_ROW_NEST __attribute__((target("prefer-vector-width=256")))
#else
#define OPC_ROW_NEST
#endif

namespace opc {
inline namespace OPC_VARIANT {

/* An operand that is stored as it is computed. */
template <typename T>
struct flat {
  const T *data;
  const int64_t *size;
  const int64_t *stride;
};

template <typename T>
OPC_INLINE flat<T> flat_of(const row_nest &n, int32_t operand) {
  const flat_operand &o = n.operands[operand];
  return {reinterpret_cast<const T *>(o.data), o.size, o.stride};
}

/* A view of an operand of any stored type that is computed as T. */
template <typename T, typename Minifloats = stored_minifloats>
struct stored_flat {
  const char *data;
  dtype stored;
  const int64_t *size;
  const int64_t *stride;

  OPC_INLINED T at(int64_t offset) const {
    T value;
    const auto fetch = [&](auto zero) OPC_INLINED { value = T(load(reinterpret_cast<const decltype(zero) *>(data) + offset)); };
    if constexpr (dtype_for<T> == dtype_float32) {
      if (with_type_of(stored, Minifloats(), fetch)) return value;
    }
    return reinterpret_cast<const T *>(data)[offset];
  }
};

template <typename T>
OPC_INLINE stored_flat<T> stored_flat_of(const row_nest &n, int32_t operand) {
  const flat_operand &o = n.operands[operand];
  return {o.data, o.stored, o.size, o.stride};
}

/* A view of an operand that is stored as `Stored` and computed as T. */
template <typename Stored, typename T>
struct known_flat {
  const Stored *data;
  const int64_t *size;
  const int64_t *stride;
  OPC_INLINED T at(int64_t offset) const { return T(load(data + offset)); }
};

/* Calls f with a view of an operand that knows what this is stored as. */
template <typename T, typename F>
OPC_INLINE void with_stored(const stored_flat<T> &view, F f) {
  const auto call = [&](auto stored) OPC_INLINED {
    typedef decltype(stored) type;
    f(known_flat<type, T>{reinterpret_cast<const type *>(view.data), view.size, view.stride});
  };
  if constexpr (dtype_for<T> == dtype_float32) {
    if (with_type_of(view.stored, stored_minifloats(), call)) return;
  }
  call(T());
}

/* Unit after unit of a nest: the outer indices, and which lanes. */
struct cursor {
  const row_nest &n;
  int64_t index[max_axes];
  int64_t piece;
  int64_t offset; /* of the first lane's element in the target */

  cursor(const row_nest &nest, int64_t unit) : n(nest) {
    int64_t point = unit;
    int32_t a = nest.outer - 1;
    for (; a >= nest.outer - nest.inner; --a) {
      index[a] = point % nest.size[a];
      point /= nest.size[a];
    }
    piece = point % nest.pieces;
    point /= nest.pieces;
    for (; a >= 0; --a) {
      index[a] = point % nest.size[a];
      point /= nest.size[a];
    }
  }
  int64_t first() const { return piece * n.piece; }
  int64_t count() const { return n.columns - first() < n.piece ? n.columns - first() : n.piece; }
  /* Whether the inner loops begin here, so that the piece or one of the other indices is a new one. */
  bool begins() const {
    for (int32_t a = n.outer - n.inner; a < n.outer; ++a) {
      if (index[a] != 0) return false;
    }
    return true;
  }
  void next() {
    int32_t a = n.outer - 1;
    for (; a >= n.outer - n.inner; --a) {
      if (++index[a] < n.size[a]) return;
      index[a] = 0;
    }
    if (++piece < n.pieces) return;
    piece = 0;
    for (; a >= 0; --a) {
      if (++index[a] < n.size[a]) return;
      index[a] = 0;
    }
  }
  int64_t target() const {
    int64_t at = n.columns > 1 ? first() * n.stride[n.outer] : 0;
    for (int32_t a = 0; a < n.outer; ++a) at += index[a] * n.stride[a];
    return at;
  }
};

/* The target of a nest, the point of it that a unit of a scatter adds to, and a quotient that is rounded up. */
template <typename T>
OPC_INLINE T *target_of(const row_nest &n) {
  return reinterpret_cast<T *>(n.target);
}
OPC_INLINE int64_t target_unit(const row_nest &n, int64_t unit) { return unit / n.parts; }
OPC_INLINE int64_t quotient_up(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/* The range of places that a unit of a scatter adds to. */
OPC_INLINE int64_t part_begin(const row_nest &n, int64_t unit) { return n.shared ? 0 : n.scatter_size[0] * (unit % n.parts) / n.parts; }
OPC_INLINE int64_t part_end(const row_nest &n, int64_t unit) {
  return n.shared ? n.scatter_size[0] : n.scatter_size[0] * (unit % n.parts + 1) / n.parts;
}

/* The range of an axis that a sum goes over, of the terms that a unit of a scatter adds. */
OPC_INLINE int64_t terms_begin(const row_nest &n, int64_t unit, int32_t axis, int64_t extent) {
  return n.shared && axis == n.term_axis ? extent * (unit % n.parts) / n.parts : 0;
}
OPC_INLINE int64_t terms_end(const row_nest &n, int64_t unit, int32_t axis, int64_t extent) {
  return n.shared && axis == n.term_axis ? extent * (unit % n.parts + 1) / n.parts : extent;
}

/* Adds to what other threads add to: in any order, each addition whole. */
template <typename T>
OPC_INLINE void add_shared(T &to, T value) {
  T known, sum;
  __atomic_load(&to, &known, __ATOMIC_RELAXED);
  do {
    sum = known + value;
  } while (!__atomic_compare_exchange(&to, &known, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Zeroes the places of a unit of a scatter, where they lie together. */
template <typename T>
OPC_INLINE void zero_part(const row_nest &n, T *to, int64_t low, int64_t high) {
  if (n.starts_parts) memset(to + low * n.scatter_stride[0], 0, static_cast<size_t>((high - low) * n.scatter_stride[0]) * sizeof(T));
}

/* Fills the places of a unit of a scatter with what its reduction starts from: those of so many indices that terms name, of the first
 * one those in [low, high), and of `columns` elements side by side at each. */
template <typename T>
OPC_INLINE void fill_part(const row_nest &n, T *to, int64_t low, int64_t high, int32_t indices, int64_t columns, T value) {
  int64_t rows = high - low;
  for (int32_t a = 1; a < indices; ++a) rows *= n.scatter_size[a];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, at = low * n.scatter_stride[0];
    for (int32_t a = indices - 1; a > 0; --a) {
      at += rest % n.scatter_size[a] * n.scatter_stride[a];
      rest /= n.scatter_size[a];
    }
    at += rest * n.scatter_stride[0];
    for (int64_t column = 0; column < columns; ++column) to[at + column] = value;
  }
}

template <int64_t Value>
struct constant {
  constexpr operator int64_t() const { return Value; }
};

/* Calls f with a step that is a constant where it is 1 or 2, so that loads of that step vectorise. */
template <typename F>
OPC_INLINE void with_step(int64_t step, F f) {
  if (step == 1) {
    f(constant<1>());
  } else if (step == 2) {
    f(constant<2>());
  } else {
    f(step);
  }
}

/* Calls f with a number of lanes that is a constant where it is that of a scan across rows, and a stride that is one where it is 1. */
template <typename F>
OPC_INLINE void with_count(int64_t count, int64_t stride, F f) {
  if (count == 1) {
    f(constant<1>(), constant<1>());
  } else if (stride == 1) {
    f(count, constant<1>());
  } else if (count == few_columns) {
    f(constant<few_columns>(), stride);
  } else {
    f(count, stride);
  }
}

OPC_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
OPC_INLINE int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

/* Whether coefficient * i + rest >= 0 where i is not negative, whatever numbers an attribute makes of the others. */
OPC_INLINE bool reaches(int64_t coefficient, int64_t i, int64_t rest) {
  int64_t sum;
  if (__builtin_mul_overflow(coefficient, i, &sum)) return coefficient > 0;
  return __builtin_add_overflow(sum, rest, &sum) ? rest > 0 : sum >= 0;
}

/* Narrows [low, high) to the i with coefficient * i + rest >= 0; what is left lies within it, also where that is nothing. */
OPC_INLINE void clip(int64_t &low, int64_t &high, int64_t coefficient, int64_t rest) {
  if (coefficient == 1) {
    low = rest <= -high ? high : greatest(low, -rest);
  } else if (coefficient == -1) {
    high = rest >= high ? high : greatest(rest + 1, low);
  } else if (coefficient > 0) {
    /* Most ranges need no clipping, and a division takes long. */
    if (!reaches(coefficient, low, rest)) low = least(greatest(low, -floordiv(rest, coefficient)), high);
  } else if (coefficient < 0) {
    if (!reaches(coefficient, high - 1, rest)) high = greatest(least(high, -floordiv(rest + 1, coefficient)), low);
  } else if (rest < 0) {
    high = low;
  }
}

/* Narrows [low, high) to the i with i + rest >= value, whatever number data says. */
OPC_INLINE void clip_from(int64_t &low, int64_t &high, int64_t value, int64_t rest) {
  if (value > low + rest) low = value < high + rest ? value - rest : high;
}

/* Narrows [low, high) to the i with i + rest < value. */
OPC_INLINE void clip_to(int64_t &low, int64_t &high, int64_t value, int64_t rest) {
  if (value < high + rest) high = value > low + rest ? value - rest : low;
}

/* Returns the first of some places in [low, high), or `high` where there is none. */
template <typename... Places>
OPC_INLINE int64_t next_of(int64_t low, int64_t high, Places... places) {
  ((high = places >= low && places < high ? places : high), ...);
  return high;
}

/* The place where a row of results is computed: the target itself, or `buffer` where the target stores minifloats. */
template <typename T>
OPC_INLINE T *result_row(const row_nest &n, int64_t offset, T *buffer) {
  if (sizeof(T) == 4 && is_minifloat(n.stored)) return buffer;
  return reinterpret_cast<T *>(n.target) + offset;
}

/* Zeroes the results of units [begin, end), which lie one behind the other, all at once: as much memory is zeroed quicker than row by
 * row. Rows of results that are computed in a buffer are left as they are. */
static inline void zero_units(const row_nest &n, int64_t begin, int64_t end) {
  if (is_minifloat(n.stored) || begin >= end) return;
  const cursor last(n, end - 1);
  const int64_t first = cursor(n, begin).target(), size = itemsize(n.stored);
  memset(n.target + first * size, 0, static_cast<size_t>((last.target() + last.count() - first) * size));
}

/* Writes a row of results that were computed in a buffer. */
template <typename T>
OPC_INLINE void finish_row(const row_nest &n, int64_t offset, const T *row, int64_t count) {
  if constexpr (sizeof(T) == 4) {
    with_type_of(n.stored, stored_minifloats(), [&](auto zero) OPC_INLINED {
      typedef decltype(zero) stored;
      narrow_row<stored>(reinterpret_cast<stored *>(n.target) + offset, reinterpret_cast<const float *>(row), count);
    });
  }
}

/* Writes a row of results computed phase by phase: phase r holds the lanes r, r + period, ..., and `pitch` elements of the buffer. */
template <typename T>
OPC_INLINE void finish_phases(const row_nest &n, int64_t offset, const T *phases, int64_t pitch, int64_t period, int64_t count) {
  T buffer[nest_columns];
  T *const row = result_row(n, offset, buffer);
  int64_t done = 0;
  if (period == 2) {
    done = count / 2 * 2;
    OPC_SIMD
    for (int64_t i = 0; i < count / 2; ++i) {
      row[2 * i] = phases[i];
      row[2 * i + 1] = phases[pitch + i];
    }
  }
  /* A period may be any number: no place behind the row is counted up to. */
  if (period >= count) period = count;
  for (int64_t r = 0; r < period && r < count; ++r) {
    const int64_t skip = done / period;
    for (int64_t i = r + skip * period; i < count; i += period) row[i] = phases[r * pitch + i / period];
  }
  finish_row(n, offset, row, count);
}

/* Sets a row to one value. */
template <typename T>
OPC_INLINE void fill(T *row, int64_t count, T value) {
  OPC_SIMD
  for (int64_t i = 0; i < count; ++i) row[i] = value;
}

/* Adds up the results of a unit of work where their sum is wanted. */
template <typename T>
OPC_INLINE void sum_unit(const row_nest &n, int64_t unit, const T *row, int64_t count) {
  if (n.sums != nullptr) static_cast<T *>(n.sums)[unit] = sum_row<T>(row, count);
}

/* Calls f with a zero of the type that holds positions below `count`: as wide as T where that is enough. */
template <typename T, typename F>
OPC_INLINE void with_positions(int64_t count, F f) {
  if constexpr (sizeof(T) <= sizeof(int32_t)) {
    if (count <= INT32_MAX) return f(int32_t(0));
  }
  f(int64_t(0));
}

/* Stores a row of positions. */
template <typename P>
OPC_INLINE void widen_row(int64_t *to, const P *from, int64_t count) {
  OPC_SIMD
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/* Looks for a better value than `best` among value(i), low <= i < high, and keeps the number of the first one of the best. Strips of
 * lanes each look for their own. */
template <typename T, typename P, typename Number, typename Value, typename Better>
OPC_INLINE void search_row(int64_t low, int64_t high, T &best, int64_t &found, Number number, Value value, Better better) {
  constexpr int64_t strip = 128 / sizeof(T);
  int64_t i = low;
  if (high - low >= 2 * strip) {
    T bests[strip];
    P places[strip];
    const T first = value(low);
    for (int64_t u = 0; u < strip; ++u) {
      bests[u] = value(low + u);
      places[u] = P(u);
    }
    for (i += strip; i + strip <= high; i += strip) {
      const P start = P(i - low);
      OPC_SIMD
      for (int64_t u = 0; u < strip; ++u) {
        const T here = value(i + u);
        const bool is = better(here, bests[u]);
        bests[u] = is ? here : bests[u];
        places[u] = is ? P(start + P(u)) : places[u];
      }
    }
    T top = first;
    P place = 0;
    for (int64_t u = 0; u < strip; ++u) {
      const bool same = bests[u] == top || (bests[u] != bests[u] && top != top);
      if (better(bests[u], top) || (same && places[u] < place)) {
        top = bests[u];
        place = places[u];
      }
    }
    if (better(top, best)) {
      best = top;
      found = number(low + place);
    }
  }
  for (; i < high; ++i) {
    const T here = value(i);
    if (better(here, best)) {
      best = here;
      found = number(i);
    }
  }
}

/* Elements [low, high) of a row of an operand that starts at `offset`: where they lie, or widened in `buffer`. */
template <typename T>
OPC_INLINE const T *row_at(const row_nest &n, int32_t operand, int64_t offset, int64_t low, int64_t high, T *buffer) {
  const flat_operand &o = n.operands[operand];
  if constexpr (sizeof(T) == 4) {
    const auto widened = [&](auto zero) OPC_INLINED {
      typedef decltype(zero) stored;
      const stored *from = reinterpret_cast<const stored *>(o.data) + offset + low;
      widen_row<stored>(reinterpret_cast<float *>(buffer) + low, from, high - low);
    };
    if (with_type_of(o.stored, stored_minifloats(), widened)) return buffer;
  }
  return reinterpret_cast<const T *>(o.data) + offset;
}

/* Reports what went wrong, unless something else has been. */
__attribute__((cold, noinline)) static void report(const row_nest &n, const char *what, int32_t axis, int64_t value, int64_t size) {
  int32_t expected = 0;
  if (__atomic_compare_exchange_n(&n.fault->reported, &expected, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    n.fault->what = what;
    n.fault->axis = axis;
    n.fault->value = value;
    n.fault->size = size;
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_LOOPS_H
