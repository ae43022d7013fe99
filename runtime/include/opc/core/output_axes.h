/* How an output's shape is made of the inputs', for hosts that build graphs whose sizes are not all known yet. */
#ifndef OPC_CORE_OUTPUT_AXES_H
#define OPC_CORE_OUTPUT_AXES_H

#include <stdint.h>

namespace opc {

/* A place among an input's axes: counted from the first, from behind the last, or from the axis that an attribute places. */
struct Place {
  enum Base { kStart, kEnd, kAxis } base;
  int offset;
};

/* Some axes of an output's shape: axes [from, to) of an input, a fixed size, what several inputs' axes broadcast to, or one that only
 * the kernel's own inference can tell: `size` of them, or -1 when even their number is not known. `more` continues a broadcast. */
struct Axes {
  enum Kind { kCopy, kSize, kBroadcast, kComputed } kind;
  int input;
  Place from, to;
  int64_t size;
  bool more;
};

struct OutputShape {
  int count;
  const Axes *axes;
};

/* The axis a place stands for; below 0 or beyond the rank where the shape does not fit the op. */
inline int64_t axis_of(Place place, int64_t rank, int64_t axis) {
  switch (place.base) {
    case Place::kStart: return place.offset;
    case Place::kEnd: return rank + place.offset;
    default: return (axis < 0 ? axis + rank : axis) + place.offset;
  }
}

}  // namespace opc

#endif /* OPC_CORE_OUTPUT_AXES_H */
