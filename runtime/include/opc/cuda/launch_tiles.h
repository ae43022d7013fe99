/* Tiles as kernels get them: points and terms of sums of products, how factors are brought, and which shape of tiles there is. */
#ifndef OPC_CUDA_LAUNCH_TILES_H
#define OPC_CUDA_LAUNCH_TILES_H

#include <initializer_list>

#include "opc/cuda/launch.h"
#include "opc/cuda/move.h"
#include "opc/cuda/multiply.h"
#include "opc/cuda/nest.h"

namespace opc {

/* Describes sums of products: points down and across, for each of some batches. */
template <int32_t Operands>
static inline void set_tiles(device_nest<Operands> &d, int64_t batches, int64_t down, int64_t across, int64_t terms) {
  d.down = down;
  d.across = across;
  d.terms = d.part_terms = terms;
  d.work = batches; /* until there are tiles */
  d.left = d.right = {0, 0, by_value, 0};
}

/* Describes the copy of a tensor whose axis of so many points goes behind those across, for each of some batches. */
template <int32_t Operands>
static inline void set_move(device_nest<Operands> &d, int64_t batches, int64_t across, int64_t axis) {
  d.down = axis;
  d.across = across;
  const int64_t across_tiles = (across + moved_points - 1) / moved_points, axis_tiles = (axis + moved_points - 1) / moved_points;
  d.work = batches * across_tiles * axis_tiles;
}

/* Takes an entry of the target as groups of so many points. */
template <int32_t Operands>
static inline void set_groups(device_nest<Operands> &d, int32_t entry, int64_t points) {
  d.group_points = points;
  d.groups = points > 0 ? d.size[entry] / points : 0;
}

/* Tells whether four points that are neighbours along these entries of the target, of which one may be split in groups, may be stored at
 * once. */
template <int32_t Operands>
static inline void set_stores(device_nest<Operands> &d, const void *data, dtype type, std::initializer_list<int32_t> across, int32_t split = -1) {
  int64_t together = 1;
  bool on_end = true;
  for (const int32_t *entry = across.end(); entry-- != across.begin();) {
    const int64_t size = *entry == split ? d.group_points : d.size[*entry];
    on_end = on_end && (size == 1 || d.after[*entry] == together);
    if (on_end) together *= size;
  }
  d.stores_packs = together % 4 == 0 && reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(4 * itemsize(type)) == 0;
}

/* Axes that elements lie along in steps, as if they were one; they are added from the outermost on. */
struct axes_in_steps {
  int64_t count = 1, step = 0;
  bool are_one = true;
  uint64_t axes = 0; /* of the operand */

  void add(int64_t size, int64_t stride) {
    if (size == 1) return;
    are_one = are_one && (count == 1 || step == stride * size);
    count *= size;
    step = stride;
  }
  /* An axis of an operand. */
  void add(int64_t size, const nest_operand &o, int32_t axis) {
    axes |= uint64_t(1) << axis;
    add(size, o.stride[axis]);
  }
  /* Of a group of which some axes are summed, those, or the others; the target has the axes `kept`, and the operand is broadcast along
   * what it lacks. */
  void add(const nest_operand &o, int32_t axis, const extents &own, const extents &all, const extents &kept, bool summed) {
    for (int32_t a = 0; a < all.rank; ++a) {
      if (is_broadcast(all, kept, a) != summed) continue;
      if (is_broadcast(all, own, a)) {
        add(all.size[a], 0);
      } else {
        add(all.size[a], o, axis + a - (all.rank - own.rank));
      }
    }
  }
  /* A group: the operand has it from `axis` on, may lack axes on the left, and is broadcast along others. */
  void add(const nest_operand &o, int32_t axis, const extents &own, const extents &all) {
    for (int32_t a = 0; a < all.rank; ++a) {
      const int32_t at = a - (all.rank - own.rank);
      if (is_broadcast(all, own, a)) {
        add(all.size[a], 0);
      } else {
        add(all.size[a], o, axis + at);
      }
    }
  }
};

/* Whether an operand begins at a multiple of 16 bytes, at whatever points along other axes than `some`. */
static inline bool is_aligned(const nest_operand &o, uint64_t some, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(o.data) % 16 != 0) return false;
  for (int32_t a = 0; a < o.ndim; ++a) {
    if ((some >> a & 1) == 0 && o.shape[a] > 1 && o.stride[a] * bytes % 16 != 0) return false;
  }
  return true;
}

