"""Stages fused by rows, compiled: blocks of all lengths, strides, masks and indices of rows, against NumPy and without fusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.loops.schedule import overridden, overrides
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"

ATTENTION = """\
gradient: none
broadcast: true
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]', 'mask?': 'T[..., L, S]'}
attributes: {is_causal: {type: bool, default: false}}
outputs: {y: 'T[..., L, V]', t: 'T[..., L]'}
require: [S > 0]
kernel: |
  s[..., i, j] = (sum[e](q[..., i, e] * k[..., j, e]) + (mask[..., i, j] if present(mask) else 0)
                  if j <= i or not is_causal else -inf)
  m[..., i] = max[j](s[..., i, j])
  p[..., i, j] = exp(s[..., i, j] - m[..., i])
  t[..., i] = sum[j](p[..., i, j])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / t[..., i]
"""

FEW = "-DOPC_BLOCK_ELEMENTS=4096"
"""Blocks of 16 rows where these have more than 256 elements."""


def _library(directory: Path, change: str, *flags: str) -> KernelLibrary:
    with overridden(overrides([change])):
        family = compile_text(HEAD + ATTENTION)
        return KernelLibrary(family, compile_kernel(family, directory, *flags))


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(tmp_path_factory.mktemp("fused"), "f: fuse", FEW)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(tmp_path_factory.mktemp("plain"), "f: -fuse")


def _expected(q: Array, k: Array, v: Array, mask: Array | None = None, is_causal: bool = False) -> tuple[Array, Array]:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2)
    if mask is not None:
        s = s + mask
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    t = p.sum(-1)
    return p @ v / t[..., None], t


def _call(library: KernelLibrary, given: dict[str, Any], is_causal: bool, parallel_for: Any = None) -> dict[str, Array]:
    chosen = KernelLibrary(library.family, Path(library.library._name), parallel_for)
    return chosen.call(library.family.forward, given, {"is_causal": is_causal})


SIZES = [
    ((2, 3), 400, 300),  # the last block is as long as the others
    ((2, 3), 393, 301),  # and shorter
    ((5,), 17, 4000),  # one row is left
    ((), 300, 1024),  # no slices but blocks
    ((4,), 5, 40000),  # fewer rows than a block has
]


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
