"""Ops in JAX, which test_live.py runs in a process of its own.

Transformations against JAX's own functions, arrays of 64 bits or none, donation, Flax and Pallas, and eight devices of the host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opc.backends import package
from opc.build.builder import build_specs
from tests.narrow import narrow

OPS = ("leaky_relu", "add", "softmax", "linear", "embedding", "argmax", "silu", "addcmul")
MIX = """
op: mix
domain: opc.jax_test
version: 1
doc: Squares with weights of any type, and the elements in a type that is chosen.
types: {T: [float32, float64], U: [float32, float64, int32, int64], V: [int64, float32, int4]}
inputs: {a: 'T[N]', b: 'U[N]'}
attributes: {to: {type: dtype, binds: V, default: int64}}
outputs: {y: 'T[N]', z: 'V[N]'}
kernel: |
  y[i] = a[i] * a[i] * cast(T, b[i])
  z[i] = cast(V, a[i])
"""
SCRIPT = Path(__file__).with_name("sharded.py")

# For each case: where the output and the gradients lie, and the collectives of the call and of its gradient.
SUM, GATHER = {"all-reduce": 1}, {"all-gather": 1}
EXPECTED: dict[str, tuple[str, list[str], dict[str, int], dict[str, int]]] = {
    "elementwise": ("('a',)", ["('a',)"], {}, {}),
    "elementwise-both": ("('a', 'b')", ["('a', 'b')"], {}, {}),
    "elementwise-uneven": ("()", ["()"], {}, {}),
    "broadcast-row": ("('a',)", ["('a',)", "()"], {}, SUM),
    "broadcast-columns": ("(None, 'a')", ["(None, 'a')", "('a',)"], {}, {}),
    "softmax-batch": ("(('a', 'b'),)", ["(('a', 'b'),)"], {}, {}),
    "softmax-behind": ("(None, None, 'a')", ["(None, None, 'a')"], {}, {}),
    "softmax-along": ("()", ["()"], GATHER, GATHER),
    "new-axis-ahead": ("(None, None, 'a')", ["(None, 'a')"], {}, {}),
    "new-axis-behind": ("(None, 'a')", ["(None, 'a')"], {}, {}),
    "linear-batch": ("('a',)", ["('a',)", "()", "()"], {}, SUM),
    "linear-column": ("(None, 'a')", ["()", "('a',)", "('a',)"], {}, SUM),
    "linear-row": ("()", ["(None, 'a')", "(None, 'a')"], SUM, {}),
    "linear-row-bias": ("()", ["(None, 'a')", "(None, 'a')", "()"], SUM, {}),
    "linear-both": ("('a', 'b')", ["('a',)", "('b',)", "('b',)"], {}, {"all-reduce": 2}),
    "embedding-batch": ("('a',)", ["()"], {}, SUM),
    "embedding-columns": ("(None, None, 'a')", ["(None, 'a')"], {}, {}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages, built once."""
    place = tmp_path_factory.mktemp("jax")
    paths = [narrow(op, place / "specs", "float32, float64") for op in (*OPS, "onnx/unsqueeze")]
    mix = place / "specs" / "mix.yaml"
    mix.write_text(MIX)
    built = build_specs([*paths, mix], place, ["jax"])
    assert [d.render() for b in built for d in b.diagnostics] == []
    return place


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, dict[str, Any]]:
    """Run all cases once on eight devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return {result["name"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", EXPECTED)
def test_sharded(found: dict[str, dict[str, Any]], name: str) -> None:
    output, gradients, forward, backward = EXPECTED[name]
    result = found[name]
    assert result.get("error") is None
    assert result["wrong"] == []
    assert (result["output"], result["gradients"]) == (output, gradients)
    assert (result["forward"], result["backward"]) == (forward, backward)


def test_shard_map(found: dict[str, dict[str, Any]]) -> None:
    """Within jax.shard_map, operands that vary over a mesh and others go together, and gradients are summed where they must."""
    assert found["shard_map"] == {"name": "shard_map", "wrong": []}


@pytest.fixture(scope="module")
def ops(folder: Path) -> dict[str, ModuleType]:
    """The packages' modules for JAX."""
    return {op: package.load(folder / op, "jax") for op in OPS}


