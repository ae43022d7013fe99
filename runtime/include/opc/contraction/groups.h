/* Groups of points: contractions in which data says, for each point, which of several matrices it is multiplied with, as the experts of a
 * mixture. The points are put in the order of their groups by counting, and each group is a contraction of its own, whose rows, or what is
 * summed over, lie where tables say: a grouped matrix product, as in MegaBlocks (Gale et al., 2023).
 */
#ifndef OPC_CONTRACTION_GROUPS_H
#define OPC_CONTRACTION_GROUPS_H

#include <initializer_list>

#include "opc/contraction/contraction.h"
#include "opc/core/call.h"
#include "opc/core/workspace.h"

namespace opc {

/* The products that are worth a contraction of their own. */
enum : int64_t { group_work = 1 << 16 };

/* How often an element of rows that are put together is used, and the products of all of them, at least. */
enum : int64_t { row_uses = 16, row_work = 1 << 15 };

/* `index[l][i]` is the index of loop[l] at the i-th of the points in their order, and `group[i]` is its group; those of group g are from
 * begin[g] on, before begin[g + 1]. The first of the loops runs over them, and the others have one point. The loop `batch` of the result
 * has a point for each group, if it is not -1. */
struct point_groups {
  int64_t count; /* of groups */
  int32_t loops;
  int32_t loop[max_axes];
  int32_t batch;
  int64_t *begin;
  int64_t *group;
  int64_t *index[max_axes];
  void *memory;

  ~point_groups() { give_memory(memory); }
};

static inline bool is_grouped(const point_groups *groups, int32_t loop) { return groups != nullptr && groups->loop[0] == loop; }

/* How far the i-th of the points is from the first one of all in an operand of these strides along the loops of the result. */
static inline int64_t place_of_grouped(const point_groups &groups, const int64_t *stride, int32_t rank, int64_t i) {
  int64_t offset = 0;
  for (int32_t l = 0; l < groups.loops; ++l) {
    if (groups.loop[l] < rank) offset += groups.index[l][i] * stride[groups.loop[l]];
  }
  return offset;
}

static inline void start(point_groups &groups, int64_t count) {
  groups.count = count < 0 ? 0 : count;
  groups.loops = 0;
  groups.batch = -1;
  groups.begin = groups.group = nullptr;
  for (int64_t *&index : groups.index) index = nullptr;
  groups.memory = nullptr;
}

/* Adds loops whose points are in groups. */
static inline void add_loops(point_groups &groups, const axes &of) {
  for (int32_t n = 0; n < of.count; ++n) groups.loop[groups.loops++] = of.first + n;
}

/* Puts the points of the loops in the order of their groups, which `group_of` has for them, the last loop innermost. Points whose group is
 * none are left out; or the call fails, for an index of the operand `what` along an axis. */
static inline int32_t put_in_order(point_groups &groups, contraction &c, const int64_t *group_of, const char *what, int32_t axis) {
  if (groups.loops == 0) { /* one point */
    c.size[c.loops] = 1;
    groups.loop[groups.loops++] = c.loops++;
  }
  int64_t points = 1;
  for (int32_t l = 0; l < groups.loops; ++l) points *= c.size[groups.loop[l]];
  /* What an empty group begins with is there, too. */
  const int64_t elements = groups.count + 1 + (1 + groups.loops) * (points + 1);
  groups.memory = take_memory(elements * static_cast<int64_t>(sizeof(int64_t)));
  if (groups.memory == nullptr) return fail(c.s->context, OPC_OUT_OF_MEMORY, "no memory for the groups of a contraction");
  groups.begin = static_cast<int64_t *>(groups.memory);
  groups.group = groups.begin + groups.count + 1;
  for (int32_t l = 0; l < groups.loops; ++l) groups.index[l] = groups.group + (l + 1) * (points + 1);
  for (int64_t g = 0; g <= groups.count; ++g) groups.begin[g] = 0;
  groups.group[points] = 0;
  for (int32_t l = 0; l < groups.loops; ++l) groups.index[l][points] = 0;
  for (int64_t i = 0; i < points; ++i) {
    if (static_cast<uint64_t>(group_of[i]) < static_cast<uint64_t>(groups.count)) {
      ++groups.begin[group_of[i]];
    } else if (what != nullptr) {
      return fail(c.s->context, OPC_OUT_OF_RANGE, "an index of %s is %lld, outside axis %d of size %lld", what,
                  static_cast<long long>(group_of[i]), axis, static_cast<long long>(groups.count));
    }
  }
  int64_t before = 0;
  for (int64_t g = 0; g <= groups.count; ++g) {
    const int64_t own = groups.begin[g];
    groups.begin[g] = before;
    before += own;
  }
  int64_t index[max_axes] = {};
  for (int64_t i = 0; i < points; ++i) {
    const int64_t g = group_of[i];
    if (static_cast<uint64_t>(g) < static_cast<uint64_t>(groups.count)) {
      const int64_t at = groups.begin[g]++;
      groups.group[at] = g;
      for (int32_t l = 0; l < groups.loops; ++l) groups.index[l][at] = index[l];
    }
    for (int32_t l = groups.loops - 1; l >= 0 && ++index[l] == c.size[groups.loop[l]]; --l) index[l] = 0;
  }
  /* Each group has moved its beginning to its end. */
  for (int64_t g = groups.count; g > 0; --g) groups.begin[g] = groups.begin[g - 1];
  groups.begin[0] = 0;
  for (int32_t l = 0; l < groups.loops; ++l) c.size[groups.loop[l]] = l == 0 ? points : 1;
  c.groups = &groups;
  return OPC_OK;
}

/* Adds the group of each point to an index. */
static inline void add_number(axis_index &p, const point_groups &groups) {
  p.part_list[p.parts++] = {groups.loop[0], 1, 1, 0, 1, groups.group};
}

/* Lets all that the grouped loops add to indices of the factors be found by the places of their points. */
static inline void find_by_place(contraction &c, const point_groups &groups) {
  for (int32_t t = 0; t < c.terms; ++t) {
    for (factor &f : c.term_list[t].factors) {
      for (int32_t n = 0; n < f.entries; ++n) {
        for (int32_t i = 0; i < f.at[n].parts; ++i) {
          part &of = f.at[n].part_list[i];
          for (int32_t l = 0; of.table == nullptr && l < groups.loops; ++l) {
            if (of.loop != groups.loop[l]) continue;
            of.loop = groups.loop[0];
            of.table = groups.index[l];
          }
        }
      }
    }
  }
}

/* Whether it pays to put points in groups: the products of a group, of matrices with so many elements, are worth a contraction of their
 * own. */
static inline bool groups_pay(std::initializer_list<int64_t> points, int64_t groups, std::initializer_list<int64_t> elements) {
  double products = 1, rows = 1;
  for (int64_t size : elements) products *= static_cast<double>(size);
  for (int64_t size : points) rows *= static_cast<double>(size);
  if (groups <= 0) return false;
  const double each = rows / static_cast<double>(groups);
  return products * (each > 1 ? each : 1) >= group_work;
}

/* Whether it pays to put rows together for a product that uses each element again, or to store a product that is added up by rows. */
static inline bool rows_pay(std::initializer_list<int64_t> again, std::initializer_list<int64_t> elements) {
  double uses = 1, all = 1;
  for (int64_t size : again) uses *= static_cast<double>(size);
  for (int64_t size : elements) all *= static_cast<double>(size);
  return uses >= row_uses && uses * all >= row_work;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_GROUPS_H
