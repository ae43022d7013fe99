/* A host that does with plugins what TensorRT does around an engine, but for building one: it loads a library, creates a plugin of
 * fields, clones it, asks for types, sizes, formats and workspace, has it serialised and made anew, attaches it to a context, and runs
 * it.
 *
 * It has a registry of its own, and takes TensorRT's where the process shows that to all.
 */
#ifndef EMULATION_HOST_H
#define EMULATION_HOST_H

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "emulation/registry.h"
#include "emulation/sizes.h"

#define HOST_EXPORT extern "C" __attribute__((visibility("default")))

namespace emulation {

enum Kind : int32_t { static_kind = 0, dynamic_kind = 1, third_kind = 2 };

struct Field {
  const char *name;
  const void *data;
  int32_t type, length;
};

struct Tensor {
  void *data;
  int32_t type, rank;
  int64_t sizes[nvinfer1::Dims::MAX_DIMS];
};

/* What the process says has gone wrong. */
inline std::string &message() {
  static std::string text;
  return text;
}

/* The plugin that is asked. */
inline std::string &asked() {
  static std::string name;
  return name;
}

inline bool fail(const std::string &what) {
  const std::string said = finder().logger.last;
  message() = said.empty() ? asked() + ": " + what : said;
  return false;
}

inline nvinfer1::Dims dims_of(const Tensor &t) {
  nvinfer1::Dims dims{t.rank, {}};
  for (int32_t i = 0; i < t.rank; ++i) dims.d[i] = static_cast<std::remove_reference_t<decltype(dims.d[0])>>(t.sizes[i]);
  return dims;
}

inline nvinfer1::PluginTensorDesc described(const Tensor &t) {
  return {dims_of(t), static_cast<nvinfer1::DataType>(t.type), nvinfer1::TensorFormat::kLINEAR, 1.0f};
}

/* A tensor whose sizes are not known when the plugin is configured. */
inline nvinfer1::DynamicPluginTensorDesc varying(const Tensor &t) {
  nvinfer1::DynamicPluginTensorDesc found{};
  found.desc = described(t);
  found.min = found.max = found.desc.dims;
#if NV_TENSORRT_MAJOR >= 10
  found.opt = found.desc.dims;
#endif
  for (int32_t i = 0; i < t.rank; ++i) found.desc.dims.d[i] = -1;
  return found;
}

/* One plugin and the tensors of its calls. */
class Run {
 public:
  std::vector<Tensor> inputs, outputs;

  Run(const Field *fields, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      fields_.emplace_back(fields[i].name, fields[i].data, static_cast<nvinfer1::PluginFieldType>(fields[i].type), fields[i].length);
    }
    collection_.nbFields = count;
    collection_.fields = fields_.data();
  }
  virtual ~Run() = default;

  /* Everything before the first call; the outputs' types and sizes are there then. */
  virtual bool prepare(Creator *creator) = 0;
  virtual bool enqueue(void *const *data, int32_t batch) = 0;

