/* Packed factors of 16-bit elements, those of two inner points beside each other, so that one instruction multiplies and adds two. For the
 * files compiled once for each instruction-set variant.
 */
#ifndef OPC_CONTRACTION_PAIRS_H
#define OPC_CONTRACTION_PAIRS_H

#include "opc/contraction/pack.h"
#include "opc/contraction/vectors.h"

namespace opc {
inline namespace OPC_VARIANT {

typedef vector_of<int32_t>::type pairs;

/* Brings the elements of two lines of a panel, which are whole or 0, beside each other; where the last line is alone, zeros. */
static void pair_lines(int16_t *lines, int64_t width, int64_t depth) {
  constexpr int64_t widest = 3 * vector_bytes / sizeof(int32_t);
  int16_t both[2 * widest];
  for (int64_t k = 0; k < depth; k += 2, lines += 2 * width) {
    const bool alone = k + 1 == depth;
    OPC_SIMD
    for (int64_t i = 0; i < width; ++i) {
      both[2 * i] = lines[i];
      both[2 * i + 1] = alone ? int16_t(0) : lines[width + i];
    }
    memcpy(lines, both, static_cast<size_t>(2 * width) * sizeof(int16_t));
  }
}

/* Whether the points of a table follow each other. */
static inline bool lie_together(const int64_t *points, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (points[i] - points[0] != i) return false;
  }
  return true;
}

/* Brings the elements of two lines, or of one and zeros, beside each other. */
OPC_INLINE void join_halves(int16_t *to, const int16_t *first, const int16_t *second, int64_t count) {
  typedef int16_t halves __attribute__((vector_size(32), aligned(2), may_alias));
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const halves a = *reinterpret_cast<const halves *>(first + i);
    const halves b = second != nullptr ? *reinterpret_cast<const halves *>(second + i) : halves{};
    halves *const both = reinterpret_cast<halves *>(to + 2 * i);
    both[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    both[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  for (; i < count; ++i) {
    to[2 * i] = first[i];
    to[2 * i + 1] = second != nullptr ? second[i] : int16_t(0);
  }
}

/* Packs a panel of elements of 16 bits whose lines of points, or of inner points, lie together: they are paired as they are read, where the
 * latter lie so they are pairs already. Returns false of other panels. */
static inline bool pack_paired(const packing &p, const packed_panel<int16_t> &panel, bool inner_together) {
  const int16_t *const from = reinterpret_cast<const int16_t *>(p.from);
  const int64_t *const point = p.point + panel.first;
  if (p.guards > 0 || (!inner_together && !lie_together(point, panel.count))) return false;
  const int64_t depth = (p.depth + 1) / 2;
  for (int64_t k = 0; k < depth && panel.count < panel.width; ++k) {
    memset(panel.to + 2 * (k * panel.width + panel.count), 0, static_cast<size_t>(panel.width - panel.count) * sizeof(int32_t));
  }
  if (!inner_together) {
    for (int64_t k = 0; k < p.depth; k += 2) {
      const int16_t *const second = k + 1 < p.depth ? from + point[0] + p.inner[k + 1] : nullptr;
      join_halves(panel.to + k * panel.width, from + point[0] + p.inner[k], second, panel.count);
    }
    return true;
  }
  int32_t *const to = reinterpret_cast<int32_t *>(panel.to);
  for (int64_t i = 0; i < panel.count; i += 4) {
    const int32_t *rows[4], *next[4];
    const int64_t count = panel.count - i < 4 ? panel.count - i : 4;
    for (int64_t r = 0; r < count; ++r) {
      rows[r] = reinterpret_cast<const int32_t *>(from + point[i + r] + p.inner[0]);
      const bool more = panel.first + i + r + 4 < p.count;
      next[r] = reinterpret_cast<const int32_t *>(from + point[more ? i + r + 4 : i + r] + p.inner[0]);
    }
    if (count == 4) transpose_four<int32_t, alignof(int16_t)>(to + i, panel.width, rows, next, p.depth / 2);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < p.depth / 2 && count < 4; ++k) memcpy(to + k * panel.width + i + r, rows[r] + k, sizeof(int32_t));
      if (p.depth % 2 == 0) continue;
      panel.to[2 * (p.depth / 2 * panel.width + i + r)] = from[point[i + r] + p.inner[0] + p.depth - 1];
      panel.to[2 * (p.depth / 2 * panel.width + i + r) + 1] = 0;
    }
  }
  return true;
}

/* Packs panels of pairs, and calls done(panel) for each. */
template <typename Stored, typename F>
static void pack_pairs(const packing &p, F done) {
  const bool together = sizeof(Stored) == sizeof(int16_t) && lie_together(p.inner, p.depth);
  pack_panels<Stored, int16_t, sizeof(int32_t)>(p, [&](const packed_panel<int16_t> &panel, auto pack) {
    if (sizeof(Stored) != sizeof(int16_t) || !pack_paired(p, panel, together)) {
      pack();
      pair_lines(panel.to, panel.width, p.depth);
    }
    done(panel);
  });
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_PAIRS_H
