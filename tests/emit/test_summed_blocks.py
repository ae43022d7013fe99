"""Results that blocks of rows add up, compiled: gradients by keys and values that heads of queries share, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.ir.op import Op
from opc.lower.fuse import cpu_programs
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

GROUPED = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64]}
inputs: {q: 'T[B, H, L, E]', k: 'T[B, G, S, E]', v: 'T[B, G, S, V]'}
attributes: {is_causal: {type: bool, default: false}}
outputs: {y: 'T[B, H, L, V]'}
require: [L <= S, S > 0, G > 0, H > 0, H % G == 0]
kernel: |
  s[b, h, i, j] = 0.7 * sum[e](q[b, h, i, e] * k[b, h * G // H, j, e]) if j <= i + S - L or not is_causal else -inf
  m[b, h, i] = stop_gradient(max[j](s[b, h, i, j]))
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h * G // H, j, d]) / sum[j](p[b, h, i, j])
"""

FEW = ("-DOPC_BLOCK_ELEMENTS=4096", "-DOPC_LEAST_ROWS=16")
"""Blocks of 16 rows where slices have more than 512 elements; a call goes in blocks where all slices have more than 2^18."""

BLOCKS = [
    (2, 6, 2, 200, 250),  # groups of three heads
    (1, 2, 1, 393, 501),  # one unit, whose blocks are cut into parts
    (3, 4, 4, 91, 300),  # a head of keys for each
    (1, 8, 1, 27, 1301),
    (17, 2, 2, 93, 100),  # more units than parts are made for
]
WHOLE = [(2, 4, 2, 5, 7), (2, 4, 2, 0, 3), (0, 4, 2, 100, 130)]
Sizes = tuple[int, int, int, int, int]


COUNTED = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[B, L, I]', w: 'T[B, I, N]', u: 'T[B, N, O]'}
outputs: {y: 'T[B, L, O]', z: 'T[B, I, N]'}
require: [B > 0, L > 1]
gradient: none
kernel: |
  g[b, l, n] = sum[i](x[b, l, i] * w[b, i, n])
  y[b, l, o] = sum[n](g[b, l, n] * u[b, n, o])
  z[b, i, n] = sum[l](x[b, l, i] * g[b, l, n] * L)
"""


def test_a_factor_that_counts_rows_counts_those_of_all_blocks(tmp_path: Path) -> None:
    family = compile_text(COUNTED)
    library = KernelLibrary(family, compile_kernel(family, tmp_path, *FEW))
    rng = np.random.default_rng(3)
    b, rows, i, n, o = 3, 901, 7, 130, 6
    given = {"x": rng.standard_normal((b, rows, i)), "w": rng.standard_normal((b, i, n)), "u": rng.standard_normal((b, n, o))}
    found = library.call(family.forward, given, {})
    g = given["x"] @ given["w"]
    np.testing.assert_allclose(found["y"], g @ given["u"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["z"], given["x"].swapaxes(-1, -2) @ (g * rows), rtol=1e-9, atol=1e-6)


LACKING = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float64]}
inputs: {x: 'T[A, B, C, L, I]', w: 'T[A, B, C, I, N]', u: 'T[A, B, C, N, O]'}
outputs: {y: 'T[A, B, C, L, O]', z: 'T[C]', middle: 'T[B]', first: 'T[A, N]', last: 'T[N]'}
require: [A > 0, B > 0, C > 0, L > 1]
gradient: none
kernel: |
  g[a, b, c, l, n] = sum[i](x[a, b, c, l, i] * w[a, b, c, i, n])
  y[a, b, c, l, o] = sum[n](g[a, b, c, l, n] * u[a, b, c, n, o])
  z[c] = sum[a, b, l, n](g[a, b, c, l, n] * (L - l) if n <= l else 0)
  middle[b] = sum[a, c, l, n](g[a, b, c, l, n])
  first[a, n] = sum[b, c, l](g[a, b, c, l, n])
  last[n] = sum[a, b, c, l](g[a, b, c, l, n] if l > 3 else 0)
"""


