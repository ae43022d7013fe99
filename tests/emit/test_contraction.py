"""Contractions against NumPy: sizes around the blocks, layouts, windows, guards, and slices of independent problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere
from tests.narrow import only

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32, float64]}\n"
UNIT = {np.dtype(np.float16): 2.0**-11, np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}

MATMUL = """\
gradient: none
inputs: {a: 'T[M, K]', b: 'T[K, N]', 'c?': 'T[N]'}
outputs: {y: 'T[M, N]'}
kernel: |
  y[m, n] = sum[k](a[m, k] * b[k, n]) + (c[n] if present(c) else 0)
"""

CONV = """\
inputs: {x: 'T[N, C, H, W]', w: 'T[O, I, P, Q]'}
attributes:
  stride: {type: 'int[2]', default: [1, 1], check: stride > 0}
  padding: {type: 'int[2]', default: [0, 0], check: padding >= 0}
  dilation: {type: 'int[2]', default: [1, 1], check: dilation > 0}
  groups: {type: int, default: 1, check: groups > 0}
outputs: {y: 'T[N, O, OH, OW]'}
shape:
  OH: (H + 2*padding[0] - dilation[0]*(P - 1) - 1) // stride[0] + 1
  OW: (W + 2*padding[1] - dilation[1]*(Q - 1) - 1) // stride[1] + 1
require: [C == I * groups, O % groups == 0, O >= groups]
kernel: |
  y[n, o, i, j] = sum[c:I, p:P, q:Q](w[o, c, p, q] * pad(x[n, o // (O // groups) * I + c,
    i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], 0))
"""

TRAILING = """\
inputs: {x: 'T[N, C, W]', w: 'T[C, O, P]'}
outputs: {y: 'T[N, O, W]'}
kernel: |
  y[n, o, i] = sum[c, p](w[c, o, p] * pad(x[n, c, i - p], 0))
"""

REMAINDERS = """\
gradient: none
inputs: {x: 'T[H, L]', t: 'T[K]', v: 'T[J]'}
require: [K > 0]
outputs: {y: 'T[J, H]', z: 'T[H, J]'}
kernel: |
  y[g, h] = sum[l](x[h, l] * t[g % K]) + v[g]
  z[h, g] = sum[l](x[h, l] * t[(g + 1) % K]) + v[g]
"""

ATTENTION = """\
gradient: none
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]'}
outputs: {y: 'T[..., L, V]'}
kernel: |
  s[..., i, j] = sum[e](q[..., i, e] * k[..., j, e])
  m[..., i] = max[j](s[..., i, j])
  p[..., i, j] = exp(s[..., i, j] - m[..., i])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / sum[j](p[..., i, j])
