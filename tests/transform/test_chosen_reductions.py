"""Gradients of reductions that a conditional chooses: what is not chosen passes nothing on, however steep its terms are there."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from opc.ir.expr import Reduce, walk
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.frame import EmptyReductionError
from tests.transform.language import spec_text

HEAD = """\
inputs: {x: 'T[N, M]', c: 'T[N]', 'b?': 'T[N]'}
attributes: {flag: {type: bool, default: false}}
outputs: {y: 'T[N]'}
kernel: |
"""

CHOSEN = {
    "a sum": "y[i] = sum[j](sqrt(x[i, j])) if c[i] > 0 else 0",
    "a sum on the other side": "y[i] = c[i] if c[i] <= 0 else sum[j](log(x[i, j])) ** 2",
    "a root of a sum": "y[i] = sqrt(sum[j](x[i, j] ** 2)) if c[i] > 0 else 0",
    "a sum of sums": "y[i] = sum[j](sqrt(x[i, j]) * sum[k:j + 1](1 / x[i, k])) if c[i] > 0 else 0",
    "a sum in a value": "t[i:N] = sum[j](log(x[i, j]))\n  y[i] = c[i] * exp(t[i]) if c[i] > 0 else 0",
    "a sum in two values": "t[i:N] = sum[j](1 / x[i, j])\n  u[i:N] = t[i] * sin(t[i])\n  y[i] = u[i] + t[i] if c[i] > 0 else 0",
    "the root of a mean": "y[i] = (sqrt(mean[j](x[i, j])) if c[i] > 0 else 0) * c[i]",
    "a product": "y[i] = prod[j](sqrt(x[i, j])) if c[i] > 0 else 0",
    "a maximum": "y[i] = max[j](sqrt(x[i, j])) if c[i] > 0 else 0",
    "by two conditions": "y[i] = (sum[j](sqrt(x[i, j])) if c[i] > 0 else 0) + (sum[j](1 / x[i, j]) if c[i] > 0.5 else 0)",
    "by an attribute": "y[i] = sum[j](sqrt(x[i, j])) if flag or c[i] > 0 else sum[j](x[i, j])",
    "by what is given": "y[i] = sum[j](sqrt(x[i, j])) * b[i] if present(b) and c[i] > 0 else c[i]",
    "one row further": "t[i:N] = sum[j](sqrt(x[i, j]))\n  y[i] = t[N - 1 - i] if c[N - 1 - i] > 0 else 0",
    "several rows": "t[i:N] = sum[j](sqrt(x[i, j]))\n  y[i] = sum[k](t[k] if c[k] > 0 and k <= i else 0)",
    "a quotient of sums": "y[i] = sum[j](x[i, j] * c[i]) / sum[j](x[i, j]) if c[i] > 0 else 0",
    "inside another": "y[i] = sum[j](sqrt(x[i, j]) if j > 0 else 0) if c[i] > 0 else 0",
}
"""Ops whose terms of row i count where c[i] is positive."""

CHOICES = np.array([1.0, 0.0, 2.0])
GIVEN = {"c": CHOICES, "b": np.array([0.5, -1.0, 2.0])}


@cache
def family(kernel: str) -> Family:
    return compile_text(spec_text("f", f"{HEAD}  {kernel}\n"))


def derived(kernel: str, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return what all derived ops of an op make of x, with all cotangents and tangents 1."""
    found: dict[str, np.ndarray] = {}
    for op in family(kernel).ops[1:]:
        values: dict[str, Any] = {o.name: np.ones(x.shape if len(o.dims) == 2 else (len(x),)) for o in op.inputs}
        for o in op.inputs:
            if o.name in ("x", "c", "b"):
                values[o.name] = x if o.name == "x" else GIVEN[o.name]
        found |= {f"{op.name}: {name}": np.asarray(v.value) for name, v in evaluate(op, values, {"flag": False}).items()}
    return found


@pytest.mark.parametrize("kernel", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("dropped", [(0.0, 0.0), (-1.0, 0.0)], ids=["infinite slopes", "no values"])
def test_what_is_not_chosen_passes_nothing_on(kernel: str, dropped: tuple[float, float]) -> None:
    """All derived ops give what they give where the row that is dropped has ordinary values."""
    x = np.array([[0.5, 2.0], dropped, [3.0, 0.25]])
    found, wanted = derived(kernel, x), derived(kernel, np.array([[0.5, 2.0], [1.0, 1.0], [3.0, 0.25]]))
    for name, values in found.items():
        assert np.isfinite(values).all(), (name, values)
        assert values == pytest.approx(wanted[name]), name


def test_what_overflows_is_not_looked_for() -> None:
    """A row that is not chosen gets 0 times an infinite slope, as docs/gradients.md says; with the condition inside it gets 0."""
    x = np.array([[0.5, 2.0], [1000.0, 1.0], [3.0, 0.25]])
    outside = derived("y[i] = sum[j](exp(x[i, j])) if c[i] > 0 else 0", x)["f_backward: d_x"]
    inside = derived("y[i] = sum[j](exp(x[i, j]) if c[i] > 0 else 0)", x)["f_backward: d_x"]
    assert np.isnan(outside[1, 0])
    assert (inside[1] == 0).all()


def test_the_greatest_of_nothing_that_a_call_rules_out_refuses_no_derived_op() -> None:
    """The gradient of a maximum asks for its place once, and for none of nothing where an attribute chooses the other side."""
    shapes = "inputs: {t: 'T[V]', ids: 'int64[M]', z: 'T[N]'}\nattributes: {flag: bool}\noutputs: {y: 'T[N]'}\n"
    kernel = "kernel: |\n  m[i:N] = max[j](t[ids[j]] if ids[j] == i else -inf)\n  y[i] = m[i] if flag else z[i]\n"
    backward, second = compile_text(spec_text("f", "out_of_range: clamp\n" + shapes + kernel)).ops[1:3]
    given = {"t": np.ones(3), "ids": np.zeros(0, np.int64), "z": np.ones(2)}
    for op in (backward, second):
        values = {o.name: given.get(o.name, np.ones(3 if o.name.endswith("_t") else 2)) for o in op.inputs}
        assert all(np.isfinite(v.value).all() for v in evaluate(op, values, {"flag": False}).values())
        assert sum(e.kind == "argmax" for s in op.body for e in walk(s.value) if isinstance(e, Reduce)) == 1


@pytest.mark.parametrize(
    ("kernel", "refused"), [("m[i:N] = {}\n  y[i] = m[i] if z[i] > 1 else 0", True), ("y[i] = {} if z[i] > 1 else 0", False)]
)
def test_the_greatest_of_nothing_that_data_drops(kernel: str, refused: bool) -> None:
    """On a side it is asked for by the points that choose it; a temporary is computed where an output may read it."""
    shapes = "inputs: {x: 'T[N, M]', z: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  "
    op = compile_text(spec_text("f", shapes + kernel.format("max[j](x[i, j])") + "\n")).forward
    values = {"x": np.zeros((2, 0)), "z": np.ones(2)}
    if refused:
        with pytest.raises(EmptyReductionError):
            evaluate(op, values, {})
    else:
        assert (evaluate(op, values, {})["y"].value == 0).all()
