"""Affine forms in every dialect, against their values: signs, divisions, products and the least int64."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opc.emit.arrays.frames import PythonText
from opc.emit.cpp import scalars as cpp_scalars
from opc.emit.cpp.expressions import ExprText
from opc.emit.numpy import helpers
from opc.emit.numpy.reference import _NumpyEmitter
from opc.emit.onnx.sizes import _OnnxForm
from opc.emit.python.scalars import PythonScalarText
from opc.emit.scalar.affine import terms_of
from opc.ir.affine import Affine, Dim, FloorDiv, Mod, minimum
from opc.ir.dtypes import INT64_MIN
from opc.pipeline import compile_text

VALUES = {"N": 7, "M": 3, "K": 5}
SPEC = """
op: sized
domain: opc.test
version: 1
doc: Three dimensions.
types: {T: floating}
inputs: {x: 'T[N, M, K]'}
outputs: {y: 'T[N, M, K]'}
kernel: |
  y[n, m, k] = x[n, m, k]
"""
N, M, K = (Affine.of(Dim(name)) for name in VALUES)
WRITTEN = [
    -(N // M), -(N // M) + K, K - N // M, -(N % M) * 2, -(N // M) * K, (N - M) // (M + 1), (N * M) // (K * 2), -N, N - N - 4,
    (N // M) // K, (-(N // M)) // K, N * INT64_MIN, N + M * INT64_MIN, minimum(N, M * 2) - minimum(K, M), N % M - N // M * K,
]  # fmt: skip
"""Forms whose signs or divisions were once wrong, or might be."""


def drawn(rng: random.Random, depth: int) -> Affine:
    """Return a form of sums, products, quotients, remainders and minima."""
    if depth == 0:
        return rng.choice((N, M, K, Affine.of(rng.randint(-4, 4))))
    a, b = drawn(rng, depth - 1), drawn(rng, rng.randint(0, depth - 1))
    match rng.randrange(7):
        case 0 | 1:
            return a - b
        case 2:
            return a + b * rng.randint(-3, 3)
        case 3:
            return a * rng.choice((N, M, K)) if len(a.terms) < 4 else -a
        case 4:
            return a // (M + 1)
        case 5:
            return a % rng.choice((M, K + 2))
        case _:
            return minimum(a, b)


OP = compile_text(SPEC, "sized").forward


def forms() -> list[Affine]:
    rng = random.Random(4)
    return [*WRITTEN, *(drawn(rng, rng.randint(1, 4)) for _ in range(400))]


def in_python(value: Affine) -> Any:
    text = PythonScalarText(dim=str, points=str, present=str).size(value)
    return eval(text, {**VALUES, "_lesser": min})


def in_numpy(value: Affine) -> Any:
    emitter = _NumpyEmitter(OP)
    text, scope = emitter.affine(value).text, {"x": np.zeros(tuple(VALUES.values())), "np": np, **vars(helpers)}
    exec("\n".join([*emitter.prologue.values(), *emitter.lines]), scope)
    return eval(text, scope)


class OfSizes(ExprText):
    """Expressions of sizes alone, by their names."""

    def attribute(self, name: str, element: int, target: str) -> str:
        raise AssertionError

    def symbol(self, symbol: Any) -> str:
        return symbol.name

    def present(self, operand: str) -> str:
        raise AssertionError


def in_kernels(value: Affine) -> Any:
    expressions = OfSizes(None)
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "minimum": min, "INT64_MIN": INT64_MIN}
    return eval(expressions.affine(value).replace("opc::", "").replace("<int64_t>", ""), names | VALUES)


def in_checked_cpp(value: Affine) -> Any:
    text = cpp_scalars.CppScalarText(OP, dim=str, group=str, axis=str).integer(value)
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "minimum": min, "INT64_MIN": INT64_MIN, "integer": int}
    return eval(text.replace("opc::", ""), names | VALUES)


def in_onnx(value: Affine) -> Any:
    def atom(a: Any, index: Any) -> str:
        match a:
            case FloorDiv() | Mod():
                return f"body.{type(a).__name__}({form.affine(a.numerator)}, {form.affine(a.denominator)})"
            case Dim():
                return a.name
            case _:
                return f"body.Min({form.affine(a.left)}, {form.affine(a.right)})"

    sizes: Any = SimpleNamespace(atom=atom, named=lambda text: text)
    form = _OnnxForm(sizes, dict[str, PythonText]())
    body = SimpleNamespace(
        Add=lambda a, b: a + b, Sub=lambda a, b: a - b, Mul=lambda a, b: a * b, Neg=lambda a: -a, Min=min, number=int,
        FloorDiv=lambda a, b: a // b, Mod=lambda a, b: a % b,
    )  # fmt: skip
    return eval(form.affine(value), {"body": body, **VALUES})


@pytest.mark.parametrize("dialect", [in_python, in_numpy, in_kernels, in_checked_cpp, in_onnx], ids=lambda d: d.__name__)
def test_forms_keep_their_values(dialect: Any) -> None:
    for value in forms():
        assert dialect(value) == value.evaluate(lambda s: VALUES[s.name]), str(value)


def test_the_least_whole_number_keeps_its_sign() -> None:
    first, second = terms_of(N * INT64_MIN - M)
    assert {(t.negative, t.literal) for t in (first, second)} == {(False, INT64_MIN), (True, None)}
