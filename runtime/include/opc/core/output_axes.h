/* How an output's shape is made of the inputs', for hosts that build graphs whose sizes are not all known yet. */
#ifndef OPC_CORE_OUTPUT_AXES_H
#define OPC_CORE_OUTPUT_AXES_H

#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "opc/abi.h"

namespace opc {

/* A place among an input's axes: counted from the first, from behind the last, or from the axis that an attribute places, which is one of
 * the input's, or stands beside these. */
struct Place {
  enum Base { kStart, kEnd, kAxis, kBeside } base;
  int offset;
};

/* Some axes of an output's shape: axes [from, to) of an input, a fixed size, what several inputs' axes broadcast to, or one that only
 * the kernel's own inference finds: `size` of them, or -1 when even their number is not known. `more` continues a broadcast. `kAmong`
 * are those axes of an input that an attribute lists, where `size` is 1, else the others; with `more`, the others with axes of size 1 in
 * place of the listed ones, where an attribute keeps these. `kPlaced` gives the axis that the attribute at `from` places the size of the one
 * of an input that the attribute at `to` does. `kPermuted` are all axes of an input in the order of a permutation where `size` is -1, else
 * each in the place that the permutation has it from. */
struct Axes {
  enum Kind { kCopy, kSize, kBroadcast, kComputed, kAmong, kPlaced, kPermuted } kind;
  int input;
  Place from, to;
  int64_t size;
  bool more;
};

struct OutputShape {
  int count;
  const Axes *axes;
};

/* What attributes of a call say of axes: the one that an attribute places, those that one lists, and whether listed ones are kept. A host
 * that does not read lists has NULL there. */
struct Attributed {
  int64_t axis = 0;
  const int64_t *listed = nullptr;
  int64_t length = 0;
  bool keeps = false;
  int64_t placed[OPC_MAX_RANK] = {};
  Attributed(int64_t axis) : axis(axis) {}
  Attributed(const int64_t *listed, int64_t length, bool keeps)
      : listed(listed != nullptr ? listed : &axis), length(length), keeps(keeps) {}
  /* Of attributes that place single axes; those of the others are kept around them. */
  Attributed(std::initializer_list<int64_t> axes, bool keeps) : listed(placed), keeps(keeps) {
    for (const int64_t axis : axes) placed[length++] = axis;
  }
  Attributed(const Attributed &) = delete;

  bool lists(int64_t axis_of_input, int64_t rank) const {
    for (int64_t i = 0; i < length; ++i)
      if (listed[i] == axis_of_input || listed[i] + rank == axis_of_input) return true;
    return length == 0;
  }
};

/* The axis a place stands for; below 0 or beyond the rank where the shape does not fit the op. */
inline int64_t axis_of(Place place, int64_t rank, int64_t axis) {
  switch (place.base) {
    case Place::kStart: return place.offset;
    case Place::kEnd: return rank + place.offset;
    case Place::kAxis: return (axis < 0 ? axis + rank : axis) + place.offset;
    default: return (axis < 0 ? axis + rank + 1 : axis) + place.offset;
  }
}

/* A shape that may have unknown sizes, -1, each with a name where the graph gives one; the rank is -1 where it is not known. */
struct SymbolicShape {
  int64_t rank = 0;
  int64_t sizes[OPC_MAX_RANK];
  const char *names[OPC_MAX_RANK];

  SymbolicShape() = default;
  /* A shape whose sizes have no names. */
  template <class Sizes>
  explicit SymbolicShape(const Sizes &of) {
    for (const int64_t size : of) append(size);
  }

  bool known(int64_t axis) const { return sizes[axis] >= 0; }
  bool concrete() const {
    for (int64_t i = 0; i < rank; ++i)
      if (!known(i)) return false;
    return rank >= 0;
  }
  /* Whether each size is a number or has a name. */
  bool complete() const {
    for (int64_t i = 0; i < rank; ++i)
      if (!known(i) && names[i][0] == '\0') return false;
    return rank >= 0;
  }

  bool append(int64_t size, const char *name = "") {
    if (rank == OPC_MAX_RANK) return false;
    sizes[rank] = size;
    names[rank++] = name;
    return true;
  }

