/* The plugins of an op for TensorRT 8.6, 10 and 11, over the C ABI of its kernels on a GPU.
 *
 * | interface                          | 8.6 | 10         | 11         | name of the plugin            |
 * | IPluginV2Ext: static shapes        | yes | deprecated | deprecated | <op>_paddle_trt_plugin        |
 * | IPluginV2DynamicExt                | yes | deprecated | deprecated | <op>_paddle_trt_dynamic_plugin |
 * | IPluginV3 with IPluginCreatorV3One | no  | yes        | yes        | that of the op in ONNX        |
 *
 * A generated source includes this file, describes the op and says OPC_TENSORRT_PLUGINS. With OPC_TENSORRT_APART it leaves out what
 * is the same for all ops, for whoever compiles that once for many. Of TensorRT it needs headers alone, and of its
 * libraries the function getPluginRegistry, where the process shows it. A library is for one major version of TensorRT.
 */
#ifndef OPC_ADAPTERS_TENSORRT_H
#define OPC_ADAPTERS_TENSORRT_H

#include "opc/adapters/tensorrt_library.h"
#if !defined(OPC_TENSORRT_APART)
#include "opc/adapters/tensorrt_plugins.h"
#endif

#endif /* OPC_ADAPTERS_TENSORRT_H */