"""


def _library(text: str, directory: Path, parallel_for: Any = None, types: str = "float16, float32, float64") -> KernelLibrary:
    family = compile_text(HEAD.replace("float16, float32, float64", types) + text)
    family = only(family, *(["backward"] if family.backward is not None else []))
    return KernelLibrary(family, compile_kernel(family, directory), parallel_for)


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(MATMUL, tmp_path_factory.mktemp("matmul"), odd_parallel_for)


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(CONV, tmp_path_factory.mktemp("conv"), split_everywhere)


def _close(got: Array, expected: Array, magnitude: Array, terms: int) -> None:
    """Hold a sum of `terms` products to the bound of Higham (2002), (3.7): magnitude is the sum of their absolute values.

    float16 is summed as float32 and rounded once.
    """
    own = UNIT[got.dtype]
    unit = max(own, UNIT[np.dtype(np.float32)]) if got.dtype != np.float64 else own
    summed = min(unit, UNIT[np.dtype(np.float32)])
    bound = 2 * (terms + 2) * summed * magnitude + 2 * own * (np.abs(expected) + magnitude * summed * terms)
    assert np.all(np.abs(got.astype(np.float64) - expected) <= bound + np.finfo(got.dtype).tiny)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (1, 1, 1),
        (8, 48, 5),
        (3, 5, 7),
        (17, 49, 33),
        (64, 64, 64),
        (70, 1, 50),
        (1, 70, 50),
        (2, 300, 700),
        (129, 257, 700),
        (5, 5, 0),
    ],
)
def test_matmul(matmul: KernelLibrary, dtype: type, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m * 1000 + n)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c = rng.standard_normal(n).astype(dtype)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b)), (a[::-1], b[:, ::-1])):
        x, y = np.asarray(left, np.float64), np.asarray(right, np.float64)
        got = matmul.call(matmul.family.forward, {"a": left, "b": right, "c": c}, {})["y"]
        _close(got, x @ y + c, np.abs(x) @ np.abs(y) + np.abs(c), k + 1)
    got = matmul.call(matmul.family.forward, {"a": a, "b": b, "c": None}, {})["y"]
    _close(got, wide_a @ wide_b, np.abs(wide_a) @ np.abs(wide_b), k)


def _columns(x: Array, w: Array, at: dict[str, Any]) -> tuple[Array, Array]:
    """Return the output of a convolution in float64, and the sum of the absolute values of its terms."""
    s, p, d, g = at["stride"], at["padding"], at["dilation"], at["groups"]
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    (n, _, h, width), (o, i, kh, kw) = x.shape, w.shape
    oh, ow = (h - d[0] * (kh - 1) - 1) // s[0] + 1, (width - d[1] * (kw - 1) - 1) // s[1] + 1
    total, size = np.zeros((n, o, oh, ow)), np.zeros((n, o, oh, ow))
    for a in range(kh):
        for b in range(kw):
            window = x[:, :, a * d[0] : a * d[0] + s[0] * (oh - 1) + 1 : s[0], b * d[1] : b * d[1] + s[1] * (ow - 1) + 1 : s[1]]
            for k in range(g):
                own, to = window[:, k * i : (k + 1) * i], slice(k * o // g, (k + 1) * o // g)
                total[:, to] += np.einsum("ncij,oc->noij", own, w[to, :, a, b])
                size[:, to] += np.einsum("ncij,oc->noij", np.abs(own), np.abs(w[to, :, a, b]))
    return total, size


CONVOLUTIONS = [
    ((1, 1, 3, 3), 1, 3, 1, 1, 1, 1),
    ((2, 3, 9, 11), 5, 3, 1, 1, 1, 1),
    ((2, 4, 9, 11), 6, 3, 2, 1, 1, 2),
    ((2, 16, 20, 20), 40, 5, 2, 2, 2, 1),
    ((1, 32, 28, 28), 64, 3, 1, 1, 1, 1),
    ((2, 6, 9, 9), 6, 3, 1, 1, 1, 6),
    ((1, 4, 12, 13), 8, 3, 3, 0, 2, 4),
    ((2, 8, 6, 6), 3, 1, 2, 0, 1, 1),
    ((2, 4, 6, 7), 4, 2, 2, 0, 1, 2),
    # What is read from slabs: pieces of a line, several lines, strides, several steps.
    ((1, 2, 4, 2500), 20, 3, 1, 1, 1, 1),
    ((1, 3, 30, 130), 6, 7, 2, 3, 1, 1),
    ((2, 100, 12, 60), 9, 3, 1, 1, 1, 1),
    ((1, 6, 40, 50), 8, 3, 3, 2, 2, 2),
    # Gradients by the filters: windows in rows, of several images, in several blocks, and steps summed up in parts.
    ((5, 3, 40, 45), 20, 3, 1, 1, 1, 1),
    ((3, 2, 30, 700), 9, 5, 2, 1, 1, 1),
    ((2, 130, 9, 40), 17, 3, 1, 1, 1, 1),
]


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "o", "k", "s", "p", "d", "g"), CONVOLUTIONS)
def test_convolution(
    conv: KernelLibrary, dtype: type, shape: tuple[int, ...], o: int, k: int, s: int, p: int, d: int, g: int
) -> None:
    rng = np.random.default_rng(o)
    at = {"stride": [s, s], "padding": [p, p], "dilation": [d, d], "groups": g}
    x, w = rng.standard_normal(shape).astype(dtype), rng.standard_normal((o, shape[1] // g, k, k)).astype(dtype)
    total, size = _columns(x, w, at)
    _close(conv.call(conv.family.forward, {"x": x, "w": w}, at)["y"], total, size, w[0].size)


@pytest.fixture(scope="module")
def remainders(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return _library(REMAINDERS, tmp_path_factory.mktemp("remainders"), odd_parallel_for, "float32, float64")


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("j", "k"), [(2, 2), (2, 5), (5, 5), (4, 5), (6, 5), (11, 5), (64, 3), (3, 64), (64, 64), (3, 1)])
def test_remainders(remainders: KernelLibrary, dtype: type, j: int, k: int) -> None:
    """Where an index takes fewer points than it is divided by, its quotient stays: what is read then moves evenly."""
    rng = np.random.default_rng(j)
    x, t, v = (rng.standard_normal(shape).astype(dtype) for shape in ((64, 64), (k,), (j,)))
    got = remainders.call(remainders.family.forward, {"x": x, "t": t, "v": v}, {})
    wide = x.astype(np.float64).sum(1)
    size = np.abs(x.astype(np.float64)).sum(1)
    for name, first in (("y", 0), ("z", 1)):
        own = t.astype(np.float64)[(np.arange(j) + first) % k]
        expected, magnitude = np.outer(own, wide) + v[:, None], np.outer(np.abs(own), size) + np.abs(v)[:, None]
        turned = got[name] if name == "y" else got[name].T
        _close(np.ascontiguousarray(turned), expected, magnitude, 65)


def test_blocks_of_columns_within_images_and_across_them(tmp_path: Path) -> None:
    """One thread takes both by turns: what lies together is read where it is; what does not is packed, beside kept rows."""
    library = _library(CONV, tmp_path)
    rng = np.random.default_rng(0)
    at = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1}
    x, w = rng.standard_normal((3, 40, 37, 50)).astype(np.float32), rng.standard_normal((2, 40, 1, 1)).astype(np.float32)
    total, size = _columns(x, w, at)
    _close(library.call(library.family.forward, {"x": x, "w": w}, at)["y"], total, size, w[0].size)


@pytest.mark.parametrize(("shape", "o", "k", "s", "p", "d", "g"), CONVOLUTIONS)
def test_gradient_of_convolution(
    conv: KernelLibrary, shape: tuple[int, ...], o: int, k: int, s: int, p: int, d: int, g: int
) -> None:
    """The gradient of a bilinear form is exact in differences: <d_y, f(x + t)> - <d_y, f(x)> = <d_x, t>."""
    backward = conv.family.backward
    assert backward is not None
    rng = np.random.default_rng(o)
    at = {"stride": [s, s], "padding": [p, p], "dilation": [d, d], "groups": g}
    x, w = rng.standard_normal(shape), rng.standard_normal((o, shape[1] // g, k, k))
    d_y = rng.standard_normal(_columns(x, w, at)[0].shape)
    got = conv.call(backward, {"x": x, "w": w, "d_y": d_y}, at)
    for _ in range(3):
        t, u = rng.standard_normal(x.shape), rng.standard_normal(w.shape)
        along_x, size_x = _columns(t, w, at)
        along_w, size_w = _columns(x, u, at)
        assert abs((got["d_x"] * t).sum() - (d_y * along_x).sum()) <= 1e-13 * (np.abs(d_y) * size_x).sum()
        assert abs((got["d_w"] * u).sum() - (d_y * along_w).sum()) <= 1e-13 * (np.abs(d_y) * size_w).sum()


@pytest.mark.parametrize("width", [5, 60])
def test_what_a_guard_leaves_out_does_not_count(conv: KernelLibrary, width: int) -> None:
    """An infinite weight reaches those points of the gradient only at which the window holds it."""
    backward = conv.family.backward
    assert backward is not None
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 2, 5, width)).astype(np.float32), rng.standard_normal((3, 2, 3, 3)).astype(np.float32)
    d_y = rng.standard_normal((1, 3, 5, width)).astype(np.float32)
    w[1, 1, 0, 0] = np.inf
    at = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1}
    d_x = conv.call(backward, {"x": x, "w": w, "d_y": d_y}, at)["d_x"]
    assert np.isfinite(d_x[0, 1, -1]).all()
    assert np.isfinite(d_x[0, 1, :, -1]).all()
    assert not np.isfinite(d_x[0, 1, :-1, :-1]).any()
    assert np.isfinite(d_x[0, 0]).all()


def test_an_infinity_outside_the_windows_of_a_filter_does_not_count(tmp_path: Path) -> None:
    """Where the rows are windows, too, what a guard leaves out is no product: infinity times zero is not added."""
    library = _library(TRAILING, tmp_path, types="float32")
    backward = library.family.backward
    assert backward is not None
    rng = np.random.default_rng(0)
    x, d_y = rng.standard_normal((2, 20, 900)).astype(np.float32), rng.standard_normal((2, 5, 900)).astype(np.float32)
    x[0, 7, -1] = np.inf
    d_w = library.call(backward, {"x": x, "w": np.zeros((20, 5, 3), np.float32), "d_y": d_y}, {})["d_w"]
    assert not np.isfinite(d_w[7, :, 0]).any()
    assert np.isfinite(d_w[7, :, 1:]).all()
    assert np.isfinite(np.delete(d_w, 7, axis=0)).all()
    wide = np.pad(d_y.astype(np.float64), ((0, 0), (0, 0), (0, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, 3, axis=2)
    x[0, 7, -1] = 0
    expected = np.einsum("nck,nokp->cop", x.astype(np.float64), windows)
    size = np.einsum("nck,nokp->cop", np.abs(x.astype(np.float64)), np.abs(windows))
    _close(library.call(backward, {"x": x, "w": np.zeros((20, 5, 3), np.float32), "d_y": d_y}, {})["d_w"], expected, size, 1800)


def test_parts_give_the_same_however_they_are_shared_out(tmp_path: Path) -> None:
    """How many parts the steps of a long sum are added up in depends on its sizes alone."""
    family = only(compile_text(HEAD + CONV), "backward")
    module = compile_kernel(family, tmp_path)
    assert family.backward is not None
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 3, 60, 61)).astype(np.float32), rng.standard_normal((20, 3, 3, 3)).astype(np.float32)
    at = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1}
    d_y = rng.standard_normal((4, 20, 58, 59)).astype(np.float32)
    given = {"x": x, "w": w, "d_y": d_y}
    one, two, three = (
        KernelLibrary(family, module, way).call(family.backward, given, at)["d_w"]
        for way in (None, odd_parallel_for, split_everywhere)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


def test_slices_give_what_the_whole_gives(tmp_path: Path) -> None:
    """Batches large enough to be run one by one, and the same call with few of them, which is not."""
    library = _library(ATTENTION, tmp_path, split_everywhere, "float32")
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, n, 8)).astype(np.float32) for n in (220, 230, 230))
    forward = library.family.forward
    whole = library.call(forward, {"q": q, "k": k, "v": v}, {})["y"]
    for batch in range(2):
        for head in range(3):
            part = {"q": q[batch, head], "k": k[batch, head], "v": v[batch, head]}
            np.testing.assert_array_equal(whole[batch, head], library.call(forward, part, {})["y"])


@pytest.mark.parametrize("order", ["i, j", "j, i"])
def test_a_step_without_terms_has_no_more_blocks_than_others(order: str, tmp_path: Path) -> None:
    """Where a condition on the step leaves no product, nothing says which loops are rows: no block is then a single point."""
    text = (
        "inputs: {g: 'T[N, M]', w: 'T[M, M]'}\nattributes: {steps: {type: int, default: 2, check: steps > 0}}\n"
        f"shape: {{S: steps + 1}}\noutputs: {{y: 'T[{'N, M' if order == 'i, j' else 'M, N'}]'}}\ngradient: none\nkernel: |\n"
        "  p[s:S, i:N, j:M] = sum[k](x[s - 1, i, k] * w[k, j]) if s > 0 else 0\n"
        f"  x[s:S, i:N, j:M] = g[i, j] if s == 0 else p[s, i, j]\n  y[{order}] = x[S - 1, i, j]\n"
    )
    counts: list[int] = []

    def counted(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
        counts.append(count)
        body(argument, 0, count)

    library = _library(text, tmp_path, counted, "float32")
    rng = np.random.default_rng(0)
    g, w = rng.standard_normal((620, 500)).astype(np.float32), rng.standard_normal((500, 500)).astype(np.float32)
    found = library.call(library.family.forward, {"g": g, "w": w}, {"steps": 2})["y"]
    expected = g @ w @ w
    np.testing.assert_allclose(found, expected if order == "i, j" else expected.T, rtol=1e-3, atol=1e-1)
    assert counts
    assert max(counts) <= 620
