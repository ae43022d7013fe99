/* The plugins of an op for TensorRT 8.6, 10 and 11, over the C ABI of its kernels on a GPU.
 *
 * | interface                          | 8.6 | 10         | 11         | name of the plugin            |
 * | IPluginV2Ext: static shapes        | yes | deprecated | deprecated | <op>_paddle_trt_plugin        |
 * | IPluginV2DynamicExt                | yes | deprecated | deprecated | <op>_paddle_trt_dynamic_plugin |
 * | IPluginV3 with IPluginCreatorV3One | no  | yes        | yes        | that of the op in ONNX        |
 *
 * A generated source includes this file, describes the op and says OPC_TENSORRT_PLUGINS. Of TensorRT it needs headers alone, and of its
 * libraries the function getPluginRegistry, where the process shows it. A library is for one major version of TensorRT.
 */
#ifndef OPC_ADAPTERS_TENSORRT_H
#define OPC_ADAPTERS_TENSORRT_H

#if defined(__GNUC__)
/* Version 2 of plugins is deprecated since 10, and what Paddle looks up. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#endif

#include "opc/adapters/tensorrt_call.h"
#include "opc/adapters/tensorrt_python.h"
#include "opc/adapters/tensorrt_v2.h"
#include "opc/adapters/tensorrt_v3.h"

/* Who loads the library through the registry has it; a process that loads the library alone need not show it to all. */
#pragma weak getPluginRegistry

namespace opc {
namespace trt {

/* The creators of an op's plugins. */
struct Creators {
  StaticCreator fixed;
  DynamicCreator dynamic;
#if NV_TENSORRT_MAJOR >= 10
  V3Creator third;
  using Interface = nvinfer1::IPluginCreatorInterface;
  Interface *all[3];
  explicit Creators(const Op &op) : fixed(op), dynamic(op), third(op), all{&third, &dynamic, &fixed} {}
#else
  using Interface = nvinfer1::IPluginCreator;
  Interface *all[2];
  explicit Creators(const Op &op) : fixed(op), dynamic(op), all{&dynamic, &fixed} {}
#endif
  static constexpr int32_t count = sizeof all / sizeof all[0];

  /* Whether TensorRT's registry has taken all of them; there may be none among the process's symbols. */
  bool add() {
    nvinfer1::IPluginRegistry *(*const of_process)() noexcept = &getPluginRegistry;
    nvinfer1::IPluginRegistry *registry = of_process == nullptr ? nullptr : of_process();
    bool taken = registry != nullptr;
    for (int32_t i = 0; taken && i < count; ++i) taken = registry->registerCreator(*all[i], name_space(i));
    return taken;
  }
  const char *name_space(int32_t i) const;
};

inline const char *Creators::name_space(int32_t i) const {
#if NV_TENSORRT_MAJOR >= 10
  return i == 0 ? third.getPluginNamespace() : "";
#else
  static_cast<void>(i);
  return "";
#endif
}

}  // namespace trt
}  // namespace opc

#if NV_TENSORRT_MAJOR >= 10
#define OPC_TENSORRT_LIST getCreators
#else
#define OPC_TENSORRT_LIST getPluginCreators
#endif

/* Registers when the library is loaded, for hosts that know dlopen alone: loadLibrary registers what it is listed, and refuses what is
 * there. */
#if defined(OPC_TENSORRT_REGISTER_ON_LOAD)
#define OPC_TENSORRT_ON_LOAD __attribute__((constructor))
#else
#define OPC_TENSORRT_ON_LOAD __attribute__((unused))
#endif

/* Defines what a library of an op's plugins exports: what IPluginRegistry::loadLibrary asks for, and a function that registers, which
 * returns 0 where the registry does not take the plugins. */
#define OPC_TENSORRT_PLUGINS(op, register_plugins)                                                                    \
  OPC_TENSORRT_PYTHON(op)                                                                                             \
  static opc::trt::Creators &opc_tensorrt_creators() {                                                                \
    static opc::trt::Creators creators(op());                                                                         \
    return creators;                                                                                                  \
  }                                                                                                                   \
  extern "C" OPC_EXPORT opc::trt::Creators::Interface *const *OPC_TENSORRT_LIST(int32_t &nbCreators) {                \
    nbCreators = opc::trt::Creators::count;                                                                           \
    return opc_tensorrt_creators().all;                                                                               \
  }                                                                                                                   \
  extern "C" OPC_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder *finder) { opc::trt::logger_finder() = finder; } \
  static void opc_tensorrt_on_load() OPC_TENSORRT_ON_LOAD;                                                            \
  extern "C" OPC_EXPORT int32_t register_plugins() { return opc_tensorrt_creators().add(); }                          \
  static void opc_tensorrt_on_load() { register_plugins(); }

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* OPC_ADAPTERS_TENSORRT_H */
