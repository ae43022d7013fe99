/* Moving blocks of rows between tensors of any dtype and stride and the contiguous rows of compute values that tile functions see. */
#ifndef OPC_ROWS_ROWS_H
#define OPC_ROWS_ROWS_H

#include <string.h>

#include "opc/core/minifloat.h"
#include "opc/core/stage.h"
#include "opc/core/transpose.h"

namespace opc {

/* Copies rows x columns elements that lie along rows in the source, and along columns in the target: in tiles of a cache line by as many,
 * whose squares are turned over in registers. */
template <typename T>
static void turn_elements(T *to, int64_t to_row, const T *from, int64_t from_column, int64_t rows, int64_t columns) {
  constexpr int64_t line = 64 / int64_t(sizeof(T)), width = sizeof(T) < 4 ? 1 : 16 / int64_t(sizeof(T));
  for (int64_t row = 0; row < rows; row += line) {
    for (int64_t column = 0; column < columns; column += line) {
      const int64_t last_row = rows - row < line ? rows : row + line, last_column = columns - column < line ? columns : column + line;
      int64_t r = row;
      if constexpr (width > 1) {
        typedef typename moved_as<sizeof(T)>::type element;
        for (; r + width <= last_row && last_column - column == line; r += width) {
          for (int64_t c = column; c < last_column; c += width) {
            typename lanes_of<element, width>::type square[width];
#pragma GCC unroll 4
            for (int64_t i = 0; i < width; ++i) memcpy(&square[i], from + (c + i) * from_column + r, sizeof square[i]);
            transpose<element, width>(square);
#pragma GCC unroll 4
            for (int64_t i = 0; i < width; ++i) memcpy(to + (r + i) * to_row + c, &square[i], sizeof square[i]);
          }
        }
      }
      for (; r < last_row; ++r) {
        for (int64_t c = column; c < last_column; ++c) to[r * to_row + c] = from[c * from_column + r];
      }
    }
  }
}

/* Copies rows x columns elements between strided memories. The loop over whatever is contiguous goes innermost. */
template <typename T>
static void copy_elements(void *target, int64_t target_row, int64_t target_column, const void *source, int64_t source_row,
                          int64_t source_column, int64_t rows, int64_t columns) {
  T *to = static_cast<T *>(target);
  const T *from = static_cast<const T *>(source);
  if (target_column == 1 && source_column == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      memcpy(to + r * target_row, from + r * source_row, static_cast<size_t>(columns) * sizeof(T));
    }
  } else if (source_column == 0 && target_column == 1 && columns > 0) {
    for (int64_t r = 0; r < rows; ++r) {
      const T value = from[r * source_row];
      for (int64_t c = 0; c < columns; ++c) to[r * target_row + c] = value;
    }
  } else if (source_row == 1 && target_column == 1) {
    turn_elements(to, target_row, from, source_column, rows, columns);
  } else if (source_column == 1 && target_row == 1) {
    turn_elements(to, target_column, from, source_row, columns, rows);
  } else if (rows > 1 && (source_row == 1 || target_row == 1)) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[r * target_row + c * target_column] = from[r * source_row + c * source_column];
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) to[r * target_row + c * target_column] = from[r * source_row + c * source_column];
    }
  }
}

/* A block of elements in memory. */
struct block {
  int64_t rows, columns, row_stride, column_stride;
};

/* The same of elements of `size` bytes. */
static void copy_sized(void *to, int64_t to_row, int64_t to_column, const void *from, int64_t from_row, int64_t from_column,
                       int64_t rows, int64_t columns, int64_t size) {
  const auto copy = size == 1   ? copy_elements<uint8_t>
                    : size == 2 ? copy_elements<uint16_t>
                    : size == 4 ? copy_elements<uint32_t>
                                : copy_elements<uint64_t>;
  copy(to, to_row, to_column, from, from_row, from_column, rows, columns);
}

