"""The reference ops of a family as the proof calls them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends import package as packages
from opc.backends.base import Check, Unsupported, WithoutAutograd
from opc.backends.node_call import NodeCall
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array


@functools.cache
def places_of_nothing() -> list[Any]:
    """Return ArgMax and ArgMin for the evaluator that have an answer where no place is asked for.

    A result of no elements has none to find, whatever lies along the axis: ONNX Runtime returns it, where NumPy's argmax,
    which ONNX's evaluator calls, refuses an axis of size 0.
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

    return [made("ArgMax", np.argmax), made("ArgMin", np.argmin)]


class OnnxSession(WithoutAutograd):
    """Runs single-node models on the reference evaluator."""

    no_autograd = "ONNX has no autograd; the gradients are ops of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's ONNX modules.

        Raises:
            ImportError: when the package is not generated, or onnx is not installed.
        """
        self.family = family
        self.ops = {op.name: op for op in family.ops}
        self.module = packages.load(package, "onnx")
        self._evaluators: dict[Any, Any] = {}

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        call = NodeCall(self.ops[op], inputs, attributes, only)
        if call.key not in self._evaluators:
            self._evaluators[call.key] = self._evaluator(call)
        evaluator = self._evaluators[call.key]
        return call.run(lambda feeds: evaluator.run(None, feeds))

    def _evaluator(self, call: NodeCall) -> Any:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(call.model(), new_ops=list(self.module.OPS))

    def function_call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op by its body in standard operators, which ONNX's checker and strict shape inference accept."""
        import onnx.inliner
        from onnx.reference import ReferenceEvaluator

        call = NodeCall(self.ops[op], inputs, attributes, only)
        key = call.function_key
        if key not in self._evaluators:
            model = call.function_model(self.module)
            onnx.checker.check_model(model)
            inlined = onnx.inliner.inline_local_functions(model)
            if "float64" in call.dtypes.values() and any(node.op_type == "Erf" for node in inlined.graph.node):
                raise Unsupported("ONNX's reference evaluator computes Erf in float32")
            try:
                onnx.shape_inference.infer_shapes(inlined, check_type=True, strict_mode=True, data_prop=True)
            except onnx.shape_inference.InferenceError:
                # What is known of values goes on as if every tensor were a vector, so that sums of columns and rows are refused.
                onnx.shape_inference.infer_shapes(inlined, check_type=True, strict_mode=True)
            self._evaluators[key] = ReferenceEvaluator(inlined, new_ops=places_of_nothing())
        evaluator = self._evaluators[key]
        return call.run(lambda feeds: evaluator.run(None, feeds))

    def checks(self) -> Sequence[Check]:
        """Return what ONNX's tools promise of the op: checker, inference, function, inliner, text."""
        from opc.backends.onnx.checks import OnnxChecks

        return OnnxChecks(self.family, self.module).all()