/* How a factor is brought whose elements lie in steps. */
template <typename Along>
static inline void set_steps(factor_steps &to, const nest_operand &o, const axes_in_steps &points, const axes_in_steps &terms,
                             dtype type) {
  if (o.data == nullptr || !points.are_one || !terms.are_one) return;
  to = {points.step, terms.step, in_steps, 0};
  const bool by_terms = std::is_same<Along, along_terms>::value;
  const axes_in_steps &along = by_terms ? terms : points, &other = by_terms ? points : terms;
  const int64_t bytes = itemsize(type);
  const bool together = (along.step == 1 || along.count == 1) && along.count * bytes % 16 == 0;
  if (together && (other.count == 1 || other.step * bytes % 16 == 0) && is_aligned(o, points.axes | terms.axes, bytes)) {
    to.how = packed;
  }
}

/* How a factor is brought whose elements are found by their places, each of so many bytes, where no coordinate is
 * greater than `most`: by value where 32 bits are not enough. Where `count` neighbours on end lie along an axis,
 * -1 where there is none, they may be brought several at once: offsets have 32 bits then. */
static inline void set_places(factor_steps &to, divisor &on_end, const nest_operand &o, int32_t axis, int64_t count, dtype type,
                              int32_t place_bytes, double most) {
  const bool near = most <= INT32_MAX;
  to = {0, 0, near ? in_steps : by_value, near ? place_bytes : 0};
  on_end = divisor_of(count);
  const int64_t bytes = itemsize(type);
  if (!near || axis < 0 || o.stride[axis] != 1 || count < 1 || count > INT32_MAX || count * bytes % 16 != 0) return;
  if (o.data == nullptr || reinterpret_cast<uintptr_t>(o.data) % 16 != 0) return;
  int64_t span = 0;
  for (int32_t a = 0; a < o.ndim; ++a) {
    /* What a point and what a term adds are multiples of 16 bytes also along an axis of one element. */
    if (a != axis && o.stride[a] * bytes % 16 != 0) return;
    span += (o.shape[a] - 1) * (o.stride[a] < 0 ? -o.stride[a] : o.stride[a]);
  }
  if (span / (bytes == 2 ? 8 : 1) < INT32_MAX) to.how = packed;
}

/* The most shared memory that a block may ask for. */
static inline int64_t most_shared() {
#if defined(__CUDACC__)
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 48 * 1024;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return 48 * 1024;
  return bytes;
#else
  return 227 * 1024;
#endif
}

/* Which tiles sums of products have, from elements of some type: the greatest of which there are enough for a GPU. In what order terms are
 * added depends on sizes alone: of few tiles with many terms, several blocks add up a part each. */
struct tile_launch {
  enum : int64_t { many_tiles = 100, enough_tiles = 132, terms_a_part = 512 };
  int64_t blocks = 0;
  int64_t bytes = 0; /* of shared memory, for each block */
  int64_t size = 0;
  void *kept = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands>
  tile_launch(device_nest<Operands> &d, const opc_cuda_context *context, dtype type, tile_kind most = large_tiles) : lent(context) {
    const bool halves = type == dtype_float16 || type == dtype_bfloat16;
    const int64_t batches = d.work;
    d.tiles = small_tiles;
    const bool may_grow = most > small_tiles && type != dtype_float64 && d.left.how != by_value && d.right.how != by_value;
    const int64_t medium = tiles_of(d, batches, medium_tiles);
    const int64_t sum_bytes = type == dtype_float64 ? 8 : 4;
    if (may_grow && (medium >= many_tiles || medium * parts_of(d, medium, sum_bytes) >= many_tiles / 2) &&
        bytes_of(medium_tiles, type) + tables_of(d, medium_tiles, type) <= most_shared()) {
      d.tiles = medium_tiles;
    }
    /* Of few tiles with many terms the greatest too, where they are not much larger than the points. */
    const int64_t large = tiles_of(d, batches, large_tiles);
    const bool fits = large >= many_tiles || (large * 8 <= medium * 5 && large * parts_of(d, large, sum_bytes) >= many_tiles);
    if (may_grow && most == large_tiles && halves && d.left.how == packed && d.right.how == packed && fits &&
        bytes_of(large_tiles, type) + tables_of(d, large_tiles, type) <= most_shared()) {
      d.tiles = large_tiles;
    }
    d.work = tiles_of(d, batches, d.tiles);
    bytes = bytes_of(d.tiles, type);
    if (bytes > 0) bytes += tables_of(d, d.tiles, type);
    if (d.work > 0) take_parts(d, sum_bytes);
    blocks = blocks_for(d.work, 1);
  }
  tile_launch(const tile_launch &) = delete;
  tile_launch &operator=(const tile_launch &) = delete;
  ~tile_launch() {
    if (kept != nullptr && lent->release != nullptr) lent->release(lent->allocator, kept, size, lent->stream);
  }
  bool lacks_memory() const { return size > 0 && kept == nullptr; }

