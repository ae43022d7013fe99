"""The brute-force evaluator gives what the specs' own examples say, and its judge contradicts what is wrong."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import yaml

from opc.ir.affine import Affine
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.fuzz import brute
from tests.fuzz.calls import draw
from tests.fuzz.judge import wrong_gradients, wrong_values
from tests.fuzz.reading import Spec, read_spec
from tests.fuzz.translate import OutsideError
from tests.fuzz.written import THEMES, specs

SPECS = sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))
HEAD = "op: probe\ndomain: test\nversion: 1\ndoc: A probe.\ntypes: {T: [float64]}\ninputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N]'}\n"


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    text = path.read_text()
    spec = read_spec(text)
    for example in yaml.safe_load(text).get("examples", []):
        inputs = {}
        for name, (kind, _) in spec.inputs.items():
            if name in example:
                dtype = np.float64 if kind in spec.types or kind.startswith("float") else np.dtype(kind)
                value = np.asarray(example[name])
                inputs[name] = value.astype(dtype if value.dtype.kind == "f" or kind not in spec.types else _held(spec, kind))
        given = {n: example[n] for n in spec.attributes if n in example} | _shown(spec, example)
        found = brute.evaluate(text, inputs, given)
        for name, (_, shape, values) in found.items():
            if name in example:
                got = np.array([values[at] for at in np.ndindex(shape)], np.float64).reshape(shape)
                np.testing.assert_allclose(got, np.asarray(example[name], np.float64), rtol=1e-4, atol=1e-6)


def _shown(spec: Spec, example: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes that data tells as the outputs of an example show them."""
    told = {n for n, a in spec.attributes.items() if a["type"] == "size" and n not in example}
    pairs = (p for name, (_, dims) in spec.outputs.items() if name in example for p in zip(dims, np.shape(example[name])))
    return {d.id: size for d, size in pairs if isinstance(d, ast.Name) and d.id in told}


def _held(spec: Spec, kind: str) -> str:
    """Return the dtype that whole numbers of an example have: float64 where the type variable may be it."""
    return "float64" if {"floating", "any", "float64"} & set(spec.types[kind]) else spec.types[kind][0]


WHOLE = {
    "u[i] - n": (-56, "int64"),
    "u[i] + 127": (-2, "int8"),
    "u[i] + (100 + 28)": (127 + 128, "int64"),
    "u[i] + (127 if n > 0 else -128)": (-2, "int8"),
    "u[i] + (127 if n > 0 else 128)": (254, "int64"),
    "u[i] + (i - i) + 1": (128, "int64"),
    "u[i] + sum[k:3](1)": (130, "int64"),
    "u[i] * abs(-3)": (381, "int64"),
    "minimum(u[i], N + 300)": (127, "int64"),
    "pad(u[i + 1], n)": (183, "int64"),
    "u[i] if n < 0 else i + 300": (300, "int64"),
    "abs(u[i] + 1) - n": (-128 - 183, "int64"),
}
"""What is computed of a single int8 element 127 with an attribute of 183, and in which type."""


@pytest.mark.parametrize("expression", WHOLE)
def test_whole_numbers_beside_a_narrow_operand(expression: str) -> None:
    """The oracle and brute force read the rule in docs/language.md alike: what the type does not hold is computed in 64 bits."""
    value, dtype = WHOLE[expression]
    text = f"""\
op: probe
domain: test
version: 1
doc: A probe.
inputs: {{u: 'int8[N]'}}
attributes: {{n: {{type: int, default: 183}}}}
outputs: {{y: 'int64[N]', z: 'int64[N]'}}
gradient: none
kernel: |
  t[i:N] = {expression}
  y[i] = cast(int64, t[i])
  z[i] = cast(int64, t[i] * 100)
"""
    inputs = {"u": np.array([127], np.int8)}
    found = brute.evaluate(text, inputs, {})
    # A product shows in which type it is computed.
    scaled = value * 100 if dtype == "int64" else (value * 100 + 128) % 256 - 128
    assert (found["y"][2][0,], found["z"][2][0,]) == (value, scaled)
    sure = evaluate(compile_text(text, "probe").forward, inputs, {})
    assert (sure["y"].value.tolist(), sure["z"].value.tolist()) == ([value], [scaled])


def test_names_that_targets_spell_otherwise() -> None:
    """The evaluator reads the spec's text, which says `new` where the op has `new_`."""
    head = HEAD.replace("types:", "attributes: {delete: {type: float, default: 2}}\ntypes:")
    text = head.replace("{x:", "{new:").replace("{y:", "{len:") + "kernel: |\n  len[n] = delete * new[n, n]\n"
    family = compile_text(text, "probe")
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert not list(wrong_values(text, family, case))
    assert not list(wrong_gradients(text, family, case))
    other = text.replace("delete *", "3 * delete *")
    assert list(wrong_values(other, family, case))
    assert list(wrong_gradients(other, family, case))


def test_a_wrong_value_is_seen() -> None:
    family = compile_text(HEAD + "kernel: |\n  y[n] = 2 * x[n, n]\n", "probe")
    other = HEAD + "kernel: |\n  y[n] = 2 * x[n, 0]\n"
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert list(wrong_values(other, family, case))
    assert list(wrong_gradients(other, family, case))