def test_transformations(ops: dict[str, ModuleType]) -> None:
    """They give what they give of JAX's own softmax, and can be nested."""
    import jax

    def functions(softmax: Any) -> list[Any]:
        def total(x: Any) -> Any:
            return (softmax(x) ** 3).sum()

        def scanned(x: Any) -> Any:
            return jax.lax.scan(lambda carry, _: (softmax(carry) + x, None), x, length=3)[0].sum()

        return [
            jax.hessian(total),
            jax.jacrev(jax.jacfwd(total)),
            jax.grad(jax.checkpoint(total)),
            lambda x: jax.vmap(jax.grad(total), 1)(jax.numpy.stack([x, 2 * x, 3 * x], 1)),
            lambda x: jax.jvp(jax.grad(total), (x,), (x,))[1],
            jax.grad(scanned),
        ]

    with jax.enable_x64(True):
        x = jax.numpy.asarray(np.random.default_rng(3).standard_normal((2, 3)))
        for i, pair in enumerate(zip(functions(ops["softmax"].softmax), functions(jax.nn.softmax), strict=True)):
            found, expected = (jax.jit(function)(x) for function in pair)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14, err_msg=str(i))


@pytest.mark.parametrize("wide", [True, False])
def test_operands_and_results_of_integers_are_constants(folder: Path, wide: bool) -> None:
    """They have no gradient, and those of others go past them, in both modes and both orders."""
    import jax

    mix = package.load(folder / "mix", "jax").mix
    with jax.enable_x64(wide):
        a, b = jax.numpy.asarray([2.0, 3.0]), jax.numpy.asarray([2, 3])
        assert (a.dtype.itemsize, b.dtype.kind) == (8 if wide else 4, "i")
        for function in (lambda a: mix(a, b)[0].sum(), jax.jit(lambda a: mix(a, b)[0].sum())):
            assert jax.grad(function)(a).tolist() == [8.0, 18.0]
            assert jax.jvp(function, (a,), (a,))[1] == 70.0
            assert jax.hessian(function)(a).tolist() == [[4.0, 0.0], [0.0, 6.0]]
        assert jax.grad(lambda a: mix(a, b, to="float32")[1].sum())(a).tolist() == [1.0, 1.0]


def test_forward_over_forward(ops: dict[str, ModuleType]) -> None:
    """Of a pointwise op it gives what it gives of JAX's own functions, for operands that are broadcast too."""
    import jax

    random = np.random.default_rng(4)
    silu, addcmul = ops["silu"].silu, ops["addcmul"].addcmul

    def laplacian(activation: Any) -> Any:
        return lambda x: jax.numpy.trace(jax.jacfwd(jax.jacfwd(lambda x: (w @ activation(w @ x))[0]))(x))

    def second(function: Any) -> Any:
        return jax.jacfwd(jax.jacfwd(function, (0, 1, 2)), (0, 1, 2))

    with jax.enable_x64(True):
        w, x = (jax.numpy.asarray(random.standard_normal(shape)) for shape in ((3, 3), (4, 3)))
        for wrap in (lambda f: jax.vmap(f), lambda f: jax.jit(jax.vmap(f))):
            found, expected = (wrap(laplacian(f))(x) for f in (silu, jax.nn.silu))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        operands = [jax.numpy.asarray(random.standard_normal(shape)) for shape in ((2, 3), (3,), (2, 1))]
        pair = [second(f)(*operands) for f in (lambda x, a, b: addcmul(x, a, b, value=0.7), lambda x, a, b: x + 0.7 * a * b)]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), *pair)
        batch = [jax.numpy.stack([o, 2 * o]) for o in operands[:2]]
        pair = [jax.vmap(lambda x, a, f=f: second(f)(x, a, operands[2]))(*batch) for f in (addcmul, lambda x, a, b: x + a * b)]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), *pair)
    with pytest.raises(NotImplementedError, match="the derivative of silu has no derivative"):
        jax.jacfwd(jax.jacfwd(jax.jacfwd(silu)))(jax.numpy.ones(2))


