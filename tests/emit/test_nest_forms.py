"""The forms of loop nests (rows, phases, scatters, scans) against NumPy: dtypes, sizes beyond a unit of work, strides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int32]}
"""
Array = np.ndarray[Any, Any]
rng = np.random.default_rng(3)


def whole(*shape: int) -> Array:
    """Return small whole numbers, which every dtype adds without rounding."""
    return rng.integers(-2, 3, shape)


def scattered(ids: Array, src: Array, size: int) -> Array:
    """Return the sums of rows of `src` by place; what lies outside is left out."""
    y = np.zeros((size, *src.shape[1:]), src.dtype)
    inside = (ids >= 0) & (ids < size)
    np.add.at(y, ids[inside], src[inside])
    return y


def pooled(x: Array) -> Array:
    """Return the maxima of 3 x 3 windows at a step of 2, of what is padded by ones."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=1)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2].max((-1, -2))


def stencil(x: Array) -> Array:
    """Return sums of neighbours, each of its own number outside."""

    def neighbour(i: int, j: int, outside: int) -> Array:
        padded = np.pad(x, ((0, 0), (2, 2), (2, 2)), constant_values=outside)
        return padded[:, 2 + i : 2 + i + x.shape[1], 2 + j : 2 + j + x.shape[2]]

    return neighbour(-1, 0, 1) - neighbour(0, -1, 2) + neighbour(0, 1, 3) - neighbour(2, 0, 0)


def two_places(ids: Array, w: Array) -> Array:
    """Return whether an element of a row stands where the row's number says, or two further on."""
    return (ids[:, None] == np.arange(w.shape[1])) | (ids[:, None] + 2 == np.arange(w.shape[1]))