@pytest.mark.parametrize("chosen", ["maximum(stop_gradient(x[n, n]), x[n, n])", "abs(x[n, n] - stop_gradient(x[n, n]))"])
def test_nothing_is_told_at_a_kink(chosen: str) -> None:
    """Differences tell the mean of the two slopes, where the op has the one that the language gives it."""
    family = compile_text(HEAD + f"kernel: |\n  y[n] = 3 * {chosen}\n", "probe")
    other = HEAD + f"kernel: |\n  y[n] = 3 * {chosen} + x[n, n]\n"
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert not list(wrong_gradients(other, family, case))
    smooth = other.replace(chosen, "x[n, n] * stop_gradient(x[n, n])")
    assert list(wrong_gradients(smooth, family, case))


def test_a_wrong_second_gradient_is_seen() -> None:
    """The value and its gradient at the point agree, and the second gradient does not: the cube's terms are apart there only."""
    family = compile_text(HEAD + "kernel: |\n  y[n] = x[n, n] * stop_gradient(x[n, n])\n", "probe")
    other = HEAD + "kernel: |\n  y[n] = x[n, n] * stop_gradient(x[n, n]) + x[n, n] ** 2 - stop_gradient(2 * x[n, n]) * x[n, n]\n"
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    assert any("second" in message for message in wrong_gradients(other, family, case))


def test_conditions_around_what_is_stopped() -> None:
    """Where a difference crosses zero, another side is chosen than where the values were kept."""
    text = HEAD + "kernel: |\n  y[n] = (stop_gradient(x[n, n]) if x[n, n] > 0 else x[n, 0]) * x[n, n]\n"
    tape = brute.Tape()
    found = [brute.evaluate(text, {"x": np.full((2, 2), x)}, {}, tape)["y"][2][0,] for x in (-1.0, 2.0, 3.0)]
    assert found == [1.0, 4.0, 6.0]


def test_a_read_outside_is_seen() -> None:
    text = HEAD + "kernel: |\n  y[n] = x[n, n + 1]\n"
    with pytest.raises(OutsideError):
        brute.evaluate(text, {"x": np.ones((2, 2))}, {})


def test_overflow_on_the_way_in_a_narrower_type() -> None:
    """In float32 the square is infinite, and the quotient no number; the evaluator computes in float64."""
    text = HEAD.replace("float64", "float32") + "kernel: |\n  y[n] = (x[n, n] * 1e38 * 1e38) / (x[n, n] * 1e10) ** 4\n"
    family = compile_text(text, "probe")
    (case,) = draw(family.forward, None, random.Random(2), 1, small=True)
    wide = case.inputs["x"]
    assert wide is not None
    case = replace(case, inputs={"x": replace(wide, data=np.full((2, 2), 3.0, np.float32), layout="contiguous")})
    assert not list(wrong_values(text, family, case))
    assert list(wrong_values(text.replace("** 4", "** 3"), family, case))


@pytest.mark.parametrize(
    "text", [t for name in ("recurrence", "order") for t in specs(name, THEMES[name])], ids=lambda t: t.split()[1]
)
def test_recurrences_and_orders(text: str) -> None:
    """The oracle agrees on values that are made from themselves, and on what is sorted."""
    family = compile_text(text.replace("T: [float32]", "T: [float64]"))
    random_sizes = np.random.default_rng(3)
    sizes = {"N": 5, "D": 3, "B": 2, "K": 2, "J": 3}
    inputs = {}
    for o in family.forward.inputs:
        shape = [2 if not isinstance(d, Affine) else sizes[str(d)] if d.constant is None else d.constant for d in o.dims]
        whole = str(o.type) == "int64"
        inputs[o.name] = random_sizes.integers(0, 5, size=shape) if whole else random_sizes.normal(size=shape)
    found = brute.evaluate(text.replace("T: [float32]", "T: [float64]"), inputs, {})
    for name, answer in evaluate(family.forward, inputs).items():
        _, shape, values = found[name]
        got = np.array([values[at] for at in np.ndindex(shape)], np.float64).reshape(shape)
        assert np.all((got >= answer.bounds.low) & (got <= answer.bounds.high)), name


def test_a_literal_beside_a_variable_of_several_integers() -> None:
    """Of int2 and uint4 both hold 1, and one alone 9: beside that both are computed in 64 bits, whichever is called with."""
    text = (
        "op: probe\ndomain: test\nversion: 1\ndoc: A probe.\ntypes: {Q: [uint4, int2]}\ninputs: {q: 'Q[N]'}\n"
        "outputs: {y: 'int64[N]', z: 'int64[N]'}\ngradient: none\n"
        "kernel: |\n  y[n] = cast(int64, q[n] * 9)\n  z[n] = cast(int64, (q[n] << 1) * q[n])\n"
    )
    inputs = {"q": np.array([15]).astype(ml_dtypes.uint4)}
    found = brute.evaluate(text, inputs, {})
    sure = evaluate(compile_text(text, "probe").forward, inputs, {})
    for name, value in (("y", 135), ("z", 450 % 256 - 256)):
        assert found[name][2][0,] == sure[name].value.tolist()[0] == value
