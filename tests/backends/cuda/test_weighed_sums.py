"""Sums that a softmax weighs, in the emulation: tiles of every shape, columns that are left out, and what is no number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.amounts import alternately

WEIGHED = """\
op: weighed
domain: opc.test
version: 1
doc: Weighed sums.
types: {T: [float16, bfloat16, float32, float64]}
broadcast: true
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]', "mask?": 'T[..., L, S]'}
attributes: {causal: {type: bool, default: false, doc: Whether columns up to the row alone count.}}
outputs: {y: 'T[..., L, V]'}
require: [S > 0]
kernel: |
  s[..., i, j] = (rsqrt(E) * sum[e](q[..., i, e] * k[..., j, e]) + (mask[..., i, j] if present(mask) else 0)
                  if j <= i or not causal else -inf)
  m[..., i] = stop_gradient(max[j](s[..., i, j]))
  c[..., i] = 0 if isinf(m[..., i]) else m[..., i]
  p[..., i, j] = exp(s[..., i, j] - c[..., i])
  t[..., i] = sum[j](p[..., i, j])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / (1 if t[..., i] == 0 else t[..., i])
gradient: none
"""
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}


@pytest.fixture(scope="module")
def weighing(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(WEIGHED, "weighed.yaml"))


def check(session: CudaSession, inputs: dict[str, Any], **attributes: bool) -> np.ndarray:
    """Call the op, hold what it answers to the oracle, and return that in float64."""
    found = session.call("weighed", inputs, attributes)["y"]
    compared = compare("y", found, evaluate(session.family.forward, inputs, attributes)["y"])
    assert compared.ok, compared.message
    return found.astype(np.float64)


def drawn(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(DTYPES[dtype])


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("dtype", "sizes", "causal"),
    alternately(DTYPES, ((130, 66, 8, 64), (3, 150, 72, 24), (20, 65, 140, 130), (2, 3, 0, 1)), (False, True)),
)
def test_tiles_of_any_size(weighing: CudaSession, dtype: str, sizes: tuple[int, int, int, int], causal: bool) -> None:
    rows, columns, terms, across = sizes
    q, k, v = (drawn(dtype, *s) for s in ((rows, terms), (columns, terms), (columns, across)))
    check(weighing, {"q": q, "k": k, "v": v}, causal=causal)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_that_broadcast_and_strides(weighing: CudaSession, dtype: str) -> None:
    """A column of all rows is -inf at first, and a whole row of the mask: it has no weights."""
    q, k = drawn(dtype, 3, 5, 2, 16)[..., ::2].swapaxes(1, 2), drawn(dtype, 2, 16, 70).swapaxes(1, 2)[..., :8]
    v, mask = drawn(dtype, 3, 1, 9, 70).swapaxes(2, 3), drawn(dtype, 2, 5, 70)
    mask[..., :65] = -np.inf
    mask[1, 3] = -np.inf
    found = check(weighing, {"q": q, "k": k, "v": v, "mask": mask})
    assert found.shape == (3, 2, 5, 9)
    assert not found[:, 1, 3].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_maximum_that_grows_from_tile_to_tile(weighing: CudaSession, dtype: str) -> None:
    columns = np.arange(200)
    k = (columns[:, None] / 4 - 20).astype(DTYPES[dtype])
    check(weighing, {"q": np.array([[4.0], [-4.0]], DTYPES[dtype]), "k": k, "v": drawn(dtype, 200, 5)})


@pytest.mark.rotating
@pytest.mark.parametrize(("dtype", "place", "value"), alternately(DTYPES, (0, 3, 69), (np.inf, np.nan)))
def test_elements_that_are_no_numbers(weighing: CudaSession, dtype: str, place: int, value: float) -> None:
    """An infinity is weighed by what is above 0, however small, and by 0 where a column does not count: that is no number."""
    q, k, v = drawn(dtype, 70, 4), drawn(dtype, 70, 4), drawn(dtype, 70, 6)
    v[place, 1] = value
    v[place, 2] = -value
    for causal in (False, True):
        found = check(weighing, {"q": q, "k": k, "v": v}, causal=causal)
        assert np.isfinite(found[:, [0, 3, 4, 5]]).all()
        expected = value if np.isnan(value) or not causal else [value if place <= i else np.nan for i in range(70)]
        np.testing.assert_array_equal(found[:, 1], np.broadcast_to(expected, 70))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest_numbers_beside_an_infinity(weighing: CudaSession, dtype: str) -> None:
    """Of columns of which one alone has a weight to speak of, a number is that number, however great."""
    greatest = -float(ml_dtypes.finfo(DTYPES[dtype]).max)
    k = np.array([[0.0]] * 9 + [[60.0]], DTYPES[dtype])
    v = drawn(dtype, 10, 3)
    v[9, 1], v[2, 2] = greatest, np.inf
    found = check(weighing, {"q": np.ones((2, 1), DTYPES[dtype]), "k": k, "v": v})
    assert found[:, 1].astype(np.float64).tolist() == [greatest] * 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_that_are_no_numbers(weighing: CudaSession, dtype: str) -> None:
    q, k, v = drawn(dtype, 4, 4), np.abs(drawn(dtype, 70, 4)), drawn(dtype, 70, 6)
    q[1] = np.inf
    q[2, 2] = np.nan
    found = check(weighing, {"q": q, "k": k, "v": v})
    assert np.isnan(found).all(axis=1).tolist() == [False, True, True, False]


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("rows", "columns", "terms", "across"), [(136, 512, 64, 64), (130, 577, 8, 72), (3, 512, 128, 128)])
@pytest.mark.parametrize("causal", [False, True])
def test_many_columns(weighing: CudaSession, dtype: str, rows: int, columns: int, terms: int, across: int, causal: bool) -> None:
    """Of these the next tile is on its way while one is multiplied, and weights have fewer digits."""
    q, k, v = (drawn(dtype, *s) for s in ((rows, terms), (columns, terms), (columns, across)))
    check(weighing, {"q": 3 * q, "k": k, "v": v}, causal=causal)
    mask = drawn(dtype, 2, rows, columns)
    mask[:, :, 64:200] = -np.inf
    mask[0, 1] = -np.inf
    check(weighing, {"q": q, "k": k, "v": v, "mask": mask}, causal=causal)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_many_columns_of_weights_of_any_size(weighing: CudaSession, dtype: str) -> None:
    """A maximum that grows from tile to tile, weights that are denormal, and one alone that is to be seen beside an infinity."""
    k = np.zeros((640, 8), DTYPES[dtype])
    k[:, 0] = np.arange(640) / 8 - 40
    q, v = np.zeros((3, 8), DTYPES[dtype]), drawn(dtype, 640, 8)
    q[:, 0] = 4, -4, 1
    v[0, 1], v[639, 2], v[70, 3], v[300, 4] = np.inf, -np.inf, np.nan, float(ml_dtypes.finfo(DTYPES[dtype]).max)
    found = check(weighing, {"q": q, "k": k, "v": v})
    assert np.isfinite(found[:, [0, 5, 6, 7]]).all()


def test_factors_that_lie_along_the_other_axis(loaded: Callable[..., CudaSession]) -> None:
    """All three operands are the other way round than above: q and k along points, and v along the terms of its sum."""
    turned = WEIGHED.replace(
        "q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]'", "q: 'T[E, L]', k: 'T[E, S]', v: 'T[V, S]'"
    )
    turned = turned.replace("[..., ", "[").replace("[...]", "[]").replace("T[..., ", "T[").replace("broadcast: true\n", "")
    for read, other in (("q[i, e]", "q[e, i]"), ("k[j, e]", "k[e, j]"), ("v[j, d]", "v[d, j]")):
        assert read in turned
        turned = turned.replace(read, other)
    session = loaded(compile_text(turned.replace("[float16, bfloat16, float32, float64]", "[bfloat16, float32]"), "weighed.yaml"))
    for dtype in ("bfloat16", "float32"):
        for rows, columns, terms, across in ((136, 80, 24, 72), (5, 67, 66, 3)):
            q, k, v = (drawn(dtype, *s) for s in ((terms, rows), (terms, columns), (across, columns)))
            check(session, {"q": q, "k": k, "v": v}, causal=True)
