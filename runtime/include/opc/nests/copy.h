/* Rows of bytes that are copied or zeroed, where a nest asks for it past the caches: for the files compiled once for each
 * instruction-set variant.
 *
 * The C library's copy is made for any two places. Here rows of some lines lie anywhere, and it is known which one comes next: it is on
 * its way while the one before is stored.
 */
#ifndef OPC_NESTS_COPY_H
#define OPC_NESTS_COPY_H

#include "opc/nests/rows.h"
#include "opc/rows/stores.h"

namespace opc {
inline namespace OPC_VARIANT {

typedef long long quarter_line __attribute__((vector_size(16)));
typedef long long half_line __attribute__((vector_size(32)));

/* Copies no fewer bytes than a P has and no more than two have, as its ends. */
template <typename P>
OPC_INLINE void copy_ends(char *to, const char *from, int64_t bytes) {
  P first, last;
  memcpy(&first, from, sizeof first);
  memcpy(&last, from + bytes - sizeof last, sizeof last);
  memcpy(to, &first, sizeof first);
  memcpy(to + bytes - sizeof last, &last, sizeof last);
}

/* Copies less than a line. */
OPC_INLINE void copy_part(char *to, const char *from, int64_t bytes) {
  if (bytes >= 32) {
    copy_ends<half_line>(to, from, bytes);
  } else if (bytes >= 16) {
    copy_ends<quarter_line>(to, from, bytes);
  } else if (bytes >= 8) {
    copy_ends<int64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_ends<int32_t>(to, from, bytes);
  } else if (bytes >= 2) {
    copy_ends<int16_t>(to, from, bytes);
  } else if (bytes == 1) {
    *to = *from;
  }
}

/* Copies lines until less than one is left, and asks for the bytes at `ahead`, line by line; returns how far it came. */
template <bool Streams>
OPC_INLINE int64_t copy_lines(char *to, const char *from, int64_t bytes, const char *ahead) {
  int64_t i = 0;
  for (; i + line_bytes <= bytes; i += line_bytes) {
    __builtin_prefetch(ahead + i);
#pragma GCC unroll 4
    for (int at = 0; at < int(line_bytes); at += vector_bytes) {
      raw_vector value;
      memcpy(&value, from + i + at, sizeof value);
      if constexpr (Streams) {
        store_nontemporal(to + i + at, value);
      } else {
        memcpy(to + i + at, &value, sizeof value);
      }
    }
  }
  return i;
}

/* Copies a row, whole lines with non-temporal stores where those are wanted, and prefetches the bytes at `ahead`. */
__attribute__((noinline)) static void copy_bytes(char *to, const char *from, int64_t bytes, const char *ahead, bool nontemporal) {
  int64_t done = 0;
  if (nontemporal) {
    done = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & (line_bytes - 1));
    if (done > bytes) done = bytes;
    copy_part(to, from, done);
    done += copy_lines<true>(to + done, from + done, bytes - done, ahead + done);
  } else {
    done = copy_lines<false>(to, from, bytes, ahead);
  }
  copy_part(to + done, from + done, bytes - done);
}

/* Copies some lines at most, which the C library does best; but compilers that know how few bytes there are won't call it. */
OPC_INLINE void copy_short(char *to, const char *from, int64_t bytes) {
  __asm__("" : "+r"(bytes));
  memcpy(to, from, static_cast<size_t>(bytes));
}

/* Zeroes a row, whole lines with non-temporal stores where those are wanted. */
__attribute__((noinline)) static void zero_bytes(char *to, int64_t bytes, bool nontemporal) {
  int64_t done = 0;
  if (nontemporal) {
    const raw_vector zero = {};
    done = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & (line_bytes - 1));
    if (done > bytes) done = bytes;
    memset(to, 0, static_cast<size_t>(done));
    for (; done + line_bytes <= bytes; done += line_bytes) {
      for (int at = 0; at < int(line_bytes); at += vector_bytes) store_nontemporal(to + done + at, zero);
    }
  }
  memset(to + done, 0, static_cast<size_t>(bytes - done));
}

/* Rows of operands that are copied to the target, stored in one type. Where these lie far each waits until some more are known, so that
 * it is on its way from memory meanwhile: one long row, or short ones that are no more bytes. */
class row_copies {
 public:
  OPC_INLINED explicit row_copies(const row_nest &n) : nest(n), size(itemsize(n.stored)), most(1) {
    if (n.far && n.piece * size <= known_bytes / 2) most = known_bytes / (n.piece * size + 1);
    if (most > room) most = room;
  }
  row_copies(const row_copies &) = delete;
  row_copies &operator=(const row_copies &) = delete;
  OPC_INLINED ~row_copies() {
    while (first < last) store(rows[first % room].from);
  }

  /* Copies `count` elements of an operand. */
  OPC_INLINED void copy(int32_t operand, int64_t from, int64_t to, int64_t count) {
    const char *const source = nest.operands[operand].data + from * size;
    char *const target = nest.target + to * size;
    const int64_t bytes = count * size;
    if (nest.far) {
      add(source, target, bytes);
    } else if (nest.nontemporal || bytes >= long_row) {
      copy_bytes(target, source, bytes, source, nest.nontemporal);
    } else {
      copy_short(target, source, bytes);
    }
  }

  /* Zeroes `count` elements of the target. */
  OPC_INLINED void zero(int64_t to, int64_t count) const { zero_bytes(nest.target + to * size, count * size, nest.nontemporal); }

 private:
  enum : int64_t { known_bytes = 2048, long_row = 512 };
  enum : uint64_t { room = 16 };
  struct row {
    const char *from;
    char *to;
    int64_t bytes;
  };

  /* Lets a row wait, and stores the one that has waited longest. */
  __attribute__((noinline)) void add(const char *from, char *to, int64_t bytes) {
    const bool full = last - first == most;
    const bool asks = full && (nest.nontemporal || bytes >= long_row); /* while that one is stored */
    if (!asks) {
      for (int64_t i = 0; i < bytes; i += line_bytes) __builtin_prefetch(from + i);
    }
    if (full) store(from);
    row &next = rows[last++ % room];
    next.from = from;
    next.to = to;
    next.bytes = bytes;
  }

  OPC_INLINED void store(const char *ahead) {
    const row &r = rows[first++ % room];
    if (nest.nontemporal || r.bytes >= long_row) {
      copy_bytes(r.to, r.from, r.bytes, ahead, nest.nontemporal);
    } else {
      copy_short(r.to, r.from, r.bytes);
    }
  }

  const row_nest &nest;
  const int64_t size;
  uint64_t most; /* rows that wait */
  uint64_t first = 0, last = 0;
  row rows[room];
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_COPY_H
