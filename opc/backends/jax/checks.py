"""What JAX promises of an op beyond values and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.pointwise import is_pointwise
from opc.backends.base import Check
from opc.backends.checks import (
    Checks,
    Sample,
    assert_asks_for_sizes,
    assert_identical,
    assert_refused_alike,
    check,
    has_gradient,
    has_second_gradient,
    leaves_sizes,
)
from opc.backends.jax.session import JaxSession
from opc.backends.sessions import as_tuple

if TYPE_CHECKING:
    from opc.backends.base import Array

Function = Callable[..., tuple[Any, ...]]


class JaxChecks(Checks[JaxSession]):
    """The checks of one session's family."""

    def all(self) -> tuple[Check, ...]:
        """Return the checks that the op has, which run with arrays of 64 bits."""
        return tuple(Check(c.name, self._wide(c.run)) for c in super().all())

    def _wide(self, run: Callable[[], object]) -> Callable[[], object]:
        def wide() -> None:
            with self.session.context():
                run()

        return wide

    def on(self, given: Sample) -> tuple[Function, list[Any]]:
        """Return the op as a function of the arrays that are given, and these."""
        values = self.session.values(self.op, given.attributes)
        tensors = {n: self.session.tensor(a) for n, a in given.given.items()}
        absent = {n: None for n in given.arrays if n not in tensors}

        def call(*present: Any) -> tuple[Any, ...]:
            return as_tuple(self.session.function(**dict(zip(tensors, present, strict=True)), **absent, **values))

        return call, list(tensors.values())

    def floating(self, given: Sample) -> tuple[Function, list[Any]]:
        """Return the floating outputs as a function of the inputs that have a gradient, and these."""
        call, arrays = self.on(given)
        places = [i for i, (n, a) in enumerate(given.given.items()) if n in self.moving and a.dtype.kind not in "iub"]

        def function(*leaves: Any) -> tuple[Any, ...]:
            operands = list(arrays)
            for i, leaf in zip(places, leaves, strict=True):
                operands[i] = leaf
            return tuple(o for o in call(*operands) if o.dtype.kind not in "iub")

        return function, [arrays[i] for i in places]

    def arrays(self, results: Sequence[Any]) -> list[Array]:
        """Return results as NumPy's arrays."""
        return [self.session.array(r) for r in results]

    @check("jit")
    def jit(self) -> None:
        """A compiled call gives the bits of an eager one."""
        import jax

        call, arrays = self.on(self.sample(times=2))
        assert_identical(self.arrays(jax.jit(call)(*arrays)), self.arrays(call(*arrays)), "jit")

    @check("sizes that data tells", leaves_sizes)
    def told(self) -> None:
        """Eager calls leave a size to data; traced ones are told to give it."""
        import jax

        given = self.sample()
        call, arrays = self.on(self.without_sizes(given))
        sized = {
            n: a.shape for n, a in self.session.call(self.op.name, given.arrays, self.without_sizes(given).attributes).items()
        }
        assert [o.shape for o in call(*arrays)] == list(sized.values())
        assert_asks_for_sizes(lambda: jax.jit(call)(*arrays))

    @check("vmap")
    def vmap(self) -> None:
        """It gives what a loop gives, for every choice of batched arrays, over the first axis and the last."""
        import jax

        items = [self.sample(seed, 2) for seed in range(3)]
        call, arrays = self.on(items[0])
        columns = list(zip(*(self.on(s)[1] for s in items), strict=True))
        for batched in itertools.product((True, False), repeat=len(arrays)):
            if not any(batched):
                continue
            chosen = [c if b else (a,) * 3 for c, a, b in zip(columns, arrays, batched, strict=True)]
            rows = [self.arrays(call(*row)) for row in zip(*chosen, strict=True)]
            expected = [np.stack(column) for column in zip(*rows, strict=True)]
            for axis in (0, -1):
                stacked = [jax.numpy.stack(c, axis) if b else a for c, a, b in zip(columns, arrays, batched, strict=True)]
                found = jax.jit(jax.vmap(call, tuple(axis if b else None for b in batched)))(*stacked)
                assert_close(self.arrays(found), expected, f"vmap over {batched}, axis {axis}")
        for given in self.with_axes(items[0]):
            one, given_arrays = self.on(given)
            batch = [jax.numpy.stack([a, a]) for a in given_arrays]
            assert_refused_alike(self.op.name, partial(one, *given_arrays), partial(jax.vmap(one), *batch), given.attributes)

    @check("jvp", has_gradient)
    def jvp(self) -> None:
        """Forward mode agrees with reverse mode: <c, J t> = <J^T c, t>."""
        import jax

        function, leaves = self.floating(self.differentiated_sample(times=2))
        random = np.random.default_rng(1)
        tangents = [random.standard_normal(x.shape).astype(x.dtype) for x in leaves]
        results, pushed = jax.jit(lambda x, t: jax.jvp(function, x, t))(tuple(leaves), tuple(tangents))
        seeds = tuple(random.standard_normal(r.shape).astype(r.dtype) for r in results)
        pulled = jax.jit(lambda x, c: jax.vjp(function, *x)[1](c))(tuple(leaves), seeds)
        pairs = [self.arrays(side) for side in (seeds, pushed)], [self.arrays(side) for side in (pulled, tangents)]
        forward, reverse = (sum(float((a * b).sum()) for a, b in zip(*pair, strict=True)) for pair in pairs)
        terms = sum(float(np.abs(a * b).sum()) for pair in pairs for a, b in zip(*pair, strict=True))
        unit = max(float(jax.numpy.finfo(x.dtype).eps) for x in leaves)
        assert abs(forward - reverse) <= 64 * unit * max(terms, 1.0), f"<c, J t> = {forward}, but <J^T c, t> = {reverse}"

    @check("hessian", has_second_gradient)
    def hessian(self) -> None:
        """Forward over reverse and reverse over reverse, through jax.checkpoint, give one symmetric matrix.

        Of an op that is pointwise, forward over forward gives it too.
        """
        import jax

        function, leaves = self.floating(self.differentiated_sample())

        def total(*arguments: Any) -> Any:
            return sum((r * r * r + r).sum() for r in function(*arguments))

        places = tuple(range(len(leaves)))
        mixed = jax.jit(jax.hessian(total, places))(*leaves)
        reverse = jax.jit(jax.jacrev(jax.jacrev(jax.checkpoint(total), places), places))(*leaves)
        sizes = [x.size for x in leaves]

        def matrix(blocks: Any) -> Array:
            rows = [[np.asarray(blocks[i][j]).reshape(m, n) for j, n in enumerate(sizes)] for i, m in enumerate(sizes)]
            return np.block(rows)

        one, other = matrix(mixed), matrix(reverse)
        assert_close([other, one.T], [one, one], "the Hessian")
        if is_pointwise(self.op):
            forward = jax.jit(jax.jacfwd(jax.jacfwd(total, places), places))(*leaves)
            assert_close([matrix(forward)], [one], "forward over forward")

    @check("export")
    def export(self) -> None:
        """jax.export takes the op with symbolic sizes, as far as its rules let it, and the program gives the same bits."""
        import jax
        from jax import export

        given = self.sample(times=2)
        call, arrays = self.on(given)
        named = {size: f"s{size}" for x in arrays for size in x.shape if size > 1}
        texts = [", ".join(named.get(n, str(n)) for n in x.shape) for x in arrays]
        jitted, checks = jax.jit(call), self.session.module.EXPORT_CHECKS
        scope = export.SymbolicScope()
        sizes = [export.symbolic_shape(text, scope=scope) for text in texts]
        shapes = [jax.ShapeDtypeStruct(size, x.dtype) for size, x in zip(sizes, arrays, strict=True)]
        try:
            program = export.export(jitted, disabled_checks=checks)(*shapes)
        except (ValueError, jax.errors.InconclusiveDimensionOperation):
            # Sizes that a rule compares must be numbers.
            program = export.export(jitted, disabled_checks=checks)(*arrays)
        found = export.deserialize(program.serialize()).call(*arrays)
        assert_identical(self.arrays(found), self.arrays(call(*arrays)), "exported")


def assert_close(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    """Assert that two ways to compute agree but for the order of sums."""
    for a, b in zip(found, expected, strict=True):
        wide = a.astype(np.float64), b.astype(np.float64)
        largest = float(np.abs(wide[1][np.isfinite(wide[1])]).max(initial=1.0))
        error = 0.0 if a.dtype.kind in "iub" else 256 * float(np.finfo(np.float64).eps if a.itemsize == 8 else 1e-7) * largest
        np.testing.assert_allclose(*wide, rtol=0, atol=error, err_msg=what)
