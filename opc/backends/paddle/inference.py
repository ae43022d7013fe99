"""A built library in Paddle Inference, as the proof calls it: every call is a saved model that the predictor runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.base import Check, OpError, WithoutAutograd
from opc.backends.dtypes import require_dtype
from opc.backends.paddle.session import REFUSALS, complete, computable
from opc.backends.paddle.signature import has_mask
from opc.backends.paddle.values import attribute_values, carried, to_numpy
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array

KEPT = 64
"""How many predictors a session keeps."""


class InferenceSession(WithoutAutograd):
    """Saves each op as a model, whose sizes are all open, and calls that."""

    no_autograd = "Paddle Inference has no autograd"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package, which registers its operators.

        Raises:
            ImportError: when it is not built.
        """
        self.family = family
        self.operators = packages.load(package, "paddle.operators")
        self._ops = {op.name: op for op in family.ops}
        self._folder = tempfile.TemporaryDirectory(prefix="opc-paddle-")
        self._models: dict[Any, Any] = {}
        self._made = 0

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`. `only` are the names of the wanted outputs."""
        import numpy as np
        import paddle

        described = self._ops[op]
        values = complete(described, attributes)
        names = [o.name for o in described.outputs]
        if has_mask(described):
            names = [n for n in names if n in (computable(described, inputs, values) if only is None else only)]
        given = {x.name: a for x in described.inputs if (a := inputs.get(x.name)) is not None}
        for array in given.values():
            require_dtype(array, "a graph of Paddle", lambda d: d.row.paddle_graphs)
        arrays = {n: np.ascontiguousarray(carried(a)).reshape(a.shape) for n, a in given.items()}
        key = (op, repr(values), tuple(names), tuple((n, a.dtype.name, a.ndim) for n, a in given.items()))
        try:
            if key not in self._models:
                while len(self._models) >= KEPT:
                    self._models.pop(next(iter(self._models)))
                self._models[key] = self._model(described, given, values, names)
            predictor = self._models[key]
            results = predictor.run([paddle.to_tensor(arrays[n], place=paddle.CPUPlace()) for n in predictor.get_input_names()])
        except (*REFUSALS, paddle.base.core.EnforceNotMet) as error:
            raise OpError(str(error)) from error
        made = dict(zip(names, map(to_numpy, results), strict=True))
        return made if only is None else {name: made[name] for name in only}

    def _model(self, op: Op, given: Mapping[str, Array], attributes: Mapping[str, Any], outputs: Sequence[str]) -> Any:
        """Save a model that is one call, of inputs of these dtypes and ranks, and return a predictor of it."""
        import paddle

        self._made += 1
        path = Path(self._folder.name, f"{op.name}_{self._made}")
        values = list(attribute_values(op, attributes).values())
        with static_graph() as program:
            fed = {n: paddle.static.data(n, [-1] * a.ndim, a.dtype.name) for n, a in given.items()}
            wanted = [o.name in outputs for o in op.outputs]
            results = getattr(self.operators, op.name)([fed.get(x.name) for x in op.inputs], values, wanted)
            fetched = [r for r in results if r is not None]
            executor = paddle.static.Executor(paddle.CPUPlace())
            paddle.static.save_inference_model(str(path), list(fed.values()), fetched, executor, program=program)
        return predictor(path)

    def checks(self) -> Sequence[Check]:
        """Return what Paddle Inference promises of an op beyond values: nothing that the calls themselves do not prove."""
        return ()


def predictor(path: Path, *, optimized: bool = False) -> Any:
    """Return a predictor of a saved model, `path` without its ending, as it is: passes over its graph cost most of the time."""
    from paddle import inference

    config = inference.Config(f"{path}.json", f"{path}.pdiparams")
    config.disable_gpu()
    config.disable_glog_info()
    if not optimized:
        config.switch_ir_optim(False)
        config.disable_mkldnn()
    return inference.create_predictor(config)


@contextmanager
def static_graph() -> Iterator[Any]:
    """Build a static graph, and go back to dynamic ones."""
    import paddle

    program = paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(program, paddle.static.Program()):
            yield program
    finally:
        paddle.disable_static()
