"""The brute-force evaluator gives what the specs' own examples say, and its judge contradicts what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import yaml

from opc.pipeline import compile_text
from tests.fuzz import brute
from tests.fuzz.calls import draw
from tests.fuzz.judge import wrong_gradients, wrong_values

SPECS = sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))
HEAD = "op: probe\ndomain: test\nversion: 1\ndoc: A probe.\ntypes: {T: [float64]}\ninputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N]'}\n"


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    text = path.read_text()
    spec = brute.read_spec(text)
    for example in yaml.safe_load(text).get("examples", []):
        inputs = {}
        for name, (kind, _) in spec.inputs.items():
            if name in example:
                dtype = np.float64 if kind in spec.types or kind.startswith("float") else np.dtype(kind)
                value = np.asarray(example[name])
                inputs[name] = value.astype(dtype if value.dtype.kind == "f" or kind not in spec.types else _held(spec, kind))
        found = brute.evaluate(text, inputs, {n: example[n] for n in spec.attributes if n in example})
        for name, (_, shape, values) in found.items():
            if name in example:
                got = np.array([values[at] for at in np.ndindex(shape)], np.float64).reshape(shape)
                np.testing.assert_allclose(got, np.asarray(example[name], np.float64), rtol=1e-4, atol=1e-6)


def _held(spec: brute.Spec, kind: str) -> str:
    """Return the dtype that whole numbers of an example have: float64 where the type variable may be it."""
    return "float64" if {"floating", "any", "float64"} & set(spec.types[kind]) else spec.types[kind][0]


def test_a_wrong_value_is_seen() -> None:
    family = compile_text(HEAD + "kernel: |\n  y[n] = 2 * x[n, n]\n", "probe")
    other = HEAD + "kernel: |\n  y[n] = 2 * x[n, 0]\n"
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert list(wrong_values(other, family, case))
    assert list(wrong_gradients(other, family, case))


def test_a_wrong_second_gradient_is_seen() -> None:
    """The value and its gradient at the point agree, and the second gradient does not: the cube's terms are apart there only."""
    family = compile_text(HEAD + "kernel: |\n  y[n] = x[n, n] * stop_gradient(x[n, n])\n", "probe")
    other = HEAD + "kernel: |\n  y[n] = x[n, n] * stop_gradient(x[n, n]) + x[n, n] ** 2 - stop_gradient(2 * x[n, n]) * x[n, n]\n"
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert any("second" in message for message in wrong_gradients(other, family, case))


def test_a_read_outside_is_seen() -> None:
    text = HEAD + "kernel: |\n  y[n] = x[n, n + 1]\n"
    with pytest.raises(brute.OutsideError):
        brute.evaluate(text, {"x": np.ones((2, 2))}, {})
