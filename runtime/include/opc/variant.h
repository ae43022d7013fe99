/* Instruction-set variants: one source file compiled several times, each in a namespace of its own, and chosen at run time.
 *
 * A file is compiled with -DOPC_VARIANT=baseline, v3 or v4 (the levels of the x86-64 psABI). Whatever an include defines with code in
 * it must lie in `inline namespace OPC_VARIANT` or be `static`: otherwise the linker would keep one variant's copy for all.
 */
#ifndef OPC_VARIANT_H
#define OPC_VARIANT_H

#ifndef OPC_VARIANT
#define OPC_VARIANT baseline
#endif

/* OPC_DECLARE_VARIANTS declares the loops `name` of every variant; OPC_CALL_VARIANT calls the best one this machine can run. */
#if defined(__x86_64__)
#define OPC_DECLARE_VARIANTS(name, ...)                    \
  namespace name##_loops {                                 \
  namespace baseline { int32_t name(__VA_ARGS__); }        \
  namespace v3 { int32_t name(__VA_ARGS__); }              \
  namespace v4 { int32_t name(__VA_ARGS__); }              \
  }
#define OPC_CALL_VARIANT(name, ...)                                          \
  (opc::runs_v4()   ? name##_loops::v4::name(__VA_ARGS__)                    \
   : opc::runs_v3() ? name##_loops::v3::name(__VA_ARGS__)                    \
                    : name##_loops::baseline::name(__VA_ARGS__))

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
#define OPC_DECLARE_VARIANTS(name, ...) \
  namespace name##_loops {              \
  namespace baseline { int32_t name(__VA_ARGS__); } \
  }
#define OPC_CALL_VARIANT(name, ...) name##_loops::baseline::name(__VA_ARGS__)
#endif

#endif  // OPC_VARIANT_H
