/* What a generated MindSpore library is made of: the functions that `ops.Custom(..., func_type="aot")` looks for, over the kernel C ABI
 * of opc/abi.h.
 *
 * No header of MindSpore is included. It calls three functions by name, `Fn`, `FnInferShape` and `FnInferType`, which take C arrays,
 * standard containers and an `AotExtra`, MindSpore's view of the primitive. MindSpore is built with the old std::string, and so must be
 * what includes this file: _GLIBCXX_USE_CXX11_ABI=0. An exception that these functions throw becomes MindSpore's own error, with the
 * text in it.
 */
#ifndef OPC_ADAPTERS_MINDSPORE_H
#define OPC_ADAPTERS_MINDSPORE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "opc/abi.h"
#include "opc/adapters/on_device.h"
#include "opc/adapters/packed.h"
#include "opc/core/denormals.h"
#include "opc/core/output_axes.h"
#include "opc/core/shape.h"

#if _GLIBCXX_USE_CXX11_ABI
#error "MindSpore's strings are those of _GLIBCXX_USE_CXX11_ABI=0"
#endif

/* Runs a kernel's loop on the library's own threads, since MindSpore lends none. */
extern "C" void opc_host_parallel_for(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument);

namespace opc {
namespace mindspore {

using Shape = std::vector<int64_t>;

/* MindSpore's AotExtra as far as it is used: these functions stand in this order in its table, and the sizes of the memory that an
 * `FnInit` asks for come first in an object. */
class AotExtra {
 public:
  virtual ~AotExtra() = default;
  virtual bool HasAttr(std::string name) = 0;
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;

  std::vector<size_t> workspace;
};

/* MindSpore's number of an element type. */
using TypeId = int32_t;

constexpr dtype_number<TypeId> dtype_numbers[] = {
#define OPC_ROW(name, number) {dtype_##name, number},
    OPC_MINDSPORE_DTYPES(OPC_ROW)
#undef OPC_ROW
};

inline DLDataType to_dlpack(const char *name) {
  for (int32_t i = 0; i < dtype_count; ++i)
    if (strcmp(dtype_name(static_cast<dtype>(i)), name) == 0) return dlpack_of(static_cast<dtype>(i));
  return dlpack_of(dtype_unknown);
}

/* What the primitive carries, a list of integers: which inputs are given and which outputs are wanted, each as a mask, and then the
 * attributes in order. */
class Carried {
 public:
  explicit Carried(std::vector<int64_t> values) : values_(std::move(values)) {}

  bool given(int input) const { return (values_[0] >> input & 1) != 0; }
  bool wanted(int output) const { return (values_[1] >> output & 1) != 0; }

 protected:
  const int64_t *attributes() const { return values_.data() + 2; }

 private:
  std::vector<int64_t> values_;
};

class Arguments : public Carried, public Packed {
 public:
  explicit Arguments(std::vector<int64_t> values) : Carried(std::move(values)), Packed(attributes()) {}
};

/* The most operands an op may have on one side: as many as a mask has bits. */
constexpr int max_operands = 32;

/* One op. `A` is the family's attribute struct. `sample` are dtypes that fit the inputs, for inferring shapes alone; `types` finds
 * the outputs' dtypes from the inputs' alone. `axis` finds the axis attribute. */
template <class A>
struct Op {
  const char *name;
  int inputs, outputs;
  void (*attributes)(Arguments &, A &);
  void (*sample)(const A &, dtype *);
  int64_t (*axis)(const A &);
  const OutputShape *shapes;
  int32_t (*types)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
  int32_t (*infer)(const DLTensor *const *, const A *, opc_tensor_type *, const opc_context *);
  int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const A *, const opc_context *);
  OnDevice<A> device;
};

/* One call: its attributes, and where a refusal's message goes. */
template <class A>
struct Call {
  Arguments arguments;
  A attributes = {};
  char message[1024] = "";
  const opc_context context = {opc_host_parallel_for, nullptr, message, sizeof message};

