/* Stages of points and rows on a GPU: points by all threads of a grid, rows by teams of threads, a warp or a block each. */
#ifndef OPC_CUDA_ROWS_H
#define OPC_CUDA_ROWS_H

#include "opc/core/stage.h"
#include "opc/cuda/memory.h"
#include "opc/cuda/reduce.h"

namespace opc {
inline namespace OPC_VARIANT {

struct device_operand {
  char *data; /* NULL: absent, or not wanted */
  int32_t stored; /* the dtype of its elements */
  int64_t stride[max_axes];
};

/* A stage as kernels get it: axes [0, outer) are those of the points that own rows, the others those of a row. What rows keep from one
 * pass to the next lies in `buffers` arrays of `pitch` bytes for each team, in shared memory where `scratch` is NULL. */
template <int32_t Operands>
struct device_tile {
  int64_t rows;
  int64_t columns;
  int64_t packed; /* so many columns, from the first on, are read and written 16 bytes at a time, along the last axis */
  int64_t pitch;
  char *scratch;
  int32_t outer;
  int32_t rank;
  int32_t team; /* threads that a row has */
  int32_t buffers;
  int32_t lanes; /* elements that are taken at once */
  int64_t size[max_axes];
  divisor by_size[max_axes];
  device_operand operands[Operands];
};

/* Where along axes [first, end) point number `i` of each operand lies, in elements from the first. */
template <int32_t Operands>
OPC_DEVICE offsets<Operands> offsets_along(const device_tile<Operands> &t, int32_t first, int32_t end, int64_t i) {
  offsets<Operands> found = {};
  OPC_ROLLED
  for (int32_t a = end - 1; a >= first; --a) {
    int64_t digit = i; /* of the first axis, all that is left */
    if (a > first) i = without_last(i, t.by_size[a], digit);
    OPC_UNROLLED
    for (int k = 0; k < Operands; ++k) found.at[k] += digit * t.operands[k].stride[a];
  }
  return found;
}

/* Where the rows of operands begin, and a column of them. */
template <int32_t Operands>
OPC_DEVICE offsets<Operands> row_offsets(const device_tile<Operands> &t, int64_t row) {
  return offsets_along(t, 0, t.outer, row);
}
template <int32_t Operands>
OPC_DEVICE offsets<Operands> column_offsets(const device_tile<Operands> &t, int64_t column) {
  return offsets_along(t, t.outer, t.rank, column);
}

/* A row of an operand, whose elements are found by their offsets. */
template <typename Stored>
struct device_row {
  place_of<Stored> data;
  bool varies; /* from a column to the next along the last axis */
  OPC_DEVICE_MEMBER element<Stored> operator[](int64_t offset) const { return {data + offset}; }
};

template <typename Stored, typename Tile, typename Offsets>
OPC_DEVICE place_of<Stored> row_start(const Tile &t, int32_t operand, const Offsets &starts) {
  return elements_of<Stored>(t.operands[operand]) + starts.at[operand];
}
template <typename Stored, typename Tile, typename Offsets>
OPC_DEVICE device_row<Stored> device_row_of(const Tile &t, int32_t operand, const Offsets &starts) {
  return {row_start<Stored>(t, operand, starts), t.rank > t.outer && t.operands[operand].stride[t.rank - 1] != 0};
}

/* A row of an operand that has one value for each. */
template <typename Stored, typename Tile, typename Offsets>
OPC_DEVICE device_row<Stored> single_row_of(const Tile &t, int32_t operand, const Offsets &starts) {
  return {row_start<Stored>(t, operand, starts), false};
}

/* The one value that an operand has for a row. */
template <typename Stored, typename Tile, typename Offsets>
OPC_DEVICE compute<std::remove_const_t<Stored>> row_value(const Tile &t, int32_t operand, const Offsets &starts) {
  return load(row_start<Stored>(t, operand, starts));
}

template <typename Tile>
OPC_DEVICE bool is_wanted(const Tile &t, int32_t operand) {
  return t.operands[operand].data != nullptr;
}

/* The neighbours from an offset on; those of an operand that is the same for them are one element, those of an absent one zeros. */
template <int count, typename Stored>
OPC_DEVICE pack<std::remove_const_t<Stored>, count> load_pack(const device_row<Stored> &row, int64_t offset) {
  typedef pack<std::remove_const_t<Stored>, count> elements;
  elements found = {};
  if (row.data == nullptr) return found;
  if (row.varies) return load_together<count, Stored>(row.data + offset);
  if constexpr (is_any<Stored>) {
    const compute<std::remove_const_t<Stored>> value = load(row.data + offset);
    OPC_UNROLLED
    for (int k = 0; k < count; ++k) found.elements[k] = value;
  } else {
    OPC_UNROLLED
    for (int k = 0; k < count; ++k) found.elements[k] = row.data[offset];
  }
  return found;
}
template <int count, typename Stored>
OPC_DEVICE pack<Stored, count> new_pack(const device_row<Stored> &) {
  return {};
}
template <int count, typename Stored>
OPC_DEVICE void store_pack(const device_row<Stored> &row, int64_t offset, const pack<Stored, count> &values) {
  if (row.data != nullptr) store_together<count, Stored>(row.data + offset, values);
}

/* What a row keeps: each thread of a team keeps its own columns, so that no thread waits for another. */
template <typename T>
struct row_buffer {
  T *values;
  int64_t columns;
  OPC_DEVICE_MEMBER T &operator[](int64_t i) const {
    OPC_CHECK_INDEX(i, columns);
    return values[i];
  }
};
template <typename T, typename Tile>
OPC_DEVICE row_buffer<T> buffer_of(const Tile &t, int32_t index) {
  OPC_DYNAMIC_SHARED(shared);
  char *own = t.scratch != nullptr ? t.scratch + own_team(t) * t.buffers * t.pitch
                                   : shared + static_cast<int64_t>(threadIdx.x / static_cast<unsigned>(t.team)) * t.buffers * t.pitch;
  return {reinterpret_cast<T *>(own + index * t.pitch), t.columns};
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_ROWS_H
