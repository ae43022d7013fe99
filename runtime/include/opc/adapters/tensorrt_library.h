/* What a library of an op's plugins exports, over functions that know no op: tensorrt_plugins.h has them. */
#ifndef OPC_ADAPTERS_TENSORRT_LIBRARY_H
#define OPC_ADAPTERS_TENSORRT_LIBRARY_H

#include "NvInferRuntime.h"
#include "opc/adapters/tensorrt_op.h"

/* Functions of a header; with OPC_TENSORRT_APART they stand in an object of their own, which the libraries of many ops take in. */
#if defined(OPC_TENSORRT_APART)
#define OPC_TENSORRT_FUNCTION
#else
#define OPC_TENSORRT_FUNCTION inline
#endif

namespace opc {
namespace trt {

#if NV_TENSORRT_MAJOR >= 10
using CreatorInterface = nvinfer1::IPluginCreatorInterface;
#else
using CreatorInterface = nvinfer1::IPluginCreator;
#endif

/* The creators of an op's plugins. */
struct Creators;

/* They live as long as the process: a registry may ask for them after the library's own objects have gone. */
OPC_TENSORRT_FUNCTION Creators &make_creators(const Op &op);
OPC_TENSORRT_FUNCTION CreatorInterface *const *list_of(const Creators &creators, int32_t &count);
/* Whether TensorRT's registry has taken all of them; there may be none among the process's symbols. */
OPC_TENSORRT_FUNCTION bool add(const Creators &creators);
OPC_TENSORRT_FUNCTION void tell_logger(nvinfer1::ILoggerFinder *finder);

/* ---- what the plugin class in Python calls through ctypes, see tensorrt_python.h ---- */

/* Attributes of an op, and what a plugin knows of its inputs. */
class Core;

/* Type and sizes of a tensor, as Python gives them. */
struct GivenTensor {
  int32_t type, rank;
  int64_t sizes[max_rank];
};

OPC_TENSORRT_FUNCTION const char *python_message();
OPC_TENSORRT_FUNCTION Core *python_create(const Op &op, const nvinfer1::PluginField *fields, int32_t count, bool saved);
OPC_TENSORRT_FUNCTION void python_destroy(Core *core);
OPC_TENSORRT_FUNCTION int32_t python_types(const Core &core, const int32_t *types, int32_t count, int32_t *made);
OPC_TENSORRT_FUNCTION int32_t python_supports(const Core &core, int32_t at, const int32_t *types, int32_t inputs);
OPC_TENSORRT_FUNCTION int32_t python_settle(Core &core, int32_t inputs);
OPC_TENSORRT_FUNCTION int32_t python_check(const Core &core, const GivenTensor *in, int32_t count);
OPC_TENSORRT_FUNCTION int64_t python_workspace(const Core &core, const GivenTensor *in, int32_t count, const GivenTensor *out,
                                               bool varies);
OPC_TENSORRT_FUNCTION int32_t python_run(const Core &core, const GivenTensor *in, int32_t count, const GivenTensor *out,
                                         const void *const *from, void *const *to, void *workspace, cudaStream_t stream);

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

/* Defines what a library of an op's plugins exports: what IPluginRegistry::loadLibrary asks for, a function that registers, which
 * returns 0 where the registry does not take the plugins, and what Python calls. */
#define OPC_TENSORRT_PLUGINS(op, register_plugins)                                                                                  \
  static const opc::trt::Creators &opc_tensorrt_creators() {                                                                        \
    static const opc::trt::Creators &creators = opc::trt::make_creators(op());                                                      \
    return creators;                                                                                                                \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT opc::trt::CreatorInterface *const *OPC_TENSORRT_LIST(int32_t &nbCreators) {                                 \
    return opc::trt::list_of(opc_tensorrt_creators(), nbCreators);                                                                  \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder *finder) { opc::trt::tell_logger(finder); }                    \
  static void opc_tensorrt_on_load() OPC_TENSORRT_ON_LOAD;                                                                          \
  extern "C" OPC_EXPORT int32_t register_plugins() { return opc::trt::add(opc_tensorrt_creators()); }                               \
  static void opc_tensorrt_on_load() { register_plugins(); }                                                                        \
                                                                                                                                    \
  extern "C" OPC_EXPORT const char *opc_plugin_message() { return opc::trt::python_message(); }                                     \
  extern "C" OPC_EXPORT opc::trt::Core *opc_plugin_create(const nvinfer1::PluginField *fields, int32_t count, int32_t saved) {      \
    return opc::trt::python_create(op(), fields, count, saved != 0);                                                                \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT void opc_plugin_destroy(opc::trt::Core *core) { opc::trt::python_destroy(core); }                           \
  extern "C" OPC_EXPORT int32_t opc_plugin_types(const opc::trt::Core *core, const int32_t *types, int32_t count, int32_t *made) {  \
    return opc::trt::python_types(*core, types, count, made);                                                                       \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT int32_t opc_plugin_supports(const opc::trt::Core *core, int32_t at, const int32_t *types, int32_t inputs) { \
    return opc::trt::python_supports(*core, at, types, inputs);                                                                     \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT int32_t opc_plugin_settle(opc::trt::Core *core, int32_t inputs) {                                           \
    return opc::trt::python_settle(*core, inputs);                                                                                  \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT int32_t opc_plugin_check(const opc::trt::Core *core, const opc::trt::GivenTensor *in, int32_t count) {      \
    return opc::trt::python_check(*core, in, count);                                                                                \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT int64_t opc_plugin_workspace(const opc::trt::Core *core, const opc::trt::GivenTensor *in, int32_t count,    \
                                                     const opc::trt::GivenTensor *out, int32_t varies) {                            \
    return opc::trt::python_workspace(*core, in, count, out, varies != 0);                                                          \
  }                                                                                                                                 \
  extern "C" OPC_EXPORT int32_t opc_plugin_run(const opc::trt::Core *core, const opc::trt::GivenTensor *in, int32_t count,          \
                                               const opc::trt::GivenTensor *out, const void *const *from, void *const *to,          \
                                               void *workspace, cudaStream_t stream) {                                              \
    return opc::trt::python_run(*core, in, count, out, from, to, workspace, stream);                                                \
  }

#endif /* OPC_ADAPTERS_TENSORRT_LIBRARY_H */