def test_forward_over_forward_is_refused(ops: dict[str, ModuleType]) -> None:
    """Of other ops opc derives no kernel for it, and the message says what does without; where it is 0, none is needed."""
    import jax

    with pytest.raises(NotImplementedError, match=r"softmax: .*jax.hessian"):
        jax.jacfwd(jax.jacfwd(ops["softmax"].softmax))(jax.numpy.ones(3))
    add, x = ops["add"].add, jax.numpy.arange(3.0)
    np.testing.assert_array_equal(jax.jacfwd(jax.jacfwd(lambda x: add(x, x)))(x), np.zeros((3, 3, 3)))


@pytest.mark.parametrize("wide", [False, True])
def test_integers(ops: dict[str, ModuleType], wide: bool) -> None:
    """Integers have no gradient; where JAX has no arrays of 64 bits, those of 32 bits stand in for them."""
    import jax

    argmax, embedding = ops["argmax"].argmax, ops["embedding"].embedding
    with jax.enable_x64(wide):
        kind = "int64" if wide else "int32"
        x = jax.numpy.asarray([[1.0, 5.0, 2.0], [7.0, 0.0, 1.0]])
        static = jax.jit(argmax, static_argnames="axis")
        for place in (argmax(x, axis=1), static(x, axis=1), jax.vmap(lambda row: argmax(row, axis=0))(x)):
            assert (place.tolist(), place.dtype) == ([1, 0], kind)
        assert jax.jvp(lambda x: argmax(x, axis=1), (x,), (x,))[1].dtype == jax.dtypes.float0
        ids, table = jax.numpy.asarray([[1, 2], [3, 1]]), jax.numpy.ones((5, 2))
        assert ids.dtype == kind
        for take in (embedding, jax.jit(embedding), jax.vmap(embedding, (0, None))):
            assert take(ids, table).shape == (2, 2, 2)
        gradient = jax.jit(jax.grad(lambda t: (embedding(ids, t) ** 2).sum()))(table)
        assert gradient[:, 0].tolist() == [0, 4, 2, 2, 0]
        assert jax.grad(lambda i: embedding(i, table).sum(), allow_int=True)(ids).dtype == jax.dtypes.float0
        with pytest.raises(ValueError, match="is 21, outside axis 0 of size 5"):
            jax.block_until_ready(jax.jit(embedding)(ids + 20, table))


def test_flax(ops: dict[str, ModuleType]) -> None:
    """A model of Flax's trains with opc's ops as with JAX's own, step by step."""
    import jax
    import optax
    from flax import linen

    class Net(linen.Module):
        """Two layers: the first one's parameters are Flax's, the second is an op of opc's on parameters of its own."""

        activation: Any
        linear: Any
        softmax: Any

        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = self.activation(linen.Dense(8)(x))
            w = self.param("w", linen.initializers.lecun_normal(), (3, 8))
            b = self.param("b", linen.initializers.zeros, (3,))
            return self.softmax(self.linear(x, w, b))

    ours = Net(lambda x: ops["leaky_relu"].leaky_relu(x, alpha=0.1), ops["linear"].linear, ops["softmax"].softmax)
    theirs = Net(lambda x: jax.nn.leaky_relu(x, 0.1), lambda x, w, b: x @ w.T + b, jax.nn.softmax)
    random = np.random.default_rng(7)
    x = jax.numpy.asarray(random.standard_normal((32, 4)), "float32")
    labels = jax.numpy.argmax(x[:, :3], 1)

    def trained(model: Net) -> tuple[list[float], Any]:
        optimizer = optax.adam(0.05)

        def loss(parameters: Any) -> Any:
            chosen = model.apply(parameters, x)[jax.numpy.arange(32), labels]
            return -jax.numpy.log(chosen).mean()

        @jax.jit
        def step(parameters: Any, state: Any) -> tuple[Any, Any, Any]:
            value, gradients = jax.value_and_grad(loss)(parameters)
            updates, state = optimizer.update(gradients, state)
            return value, optax.apply_updates(parameters, updates), state

        parameters = model.init(jax.random.key(0), x)
        state, losses = optimizer.init(parameters), []
        for _ in range(40):
            value, parameters, state = step(parameters, state)
            losses.append(float(value))
        return losses, parameters

    (found, mine), (expected, other) = trained(ours), trained(theirs)
    assert found[-1] < 0.6 * found[0]
    np.testing.assert_allclose(found[:10], expected[:10], rtol=1e-4)
    assert jax.tree.structure(mine) == jax.tree.structure(other)