@pytest.mark.parametrize(
    ("sizes", "dtype"), [((2, 3, 4, 93), np.float64), ((1, 1, 2, 991), np.float64), ((2, 3, 4, 93), np.float16)]
)
def test_sums_lack_any_leading_axes(lacking: KernelLibrary, sizes: tuple[int, ...], dtype: type[Any]) -> None:
    """Units that add to one element are added up in order, in the type of sums; on any number of threads."""
    rng = np.random.default_rng(7)
    a, b, c, rows = sizes
    shapes = {"x": (a, b, c, rows, 5), "w": (a, b, c, 5, 130), "u": (a, b, c, 130, 3)}
    given = {name: rng.random(shape).astype(dtype) / 8 for name, shape in shapes.items()}
    g = given["x"].astype(np.float64) @ given["w"].astype(np.float64)
    kept = np.where(np.arange(130) <= np.arange(rows)[:, None], g * (rows - np.arange(rows)[:, None]), 0)
    expected = {
        "y": g @ given["u"].astype(np.float64),
        "z": kept.sum((0, 1, 3, 4)),
        "middle": g.sum((0, 2, 3, 4)),
        "first": g.sum((1, 2, 3)),
        "last": g[..., 4:, :].sum((0, 1, 2, 3)),
    }
    for way in (None, odd_parallel_for, split_everywhere):
        found = KernelLibrary(lacking.family, Path(lacking.library._name), way).call(lacking.family.forward, given, {})
        for name, value in expected.items():
            np.testing.assert_allclose(found[name].astype(np.float64), value, rtol=1e-11 if dtype == np.float64 else 1e-3)


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(LACKING)
    (variant,) = cpu_programs(family.forward)
    assert variant.program.fused is not None
    assert variant.program.fused.summed is not None
    assert variant.program.fused.summed.absent == {"z": (0, 1), "middle": (0, 2), "first": (1, 2), "last": (0, 1, 2)}
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("lacking"), *FEW))


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(GROUPED)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("grouped"), *FEW))


def _backward(library: KernelLibrary) -> Op:
    op = library.family.backward
    assert op is not None
    return op


def _given(seed: int, dtype: type[Any], sizes: Sizes) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    b, h, g, rows, keys = sizes
    shapes = {"q": (b, h, rows, 8), "k": (b, g, keys, 8), "v": (b, g, keys, 5), "d_y": (b, h, rows, 5)}
    return {n: rng.standard_normal(shape).astype(dtype) for n, shape in shapes.items()}


