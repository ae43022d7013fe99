/* Instruction-set variants: one source file compiled several times, each in a namespace of its own, and chosen at run time.
 *
 * A file is compiled with -DOPC_VARIANT=baseline, v3 or v4 (the levels of the x86-64 psABI). Whatever an include defines with code in
 * it must lie in `inline namespace OPC_VARIANT` or be `static`: otherwise the linker would keep one variant's copy for all.
 */
#ifndef OPC_CORE_VARIANT_H
#define OPC_CORE_VARIANT_H

#ifndef OPC_VARIANT
#define OPC_VARIANT baseline
#endif

/* Inlined always: a call left in a loop keeps the loop from being vectorised. Without optimization nothing is, and copies of what is
 * inlined take a third of the time to compile. */
#if defined(__CUDACC__)
#define OPC_INLINE __host__ __device__ static inline
#elif defined(__OPTIMIZE__)
#define OPC_INLINE __attribute__((always_inline)) static inline
#else
#define OPC_INLINE static inline
#endif

/* Of functions that training seldom calls: those passes of -O2 alone that their loops gain by, since all take as long again. A proof
 * on this machine alone may do without these too. */
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#if defined(OPC_SELDOM_UNOPTIMISED)
#define OPC_SELDOM __attribute__((optimize("O0")))
#else
#define OPC_SELDOM                                                                                                     \
  __attribute__((optimize("O1", "tree-vrp", "tree-pre", "gcse", "schedule-insns2", "expensive-optimizations",         \
                          "inline-small-functions", "rerun-cse-after-loop", "align-loops", "align-jumps", "caller-saves")))
#endif
#else
#define OPC_SELDOM
#endif

/* What a GPU calls too. */
#if defined(__CUDACC__)
#define OPC_HOST_DEVICE __host__ __device__
#else
#define OPC_HOST_DEVICE
#endif

/* For tests: -DOPC_FORCE_VARIANT=v3 on the file of the entry functions makes them call that variant, whatever the machine has. */
#if defined(OPC_FORCE_VARIANT)
#define OPC_FORCED_VARIANT return OPC_FORCE_VARIANT::loops;
#else
#define OPC_FORCED_VARIANT
#endif

/* OPC_DECLARE_VARIANTS(table) declares `const table loops` of every variant, and best(), the one for this machine. */
#if defined(__x86_64__)
#define OPC_DECLARE_VARIANTS(table)                      \
  namespace baseline { extern const table loops; }       \
  namespace v3 { extern const table loops; }             \
  namespace v4 { extern const table loops; }             \
  static inline const table &best() {                    \
    OPC_FORCED_VARIANT                                   \
    return opc::runs_v4()   ? v4::loops                  \
           : opc::runs_v3() ? v3::loops                  \
                            : baseline::loops;           \
  }

namespace opc {
static inline bool runs_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static inline bool runs_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
}  // namespace opc
#else
#define OPC_DECLARE_VARIANTS(table)                \
  namespace baseline { extern const table loops; } \
  static inline const table &best() { return baseline::loops; }
#endif

#endif  // OPC_CORE_VARIANT_H
