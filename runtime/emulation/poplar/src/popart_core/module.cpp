// The Python module `popart_core`: the emulated PopART, as the packages `popart` and `popxl` use it.
#include "bindings.hpp"

PYBIND11_MODULE(popart_core, m) {
  m.doc() = "The core of the emulated PopART.";
  bindTypes(m);
  bindBuilder(m);
  bindIr(m);
  bindSession(m);
}