  /* Goes on to joining parts; false where all is done. */
  template <int32_t Operands>
  bool next_step(device_nest<Operands> &d, int32_t step) {
    if (step == 0) return true;
    if (step == 2 || d.parts == 1) return false;
    d.of = all_parts;
    blocks = blocks_for(d.points, threads_a_block);
    bytes = 0;
    return true;
  }

  /* Of how many parts the sums of so many tiles are: as many as a GPU has something to do with. */
  template <int32_t Operands>
  static int64_t parts_of(const device_nest<Operands> &d, int64_t tiles, int64_t sum_bytes) {
    if (tiles == 0 || d.points == 0) return 1;
    /* A call that measures may lack so much. */
    const int64_t most = OPC_CUDA_PARTS_BYTES / (d.points * sum_bytes);
    const int64_t wanted = enough_tiles / tiles, there = d.terms / terms_a_part;
    return greater(lesser(lesser(wanted, most), there), 1);
  }
  template <int32_t Operands>
  void take_parts(device_nest<Operands> &d, int64_t sum_bytes) {
    const int64_t so_many = parts_of(d, d.work, sum_bytes);
    if (so_many < 2) return;
    /* Whole stages of terms, whichever tiles there are. */
    d.part_terms = ((d.terms + so_many - 1) / so_many + 31) / 32 * 32;
    d.parts = (d.terms + d.part_terms - 1) / d.part_terms;
    d.work *= d.parts;
    size = d.parts * d.points * sum_bytes;
    kept = device_memory(lent, size);
    d.kept = static_cast<char *>(kept);
  }

  template <int32_t Operands>
  static int64_t tiles_of(const device_nest<Operands> &d, int64_t batches, int32_t kind) {
    const tile_shape shape = shape_of_tiles(kind);
    return batches * ((d.down + shape.down - 1) / shape.down) * ((d.across + shape.across - 1) / shape.across);
  }
  /* The bytes of tables of places. */
  template <int32_t Operands>
  static int64_t tables_of(const device_nest<Operands> &d, int32_t kind, dtype type) {
    const tile_shape shape = shape_of_tiles(kind);
    const bool halves = type == dtype_float16 || type == dtype_bfloat16;
    const int64_t steps = halves ? shape.half_stages + 1 : shape.float_stages + 1, terms = halves ? shape.halves : shape.floats;
    const auto of = [&](const factor_steps &side, int64_t points) {
      const int64_t places = place_table_head + (points + place_table_terms) * side.place_bytes;
      return side.how == computed ? steps * terms * int64_t(sizeof(digits)) : side.place_bytes > 0 ? places : int64_t(0);
    };
    return of(d.left, shape.down) + of(d.right, shape.across);
  }
  static int64_t bytes_of(int32_t kind, dtype type) {
    const tile_shape shape = shape_of_tiles(kind);
    if (type == dtype_float16 || type == dtype_bfloat16) return (shape.down + shape.across) * shape.halves * 2 * shape.half_stages;
    return type == dtype_float64 ? 0 : (shape.down + shape.across) * shape.floats * 4 * shape.float_stages;
  }
};

}  // namespace opc
#endif  // OPC_CUDA_LAUNCH_TILES_H