def test_beside_pallas(ops: dict[str, ModuleType]) -> None:
    """An op and a kernel of Pallas, which its interpreter runs on a CPU, are in one compiled program, and vmap takes both."""
    import jax
    from jax.experimental import pallas

    def double(read: Any, write: Any) -> None:
        write[...] = 2 * read[...]

    def program(x: Any) -> Any:
        y = ops["softmax"].softmax(x)
        return pallas.pallas_call(double, out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype), interpret=True)(y)

    x = jax.numpy.asarray(np.random.default_rng(8).standard_normal((3, 4)), "float32")
    np.testing.assert_allclose(jax.jit(program)(x), 2 * jax.nn.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(program))(x), 2 * jax.nn.softmax(x), rtol=1e-6)


def test_donation(ops: dict[str, ModuleType]) -> None:
    """A donated operand of an op in place becomes the result, without a copy; any other stays what it is."""
    import jax

    leaky_relu = ops["leaky_relu"].leaky_relu
    x = jax.numpy.arange(-4.0, 4.0)
    given = np.asarray(x).copy()
    kept = leaky_relu(x, alpha=0.5)
    np.testing.assert_array_equal(x, given)
    donating = jax.jit(lambda x: leaky_relu(x, alpha=0.5), donate_argnums=0)
    text = donating.lower(x).compile().as_text()
    assert "copy(" not in text
    place = x.unsafe_buffer_pointer()
    result = donating(x)
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(result, kept)


def test_symbolic_sizes(ops: dict[str, ModuleType]) -> None:
    """An exported gradient runs with any sizes; sizes that must agree have one name."""
    import jax
    from jax import export

    linear, checks = ops["linear"].linear, ops["linear"].EXPORT_CHECKS
    scope = export.SymbolicScope()

    def some(shape: str) -> Any:
        return jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), "float32")

    gradient = jax.jit(jax.grad(lambda x, w: linear(x, w).sum()))
    program = export.export(gradient, disabled_checks=checks)(some("n, k"), some("m, k"))
    loaded = export.deserialize(program.serialize())
    for n, m, k in ((2, 3, 4), (5, 1, 2)):
        found = loaded.call(jax.numpy.ones((n, k)), jax.numpy.full((m, k), 2.0))
        assert found.tolist() == [[2.0 * m] * k] * n
    with pytest.raises(ValueError, match="K is k in x, but j in w"):
        export.export(gradient, disabled_checks=checks)(some("n, k"), some("m, j"))


def test_lowers_for_cuda(ops: dict[str, ModuleType]) -> None:
    """Programs for GPUs can be made on a machine that has none; test_cuda.py calls their handlers."""
    import jax

    shape, checks = jax.ShapeDtypeStruct((3, 4), "float32"), ops["softmax"].EXPORT_CHECKS
    step = jax.jit(jax.value_and_grad(lambda x: ops["softmax"].softmax(x)[0].sum()))
    text = jax.export.export(step, platforms=["cuda"], disabled_checks=checks)(shape).mlir_module()
    assert re.findall(r"custom_call @\"?[\w.]*?(softmax\w*)\.", text) == ["softmax", "softmax_backward"]


def test_refusals(ops: dict[str, ModuleType], folder: Path) -> None:
    import jax

    leaky_relu, x = ops["leaky_relu"].leaky_relu, jax.numpy.ones(3)
    with pytest.raises(TypeError, match=r"alpha must be known while JAX traces.*static_argnames"):
        jax.jit(leaky_relu)(x, 0.5)
    with pytest.raises(ValueError, match="x has dtype int32"):
        leaky_relu(x.astype("int32"))
    with pytest.raises(ValueError, match="alpha = -1 violates its check"):
        jax.jit(lambda x: leaky_relu(x, alpha=-1))(x)
    with pytest.raises(TypeError, match="alpha must be of type float, not 'much'"):
        leaky_relu(x, alpha="much")
    with pytest.raises(ValueError, match="alpha does not fit 64 bits"):
        leaky_relu(x, alpha=10**400)
    mix = package.load(folder / "mix", "jax").mix
    for call in (lambda: mix(x, x, to="int4"), lambda: jax.jit(lambda x: mix(x, x, to="int4"))(x)):
        with pytest.raises(TypeError, match=r"^mix: z is int4, which JAX has no tensors of"):
            call()


