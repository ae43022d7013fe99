/* Contractions of bfloat16 as contractions of words of two: AVX512-BF16 multiplies two pairs of them and adds both products to a float.
 *
 * A loop that is summed over is halved: what its points 2k and 2k + 1 read of a factor is a word. All else is planned, packed and copied as
 * elements are. A loop along which the words of both factors lie in memory is best, and one of windows none: these share their elements.
 * Where all loops have an odd number of points, the factors are copied with one more, which is 0.
 *
 * vdpbf16ps rounds as sums of floats do, but takes subnormal numbers for 0 and makes 0 of subnormal results. Products of normal numbers with
 * the biased exponents a and b are multiples of 2^(a + b - 268), as sums of them are, however these are rounded: where that is no less than
 * 2^-126, the least normal float, none of them is subnormal. So the least exponents of both factors are looked up first, which pays where
 * each element is multiplied often enough. Integers of 8 bits are bfloat16 exactly, and are made so as they are packed. Other factors are
 * multiplied as floats.
 */
#ifndef OPC_CONTRACTION_WORDS_H
#define OPC_CONTRACTION_WORDS_H

#include <string.h>

#include "opc/contraction/padded_words.h"
#include "opc/contraction/split.h"
#include "opc/core/call.h"

namespace opc {

enum : int64_t {
  often_multiplied = 32,   /* of an element, so that it pays to look at it first */
  looked_at_once = 1 << 15 /* elements */
};
enum : int32_t { never_subnormal = 268 - 126, exponent_of_one = 127 };

/* A contraction of words, with what it has copied. */
struct contraction_of_words {
  contraction c;
  term terms[max_terms];
  int32_t copies = 0;
  void *copy[2 * max_terms];

