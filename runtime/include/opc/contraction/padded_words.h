/* Factors of bfloat16 with a point more than they have, which is 0, where an odd number of them is summed over: words hold two.
 *
 * They are copies, with their axes in the order in which they lie in memory. What is multiplied often is soon copied.
 */
#ifndef OPC_CONTRACTION_PADDED_WORDS_H
#define OPC_CONTRACTION_PADDED_WORDS_H

#include <string.h>

#include "opc/contraction/split.h"
#include "opc/core/workspace.h"

namespace opc {

/* A copy of a factor whose axis `padded` has points beyond the `valid` ones that are copied; the last axis makes its lines. */
struct copy_with_zeros {
  const char *from;
  char *to;
  int64_t item; /* bytes */
  int32_t axes, padded;
  int64_t valid;
  int64_t size[OPC_MAX_RANK + max_guards], stride[OPC_MAX_RANK + max_guards];
};

/* Copies lines [begin, end). */
static void copy_with_zeros_lines(void *argument, int64_t begin, int64_t end) {
  const copy_with_zeros &c = *static_cast<copy_with_zeros *>(argument);
  const int32_t last = c.axes - 1;
  const int64_t length = c.size[last], step = c.stride[last] * c.item;
  for (int64_t line = begin; line < end; ++line) {
    char *to = c.to + line * length * c.item;
    int64_t offset = 0, rest = line, held = c.padded == last ? c.valid : length;
    for (int32_t a = last - 1; a >= 0; --a, rest /= c.size[a + 1]) {
      const int64_t index = rest % c.size[a];
      offset += index * c.stride[a];
      if (a == c.padded && index >= c.valid) held = 0;
    }
    const char *from = c.from + offset * c.item;
    if (step == c.item) {
      memcpy(to, from, static_cast<size_t>(held * c.item));
    } else if (c.item == 2) {
      for (int64_t i = 0; i < held; ++i) memcpy(to + i * 2, from + i * step, 2);
    } else {
      for (int64_t i = 0; i < held; ++i) to[i] = from[i * step];
    }
    memset(to + held * c.item, 0, static_cast<size_t>((length - held) * c.item));
  }
}

/* Makes a factor one of memory that the caller gives back, whose axis at a place has `size` points, of which `valid` are copied and
 * the others 0. Returns the memory; null where there is none, and the factor is as it was. */
static void *pad_with_zeros(const opc_context *context, factor &f, int32_t place, int64_t valid, int64_t size) {
  copy_with_zeros c = {};
  int32_t order[OPC_MAX_RANK + max_guards];
  const auto magnitude = [](int64_t n) { return n < 0 ? -n : n; };
  for (int32_t n = 0; n < f.entries; ++n) {
    if (n != place && (f.at[n].stride == 0 || f.at[n].size < 2)) continue;
    int32_t to = c.axes++;
    for (; to > 0 && magnitude(f.at[order[to - 1]].stride) < magnitude(f.at[n].stride); --to) order[to] = order[to - 1];
    order[to] = n;
  }
  int64_t elements = 1, pitch[OPC_MAX_RANK + max_guards];
  for (int32_t a = c.axes - 1; a >= 0; --a) {
    const axis_index &at = f.at[order[a]];
    c.size[a] = order[a] == place ? size : at.size;
    c.stride[a] = at.stride;
    if (order[a] == place) c.padded = a;
    pitch[a] = elements;
    elements *= c.size[a];
  }
  c.item = f.stored == dtype_bfloat16 ? 2 : 1;
  c.valid = valid;
  c.from = f.data;
  void *const memory = take_memory(elements * c.item);
  if (memory == nullptr) return nullptr;
  c.to = static_cast<char *>(memory);
  const int64_t length = c.size[c.axes - 1];
  over_range(context, elements / length, (1 << 16) / length + 1, copy_with_zeros_lines, &c);
  f.data = c.to;
  for (int32_t n = 0; n < f.entries; ++n) f.at[n].stride = n == place || f.at[n].size >= 2 ? f.at[n].stride : 0;
  for (int32_t a = 0; a < c.axes; ++a) f.at[order[a]].stride = pitch[a];
  f.at[place].size = size;
  return memory;
}

}  // namespace opc
#endif  // OPC_CONTRACTION_PADDED_WORDS_H
