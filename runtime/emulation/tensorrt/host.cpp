// A host for plugins without TensorRT, for the interfaces of the version whose folder comes before `include` on the search path.
#if !defined(OPC_HOST_ATTACHED)
#define OPC_HOST_REGISTRY
#endif
#include "emulation/host.h"
