#ifndef popops_detail_types_hpp
#define popops_detail_types_hpp

#include <popops/Expr.hpp>
#include <poputil/exceptions.hpp>
#include <unordered_map>

namespace popops {
namespace detail {

using ConstTypes = std::unordered_map<const expr::Expr *, poplar::Type>;

/// An expression after the library's rewriting, with the type that the rewriting believes it to have: that of its
/// first operand, which for a comparison or a constant isn't the type it has.
struct Rewritten {
  expr::Part expression;
  poplar::Type type;
};

/// The library's rewriting: neutral elements vanish, some powers become roots and squares, a Select by a constant
/// becomes its branch.
POPLAR_EMULATION_FUNCTION Rewritten optimise(const expr::Expr &e, const std::vector<poplar::Type> &types);
/// The types of the constants of `e` where its placeholders have `types`; poplibs_error where they can't be inferred.
POPLAR_EMULATION_FUNCTION ConstTypes getConstType(const expr::Expr &e, const std::vector<poplar::Type> &types);

} // namespace detail
} // namespace popops

#ifndef POPLAR_EMULATION_LIBRARIES
#include <popops/detail/types_impl.hpp>
#endif
#endif
