"""Kernels of ops with an attribute that is a permutation of an operand's axes."""

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

PERMUTED = """\
op: permuted
domain: test
version: 1
doc: x with its axes in another order, beside what has them so, alone, in sums, and in pairs with a further axis.
types: {T: [float32]}
inputs: {b: 'T[*R]', x: 'T[*R]', w: 'T[N]'}
attributes: {perm: {type: permutation, group: R, of: x, default: []}}
outputs: {y: 'T[*R]', z: 'T[*R]', s: 'T[]', p: 'T[*R, N]'}
kernel: |
  y[*R] = x[*R]
  z[*R] = x[*R] * b[*R] + position(*R)
  s[] = sum[*R](x[*R] * b[*R])
  p[*R, n] = exp(-x[*R] * x[*R]) * w[n]
"""
PERMUTATIONS = [p for rank in range(4) for p in itertools.permutations(range(rank))] + [(0, 2, 1, 3), (3, 1, 0, 2)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(PERMUTED, "permuted.yaml")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("permuted")))


def operands(perm: tuple[int, ...], layout: str = "contiguous") -> dict[str, np.ndarray]:
    """Return x, what has its axes in the order of a permutation, and a vector."""
    rng = np.random.default_rng(3)
    shape = (2, 5, 3, 4)[: len(perm)]
    x = rng.normal(size=shape if layout == "contiguous" else shape[::-1]).astype(np.float32)
    x = x if layout == "contiguous" else x.transpose()
    b = rng.normal(size=[shape[a] for a in perm]).astype(np.float32)
    return {"b": b, "x": x, "w": rng.normal(size=3).astype(np.float32)}


@pytest.mark.parametrize("perm", PERMUTATIONS, ids=str)
def test_values_are_those_of_numpy(library: KernelLibrary, perm: tuple[int, ...]) -> None:
    reverse = perm == tuple(reversed(range(len(perm))))
    for layout, listed in (
        ("contiguous", perm),
        ("transposed", [a - len(perm) for a in perm]),
        ("contiguous", () if reverse else perm),
    ):
        given = operands(perm, layout)
        found = library.call(library.family.forward, given, {"perm": list(listed)})
        x, b = given["x"].transpose(perm), given["b"]
        np.testing.assert_array_equal(found["y"], x)
        np.testing.assert_allclose(found["z"], x * b + np.arange(x.size).reshape(x.shape), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found["s"], (x * b).sum(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found["p"], np.exp(-x * x)[..., None] * given["w"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((70, 90), (1, 0)),
        ((33, 20, 64), (2, 0, 1)),
        ((40, 3, 70), (2, 1, 0)),
        ((5, 130, 67), (0, 2, 1)),
        ((3, 50, 50), (1, 2, 0)),
    ],
    ids=str,
)
def test_blocks_that_are_turned_over_are_whole(library: KernelLibrary, shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    given = {"b": np.ones(x.transpose(perm).shape, np.float32), "x": x, "w": np.ones(1, np.float32)}
    found = library.call(library.family.forward, given, {"perm": list(perm)})
    np.testing.assert_array_equal(found["y"], x.transpose(perm))
    gradient = next(op for op in library.family.ops if op.name == "permuted_backward")
    seeds = {f"d_{o}": np.zeros_like(found[o]) for o in ("y", "z", "s", "p")} | {"d_y": found["y"]}
    needed = {o.name: {**given, **seeds}[o.name] for o in gradient.inputs}
    np.testing.assert_array_equal(library.call(gradient, needed, {"perm": list(perm)})["d_x"], x)


@pytest.mark.parametrize("perm", PERMUTATIONS, ids=str)
def test_derived_ops_are_those_of_the_oracle(library: KernelLibrary, perm: tuple[int, ...]) -> None:
    attributes = {"perm": list(perm)}
    given = operands(perm)
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
    ("perm", "message"),
    [
        ([0, 2], "permuted: perm = [0, 2] is out of range: x has 2 axes, so each must be from -2 to 1"),
        ([-3, 1], "permuted: perm = [-3, 1] is out of range: x has 2 axes, so each must be from -2 to 1"),
        ([1, -1], "permuted: perm = [1, -1] names an axis of x twice"),
        ([1], "permuted: perm = [1] does not name all 2 axes of x"),
        ([0, 1], "permuted: *R is [2, 5] in x, but [5, 2] in b"),
    ],
    ids=str,
)
def test_what_is_no_permutation_is_refused(library: KernelLibrary, perm: list[int], message: str) -> None:
    given = operands((1, 0))
    with pytest.raises(KernelError) as error:
        library.call(library.family.forward, given, {"perm": perm})
    assert str(error.value) == message
    with pytest.raises(ShapeError) as inferred:
        infer(library.family.forward, {n: a.shape for n, a in given.items()}, {"perm": perm})
    assert str(inferred.value) == message


@pytest.mark.parametrize("perm", PERMUTATIONS, ids=str)
def test_points_are_found_again(perm: tuple[int, ...]) -> None:
    op = compile_text(PERMUTED, "permuted.yaml").forward
    given = operands(perm)
    env = infer(op, {n: a.shape for n, a in given.items()}, {"perm": perm})
    for o, array in ((op.input("x"), given["x"]), (op.output("y"), given["b"])):
        own = declared(env, o, array)
        assert own.shape == env.shape_of(o)
        assert np.array_equal(seen(env, o, own), array)
        at = tuple(n - 1 for n in array.shape)
        assert seen_point(env, o, declared_point(env, o, at)) == at
        assert own[declared_point(env, o, at)] == array[at]
