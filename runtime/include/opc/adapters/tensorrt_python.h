/* What the plugin class in Python calls of a library of plugins, through ctypes: attributes, types, checks, workspace and the kernels.
 *
 * Each function that returns an int32_t returns 0 where it fails, and opc_plugin_message then tells why. Types are numbers of
 * nvinfer1::DataType.
 */
#ifndef OPC_ADAPTERS_TENSORRT_PYTHON_H
#define OPC_ADAPTERS_TENSORRT_PYTHON_H

#include <memory>

#include "opc/adapters/tensorrt_v2.h"

namespace opc {
namespace trt {

/* Type and sizes of a tensor, as Python gives them. */
struct GivenTensor {
  int32_t type, rank;
  int64_t sizes[max_rank];
};

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

}  // namespace trt
}  // namespace opc

#define OPC_TENSORRT_PYTHON(op)                                                                                                    \
  extern "C" OPC_EXPORT const char *opc_plugin_message() { return opc::trt::last_message().c_str(); }                              \
  extern "C" OPC_EXPORT void *opc_plugin_create(const nvinfer1::PluginField *fields, int32_t count, int32_t saved) {               \
    const nvinfer1::PluginFieldCollection given{count, fields};                                                                    \
    auto core = std::make_unique<opc::trt::Core>(op());                                                                            \
    return core->read(&given, saved != 0) ? core.release() : nullptr;                                                              \
  }                                                                                                                                \
  extern "C" OPC_EXPORT void opc_plugin_destroy(void *of) { delete static_cast<opc::trt::Core *>(of); }                            \
  extern "C" OPC_EXPORT int32_t opc_plugin_types(const void *of, const int32_t *types, int32_t count, int32_t *made) {             \
    opc::dtype outputs[opc::trt::max_operands];                                                                                    \
    const auto *core = static_cast<const opc::trt::Core *>(of);                                                                    \
    if (!core->output_types(opc::trt::elements_of(types, count).data(), count, outputs)) return 0;                                 \
    for (int32_t i = 0; i < op().outputs; ++i) {                                                                                   \
      nvinfer1::DataType type;                                                                                                     \
      if (!opc::trt::to_tensorrt(outputs[i], type)) {                                                                              \
        return opc::trt::refuse("%s: TensorRT has no tensors of the dtype of %s", op().name, op().operands[op().inputs + i].name); \
      }                                                                                                                            \
      made[i] = static_cast<int32_t>(type);                                                                                        \
    }                                                                                                                              \
    return 1;                                                                                                                      \
  }                                                                                                                                \
  extern "C" OPC_EXPORT int32_t opc_plugin_supports(const void *of, int32_t at, const int32_t *types, int32_t inputs) {            \
    return static_cast<const opc::trt::Core *>(of)->supports(at, opc::trt::elements_of(types, at + 1).data(), inputs);             \
  }                                                                                                                                \
  extern "C" OPC_EXPORT int32_t opc_plugin_settle(void *of, int32_t inputs) {                                                      \
    return static_cast<opc::trt::Core *>(of)->settle(inputs);                                                                      \
  }                                                                                                                                \
  extern "C" OPC_EXPORT int32_t opc_plugin_check(const void *of, const opc::trt::GivenTensor *in, int32_t count) {                 \
    return static_cast<const opc::trt::Core *>(of)->check(opc::trt::tensors_of(in, count).data(), count);                          \
  }                                                                                                                                \
  extern "C" OPC_EXPORT int64_t opc_plugin_workspace(const void *of, const opc::trt::GivenTensor *in, int32_t count,               \
                                                     const opc::trt::GivenTensor *out, int32_t varies) {                           \
    const auto *core = static_cast<const opc::trt::Core *>(of);                                                                    \
    return static_cast<int64_t>(                                                                                                   \
        opc::trt::workspace_of(*core, opc::trt::tensors_of(in, count), opc::trt::tensors_of(out, op().outputs), varies != 0));     \
  }                                                                                                                                \
  extern "C" OPC_EXPORT int32_t opc_plugin_run(const void *of, const opc::trt::GivenTensor *in, int32_t count,                     \
                                               const opc::trt::GivenTensor *out, const void *const *from, void *const *to,         \
                                               void *workspace, void *stream) {                                                    \
    return static_cast<const opc::trt::Core *>(of)->run(opc::trt::tensors_of(in, count).data(), count,                             \
                                                        opc::trt::tensors_of(out, op().outputs).data(), from, to, workspace,       \
                                                        static_cast<cudaStream_t>(stream)) == 0;                                   \
  }

#endif /* OPC_ADAPTERS_TENSORRT_PYTHON_H */
