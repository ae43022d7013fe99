// What the plugins of all ops have in common, for libraries whose own source is compiled with OPC_TENSORRT_APART too.
#include "opc/adapters/tensorrt_plugins.h"
