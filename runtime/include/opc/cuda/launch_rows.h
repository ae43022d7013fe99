/* Points and rows as kernels get them: merged axes, packs, and how rows are given to teams of threads. */
#ifndef OPC_CUDA_LAUNCH_ROWS_H
#define OPC_CUDA_LAUNCH_ROWS_H

#include "opc/cuda/launch.h"
#include "opc/cuda/rows.h"

namespace opc {

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
  if (d.rank - d.outer > 1 || d.packed < d.columns) return false;
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

}  // namespace opc
#endif  // OPC_CUDA_LAUNCH_ROWS_H