  Call(const Op<A> &op, std::vector<int64_t> values) : arguments(std::move(values)) { op.attributes(arguments, attributes); }
  Call(const Op<A> &op, AotExtra *extra) : Call(op, extra->GetAttrIntVec("opc")) {}

  void check(int32_t code) const {
    if (code != OPC_OK) throw std::runtime_error(message);
  }
};

/* ---- Shapes ------------------------------------------------------------------------------------------------------------------ */

/* An output's shape by its axes, where not every size is known; a NULL input is not given. */
inline Shape symbolic_shape(const OutputShape &axes, const SymbolicShape *const *inputs, int64_t axis) {
  SymbolicShape out;
  return out.make(axes, inputs, axis) ? Shape(out.sizes, out.sizes + out.rank) : Shape{-2};
}

/* `FnInferShape`: the shapes of the wanted outputs. MindSpore passes those of the inputs that are given, which may have unknown sizes. */
template <class A>
std::vector<Shape> infer_shapes(const Op<A> &op, const int *ndims, const int64_t *const *shapes, AotExtra *extra) {
  Call<A> call(op, extra);
  Shape sizes[max_operands];
  SymbolicShape symbolic[max_operands];
  const SymbolicShape *known[max_operands] = {};
  DLTensor views[max_operands];
  const DLTensor *inputs[max_operands] = {};
  dtype types[max_operands];
  op.sample(call.attributes, types);
  bool concrete = true;
  for (int i = 0, next = 0; i < op.inputs; ++i) {
    if (!call.arguments.given(i)) continue;
    sizes[i].assign(shapes[next], shapes[next] + ndims[next]);
    ++next;
    if (sizes[i] == Shape{-2}) /* as MindSpore writes a shape whose rank is not known */
      symbolic[i].rank = -1;
    else
      symbolic[i] = SymbolicShape(sizes[i]);
    concrete = concrete && symbolic[i].concrete();
    views[i] = {nullptr, {kDLCPU, 0}, static_cast<int32_t>(sizes[i].size()), dlpack_of(types[i]), sizes[i].data(), nullptr, 0};
    inputs[i] = &views[i];
    known[i] = &symbolic[i];
  }
  std::vector<Shape> found;
  opc_tensor_type results[max_operands];
  if (concrete) call.check(op.infer(inputs, &call.attributes, results, &call.context));
  for (int i = 0; i < op.outputs; ++i) {
    if (!call.arguments.wanted(i)) continue;
    if (!concrete) {
      found.push_back(symbolic_shape(op.shapes[i], known, op.axis(call.attributes)));
      continue;
    }
    if (results[i].ndim < 0) throw std::runtime_error(std::string(op.name) + ": nothing given tells the shape of a wanted output");
    found.emplace_back(results[i].shape, results[i].shape + results[i].ndim);
  }
  return found;
}

/* The wanted outputs' element types, from those of all inputs; dtype_unknown for another type, and for an input that is not given. */
template <class A>
std::vector<dtype> types_of(const Op<A> &op, const Call<A> &call, const dtype *given) {
  DLTensor views[max_operands];
  const DLTensor *inputs[max_operands] = {};
  for (int i = 0; i < op.inputs; ++i) {
    if (!call.arguments.given(i)) continue;
    views[i] = {nullptr, {kDLCPU, 0}, 0, dlpack_of(given[i]), nullptr, nullptr, 0};
    inputs[i] = &views[i];
  }
  opc_tensor_type results[max_operands] = {};
  call.check(op.types(inputs, &call.attributes, results, &call.context));
  std::vector<dtype> found;
  for (int i = 0; i < op.outputs; ++i) {
    if (!call.arguments.wanted(i)) continue;
    found.push_back(dtype_of(results[i].dtype));
    if (found.back() == dtype_unknown) throw std::runtime_error(std::string(op.name) + ": nothing given tells the type of a wanted output");
  }
  return found;
}

/* `FnInferType`: the types of the wanted outputs. MindSpore passes those of the inputs that are given. */
template <class A>
std::vector<TypeId> infer_types(const Op<A> &op, const std::vector<TypeId> &given, AotExtra *extra) {
  const Call<A> call(op, extra);
  dtype elements[max_operands];
  size_t next = 0;
  for (int i = 0; i < op.inputs; ++i)
    elements[i] = call.arguments.given(i) && next < given.size() ? element_of(dtype_numbers, given[next++]) : dtype_unknown;
  std::vector<TypeId> found;
  for (const dtype element : types_of(op, call, elements)) found.push_back(number_of(dtype_numbers, element, 0));
  return found;
}

/* The same for the package's Python, by positions. Returns 0, or 1 with a message. */
template <class A>
int32_t tell_types(const Op<A> &op, const int64_t *values, int64_t count, const int32_t *given, int32_t *found, char *message,
                   int64_t size) {
  try {
    const Call<A> call(op, std::vector<int64_t>(values, values + count));
    dtype elements[max_operands];
    for (int i = 0; i < op.inputs; ++i) elements[i] = static_cast<dtype>(given[i]);
    for (const dtype element : types_of(op, call, elements)) *found++ = element;
    return 0;
  } catch (const std::exception &error) {
    snprintf(message, static_cast<size_t>(size), "%s", error.what());
    return 1;
  }
}

/* ---- Kernel ------------------------------------------------------------------------------------------------------------------ */

/* Computes in the host's memory. "opc/adapters/mindspore_cuda.h" has another target. */
struct HostTarget {
  explicit HostTarget(void *) {}
  static DLDevice device() { return {kDLCPU, 0}; }