def test_more_axes_than_a_kernel_takes(ops: dict[str, ModuleType]) -> None:
    import jax

    softmax, most = ops["softmax"].softmax, jax.numpy.ones((2, *[1] * 31))
    assert jax.vmap(softmax)(most).shape == softmax(most).shape == most.shape
    for call in (softmax, jax.jit(softmax), jax.grad(lambda x: softmax(x).sum())):
        with pytest.raises(ValueError, match="softmax: x has 33 axes, but at most 32 are possible"):
            call(most[None])
    with pytest.raises(ValueError, match="x has 33 axes, but at most 32 are possible"):
        jax.vmap(softmax)(most[None])


def test_two_copies_of_a_package(ops: dict[str, ModuleType], folder: Path, tmp_path: Path) -> None:
    """XLA takes no handler's name twice."""
    import jax

    shutil.copytree(folder / "leaky_relu", tmp_path / "leaky_relu")
    copy = package.load(tmp_path / "leaky_relu", "jax")
    assert copy is not ops["leaky_relu"]
    assert copy.leaky_relu(jax.numpy.asarray([-2.0]), alpha=0.5).tolist() == [-1.0]


def test_both_zeros_are_told_apart(ops: dict[str, ModuleType]) -> None:
    """Calls with equal attributes share a compiled program, and -0.0 equals 0.0."""
    import jax

    call = ops["leaky_relu"].leaky_relu
    signs = [np.signbit(np.asarray(call(jax.numpy.asarray([-1.0]), alpha=alpha)))[0] for alpha in (0.0, -0.0)]
    assert signs == [True, False]


def test_kernels_keep_denormals_and_sums_of_xlas_do_not(ops: dict[str, ModuleType]) -> None:
    import jax

    with jax.enable_x64(True):
        for dtype, small in ((np.float32, 1e-39), (np.float64, 1e-310)):
            x = jax.numpy.full(100, dtype(small))
            assert not np.asarray(jax.jit(lambda a: a + a)(x)).any(), "XLA keeps denormals: flushed_parts is needed no more"
            assert np.asarray(jax.jit(ops["leaky_relu"].leaky_relu)(-x)).all()


def test_benchmark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`opc bench` compares programs that compute the same, and tells what one call of a program costs."""
    import jax

    from opc.pipeline import load_family
    from opc.testing.bench import frameworks
    from opc.testing.bench import jax as bench
    from opc.testing.bench.benchmark import Settings
    from opc.testing.bench.problem import row_problem

    # In a process that tests share, programs run as they do.
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    monkeypatch.setattr(bench, "CALLS", 3)
    specs = {op: str(folder / "specs" / f"{op}.yaml") for op in ("leaky_relu", "softmax")}
    for op, make in (("leaky_relu", bench.contenders), ("softmax", bench.contenders), ("leaky_relu", bench.call_contenders)):
        ours, theirs = make(row_problem(load_family(Path(specs[op])), folder / op, 4, 1))
        np.testing.assert_allclose(ours.run(), theirs.run(), rtol=1e-6)
    found: list[dict[str, Any]] = []
    settings = Settings(specs, (), str(folder), (), 1 << 12, 3, 1)
    entries = [f for f in frameworks.FRAMEWORKS if f.backend == "jax"]
    for entry in entries:
        frameworks.run(entry, settings, found.append)
    rows = [(r["section"], r["op"], r["contender"], r["ratio"]) for f in found for r in [f.get("row")] if r]
    assert [r[:3] for r in rows] == [
        *(("frameworks", op, c) for op in ("leaky_relu", "softmax") for c in ("opc jax", "jax")),
        *(("frameworks-tiny", "leaky_relu", f"{c} in a program") for c in ("opc jax", "jax")),
    ]
    assert [r[3] is None for r in rows] == [True, False] * 3
    targets = [f["target"] for f in found if "target" in f]
    assert [(t["limit"], t["unit"]) for t in targets] == [(1.05, ""), (1.05, ""), (200.0, "ns")]
    assert all(f["row"]["seconds"] > 0 for f in found if "row" in f)
