/* TensorRT's other name for what plugins use. */
#include "NvInferRuntime.h"
