"""PopRT on the emulated SDK: it converts ONNX models and runs them through the emulated PopART.

It stands in for Graphcore's closed package, of which it has the command line (`poprt`, `python -m poprt.cli`), the registries of
shape functions and passes, and the converter.
"""

from poprt import converter, passes
from poprt.converter import Converter
from poprt.passes import get_registered_passes

__version__ = "1.5.0+emulated"
__all__ = ["Converter", "converter", "get_registered_passes", "passes"]
