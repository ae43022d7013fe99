/* The plugins of any op: what an op's library does with the op's description. */
#ifndef OPC_ADAPTERS_TENSORRT_PLUGINS_H
#define OPC_ADAPTERS_TENSORRT_PLUGINS_H

#if defined(__GNUC__)
/* Version 2 of plugins is deprecated since 10, and what Paddle looks up. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#endif

#include "opc/adapters/tensorrt_library.h"
#include "opc/adapters/tensorrt_python.h"
#include "opc/adapters/tensorrt_v2.h"
#include "opc/adapters/tensorrt_v3.h"

/* Who loads the library through the registry has it; a process that loads the library alone need not show it to all. */
#pragma weak getPluginRegistry

namespace opc {
namespace trt {

struct Creators {
  StaticCreator fixed;
  DynamicCreator dynamic;
#if NV_TENSORRT_MAJOR >= 10
  V3Creator third;
  CreatorInterface *all[3];
  explicit Creators(const Op &op) : fixed(op), dynamic(op), third(op), all{&third, &dynamic, &fixed} {}
#else
  CreatorInterface *all[2];
  explicit Creators(const Op &op) : fixed(op), dynamic(op), all{&dynamic, &fixed} {}
#endif
  static constexpr int32_t count = sizeof all / sizeof all[0];

  const char *name_space(int32_t i) const {
#if NV_TENSORRT_MAJOR >= 10
    return i == 0 ? third.getPluginNamespace() : "";
#else
    static_cast<void>(i);
    return "";
#endif
  }
};

OPC_TENSORRT_FUNCTION Creators &make_creators(const Op &op) { return *new Creators(op); }

OPC_TENSORRT_FUNCTION CreatorInterface *const *list_of(const Creators &creators, int32_t &count) {
  count = Creators::count;
  return creators.all;
}

OPC_TENSORRT_FUNCTION bool add(const Creators &creators) {
  nvinfer1::IPluginRegistry *(*const of_process)() noexcept = &getPluginRegistry;
  nvinfer1::IPluginRegistry *registry = of_process == nullptr ? nullptr : of_process();
  bool taken = registry != nullptr;
  for (int32_t i = 0; taken && i < Creators::count; ++i) {
    taken = registry->registerCreator(*creators.all[i], creators.name_space(i));
  }
  return taken;
}

OPC_TENSORRT_FUNCTION void tell_logger(nvinfer1::ILoggerFinder *finder) { logger_finder() = finder; }

}  // namespace trt
}  // namespace opc

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* OPC_ADAPTERS_TENSORRT_PLUGINS_H */
