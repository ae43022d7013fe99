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
  int64_t stride[max_axes];
};

/* A stage as kernels get it: axes [0, outer) are those of the points that own rows, the others those of a row. What rows keep from one
 * pass to the next lies in `buffers` arrays of `pitch` bytes for each team, in shared memory where `scratch` is NULL. */
template <int32_t Operands>
struct device_tile {
  int64_t rows;
  int64_t columns;
  int64_t packed; /* so many columns, from the first on, are read and written 16 bytes at a time */
  int64_t pitch;
  char *scratch;
  int32_t outer;
  int32_t rank;
  int32_t team; /* threads that a row has */
  int32_t buffers;
  int32_t lanes; /* elements that are taken at once */
  int64_t size[max_axes];
  device_operand operands[Operands];
};

/* Elements of the widest of some types in 16 bytes. */
template <typename... Stored>
OPC_HOST_DEVICE constexpr int count_packed() {
  int widest = 1;
  ((widest = int(sizeof(Stored)) > widest ? int(sizeof(Stored)) : widest), ...);
  return 16 / widest;
}

/* An element: reading it widens, writing it rounds. */
template <typename Stored>
struct element {
  Stored *at;
  OPC_DEVICE_MEMBER operator compute<Stored>() const { return load(at); }
  OPC_DEVICE_MEMBER void operator=(compute<Stored> value) const { store(at, value); }
};
template <typename Stored>
struct element<const Stored> {
  const Stored *at;
  OPC_DEVICE_MEMBER operator compute<Stored>() const { return load(at); }
};

/* Where along some axes point number `i` lies, in elements from the first. */
OPC_DEVICE int64_t offset_along(const int64_t *size, const int64_t *stride, int32_t axes, int64_t i) {
  int64_t offset = 0;
  OPC_ROLLED
  for (int32_t a = axes - 1; a > 0; --a) {
    if (i <= INT32_MAX && size[a] <= INT32_MAX) {
      const uint32_t small = static_cast<uint32_t>(i), of = static_cast<uint32_t>(size[a]);
      offset += static_cast<int64_t>(small % of) * stride[a];
      i = small / of;
    } else {
      offset += i % size[a] * stride[a];
      i /= size[a];
    }
  }
  return axes > 0 ? offset + i * stride[0] : offset;
}

/* A row of an operand. */
template <typename Stored>
struct device_row {
  Stored *data;
  const int64_t *size;
  const int64_t *stride;
  int32_t axes;
  OPC_DEVICE_MEMBER element<Stored> operator[](int64_t i) const { return {data + offset_along(size, stride, axes, i)}; }
};

template <typename Stored, typename Tile>
OPC_DEVICE Stored *row_start(const Tile &t, int32_t operand, int64_t row) {
  const device_operand &o = t.operands[operand];
  return reinterpret_cast<Stored *>(o.data) + offset_along(t.size, o.stride, t.outer, row);
}
template <typename Stored, typename Tile>
OPC_DEVICE device_row<Stored> device_row_of(const Tile &t, int32_t operand, int64_t row) {
  return {row_start<Stored>(t, operand, row), t.size + t.outer, t.operands[operand].stride + t.outer, t.rank - t.outer};
}

/* A row of an operand that has one value for each. */
template <typename Stored, typename Tile>
OPC_DEVICE device_row<Stored> single_row_of(const Tile &t, int32_t operand, int64_t row) {
  return {row_start<Stored>(t, operand, row), nullptr, nullptr, 0};
}

/* The one value that an operand has for a row. */
template <typename Stored, typename Tile>
OPC_DEVICE compute<std::remove_const_t<Stored>> row_value(const Tile &t, int32_t operand, int64_t row) {
  return load(row_start<Stored>(t, operand, row));
}

template <typename Tile>
OPC_DEVICE bool is_wanted(const Tile &t, int32_t operand) {
  return t.operands[operand].data != nullptr;
}

/* Some neighbours of a row. */
template <typename Stored, int count>
struct alignas(sizeof(Stored) * count) pack {
  Stored elements[count];
  OPC_DEVICE_MEMBER element<Stored> operator[](int64_t i) { return {elements + i}; }
  OPC_DEVICE_MEMBER compute<Stored> operator[](int64_t i) const { return load(elements + i); }
};

/* The neighbours from point `i` on; those of an operand that is the same along the row are one element, those of an absent one zeros. */
template <int count, typename Stored>
OPC_DEVICE pack<std::remove_const_t<Stored>, count> load_pack(const device_row<Stored> &row, int64_t i) {
  typedef pack<std::remove_const_t<Stored>, count> elements;
  elements found = {};
  if (row.data == nullptr) return found;
  if (row.axes > 0 && row.stride[0] != 0) return *reinterpret_cast<const elements *>(row.data + i);
  OPC_UNROLLED
  for (int k = 0; k < count; ++k) found.elements[k] = *row.data;
  return found;
}
template <int count, typename Stored>
OPC_DEVICE pack<Stored, count> new_pack(const device_row<Stored> &) {
  return {};
}
template <int count, typename Stored>
OPC_DEVICE void store_pack(const device_row<Stored> &row, int64_t i, const pack<Stored, count> &values) {
  if (row.data != nullptr) *reinterpret_cast<pack<Stored, count> *>(row.data + i) = values;
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
                                   : shared + static_cast<int64_t>(threadIdx.x) / t.team * t.buffers * t.pitch;
  return {reinterpret_cast<T *>(own + index * t.pitch), t.columns};
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_ROWS_H