def _gradients(given: dict[str, Array], is_causal: bool) -> dict[str, Array]:
    """Return what the gradients are, and y, with the factors that a spec says: 0 times an infinity is NaN."""
    q, k, v, d_y = (given[n].astype(np.float64) for n in ("q", "k", "v", "d_y"))
    (b, h, rows, _), (_, g, keys, _) = q.shape, k.shape
    k, v = (np.repeat(x, h // g, 1) for x in (k, v))
    seen = np.tri(rows, keys, keys - rows, dtype=bool) | (not is_causal)
    with np.errstate(invalid="ignore"):
        s = np.where(seen, 0.7 * (q @ k.swapaxes(-1, -2)), -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf))
        t = p.sum(-1, keepdims=True)
        y = p @ v / t
        each = d_y / t
        d_s = np.where(seen, 0.7 * p * (each @ v.swapaxes(-1, -2) - (y * d_y).sum(-1, keepdims=True) / t), 0)
        d_k = (d_s.swapaxes(-1, -2) @ q).reshape(b, g, h // g, keys, 8).sum(2)
        d_v = (p.swapaxes(-1, -2) @ each).reshape(b, g, h // g, keys, 5).sum(2)
        return {"y": y, "d_q": d_s @ k, "d_k": d_k, "d_v": d_v}


def _call(
    library: KernelLibrary, given: dict[str, Array], y: Array, is_causal: bool, way: Any = None, **options: Any
) -> dict[str, Array]:
    chosen = KernelLibrary(library.family, Path(library.library._name), way)
    inputs = {**given, "y": y.astype(given["q"].dtype)}
    return chosen.call(_backward(library), inputs, {"is_causal": is_causal}, **options)


@pytest.mark.rotating
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", [*BLOCKS, *WHOLE])
def test_blocks_add_up_what_numpy_gives(grouped: KernelLibrary, sizes: Sizes, is_causal: bool) -> None:
    given = _given(1, np.float64, sizes)
    expected = _gradients(given, is_causal)
    y = expected.pop("y")
    found = [_call(grouped, given, y, is_causal, way) for way in (None, odd_parallel_for, split_everywhere)]
    for one in found:
        for name, value in expected.items():
            np.testing.assert_allclose(one[name], value, rtol=1e-11, atol=1e-12)
            # How sums are cut depends on sizes alone.
            np.testing.assert_array_equal(one[name], found[0][name])


@pytest.mark.parametrize("wanted", [("d_k",), ("d_v",), ("d_q",), ("d_q", "d_v")])
def test_what_nobody_wants_is_not_added_up(grouped: KernelLibrary, wanted: tuple[str, ...]) -> None:
    given = _given(2, np.float64, BLOCKS[0])
    expected = _gradients(given, True)
    found = _call(grouped, given, expected["y"], True, wanted=wanted)
    assert found.keys() == set(wanted)
    for name in wanted:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_sums_are_wider_than_what_is_stored(grouped: KernelLibrary, is_causal: bool) -> None:
    """Heads and blocks are added up in float32, and rounded once."""
    given = _given(3, np.float16, BLOCKS[1])
    given["d_y"] = np.abs(given["d_y"])
    expected = _gradients(given, is_causal)
    found = _call(grouped, given, expected["y"], is_causal)
    for name in ("d_k", "d_v"):
        scale = np.abs(expected[name]).max()
        assert np.abs(found[name] - expected[name]).max() < 1.5e-3 * scale
    # A value's gradient is a sum of positive numbers: half a unit of its last place, and what probabilities were rounded by.
    np.testing.assert_allclose(found["d_v"].astype(np.float64), expected["d_v"], rtol=6e-4, atol=1e-6)


def test_inputs_may_have_any_strides(grouped: KernelLibrary) -> None:
    given = _given(4, np.float64, BLOCKS[0])
    expected = _gradients(given, True)
    given["q"] = np.ascontiguousarray(given["q"].transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
    given["k"] = np.repeat(given["k"], 2, axis=1)[:, ::2]
    given["d_y"] = given["d_y"][..., ::-1].copy()[..., ::-1]
    found = _call(grouped, given, expected["y"], True)
    for name in ("d_q", "d_k", "d_v"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("q", (1, 4, 20, 3)),  # an early row, which leaves most columns out
        ("k", (1, 1, 248, 2)),  # a late column, which most rows leave out
        ("v", (0, 1, 249, 4)),
        ("d_y", (1, 3, 7, 1)),
    ],
)
def test_no_column_is_left_out_where_0_times_it_is_not_0(
    grouped: KernelLibrary, name: str, place: tuple[int, ...], bad: float
) -> None:
    given = _given(5, np.float64, BLOCKS[0])
    given[name][place] = bad
    expected = _gradients(given, True)
    y = expected.pop("y")
    found = _call(grouped, given, y, True, odd_parallel_for)
    for output, value in expected.items():
        np.testing.assert_array_equal(np.isfinite(found[output]), np.isfinite(value))
        known = np.isfinite(value)
        np.testing.assert_allclose(found[output][known], value[known], rtol=1e-11, atol=1e-12)
        assert known.any()
