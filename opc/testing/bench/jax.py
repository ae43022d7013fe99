"""The contenders of a benchmark in JAX: an op of ours, and jax.nn's own, in compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opc.backends import package as packages
from opc.testing.bench.problem import Problem
from opc.testing.bench.timing import Contender

CALLS = 100
"""The calls in a program that tells what one costs."""


def contenders(problem: Problem) -> list[Contender]:
    """Return ours and JAX's own, each a compiled program that makes its output. Both run on XLA's threads."""
    import jax

    arrays = [jax.device_put(a) for a in problem.inputs.values()]
    return [Contender(name, _waiting(jax.jit(function), arrays)) for name, function in _functions(problem)]


def call_contenders(problem: Problem) -> list[Contender]:
    """Return programs of `CALLS` calls of ours and of JAX's own, on a vector.

    A product with a matrix stands between two calls: XLA makes one loop of its own ops that follow each other, in which none is a
    call. Programs run on the calling thread, as JAX does by itself with those that it finds short.
    """
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    (vector,) = problem.inputs.values()
    arrays = [jax.numpy.eye(len(vector), dtype=vector.dtype), jax.device_put(vector)]

    def chain(function: Callable[..., Any]) -> Callable[..., Any]:
        def program(matrix: Any, x: Any) -> Any:
            for _ in range(CALLS):
                x = function(matrix @ x)
            return x

        made: Callable[..., Any] = jax.jit(program)
        return made

    return [Contender(f"{name} in a program", _waiting(chain(function), arrays)) for name, function in _functions(problem)]


def _functions(problem: Problem) -> list[tuple[str, Callable[..., Any]]]:
    """Return our function and JAX's own, of arrays alone, for the ops that JAX has by name."""
    import jax

    ours = getattr(packages.load(problem.package, "jax"), problem.family.name)
    theirs, values = getattr(jax.nn, problem.family.name), tuple(problem.attributes.values())
    return [("opc jax", lambda *arrays: ours(*arrays, *values)), ("jax", lambda *arrays: theirs(*arrays, *values))]


def _waiting(program: Any, arrays: list[Any]) -> Callable[[], Any]:
    """Return a call of a program, compiled here, that comes back with the result: JAX computes behind the caller's back."""
    compiled = program.lower(*arrays).compile()
    return lambda: compiled(*arrays).block_until_ready()
