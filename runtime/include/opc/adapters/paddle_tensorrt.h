/* How Paddle runs a custom operator inside TensorRT: by a plugin of Paddle's own, which asks the operator for its sizes and formats.
 *
 * For sources that are compiled with PADDLE_WITH_TENSORRT, against a Paddle that was.
 */
#ifndef OPC_ADAPTERS_PADDLE_TENSORRT_H
#define OPC_ADAPTERS_PADDLE_TENSORRT_H

#include <exception>
#include <utility>

#include "opc/adapters/paddle.h"
#include "opc/adapters/tensorrt_shapes.h"

namespace opc {
namespace pd {

/* An operator's inputs by name, and what makes the sizes of its outputs. */
template <class A>
struct Expressions {
  const trt::Operand *operands;
  void (*shapes)(trt::Shapes &s, const A &attributes);
};

template <class A>
A attributes_type(const Op<A> &);
template <class T>
using Attributes = decltype(attributes_type(std::declval<T>()));

/* The sizes of one output. Paddle's plugin asks where an error ends the process, so a mistake is said and there are no sizes: their
 * number is -1. */
template <const auto &op, const auto &expressions>
nvinfer1::DimsExprs tensorrt_sizes(std::pair<int32_t, int32_t> output_and_inputs, const nvinfer1::DimsExprs *inputs,
                                   nvinfer1::IExprBuilder &builder, const Values &values) {
  nvinfer1::DimsExprs made{-1, {}};
  const auto [output, count] = output_and_inputs;
  try {
    if (count != op.inputs) refuse("%s has %d inputs, but %d are given", op.name, op.inputs, static_cast<int>(count));
    Arguments arguments(op.name, values);
    Attributes<decltype(op)> attributes{};
    op.take(arguments, attributes);
    const std::vector<trt::Sizes> given = trt::sizes_of(inputs, count);
    const trt::Sizes *known[max_operands] = {};
    for (int32_t i = 0; i < count; ++i) known[i] = &given[static_cast<size_t>(i)];
    trt::ShapeBuilder s(op.name, expressions.operands, known, &builder);
    expressions.shapes(s, attributes);
    if (!s.ok || !s.write(output, made)) made.nbDims = -1;
  } catch (const std::exception &error) {
    trt::refuse("%s", error.what());
  }
  return made;
}

}  // namespace pd
}  // namespace opc

#endif /* OPC_ADAPTERS_PADDLE_TENSORRT_H */
