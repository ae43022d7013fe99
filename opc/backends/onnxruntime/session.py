"""The custom-op library of a family as the proof calls it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from opc.backends import package as packages
from opc.backends.base import OpError, Unsupported
from opc.backends.dtypes import require_dtypes
from opc.backends.node_call import Evaluate, NodeCall, NodeSession
from opc.backends.onnxruntime.values import has, inference_session, run
from opc.ir.op import Family


class OnnxRuntimeSession(NodeSession):
    """Runs single-node models on ONNX Runtime's CPU provider with the library registered."""

    no_autograd = "ONNX Runtime has no autograd; the gradients are ops of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's modules and find its library.

        Raises:
            ImportError: when the package is not built, or onnxruntime is not installed.
        """
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        super().__init__(family, package)
        self.runtime = packages.load(package, "onnxruntime")
        if not self.runtime.library_path().is_file():
            raise ImportError(f"{self.runtime.library_path()} is not built")

    def load(self, call: NodeCall) -> Evaluate:
        """Load the model of a call, with the library."""
        require_dtypes(call.op, call.feeds, call.given, "ONNX Runtime", has)
        try:
            return partial(run, inference_session(call.model(), self.runtime.session_options()))
        except Exception as error:
            raise OpError(str(error)) from error

    def load_function(self, call: NodeCall, model: Any) -> Evaluate:
        """Load a function's model, without the library."""
        import onnxruntime

        require_dtypes(call.op, call.feeds, call.given, "ONNX Runtime", has)
        try:
            return partial(run, inference_session(model, threads=1))
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as reason:
            # The operator is standard, and this runtime has no kernel of it for an element type.
            raise Unsupported(str(reason).split(" : ")[-1]) from reason
