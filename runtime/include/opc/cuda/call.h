/* What a call does on the host: memory between kernels, descriptions of stages as kernels get them, and starting kernels. */
#ifndef OPC_CUDA_CALL_H
#define OPC_CUDA_CALL_H

#include "opc/core/call.h"
#include "opc/cuda/abi.h"
#include "opc/cuda/device_guard.h"
#include "opc/cuda/move.h"
#include "opc/cuda/multiply.h"
#include "opc/cuda/nest.h"
#include "opc/cuda/rows.h"
#include "opc/cuda/small_nest.h"

namespace opc {

/* A tensor in the device's memory between the kernels of a call. */
struct device_temporary : temporary {
  const opc_cuda_context *lent = nullptr;
  ~device_temporary() {
    if (data != nullptr && lent->release != nullptr) lent->release(lent->allocator, data, bytes, lent->stream);
    data = nullptr;
  }
};

static inline void *device_memory(const opc_cuda_context *lent, int64_t bytes) {
  if (lent == nullptr || lent->allocate == nullptr) return nullptr;
  return lent->allocate(lent->allocator, bytes < 256 ? 256 : bytes, lent->stream);
}

/* Gets uninitialised memory for a tensor with axes of these sizes and groups; false when there is none. */
template <typename... Sizes>
static inline bool allocate(const opc_cuda_context *lent, device_temporary &t, dtype type, const Sizes &...sizes) {
  describe(t, sizes...);
  t.bytes = itemsize(type);
  for (int32_t i = 0; i < t.ndim; ++i) t.bytes *= t.shape[i];
  t.lent = lent;
  t.data = device_memory(lent, t.bytes);
  return t.data != nullptr;
}

/* Fills memory with zeros, in the order of the stream. */
static inline void set_zero(const opc_cuda_context *lent, void *data, int64_t bytes) {
  if (lent->stream == OPC_CUDA_MEASURE) return;
#if defined(__CUDACC__)
  cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), static_cast<cudaStream_t>(lent->stream));
#else
  memset(data, 0, static_cast<size_t>(bytes));
#endif
}
static inline void set_zero(const opc_cuda_context *lent, const device_temporary &t) { set_zero(lent, t.data, t.bytes); }

/* The context that checks and messages take. */
static inline opc_context host_context(const opc_cuda_context *lent) {
  opc_context own = {nullptr, nullptr, nullptr, 0};
  if (lent != nullptr) {
    own.message = lent->message;
    own.message_size = lent->message_size;
  }
  return own;
}

static inline void *stream_of(const opc_cuda_context *lent) { return lent == nullptr ? nullptr : lent->stream; }

/* Whether what was started before could be. */
static inline int32_t started(const char *op, const opc_context *context) {
#if defined(__CUDACC__)
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess) return OPC_OK;
  fail(context, OPC_INVALID_ARGUMENT, "%s: the GPU can't run the kernel: %s", op, cudaGetErrorString(error));
  return OPC_DEVICE_FAILED;
#else
  static_cast<void>(op);
  static_cast<void>(context);
  return OPC_OK;
#endif
}

/* Threads of a block where so many have something to do: whole warps. */
static inline int64_t threads_for(int64_t count) {
  return count < threads_a_block ? (count + threads_a_warp - 1) / threads_a_warp * threads_a_warp : int64_t(threads_a_block);
}

static inline int64_t greater(int64_t a, int64_t b) { return a < b ? b : a; }
static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/* So many threads keep a large GPU busy. */
enum : int64_t { busy_threads = 1 << 18 };

static inline int64_t at_least_0(int64_t size) { return size < 0 ? 0 : size; }

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

/* How a factor is brought whose elements are found by their places, each of so many bytes. Where `count` neighbours on end lie along an axis,
 * -1 where there is none, they may be brought several at once. */
