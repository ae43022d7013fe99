/* Some hosts have the processor take denormal numbers for zero while they run a model. Kernels compute what is written. */
#ifndef OPC_CORE_DENORMALS_H
#define OPC_CORE_DENORMALS_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace opc {

/* While one lives, its thread and the threads that it starts compute with denormal numbers. */
class KeptDenormals {
 public:
  KeptDenormals() : before_(read()) { write(before_ & ~flushing); }
  ~KeptDenormals() { write(before_); }
  KeptDenormals(const KeptDenormals &) = delete;
  KeptDenormals &operator=(const KeptDenormals &) = delete;

 private:
#if defined(__SSE2__)
  using Word = uint32_t;
  static constexpr Word flushing = 0x8040; /* flush to zero, denormals are zeros */
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word flushing = Word{1} << 24; /* FZ */
  static Word read() {
    Word word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) { __asm__ volatile("msr fpcr, %0" : : "r"(word)); }
#else
  using Word = uint32_t;
  static constexpr Word flushing = 0;
  static Word read() { return 0; }
  static void write(Word) {}
#endif
  Word before_;
};

}  // namespace opc

#endif /* OPC_CORE_DENORMALS_H */
