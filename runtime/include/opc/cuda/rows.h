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
  int32_t general; /* which instance of a kernel: 0 is that for a plain stage */
  int64_t size[max_axes];
  divisor by_size[max_axes];
  device_operand operands[Operands];
};

/* A stage whose operands are all there is to a plain loop: one axis of rows and one of columns, along which all that varies lies together,
 * in packs to the end; a row that is not of a single point is one chunk. Kernels have an instance for such stages. */
template <int32_t Operands>
struct plain_tile : device_tile<Operands> {};
template <typename Tile>
inline constexpr bool is_plain = false;
template <int32_t Operands>
inline constexpr bool is_plain<plain_tile<Operands>> = true;
template <bool plain, int32_t Operands>
OPC_DEVICE const auto &tile_as(const device_tile<Operands> &t) {
  if constexpr (plain) {
    return static_cast<const plain_tile<Operands> &>(t);
  } else {
    return t;
  }
}

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
OPC_DEVICE offsets<Operands> row_offsets(const plain_tile<Operands> &t, int64_t row) {
  if (t.outer > 1) return offsets_along(t, 0, t.outer, row);
  offsets<Operands> found;
  OPC_UNROLLED
  for (int k = 0; k < Operands; ++k) found.at[k] = row * t.operands[k].stride[0];
  return found;
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
template <typename Stored, int32_t Operands, typename Offsets>
OPC_DEVICE device_row<Stored> device_row_of(const device_tile<Operands> &t, int32_t operand, const Offsets &starts) {
  return {row_start<Stored>(t, operand, starts), t.rank > t.outer && t.operands[operand].stride[t.rank - 1] != 0};
}

/* One whose elements lie together. */
template <typename Stored>
struct plain_row {
  place_of<Stored> data;
  OPC_DEVICE_MEMBER element<Stored> operator[](int64_t offset) const { return {data + offset}; }
};
template <typename Stored, int32_t Operands, typename Offsets>
OPC_DEVICE plain_row<Stored> device_row_of(const plain_tile<Operands> &t, int32_t operand, const Offsets &starts) {
  place_of<Stored> const first = elements_of<Stored>(t.operands[operand]);
  return {first == nullptr ? first : first + starts.at[operand]};
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

template <typename Row>
inline constexpr bool has_varies = false;
template <typename Stored>
inline constexpr bool has_varies<device_row<Stored>> = true;
template <typename Row>
struct row_elements;
template <typename Stored>
struct row_elements<device_row<Stored>> {
  typedef std::remove_const_t<Stored> type;
};
template <typename Stored>
struct row_elements<plain_row<Stored>> {
  typedef std::remove_const_t<Stored> type;
};
/* What the elements of a row are stored as. */
template <typename Row>
using stored_of = typename row_elements<Row>::type;

/* A pack as it comes from memory. It is taken apart when all that a thread reads is on its way: elements of 16 bits would have to be
 * waited for, since each has a register of its own. */
template <int bytes>
struct alignas(bytes) raw_words {
  uint32_t words[bytes / 4];
};
template <typename Pack, bool raw = sizeof(Pack) % 4 == 0>
struct raw_of {
  typedef Pack type;
};
template <typename Pack>
struct raw_of<Pack, true> {
  typedef raw_words<static_cast<int>(sizeof(Pack))> type;
};
template <typename Any, int count>
struct raw_of<pack<Any, count>, true> {
  typedef std::conditional_t<is_any<Any>, pack<Any, count>, raw_words<static_cast<int>(sizeof(pack<Any, count>))>> type;
};
template <typename Row, int count>
using raw_pack = typename raw_of<pack<stored_of<Row>, count>>::type;

/* The neighbours from an offset on; of an operand that is the same for them the first alone, and those of an absent one zeros. */
template <int count, typename Row>
OPC_DEVICE raw_pack<Row, count> load_raw(const Row &row, int64_t offset) {
  typedef raw_pack<Row, count> raw;
  typedef stored_of<Row> stored;
  raw found = {};
  if (row.data == nullptr) return found;
  if constexpr (has_varies<Row>) {
    if (!row.varies) {
      if constexpr (is_any<stored>) {
        found.elements[0] = load(row.data + offset);
      } else {
        memcpy(&found, row.data + offset, sizeof(stored));
      }
      return found;
    }
  }
  if constexpr (is_any<stored>) {
    found = load_together<count, const stored>(row.data + offset);
  } else {
    found = *reinterpret_cast<const raw *>(row.data + offset);
  }
  return found;
}

/* The elements of such neighbours. */
template <int count, typename Row>
OPC_DEVICE auto spread(const Row &row, const raw_pack<Row, count> &raw) {
  pack<stored_of<Row>, count> found;
  memcpy(&found, &raw, sizeof found);
  if constexpr (has_varies<Row>) {
    OPC_UNROLLED
    for (int k = 1; k < count; ++k) {
      if (!row.varies) found.elements[k] = found.elements[0];
    }
  }
  return found;
}
template <int count, typename Row>
OPC_DEVICE auto load_pack(const Row &row, int64_t offset) {
  return spread<count>(row, load_raw<count>(row, offset));
}
template <int count, typename Row>
OPC_DEVICE auto new_pack(const Row &) {
  return pack<stored_of<Row>, count>{};
}
template <int count, typename Row, typename Pack>
OPC_DEVICE void store_pack(const Row &row, int64_t offset, const Pack &values) {
  if (row.data != nullptr) store_together<count, stored_of<Row>>(row.data + offset, values);
}

/* Where the neighbours from a column on lie in an operand. Along the last axis they lie together, or are the same; of rows of several axes,
 * columns are numbers of 32 bits. */
template <int32_t Operands, typename Stored, typename Column>
OPC_DEVICE Column pack_offset(const plain_tile<Operands> &, int32_t, const plain_row<Stored> &, Column column) {
  return column;
}
template <int32_t Operands, typename Stored, typename Column>
OPC_DEVICE int64_t pack_offset(const device_tile<Operands> &t, int32_t operand, const device_row<Stored> &row, Column column) {
  if (t.rank - t.outer <= 1) return row.varies ? column : 0;
  int64_t found = 0;
  uint32_t i = static_cast<uint32_t>(column);
  OPC_ROLLED
  for (int32_t a = t.rank - 1; a > t.outer; --a) {
    const uint32_t left = quotient_by(t.by_size[a], i);
    found += static_cast<int64_t>(i - left * t.by_size[a].value) * t.operands[operand].stride[a];
    i = left;
  }
  return found + static_cast<int64_t>(i) * t.operands[operand].stride[t.outer];
}

/* Chunks of rows: each thread of a team has `pieces` packs of one, a pack of each of its parts, so that neighbours are read side by side. */
template <bool plain, int pieces>
OPC_HOST_DEVICE constexpr int count_pieces() {
  return plain ? pieces : 1;
}
template <int count, int pieces, typename Tile>
OPC_DEVICE int64_t columns_of_chunk(const Tile &t) {
  return static_cast<int64_t>(t.team) * (count * pieces);
}
/* How far on each chunk is from the one before, and where they end; where there is one, it begins at 0. */
template <int count, int pieces, typename Tile>
OPC_DEVICE int64_t step_of_chunks(const Tile &t) {
  if constexpr (is_plain<Tile>) {
    return 1;
  } else {
    return columns_of_chunk<count, pieces>(t);
  }
}
template <typename Tile>
OPC_DEVICE int64_t end_of_chunks(const Tile &t) {
  if constexpr (is_plain<Tile>) {
    return 1;
  } else {
    return t.packed;
  }
}
template <int count, int pieces, typename Tile>
OPC_DEVICE bool is_one_chunk(const Tile &t) {
  return is_plain<Tile> || t.packed <= columns_of_chunk<count, pieces>(t);
}
/* Whether there may be columns behind those in packs. */
template <typename Tile>
OPC_DEVICE constexpr bool has_rest(const Tile &) {
  return !is_plain<Tile>;
}
template <int count, typename Column, typename Tile>
OPC_DEVICE Column column_of_piece(const Tile &t, int64_t base, int64_t piece) {
  return static_cast<Column>(base) + (static_cast<int32_t>(piece) * t.team + thread_of_team(t)) * count;
}
template <typename Tile, typename Column>
OPC_DEVICE bool has_pack(const Tile &t, Column first) {
  return first < static_cast<Column>(t.packed);
}

/* The packs that a thread has of a chunk. */
template <typename Pack, int pieces>
struct row_pieces {
  Pack at[pieces];
  OPC_DEVICE_MEMBER Pack &operator[](int64_t i) { return at[i]; }
  OPC_DEVICE_MEMBER const Pack &operator[](int64_t i) const { return at[i]; }
};
template <int count, int pieces, typename Row>
OPC_DEVICE row_pieces<raw_pack<Row, count>, pieces> new_pieces(const Row &) {
  return {};
}
template <typename T, int count, int pieces>
OPC_DEVICE row_pieces<computed_pack<T, count>, pieces> new_values() {
  return {};
}
template <int count, int pieces, typename Column, typename Tile, typename Row, typename Pieces>
OPC_DEVICE void load_pieces(const Tile &t, int64_t base, const Row &row, int32_t operand, Pieces &found) {
  OPC_UNROLLED
  for (int32_t piece = 0; piece < pieces; ++piece) {
    const Column first = column_of_piece<count, Column>(t, base, piece);
    if (has_pack(t, first)) found.at[piece] = load_raw<count>(row, pack_offset(t, operand, row, first));
  }
}
template <int count, int pieces, typename Column, typename Tile, typename Row>
OPC_DEVICE auto read_pieces(const Tile &t, int64_t base, const Row &row, int32_t operand) {
  row_pieces<raw_pack<Row, count>, pieces> found = {};
  load_pieces<count, pieces, Column>(t, base, row, operand, found);
  return found;
}

/* Of a row that is one chunk a loop has brought all that those after it read. */
template <int count, int pieces, typename Column, typename Tile, typename Row, typename Pieces>
OPC_DEVICE void reload_pieces(const Tile &t, int64_t base, const Row &row, int32_t operand, Pieces &found) {
  if (!is_one_chunk<count, pieces>(t)) load_pieces<count, pieces, Column>(t, base, row, operand, found);
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

/* The same for what loops compute for those after them. */
template <int count, int pieces, typename Column, typename Tile, typename T, typename Pieces>
OPC_DEVICE void recall_pieces(const Tile &t, int64_t base, const row_buffer<T> &row, Pieces &found) {
  if (is_one_chunk<count, pieces>(t)) return;
  OPC_UNROLLED
  for (int32_t piece = 0; piece < pieces; ++piece) {
    const Column first = column_of_piece<count, Column>(t, base, piece);
    OPC_UNROLLED
    for (int lane = 0; lane < count; ++lane) {
      if (has_pack(t, first)) found.at[piece].elements[lane] = row[first + lane];
    }
  }
}
template <int count, int pieces, typename Tile, typename T>
OPC_DEVICE void keep_pack(const Tile &t, const row_buffer<T> &row, int64_t first, const computed_pack<T, count> &values) {
  if (is_one_chunk<count, pieces>(t)) return;
  OPC_UNROLLED
  for (int lane = 0; lane < count; ++lane) row[first + lane] = values.elements[lane];
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_ROWS_H
