/* The vectors and strips that the inner loops of contractions work in. For the files compiled once for each instruction-set variant. */
#ifndef OPC_CONTRACTION_VECTORS_H
#define OPC_CONTRACTION_VECTORS_H

#include "opc/rows/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

#if defined(__AVX512F__) || defined(__aarch64__)
enum { strip_rows = 8 };
#else
enum { strip_rows = 4 };
#endif

template <typename T>
struct vector_of {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
};

/* Of two elements of 16 bits each. */
typedef vector_of<int32_t>::type pairs;

/* What a kernel multiplies: packed rows, or rows that lie anywhere, each of which is in one piece or in windows. */
enum class product { plain, windows, lines };

/* What becomes of sums: they are added up, or are results but for a factor and a zero of either sign that is added, so it makes no difference
 * whether products are rounded before. */
enum class into { sums, results };

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CONTRACTION_VECTORS_H
