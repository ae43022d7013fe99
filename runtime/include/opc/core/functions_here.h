/* The functions that files of entry functions share, as one object: compiled as a source, with OPC_FUNCTIONS_HERE. */
#include "opc/contraction/run.h"
#include "opc/rows/run.h"