  template <class A>
  static int32_t compute(const Op<A> &op, const Call<A> &call, const DLTensor *const *inputs, DLTensor *const *outputs, void *,
                         const AotExtra *) {
    const KeptDenormals denormals;
    return op.kernel(inputs, outputs, &call.attributes, &call.context);
  }
};

#ifndef OPC_MINDSPORE_TARGET
#define OPC_MINDSPORE_TARGET HostTarget
#endif

/* The operands of a call. MindSpore has all inputs, those that are not given with a type of none, and behind them the wanted outputs. */
struct Operands {
  DLTensor views[2 * max_operands];
  int32_t at[2 * max_operands]; /* where MindSpore has the operand of each view, -1 for one that is not there */
  const DLTensor *inputs[max_operands] = {};
  DLTensor *outputs[max_operands] = {};
  DLDevice device;
  int32_t count; /* of what MindSpore has */

  bool is_there(int view) const { return at[view] >= 0; }

  template <class A>
  void describe(const Op<A> &op, const Arguments &arguments, const int *ndims, int64_t **shapes, const char **types, DLDevice place) {
    device = place;
    count = op.inputs;
    for (int32_t &position : at) position = -1;
    for (int i = 0; i < op.inputs; ++i)
      if (arguments.given(i)) inputs[i] = add(i, i, ndims, shapes, types);
    for (int i = 0; i < op.outputs; ++i)
      if (arguments.wanted(i)) outputs[i] = add(max_operands + i, count++, ndims, shapes, types);
  }

 private:
  DLTensor *add(int view, int32_t position, const int *ndims, int64_t **shapes, const char **types) {
    at[view] = position;
    views[view] = {nullptr, device, ndims[position], to_dlpack(types[position]), shapes[position], nullptr, 0};
    return &views[view];
  }
};

/* `Fn`: computes. MindSpore passes the operands, and behind them the memory that `FnInit` has asked for. */
template <class Target, class A>
int run(const Op<A> &op, int count, void **data, int *ndims, int64_t **shapes, const char **types, void *stream, void *extra) {
  AotExtra *const asked = static_cast<AotExtra *>(extra);
  Call<A> call(op, asked);
  Target target(stream);
  Operands operands;
  operands.describe(op, call.arguments, ndims, shapes, types, target.device());
  for (int i = 0; i < 2 * max_operands; ++i)
    if (operands.is_there(i)) operands.views[i].data = data[operands.at[i]];
  void *const given = count > operands.count ? data[operands.count] : nullptr;
  call.check(target.compute(op, call, operands.inputs, operands.outputs, given, asked));
  return 0;
}

}  // namespace mindspore
}  // namespace opc

#endif /* OPC_ADAPTERS_MINDSPORE_H */
