"""PopRT on the emulated SDK: it converts ONNX models and runs them through the emulated PopART.

It stands in for Graphcore's closed package, of which it has the command line (`poprt`, `python -m poprt.cli`), the registries of
shape functions and passes, and the converter.
"""

import sys

# PopART is imported before ONNX, which the passes need; a program that has ONNX already may still use the passes.
if "onnx" not in sys.modules:
    import popart  # noqa: F401  # PopART comes before ONNX

from poprt import converter, passes
from poprt.converter import Converter
from poprt.passes import get_registered_passes

__version__ = "1.5.0+emulated"
__all__ = ["Converter", "converter", "get_registered_passes", "passes"]