static void copy_in(void *to, int64_t pitch, const char *from, const block &b, int64_t size) {
  copy_sized(to, pitch, 1, from, b.row_stride, b.column_stride, b.rows, b.columns, size);
}

static void copy_out(char *to, const block &b, const void *from, int64_t pitch, int64_t size) {
  copy_sized(to, b.row_stride, b.column_stride, from, pitch, 1, b.rows, b.columns, size);
}

/* Bytes of elements that are gathered before they are converted. */
enum : int64_t { gathered_bytes = 1024 };

/* Calls f(first row, first column, part, buffer) for parts of a block whose elements of `item` bytes fit a buffer. */
template <typename F>
static inline void for_gathered_parts(const block &b, int64_t item, F f) {
  char buffer[gathered_bytes];
  const int64_t room = gathered_bytes / item;
  const int64_t width = b.columns < room ? b.columns : room;
  const int64_t height = width > 0 && room / width > 0 ? room / width : 1;
  for (int64_t r = 0; r < b.rows; r += height) {
    for (int64_t c = 0; c < b.columns; c += width) {
      f(r, c, block{b.rows - r < height ? b.rows - r : height, b.columns - c < width ? b.columns - c : width, b.row_stride, b.column_stride},
        buffer);
    }
  }
}

/* Loads a block of stored elements as rows of compute values `pitch` apart, or as they are where the tile function `converts`. */
static void load_block(const row_functions &f, void *out, int64_t pitch, dtype stored, const char *in, const block &b,
                       bool converts = false) {
  if (b.column_stride == 0 && b.columns > 1) {
    const int64_t size = itemsize(converts ? stored : compute_dtype(stored));
    for (int64_t r = 0; r < b.rows; ++r) {
      char *to = static_cast<char *>(out) + r * pitch * size;
      load_block(f, to, 1, stored, in + r * b.row_stride * itemsize(stored), {1, 1, 0, 1}, converts);
      f.fill(to, to, size, b.columns);
    }
    return;
  }
  const int64_t item = itemsize(stored);
  if (converts || !is_minifloat(stored)) return copy_in(out, pitch, in, b, item);
  const auto widen = f.widen[stored];
  float *to = static_cast<float *>(out);
  if (b.column_stride == 1) {
    for (int64_t r = 0; r < b.rows; ++r) widen(to + r * pitch, in + r * b.row_stride * item, b.columns);
    return;
  }
  for_gathered_parts(b, item, [&](int64_t r, int64_t c, const block &part, char *buffer) {
    copy_in(buffer, part.columns, in + (r * b.row_stride + c * b.column_stride) * item, part, item);
    for (int64_t i = 0; i < part.rows; ++i) widen(to + (r + i) * pitch + c, buffer + i * part.columns * item, part.columns);
  });
}

/* Stores such rows as a block of stored elements; minifloats that lie together `past` the caches where that is asked for. */
static void store_block(const row_functions &f, char *out, dtype stored, const block &b, const void *in, int64_t pitch, bool past = false,
                        bool converts = false) {
  const int64_t item = itemsize(stored);
  if (converts || !is_minifloat(stored)) return copy_out(out, b, in, pitch, item);
  const auto narrow = f.narrow[stored];
  const float *from = static_cast<const float *>(in);
  if (b.column_stride == 1) {
    for (int64_t r = 0; r < b.rows; ++r) narrow(out + r * b.row_stride * item, from + r * pitch, b.columns, past);
    return;
  }
  for_gathered_parts(b, item, [&](int64_t r, int64_t c, const block &part, char *buffer) {
    for (int64_t i = 0; i < part.rows; ++i) narrow(buffer + i * part.columns * item, from + (r + i) * pitch + c, part.columns, false);
    copy_out(out + (r * b.row_stride + c * b.column_stride) * item, part, buffer, part.columns, item);
  });
}

}  // namespace opc
#endif  // OPC_ROWS_ROWS_H
