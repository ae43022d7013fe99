"""The calls that torch's own check of operators is given: of each operator of a family that the sample's types have."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from opc.backends.checks import Sample
from opc.backends.torch.samples import operator_calls
from opc.backends.torch.session import TorchSession
from opc.ir.op import Family, Op
from opc.pipeline import compile_text

CAST = """
op: as_type
domain: tests
version: 1
doc: A cast.
types: {T: [float32], U: [float32, float64, bool]}
inputs: {x: 'T[...]'}
attributes: {to: {type: dtype, binds: U}}
outputs: {y: 'U[...]'}
kernel: |
  y = cast(U, x)
"""


def session(family: Family) -> TorchSession:
    """A session whose operators give ones, in the type that is asked for."""

    def operator(op: Op) -> Any:
        def raw(*arguments: Any) -> Any:
            made = [torch.ones(2, dtype=torch.bool if arguments[-1] == "bool" and op is family.forward else torch.float32)]
            return made[0] if len(op.outputs) == 1 else tuple(made * len(op.outputs))

        return SimpleNamespace(raw=raw)

    def tensors(op: Op, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {x.name: torch.as_tensor(arrays[x.name]) for x in op.inputs if x.name in arrays}

    return cast(
        TorchSession,
        SimpleNamespace(
            family=family,
            complete=lambda op, given: dict(given),
            tensors=tensors,
            wanted=lambda op, tensors, attributes, only: None,
            values=lambda op, attributes: attributes,
            arguments=lambda op, tensors, values, wanted: (*tensors.values(), values["to"]),
            operators=SimpleNamespace(**{op.name: operator(op) for op in family.ops}),
        ),
    )


@pytest.mark.parametrize(("to", "derived"), [("float32", True), ("bool", False)])
def test_what_has_no_cotangent_in_the_samples_types_is_not_called(to: str, derived: bool) -> None:
    family = compile_text(CAST, "as_type")
    assert len(family.ops) == 5
    called = [name for name, _ in operator_calls(session(family), Sample({"x": np.zeros(2, np.float32)}, {"to": to}))]
    assert called == [op.name for op in family.ops][: 5 if derived else 1]
