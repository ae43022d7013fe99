"""The calls that backends' checks make up: the op has values there, whatever its functions take."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from opc.backends.base import OpError, Session, Unsupported
from opc.backends.checks import Checks, Sample
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.frame import DomainError

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
        try:
            return {n: v.value for n, v in evaluate(family.forward, arrays, attributes).items()}
        except DomainError as error:
            raise OpError(str(error)) from error

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


def checks_of(text: str) -> Checks[Session]:
    return Checks(session(compile_text(f"op: sampled\ndomain: tests\nversion: 1\ndoc: An op.\n{text}", "sampled")))


SQUARES = "types: {T: [int32, float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y[i] = x[i] * x[i]\n"


@pytest.mark.parametrize(
    ("require", "examples", "size"),
    [
        ("", "{x: [], y: []}, {x: [3, 2, 1], y: [9, 4, 1]}", 3),
        ("", "{x: [], y: []}", 2),
        ("require: [N % 3 == 0]\n", "{x: [], y: []}", 0),
    ],
)
def test_a_sample_has_elements_where_the_op_allows_that(require: str, examples: str, size: int) -> None:
    checks = checks_of(f"{SQUARES}{require}examples: [{examples}]\n")
    assert [checks.sample(times=n).given["x"].size for n in (1, 2)] == [size, 2 * size]


def test_a_sample_has_no_elements_where_the_op_has_no_value_of_any() -> None:
    """The element that is there does not say which element of none it is."""
    body = "types: {T: [float64]}\ninputs: {x: 'T[N]', at: 'int64[M]'}\noutputs: {y: 'T[M]'}\nkernel: y[i] = x[at[i] - 1]\n"
    given = checks_of(f"{body}examples: [{{x: [3], at: [], y: []}}]\n").sample(times=2)
    assert (given.given["x"].size, given.given["at"].size) == (1, 0)


def test_numbers_are_the_examples_where_the_op_has_values_of_no_others() -> None:
    body = "types: {T: [float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y[i] = x[cast(int64, x[i]) - 4]\n"
    checks = checks_of(f"{body}examples: [{{x: [5, 4], y: [4, 5]}}]\n")
    assert checks.sample(times=2).given["x"].tolist() == [5, 4, 5, 4]


CHOSEN = """types: {T: [int32, float32], U: [int64, float32, float64], V: [int8, uint8]}
inputs: {x: 'T[N]', 'w?': 'T[N]'}
attributes: {to: {type: dtype, binds: U, default: int64}, code: {type: dtype, binds: V, default: int8}}
outputs: {y: 'U[N]', z: 'V[N]'}
kernel: |
  y[i] = cast(U, x[i] * (w[i] if present(w) else 1))
  z[i] = cast(V, x[i])
"""


@pytest.mark.parametrize(("named", "to"), [("", "float64"), ("to: int64, ", "float64"), ("to: float32, ", "float32")])
def test_a_sample_that_is_differentiated_has_floating_types(named: str, to: str) -> None:
    checks = checks_of(f"{CHOSEN}examples: [{{x: [1, 2], {named}y: [1, 2], z: [1, 2]}}]\n")
    given = checks.differentiated_sample(times=2)
    assert given.given["x"].dtype == np.float32
    assert given.attributes == {"to": to}
    assert checks.sample().attributes.get("to", "int64") == (named[4:-2] or "int64")


def test_no_sample_is_differentiated_without_an_operand_that_has_a_gradient() -> None:
    body = "inputs: {n: 'int64[N]', 'x?': 'float64[N]'}\noutputs: {y: 'float64[N]'}\n"
    kernel = "kernel: y[i] = cast(float64, n[i]) + (x[i] if present(x) else 0)\n"
    with pytest.raises(Unsupported, match="no example of the spec gives an operand that has a gradient"):
        checks_of(f"{body}{kernel}examples: [{{n: [1], y: [1]}}]\n").differentiated_sample()


@pytest.mark.parametrize(
    ("backend", "kind", "names"),
    [
        ("jax", "JaxChecks", ("jvp", "hessian")),
        (
            "paddle",
            "PaddleChecks",
            ("static_gradient", "own_gradient", "unused_outputs", "some_gradients", "to_static"),
        ),
        ("torch", "TorchChecks", ("gradcheck", "vmap_grad", "jvp", "hessian", "compile_gradient")),
    ],
)
def test_checks_of_gradients_take_samples_that_have_them(
    backend: str, kind: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example's types may be of integers, of which frameworks' own tests of gradients know nothing."""
    for module in ("jax", "paddle"):
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
    found = getattr(importlib.import_module(f"opc.backends.{backend}.checks"), kind)

    class Asking(found):
        def differentiated_sample(self, seed: int = 0, times: int = 1) -> Sample:
            raise Unsupported("differentiated")

    checks = Asking(session(compile_text(f"op: sampled\ndomain: tests\nversion: 1\ndoc: An op.\n{SQUARES}", "sampled")))
    for name in names:
        with pytest.raises(Unsupported, match="differentiated"):
            getattr(checks, name)()