FORMS: dict[str, tuple[str, Callable[[int], dict[str, Array]], Callable[..., Array]]] = {
    "window": (
        """\
inputs: {x: 'T[N, H, W]'}
outputs: {y: 'T[N, OH, OW]'}
shape: {OH: (H + 1) // 2, OW: (W + 1) // 2}
kernel: |
  y[n, i, j] = max[p:3, q:3](pad(x[n, 2*i + p - 1, 2*j + q - 1], 1))
""",
        lambda size: {"x": whole(2, 5, size)},
        pooled,
    ),
    "stencil": (
        """\
inputs: {x: 'T[N, H, W]'}
outputs: {y: 'T[N, H, W]'}
kernel: |
  y[n, i, j] = pad(x[n, i - 1, j], 1) - pad(x[n, i, j - 1], 2) + pad(x[n, i, j + 1], 3) - pad(x[n, i + 2, j], 0)
""",
        lambda size: {"x": whole(2, 4, size)},
        stencil,
    ),
    "phases": (
        """\
inputs: {x: 'T[N, W]'}
outputs: {y: 'T[N, M]'}
shape: {M: 3*W}
kernel: |
  y[n, j] = x[n, j // 3] * (j % 3)
""",
        lambda size: {"x": whole(3, size)},
        lambda x: np.repeat(x, 3, 1) * np.tile(np.arange(3), x.shape[1]),
    ),
    "two phases": (
        """\
inputs: {x: 'T[N, W]'}
outputs: {y: 'T[N, M]'}
shape: {M: 2*W + 1}
kernel: |
  y[n, j] = pad(x[n, j // 2], 1)
""",
        lambda size: {"x": whole(3, size)},
        lambda x: np.concatenate([np.repeat(x, 2, 1), np.ones((len(x), 1), x.dtype)], 1),
    ),
    "taps": (
        """\
inputs: {x: 'T[C, W]', g: 'T[C, M]'}
outputs: {y: 'T[C, K]'}
shape: {K: W - M + 1}
require: [M <= W]
kernel: |
  y[c, p] = cast(T, sum[j](x[c, p + j] * g[c, j] * g[c, j]))
""",
        lambda size: {"x": whole(2, size + 2), "g": whole(2, size)},
        lambda x, g: np.stack([(x[:, p : p + g.shape[1]] * g * g).sum(1) for p in range(3)], 1),
    ),
    "scatter of rows": (
        """\
inputs: {t: 'T[V, D]', ids: 'int64[N]', src: 'T[N, D]'}
outputs: {y: 'T[V, D]'}
kernel: |
  y[v, d] = cast(T, sum[n](src[n, d] if ids[n] == v else 0))
""",
        lambda size: {"t": whole(4, size), "ids": rng.integers(-1, 6, 9), "src": whole(9, size)},
        lambda t, ids, src: scattered(ids, src, len(t)),
    ),
    "scatter of numbers": (
        """\
inputs: {t: 'T[V]', ids: 'int64[N]', src: 'T[N]'}
outputs: {y: 'T[V]'}
kernel: |
  y[v] = t[v] + cast(T, sum[n](src[n] if ids[n] == v and src[n] > 0 else 0))
""",
        lambda size: {"t": whole(5), "ids": rng.integers(-1, 7, size), "src": whole(size)},
        lambda t, ids, src: t + scattered(ids, np.where(src > 0, src, 0), len(t)),
    ),
    "scatter of a sum": (
        """\
inputs: {t: 'T[V]', ids: 'int64[N]'}
outputs: {y: 'T[V]'}
kernel: |
  y[v] = t[v] + cast(T, sum[n](sum[k:n + 1](t[ids[k]]) if ids[n] == v else 0))
""",
        lambda size: {"t": whole(5), "ids": rng.integers(0, 5, min(size, 40))},
        lambda t, ids: t + scattered(ids, t[ids].cumsum(), len(t)),
    ),
    "scatter along an axis": (
        """\
inputs: {t: 'T[*A, V, *B]', ids: 'int64[*A, N, *B]', src: 'T[*A, N, *B]'}
attributes: {axis: {type: axis, dim: V, default: 1}}
outputs: {y: 'T[*A, V, *B]'}
kernel: |
  y[*A, v, *B] = cast(T, sum[n](src[*A, n, *B] if ids[*A, n, *B] == v else 0))
""",
        lambda size: {"t": whole(2, 3, size), "ids": rng.integers(0, 3, (2, 4, size)), "src": whole(2, 4, size)},
        lambda t, ids, src: np.stack([np.where(ids == v, src, 0).sum(1) for v in range(3)], 1),
    ),
    "scan": (
        """\
inputs: {x: 'T[*A, N, *B]'}
attributes: {axis: {type: axis, dim: N, default: 1}}
outputs: {y: 'T[*A, N, *B]'}
kernel: |
  y[*A, i, *B] = cast(T, sum[k:i + 1](x[*A, k, *B]))
""",
        lambda size: {"x": whole(2, 7, size)},
        lambda x: x.cumsum(1),
    ),
    "scan of rows": (
        """\
inputs: {x: 'T[N, M]'}
outputs: {y: 'T[N, M]'}
kernel: |
  y[n, i] = max[k:M - i](x[n, i + k]) - x[n, i]
""",
        lambda size: {"x": whole(6, size)},
        lambda x: np.maximum.accumulate(x[:, ::-1], 1)[:, ::-1] - x,
    ),
    "scatter to places in one row": (
        """\
inputs: {x: 'T[N]', ids: 'int64[N]', like: 'T[H, W]'}
outputs: {y: 'T[H, W]'}
kernel: |
  y[h, w] = like[h, w] + cast(T, sum[n](x[n] if h == ids[n] // 7 and w == ids[n] % 7 else 0))
""",
        lambda size: {"x": whole(size), "ids": rng.integers(0, 7, size), "like": whole(1, 7)},
        lambda x, ids, like: like + np.bincount(ids, x, 7),
    ),
    "scan of what is before": (
        """\
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = cast(T, sum[k:i](x[k]))
""",
        lambda size: {"x": whole(size)},
        lambda x: x.cumsum(0) - x,
    ),
    "one place of a row": (
        """\
inputs: {x: 'T[N]', ids: 'int64[N]', w: 'T[N, V]'}
outputs: {y: 'T[N, V]'}
kernel: |
  y[n, v] = x[n] if ids[n] == v + 2 else w[n, v]
""",
        lambda size: {"x": whole(7), "ids": rng.integers(-1, size + 4, 7), "w": whole(7, size)},
        lambda x, ids, w: np.where(ids[:, None] == np.arange(w.shape[1]) + 2, x[:, None], w),
    ),
    "zeros but for one place of a row": (
        """\
inputs: {x: 'T[N]', ids: 'int64[N]', w: 'T[N, V]'}
outputs: {y: 'T[N, V]'}
kernel: |
  y[n, v] = x[n] * w[n, v] if ids[n] == v + 2 else 0
""",
        lambda size: {"x": whole(7), "ids": rng.integers(-1, size + 4, 7), "w": whole(7, size)},
        lambda x, ids, w: np.where(ids[:, None] == np.arange(w.shape[1]) + 2, x[:, None] * w, 0),
    ),
    "all but two places of each row": (
        """\
inputs: {ids: 'int64[N]', w: 'T[N, V]'}
outputs: {y: 'T[]'}
kernel: |
  y[()] = cast(T, sum[n, v](0 if ids[n] == v or ids[n] + 2 == v else w[n, v]))
""",
        lambda size: {"ids": rng.integers(-3, size + 1, 7), "w": whole(7, size)},
        lambda ids, w: np.where(two_places(ids, w), 0, w).sum(),
    ),
    "either of two places": (
        """\
inputs: {ids: 'int64[N]', w: 'T[N, V]'}
outputs: {y: 'T[N]'}
kernel: |
  y[n] = cast(T, sum[v](w[n, v] if ids[n] == v or v == ids[n] % 3 else 0))
""",
        lambda size: {"ids": rng.integers(-1, size + 1, 7), "w": whole(7, size)},
        lambda ids, w: np.where((ids[:, None] == np.arange(w.shape[1])) | (ids[:, None] % 3 == np.arange(w.shape[1])), w, 0).sum(
            1
        ),
    ),
    "a sum of what is looked up": (
        """\
inputs: {ids: 'int64[N]', w: 'T[N, V]', x: 'T[N]'}
outputs: {y: 'T[]'}
kernel: |
  y[()] = cast(T, pad(x[0], 0) * cast(T, sum[n](x[n] * w[n, ids[n]])))
""",
        lambda size: {"ids": rng.integers(0, 3, size), "w": whole(size, 3), "x": whole(size)},
        lambda ids, w, x: x[0] * (x * w[np.arange(len(x)), ids]).sum(),
    ),
    "rows by number": (
        """\
inputs: {t: 'T[V, D]', ids: 'int64[N]'}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = t[ids[n], d]
""",
        lambda size: {"t": whole(4, size), "ids": rng.integers(0, 4, 9)},
        lambda t, ids: t[ids],
    ),
    "a row read twice": (
        """\
inputs: {t: 'T[N, D]', ids: 'int64[N]'}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = t[ids[n], d] + t[n, d] * (t[n, d] + 1)
""",
        lambda size: {"t": whole(4, size), "ids": rng.integers(0, 4, 4)},
        lambda t, ids: t[ids] + t * (t + 1),
    ),
    "products with rows by number": (
        """\
inputs: {x: 'T[N, D]', ids: 'int64[N]', w: 'T[V, M, D]'}
outputs: {y: 'T[N, M]'}
kernel: |
  y[n, m] = cast(T, sum[d](x[n, d] * w[ids[n], m, d]))
""",
        lambda size: {"x": whole(7, size), "ids": rng.integers(0, 3, 7), "w": whole(3, 2, size)},
        lambda x, ids, w: (x[:, None] * w[ids]).sum(-1),
    ),
    "names of the function's own": (
        """\
inputs: {count: 'T[N, M]', unit: 'T[N, M]', place: 'T[N, M]', begin: 'T[N, M]', ids: 'int64[N]'}
outputs: {y: 'T[N, M]'}
kernel: |
  y[n, m] = pad(count[n, m - 1], 0) * place[ids[n], m] + max[p:3](pad(unit[n, m + p - 1], 0)) - begin[n, m]
""",
        lambda size: {n: whole(4, size) for n in ("count", "unit", "place", "begin")} | {"ids": rng.integers(0, 4, 4)},
        lambda count, unit, place, begin, ids: (
            np.pad(count, ((0, 0), (1, 0)))[:, :-1] * place[ids]
            + np.max([np.pad(unit, ((0, 0), (1, 1)))[:, p : p + unit.shape[1]] for p in range(3)], 0)
            - begin
        ),
    ),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Any], KernelLibrary]:
    built: dict[str, tuple[Any, Path]] = {}

    def load(form: str, parallel_for: Any) -> KernelLibrary:
        if form not in built:
            family = compile_text(HEAD + FORMS[form][0], "f.yaml")
            built[form] = family, compile_kernel(family, tmp_path_factory.mktemp("nest"))
        return KernelLibrary(*built[form], parallel_for)

    return load


