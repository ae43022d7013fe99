/* What a generated Paddle library is made of: functions that Paddle calls for a custom operator, which hand its tensors and
 * attributes to a kernel and to the kernel's own shape inference.
 *
 * Only two of Paddle's headers are taken, since they cost most of an op's build. Nothing here is Python's, so that the library also
 * serves programs without it. */
#ifndef OPC_ADAPTERS_PADDLE_H
#define OPC_ADAPTERS_PADDLE_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "opc/abi.h"
#include "opc/core/denormals.h"
#include "opc/core/output_axes.h"
#include "opc/core/pages.h"
#include "opc/adapters/on_device.h"
#include "opc/adapters/paddle_arguments.h"
#include "opc/core/tensor.h"
#include "paddle/phi/api/include/api.h"

/* Runs a kernel's loop on the library's own threads, since Paddle lends none; defined by opc/host_threads.c. */
extern "C" void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);

namespace opc {
namespace pd {

/* The most operands an op may have on one side. */
constexpr int max_operands = 32;

/* One operator. `A` is the family's attribute struct. `masked`: the last attribute says which outputs are wanted. `like` holds, for
 * each input, -1 or the position of the input whose shape a missing one takes, which then counts as zeros; NULL for none. */
template <class A>
struct Op {
  const char *name;
  int inputs, outputs;
  bool masked;
  const bool *optional; /* of each input, whether the shape of a scalar says that it is missing */
  const int *like;
  const OutputShape *shapes;                                       /* where sizes are not known */
  Attributed (*attributed)(const A &);                             /* what attributes say of axes; NULL for nothing */
  void (*take)(Arguments &, A &);                                  /* reads the attributes */
  void (*some_types)(const A &, dtype *inputs);                    /* element types that the inputs may have */
  void (*types)(const A &, const dtype *inputs, dtype *outputs);   /* the outputs' element types */
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
  OnDevice<A> device;
};

/* The first element type that is known: a type variable is that of any of its operands that is given. */
template <class... Rest>
dtype first(dtype one, Rest... rest) {
  if constexpr (sizeof...(rest) > 0)
    return one != dtype_unknown ? one : first(rest...);
  else
    return one;
}

inline dtype acc(dtype type) { return type == dtype_unknown ? type : accumulator_dtype(type); }

/* The views of a call's tensors that kernels take. */
class Views {
 public:
  DLTensor *of_shape(int index, const std::vector<int64_t> &sizes, dtype element) {
    DLTensor &view = views_[index];
    shapes_[index] = sizes;
    const DLDataType type = row_of(element).dlpack;
    view = {nullptr, {kDLCPU, 0}, static_cast<int32_t>(sizes.size()), type, shapes_[index].data(), nullptr, 0};
    return &view;
  }

  /* Paddle hands contiguous tensors to custom operators, except in a static graph, where a view of another tensor may come. */
  DLTensor *of(int index, const Tensor &tensor) {
    DLTensor &view = views_[index];
    const auto &sizes = tensor.dims();
    shapes_[index].assign(sizes.Get(), sizes.Get() + sizes.size());
    view = {const_cast<void *>(tensor.data()), {tensor.is_gpu() ? kDLCUDA : kDLCPU, tensor.place().GetDeviceId()}, sizes.size(),
            to_dlpack(tensor.dtype()), shapes_[index].data(), nullptr, 0};
    if (!tensor.is_contiguous()) {
      const auto &steps = tensor.strides();
      strides_[index].assign(steps.Get(), steps.Get() + steps.size());
      view.strides = strides_[index].data();
    }
    return &view;
  }

  /* Zeros of the shape of another view: one element, read again and again. */
  DLTensor *zeros(int index, const DLTensor &like, void *zero) {
    DLTensor &view = views_[index];
    strides_[index].assign(static_cast<size_t>(like.ndim), 0);
    view = like;
    view.data = zero;
    view.strides = strides_[index].data();
    view.byte_offset = 0;
    return &view;
  }

 private:
  DLTensor views_[max_operands];
  std::vector<int64_t> shapes_[max_operands], strides_[max_operands];
};

/* In a static graph that is differentiated, Paddle takes no missing operand, and a tensor with `missing_rank` axes of size 0 stands for
 * one. */
constexpr int missing_rank = 9;

template <class Sizes>
bool stands_for_none(const Sizes &sizes) {
  bool empty = static_cast<int>(sizes.size()) == missing_rank;
  for (int i = 0; empty && i < missing_rank; ++i) empty = sizes[static_cast<size_t>(i)] == 0;
  return empty;
}

/* Whether an operand is there. Neither an absent one nor the gradient of an unused output has memory; a tensor without elements need
 * not have any, but has a type. */
inline bool is_given(const Tensor &tensor) {
  if (!tensor.defined()) return false;
  if (tensor.has_allocation() && tensor.numel() > 0) return true;
  return tensor.dtype() != DataType::UNDEFINED && tensor.numel() == 0 && !stands_for_none(tensor.shape());
}

/* Raises what a kernel refused. */
inline void check(int32_t code, const char *op, const char *message) {
  if (code != OPC_OK) refuse("%s", message[0] ? message : op);
}

/* An op as the gradient of another, which Paddle calls without a mask. */
template <class A>
constexpr Op<A> gradient(Op<A> op, const int *like) {
  op.masked = false;
  op.like = like;
  return op;
}

template <class A>
A attributes_of(const Op<A> &op, Arguments &arguments) {
  A attributes = {};
  op.take(arguments, attributes);
  return attributes;
}

/* Computes in the host's memory. "opc/adapters/paddle_cuda.h" has another target. */
class HostTarget {
 public:
  static void see(const char *, const Tensor &) {}
  static phi::Place place() { return phi::CPUPlace(); }
  static void made(const DLTensor &view, size_t bytes) { opc_advise_huge_pages(view.data, bytes); }
  static void *zeros() {
    static uint64_t zero = 0;
    return &zero;
  }

