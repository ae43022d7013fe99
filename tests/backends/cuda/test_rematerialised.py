"""Gradients of softmaxes between sums of products, in the emulation: values made anew, tiles of every shape, columns that are
left out, and what is no number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.amounts import alternately
from tests.backends.cuda.test_weighed_sums import DTYPES, drawn

GRADED = """\
op: graded
domain: opc.test
version: 1
doc: Weighed sums, of whose scores some are left out, with a bias for each column.
types: {T: [float16, bfloat16, float32, float64]}
broadcast: true
inputs: {a: 'T[..., N, C]', b: 'T[..., M, C]', w: 'T[..., M, F]', bias: 'T[M]'}
attributes: {ahead: {type: bool, default: false, doc: Whether columns from the row on alone count.}}
outputs: {y: 'T[..., N, F]'}
require: [M > 0]
kernel: |
  r[..., n, m] = (0.25 * sum[x](a[..., n, x] * b[..., m, x]) + bias[m]) if m >= n or not ahead else -inf
  g[..., n] = stop_gradient(max[m](r[..., n, m]))
  h[..., n] = 0 if isinf(g[..., n]) else g[..., n]
  u[..., n, m] = exp(r[..., n, m] - h[..., n])
  z[..., n] = sum[m](u[..., n, m])
  y[..., n, f] = sum[m](u[..., n, m] * w[..., m, f]) / (1 if z[..., n] == 0 else z[..., n])
"""
GROUPED = """\
op: grouped
domain: opc.test
version: 1
doc: Weighed sums of scores below a limit, in groups of heads that share columns.
types: {T: [bfloat16, float32]}
inputs: {q: 'T[H, G, L, E]', k: 'T[H, S, E]', v: 'T[H, S, V]'}
outputs: {y: 'T[H, G, L, V]'}
require: [S > 0]
kernel: |
  s[h, g, i, j] = 4 * tanh(sum[e](q[h, g, i, e] * k[h, j, e]) / 4)
  m[h, g, i] = stop_gradient(max[j](s[h, g, i, j]))
  c[h, g, i] = 0 if isinf(m[h, g, i]) else m[h, g, i]
  p[h, g, i, j] = exp(s[h, g, i, j] - c[h, g, i])
  t[h, g, i] = sum[j](p[h, g, i, j])
  y[h, g, i, d] = sum[j](p[h, g, i, j] * v[h, j, d]) / t[h, g, i]
"""
SIZES = ((130, 66, 8, 64), (3, 150, 72, 24), (70, 65, 140, 130), (2, 3, 0, 1))
"""Rows, columns, terms of a score and elements of a weighed row."""


@pytest.fixture(scope="module")
def graded(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(GRADED, "graded.yaml"), "backward")


@pytest.fixture(scope="module")
def grouped(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(GROUPED, "grouped.yaml"), "backward")


def check(session: CudaSession, inputs: dict[str, Any], d_y: np.ndarray, **attributes: bool) -> dict[str, np.ndarray]:
    """Call the gradient with what the op answers, hold each of its answers to the oracle, and return them in float64."""
    family = session.family
    assert family.backward is not None
    y = session.call(family.name, inputs, attributes)["y"]
    given = {i.name: {**inputs, "y": y, "d_y": d_y}[i.name] for i in family.backward.inputs}
    found = session.call(family.backward.name, given, attributes)
    for name, expected in evaluate(family.backward, given, attributes).items():
        compared = compare(name, found[name], expected)
        assert compared.ok, compared.message
    return {name: array.astype(np.float64) for name, array in found.items()}


def operands(dtype: str, rows: int, columns: int, terms: int, across: int, *batches: int) -> tuple[dict[str, Any], np.ndarray]:
    a, b = drawn(dtype, *batches, rows, terms), drawn(dtype, columns, terms, seed=1)
    w, bias = drawn(dtype, columns, across), drawn(dtype, columns)
    return {"a": a, "b": b, "w": w, "bias": bias}, drawn(dtype, *batches, rows, across, seed=2)


@pytest.mark.rotating
@pytest.mark.parametrize(("dtype", "sizes", "ahead"), alternately(DTYPES, SIZES, (False, True)))
def test_tiles_of_any_size(graded: CudaSession, dtype: str, sizes: tuple[int, int, int, int], ahead: bool) -> None:
    """Some rows have no columns, where there are more of them and columns from the row on count."""
    inputs, d_y = operands(dtype, *sizes)
    check(graded, inputs, d_y, ahead=ahead)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("rows", "columns", "terms", "across"), [(130, 520, 64, 64), (530, 513, 8, 72), (5, 515, 128, 128)])
@pytest.mark.parametrize("ahead", [False, True])
def test_many_columns(graded: CudaSession, dtype: str, rows: int, columns: int, terms: int, across: int, ahead: bool) -> None:
    """Of these the next tile is on its way while one is multiplied, and values have fewer digits. Where targets are columns'
    gradients, rows are columns."""
    inputs, d_y = operands(dtype, rows, columns, terms, across)
    check(graded, inputs, d_y, ahead=ahead)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_that_share_columns(graded: CudaSession, dtype: str) -> None:
    """Gradients of what is broadcast are sums over batches, too."""
    inputs, d_y = operands(dtype, 5, 70, 8, 9, 3, 2)
    check(graded, {**inputs, "w": drawn(dtype, 2, 70, 9)}, d_y, ahead=True)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize(("columns", "across"), [(70, 72), (3, 8)])
def test_groups_of_heads(grouped: CudaSession, dtype: str, columns: int, across: int) -> None:
    shapes = {"q": (2, 3, 5, 16), "k": (2, columns, 16), "v": (2, columns, across)}
    check(grouped, {name: drawn(dtype, *shape) for name, shape in shapes.items()}, drawn(dtype, 2, 3, 5, across))


@pytest.mark.rotating
@pytest.mark.parametrize(("dtype", "operand", "value"), alternately(DTYPES, ("a", "b", "w", "d_y"), (np.inf, np.nan)))
def test_elements_that_are_no_numbers(graded: CudaSession, dtype: str, operand: str, value: float) -> None:
    """Where a column is left out, its value is 0, and 0 times what is no number is none."""
    inputs, d_y = operands(dtype, 70, 80, 4, 6)
    given = {**inputs, "d_y": d_y}
    given[operand][66, 1] = value
    for ahead in (False, True):
        check(graded, {name: given[name] for name in inputs}, given["d_y"], ahead=ahead)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest_numbers(graded: CudaSession, dtype: str) -> None:
    """A sum of products that is divided afterwards is no number where it would be one divided before; and the least weights of 16
    bits are those of the greatest elements."""
    inputs, d_y = operands(dtype, 4, 9, 2, 3)
    greatest = float(np.finfo(np.float32).max) if dtype == "bfloat16" else float(np.finfo(DTYPES[dtype]).max)
    inputs["w"][2, 1] = greatest / 4
    d_y[1, 1] = 6
    inputs["bias"][0] = -88
    d_y[2, 0] = greatest / 2
    check(graded, inputs, d_y)
