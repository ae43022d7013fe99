"""The calls that backends' checks make up: the op has values there, whatever its functions take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from opc.backends.base import OpError, Session
from opc.backends.checks import Checks
from opc.ir.op import Family
from opc.pipeline import load_family
from opc.testing.oracle.evaluation import evaluate

SPECS = Path(__file__).parents[2] / "specs"

ARC = """op: arc
domain: tests
version: 1
doc: Arc cosine.
types: {{T: floating}}
inputs: {{x: 'T[...]'}}
outputs: {{y: 'T[...]'}}
kernel: |
  y = acos(x)
examples:
  - {{x: {}, y: {}}}
"""


def session(family: Family) -> Session:
    """A session that computes by the oracle."""

    def call(op: str, arrays: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
        assert op == family.name
        return {n: v.value for n, v in evaluate(family.forward, arrays, attributes).items()}

    return cast(Session, SimpleNamespace(family=family, call=call))


@pytest.mark.parametrize(
    ("name", "low", "high"), [("onnx/sin", -9, 9), ("onnx/log", 0.1, 0.9), ("onnx/atanh", 0.1, 0.9), ("onnx/acosh", 1.1, 1.9)]
)
def test_an_op_has_values_at_its_samples(name: str, low: float, high: float) -> None:
    checks = Checks(session(load_family(SPECS / f"{name}.yaml")))
    first, other = checks.sample(), checks.sample(1)
    for given in (first, other):
        assert low <= given.given["x"].min() <= given.given["x"].max() <= high
        assert not np.isnan(checks.session.call(checks.op.name, given.arrays, given.attributes)["y"]).any()
    assert not np.array_equal(first.given["x"], other.given["x"])


@pytest.mark.parametrize("count", range(1, 6))
def test_an_op_has_values_at_every_sample(tmp_path: Path, count: int) -> None:
    """Not at that alone by which the draw was chosen: few magnitudes may lie where the function has values by chance."""
    path = tmp_path / "arc.yaml"
    path.write_text(ARC.format([0.5] * count, [math.acos(0.5)] * count))
    checks = Checks(session(load_family(path)))
    for times in (1, 2, 3):
        for seed in range(3):
            given = checks.sample(seed, times)
            found = checks.session.call(checks.op.name, given.arrays, given.attributes)
            assert not np.isnan(found["y"]).any(), (times, seed, given.given)


def test_an_op_that_refuses_all_samples_has_the_first() -> None:
    family = load_family(SPECS / "onnx/sin.yaml")

    def call(*_: object) -> dict[str, Any]:
        raise OpError("sin: not here")

    refusing = Checks(cast(Session, SimpleNamespace(family=family, call=call)))
    assert np.array_equal(refusing.sample().given["x"], Checks(session(family)).sample().given["x"])
