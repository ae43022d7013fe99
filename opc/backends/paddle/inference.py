"""A built library in Paddle Inference, as the proof calls it: every call is a saved model that the predictor runs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.dtypes import require_dtype
from opc.backends.paddle.graphs import predictor, static_graph
from opc.backends.paddle.signature import has_mask
from opc.backends.paddle.values import REFUSALS, carried, dtype, to_numpy
from opc.backends.sessions import TensorSession
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array

KEPT = 64
"""How many predictors a session keeps."""


class InferenceSession(TensorSession):
    """Saves each op as a model, whose sizes are all open, and calls that."""

    subpackage = "paddle.operators"
    no_autograd = "Paddle Inference has no autograd"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package, which registers its operators.

        Raises:
            ImportError: when it is not built.
        """
        import paddle

        super().__init__(family, package)
        self.refusals = (*REFUSALS, paddle.base.core.EnforceNotMet)
        self._folder = tempfile.TemporaryDirectory(prefix="opc-paddle-")
        self._models: dict[Any, Any] = {}
        self._made = 0

    def array(self, tensor: Any) -> Array:
        """Return an array with the tensor's values."""
        return to_numpy(tensor)

    def dtype(self, name: str) -> Any:
        """Return Paddle's dtype of that name."""
        return dtype(name)

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Run a predictor of the call, which is made for the first call of its kind."""
        import numpy as np
        import paddle

        values = self.values(op, self.complete(op, attributes))
        wanted = self.wanted(op, tensors, attributes, only) if has_mask(op) else [True] * len(op.outputs)
        given = {n: a for n, a in tensors.items() if a is not None}
        for array in given.values():
            require_dtype(array, "a graph of Paddle", lambda d: d.row.paddle_graphs)
        key = (op.name, repr(values), tuple(wanted), tuple((n, a.dtype.name, a.ndim) for n, a in given.items()))
        if key not in self._models:
            while len(self._models) >= KEPT:
                self._models.pop(next(iter(self._models)))
            self._models[key] = self._model(op, given, list(values.values()), wanted)
        predictor = self._models[key]
        arrays = {n: np.ascontiguousarray(carried(a)).reshape(a.shape) for n, a in given.items()}
        results = predictor.run([paddle.to_tensor(arrays[n], place=paddle.CPUPlace()) for n in predictor.get_input_names()])
        made = iter(results)
        return tuple(next(made) if there else None for there in wanted)

    def _model(self, op: Op, given: Mapping[str, Array], attributes: Sequence[Any], wanted: Sequence[bool]) -> Any:
        """Save a model that is one call, of inputs of these dtypes and ranks, and return a predictor of it."""
        import paddle

        self._made += 1
        path = Path(self._folder.name, f"{op.name}_{self._made}")
        with static_graph() as program:
            fed = {n: paddle.static.data(n, [-1] * a.ndim, a.dtype.name) for n, a in given.items()}
            results = getattr(self.module, op.name)([fed.get(x.name) for x in op.inputs], attributes, wanted)
            fetched = [r for r in results if r is not None]
            executor = paddle.static.Executor(paddle.CPUPlace())
            paddle.static.save_inference_model(str(path), list(fed.values()), fetched, executor, program=program)
        return predictor(path)
