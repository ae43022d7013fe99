/* Version 2 of an op's TensorRT plugins: one for static shapes, one for dynamic ones. */
#ifndef OPC_ADAPTERS_TENSORRT_V2_H
#define OPC_ADAPTERS_TENSORRT_V2_H

#include <memory>
#include <new>
#include <vector>

#include "opc/adapters/tensorrt_call.h"

namespace opc {
namespace trt {

constexpr const char *plugin_version = "1";

inline std::vector<Tensor> tensors_of(const nvinfer1::PluginTensorDesc *of, int32_t count) {
  std::vector<Tensor> found;
  for (int32_t i = 0; i < count; ++i) found.push_back(tensor_of(of[i].type, of[i].dims));
  return found;
}

inline bool is_known(const nvinfer1::Dims &dims) {
  return std::all_of(dims.d, dims.d + std::max(dims.nbDims, 0), [](int64_t n) { return n >= 0; });
}

/* The largest tensors, and whether there are smaller ones. */
inline std::vector<Tensor> tensors_of(const nvinfer1::DynamicPluginTensorDesc *of, int32_t count, bool &varies) {
  std::vector<Tensor> found;
  for (int32_t i = 0; i < count; ++i) {
    const nvinfer1::Dims &dims = is_known(of[i].desc.dims) ? of[i].desc.dims : of[i].max;
    varies = varies || !is_known(of[i].desc.dims);
    found.push_back(tensor_of(of[i].desc.type, dims));
  }
  return found;
}

/* The sizes of the outputs as TensorRT's expressions. */
inline bool output_exprs(const Core &core, const nvinfer1::DimsExprs *inputs, int32_t count, nvinfer1::IExprBuilder &builder,
                         nvinfer1::DimsExprs *outputs) {
  std::vector<Sizes> found;
  if (!core.output_sizes(sizes_of(inputs, count), &builder, found)) return false;
  ShapeBuilder maker(core.op.name, core.op.operands, nullptr, &builder);
  maker.outputs = found;
  bool made = true;
  for (int32_t i = 0; i < core.op.outputs; ++i) made = made && maker.write(i, outputs[i]);
  return made;
}

/* What plugins of version 2 share, over either interface. */
template <typename Interface, typename Own>
class V2Plugin : public Interface {
 public:
  explicit V2Plugin(const Op &op) : core(op) {}

  const char *getPluginVersion() const noexcept override { return plugin_version; }
  int32_t getNbOutputs() const noexcept override { return core.op.outputs; }
  int32_t initialize() noexcept override { return 0; }
  void terminate() noexcept override {}
  void destroy() noexcept override { delete static_cast<Own *>(this); }
  void setPluginNamespace(const char *name) noexcept override { core.name_space = name == nullptr ? "" : name; }
  const char *getPluginNamespace() const noexcept override { return core.name_space.c_str(); }

  nvinfer1::DataType getOutputDataType(int32_t index, const nvinfer1::DataType *inputs, int32_t count) const noexcept override {
    dtype elements[max_operands], outputs[max_operands];
    nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
    for (int32_t i = 0; i < count && i < max_operands; ++i) elements[i] = dtype_of(inputs[i]);
    if (!core.output_types(elements, count, outputs) || !to_tensorrt(outputs[index], type)) {
      refuse("%s: TensorRT has no tensors of the dtype of %s", core.op.name, core.op.operands[core.op.inputs + index].name);
    }
    return type;
  }

  size_t getSerializationSize() const noexcept override {
    Writer w(nullptr);
    write(w);
    return w.size;
  }
  void serialize(void *buffer) const noexcept override {
    Writer w(static_cast<char *>(buffer));
    write(w);
  }

  /* Writes the length of all, so that bytes that are cut or joined are found, and then the plugin. */
  void write(Writer &w) const {
    Writer own(nullptr);
    const_cast<V2Plugin *>(this)->save(own);
    w.one(static_cast<uint64_t>(own.size));
    const_cast<V2Plugin *>(this)->save(w);
  }
  bool read(const void *bytes, size_t size) {
    Blocks memory;
    Loader head(bytes, size, memory);
    const uint64_t length = head.one<uint64_t>();
    if (!head.ok || length != size - sizeof length) {
      return refuse("%s: %zu bytes are no serialised plugin: they are cut short, or not of this op", core.op.name, size);
    }
    Loader own(static_cast<const char *>(bytes) + sizeof length, size - sizeof length, core_memory_);
    return restore(own) && (own.at_end() || refuse("%s: there are bytes behind what was serialised", core.op.name));
  }

  virtual void save(Writer &w) { core.save(w); }
  virtual bool restore(Loader &l) { return core.load(l); }

  mutable Core core;

 protected:
  Own *copied(std::unique_ptr<Own> own) const {
    own->core.copy(core);
    return own.release();
  }

