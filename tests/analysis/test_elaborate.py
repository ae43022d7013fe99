"""Golden tests of the front end: spec in, printed typed IR out.

After a wanted change, `OPC_UPDATE_GOLDEN=1 pytest tests/analysis/test_elaborate.py` writes the expectations anew; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opc.analysis.elaborate.typing import elaborate, elaborate_gradient
from opc.analysis.shapes.plan import undetermined
from opc.diagnostics import Diagnostics
from opc.ir.printer import format_op
from opc.ir.verify import verify
from opc.spec.loader import load, loads

GOLDEN = Path(__file__).parent / "golden"
SPECS = sorted(GOLDEN.glob("*.yaml"))


def printed(path: Path) -> str:
    """Return the IR of a spec, and of its explicit gradient."""
    spec = load(path)
    found = Diagnostics()
    op = elaborate(spec, found)
    verify(op)
    text = format_op(op)
    if spec.model.gradient.mode == "body":
        backward = elaborate_gradient(spec, op, found)
        assert not undetermined(backward)
        text += format_op(backward)
    return text + "".join(f"warning: {d.message}\n" for d in found.items)


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_elaborates_as_before(path: Path) -> None:
    expected = path.with_suffix(".ir")
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        expected.write_text(printed(path))
    assert printed(path) == expected.read_text()


def test_elaboration_is_deterministic() -> None:
    for path in SPECS:
        assert printed(path) == printed(path)


@pytest.mark.parametrize(
    ("inputs", "outputs", "body", "warned"),
    [
        ("{like: 'T[M, N]'}", "{y: 'T[M, N]'}", "y[i, j] = 1 if i == j else 0", []),
        ("{like: 'T[*A]', x: 'T[]'}", "{y: 'T[*A]'}", "y[*A] = x", []),
        ("{like: 'T[N]', x: 'T[N]'}", "{y: 'T[N]'}", "y = x", ["the input 'like' is not used"]),
        ("{like: 'T[M]', x: 'T[N]'}", "{y: 'T[N]'}", "y = x", ["the input 'like' is not used"]),
        ("{like: 'T[M]', x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = x[i] * M", []),
        ("{like: 'T[M]', x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = x[i] if i < M else sum[k:M](x[i])", []),
        ("{like: 'T[*A]', x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = x[i] * size(*A)", []),
        ("{like: 'T[*A]', x: 'T[N, *A]'}", "{y: 'T[N, *A]'}", "y[i, *A] = x[i, *A] * size(*A)", ["the input 'like' is not used"]),
        ("{like: 'T[M]'}", "{y: 'T[M2]'}\nshape: {M2: 2 * M}", "y[i] = 1", []),
        ("{like: 'U[]', x: 'T[N]'}", "{y: 'U[N]'}", "y = cast(U, x)", []),
        ("{like: 'U[]', x: 'T[N]'}", "{y: 'T[N]'}", "y = cast(T, cast(U, x))", []),
        ("{like: 'U[]', x: 'T[N]'}", "{y: 'acc(U)[N]'}", "y = cast(acc(U), x)", []),
        ("{like: 'U[]', x: 'T[N]', u: 'U[N]'}", "{y: 'U[N]'}", "y = cast(U, x) + u", ["the input 'like' is not used"]),
        ("{like: 'U[]', x: 'T[N]'}", "{y: 'T[N]'}", "y = x", ["the input 'like' is not used"]),
    ],
)
def test_an_input_that_alone_gives_a_size_or_a_type_is_used(inputs: str, outputs: str, body: str, warned: list[str]) -> None:
    found = Diagnostics()
    types = "{T: floating, U: floating}" if "U" in inputs else "{T: floating}"
    head = f"op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {types}\n"
    elaborate(loads(f"{head}inputs: {inputs}\noutputs: {outputs}\nkernel: |\n  {body}\n", "foo.yaml"), found)
    assert [d.message for d in found.items] == warned