 protected:
  std::vector<nvinfer1::PluginTensorDesc> descriptions(const std::vector<Tensor> &of) const {
    std::vector<nvinfer1::PluginTensorDesc> found;
    for (const Tensor &t : of) found.push_back(described(t));
    return found;
  }
  std::vector<nvinfer1::DataType> types(const std::vector<Tensor> &of) const {
    std::vector<nvinfer1::DataType> found;
    for (const Tensor &t : of) found.push_back(static_cast<nvinfer1::DataType>(t.type));
    return found;
  }
  std::vector<nvinfer1::Dims> sizes(const std::vector<Tensor> &of) const {
    std::vector<nvinfer1::Dims> found;
    for (const Tensor &t : of) found.push_back(dims_of(t));
    return found;
  }
  std::vector<nvinfer1::DimsExprs> expressions() {
    std::vector<nvinfer1::DimsExprs> found;
    for (const Tensor &t : inputs) {
      nvinfer1::DimsExprs e{t.rank, {}};
      for (int32_t i = 0; i < t.rank; ++i) e.d[i] = builder_.unknown(t.sizes[i]);
      found.push_back(e);
    }
    return found;
  }
  /* An output of sizes that a plugin made. */
  bool add_output(nvinfer1::DataType type, const nvinfer1::DimsExprs &of) {
    Tensor t{nullptr, static_cast<int32_t>(type), of.nbDims, {}};
    if (of.nbDims < 0) return fail("the plugin told no sizes");
    for (int32_t i = 0; i < of.nbDims; ++i) t.sizes[i] = static_cast<const Expr *>(of.d[i])->value;
    outputs.push_back(t);
    return true;
  }
  /* Workspace with bytes behind it that must stay as they are. */
  void *workspace(size_t size) {
    room_.assign(size + 512, static_cast<char>(0x5A));
    size_ = size;
    const auto place = reinterpret_cast<uintptr_t>(room_.data());
    return room_.data() + (256 - place % 256) % 256;
  }
  bool kept() {
    const auto place = reinterpret_cast<uintptr_t>(room_.data());
    for (size_t i = (256 - place % 256) % 256 + size_; i < room_.size(); ++i) {
      if (room_[i] != static_cast<char>(0x5A)) return fail("the plugin has written behind its workspace");
    }
    return true;
  }
  std::vector<const void *> given() const {
    std::vector<const void *> found;
    for (const Tensor &t : inputs) found.push_back(t.data);
    return found;
  }

  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_{};
  Builder builder_;
  size_t size_ = 0;

 private:
  std::vector<char> room_;
};

/* Bytes of a plugin of version 2, and that fewer or other bytes are refused. */
template <typename Plugin>
Plugin *made_anew(nvinfer1::IPluginCreator *creator, const Plugin &plugin) {
  std::vector<char> bytes(plugin.getSerializationSize() + 8, static_cast<char>(0x5A));
  const size_t size = bytes.size() - 8;
  plugin.serialize(bytes.data());
  for (size_t i = size; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<char>(0x5A)) {
      fail("the plugin serialises more bytes than it says");
      return nullptr;
    }
  }
  std::vector<char> wrong(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  wrong[8] ^= 1; /* of the mark behind the length */
  for (const auto &[from, count] : {std::pair(bytes.data(), size - 1), std::pair(bytes.data(), size + 1),
                                    std::pair(bytes.data(), size_t(3)), std::pair(wrong.data(), size)}) {
    nvinfer1::IPluginV2 *none = creator->deserializePlugin(plugin.getPluginType(), from, count);
    if (none != nullptr) {
      none->destroy();
      finder().logger.last.clear();
      fail("the plugin was made of bytes that it has not written");
      return nullptr;
    }
    finder().logger.last.clear();
  }
  return static_cast<Plugin *>(creator->deserializePlugin(plugin.getPluginType(), bytes.data(), size));
}

/* Owns a plugin of version 2. */
template <typename Plugin>
struct Destroyed {
  void operator()(Plugin *plugin) const { plugin->destroy(); }
};

class StaticRun : public Run {
 public:
  using Run::Run;

