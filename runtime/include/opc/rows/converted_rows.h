/* Rows of 16-bit floats in loops that store rows, which convert them block by block.
 *
 * A tile function that takes rows of float32 alone has them converted around it, a staged block (opc/rows/run.h) at a time. Where a value
 * costs little to compute, moving such blocks about takes longer than that, and memory waits meanwhile.
 */
#ifndef OPC_ROWS_CONVERTED_ROWS_H
#define OPC_ROWS_CONVERTED_ROWS_H

#include "opc/rows/minifloat_rows.h"
#include "opc/rows/stores.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Elements that are converted together: few enough that what is read next of each row is on its way while they are computed, and enough
 * that a loop over them is worth what it begins with. */
enum : int64_t { converted_elements = 16 * vector_bytes / 2 };

/* Where a loop is in a row: at an element, and at which one of those that are converted together. */
struct block_position {
  int64_t element;
  int64_t place;
  OPC_INLINED operator int64_t() const { return element; }
};

/* The row of an input, with the elements that a loop is at as they are computed. */
template <typename T, typename Stored>
struct converted_row {
  const Stored *row;
  alignas(vector_bytes) T block[converted_elements];
  OPC_INLINED explicit converted_row(const Stored *from) : row(from) {}
  OPC_INLINED T operator[](block_position at) const { return block[at.place]; }
  OPC_INLINED void widen_at(int64_t i, int64_t count) { widen_row<Stored>(block, row + i, count); }
};

/* What a loop reads the row of an input by, and where: its elements, where they are stored as they are computed. */
template <typename T, typename Stored>
struct reading_of {
  typedef converted_row<T, Stored> row;
  typedef block_position position;
};
template <typename T>
struct reading_of<T, T> {
  typedef const T *row;
  typedef int64_t position;
};
template <typename T, typename Stored>
using input_row = typename reading_of<T, Stored>::row;
template <typename T, typename Stored>
using row_position = typename reading_of<T, Stored>::position;

/* What a loop does before it comes to elements of such rows: it widens them. */
template <typename T, typename... Rows>
OPC_INLINE nothing_ahead widened(const T *, Rows &...) {
  return {};
}
template <typename T, typename Stored, typename... Rows>
OPC_INLINE auto widened(converted_row<T, Stored> &row, Rows &...rows) {
  return [&](int64_t i, int64_t count) OPC_INLINED { (row.widen_at(i, count), ..., rows.widen_at(i, count)); };
}

/* An output whose elements are narrowed. */
template <typename T, bool Wanted, typename Stored>
struct row_store {
  typedef T type;
  static constexpr bool wanted = Wanted;
  Stored *row;
  alignas(vector_bytes) T block[converted_elements];
  OPC_INLINED explicit row_store(Stored *to) : row(to) {}
  OPC_INLINED void narrow_at(int64_t i, int64_t count, bool nontemporal) const {
    if constexpr (Wanted) narrow_row_anywhere<Stored>(row + i, block, count, nontemporal);
  }
};

/* Runs `step` at each element of a row. `widen` takes what it reads there from the rows of inputs. */
template <typename Widen, typename Step, typename T, bool Wanted, typename Stored, typename... Stores>
OPC_INLINE void store_row(const tile &t, const Widen &widen, const Step &step, row_store<T, Wanted, Stored> &store, Stores &...stores) {
  /* Blocks behind the first begin with a line of memory, so that lines are stored whole. */
  const int64_t before = bytes_to_vector(first_wanted(store, stores...)) / static_cast<int64_t>(sizeof(Stored));
  int64_t count;
  for (int64_t i = 0; i < t.columns; i += count) {
    const int64_t most = i == 0 && before != 0 ? before : converted_elements;
    count = most < t.columns - i ? most : t.columns - i;
    widen(i, count);
    OPC_SIMD
    for (int64_t k = 0; k < count; ++k) {
      store.block[k] = nothing<T>;
      (..., (stores.block[k] = nothing<T>));
      step({i + k, k}, store.block[k], stores.block[k]...);
    }
    store.narrow_at(i, count, t.nontemporal);
    (stores.narrow_at(i, count, t.nontemporal), ...);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_ROWS_CONVERTED_ROWS_H
