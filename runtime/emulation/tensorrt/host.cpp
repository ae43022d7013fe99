// A host for plugins, for the interfaces of the version whose folder comes before `include` on the search path.
#include "emulation/host.h"
