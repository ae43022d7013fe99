"""Stages fused by rows, compiled: blocks of all lengths, strides, masks and indices of rows, against NumPy and without fusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.loops.schedule import overridden, overrides
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32, float64]}\n"

ATTENTION = """\
gradient: none
broadcast: true
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]', 'mask?': 'T[..., L, S]'}
attributes: {is_causal: {type: bool, default: false}, reach: {type: int, default: 0}, scale: {type: float, default: 0.7}}
outputs: {y: 'T[..., L, V]', t: 'T[..., L]'}
require: [S > 0]
kernel: |
  s[..., i, j] = (scale * sum[e](q[..., i, e] * k[..., j, e]) + (mask[..., i, j] if present(mask) else 0)
                  if j <= i + reach or not is_causal else -inf)
  m[..., i] = max[j](s[..., i, j])
  p[..., i, j] = exp(s[..., i, j] - m[..., i])
  t[..., i] = sum[j](p[..., i, j])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / t[..., i]
"""

HEADS = """\
gradient: none
inputs: {q: 'T[B, H, L, E]', k: 'T[B, G, S, E]', v: 'T[S, B, V]', 'bias?': 'T[S, L]', slope: 'T[H]'}
attributes: {is_causal: {type: bool, default: false}}
outputs: {y: 'T[B, H, L, V]', t: 'T[B, H, L]'}
require: [L <= S, S > 0, G > 0, H > 0, H % G == 0]
kernel: |
  s[b, h, i, j] = (slope[H - 1 - h] * sum[e](q[b, h, i, e] * k[b, h * G // H, j, e])
                   + (bias[j, i] if present(bias) else 0) if j <= i + S - L or not is_causal else -inf)
  m[b, h, i] = max[j](s[b, h, i, j])
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  t[b, h, i] = sum[j](p[b, h, i, j]) / (S + L)
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[j, b, d]) / (t[b, h, i] * (S + L))
"""
"""Heads that share keys, batches that are no first axis, and sizes that are numbers."""

FEW = "-DOPC_BLOCK_ELEMENTS=4096"
"""Blocks of 16 rows where these have more than 256 elements."""


def _library(directory: Path, change: str, *flags: str, text: str = ATTENTION) -> KernelLibrary:
    with overridden(overrides([change])):
        family = compile_text(HEAD + text)
        return KernelLibrary(family, compile_kernel(family, directory, *flags))


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(tmp_path_factory.mktemp("fused"), "f: fuse", FEW)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(tmp_path_factory.mktemp("plain"), "f: -fuse")


def _expected(q: Array, k: Array, v: Array, mask: Array | None = None, is_causal: bool = False) -> tuple[Array, Array]:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = 0.7 * (q @ k.swapaxes(-1, -2))
    if mask is not None:
        s = s + mask
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    t = p.sum(-1)
    return p @ v / t[..., None], t


def _call(
    library: KernelLibrary, given: dict[str, Any], is_causal: bool, parallel_for: Any = None, reach: int = 0
) -> dict[str, Array]:
    chosen = KernelLibrary(library.family, Path(library.library._name), parallel_for)
    return chosen.call(library.family.forward, given, {"is_causal": is_causal, "reach": reach})


SIZES = [
    ((2, 3), 400, 300),  # the last block is as long as the others
    ((2, 3), 393, 301),  # and shorter
    ((5,), 17, 4000),  # one row is left
    ((), 300, 1024),  # no slices but blocks
    ((4,), 5, 40000),  # fewer rows than a block has
]


@pytest.mark.rotating
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("batch", "rows", "keys"), SIZES)
def test_blocks_of_rows_give_what_numpy_gives(
    fused: KernelLibrary, batch: tuple[int, ...], rows: int, keys: int, is_causal: bool
) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((*batch, n, m)).astype(np.float32) for n, m in ((rows, 8), (keys, 8), (keys, 5)))
    mask = rng.standard_normal((*batch[1:], rows, keys)).astype(np.float32)
    for given in ({}, {"mask": mask}):
        y, t = _expected(q, k, v, given.get("mask"), is_causal)
        found = [
            _call(fused, {"q": q, "k": k, "v": v, **given}, is_causal, way) for way in (None, odd_parallel_for, split_everywhere)
        ]
        for one in found:
            np.testing.assert_allclose(one["y"], y, rtol=2e-5, atol=2e-6)
            np.testing.assert_allclose(one["t"], t, rtol=2e-5)
            np.testing.assert_array_equal(one["y"], found[0]["y"])


SMALL = [
    # q's leading axes, k's, v's and the mask's
    ((5, 700), (5, 700), (5, 700), None),  # slices of many points, the last of fewer
    ((5, 700), (700,), (5, 1), (1, 700)),  # broadcast along the axis whose points go together, and along the others
    ((5, 1), (), (5, 700), (1,)),
    ((700, 5), (1, 1), (5,), (700, 1)),  # an axis of few points
    ((2048,), (2048,), (), ()),  # the last slice has as many points as the others
    ((3, 4, 311), (4, 1), (3, 1, 311), None),
]


@pytest.mark.rotating
@pytest.mark.parametrize(("of_q", "of_k", "of_v", "of_mask"), SMALL)
def test_a_slice_of_small_problems_has_several(
    fused: KernelLibrary,
    of_q: tuple[int, ...],
    of_k: tuple[int, ...],
    of_v: tuple[int, ...],
    of_mask: tuple[int, ...] | None,
) -> None:
    rng = np.random.default_rng(9)
    shapes = {"q": (*of_q, 9, 8), "k": (*of_k, 10, 8), "v": (*of_v, 10, 5)} | ({"mask": (*of_mask, 9, 10)} if of_mask else {})
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    given["q"] = given["q"][..., ::-1, :]  # strides of its own
    for is_causal in (False, True):
        y, t = _expected(given["q"], given["k"], given["v"], given.get("mask"), is_causal)
        found = [_call(fused, given, is_causal, way) for way in (None, odd_parallel_for, split_everywhere)]
        for one in found:
            np.testing.assert_allclose(one["y"], y, rtol=2e-5, atol=2e-6)
            np.testing.assert_allclose(one["t"], np.broadcast_to(t, one["t"].shape), rtol=2e-5)
            np.testing.assert_array_equal(one["y"], found[0]["y"])


def test_operands_may_have_any_strides_and_broadcast(fused: KernelLibrary, plain: KernelLibrary) -> None:
    rng = np.random.default_rng(1)
    q = rng.standard_normal((400, 8, 4, 2)).astype(np.float16).transpose(2, 3, 0, 1)
    k = rng.standard_normal((1, 2, 8, 300)).astype(np.float16).swapaxes(-1, -2)
    v = rng.standard_normal((300, 5)).astype(np.float16)
    mask = rng.standard_normal((4, 1, 400, 600)).astype(np.float16)[..., ::-2]
    for is_causal in (False, True):
        one, other = (_call(library, {"q": q, "k": k, "v": v, "mask": mask}, is_causal) for library in (fused, plain))
        # Both round float32 sums to float16, in some other order.
        np.testing.assert_allclose(one["y"].astype(np.float32), other["y"].astype(np.float32), rtol=2e-3, atol=1e-4)


def test_what_a_block_leaves_out_is_not_read(fused: KernelLibrary) -> None:
    """A NaN in one row stays there."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((3, n, m)).astype(np.float32) for n, m in ((400, 8), (300, 8), (300, 5)))
    q[1, 37, 2] = np.nan
    y = _call(fused, {"q": q, "k": k, "v": v}, False)["y"]
    bad = np.isnan(y).any(-1)
    assert np.argwhere(bad).tolist() == [[1, 37]]


def _random(seed: int, dtype: type[Any], batch: int, rows: int, keys: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {n: rng.standard_normal((batch, m, w)).astype(dtype) for n, m, w in (("q", rows, 8), ("k", keys, 8), ("v", keys, 5))}


@pytest.mark.rotating
@pytest.mark.parametrize("reach", [0, -40, 7, 250, 2000])
@pytest.mark.parametrize(("rows", "keys"), [(400, 300), (393, 1301)])
def test_columns_that_no_row_of_a_block_needs_are_left_out(
    fused: KernelLibrary, plain: KernelLibrary, reach: int, rows: int, keys: int
) -> None:
    """Some rows need none where they reach back, and then are NaN; with others, some block needs all."""
    given = _random(4, np.float32, 3, rows, keys)
    for way in (None, odd_parallel_for):
        one, other = _call(fused, given, True, way, reach), _call(plain, given, True, None, reach)
        for name in ("y", "t"):
            np.testing.assert_allclose(one[name], other[name], rtol=2e-5, atol=2e-6)
    assert np.isnan(one["y"]).any() == (reach < 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_no_column_is_left_out_where_0_times_it_is_not_0(
    fused: KernelLibrary, plain: KernelLibrary, dtype: type[Any], strided: bool, bad: float
) -> None:
    given = _random(5, dtype, 4, 400, 300)
    given["v"][2, 290, 3] = bad
    if strided:
        given["v"] = np.repeat(given["v"], 2, axis=-1)[..., ::2]
    one, other = (_call(library, given, True) for library in (fused, plain))
    np.testing.assert_array_equal(np.isnan(one["y"]), np.isnan(other["y"]))
    assert np.isnan(one["y"]).any(1).tolist() == [[n == 2 and d == 3 for d in range(5)] for n in range(4)]
    # It adds 0 times that to every row before it.
    assert np.isnan(one["y"][2, :290, 3]).all()
    np.testing.assert_allclose(one["y"].astype(np.float64), other["y"].astype(np.float64), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("rows", [393, 400])
@pytest.mark.parametrize("keys", [288, 301, 1301])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_written_as_they_are_summed_up(fused: KernelLibrary, rows: int, keys: int, dtype: type[Any]) -> None:
    """Whole panels of scores come scaled out of registers; what is left of rows and columns does not."""
    given = _random(6, dtype, 3, rows, keys)
    y, t = _expected(given["q"], given["k"], given["v"])
    found = _call(fused, given, False, odd_parallel_for)
    few = {"rtol": 2e-5, "atol": 2e-6} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(found["y"], y, **few)
    np.testing.assert_allclose(found["t"], t, **few)


@pytest.fixture(scope="module")
def of_heads(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(tmp_path_factory.mktemp("of_heads"), "f: fuse", FEW, "-DOPC_LEAST_ROWS=16", text=HEADS)


def _heads(seed: int, dtype: type[Any], sizes: tuple[int, int, int, int, int], biased: bool) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    b, h, g, rows, keys = sizes
    shapes = {"q": (b, h, rows, 8), "k": (b, g, keys, 8), "v": (keys, b, 5), "slope": (h,), "bias": (keys, rows)}
    return {n: rng.standard_normal(shape).astype(dtype) for n, shape in shapes.items() if n != "bias" or biased}


def _of_heads(given: dict[str, Array], is_causal: bool) -> tuple[Array, Array]:
    wide = {n: x.astype(np.float64) for n, x in given.items()}
    q, k, v = wide["q"], wide["k"], wide["v"].swapaxes(0, 1)[:, None]
    (rows, keys), h = (q.shape[2], k.shape[2]), q.shape[1]
    s = wide["slope"][::-1, None, None] * (q @ np.repeat(k, h // k.shape[1], 1).swapaxes(-1, -2))
    if "bias" in wide:
        s = s + wide["bias"].T
    if is_causal:
        s = np.where(np.tri(rows, keys, keys - rows, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    t = p.sum(-1)
    return p @ v / t[..., None], t / (keys + rows)


@pytest.mark.rotating
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 6, 2, 300, 400),  # groups of three heads
        (1, 4, 4, 393, 1301),  # a head of keys for each
        (3, 2, 1, 17, 4000),  # one for all
        (1, 1, 1, 300, 301),
        (2, 4, 2, 9, 11),  # all at once
        (2, 4, 2, 0, 3),  # no queries
        (0, 4, 2, 300, 400),  # no batches
    ],
)
def test_blocks_are_at_one_point_of_axes_with_names(
    of_heads: KernelLibrary, sizes: tuple[int, int, int, int, int], is_causal: bool
) -> None:
    for biased in (False, True):
        given = _heads(7, np.float32, sizes, biased)
        y, t = (
            _of_heads(given, is_causal)
            if given["q"].size
            else (np.zeros((*sizes[:2], sizes[3], 5)), np.zeros(sizes[:2] + sizes[3:4]))
        )
        found = []
        for way in (None, odd_parallel_for, split_everywhere):
            chosen = KernelLibrary(of_heads.family, Path(of_heads.library._name), way)
            found.append(chosen.call(of_heads.family.forward, given, {"is_causal": is_causal}))
        for one in found:
            np.testing.assert_allclose(one["y"], y, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(one["t"], t, rtol=5e-5)
            np.testing.assert_array_equal(one["y"], found[0]["y"])


def test_axes_with_names_may_have_any_strides(of_heads: KernelLibrary) -> None:
    given = _heads(8, np.float32, (2, 6, 2, 300, 400), True)
    y, t = _of_heads(given, True)
    given["q"] = np.ascontiguousarray(given["q"].transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
    given["k"] = np.repeat(given["k"], 2, axis=1)[:, ::2]
    given["v"] = given["v"][::-1][::-1]
    given["bias"] = np.ascontiguousarray(given["bias"][::-1])[::-1]
    given["slope"] = np.repeat(given["slope"], 3)[::3]
    found = of_heads.call(of_heads.family.forward, given, {"is_causal": True})
    np.testing.assert_allclose(found["y"], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["t"], t, rtol=5e-5)


def test_no_column_is_left_out_of_the_slices_whose_values_are_infinite(of_heads: KernelLibrary) -> None:
    given = _heads(9, np.float32, (2, 4, 2, 300, 400), False)
    given["v"][390, 1, 3] = np.inf
    y = of_heads.call(of_heads.family.forward, given, {"is_causal": True})["y"]
    bad = ~np.isfinite(y)
    assert bad[1, ..., 3].all()
    assert bad.sum() == bad[1, ..., 3].size
