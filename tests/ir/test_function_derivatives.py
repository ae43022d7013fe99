"""The derivative column of the function table: against differences, in bodies, and how often it may be derived again."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from opc.analysis.elaborate.typing import derivative_template
from opc.diagnostics import SpecError
from opc.ir.dtypes import DType
from opc.ir.expr import Expr, Read
from opc.ir.function import CHEAP, Function
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate as evaluate_op
from opc.transform import scalar
from opc.transform.indices import Namer
from opc.transform.partials import Differentiator
from tests.ir.scalars import NUMERIC, ROWS, TRUTH, evaluate, ids, inside

POINTWISE = """
op: pointwise
domain: opc.test
version: 1
doc: A function of each element.
types: {{T: floating}}
inputs: {{x: 'T[N]', z: 'T[N]'}}
outputs: {{y: 'T[N]'}}
kernel: |
  y[n] = {call} + 0 * z[n]
"""


@pytest.mark.parametrize("f", [f for f in NUMERIC if f.name in CALLABLE], ids=ids)
def test_second_gradients_end(f: Function) -> None:
    """What a body can call has derivatives as often as a family asks, by hidden functions at last."""
    call = f"{f.name}(x[n])" if f.arity == 1 else f"{f.name}(x[n], z[n])"
    assert len(compile_text(POINTWISE.format(call=call), "pointwise").ops) == 5


def derivative(f: Function, argument: int) -> Expr:
    assert f.derivative is not None
    types = [Read(n, (), DType.FLOAT64) for n in "xyr"]
    return derivative_template(f.derivative[argument])(types[0], types[1] if f.arity == 2 else None, types[2])


def at(e: Expr, f: Function, point: tuple[Any, ...]) -> Any:
    return evaluate(e, {"x": point[0], "y": point[-1], "r": TRUTH[f.name](*point)}, TRUTH)


def smooth(f: Function, point: tuple[Any, ...], h: Any) -> bool:
    """Whether a function has no kink or jump within h of a point; those that can are flat, linear or identities elsewhere."""
    x, y = point[0], point[-1]
    match f.name:
        case "floor" | "ceil" | "trunc" | "round":
            return bool(abs(2 * x - mpmath.nint(2 * x)) > 4 * h)
        case "abs" | "sign":
            return bool(abs(x) > 2 * h)
        case "maximum" | "minimum":
            return bool(abs(x - y) > 4 * h)
        case "floordiv" | "mod":
            return bool(abs(x / y - mpmath.nint(x / y)) > 8 * h * (1 + abs(x / y)))
        case _:
            return True


@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize("f", [f for f in NUMERIC if f.derivative], ids=ids)
def test_derivative_column_against_differences(f: Function, argument: int) -> None:
    """Central differences with 120 bits: truncation h^2 and rounding 2^-120 / h are both below 1e-12 of what is compared."""
    if argument >= f.arity:
        assert f.derivative is not None
        assert len(f.derivative) == f.arity
        return
    if f.name == "stop_gradient":
        assert f.derivative == ("0",)
        return
    e, h = derivative(f, argument), mpmath.mpf(2) ** -40
    tested = 0
    for raw in zip(*inside(f, 60, np.float64)):
        point = tuple(mpmath.mpf(float(v)) for v in raw)
        if not smooth(f, point, h):
            continue
        moved = [tuple(v + s * h if i == argument else v for i, v in enumerate(point)) for s in (1, -1)]
        difference = (TRUTH[f.name](*moved[0]) - TRUTH[f.name](*moved[1])) / (2 * h)
        found = at(e, f, point)
        assert abs(found - difference) <= mpmath.mpf(10) ** -12 * (1 + abs(difference)), (f.name, raw)
        tested += 1
    assert tested > 40


@pytest.mark.parametrize("f", [f for f in NUMERIC if f.arity == 1 and not f.hidden], ids=ids)
def test_second_derivative(f: Function) -> None:
    """The derivative of the derivative column, through the transforms, against second differences."""
    x = Read("x", (), DType.FLOAT64)
    differentiator = Differentiator(lambda name: True, Namer(()))
    first = differentiator.partials(scalar.raw(f.name, x))
    factor = next(iter(first.values()), None)
    second = differentiator.partials(factor) if factor is not None else {}
    h = mpmath.mpf(2) ** -30
    if f.name == "stop_gradient":
        assert not first
        return
    for raw in inside(f, 30, np.float64)[0]:
        p = mpmath.mpf(float(raw))
        if not smooth(f, (p,), 4 * h):
            continue
        value = TRUTH[f.name]
        difference = (value(p + h) - 2 * value(p) + value(p - h)) / h**2
        found = sum((evaluate(d, {"x": p}, TRUTH) for d in second.values()), mpmath.mpf(0))
        assert abs(found - difference) <= mpmath.mpf(10) ** -10 * (1 + abs(difference)), (f.name, raw)


@pytest.mark.parametrize(
    ("name", "point", "expected"),
    [
        ("abs", (0,), [0]), ("maximum", (2, 2), [1, 0]), ("minimum", (2, 2), [1, 0]), ("sign", (0,), [0]),
        ("pow", (0, 2), [0, 0]), ("pow", (-2, 3), [12, 0]), ("pow", (0, 0), [0, 0]), ("pow", (5, 0), [0, math.log(5)]),
    ],
)  # fmt: skip
def test_derivatives_where_the_function_has_a_kink_or_an_edge(name: str, point: tuple[float, ...], expected: list[float]) -> None:
    f = FUNCTIONS[name]
    values = tuple(mpmath.mpf(v) for v in point)
    assert [float(at(derivative(f, i), f, values)) for i in range(f.arity)] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("f", [f for f in NUMERIC if f.arity == 1 and f.name in CALLABLE and f.cost > CHEAP], ids=ids)
def test_which_are_smooth(f: Function) -> None:
    """Derivatives of the others are infinite at some whole number, but those of tan: its poles are no numbers of the types."""
    points = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
    family = compile_text(POINTWISE.format(call=f"{f.name}(x[n])"), "pointwise")
    assert family.backward is not None
    assert family.backward_backward is not None
    found = []
    for op in (family.backward, family.backward_backward):
        results = evaluate_op(op, {o.name: points if o.name == "x" else np.ones(len(points)) for o in op.inputs}, {})
        found += [np.isfinite(v.value).all() for v in results.values()]
    assert all(found) == f.smooth or f.name == "tan"


@pytest.mark.parametrize("f", [f for f in ROWS if f.hidden], ids=ids)
def test_bodies_do_not_call_what_is_hidden(f: Function) -> None:
    with pytest.raises(SpecError) as refused:
        compile_text(POINTWISE.format(call=f"{f.name}(x[n])"), "pointwise")
    assert refused.value.diagnostics[0].message == f"unknown function '{f.name}'"
