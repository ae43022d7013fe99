"""Powers whose exponent a call fixes have a case for the default, in which they are a few multiplications."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opc
from opc.ir.expr import Call, Const, walk
from opc.lower.specialise import specialise
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64], N: [int32, uint8]}
inputs: {x: 'T[...]', n: 'N[...]'}
outputs: {y: 'T[...]', m: 'N[...]'}
"""


def cases(attributes: str, y: str, m: str = "n") -> dict[str, list[str]]:
    """Return the exponents of each case of a body, by the case's suffix."""
    text = f"{HEAD}gradient: none\nattributes: {{{attributes}}}\nkernel: |\n  y = {y}\n  m = {m}\n"
    return {
        case.suffix: [
            str(e.args[1].value) if isinstance(e.args[1], Const) else "told"
            for s in case.op.body
            for e in walk(s.value)
            if isinstance(e, Call) and e.fn == "pow"
        ]
        for case in specialise(compile_text(text, "f.yaml").forward)
    }


@pytest.mark.parametrize(
    ("attributes", "y", "found"),
    [
        ("g: {type: float, default: 2.0}", "abs(x) ** g", {"_g_2_0": ["2"], "_g_not_2_0": ["told"]}),
        (
            "g: {type: float, default: 3.0}",
            "abs(x) ** g + abs(x) ** (1 - g)",
            {"_g_3_0": ["3", "-2"], "_g_not_3_0": ["told", "told"]},
        ),
        ("g: {type: float, default: -1.0}", "abs(x) ** cast(T, g)", {"_g_minus_1_0": ["-1"], "_g_not_minus_1_0": ["told"]}),
        # A power of 1 is the operand itself.
        ("g: {type: float, default: 2.0}", "abs(x) ** g * x ** (g - 1)", {"_g_2_0": ["2"], "_g_not_2_0": ["told", "told"]}),
        # Nothing is gained where the exponent is no small whole number, has no default, or is made of more than one attribute.
        ("g: {type: float, default: 0.75}", "abs(x) ** g", {"": ["told"]}),
        ("g: {type: float, default: 2.0}", "x ** (1 / g)", {"": ["told"]}),
        ("g: {type: int, default: 9}", "abs(x) ** g", {"": ["told"]}),
        ("g: {type: float}", "abs(x) ** g", {"": ["told"]}),
        ("g: {type: int, default: 1}, h: {type: int, default: 1}", "x ** (g + h)", {"": ["told"]}),
    ],
)
def test_a_default_that_makes_a_small_power_has_a_case(attributes: str, y: str, found: dict[str, list[str]]) -> None:
    assert cases(attributes, y) == found


def test_whole_numbers_are_raised_to_no_negative_constant() -> None:
    """Their powers of negative exponents follow a rule of their own, and so does -1 as an unsigned number."""
    assert cases("g: {type: int, default: 2}", "x", "n ** cast(N, g - 3)") == {"": ["told"]}
    assert cases("g: {type: int, default: 2}", "x ** cast(T, cast(N, g - 3))") == {"": ["told"]}


def test_values_agree_with_numpy(tmp_path: Path) -> None:
    spec = tmp_path / "f.yaml"
    spec.write_text(
        f"{HEAD}gradient: none\nattributes: {{g: {{type: float, default: 2.0}}, p: {{type: int, default: 3}}}}\n"
        "kernel: |\n  y = abs(x) ** g\n  m = n ** p\n"
    )
    op = opc.load(spec)
    x = np.array([0.0, -0.5, 2.0, np.inf, -3.0, 1e-30])
    n = np.array([0, 1, 2, 7, 250, 255], np.uint8)
    with np.errstate(all="ignore"):
        for g, p in ((2.0, 3), (1.0, 0), (0.0, 1), (-1.0, 4), (0.5, 3), (3.0, 2)):
            y, m = op(x, n, g=g, p=p)
            np.testing.assert_allclose(y, np.abs(x) ** g, rtol=1e-14)
            np.testing.assert_array_equal(m, n ** np.uint8(p))
