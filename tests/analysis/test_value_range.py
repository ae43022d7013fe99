"""What is known of indices that are data, and of reads under conditions: which reads need no check when the op runs."""

from __future__ import annotations

import pytest

from opc.diagnostics import SpecError
from opc.ir.expr import Select, reads
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: test\nversion: 1\ndoc: A test.\ntypes: {T: floating}\n"
LOOKUP = "inputs: {x: 'T[N, V]', ids: 'int64[N]'}\nrequire: [V > 0]\noutputs: {y: 'T[N]'}\nkernel: |\n"
VECTOR = "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nattributes: {p: {type: int, default: 1, check: p >= 0}}\nkernel: |\n"


@pytest.mark.parametrize(
    ("index", "checked"),
    [
        ("ids[n]", True),
        ("minimum(maximum(ids[n], 0), V - 1)", False),
        ("minimum(ids[n], V - 1)", True),
        ("ids[n] % V", False),
        ("ids[n] // V", True),
        ("argmax[v](x[n, v])", False),
        ("argmax[v](x[n, v]) + 1", True),
        ("V - 1 - argmin[v](x[n, v])", False),
        ("ids[n] % V if ids[n] > 3 else 0", False),
        ("best[n]", False),
        ("maximum(ids[n], 0) & V - 1", False),
        ("ids[n] & V - 1", False),
        ("ids[n] & ids[n]", True),
        ("minimum(ids[n], V - 1) & 1", True),
        ("ids[n] % V >> 1", False),
        ("ids[n] % V >> ids[n] % 2", False),
        ("ids[n] >> 1", True),
        ("ids[n] % V << 1", True),
        ("~(~ids[n] % V)", True),
        ("V + ~(ids[n] % V)", False),
        ("ids[n] % V | 1", True),
        ("ids[n] % V ^ 0", False),
    ],
)
def test_a_read_that_is_proved_inside_is_not_checked(index: str, checked: bool) -> None:
    best = "  best[n] = argmax[v](x[n, v])\n" if "best" in index else ""
    family = compile_text(f"{HEAD}{LOOKUP}{best}  y[n] = x[n, {index}]\n")
    outer = next(r for r in reads(family.forward.assignments["y"].value) if r.operand == "x")
    assert bool(outer.checked) is checked


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i - p] if i >= p else 0",
        "y[i] = 0 if i < p else x[i - p]",
        "y[i] = x[i + 1] if not i + 1 >= N else x[i]",
        "y[i] = x[abs(i - p)] if i - p > -N else x[i]",
        "y[i] = x[minimum(maximum(i - p, 0), N - 1)]",
        "y[i] = x[i - p if i >= p else 0]",
    ],
)
def test_conditions_around_a_read_prove_it(body: str) -> None:
    value = compile_text(f"{HEAD}{VECTOR}  {body}\n").forward.assignments["y"].value
    assert isinstance(value, Select)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y[i] = x[i - p] if i > p - 2 else 0", "i - p runs from -p to N - p - 1 on an axis of size N"),
        ("y[i] = x[abs(i - p)]", "-i + p runs from -N + p + 1 to p on an axis of size N"),
    ],
)
def test_a_read_that_is_not_proved_is_told_with_its_index_and_range(body: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        compile_text(f"{HEAD}{VECTOR}  {body}\n")
    assert f"the read may fall outside 'x': {message}" in str(error.value)