static inline void set_places(factor_steps &to, const nest_operand &o, int32_t axis, int64_t count, dtype type, int32_t place_bytes) {
  to = {0, 0, in_steps, place_bytes};
  const int64_t bytes = itemsize(type);
  const bool together = axis >= 0 && (o.stride[axis] == 1 || o.shape[axis] == 1) && count * bytes % 16 == 0;
  if (together && is_aligned(o, uint64_t(1) << axis, bytes)) to.how = packed;
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


/* Blocks for a thread a point, as many as there may be. */
static inline int64_t blocks_for(int64_t points, int64_t threads) {
  const int64_t blocks = (points + threads - 1) / threads;
  return blocks < most_blocks ? blocks : int64_t(most_blocks);
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
    if (may_grow && most == large_tiles && halves && d.left.how == packed && d.right.how == packed && tiles_of(d, batches, large_tiles) >= many_tiles &&
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

/* Adds a tensor of the call, whose dtype some kernels ask for. */
static inline void add_device_tensor(nest &n, const DLTensor *t) {
  add_tensor(n, t);
  n.operands[n.operand_count - 1].stored = static_cast<int16_t>(t == nullptr ? dtype_unknown : dtype_of(*t));
}

/* Tells whether an operand is dense. Kernels find offsets of an absent one too. */
static inline void set_dense(nest_operand &o) {
  int64_t together = 1;
  o.dense = 1;
  for (int32_t a = o.ndim - 1; a >= 0; --a) {
    if (o.shape[a] == 1) {
      o.stride[a] = together; /* which may be any */
    } else if (o.stride[a] != together) {
      o.dense = 0;
    }
    together *= o.shape[a];
  }
  if (o.data == nullptr) memset(o.stride, 0, sizeof o.stride);
}

/* A nest as kernels get it. */
template <int32_t Operands>
static inline void to_device(device_nest<Operands> &d, const nest &n, const opc_cuda_context *lent) {
  d.points = 1;
  d.status = lent == nullptr ? nullptr : lent->status;
  for (int32_t e = n.entries - 1; e >= 0; --e) {
    const int32_t end = e + 1 < n.entries ? n.start[e + 1] : n.rank;
    d.after[e] = d.points;
    d.size[e] = 1;
    for (int32_t a = n.start[e]; a < end; ++a) d.size[e] *= n.size[a];
    d.points *= d.size[e];
  }
  d.small = d.points <= INT32_MAX;
  d.entries = n.entries;
  for (int32_t e = 0; e < n.entries; ++e) {
    d.by_size[e] = divisor_of(d.size[e]);
    d.by_after[e] = divisor_of(d.after[e]);
  }
  for (int32_t k = 0; k < Operands; ++k) {
    d.operands[k] = n.operands[k];
    set_dense(d.operands[k]);
  }
  d.work = d.points;
  d.by_points = divisor_of(d.points);
  d.by_step = divisor_of(1);
  d.packed = 0;
  d.parts = 1;
  d.kept = nullptr;
  d.items = d.key_count = d.others = d.segment_items = d.segment_keys = 0;
  d.keys = nullptr;
  d.order = d.ranges = nullptr;
  d.halves = 1;
  d.team = 1;
  d.of = whole;
  d.level = 0;
}

/* Decides whether threads take several points at once that are neighbours along an entry of the target: so many as 16 bytes hold of each of
 * some operands, whose elements have `sizes` bytes. Returns how many points a thread takes. */
template <int32_t Operands, int32_t Along>
static inline int64_t set_packed(device_nest<Operands> &d, const nest &n, int32_t entry, const int32_t (&along)[Along],
                                 const int64_t (&sizes)[Along]) {
  int64_t widest = 1;
  for (int64_t size : sizes) widest = greater(widest, size);
  const int64_t lanes = 16 / widest;
  bool packs = d.size[entry] % lanes == 0;
  for (int32_t e = entry + 1; e < n.entries; ++e) packs = packs && d.size[e] == 1;
  for (int32_t k : along) {
    const nest_operand &o = d.operands[k];
    packs = packs && (o.data == nullptr || (o.dense != 0 && reinterpret_cast<uintptr_t>(o.data) % 16 == 0));
  }
  d.packed = packs ? d.points : 0;
  return packs ? lanes : 1;
}

/* Along what the reads of a nest lie together: its terms, or the points of the last entry of its target; or it is not known. */
enum class reads_along { either, terms, points };

/* How the points of a nest whose threads share terms are given to teams, for about so many terms at each point, and the memory for parts
 * of them: so many words a part, none where terms can't be taken in parts. Where neighbouring points read neighbours, a point has one thread, and several for parts of its terms. All of it depends on
 * sizes alone, and so do results. */
struct nest_launch {
  enum : int64_t { many_points = 1 << 15, few_points = 1 << 7, many_terms = 1 << 12, terms_a_part = 1 << 11, most_parts = 512 };
  enum : int64_t { neighbours = 8, terms_a_thread = 32, most_threads = 1 << 19 };
  int64_t size = 0;
  void *kept = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands, int32_t Levels>
  nest_launch(device_nest<Operands> &d, int32_t last, const opc_cuda_context *context, const int64_t (&counts)[Levels], int32_t side,
              int64_t words, reads_along along)
      : lent(context) {
    /* Threads share the loop whose terms are side by side, unless it is short and another is longer. */
    d.level = side < 0 ? 0 : side;
    for (int32_t k = 0; k < Levels; ++k) {
      if (counts[d.level] < threads_a_warp && counts[k] > counts[d.level]) d.level = k;
    }
    share(d, last, counts[d.level], words, along);
    /* A thread that has all terms of a point needs not ask which are its own. */
    if (d.team == 1 && d.parts == 1) d.level = -1;
  }
  nest_launch(const nest_launch &) = delete;
  nest_launch &operator=(const nest_launch &) = delete;
  ~nest_launch() {
    if (kept != nullptr && lent->release != nullptr) lent->release(lent->allocator, kept, size, lent->stream);
  }
  bool lacks_memory() const { return size > 0 && kept == nullptr; }

 private:
  template <int32_t Operands>
  void share(device_nest<Operands> &d, int32_t last, int64_t terms, int64_t words, reads_along along) {
    const bool may_part = words > 0;
    if (d.points == 0 || terms < threads_a_warp) return;
    if (along == reads_along::points && d.size[last] >= neighbours && (may_part || d.points >= many_points)) {
      const int64_t parts = terms / terms_a_thread, room = may_part ? most_threads / words / d.points : 0;
      d.parts = !may_part || room <= 1 ? 1 : parts < room ? greater(parts, 1) : room;
    } else {
      if (d.points >= many_points && along == reads_along::either) return;
      d.team = terms >= threads_a_block && d.points < many_points / 8 ? int32_t(threads_a_block) : int32_t(threads_a_warp);
      if (!may_part || d.points >= few_points || terms < many_terms) return;
      const int64_t parts = terms / terms_a_part;
      d.parts = parts < most_parts ? parts : int64_t(most_parts);
      static_assert(2 * 8 * most_parts * few_points <= OPC_CUDA_PARTS_BYTES, "a call that measures may lack so much");
    }
    if (d.parts == 1) return;
    size = 8 * words * d.parts * d.points;
    kept = device_memory(lent, size);
    d.kept = static_cast<char *>(kept);
  }
};

/* Goes on to the parts of points, and then to joining them; false where that is done. */
template <int32_t Operands>
static inline bool next_step(device_nest<Operands> &d, int32_t step) {
  d.by_step = divisor_of(d.parts * d.team);
  if (d.parts == 1) return step == 0;
  d.of = step == 0 ? one_part : all_parts;
  d.work = step == 0 ? d.points * d.parts : d.points;
  return step < 2;
}

/* Takes an axis of an operand of a nest as two: parts of so many points each. `axis` counts from the back, so that operands of any rank
 * have it there. */
static inline void split_axis(nest_operand &o, int32_t axis, int64_t points) {
  if (o.data == nullptr) return;
  for (int32_t a = o.ndim; a > axis + 1; --a) {
    o.shape[a] = o.shape[a - 1];
    o.stride[a] = o.stride[a - 1];
  }
  ++o.ndim;
  o.shape[axis + 1] = points;
  o.stride[axis + 1] = o.stride[axis];
  o.shape[axis] = points == 0 ? 0 : o.shape[axis] / points;
  o.stride[axis] *= points;
}

/* Merges axes [first, first + count) of a stage that all operands go through as one; how many are left. */
template <int32_t Operands>
static inline int32_t add_merged(device_tile<Operands> &d, const stage &s, int32_t to, int32_t first, int32_t count) {
  int32_t left = 0;
  for (int32_t a = first; a < first + count; ++a) {
    if (s.size[a] == 1) continue;
    bool joins = left > 0;
    const int32_t last = to + left - 1;
    for (int32_t k = 0; joins && k < Operands; ++k) {
      joins = d.operands[k].stride[last] == s.operands[k].stride[a] * s.size[a];
    }
    const int32_t own = joins ? last : to + left++;
    d.size[own] = joins ? d.size[own] * s.size[a] : s.size[a];
    for (int32_t k = 0; k < Operands; ++k) d.operands[k].stride[own] = s.operands[k].stride[a];
  }
  return left;
}

/* Whether an operand can be read or written 16 bytes at a time along the last axis of rows. */
template <int32_t Operands>
static inline bool packs(const device_tile<Operands> &d, const operand &o, const device_operand &own, int64_t lanes) {
  if (own.data == nullptr || !o.along_row) return true;
  const int64_t along = d.rank > d.outer ? own.stride[d.rank - 1] : 0;
  if (along == 0) return o.what == role_input;
  const int64_t bytes = itemsize(o.stored) * lanes;
  if (along != 1 || reinterpret_cast<uintptr_t>(own.data) % static_cast<uintptr_t>(bytes) != 0) return false;
  for (int32_t a = 0; a < d.rank - 1; ++a) {
    if (own.stride[a] % lanes != 0) return false;
  }
  return true;
}

/* Whether kernels go along a stage without asking how its operands lie. */
template <int32_t Operands>
static inline bool lies_plain(const device_tile<Operands> &d, const stage &s) {
  if (d.outer > 1 || d.rank - d.outer > 1 || d.packed < d.columns) return false;
  for (int32_t k = 0; k < Operands; ++k) {
    const bool along = s.operands[k].along_row && d.operands[k].data != nullptr;
    if (along && d.rank > d.outer && d.operands[k].stride[d.rank - 1] == 0) return false;
  }
  return true;
}

/* A stage as kernels get it, whose points go to all threads of a grid. */
template <int32_t Operands>
static inline void to_device(device_tile<Operands> &d, const stage &s) {
  d.rows = d.columns = 1;
  for (int32_t a = 0; a < s.outer; ++a) d.rows *= s.size[a];
  for (int32_t a = s.outer; a < s.rank; ++a) d.columns *= s.size[a];
  for (int32_t k = 0; k < Operands; ++k) {
    d.operands[k].data = s.operands[k].data;
    d.operands[k].stored = s.operands[k].stored;
  }
  d.outer = add_merged(d, s, 0, 0, s.outer);
  d.rank = d.outer + add_merged(d, s, d.outer, s.outer, s.rank - s.outer);
  for (int32_t a = 0; a < d.rank; ++a) d.by_size[a] = divisor_of(d.size[a]);
  int64_t widest = 1;
  for (int32_t k = 0; k < Operands; ++k) {
    const int64_t bytes = s.operands[k].along_row && s.operands[k].data != nullptr ? itemsize(s.operands[k].stored) : 1;
    widest = bytes > widest ? bytes : widest;
  }
  const int64_t lanes = 16 / widest;
  bool packed = d.rank - d.outer <= 1 || (d.size[d.rank - 1] % lanes == 0 && d.columns <= INT32_MAX);
  for (int32_t k = 0; k < Operands; ++k) packed = packed && packs(d, s.operands[k], d.operands[k], lanes);
  d.packed = packed ? d.columns / lanes * lanes : 0;
  d.lanes = static_cast<int32_t>(lanes);
  d.buffers = 0;
  d.pitch = 0;
  d.scratch = nullptr;
  d.team = threads_a_block;
  d.general = lies_plain(d, s) ? 0 : 1;
}

/* The fewest elements that a kernel may take at once. It knows of absent operands too, and may read elements of several dtypes: all
 * indices as int64, and of a kernel that is called `seldom` all floats as float32. */
static inline int64_t fewest_packed(const stage &s, int32_t operands, bool seldom) {
  int64_t widest = seldom ? 4 : 1;
  for (int32_t k = 0; k < operands; ++k) {
    const dtype stored = s.operands[k].stored;
    if (s.operands[k].along_row) widest = greater(widest, stored == dtype_int32 ? 8 : itemsize(stored));
  }
  return 16 / widest;
}

/* The same of one whose rows go to teams, of which each thread has `pieces` packs at once. `buffers` are the arrays that rows keep values
 * in, unless a row is one chunk: then they are kept in registers. */
template <int32_t Operands>
static inline void to_device(device_tile<Operands> &d, const stage &s, int32_t buffers, int32_t pieces, bool seldom) {
  to_device(d, s);
  if (d.columns > INT32_MAX / 2) d.packed = 0;
  const int64_t fewest = fewest_packed(s, Operands, seldom);
  if (d.packed < d.columns || seldom || d.columns > most_threads_a_row * pieces * fewest) d.general = 1;
  d.pitch = (d.columns * 8 + 15) / 16 * 16;
  if (d.packed > 0) {
    /* A row is one chunk where it can be. Where rows are few, they have more threads, as a GPU has. */
    const int64_t lanes = seldom ? lesser(d.lanes, 4) : d.lanes, packs = (d.columns + lanes - 1) / lanes;
    d.team = 1;
    while (d.team < most_threads_a_row && d.team * (d.general == 0 ? pieces : 1) < packs) d.team *= 2;
    while (d.team < threads_a_block && d.team < packs && d.rows * d.team < busy_threads) d.team *= 2;
  } else {
    d.team = d.columns >= 512 || (d.columns >= 128 && d.rows < 1024) ? int32_t(threads_a_block) : int32_t(threads_a_warp);
    while (d.team < threads_a_block && d.team > 1 && d.team / 2 >= d.columns) d.team /= 2;
  }
  d.general = d.general == 0 && d.columns <= d.team * pieces * fewest ? 0 : 1;
  d.buffers = d.general == 0 || (d.packed == d.columns && d.columns <= d.team * fewest) ? 0 : buffers;
}

/* Blocks for the points of a stage: of a plain one each thread has the packs of one chunk. */
template <int32_t Operands>
static inline int64_t blocks_for(const device_tile<Operands> &d, int32_t pieces) {
  const int64_t lanes = d.packed > 0 ? d.lanes : 1;
  if (d.general != 0) return blocks_for((d.columns + lanes - 1) / lanes, threads_a_block);
  const int64_t points = lanes * pieces * threads_a_block;
  return lesser((d.columns + points - 1) / points, INT32_MAX);
}

/* How rows are given to blocks, and the memory that they keep values in. */
struct row_launch {
  enum : int64_t { most_shared = 48 * 1024 - 1024 };
  int64_t blocks = 0;
  int64_t threads = 0; /* of a block */
  int64_t bytes = 0; /* of shared memory, for each block */
  int64_t size = 0;
  void *scratch = nullptr;
  const opc_cuda_context *lent;

  template <int32_t Operands>
  row_launch(device_tile<Operands> &d, const opc_cuda_context *context) : lent(context) {
    const int64_t kept = d.buffers * d.pitch;
    while (d.team <= threads_a_warp && kept * teams_of(d) > most_shared) d.team = d.team < threads_a_warp ? 2 * d.team : int32_t(threads_a_block);
    const int64_t teams = teams_of(d);
    blocks = blocks_for(d.rows, teams);
    threads = d.team > threads_a_warp ? int64_t(d.team) : threads_for(d.rows * d.team);
    bytes = kept * teams;
    if (bytes <= most_shared) return;
    size = bytes * blocks;
    bytes = 0;
    scratch = device_memory(lent, size);
    d.scratch = static_cast<char *>(scratch);
  }
  row_launch(const row_launch &) = delete;
  row_launch &operator=(const row_launch &) = delete;
  ~row_launch() {
    if (scratch != nullptr && lent->release != nullptr) lent->release(lent->allocator, scratch, size, lent->stream);
  }
  bool lacks_memory() const { return size > 0 && scratch == nullptr; }

  /* How many teams a block has: one of more than a warp. */
  template <int32_t Operands>
  static int64_t teams_of(const device_tile<Operands> &d) {
    return d.team > threads_a_warp ? 1 : threads_a_block / d.team;
  }
};

/* The code and the message of what a kernel found; `what` are the names of operands, and of what has no value. */
static inline int32_t status_of(const char *const *what, const int64_t *status, const opc_context *context) {
  if (status[0] == 0) return OPC_OK;
  const char *name = what[status[0] - 1];
  if (status[1] < 0) return fail(context, OPC_INVALID_ARGUMENT, "%s of nothing", name);
  return fail(context, OPC_OUT_OF_RANGE, "an index of %s is %lld, outside axis %d of size %lld", name,
              static_cast<long long>(status[2]), static_cast<int>(status[1]), static_cast<long long>(status[3]));
}

}  // namespace opc
#endif  // OPC_CUDA_CALL_H