 private:
  Blocks core_memory_;
};

/* Static shapes. TensorRT has the samples of a batch computed at once, and gives their sizes without the batch's: each is a call. */
class StaticPlugin : public V2Plugin<nvinfer1::IPluginV2Ext, StaticPlugin> {
 public:
  using V2Plugin::V2Plugin;

  const char *getPluginType() const noexcept override { return core.op.static_name; }

  StaticPlugin *clone() const noexcept override {
    StaticPlugin *made = copied(std::make_unique<StaticPlugin>(core.op));
    made->inputs_ = inputs_;
    made->outputs_ = outputs_;
    return made;
  }

  nvinfer1::Dims getOutputDimensions(int32_t index, const nvinfer1::Dims *inputs, int32_t count) noexcept override {
    std::vector<Sizes> known(static_cast<size_t>(std::max(count, 0))), found;
    for (int32_t i = 0; i < count; ++i) {
      for (int32_t k = 0; k < inputs[i].nbDims; ++k) known[static_cast<size_t>(i)].push_back({nullptr, inputs[i].d[k]});
    }
    nvinfer1::Dims dims{-1, {}};
    if (!core.output_sizes(known, nullptr, found)) return dims;
    const Sizes &sizes = found[static_cast<size_t>(index)];
    if (sizes.size() > max_rank) {
      refuse("%s: an output would have more axes than TensorRT's tensors", core.op.name);
      return dims;
    }
    dims.nbDims = static_cast<int32_t>(sizes.size());
    for (size_t k = 0; k < sizes.size(); ++k) dims.d[k] = static_cast<std::remove_reference_t<decltype(dims.d[0])>>(sizes[k].number);
    return dims;
  }

  bool supportsFormat(nvinfer1::DataType type, nvinfer1::PluginFormat format) const noexcept override {
    const dtype element = dtype_of(type);
    if (format != nvinfer1::PluginFormat::kLINEAR || element == dtype_unknown) return false;
    const Operand *end = core.op.operands + core.op.inputs + core.op.outputs;
    return std::any_of(core.op.operands, end, [element](const Operand &o) { return (o.dtypes >> element & 1) != 0; });
  }

#if NV_TENSORRT_MAJOR < 11
  bool isOutputBroadcastAcrossBatch(int32_t, const bool *, int32_t) const noexcept override { return false; }
  bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
#endif

  void configurePlugin(const nvinfer1::Dims *in, int32_t inputs, const nvinfer1::Dims *out, int32_t outputs,
                       const nvinfer1::DataType *in_types, const nvinfer1::DataType *out_types, const bool *, const bool *,
                       nvinfer1::PluginFormat, int32_t) noexcept override {
    inputs_.clear();
    outputs_.clear();
    for (int32_t i = 0; i < inputs; ++i) inputs_.push_back(tensor_of(in_types[i], in[i]));
    for (int32_t i = 0; i < outputs; ++i) outputs_.push_back(tensor_of(out_types[i], out[i]));
    if (!core.settle(inputs) || !core.check(inputs_.data(), inputs)) outputs_.clear();
  }

  size_t getWorkspaceSize(int32_t) const noexcept override {
    if (!is_configured()) return 0;
    return static_cast<size_t>(core.workspace(inputs_.data(), static_cast<int32_t>(inputs_.size()), outputs_.data()));
  }

  int32_t enqueue(int32_t batch, const void *const *inputs, void *const *outputs, void *workspace,
                  cudaStream_t stream) noexcept override {
    if (!is_configured()) return refuse("%s: the plugin was not configured", core.op.name) ? 0 : 1;
    int32_t failed = 0;
    for (int32_t sample = 0; failed == 0 && sample < batch; ++sample) {
      failed =
          core.run(inputs_.data(), static_cast<int32_t>(inputs_.size()), outputs_.data(), inputs, outputs, workspace, stream, sample);
    }
    return failed;
  }

  void save(Writer &w) override {
    core.save(w);
    for (const std::vector<Tensor> *tensors : {&inputs_, &outputs_}) {
      w.one(static_cast<int32_t>(tensors->size()));
      for (const Tensor &t : *tensors) w.one(t);
    }
  }
  bool restore(Loader &l) override {
    if (!core.load(l)) return false;
    for (std::vector<Tensor> *tensors : {&inputs_, &outputs_}) {
      const int32_t count = l.one<int32_t>();
      for (int32_t i = 0; l.ok && i < count; ++i) {
        const Tensor t = l.one<Tensor>();
        l.ok = l.ok && -1 <= t.element && t.element < dtype_count && 0 <= t.rank && t.rank <= max_rank;
        tensors->push_back(t);
      }
    }
    return l.ok || refuse("%s: what was serialised is cut short", core.op.name);
  }

 private:
  bool is_configured() const { return static_cast<int32_t>(outputs_.size()) == core.op.outputs; }

