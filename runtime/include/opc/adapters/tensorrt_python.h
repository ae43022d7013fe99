/* What the plugin class in Python calls of a library of plugins, through ctypes: attributes, types, checks, workspace and the kernels.
 *
 * Each function that returns an int32_t returns 0 where it fails, and opc_plugin_message then tells why. Types are numbers of
 * nvinfer1::DataType.
 */
#ifndef OPC_ADAPTERS_TENSORRT_PYTHON_H
#define OPC_ADAPTERS_TENSORRT_PYTHON_H

#include <memory>

#include "opc/adapters/tensorrt_library.h"
#include "opc/adapters/tensorrt_v2.h"

namespace opc {
namespace trt {

inline std::vector<Tensor> tensors_of(const GivenTensor *of, int32_t count) {
  std::vector<Tensor> found;
  for (int32_t i = 0; i < count; ++i) {
    Tensor t{dtype_of(static_cast<nvinfer1::DataType>(of[i].type)), of[i].rank, {}};
    std::copy(of[i].sizes, of[i].sizes + max_rank, t.sizes);
    found.push_back(t);
  }
  return found;
}

inline std::vector<dtype> elements_of(const int32_t *types, int32_t count) {
  std::vector<dtype> found;
  for (int32_t i = 0; i < count; ++i) found.push_back(dtype_of(static_cast<nvinfer1::DataType>(types[i])));
  return found;
}

OPC_TENSORRT_FUNCTION const char *python_message() { return last_message().c_str(); }

OPC_TENSORRT_FUNCTION Core *python_create(const Op &op, const nvinfer1::PluginField *fields, int32_t count, bool saved) {
  const nvinfer1::PluginFieldCollection given{count, fields};
  auto core = std::make_unique<Core>(op);
  return core->read(&given, saved) ? core.release() : nullptr;
}

OPC_TENSORRT_FUNCTION void python_destroy(Core *core) { delete core; }

OPC_TENSORRT_FUNCTION int32_t python_types(const Core &core, const int32_t *types, int32_t count, int32_t *made) {
  const Op &op = core.op;
  dtype outputs[max_operands];
  if (!core.output_types(elements_of(types, count).data(), count, outputs)) return 0;
  for (int32_t i = 0; i < op.outputs; ++i) {
    nvinfer1::DataType type;
    if (!to_tensorrt(outputs[i], type)) {
      return refuse("%s: TensorRT has no tensors of the dtype of %s", op.name, op.operands[op.inputs + i].name);
    }
    made[i] = static_cast<int32_t>(type);
  }
  return 1;
}

OPC_TENSORRT_FUNCTION int32_t python_supports(const Core &core, int32_t at, const int32_t *types, int32_t inputs) {
  return core.supports(at, elements_of(types, at + 1).data(), inputs);
}

OPC_TENSORRT_FUNCTION int32_t python_settle(Core &core, int32_t inputs) { return core.settle(inputs); }

OPC_TENSORRT_FUNCTION int32_t python_check(const Core &core, const GivenTensor *in, int32_t count) {
  return core.check(tensors_of(in, count).data(), count);
}

OPC_TENSORRT_FUNCTION int64_t python_workspace(const Core &core, const GivenTensor *in, int32_t count, const GivenTensor *out,
                                               bool varies) {
  return static_cast<int64_t>(workspace_of(core, tensors_of(in, count), tensors_of(out, core.op.outputs), varies));
}

OPC_TENSORRT_FUNCTION int32_t python_run(const Core &core, const GivenTensor *in, int32_t count, const GivenTensor *out,
                                         const void *const *from, void *const *to, void *workspace, cudaStream_t stream) {
  const std::vector<Tensor> given = tensors_of(in, count), made = tensors_of(out, core.op.outputs);
  return core.run(given.data(), count, made.data(), from, to, workspace, stream) == 0;
}

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_PYTHON_H */
