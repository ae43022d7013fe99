"""An output takes the memory of an input only where no element is read after it was overwritten."""

from __future__ import annotations

import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.diagnostics import SpecError
from opc.spec.loader import loads

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: d\ntypes: {T: floating}\ninputs: {x: 'T[N]', z: 'T[N]'}\ninplace: {y: x}\n"


def spec(kernel: str, outputs: str = "{y: 'T[N]'}") -> str:
    return HEAD + f"outputs: {outputs}\nkernel: |\n" + "".join(f"  {line}\n" for line in kernel.split("\n"))


@pytest.mark.parametrize(
    "kernel",
    [
        "y = x",
        "y = x if x > 0 else z",
        "t = x * 2\ny = t + x",
        "t[i] = x[i] + z[i]\ny[i] = t[i] * sum[k](z[k])",
        "y[i] = x[i] + z[N - 1 - i]",
        "w = sum[k](z[k])\ny = x * w",
        "y = x + 1\nv = y * 2\nu[i] = v[N - 1 - i]",
    ],
)
def test_allowed(kernel: str) -> None:
    outputs = "{y: 'T[N]', u: 'T[N]'}" if "u[i]" in kernel else "{y: 'T[N]'}"
    assert elaborate(loads(spec(kernel, outputs), "a")).inplace == (("y", "x"),)


@pytest.mark.parametrize(
    "kernel",
    [
        "y[i] = x[N - 1 - i]",
        "y[i] = x[i] - sum[k](x[k])",
        "m = max[k](x[k])\ny = x - m",
        "t = x * 2\ny[i] = t[N - 1 - i]",
        "t = x * 2\ny[i] = x[i] + sum[k](t[k])",
        "y[i] = x[i] + pad(x[i - 1], 0)",
        "y[i] = z[i]\nu[i] = x[i]",
    ],
)
def test_refused(kernel: str) -> None:
    outputs = "{y: 'T[N]', u: 'T[N]'}" if "u[i]" in kernel else "{y: 'T[N]'}"
    with pytest.raises(SpecError, match="can't take the memory"):
        elaborate(loads(spec(kernel, outputs), "a"))


@pytest.mark.parametrize(
    ("kernel", "movable"),
    [
        ("y = x + z\nu = x * z", True),
        ("y[i] = z[i]\nu[i] = x[i]", True),
        ("y = x + z\nn[()] = sum[k](z[k])\nu = x * n", True),
        ("y = x + z\nu = x * y", False),
        ("y = x + z\nu = x * z + y", False),
        ("y = x + z\nu[i] = x[N - 1 - i]", False),
        ("y[i] = x[N - 1 - i]\nu = z", False),
    ],
)
def test_the_hint_says_to_move_a_statement_where_that_is_legal(kernel: str, movable: bool) -> None:
    text = spec(kernel, "{y: 'T[N]', u: 'T[N]'}").replace("n[()]", "n[]")
    with pytest.raises(SpecError) as error:
        elaborate(loads(text, "a"))
    (found,) = error.value.diagnostics
    assert ("move the statement of 'y' below" in (found.hint or "")) == movable
    if movable:
        first, *rest = kernel.replace("n[()]", "n[]").split("\n")
        moved = spec("\n".join((*rest, first)), "{y: 'T[N]', u: 'T[N]'}")
        assert elaborate(loads(moved, "a")).inplace == (("y", "x"),)