  contraction_of_words() = default;
  contraction_of_words(const contraction_of_words &) = delete;
  contraction_of_words &operator=(const contraction_of_words &) = delete;
  ~contraction_of_words() {
    while (copies > 0) give_memory(copy[--copies]);
  }
};

/* A loop of a term that is to be halved, and the places of both factors that move with it. */
struct paired_loop {
  int32_t loop, place[2];
};

/* Whether one instruction of the machine multiplies such words. */
static inline bool multiplies_words() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/* Whether a part of an index is 0 at all points of its loop, as that of the groups of a convolution is where there is one group. */
static inline bool adds_nothing(const contraction &c, const part &of) {
  return of.table == nullptr && part_value(of, 0) == 0 && part_value(of, c.size[of.loop] - 1) == 0;
}

/* The place of a factor whose index moves with a loop, one for each point, so that two points can be one; -1 where there is none. `windows`
 * is set where it moves with other loops that are summed over, too. */
static int32_t paired_entry(const contraction &c, const factor &f, int32_t loop, bool &windows) {
  int32_t found = -1;
  for (int32_t n = 0; n < f.entries; ++n) {
    const axis_index &at = f.at[n];
    bool moves = false, even = at.offset % 2 == 0;
    int32_t inner = 0;
    for (int32_t i = 0; i < at.parts; ++i) {
      const part &of = at.part_list[i];
      if (adds_nothing(c, of)) continue;
      const bool own = of.loop == loop;
      even = even && (own ? of.times * of.scale == 1 && of.shift == 0 && steps_evenly(of) : of.times % 2 == 0);
      moves = moves || own;
      inner += of.loop >= c.s->rank;
    }
    if (!moves) continue;
    if (found >= 0 || !even || at.guarded != inside || at.divisor != 1) return -1;
    found = n;
    windows = windows || inner > 1;
  }
  return found;
}

/* Makes words of two points of a loop. */
static void pair_points(factor &f, int32_t entry, int32_t loop) {
  axis_index &at = f.at[entry];
  f.second = at.stride;
  at.stride *= 2;
  at.size /= 2;
  at.offset /= 2;
  for (int32_t i = 0; i < at.parts; ++i) {
    if (at.part_list[i].loop != loop) at.part_list[i].times /= 2;
  }
}

/* Whether a place of a factor moves with one loop alone, from its first point on: behind the loop's points there is nothing. */
static inline bool moves_alone(const contraction &c, const axis_index &at) {
  int32_t parts = 0;
  for (int32_t i = 0; i < at.parts; ++i) parts += !adds_nothing(c, at.part_list[i]);
  return parts == 1 && at.offset == 0;
}

/* Finds the loop of a term that suits best: an even one before those that need another point; false where none does. */
static bool find_pair(const contraction &c, const term &t, paired_loop &found) {
  int32_t best = 0;
  for (int32_t loop = t.begin; loop < t.end; ++loop) {
    const int64_t size = c.size[loop];
    if (size < 2) continue;
    bool windows = false;
    const int32_t place[2] = {paired_entry(c, t.factors[0], loop, windows), paired_entry(c, t.factors[1], loop, windows)};
    if (place[0] < 0 || place[1] < 0 || windows) continue;
    const axis_index &left = t.factors[0].at[place[0]], &right = t.factors[1].at[place[1]];
    /* Blocks of rows of a slice would copy the same factors again. */
    if (size % 2 != 0 && (c.kept != nullptr || !moves_alone(c, left) || !moves_alone(c, right))) continue;
    const bool lies = left.stride == 1 && right.stride == 1;
    const int32_t worth = size % 2 != 0 ? 1 : lies ? 3 : 2;
    if (worth < best || (worth == best && worth == 1 && size < c.size[found.loop])) continue;
    best = worth;
    found = {loop, {place[0], place[1]}};
  }
  return best > 0;
}

/* Halves a loop of a term; false where there is no memory for copies with another point. */
static bool pair_term(contraction_of_words &words, term &t, const paired_loop &of) {
  int64_t &size = words.c.size[of.loop];
  if (size % 2 != 0) {
    for (int32_t i = 0; i < 2; ++i) {
      void *const copy = pad_with_zeros(words.c.s->context, t.factors[i], of.place[i], size, size + 1);
      if (copy == nullptr) return false;
      words.copy[words.copies++] = copy;
    }
    ++size;
  }
  size /= 2;
  for (int32_t i = 0; i < 2; ++i) pair_points(t.factors[i], of.place[i], of.loop);
  return true;
}

/* The elements of a factor: how many there are, and in lines of how many that lie together. */
struct factor_lines {
  const char *data;
  int64_t line, lines;
  int32_t axes;
  int64_t size[OPC_MAX_RANK], stride[OPC_MAX_RANK]; /* of the lines */
};

static factor_lines lines_of(const factor &f) {
  factor_lines found = {f.data, 1, 1, 0, {}, {}};
  bool taken[OPC_MAX_RANK + max_guards] = {};
  /* Axes that continue a line are part of it. */
  for (bool more = true; more;) {
    more = false;
    for (int32_t n = 0; n < f.entries && !more; ++n) {
      const axis_index &at = f.at[n];
      if (taken[n] || at.stride != found.line || at.size < 2) continue;
      taken[n] = more = true;
      found.line *= at.size;
    }
  }
  for (int32_t n = 0; n < f.entries; ++n) {
    if (taken[n] || f.at[n].stride == 0 || f.at[n].size < 2) continue;
    found.size[found.axes] = f.at[n].size;
    found.stride[found.axes++] = f.at[n].stride;
    found.lines *= f.at[n].size;
  }
  return found;
}

/* A search for the least exponent among the elements of a factor. */
struct exponent_search {
  factor_lines of;
  const contraction_functions *words;
  int64_t pieces; /* of a line */
  int32_t least;
};

static void search_exponents(void *argument, int64_t begin, int64_t end) {
  exponent_search &s = *static_cast<exponent_search *>(argument);
  int32_t least = no_exponent;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t line = unit / s.pieces, offset = s.of.line * (unit % s.pieces) / s.pieces;
    const int64_t count = s.of.line * (unit % s.pieces + 1) / s.pieces - offset;
    for (int32_t a = s.of.axes - 1; a >= 0; --a, line /= s.of.size[a + 1]) offset += line % s.of.size[a] * s.of.stride[a];
    const int32_t found = s.words->least_exponent(s.of.data + offset * 2, count);
    least = found < least ? found : least;
  }
  int32_t known = __atomic_load_n(&s.least, __ATOMIC_RELAXED);
  while (least < known && !__atomic_compare_exchange_n(&s.least, &known, least, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* Whether no product of a term, and no sum of some, is subnormal, and it pays to find that out; `work` is how many products there are. */
static bool stays_normal(const contraction &c, const term &t, const contraction_functions &words, int64_t work) {
  int32_t exponents = 0;
  for (const factor &f : t.factors) {
    if (f.stored != dtype_bfloat16) continue;
    const factor_lines of = lines_of(f);
    if (of.line < 2 && of.lines > 1) return false; /* one by one it would take too long */
    if (work < of.line * of.lines * often_multiplied) return false;
  }
  for (const factor &f : t.factors) {
    if (f.stored != dtype_bfloat16) {
      exponents += exponent_of_one;
      continue;
    }
    exponent_search s = {lines_of(f), &words, 1, no_exponent};
    s.pieces = (s.of.line + looked_at_once - 1) / looked_at_once;
    over_range(c.s->context, s.of.lines * s.pieces, looked_at_once / (s.of.line / s.pieces) + 1, search_exponents, &s);
    if (s.least == 0) return false;
    exponents += s.least;
  }
  return exponents >= never_subnormal;
}

/* Makes a contraction of words of one of bfloat16, with integers of 8 bits or not; false where it stays one of floats. */
static bool make_words(const contraction &c, const contraction_functions &words, contraction_of_words &to) {
  int64_t points = 1;
  for (int32_t loop = 0; loop < c.s->rank; ++loop) points *= c.size[loop];
  if (points == 0 || any_factor(c, [](const factor &f) {
        bool other = f.stored != dtype_bfloat16 && f.stored != dtype_int8 && f.stored != dtype_uint8;
        for (int32_t n = 0; n < f.entries; ++n) {
          const axis_index &at = f.at[n];
          other = other || at.guarded == skipped || (at.guarded != inside && at.divisor != 1);
        }
        return other;
      })) {
    return false;
  }
  to.c = c;
  to.c.term_list = to.terms;
  paired_loop pairs[max_terms];
  for (int32_t t = 0; t < c.terms; ++t) {
    const factor *const factors = c.term_list[t].factors;
    if (factors[0].stored != dtype_bfloat16 && factors[1].stored != dtype_bfloat16) return false;
    if (!find_pair(c, c.term_list[t], pairs[t])) return false;
  }
  for (int32_t t = 0; t < c.terms; ++t) {
    int64_t work = points;
    for (int32_t loop = c.term_list[t].begin; loop < c.term_list[t].end; ++loop) work *= c.size[loop];
    if (!stays_normal(c, c.term_list[t], words, work)) return false;
  }
  for (int32_t t = 0; t < c.terms; ++t) {
    to.terms[t] = c.term_list[t];
    if (!pair_term(to, to.terms[t], pairs[t])) return false;
  }
  return true;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_WORDS_H
