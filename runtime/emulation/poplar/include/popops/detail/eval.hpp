#ifndef popops_detail_eval_hpp
#define popops_detail_eval_hpp

#include <poplar/Program.hpp>
#include <popops/detail/types.hpp>

namespace popops {
namespace detail {

/// One step of a stack machine. Every value has the type that the device computes it in: a half is rounded after
/// each step.
struct Step {
  enum class Kind : unsigned char { Load, Constant, Cast, Unary, Binary, Ternary } kind;
  unsigned char op;
  poplar::Type in, out;
  unsigned input; // of a load
  union {
    float real;
    std::int32_t integer;
  }; // of a constant
};

struct Steps {
  std::vector<Step> steps;
  std::vector<unsigned> inputs; // numbers of the placeholders that are read, each once
  poplar::Type type;            // of the result
  std::size_t depth = 0;        // of the stack
};

/// Rewrites, types and compiles; poplibs_error where the library would refuse.
POPLAR_EMULATION_FUNCTION Steps compile(const expr::Expr &e, const std::vector<poplar::Tensor> &tensors,
                                        bool rewrite);
/// Computes the elements and gives them in the device's types, densely. Every tensor has n elements.
POPLAR_EMULATION_FUNCTION std::vector<unsigned char> evaluate(const Steps &steps,
                                                              const std::vector<poplar::Tensor> &tensors,
                                                              std::size_t n, const poplar::detail::Runtime &runtime,
                                                              const std::string &user);

inline bool isReal(const poplar::Type &t) { return t == poplar::FLOAT || t == poplar::HALF; }

/// Dense elements of the device's type `t` as floats or as integers, and back.
POPLAR_EMULATION_FUNCTION void toReals(const poplar::Type &t, const void *from, float *to, std::size_t n);
POPLAR_EMULATION_FUNCTION void fromReals(const poplar::Type &t, const float *from, void *to, std::size_t n);
POPLAR_EMULATION_FUNCTION void toIntegers(const poplar::Type &t, const void *from, std::int32_t *to, std::size_t n);
POPLAR_EMULATION_FUNCTION void fromIntegers(const poplar::Type &t, const std::int32_t *from, void *to, std::size_t n);

} // namespace detail
} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/scalar_impl.hpp>
#include <popops/detail/eval_impl.hpp>
#endif
#endif