  /* Broadcasts axes [from, to) of a shape into the own ones from `base` on, both aligned at their ends. False where an unknown size leaves
   * the result open. */
  bool broadcast(int64_t base, const SymbolicShape &shape, int64_t from, int64_t to) {
    while (rank - base < to - from) {
      if (!append(1)) return false;
      memmove(sizes + base + 1, sizes + base, static_cast<size_t>(rank - 1 - base) * sizeof *sizes);
      memmove(names + base + 1, names + base, static_cast<size_t>(rank - 1 - base) * sizeof *names);
      sizes[base] = 1;
      names[base] = "";
    }
    for (int64_t i = 1; i <= to - from; ++i) {
      const int64_t source = to - i, target = rank - i;
      const bool same = shape.sizes[source] == sizes[target] && strcmp(shape.names[source], names[target]) == 0;
      if (same || shape.sizes[source] == 1) continue;
      if (sizes[target] == 1 || (shape.known(source) && !known(target))) {
        sizes[target] = shape.sizes[source];
        names[target] = shape.names[source];
      } else if (!known(target) && !shape.known(source)) {
        return false; /* two names: either may be 1 */
      }
    }
    return true;
  }

  /* Adds the axes of an input that are listed, or the others. */
  bool among(const SymbolicShape &input, const Axes &a, const Attributed &attributed) {
    for (int64_t i = 0; i < input.rank; ++i) {
      const bool listed = attributed.lists(i, input.rank);
      if (listed == (a.size == 1)) {
        if (!append(input.sizes[i], input.names[i])) return false;
      } else if (a.more && attributed.keeps) {
        if (!append(1)) return false;
      }
    }
    return true;
  }

  /* Adds the axes of an input in the order of a permutation, or in the order that it is from; false where it is none. */
  bool permuted(const SymbolicShape &input, bool back, const Attributed &attributed) {
    const int64_t base = rank;
    for (int64_t i = 0; i < input.rank; ++i) {
      if (!append(-1)) return false;
    }
    if (attributed.listed == nullptr) return true; /* as many axes, of sizes that a host does not know which does not read lists */
    if (attributed.length > 0 && attributed.length != input.rank) return false;
    for (int64_t i = 0; i < input.rank; ++i) {
      const int64_t axis = attributed.length == 0 ? input.rank - 1 - i : axis_of({Place::kAxis, 0}, input.rank, attributed.listed[i]);
      if (axis < 0 || axis >= input.rank) return false;
      const int64_t target = back ? axis : i, source = back ? i : axis;
      sizes[base + target] = input.sizes[source];
      names[base + target] = input.names[source];
    }
    return true;
  }

  /* Becomes an output's shape, of its axes and the inputs, NULL for one that is not given; false where not even the rank is known. */
  bool make(const OutputShape &output, const SymbolicShape *const *inputs, const Attributed &attributed) {
    const int64_t axis = attributed.axis;
    rank = 0;
    int64_t base = 0;
    bool continued = false;
    for (int i = 0; i < output.count; ++i) {
      const Axes &a = output.axes[i];
      if (a.kind == Axes::kSize || a.kind == Axes::kComputed) {
        if (a.size < 0 || !append(a.kind == Axes::kSize ? a.size : -1)) return false;
        continue;
      }
      if (!continued) base = rank;
      continued = a.kind == Axes::kBroadcast && a.more;
      const SymbolicShape *input = inputs[a.input];
      if (a.kind == Axes::kBroadcast && (input == nullptr || input->rank == 0)) continue;
      if (input == nullptr || input->rank < 0) return false;
      if (a.kind == Axes::kPlaced) {
        const int64_t target = axis_of({Place::kAxis, 0}, rank, attributed.placed[a.from.offset]);
        const int64_t source = axis_of({Place::kAxis, 0}, input->rank, attributed.placed[a.to.offset]);
        if (target < 0 || target >= rank || source < 0 || source >= input->rank) return false;
        sizes[target] = input->sizes[source];
        names[target] = input->names[source];
        continue;
      }
      if (a.kind == Axes::kAmong) {
        if (attributed.listed == nullptr || !among(*input, a, attributed)) return false;
        continue;
      }
      if (a.kind == Axes::kPermuted) {
        if (!permuted(*input, a.size > 0, attributed)) return false;
        continue;
      }
      const int64_t from = axis_of(a.from, input->rank, axis), to = axis_of(a.to, input->rank, axis);
      if (from < 0 || to < from || to > input->rank) return false;
      if (a.kind == Axes::kBroadcast && !broadcast(base, *input, from, to)) return false;
      for (int64_t j = from; a.kind == Axes::kCopy && j < to; ++j)
        if (!append(input->sizes[j], input->names[j])) return false;
    }
    return true;
  }
};

}  // namespace opc

#endif /* OPC_CORE_OUTPUT_AXES_H */