  bool prepare(Creator *of) override {
    auto *creator = static_cast<nvinfer1::IPluginCreator *>(of);
    std::unique_ptr<nvinfer1::IPluginV2Ext, Destroyed<nvinfer1::IPluginV2Ext>> first(
        static_cast<nvinfer1::IPluginV2Ext *>(creator->createPlugin("own", &collection_)));
    if (first == nullptr) return fail("the plugin was not created");
    const std::vector<nvinfer1::Dims> in = sizes(inputs);
    const std::vector<nvinfer1::DataType> in_types = types(inputs);
    const int32_t count = static_cast<int32_t>(inputs.size());
    std::vector<nvinfer1::Dims> out;
    std::vector<nvinfer1::DataType> out_types;
    for (int32_t i = 0; i < first->getNbOutputs(); ++i) {
      out.push_back(first->getOutputDimensions(i, in.data(), count));
      out_types.push_back(first->getOutputDataType(i, in_types.data(), count));
      if (out.back().nbDims < 0) return fail("the plugin told no sizes");
      Tensor t{nullptr, static_cast<int32_t>(out_types.back()), out.back().nbDims, {}};
      std::copy(out.back().d, out.back().d + out.back().nbDims, t.sizes);
      outputs.push_back(t);
    }
    for (nvinfer1::DataType type : in_types) {
      if (!first->supportsFormat(type, nvinfer1::PluginFormat::kLINEAR))
        return fail("the plugin does not support the format of an operand");
      if (first->supportsFormat(type, nvinfer1::PluginFormat::kHWC8)) return fail("the plugin supports a format that kernels lack");
    }
    const std::unique_ptr<bool[]> flags(new bool[inputs.size() + outputs.size() + 1]());
    first->configurePlugin(in.data(), count, out.data(), static_cast<int32_t>(out.size()), in_types.data(), out_types.data(),
                           flags.get(), flags.get(), nvinfer1::PluginFormat::kLINEAR, 1);
    if (!finder().logger.last.empty()) return fail("");
    std::unique_ptr<nvinfer1::IPluginV2Ext, Destroyed<nvinfer1::IPluginV2Ext>> copy(first->clone());
    first.reset();
    size_ = copy->getWorkspaceSize(1);
    plugin_.reset(made_anew(creator, *copy));
    if (plugin_ == nullptr) return fail("the plugin was not made of its own bytes");
    plugin_->attachToContext(nullptr, nullptr, nullptr);
    return plugin_->initialize() == 0 || fail("the plugin was not initialised");
  }

  bool enqueue(void *const *data, int32_t batch) override {
    const std::vector<const void *> in = given();
    void *place = workspace(size_);
    if (plugin_->enqueue(batch, in.data(), data, place, nullptr) != 0) return fail("the plugin was not run");
    return kept();
  }

 private:
  std::unique_ptr<nvinfer1::IPluginV2Ext, Destroyed<nvinfer1::IPluginV2Ext>> plugin_;
};

class DynamicRun : public Run {
 public:
  using Run::Run;
  using Owned = std::unique_ptr<nvinfer1::IPluginV2DynamicExt, Destroyed<nvinfer1::IPluginV2DynamicExt>>;

  bool prepare(Creator *of) override {
    auto *creator = static_cast<nvinfer1::IPluginCreator *>(of);
    Owned first(static_cast<nvinfer1::IPluginV2DynamicExt *>(creator->createPlugin("own", &collection_)));
    if (first == nullptr) return fail("the plugin was not created");
    const std::vector<nvinfer1::DimsExprs> in = expressions();
    const std::vector<nvinfer1::DataType> in_types = types(inputs);
    const int32_t count = static_cast<int32_t>(inputs.size());
    for (int32_t i = 0; i < first->getNbOutputs(); ++i) {
      if (!add_output(first->getOutputDataType(i, in_types.data(), count), first->getOutputDimensions(i, in.data(), count, builder_)))
        return false;
    }
    std::vector<nvinfer1::PluginTensorDesc> every = descriptions(inputs);
    const std::vector<nvinfer1::PluginTensorDesc> made = descriptions(outputs);
    every.insert(every.end(), made.begin(), made.end());
    for (int32_t i = 0; i < static_cast<int32_t>(every.size()); ++i) {
      if (!first->supportsFormatCombination(i, every.data(), count, first->getNbOutputs()))
        return fail("the plugin does not support the format of an operand");
      std::vector<nvinfer1::PluginTensorDesc> other = every;
      other[static_cast<size_t>(i)].format = nvinfer1::TensorFormat::kHWC8;
      if (first->supportsFormatCombination(i, other.data(), count, first->getNbOutputs()))
        return fail("the plugin supports a format that kernels lack");
    }
    std::vector<nvinfer1::DynamicPluginTensorDesc> varied, results;
    for (const Tensor &t : inputs) varied.push_back(varying(t));
    for (const Tensor &t : outputs) results.push_back(varying(t));
    first->configurePlugin(varied.data(), count, results.data(), static_cast<int32_t>(results.size()));
    Owned copy(first->clone());
    first.reset();
    const std::vector<nvinfer1::PluginTensorDesc> most = descriptions(inputs);
    size_ = copy->getWorkspaceSize(most.data(), count, made.data(), static_cast<int32_t>(made.size()));
    plugin_.reset(made_anew(creator, *copy));
    if (plugin_ == nullptr) return fail("the plugin was not made of its own bytes");
    plugin_->attachToContext(nullptr, nullptr, nullptr);
    return plugin_->initialize() == 0 || fail("the plugin was not initialised");
  }