@pytest.mark.rotating
@pytest.mark.parametrize("form", list(FORMS))
def test_forms(form: str, kernels: Callable[[str, Any], KernelLibrary]) -> None:
    _, inputs, reference = FORMS[form]
    for parallel_for in (None, odd_parallel_for, split_everywhere):
        kernel = kernels(form, parallel_for)
        op = kernel.family.forward
        for size in (1, 2, 5, 19, 40, 1100, 2300):
            given = inputs(size)
            expected = np.asarray(reference(**given))
            for dtype in ("float16", "float32", "float64", "int32"):
                numbers = {n: a.astype("int64" if n == "ids" else dtype) for n, a in given.items()}
                for arrays in (numbers, {n: np.asfortranarray(a) for n, a in numbers.items()}):
                    got = kernel.call(op, arrays, {})["y"]
                    exact = np.abs(expected).max(initial=0) <= 2048 or dtype != "float16"
                    if exact:
                        np.testing.assert_array_equal(got.astype(float), expected, f"{size} {dtype}")


@pytest.mark.parametrize("form", ["scatter of rows", "scatter of numbers", "scan", "scan of what is before", "rows by number"])
def test_nothing(form: str, kernels: Callable[[str, Any], KernelLibrary]) -> None:
    kernel = kernels(form, None)
    given = {n: a.astype("int64" if n == "ids" else "float32") for n, a in FORMS[form][1](0).items()}
    expected = FORMS[form][2](**given)
    np.testing.assert_array_equal(kernel.call(kernel.family.forward, given, {})["y"], expected)


