"""Kernels of ops with attributes that place dimensions among the axes of one group, anywhere and in either order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opc.analysis.shapes.inference import ShapeError, infer
from opc.pipeline import compile_text
from opc.testing.arranged import declared, declared_point, seen, seen_point
from opc.testing.oracle import evaluation as oracle
from opc.testing.oracle import tolerance
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel

PLACED = """\
op: placed
domain: test
version: 1
doc: Two axes in each other's place, the diagonals along them, the mean over both, and what is left without it.
types: {T: [float32]}
inputs: {x: 'T[*K, N, M]', w: 'T[M, N]', z: 'T[*K]'}
attributes: {axis1: {type: axis, dim: N, default: -2}, axis2: {type: axis, dim: M, default: -1}}
outputs: {s: 'T[*K, M, N]', d: 'T[*K, D]', m: 'T[*K]', y: 'T[*K, N, M]'}
shape: {D: 'minimum(N, M)'}
kernel: |
  s[*K, j, i] = x[*K, i, j]
  d[*K, k] = x[*K, k, k]
  m[*K] = mean[i, j](x[*K, i, j]) * z[*K]
  y[*K, i, j] = (x[*K, i, j] - m[*K]) * w[j, i]
"""
PLACES = [(r, p) for r in range(3) for p in itertools.permutations(range(r + 2), 2)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(PLACED, "placed.yaml")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("placed")))


def operands(others: int, places: tuple[int, int], layout: str = "contiguous") -> dict[str, np.ndarray]:
    """Return x with the axes of N = 4 and M = 3 at two places, a weight for each of their points, and one for the others."""
    rng = np.random.default_rng(3)
    rest = (2, 5)[:others]
    sizes = iter(rest)
    shape = tuple({places[0]: 4, places[1]: 3}.get(a) or next(sizes) for a in range(others + 2))
    x = rng.normal(size=shape if layout == "contiguous" else shape[::-1]).astype(np.float32)
    x = x if layout == "contiguous" else x.transpose()
    return {"x": x, "w": rng.normal(size=(3, 4)).astype(np.float32), "z": rng.normal(size=rest).astype(np.float32)}


@pytest.mark.rotating
@pytest.mark.parametrize(("others", "places"), PLACES, ids=str)
def test_values_are_those_of_numpy(library: KernelLibrary, others: int, places: tuple[int, int]) -> None:
    for layout, shift in (("contiguous", 0), ("transposed", -others - 2)):
        given = operands(others, places, layout)
        attributes = {"axis1": places[0] + shift, "axis2": places[1]}
        found = library.call(library.family.forward, given, attributes)
        x = given["x"]
        np.testing.assert_array_equal(found["s"], x.swapaxes(*places))
        np.testing.assert_array_equal(found["d"], np.diagonal(x, 0, *places))
        mean = x.mean(axis=places) * given["z"]
        np.testing.assert_allclose(found["m"], mean, rtol=1e-5, atol=1e-6)
        weight = given["w"] if places[0] > places[1] else given["w"].T
        spread = weight.reshape([n if a in places else 1 for a, n in enumerate(x.shape)])
        left = (x - np.expand_dims(mean, sorted(places))) * spread
        np.testing.assert_allclose(found["y"], left, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("others", "places"), PLACES, ids=str)
def test_derived_ops_are_those_of_the_oracle(library: KernelLibrary, others: int, places: tuple[int, int]) -> None:
    attributes = {"axis1": places[0], "axis2": places[1]}
    given = operands(others, places)
    known = {**given, **library.call(library.family.forward, given, attributes)}
    rng = np.random.default_rng(5)
    for op in library.family.ops:
        inputs = {}
        for o in op.inputs:
            like = known[o.name.replace("t_", "").replace("d_", "")]
            inputs[o.name] = known[o.name] if o.name in known else rng.normal(size=like.shape).astype(np.float32)
        for name, want in oracle.evaluate(op, inputs, attributes).items():
            got = library.call(op, inputs, attributes)[name]
            assert tolerance.compare(name, got, want).ok, (op.name, name)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"axis1": 3}, "placed: axis1 = 3 is out of range: x has 3 axes, so it must be from -3 to 2"),
        ({"axis2": -4}, "placed: axis2 = -4 is out of range: x has 3 axes, so it must be from -3 to 2"),
        ({"axis1": 0, "axis2": -3}, "placed: axis2 = -3 is an axis of x that another attribute places"),
    ],
)
def test_wrong_places_are_refused(library: KernelLibrary, changed: dict[str, int], message: str) -> None:
    given = operands(1, (1, 2))
    with pytest.raises(KernelError) as error:
        library.call(library.family.forward, given, changed)
    assert str(error.value) == message
    with pytest.raises(ShapeError) as inferred:
        infer(library.family.forward, {n: a.shape for n, a in given.items()}, changed)
    assert str(inferred.value) == message


@pytest.mark.parametrize(("others", "places"), PLACES, ids=str)
def test_points_are_found_again(others: int, places: tuple[int, int]) -> None:
    op = compile_text(PLACED, "placed.yaml").forward
    given = operands(others, places)
    env = infer(op, {n: a.shape for n, a in given.items()}, {"axis1": places[0], "axis2": places[1]})
    for o, array in ((op.input("x"), given["x"]), (op.output("s"), given["x"].swapaxes(*places))):
        own = declared(env, o, array)
        assert own.shape == env.shape_of(o)
        assert np.array_equal(seen(env, o, own), array)
        at = tuple(n - 1 for n in array.shape)
        assert seen_point(env, o, declared_point(env, o, at)) == at
        assert own[declared_point(env, o, at)] == array[at]
