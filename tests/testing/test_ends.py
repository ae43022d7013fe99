"""Calls with int attributes at the ends of 64 bits: which ops get them, and that each has an answer."""

from __future__ import annotations

import pytest

from opc.analysis.shapes.inference import infer
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.ends import GREATEST, LEAST, WIDE, far_attributes, far_steps, fits, fits_in
from opc.testing.cases.table import accepted
from opc.testing.extent import Extent
from opc.testing.plan import expected
from tests.fuzz.calls import parents
from tests.fuzz.classes import HEAD

STEPS = ("{k: {type: int, check: k > 0}}", "y[t] = x[t] + pad(y[t - k], 0)")
CHOICE = ("{n: int, m: int}", "y[i] = x[i] if m - i >= n else 0")
SHIFT = ("{n: int}", "y[i] = pad(x[i + n], 0)")
SCALE = ("{n: int}", "y[i] = pad(x[2*i*n], 0)")
SLICE = ("{n: int, m: int}", "y[i] = pad(x[i*n + m], 0)")
WIDE_N, WIDE_M = ([{name: WIDE}, {name: -WIDE}] for name in "nm")
CANCELLING = [{"n": WIDE, "m": WIDE}, {"n": WIDE, "m": -WIDE}]
LISTED = ("{n: 'int[2]'}", "y[i] = x[i] if n[0] <= i and i < n[1] else 0")


def family(attributes: str, body: str) -> Family:
    text = (
        f"{HEAD.format(name='far')}inputs: {{x: 'T[N]'}}\nattributes: {attributes}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  {body}\n"
    )
    return compile_text(text, "far")


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        (STEPS, [{"k": GREATEST}, {"k": WIDE}, {"k": -WIDE}]),
        (
            CHOICE,
            [
                *({"n": GREATEST, "m": GREATEST}, {"n": LEAST, "m": GREATEST}, {"n": GREATEST}, {"n": LEAST}, {"m": GREATEST}),
                *(*WIDE_N, *WIDE_M, *CANCELLING),
            ],
        ),
        (SHIFT, [{"n": LEAST}, *WIDE_N]),  # i + 2^63 - 1 is no number of 64 bits
        (SCALE, WIDE_N),
        (SLICE, [*WIDE_N, *WIDE_M, *CANCELLING]),  # i*n may be of any sign, and is no number of 64 bits where n is at an end
        (LISTED, [{"n": (value, value)} for value in (GREATEST, LEAST, WIDE, -WIDE)]),
    ],
)
def test_ends_that_the_language_specifies(spec: tuple[str, str], known: list[dict[str, object]]) -> None:
    op = family(*spec).forward
    accepting = [chosen for chosen in far_attributes(op, (op,)) if chosen.get("k") != LEAST]
    assert accepting == known


def test_what_fits() -> None:
    op = family(*CHOICE).forward
    assert fits(op, {"m": GREATEST})
    assert fits(op, {"m": LEAST + 2**16})
    assert not fits(op, {"m": LEAST})


@pytest.mark.parametrize("spec", [STEPS, CHOICE, SHIFT, SCALE, SLICE, LISTED])
@pytest.mark.parametrize("extent", [Extent.WHOLE, Extent.SAMPLE])
def test_all_ops_of_a_family_are_called_there(spec: tuple[str, str], extent: Extent) -> None:
    """What is derived too, wherever the spec's own sums fit; and the oracle has an answer."""
    one = family(*spec)
    above: dict[int, Op | None] = parents(one)
    for op in one.ops:
        cases = [c for c in accepted(op, above.get(id(op)), random=0, extent=extent, written=one.written) if c.kind == "ends"]
        assert 0 < len(cases) <= (14 if extent is Extent.WHOLE else 2), op.name
        assert all(expected(op, "forward", c).expected is not None for c in cases)


STRIDED = (
    f"{HEAD.format(name='far')}inputs: {{x: 'T[N]'}}\nattributes: {{k: {{type: int, check: k > 0}}}}\noutputs: {{y: 'T[M]'}}\n"
    "shape: {M: (N - 1) // k + 1}\nrequire: [N > 0]\nkernel: |\n  y[i] = sum[j:M](x[i*k]) + pad(x[i*k + 1], 0)\n"
)


def test_steps_of_which_sums_fit_in_some_calls() -> None:
    """Of a single i, `i*k` is 0, and `i*k + 1` fits, whatever k is; of two it is k."""
    op = compile_text(STRIDED, "far").forward
    assert list(far_attributes(op, (op,))) == [{"k": WIDE}, {"k": -WIDE}]
    assert list(far_steps(op, (op,))) == [{"k": k} for k in (GREATEST, GREATEST - 1, 2**62 + 1, LEAST)]
    assert fits_in(op, infer(op, {"x": (5,)}, {"k": GREATEST}))
    assert fits_in(op, infer(op, {"x": (5,)}, {"k": 2}))
    several = f"{HEAD.format(name='far')}inputs: {{x: 'T[N]'}}\nattributes: {{k: int}}\noutputs: {{y: 'T[N]'}}\n"
    every = compile_text(f"{several}kernel: |\n  y[i] = pad(x[i*k + 1], 0)\n", "far").forward
    calls = [(1, GREATEST), (1, LEAST), (2, GREATEST - 1), (2, GREATEST), (3, 2**62), (3, -(2**62)), (0, GREATEST)]
    assert [fits_in(every, infer(every, {"x": (n,)}, {"k": k})) for n, k in calls] == [True, True, True, False, False, True, True]


def test_all_ops_of_a_family_are_called_with_such_steps() -> None:
    one = compile_text(STRIDED, "far")
    above: dict[int, Op | None] = parents(one)
    for op in one.ops:
        cases = [c for c in accepted(op, above.get(id(op)), random=0, written=one.written) if c.kind == "steps"]
        assert [c.attributes["k"] for c in cases] == [GREATEST, GREATEST - 1, 2**62 + 1], op.name
        assert all(expected(op, "forward", c).expected is not None for c in cases)


def test_a_derived_op_alone_tells_nothing_of_the_spec() -> None:
    one = family(*STEPS)
    assert one.backward is not None
    assert not [c for c in accepted(one.backward, one.forward, random=0) if c.kind == "ends"]