def test_an_index_outside_is_refused(kernels: Callable[[str, Any], KernelLibrary]) -> None:
    kernel = kernels("rows by number", None)
    for index in (-1, 4, 1 << 40):
        given = {"t": np.ones((4, 3), np.float32), "ids": np.array([0, index])}
        with pytest.raises(KernelError, match=f"an index of t is {index}, outside axis 0 of size 4"):
            kernel.call(kernel.family.forward, given, {})


def test_nan_is_a_maximum(kernels: Callable[[str, Any], KernelLibrary]) -> None:
    kernel = kernels("window", None)
    x = np.ones((1, 5, 40), np.float32)
    x[0, 2, 7] = np.nan
    y = kernel.call(kernel.family.forward, {"x": x}, {})["y"][0]
    assert {tuple(at) for at in np.argwhere(np.isnan(y))} == {(1, 3), (1, 4)}


def test_several_padded_reads_share_one_loop_where_all_are_inside() -> None:
    family = compile_text(HEAD + FORMS["stencil"][0], "test")
    text = kernel_files(family)["kernel/f_loops.cpp"]
    loops = text.split("OPC_SIMD\n")[1:]
    assert len(loops) == 2
    assert "?" not in loops[0].split(";\n")[0]
    assert "for (int64_t side = 0; side < 2; ++side)" in text


def test_a_choice_of_one_place_is_made_outside_of_the_loop() -> None:
    family = compile_text(HEAD + FORMS["one place of a row"][0], "test")
    loops = kernel_files(family)["kernel/f_loops.cpp"].split("OPC_SIMD\n")[1:]
    assert len(loops) == 3
    assert all("?" not in loop.split(";\n")[0] for loop in loops)


@pytest.mark.parametrize(("other", "loops"), [("s[0]", 2), ("0", 1)])
def test_lanes_that_are_alike_are_filled_at_once(other: str, loops: int) -> None:
    spec = f"""\
inputs: {{x: 'T[N]', t: 'int64[N]', s: 'T[1]'}}
attributes: {{depth: {{type: int, default: 4, check: depth > 0}}}}
shape: {{C: depth}}
outputs: {{y: 'T[N, C]'}}
kernel: |
  y[n, c] = x[n] if c == t[n] else {other}
"""
    text = kernel_files(compile_text(HEAD + spec, "f.yaml"))["kernel/f_loops.cpp"]
    assert text.count("OPC_SIMD\n") == loops
    assert ("opc::zero_units(nest, begin, end);" in text) == (other == "0")


def test_reads_at_the_one_point_of_a_group_stand_ahead_of_the_loop() -> None:
    spec = """\
inputs: {x: 'T[N, *K]', t: 'int64[N, *K]', w: 'T[C]'}
outputs: {y: 'T[N, C, *K]'}
kernel: |
  y[n, c, *K] = x[n, *K] if c == t[n, *K] else 0
"""
    text = kernel_files(compile_text(HEAD + spec, "f.yaml"))["kernel/f_loops.cpp"]
    alone = text.split("if (nest.alone) {")[1].split("return;")[0]
    assert "const int64_t at_one = int64_t(t.data[" in alone


def test_a_sum_over_all_but_some_places_runs_from_one_to_the_next() -> None:
    family = compile_text(HEAD + FORMS["all but two places of each row"][0], "test")
    (loop,) = kernel_files(family)["kernel/f_loops.cpp"].split("OPC_SIMD_REDUCTION")[1:]
    assert "==" not in loop.split(";\n")[0]


def test_rows_that_a_sum_reads_at_computed_places_are_looked_up_ahead_of_its_loop() -> None:
    family = compile_text(HEAD + FORMS["products with rows by number"][0], "f.yaml")
    text = kernel_files(family)["kernel/f_loops.cpp"]
    assert "opc::row_at(nest, 1, " in text
    assert ".at(" not in text


def test_whether_an_operand_was_given_is_asked_ahead_of_a_choice_made_lane_by_lane() -> None:
    spec = """\
inputs: {x: 'T[N]', t: 'int64[N]', 'w?': 'T[C]'}
outputs: {y: 'T[N]'}
kernel: |
  y[n] = 0 if t[n] == -1 else w[t[n]] if present(w) else x[n]
"""
    text = kernel_files(compile_text(HEAD + spec, "f.yaml"))["kernel/f_loops.cpp"]
    given, absent = text.replace("OPC_UNROLLED", "OPC_SIMD").split("OPC_SIMD\n")[1:]
    assert "has_w" not in given.split(";\n")[0]
    assert absent.split(";\n")[0].count("?") == 1
    assert "if (has_w) {" in text
