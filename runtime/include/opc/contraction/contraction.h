/* A contraction: sums of products of two factors, such as a matrix product or a convolution, and what is done with each sum.
 *
 * The entry function of an op describes it with the functions below: a stage (opc/core/stage.h) whose axes are the points of the result
 * and whose operand 0 is the sum, and for each term of the sum the loops that it sums over and its two factors. `run` in
 * opc/contraction/run.h cuts it into blocks; the structs hold no code that depends on the instruction set.
 */
#ifndef OPC_CONTRACTION_CONTRACTION_H
#define OPC_CONTRACTION_CONTRACTION_H

#include "opc/core/lanes.h"
#include "opc/core/stage.h"

namespace opc {

struct kept_memory; /* opc/core/call.h */

enum { max_contraction_loops = 2 * max_axes, max_terms = 8, max_parts = 6, max_guards = 6 };

/* What the index i of one loop adds to an index of a tensor: times * floor((scale * i + shift) / divisor), or times * table[i], where there
 * is a table. */
struct part {
  int32_t loop;
  int64_t times;
  int64_t scale;
  int64_t shift;
  int64_t divisor;
  const int64_t *table;
};

/* What becomes of an index outside its axis: there is none; the factor is 0; or the product does not count. */
enum guarding : int8_t { inside, padded, skipped };

/* The index of one axis of a factor: the parts' sum, divided by `divisor`. It is outside its axis, too, where the sum is no multiple of
 * the divisor. */
struct axis_index {
  int64_t stride; /* in elements */
  int64_t size;
  int64_t offset;
  int64_t divisor;
  guarding guarded;
  int32_t parts;
  part part_list[max_parts];
};

struct factor {
  const char *data;
  dtype stored;
  int64_t second; /* elements from the first of a word to the other; 0 where no two are one */
  bool stays; /* it is the same for all blocks of rows of a slice */
  int32_t entries;
  axis_index at[OPC_MAX_RANK + max_guards];
};

/* One product, summed over loops [begin, end). */
struct term {
  int32_t begin, end;
  factor factors[2];
};

/* Loops [0, rank) are the axes of the stage; those of the terms follow. Where a block of rows of a slice is computed, what is packed of a
 * factor that stays is `kept` for the next block; and where the result is `scaled`, it is scale * sum + added in the type of the sum, of which
 * the last is 0 or -0. */
struct contraction {
  stage *s;
  kept_memory *kept;
  const struct point_groups *groups; /* see opc/contraction/groups.h; NULL where there are none */
  bool scaled;
  double scale, added;
  int32_t loops;
  int32_t terms;
  int64_t size[max_contraction_loops];
  term *term_list;
};

/* Packs `count` points of a factor, in panels of `width` points whose last is rounded up to a multiple of `grain`, for `depth` inner
 * points. In the panel that begins with point f, at to + f * depth, element [k * width + p] is that at from + point[f + p] + inner[k]
 * plus, for each guard, stride times its index (base + point[f + p] + inner[k]) / divisor. It is 0 where the quotient is not whole or
 * not in 0..size-1, and for points beyond `count`. */
struct packing {
  void *to;
  int64_t count, width, grain, depth;
  const char *from;
  dtype stored;
  int64_t second; /* of a word */
  const int64_t *point;
  const int64_t *inner;
  int32_t guards;
  struct {
    const int64_t *point;
    const int64_t *inner;
    int64_t base, size, divisor, stride;
  } guard[max_guards];
};

/* Copies a box of elements of a tensor into a padded input, contiguously, and 0 where an index is outside its axis. The index of
 * axis[n] is its start plus, for each loop over that axis, the loop's step times its point; the last loop makes the lines. */
struct padded_copy {
  void *to;
  const char *from; /* where every index is 0 */
  dtype stored;
  int64_t second; /* of a word */
  int32_t axes, loops;
  struct {
    int64_t start, size, stride;
    bool guarded;
  } axis[OPC_MAX_RANK + max_guards];
  struct {
    int32_t axis;
    int64_t count, step;
  } loop[OPC_MAX_RANK + max_guards + 2];
};

/* What a strip of rows times a panel of columns is computed from; b's columns at step k begin at `offsets[k]`. */
struct panel_product {
  int64_t depth;
  const void *a;
  const void *b;
  const int64_t *offsets;
  void *c;
  int64_t pitch;
  bool add;             /* to what is there */
  double scale, added;  /* of sums that are written as results */
  const int64_t *rows;  /* where rows that lie anywhere begin, */
  const int64_t *inner; /* and where each step's element lies in them */
};

/* c[i * pitch + j] (+)= sum of a[k * rows + i] * b[offsets[k] + j] over k < depth, for `rows` rows and 1, 2 or 3 vectors of columns. */
typedef void (*contraction_kernel)(const panel_product &);

/* Where lines begin, in elements: as a table has it, or `step` apart where there is none. */
struct line_starts {
  const int64_t *table;
  int64_t step;

