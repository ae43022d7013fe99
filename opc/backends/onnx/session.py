"""The reference ops of a family as the proof calls them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opc.backends import package as packages
from opc.backends.base import Unsupported
from opc.backends.node_call import Evaluate, NodeCall, NodeSession
from opc.ir.op import Family


@functools.cache
def evaluated() -> list[Any]:
    """Return what the evaluator computes by other means than its own: ArgMax, ArgMin and GatherElements.

    A result of no elements has none to find, whatever lies along the axis: ONNX Runtime returns it, where NumPy's argmax,
    which ONNX's evaluator calls, refuses an axis of size 0. For GatherElements it calls NumPy's choose, which takes an axis of 64
    elements at most, and along longer ones of matrices it takes the columns of the first row.
    """
    from onnx.reference.op_run import OpRun

    def made(name: str, place: Callable[..., Any]) -> type[OpRun]:
        def run(self: OpRun, data: Any, axis: int, keepdims: int, select_last_index: int) -> tuple[Any]:
            if select_last_index:
                raise NotImplementedError(f"{name} of the last of equal values")
            shape = list(data.shape)
            shape[axis] = 1
            found = place(data, axis=axis, keepdims=True) if math.prod(shape) else np.zeros(shape)
            return ((found if keepdims else found.squeeze(axis)).astype(np.int64),)

        return type(name, (OpRun,), {"op_domain": "", "_run": run})

    def gather(self: OpRun, data: Any, indices: Any, axis: int) -> tuple[Any]:
        return (np.take_along_axis(data, indices, axis),)

    elements = type("GatherElements", (OpRun,), {"op_domain": "", "_run": gather})
    return [made("ArgMax", np.argmax), made("ArgMin", np.argmin), elements]


class OnnxSession(NodeSession):
    """Runs single-node models on the reference evaluator."""

    no_autograd = "ONNX has no autograd; the gradients are ops of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's ONNX modules.

        Raises:
            ImportError: when the package is not generated, or onnx is not installed.
        """
        super().__init__(family, package)
        self.module = packages.load(package, "onnx")

    def load(self, call: NodeCall) -> Evaluate:
        """Return an evaluator of a call's model."""
        from onnx.reference import ReferenceEvaluator

        return partial(ReferenceEvaluator(call.model(), new_ops=list(self.module.OPS)).run, None)

    def load_function(self, call: NodeCall, model: Any) -> Evaluate:
        """Return an evaluator of a function's model, which ONNX's checker and strict shape inference accept."""
        import onnx.inliner
        from onnx.reference import ReferenceEvaluator

        onnx.checker.check_model(model)
        inlined = onnx.inliner.inline_local_functions(model)
        if "float64" in call.dtypes.values() and any(node.op_type == "Erf" for node in inlined.graph.node):
            raise Unsupported("ONNX's reference evaluator computes Erf in float32")
        try:
            onnx.shape_inference.infer_shapes(inlined, check_type=True, strict_mode=True, data_prop=True)
        except onnx.shape_inference.InferenceError:
            # What is known of values goes on as if every tensor were a vector, so that sums of columns and rows are refused.
            onnx.shape_inference.infer_shapes(inlined, check_type=True, strict_mode=True)
        return partial(ReferenceEvaluator(inlined, new_ops=evaluated()).run, None)