  template <class A>
  static int32_t infer(const Op<A> &op, const A &attributes, const DLTensor *const *inputs, opc_tensor_type *types, char *message,
                       int64_t size) {
    const opc_context lent = {nullptr, nullptr, message, size};
    return op.infer(inputs, &attributes, types, &lent);
  }

  template <class A>
  static int32_t compute(const Op<A> &op, const A &attributes, const DLTensor *const *inputs, DLTensor *const *outputs, char *message,
                         int64_t size) {
    const KeptDenormals denormals;
    const opc_context lent = {opc_host_parallel_for, nullptr, message, size};
    return op.kernel(inputs, outputs, &attributes, &lent);
  }
};

#ifndef OPC_PADDLE_TARGET
#define OPC_PADDLE_TARGET HostTarget
#endif

/* Infers the outputs, which needs all sizes of the inputs. */
template <class Target, class A>
void infer(Target &target, const Op<A> &op, const A &attributes, const DLTensor *const *inputs, opc_tensor_type *types) {
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  check(target.infer(op, attributes, inputs, types, message, sizeof message), op.name, message);
}

/* Runs the kernel: what Paddle calls in every mode. An output that is not wanted, or whose shape only absent operands have,
 * becomes a tensor of no elements. `in_place` holds the position of the input that each output is written to. */
template <class Target, class A>
void run(const Op<A> &op, CustomOpKernelContext *context, const int *in_place = nullptr) {
  const Values &values = context->Attrs();
  Arguments arguments(op.name, values);
  const A attributes = attributes_of(op, arguments);
  Target target;
  Views views, results;
  const DLTensor *inputs[max_operands];
  for (int i = 0; i < op.inputs; ++i) {
    inputs[i] = nullptr;
    const auto &range = context->InputRangeAt(i);
    if (range.first == range.second || !is_given(context->InputAt(range.first))) continue;
    const Tensor &tensor = context->InputAt(range.first);
    target.see(op.name, tensor);
    inputs[i] = views.of(i, tensor);
  }
  for (int i = 0; op.like != nullptr && i < op.inputs; ++i)
    if (inputs[i] == nullptr && op.like[i] >= 0) inputs[i] = views.zeros(i, *inputs[op.like[i]], target.zeros());
  opc_tensor_type types[max_operands];
  infer(target, op, attributes, inputs, types);
  DLTensor *outputs[max_operands] = {};
  std::vector<Tensor> made;
  for (int i = 0; i < op.outputs; ++i) {
    if (in_place != nullptr) {
      outputs[i] = const_cast<DLTensor *>(inputs[in_place[i]]);
      continue;
    }
    const auto &range = context->OutputRangeAt(i);
    if (range.first == range.second) continue;  // of a gradient that Paddle does not ask for
    const opc_tensor_type &type = types[i];
    const bool computed = type.ndim >= 0 && (!op.masked || Arguments::wanted(values, i));
    std::vector<int64_t> sizes(type.shape, type.shape + (computed ? type.ndim : 0));
    if (!computed) sizes.push_back(0);
    const DataType element = to_paddle(type.dtype);  // not known where only absent operands have it
    made.push_back(::paddle::experimental::empty(sizes, element == DataType::UNDEFINED ? DataType::FLOAT32 : element, target.place()));
    if (!computed) continue;
    outputs[i] = results.of(i, made.back());
    target.made(*outputs[i], static_cast<size_t>(made.back().numel()) * static_cast<size_t>(itemsize(type.dtype)));
  }
  char message[1024];
  message[0] = '\0'; /* the rest is not worth a call's time */
  check(target.compute(op, attributes, inputs, outputs, message, sizeof message), op.name, message);
  if (in_place == nullptr) context->ValidateAndAssignOutputs(made);
}

/* One output's shape by the table of its axes, with -1 for every size that is not known. */
inline std::vector<int64_t> shape_by_axes(const char *op, const OutputShape &axes, const SymbolicShape *const *inputs,
                                          const Attributed &attributed) {
  SymbolicShape found;
  if (!found.make(axes, inputs, attributed)) refuse("%s: the number of an output's axes is not known in a static graph", op);
  return {found.sizes, found.sizes + found.rank};
}

/* Whether the caller wants an output of an operator. */
template <class A>
bool wanted(const Op<A> &op, const Values &values, int output) {
  return !op.masked || Arguments::wanted(values, output);
}

/* The shapes of the outputs where those of the inputs are known, by the kernel's own rules. */
template <class A>
Shapes known_shapes(const Op<A> &op, const A &attributes, const Shapes &given, const bool *missing, const Values &values) {
  dtype elements[max_operands];
  op.some_types(attributes, elements);
  Views views;
  const DLTensor *inputs[max_operands];
  for (int i = 0; i < op.inputs; ++i)
    inputs[i] = missing[i] ? nullptr : views.of_shape(i, given[static_cast<size_t>(i)], elements[i]);
  opc_tensor_type types[max_operands];
  HostTarget target;
  infer(target, op, attributes, inputs, types);
  Shapes found;
  for (int i = 0; i < op.outputs; ++i) {
    const bool made = types[i].ndim >= 0 && wanted(op, values, i);
    found.emplace_back(types[i].shape, types[i].shape + (made ? types[i].ndim : 0));
    if (!made) found.back().push_back(0);
  }
  return found;
}

/* The shapes of the outputs, with -1 for a size that is not known while a graph is built. Paddle tells a missing operand by the
 * shape of a scalar here; what it is does not matter then, for no other operand takes its axes from a scalar.
 *
 * Paddle calls this where an error ends the process. So it raises none: shapes that do not fit are refused when the kernel runs. */
template <class A>
Shapes shapes(const Op<A> &op, Shapes given, const Values &values) {
  bool known = true, missing[max_operands] = {};
  for (int i = 0; i < op.inputs; ++i) {
    std::vector<int64_t> &sizes = given[static_cast<size_t>(i)];
    missing[i] = stands_for_none(sizes) || (op.optional[i] && sizes.empty());
    if (missing[i]) sizes.clear();
    for (const int64_t size : sizes) known = known && size >= 0;
  }
  Shapes found;
  try {
    Arguments arguments(op.name, values);
    const A attributes = attributes_of(op, arguments);
    if (known) return known_shapes(op, attributes, given, missing, values);
    const Attributed attributed = op.attributed == nullptr ? Attributed(0) : op.attributed(attributes);
    SymbolicShape inputs[max_operands];
    const SymbolicShape *each[max_operands];
    for (int i = 0; i < op.inputs; ++i) {
      inputs[i] = SymbolicShape(given[static_cast<size_t>(i)]);
      each[i] = &inputs[i];
    }
    for (int i = 0; i < op.outputs; ++i)
      found.push_back(wanted(op, values, i) ? shape_by_axes(op.name, op.shapes[i], each, attributed) : std::vector<int64_t>{0});
  } catch (const ::common::enforce::EnforceNotMet &) {
    found.assign(static_cast<size_t>(op.outputs), {-1});
  }
  return found;
}

/* The element types of the outputs; float32 where the inputs do not determine it, which the kernel will refuse. */
template <class A>
DTypes types(const Op<A> &op, const DTypes &given, const Values &values) {
  DTypes found(static_cast<size_t>(op.outputs), DataType::FLOAT32);
  try {
    Arguments arguments(op.name, values);
    const A attributes = attributes_of(op, arguments);
    dtype inputs[max_operands], outputs[max_operands];
    for (int i = 0; i < op.inputs; ++i) inputs[i] = dtype_of(to_dlpack(given[static_cast<size_t>(i)]));
    op.types(attributes, inputs, outputs);
    for (int i = 0; i < op.outputs; ++i)
      if (outputs[i] != dtype_unknown) found[static_cast<size_t>(i)] = to_paddle(outputs[i]);
  } catch (const ::common::enforce::EnforceNotMet &) {
    return found;
  }
  return found;
}

/* The functions that Paddle's macros take, for one operator each. */
template <const auto &op>
void kernel(CustomOpKernelContext *context) {
  run<OPC_PADDLE_TARGET>(op, context);
}

/* Writes each output to the input that Paddle's map of in-place operands names for it. */
template <const auto &op, const auto &positions>
void kernel_in_place(CustomOpKernelContext *context) {
  run<OPC_PADDLE_TARGET>(op, context, positions);
}

template <const auto &op>
Shapes infer_shapes(const Shapes &given, const std::vector<Shapes> &, const Values &values) {
  return shapes(op, given, values);
}

template <const auto &op>
DTypes infer_types(const DTypes &given, const std::vector<DTypes> &, const Values &values) {
  return types(op, given, values);
}

/* With all outputs in place, there is nothing to infer. */
inline Shapes no_shapes(const Shapes &, const std::vector<Shapes> &, const Values &) { return {}; }
inline DTypes no_types(const DTypes &, const std::vector<DTypes> &, const Values &) { return {}; }

}  // namespace pd
}  // namespace opc

#endif /* OPC_ADAPTERS_PADDLE_H */
