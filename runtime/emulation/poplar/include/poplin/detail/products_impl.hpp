#ifndef poplin_detail_products_impl_hpp
#define poplin_detail_products_impl_hpp

#include <poplin/detail/products.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

namespace poplin {
namespace detail {

POPLAR_EMULATION_FUNCTION void checkOperands(const ProductNode &node) {
  const std::string user = node.user();
  for (const poplar::Tensor *t : {&node.a, &node.b, &node.out})
    if (!popops::detail::isReal(t->elementType()))
      throw poputil::poplibs_error(user + ": elements of type " + t->elementType().toString().cloneAsString() +
                                   "; only half and float are supported");
  if (node.a.elementType() != node.b.elementType())
    throw poputil::poplibs_error(user + ": the operands have types " + node.a.elementType().toString().cloneAsString() +
                                 " and " + node.b.elementType().toString().cloneAsString());
  if (node.a.elementType() == poplar::FLOAT && node.out.elementType() == poplar::HALF)
    throw poputil::poplibs_error(user + ": the output type of float operands must be float");
  poplar::detail::requireWriteable(node.out, user);
  if (node.out.intersectsWith(node.a) || node.out.intersectsWith(node.b))
    throw poplar::graph_connection_error(user + ": the output meets an operand");
}

POPLAR_EMULATION_FUNCTION poplar::Tensor linear(poplar::Graph &graph, const poplar::Type &type,
                                                const std::vector<std::size_t> &shape,
                                                const poplar::DebugContext &debugContext) {
  const poplar::Tensor t = graph.addVariable(type, shape, debugContext);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

} // namespace detail
} // namespace poplin

#endif