  bool enqueue(void *const *data, int32_t) override {
    const std::vector<const void *> in = given();
    const std::vector<nvinfer1::PluginTensorDesc> from = descriptions(inputs), to = descriptions(outputs);
    void *place = workspace(size_);
    if (plugin_->enqueue(from.data(), to.data(), in.data(), data, place, nullptr) != 0) return fail("the plugin was not run");
    return kept();
  }

 private:
  Owned plugin_;
};

#if NV_TENSORRT_MAJOR >= 10
class ThirdRun : public Run {
 public:
  using Run::Run;
  using Owned = std::unique_ptr<nvinfer1::IPluginV3>;

  bool prepare(Creator *of) override {
    auto *creator = static_cast<nvinfer1::IPluginCreatorV3One *>(of);
    Owned first(creator->createPlugin("own", &collection_, nvinfer1::TensorRTPhase::kBUILD));
    if (first == nullptr) return fail("the plugin was not created");
    Owned copy(first->clone());
    first.reset();
    auto *core = static_cast<nvinfer1::IPluginV3OneCore *>(copy->getCapabilityInterface(nvinfer1::PluginCapabilityType::kCORE));
    auto *build = static_cast<nvinfer1::IPluginV3OneBuild *>(copy->getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD));
    auto *run = static_cast<nvinfer1::IPluginV3OneRuntime *>(copy->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
    if (core == nullptr || build == nullptr || run == nullptr) return fail("the plugin lacks a capability");
    if (std::strcmp(core->getPluginName(), creator->getPluginName()) != 0) return fail("the plugin has another name than its creator");
    const std::vector<nvinfer1::DimsExprs> in = expressions();
    const std::vector<nvinfer1::DataType> in_types = types(inputs);
    const int32_t count = static_cast<int32_t>(inputs.size()), made = build->getNbOutputs();
    std::vector<nvinfer1::DimsExprs> out(static_cast<size_t>(made));
    std::vector<nvinfer1::DataType> out_types(static_cast<size_t>(made));
    if (build->getOutputDataTypes(out_types.data(), made, in_types.data(), count) != 0) return fail("the plugin told no types");
    if (build->getOutputShapes(in.data(), count, nullptr, 0, out.data(), made, builder_) != 0) return fail("the plugin told no sizes");
    for (size_t i = 0; i < out.size(); ++i) {
      if (!add_output(out_types[i], out[i])) return false;
    }
    std::vector<nvinfer1::DynamicPluginTensorDesc> every;
    for (const Tensor &t : inputs) every.push_back(varying(t));
    for (const Tensor &t : outputs) every.push_back(varying(t));
    for (int32_t i = 0; i < count + made; ++i) {
      if (!build->supportsFormatCombination(i, every.data(), count, made))
        return fail("the plugin does not support the format of an operand");
      std::vector<nvinfer1::DynamicPluginTensorDesc> other = every;
      other[static_cast<size_t>(i)].desc.format = nvinfer1::TensorFormat::kHWC8;
      if (build->supportsFormatCombination(i, other.data(), count, made)) return fail("the plugin supports a format that kernels lack");
    }
    if (build->configurePlugin(every.data(), count, every.data() + count, made) != 0) return fail("the plugin was not configured");
    size_ = build->getWorkspaceSize(every.data(), count, every.data() + count, made);
    const nvinfer1::PluginFieldCollection *fields = run->getFieldsToSerialize();
    Owned saved(creator->createPlugin("own", fields, nvinfer1::TensorRTPhase::kRUNTIME));
    if (saved == nullptr) return fail("the plugin was not made of the fields that it serialises");
    if (Owned(creator->createPlugin("own", &collection_, nvinfer1::TensorRTPhase::kRUNTIME)) != nullptr) {
      return fail("the plugin was made of fields that none has serialised");
    }
    finder().logger.last.clear();
    auto *attached =
        static_cast<nvinfer1::IPluginV3OneRuntime *>(saved->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
    plugin_.reset(attached->attachToContext(nullptr));
    if (plugin_ == nullptr) return fail("the plugin was not attached");
    runtime_ = static_cast<nvinfer1::IPluginV3OneRuntime *>(plugin_->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
    const std::vector<nvinfer1::PluginTensorDesc> from = descriptions(inputs), to = descriptions(outputs);
    return runtime_->onShapeChange(from.data(), count, to.data(), made) == 0 || fail("the plugin does not take the shapes");
  }

  bool enqueue(void *const *data, int32_t) override {
    const std::vector<const void *> in = given();
    const std::vector<nvinfer1::PluginTensorDesc> from = descriptions(inputs), to = descriptions(outputs);
    void *place = workspace(size_);
    if (runtime_->enqueue(from.data(), to.data(), in.data(), data, place, nullptr) != 0) return fail("the plugin was not run");
    return kept();
  }

 private:
  Owned plugin_;
  nvinfer1::IPluginV3OneRuntime *runtime_ = nullptr;
};
#endif

inline Creator *creator_of(const char *name) {
#if NV_TENSORRT_MAJOR >= 10
  return getPluginRegistry()->getCreator(name, "1", "");
#else
  return getPluginRegistry()->getPluginCreator(name, "1", "");
#endif
}

}  // namespace emulation

/* Each function returns 0 where it fails, and emulation_message then tells why. */

HOST_EXPORT const char *emulation_message() { return emulation::message().c_str(); }

HOST_EXPORT int32_t emulation_load(const char *library) {
  emulation::finder().logger.last.clear();
  emulation::asked() = library;
  return getPluginRegistry()->loadLibrary(library) != nullptr || emulation::fail("the registry has not loaded the library");
}

/* Prepares calls of a plugin; where it does, `outputs` has their types and sizes. */
HOST_EXPORT void *emulation_open(int32_t kind, const char *name, const emulation::Field *fields, int32_t field_count,
                                 const emulation::Tensor *inputs, int32_t input_count, emulation::Tensor *outputs, int32_t most) {
  emulation::finder().logger.last.clear();
  emulation::asked() = name;
  emulation::Creator *creator = emulation::creator_of(name);
  std::unique_ptr<emulation::Run> run;
  if (kind == emulation::static_kind) run = std::make_unique<emulation::StaticRun>(fields, field_count);
  if (kind == emulation::dynamic_kind) run = std::make_unique<emulation::DynamicRun>(fields, field_count);
#if NV_TENSORRT_MAJOR >= 10
  if (kind == emulation::third_kind) run = std::make_unique<emulation::ThirdRun>(fields, field_count);
#endif
  if (creator == nullptr || run == nullptr) {
    emulation::fail("the registry has no such plugin");
    return nullptr;
  }
  run->inputs.assign(inputs, inputs + input_count);
  if (!run->prepare(creator)) return nullptr;
  if (static_cast<int32_t>(run->outputs.size()) != most) {
    emulation::fail("the plugin has another number of outputs");
    return nullptr;
  }
  std::copy(run->outputs.begin(), run->outputs.end(), outputs);
  return run.release();
}

HOST_EXPORT int32_t emulation_run(void *run, void *const *outputs, int32_t batch) {
  emulation::finder().logger.last.clear();
  return static_cast<emulation::Run *>(run)->enqueue(outputs, batch);
}

HOST_EXPORT void emulation_close(void *run) { delete static_cast<emulation::Run *>(run); }

#endif  // EMULATION_HOST_H
