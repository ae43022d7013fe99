/* Integers as wider ones. For the files compiled once for each instruction-set variant. */
#ifndef OPC_CORE_WIDEN_H
#define OPC_CORE_WIDEN_H

#include <string.h>

#include <type_traits>

#include "opc/core/lanes.h"

namespace opc {
inline namespace OPC_VARIANT {

template <typename T>
struct vector_with {
  typedef T type __attribute__((vector_size(vector_bytes)));
};

/* The instruction that widens integers as they are read: compilers make several of a conversion of vectors. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512BW__)
#define OPC_WIDEN(code) __builtin_ia32_pmov##code##512_mask(read, lanes{}, -1)
#elif defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
#define OPC_WIDEN(code) __builtin_ia32_pmov##code##256(read)
#endif

/* Integers of 8 or 16 bits, from `from` on, in the lanes of a vector of Wide. */
template <typename Wide, typename Stored>
OPC_INLINE typename vector_with<Wide>::type widen_integers(const Stored *from) {
  constexpr int bytes = vector_bytes / sizeof(Wide) * sizeof(Stored);
#if defined(OPC_WIDEN)
  constexpr bool has_sign = Stored(-1) < Stored(0);
  typedef std::conditional_t<sizeof(Stored) == 1, char, int16_t> element;
  typedef element elements __attribute__((vector_size(bytes < 16 ? 16 : bytes)));
  typedef typename vector_with<std::make_signed_t<Wide>>::type lanes;
  elements read;
  if constexpr (bytes < 16) {
    typedef int64_t words __attribute__((vector_size(16)));
    int64_t word;
    memcpy(&word, from, sizeof word);
    read = reinterpret_cast<elements>(words{word, 0});
  } else {
    memcpy(&read, from, sizeof read);
  }
  lanes result;
  if constexpr (sizeof(Wide) == 2) {
    result = has_sign ? OPC_WIDEN(sxbw) : OPC_WIDEN(zxbw);
  } else if constexpr (sizeof(Stored) == 1) {
    result = has_sign ? OPC_WIDEN(sxbd) : OPC_WIDEN(zxbd);
  } else {
    result = has_sign ? OPC_WIDEN(sxwd) : OPC_WIDEN(zxwd);
  }
  return reinterpret_cast<typename vector_with<Wide>::type>(result);
#else
  typedef Stored narrow __attribute__((vector_size(bytes), aligned(alignof(Stored)), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const narrow *>(from), typename vector_with<Wide>::type);
#endif
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_WIDEN_H
