"""Kernels of ops with an attribute that lists axes: in front, between others and at the end, of any strides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.ir.arrangement import mixed, order, places
from opc.pipeline import compile_text
from opc.testing.arranged import declared, declared_point, seen, seen_point
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel
from tests.narrow import only

NORMALIZED = """\
op: normalized
domain: test
version: 1
doc: The mean over axes, and what is left without it times a weight.
types: {T: [float32]}
inputs: {x: 'T[*K, *R]', w: 'T[*R]'}
attributes:
  axes: {type: axes, group: R, default: []}
  keepdims: {type: bool, keeps: R, default: false}
outputs: {m: 'T[*K]', y: 'T[*R, *K]'}
kernel: |
  m[*K] = mean[*R](x[*K, *R])
  y[*R, *K] = (x[*K, *R] - m[*K]) * w[*R]
"""
LISTS = [[], [0], [1], [-1], [0, 2], [2, 0], [1, -1], [0, 1, 2], [-3]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = only(compile_text(NORMALIZED, "normalized.yaml"), "backward")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("normalized")))


def operands(axes: list[int], layout: str) -> tuple[np.ndarray, np.ndarray]:
    """Return x, of three axes stored in some way, and a weight for the listed ones."""
    rng = np.random.default_rng(3)
    shape = (4, 5, 6)
    x = rng.normal(size=shape if layout == "contiguous" else shape[::-1]).astype(np.float32)
    x = x if layout == "contiguous" else x.transpose(2, 1, 0)
    return x, rng.normal(size=[shape[a] for a in places(axes, 3)]).astype(np.float32)


@pytest.mark.parametrize("axes", LISTS, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_values_are_those_of_numpy(library: KernelLibrary, axes: list[int], keepdims: bool) -> None:
    for layout in ("contiguous", "transposed"):
        x, w = operands(axes, layout)
        found = library.call(library.family.forward, {"x": x, "w": w}, {"axes": axes, "keepdims": keepdims})
        listed = places(axes, 3)
        spread = w.reshape([n if a in listed else 1 for a, n in enumerate(x.shape)])
        mean = x.mean(axis=listed, keepdims=True)
        np.testing.assert_allclose(found["m"], mean if keepdims else mean.squeeze(listed), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["y"], (x - mean) * spread, rtol=1e-4, atol=1e-5)


def test_the_gradient_sums_over_what_is_not_listed(library: KernelLibrary) -> None:
    x, w = operands([0, 2], "contiguous")
    backward = library.family.backward
    assert backward is not None
    d_y = np.random.default_rng(4).normal(size=x.shape).astype(np.float32)
    inputs = {"x": x, "w": w, "d_y": d_y, "d_m": np.zeros((1, 5, 1), np.float32)}
    given = {o.name: inputs[o.name] for o in backward.inputs if o.name in inputs}
    given |= {o.name: x.mean(axis=(0, 2), keepdims=True) for o in backward.inputs if o.name == "m"}
    found = library.call(backward, given, {"axes": [0, 2], "keepdims": True})
    left = x - x.mean(axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(found["d_w"], (d_y * left).sum(axis=1), rtol=1e-3, atol=1e-4)
    weighed = d_y * w[:, None, :]
    np.testing.assert_allclose(found["d_x"], weighed - weighed.mean(axis=(0, 2), keepdims=True), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([3], "normalized: axes = [3] is out of range: x has 3 axes, so each must be from -3 to 2"),
        ([0, -3], "normalized: axes = [0, -3] names an axis of x twice"),
        ([0], "normalized: *R is [4] in x, but [6] in w"),
    ],
)
def test_wrong_lists_are_refused(library: KernelLibrary, axes: list[int], message: str) -> None:
    x, w = operands([2], "contiguous")
    with pytest.raises(KernelError) as error:
        library.call(library.family.forward, {"x": x, "w": w}, {"axes": axes})
    assert str(error.value) == message


@pytest.mark.parametrize("axes", LISTS, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_points_are_found_again(axes: list[int], keepdims: bool) -> None:
    op = compile_text(NORMALIZED, "normalized.yaml").forward
    x, w = operands(axes, "contiguous")
    env = infer(op, {"x": x.shape, "w": w.shape}, {"axes": axes, "keepdims": keepdims})
    for o, array in ((op.input("x"), x), (op.output("m"), np.zeros(env.outputs["m"]))):
        own = declared(env, o, array)
        assert own.shape == env.shape_of(o)
        assert np.array_equal(seen(env, o, own), array)
        at = tuple(n - 1 for n in array.shape)
        assert seen_point(env, o, declared_point(env, o, at)) == at
        assert own[declared_point(env, o, at)] == array[at]


def test_places() -> None:
    assert places([-1, 0], 3) == (0, 2)
    assert places([], 2) == (0, 1)
    assert order((0, 2), 3, picked_first=False) == (1, 0, 2)
    assert order((0, 2), 3, picked_first=True) == (0, 2, 1)
    assert mixed((5,), (4, 6), (0, 2)) == (4, 5, 6)
    for wrong in ([2], [0, 0], [0, -2]):
        with pytest.raises(ValueError, match="axes"):
            places(wrong, 2)


LOOKED_UP = """\
op: looked_up
domain: test
version: 1
doc: A table's entries at indices, which a nest writes.
types: {T: [float32]}
inputs: {t: 'T[V]', i: 'int64[*K, *R]'}
attributes: {axes: {type: axes, group: R, default: []}}
outputs: {y: 'T[*K, *R]'}
kernel: |
  y[*K, *R] = t[i[*K, *R]]
"""


def test_what_nests_write_lies_where_the_list_says(tmp_path: Path) -> None:
    """Nests write what is contiguous: such an output is copied from memory of their own."""
    family = compile_text(LOOKED_UP, "looked_up.yaml")
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    rng = np.random.default_rng(0)
    t, i = rng.normal(size=7).astype(np.float32), rng.integers(0, 7, (4, 5, 6))
    for axes in LISTS:
        np.testing.assert_array_equal(library.call(family.forward, {"t": t, "i": i}, {"axes": axes})["y"], t[i])
