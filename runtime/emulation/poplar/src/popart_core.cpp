// The Python module `popart_core`: the emulated PopART, as the packages `popart` and `popxl` use it. It is one translation unit in several
// files: pybind11's templates take most of the time, and are read once.
#include "popart_core/bindings.hpp"

#include "popart_core/builder.hpp"
#include "popart_core/ir.hpp"
#include "popart_core/ops.hpp"
#include "popart_core/session.hpp"
#include "popart_core/types.hpp"

PYBIND11_MODULE(popart_core, m) {
  m.doc() = "The core of the emulated PopART.";
  bindTypes(m);
  bindBuilder(m);
  bindIr(m);
  bindSession(m);
}
