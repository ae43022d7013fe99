"""Operands that slices have at clamped places of leading axes, compiled: attention under a mask for all, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

MASKED = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {q: 'T[B, H, L, E]', k: 'T[B, G, S, E]', v: 'T[B, G, S, V]', 'mask?': 'T[MB, MH, ML, MS]', 'lengths?': 'int64[B]'}
outputs: {y: 'T[B, H, L, V]'}
require: [S > 0, G > 0, H > 0, H % G == 0]
gradient: none
kernel: |
  first[b:B] = lengths[b] - L if present(lengths) else 0
  s[b, h:H, i, j:S] = (sum[e](q[b, h, i, e] * k[b, h * G // H, j, e])
                   + (pad(mask[minimum(b, MB - 1), minimum(h, MH - 1), minimum(i, ML - 1), j], -9) if present(mask) else 0)
                   if j <= first[b] + i + 5 else -100)
  m[b, h, i] = max[j](s[b, h, i, j])
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h * G // H, j, d]) / sum[j](p[b, h, i, j])
"""

SIZES = (3, 4, 2, 93, 130)
MASKS = [
    None,
    (3, 4, 93, 130),
    (1, 1, 93, 130),
    (3, 1, 1, 130),
    (1, 4, 50, 70),  # later rows have the last one of the mask, and what is behind its columns is padding
    (2, 3, 200, 131),  # the last batch and the last head have those before, and the last rows of the mask are nobody's
    (0, 1, 1, 130),  # there is no element, so that each is padding
    (3, 4, 0, 130),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(MASKED)
    (variant,) = cpu_programs(family.forward)
    rows = variant.program.fused
    assert rows is not None
    assert rows.places is not None
    assert rows.places.clamped == {"mask": {0, 1}}
    folder = tmp_path_factory.mktemp("clamped")
    return KernelLibrary(family, compile_kernel(family, folder, "-DOPC_BLOCK_ELEMENTS=4096", "-DOPC_LEAST_ROWS=16"))


def masks(mask: Array, sizes: tuple[int, ...]) -> Array:
    """Return what each score gets of a mask."""
    b, h, _, rows, keys = sizes
    if 0 in mask.shape:
        return np.full((b, h, rows, keys), -9.0)
    places = [np.minimum(np.arange(n), size - 1) for n, size in zip((b, h, rows), mask.shape, strict=False)]
    columns = np.full((*mask.shape[:3], keys), -9.0)
    some = min(keys, mask.shape[3])
    columns[..., :some] = mask[..., :some]
    return columns[np.ix_(*places, np.arange(keys))]


def expected(given: dict[str, Array], sizes: tuple[int, ...]) -> Array:
    _, h, g, rows, keys = sizes
    k, v = (np.repeat(given[n], h // g, 1) for n in ("k", "v"))
    s = given["q"] @ k.swapaxes(-1, -2) + (masks(given["mask"], sizes) if "mask" in given else 0)
    first = given["lengths"] - rows if "lengths" in given else np.zeros(sizes[0], np.int64)
    seen = np.arange(keys) <= first[:, None, None, None] + np.arange(rows)[:, None] + 5
    s = np.where(seen, s, -100)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.asarray(p @ v / p.sum(-1, keepdims=True))


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("sizes", [SIZES, (1, 1, 1, 2, 3)], ids=str)
def test_slices_find_their_part_of_a_mask(library: KernelLibrary, sizes: tuple[int, ...], mask: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(11)
    b, h, g, rows, keys = sizes
    shapes = {"q": (b, h, rows, 4), "k": (b, g, keys, 4), "v": (b, g, keys, 3), **({} if mask is None else {"mask": mask})}
    given: dict[str, Array] = {n: rng.standard_normal(shape) for n, shape in shapes.items()}
    for own in (given, {**given, "lengths": rng.integers(rows - 3, keys + 1, b)}):
        for way in (None, odd_parallel_for, split_everywhere):
            found = KernelLibrary(library.family, Path(library.library._name), way).call(library.family.forward, own, {})
            np.testing.assert_allclose(found["y"], expected(own, sizes), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("sizes", [(0, 4, 2, 5, 7), (2, 4, 2, 0, 7)], ids=str)
def test_nothing_is_computed_of_no_slices(library: KernelLibrary, sizes: tuple[int, ...]) -> None:
    b, h, g, rows, keys = sizes
    given: dict[str, Array] = {"q": np.ones((b, h, rows, 4)), "k": np.ones((b, g, keys, 4)), "v": np.ones((b, g, keys, 3))}
    found = library.call(library.family.forward, {**given, "mask": np.ones((1, 1, 1, 7))}, {})
    assert found["y"].shape == (b, h, rows, 3)
