/* Statements as kernels get them: their operands, and how points and terms are given to teams of threads. */
#ifndef OPC_CUDA_LAUNCH_NESTS_H
#define OPC_CUDA_LAUNCH_NESTS_H

#include "opc/cuda/launch.h"
#include "opc/cuda/nest.h"

namespace opc {

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

/* Goes on to the parts of points, and then to joining them; false where that is done. Threads that have all terms, or parts of them, may
 * take packs of so many points, unless a GPU would have too few threads then. */
template <int32_t Operands>
static inline bool next_step(device_nest<Operands> &d, int32_t step, int64_t lanes = 1) {
  enum : int64_t { few = 1 << 12, enough = 1 << 15 };
  const int64_t threads = d.points * d.parts;
  const bool packs = lanes > 1 && d.team == 1 && step == 0 && (threads < few || threads / lanes >= enough);
  const int64_t points = packs ? d.points / lanes : d.points;
  d.by_step = divisor_of(d.parts * d.team);
  if (d.parts > 1) d.of = step == 0 ? one_part : all_parts;
  d.work = step == 0 ? points * d.parts : points;
  d.packed = 0;
  if (packs) {
    d.packed = d.work;
    d.work = 0;
    d.by_points = divisor_of(points);
  }
  return step < (d.parts == 1 ? 1 : 2);
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

}  // namespace opc
#endif  // OPC_CUDA_LAUNCH_NESTS_H