  std::vector<Tensor> inputs_, outputs_;
};

/* The workspace of all calls up to some sizes: parts of long sums, which a call with few points has, are added where sizes vary. */
inline size_t workspace_of(const Core &core, const std::vector<Tensor> &inputs, const std::vector<Tensor> &outputs, bool varies) {
  const int64_t most = core.workspace(inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data());
  return static_cast<size_t>(most) + (varies ? OPC_CUDA_PARTS_BYTES : 0);
}

/* Dynamic shapes. */
class DynamicPlugin : public V2Plugin<nvinfer1::IPluginV2DynamicExt, DynamicPlugin> {
 public:
  using V2Plugin::V2Plugin;

  const char *getPluginType() const noexcept override { return core.op.dynamic_name; }

  DynamicPlugin *clone() const noexcept override {
    DynamicPlugin *made = copied(std::make_unique<DynamicPlugin>(core.op));
    made->varies_ = varies_;
    return made;
  }

  nvinfer1::DimsExprs getOutputDimensions(int32_t index, const nvinfer1::DimsExprs *inputs, int32_t count,
                                          nvinfer1::IExprBuilder &builder) noexcept override {
    std::vector<nvinfer1::DimsExprs> outputs(static_cast<size_t>(core.op.outputs));
    if (!output_exprs(core, inputs, count, builder, outputs.data())) return nvinfer1::DimsExprs{-1, {}};
    return outputs[static_cast<size_t>(index)];
  }

  bool supportsFormatCombination(int32_t position, const nvinfer1::PluginTensorDesc *of, int32_t inputs, int32_t) noexcept override {
    if (of[position].format != nvinfer1::PluginFormat::kLINEAR) return false;
    std::vector<dtype> elements;
    for (int32_t i = 0; i <= position; ++i) elements.push_back(dtype_of(of[i].type));
    return core.supports(position, elements.data(), inputs);
  }

  void configurePlugin(const nvinfer1::DynamicPluginTensorDesc *in, int32_t inputs, const nvinfer1::DynamicPluginTensorDesc *,
                       int32_t) noexcept override {
    varies_ = false;
    const std::vector<Tensor> largest = tensors_of(in, inputs, varies_);
    if (core.settle(inputs) && !varies_) core.check(largest.data(), inputs);
  }

  size_t getWorkspaceSize(const nvinfer1::PluginTensorDesc *in, int32_t inputs, const nvinfer1::PluginTensorDesc *out,
                          int32_t outputs) const noexcept override {
    return workspace_of(core, tensors_of(in, inputs), tensors_of(out, outputs), varies_);
  }

  int32_t enqueue(const nvinfer1::PluginTensorDesc *in, const nvinfer1::PluginTensorDesc *out, const void *const *inputs,
                  void *const *outputs, void *workspace, cudaStream_t stream) noexcept override {
    const std::vector<Tensor> given = tensors_of(in, core.count()), made = tensors_of(out, core.op.outputs);
    return core.run(given.data(), core.count(), made.data(), inputs, outputs, workspace, stream);
  }

 private:
  bool varies_ = true;
};

/* ---- creators ---- */

template <typename Plugin>
class V2Creator : public nvinfer1::IPluginCreator {
 public:
  V2Creator(const Op &op, const char *name) : op_(op), name_(name), described_(op) {
    fields_ = described_.fields_to_list();
    collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
  }

  const char *getPluginName() const noexcept override { return name_; }
  const char *getPluginVersion() const noexcept override { return plugin_version; }
  const nvinfer1::PluginFieldCollection *getFieldNames() noexcept override { return &collection_; }
  void setPluginNamespace(const char *name) noexcept override { name_space_ = name == nullptr ? "" : name; }
  const char *getPluginNamespace() const noexcept override { return name_space_.c_str(); }

  nvinfer1::IPluginV2 *createPlugin(const char *, const nvinfer1::PluginFieldCollection *fields) noexcept override {
    auto made = std::make_unique<Plugin>(op_);
    made->setPluginNamespace(name_space_.c_str());
    return made->core.read(fields, false) ? made.release() : nullptr;
  }
  nvinfer1::IPluginV2 *deserializePlugin(const char *, const void *bytes, size_t size) noexcept override {
    auto made = std::make_unique<Plugin>(op_);
    made->setPluginNamespace(name_space_.c_str());
    return made->read(bytes, size) ? made.release() : nullptr;
  }

 private:
  const Op &op_;
  const char *name_;
  std::string name_space_;
  Core described_;
  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_;
};

struct StaticCreator : V2Creator<StaticPlugin> {
  explicit StaticCreator(const Op &op) : V2Creator(op, op.static_name) {}
};

struct DynamicCreator : V2Creator<DynamicPlugin> {
  explicit DynamicCreator(const Op &op) : V2Creator(op, op.dynamic_name) {}
};

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_V2_H */
