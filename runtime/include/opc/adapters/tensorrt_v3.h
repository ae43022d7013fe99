/* Version 3 of an op's TensorRT plugin, since TensorRT 10. */
#ifndef OPC_ADAPTERS_TENSORRT_V3_H
#define OPC_ADAPTERS_TENSORRT_V3_H

#include "opc/adapters/tensorrt_v2.h"

#if NV_TENSORRT_MAJOR >= 10

namespace opc {
namespace trt {

class V3Plugin : public nvinfer1::IPluginV3,
                 public nvinfer1::IPluginV3OneCore,
                 public nvinfer1::IPluginV3OneBuild,
                 public nvinfer1::IPluginV3OneRuntime {
 public:
  explicit V3Plugin(const Op &op) : core(op) { core.name_space = op.plugin_namespace; }

  nvinfer1::IPluginCapability *getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override {
    switch (type) {
      case nvinfer1::PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore *>(this);
      case nvinfer1::PluginCapabilityType::kBUILD: return static_cast<nvinfer1::IPluginV3OneBuild *>(this);
      case nvinfer1::PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::IPluginV3OneRuntime *>(this);
    }
    return nullptr;
  }

  nvinfer1::IPluginV3 *clone() noexcept override {
    auto made = std::make_unique<V3Plugin>(core.op);
    made->core.copy(core);
    made->varies_ = varies_;
    return made.release();
  }

  /* ---- core ---- */

  const char *getPluginName() const noexcept override { return core.op.plugin_name; }
  const char *getPluginVersion() const noexcept override { return plugin_version; }
  const char *getPluginNamespace() const noexcept override { return core.name_space.c_str(); }

  /* ---- build ---- */

  int32_t getNbOutputs() const noexcept override { return core.op.outputs; }

  int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc *in, int32_t inputs, const nvinfer1::DynamicPluginTensorDesc *,
                          int32_t) noexcept override {
    varies_ = false;
    const std::vector<Tensor> largest = tensors_of(in, inputs, varies_);
    return core.settle(inputs) && (varies_ || core.check(largest.data(), inputs)) ? 0 : 1;
  }

  int32_t getOutputDataTypes(nvinfer1::DataType *types, int32_t, const nvinfer1::DataType *given,
                             int32_t inputs) const noexcept override {
    dtype elements[max_operands], outputs[max_operands];
    for (int32_t i = 0; i < inputs && i < max_operands; ++i) elements[i] = dtype_of(given[i]);
    if (!core.output_types(elements, inputs, outputs)) return 1;
    for (int32_t i = 0; i < core.op.outputs; ++i) {
      if (to_tensorrt(outputs[i], types[i])) continue;
      refuse("%s: TensorRT has no tensors of the dtype of %s", core.op.name, core.op.operands[core.op.inputs + i].name);
      return 1;
    }
    return 0;
  }

  int32_t getOutputShapes(const nvinfer1::DimsExprs *inputs, int32_t count, const nvinfer1::DimsExprs *, int32_t,
                          nvinfer1::DimsExprs *outputs, int32_t, nvinfer1::IExprBuilder &builder) noexcept override {
    return output_exprs(core, inputs, count, builder, outputs) ? 0 : 1;
  }

  bool supportsFormatCombination(int32_t position, const nvinfer1::DynamicPluginTensorDesc *of, int32_t inputs,
                                 int32_t) noexcept override {
    if (of[position].desc.format != nvinfer1::PluginFormat::kLINEAR) return false;
    std::vector<dtype> elements;
    for (int32_t i = 0; i <= position; ++i) elements.push_back(dtype_of(of[i].desc.type));
    return core.supports(position, elements.data(), inputs);
  }

  size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc *in, int32_t inputs, const nvinfer1::DynamicPluginTensorDesc *out,
                          int32_t outputs) const noexcept override {
    bool varies = false;
    const std::vector<Tensor> given = tensors_of(in, inputs, varies), made = tensors_of(out, outputs, varies);
    return workspace_of(core, given, made, varies || varies_);
  }

  /* ---- runtime ---- */

  int32_t onShapeChange(const nvinfer1::PluginTensorDesc *in, int32_t inputs, const nvinfer1::PluginTensorDesc *,
                        int32_t) noexcept override {
    const std::vector<Tensor> given = tensors_of(in, inputs);
    return core.settle(inputs) && core.check(given.data(), inputs) ? 0 : 1;
  }

  int32_t enqueue(const nvinfer1::PluginTensorDesc *in, const nvinfer1::PluginTensorDesc *out, const void *const *inputs,
                  void *const *outputs, void *workspace, cudaStream_t stream) noexcept override {
    const std::vector<Tensor> given = tensors_of(in, core.count()), made = tensors_of(out, core.op.outputs);
    return core.run(given.data(), core.count(), made.data(), inputs, outputs, workspace, stream);
  }

  nvinfer1::IPluginV3 *attachToContext(nvinfer1::IPluginResourceContext *) noexcept override { return clone(); }

  const nvinfer1::PluginFieldCollection *getFieldsToSerialize() noexcept override {
    const std::vector<nvinfer1::PluginField> &fields = core.fields_to_save();
    saved_ = {static_cast<int32_t>(fields.size()), fields.data()};
    return &saved_;
  }

  Core core;

 private:
  bool varies_ = true;
  nvinfer1::PluginFieldCollection saved_{};
};

class V3Creator : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit V3Creator(const Op &op) : op_(op), described_(op) {
    fields_ = described_.fields_to_list();
    collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
  }

  nvinfer1::IPluginV3 *createPlugin(const char *, const nvinfer1::PluginFieldCollection *fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override {
    auto made = std::make_unique<V3Plugin>(op_);
    return made->core.read(fields, phase == nvinfer1::TensorRTPhase::kRUNTIME) ? made.release() : nullptr;
  }
  const nvinfer1::PluginFieldCollection *getFieldNames() noexcept override { return &collection_; }
  const char *getPluginName() const noexcept override { return op_.plugin_name; }
  const char *getPluginVersion() const noexcept override { return plugin_version; }
  const char *getPluginNamespace() const noexcept override { return op_.plugin_namespace; }

 private:
  const Op &op_;
  Core described_;
  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_;
};

}  // namespace trt
}  // namespace opc

#endif
#endif /* OPC_ADAPTERS_TENSORRT_V3_H */
