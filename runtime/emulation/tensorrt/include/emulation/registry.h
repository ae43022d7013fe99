/* A registry of plugins in place of TensorRT's, for a process without one: it keeps creators, and loads libraries as TensorRT does. */
#ifndef EMULATION_REGISTRY_H
#define EMULATION_REGISTRY_H

#include <dlfcn.h>

#include <string>
#include <vector>

#include "NvInferRuntime.h"

namespace emulation {

#if NV_TENSORRT_MAJOR >= 10
using Creator = nvinfer1::IPluginCreatorInterface;
constexpr const char *list_function = "getCreators";
#else
using Creator = nvinfer1::IPluginCreator;
constexpr const char *list_function = "getPluginCreators";
#endif

/* Keeps the last message. */
class Logger : public nvinfer1::ILogger {
 public:
  std::string last;
  void log(Severity severity, const char *message) noexcept override {
    if (severity <= Severity::kERROR) last = message;
  }
};

class LoggerFinder : public nvinfer1::ILoggerFinder {
 public:
  Logger logger;
  nvinfer1::ILogger *findLogger() override { return &logger; }
};

}  // namespace emulation

/* That of the first host in a process, whose registry all use. */
extern "C" __attribute__((visibility("default"))) emulation::LoggerFinder *emulation_finder() {
  static emulation::LoggerFinder own;
  return &own;
}

namespace emulation {

inline LoggerFinder &finder() { return *emulation_finder(); }

/* The name of a creator, in either version. */
struct Named {
  const char *name, *version;
};

inline Named named(Creator *creator) {
#if NV_TENSORRT_MAJOR >= 10
  if (std::string(creator->getInterfaceInfo().kind) == "PLUGIN CREATOR_V3ONE") {
    const auto *third = static_cast<nvinfer1::IPluginCreatorV3One *>(creator);
    return {third->getPluginName(), third->getPluginVersion()};
  }
  const auto *second = static_cast<nvinfer1::IPluginCreator *>(creator);
#else
  const nvinfer1::IPluginCreator *second = creator;
#endif
  return {second->getPluginName(), second->getPluginVersion()};
}

class Registry : public nvinfer1::IPluginRegistry {
 public:
  ~Registry() noexcept override = default;

#if NV_TENSORRT_MAJOR < 11
  bool registerCreator(nvinfer1::IPluginCreator &creator, const char *name_space) noexcept override { return add(creator, name_space); }
  nvinfer1::IPluginCreator *const *getPluginCreatorList(int32_t *count) const noexcept override {
    *count = 0;
    return nullptr;
  }
  nvinfer1::IPluginCreator *getPluginCreator(const char *name, const char *version, const char *name_space) noexcept override {
    return static_cast<nvinfer1::IPluginCreator *>(find(name, version, name_space));
  }
  bool deregisterCreator(const nvinfer1::IPluginCreator &creator) noexcept override { return remove(&creator); }
#endif
  void setErrorRecorder(nvinfer1::IErrorRecorder *) noexcept override {}
  nvinfer1::IErrorRecorder *getErrorRecorder() const noexcept override { return nullptr; }
  bool isParentSearchEnabled() const override { return false; }
  void setParentSearchEnabled(bool) override {}

  PluginLibraryHandle loadLibrary(const char *path) noexcept override {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      finder().logger.last = dlerror();
      return nullptr;
    }
    using SetFinder = void (*)(nvinfer1::ILoggerFinder *);
    using List = Creator *const *(*)(int32_t &);
    const auto set_finder = reinterpret_cast<SetFinder>(dlsym(library, "setLoggerFinder"));
    const auto list = reinterpret_cast<List>(dlsym(library, list_function));
    if (set_finder == nullptr || list == nullptr) {
      finder().logger.last = "the library exports no creators or takes no logger";
      return nullptr;
    }
    set_finder(&finder());
    int32_t count = 0;
    Creator *const *creators = list(count);
    for (int32_t i = 0; i < count; ++i) {
      if (!add(*creators[i], "")) return nullptr;
    }
    return library;
  }
  void deregisterLibrary(PluginLibraryHandle) noexcept override {}

#if NV_TENSORRT_MAJOR >= 10
  bool registerCreator(Creator &creator, const char *name_space) noexcept override { return add(creator, name_space); }
  Creator *const *getAllCreators(int32_t *count) const noexcept override {
    *count = static_cast<int32_t>(creators_.size());
    return creators_.data();
  }
  Creator *getCreator(const char *name, const char *version, const char *name_space) noexcept override {
    return find(name, version, name_space);
  }
  bool deregisterCreator(const Creator &creator) noexcept override { return remove(&creator); }
  nvinfer1::IPluginResource *acquirePluginResource(const char *, nvinfer1::IPluginResource *) noexcept override { return nullptr; }
  int32_t releasePluginResource(const char *) noexcept override { return 1; }
  Creator *const *getAllCreatorsRecursive(int32_t *count) noexcept override { return getAllCreators(count); }
#endif

 private:
  bool add(Creator &creator, const char *) {
    const Named own = named(&creator);
    if (find(own.name, own.version, "") != nullptr) {
      finder().logger.last = std::string("there is a plugin ") + own.name + " already";
      return false;
    }
    creators_.push_back(&creator);
    return true;
  }
  Creator *find(const char *name, const char *version, const char *) const {
    for (Creator *creator : creators_) {
      const Named own = named(creator);
      if (std::string(own.name) == name && std::string(own.version) == version) return creator;
    }
    return nullptr;
  }
  bool remove(const void *creator) {
    for (size_t i = 0; i < creators_.size(); ++i) {
      if (creators_[i] == creator) {
        creators_.erase(creators_.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    }
    return false;
  }

  std::vector<Creator *> creators_;
};

}  // namespace emulation

/* Where the process shows TensorRT's function of this name, the host calls that. */
extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginRegistry *getPluginRegistry() noexcept {
  static emulation::Registry registry;
  return &registry;
}

#endif  // EMULATION_REGISTRY_H