  OPC_INLINED int64_t operator[](int64_t line) const { return table != nullptr ? table[line] : line * step; }
};

/* For a row of sums of its own: c[j] (+)= sum of a[k] * b[starts[k] + j], j < count; b's lines of columns are read from end to end.
 * For columns whose inner points lie together: c[j] (+)= sum of a[k] * b[starts[j] + k]. b is `stored` as the sums are, or as numbers of
 * fewer bits. */
typedef void (*contraction_line)(int64_t depth, const void *a, const void *b, dtype stored, const line_starts &starts, void *c,
                                 int64_t count, bool add);

/* The inner functions of one instruction-set variant for one type of sums. Those of whole numbers have no `windows`, `copy` and `scaled`:
 * their sums are handed to a tile function. They and those of words have no `all_finite`, and those of words no `dots`. What is not there
 * is 0. */
struct contraction_functions {
  int32_t rows;  /* of a full strip; kernel[0] is for that, kernel[1] for half as many */
  int32_t lanes; /* columns of a vector */
  int32_t packed; /* bytes that each packed element has room in */
  contraction_kernel kernel[2][3];
  contraction_kernel windows[3]; /* of a full strip of rows that lie anywhere, and packed columns: a[rows[i] + inner[k]] * b[k * columns + j] */
  contraction_kernel scaled[3];  /* of a full strip, both packed: c[i * pitch + j] = scale * the sum + added; bfloat16 of words, whose scale is 1 */
  contraction_kernel lines[3];   /* of words, of a full strip of rows that each lie in one piece, and packed columns */
  contraction_kernel scaled_lines[3]; /* the same, of which bfloat16 is made as above */
  contraction_line line;
  contraction_line dots;
  void (*pack)(const packing &);
  void (*copy)(const padded_copy &);
  bool (*all_finite)(const void *, int64_t count);
  const contraction_functions *words; /* those of words of two bfloat16 (opc/contraction/words.h); NULL where there are none */
  int32_t (*least_exponent)(const void *, int64_t count); /* of those */
};

enum { strip_vectors = 3 };

/* What `least_exponent` returns of zeros: more than any. */
enum : int32_t { no_exponent = 1024 };

/* Adds the sum itself to a stage, as its first operand. */
static inline void add_sum(stage &s, dtype computed) { add_operand(s, role_input, in_rows, nullptr, computed, computed); }

static inline void start(contraction &c, stage &s, term *terms) {
  c.s = &s;
  c.kept = nullptr;
  c.groups = nullptr;
  c.scaled = false;
  c.loops = s.rank;
  c.terms = 0;
  c.term_list = terms;
  for (int32_t a = 0; a < s.rank; ++a) c.size[a] = s.size[a];
}

static inline void scale(contraction &c, double scale, double added) {
  c.scaled = true;
  c.scale = scale;
  c.added = added;
}

static inline term &add_term(contraction &c) {
  term &t = c.term_list[c.terms++];
  t.begin = t.end = c.loops;
  return t;
}

/* Adds a loop that the last term sums over. */
static inline axes add_inner(contraction &c, int64_t size) {
  c.size[c.loops] = size < 0 ? 0 : size;
  c.term_list[c.terms - 1].end = c.loops + 1;
  return {c.loops++, 1, false};
}

static inline axes add_inner(contraction &c, const extents &group) {
  const axes added = {c.loops, group.rank, true};
  for (int32_t i = 0; i < group.rank; ++i) add_inner(c, group.size[i]);
  return added;
}

/* A tensor as seen by a factor whose entries are being added; `axis` is its next axis. */
struct factor_axes {
  factor *f;
  int32_t axis;
  int32_t ndim;
  const int64_t *shape;
  int64_t stride[max_axes];
};

static inline factor_axes strided_factor(factor &f, char *data, dtype stored, int32_t ndim, const int64_t *shape,
                                         const int64_t *strides) {
  f.data = data;
  f.stored = stored;
  f.stays = false;
  f.second = 0;
  f.entries = 0;
  factor_axes result = {&f, 0, ndim, shape, {}};
  find_strides(ndim, shape, strides, result.stride);
  return result;
}

static inline factor_axes tensor_factor(factor &f, const DLTensor *t) {
  return strided_factor(f, data_of(*t), dtype_of(*t), t->ndim, t->shape, t->strides);
}

/* A tensor between the stages of a call, contiguous. */
template <typename Temporary>
static inline factor_axes temporary_factor(factor &f, const Temporary &t, dtype computed) {
  return strided_factor(f, static_cast<char *>(t.data), computed, t.ndim, t.shape, nullptr);
}

static inline axis_index &add_entry(factor &f, int64_t stride, int64_t size, int64_t offset, int64_t divisor, guarding guarded) {
  axis_index &p = f.at[f.entries++];
  p.stride = stride;
  p.size = size;
  p.offset = offset;
  p.divisor = divisor == 0 ? 1 : divisor; /* the size of an absent operand: no point is used */
  p.guarded = guarded;
  p.parts = 0;
  return p;
}

/* Sets the index of the next axis; its parts are added to the place returned. */
static inline axis_index &add_index(factor_axes &x, int64_t offset, int64_t divisor, guarding guarded) {
  axis_index &p = add_entry(*x.f, x.stride[x.axis], x.shape[x.axis], offset, divisor, guarded);
  ++x.axis;
  return p;
}

/* The size of a condition that has no upper bound: more than any, and no distance from it overflows. */
static constexpr int64_t any_size = INT64_MAX / 2;

/* Adds a condition 0 <= index < size that is part of no axis. */
static inline axis_index &add_guard(factor_axes &x, int64_t size, int64_t offset) {
  return add_entry(*x.f, 0, size, offset, 1, skipped);
}

static inline axis_index &add_part(axis_index &p, const axes &loop, int64_t times) {
  p.part_list[p.parts++] = {loop.first, times, 1, 0, 1, nullptr};
  return p;
}

/* Adds times * floor((scale * i + shift) / divisor), and nothing where the divisor is 0, as floordiv has it. */
static inline axis_index &add_part(axis_index &p, const axes &loop, int64_t times, int64_t scale, int64_t shift, int64_t divisor) {
  p.part_list[p.parts++] = divisor == 0 ? part{loop.first, 0, 1, 0, 1, nullptr} : part{loop.first, times, scale, shift, divisor, nullptr};
  return p;
}

/* Adds the loops over those axes of a group along which `own` is broadcast; the others have one point. */
static inline axes add_broadcast(contraction &c, const extents &group, const extents &own) {
  const axes added = {c.loops, group.rank, true};
  for (int32_t i = 0; i < group.rank; ++i) {
    const int32_t at = i - (group.rank - own.rank);
    add_inner(c, at < 0 || own.size[at] != group.size[i] ? group.size[i] : 1);
  }
  return added;
}

/* Adds what the axis of a group that is `back` from its end adds to an index. */
static inline void add_group_part(axis_index &p, const axes &group, int32_t back) {
  if (back <= group.count) add_part(p, {group.first + group.count - back, 1, false}, 1);
}

/* Sets the indices of the axes of a group, of these sizes, which may be broadcast; `across` are further loops over the group. */
static inline void add_group(factor_axes &x, const axes &group, const extents &own, const axes &across = {0, 0, true}) {
  for (int32_t i = 0; i < own.rank; ++i) {
    axis_index &p = add_index(x, 0, 1, inside);
    if (own.size[i] == 1) continue;
    add_group_part(p, group, own.rank - i);
    add_group_part(p, across, own.rank - i);
  }
}

}  // namespace opc
#endif  // OPC_CONTRACTION_CONTRACTION_H
