"""Simplification: exact bit for bit where it must be, equal as real numbers where derivatives are built."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.ir.affine import Affine, Dim, Index
from opc.ir.dtypes import DType, TypeVar, Weak
from opc.ir.expr import Call, Cast, Const, Expr, IndexValue, Read, Select
from opc.ir.printer import format_expr
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.frame import DomainError
from opc.transform import algebra, scalar
from opc.transform.simplify import simplify_expr
from tests.amounts import examples
from tests.transform.evaluator import Point
from tests.transform.language import spec_text

T = TypeVar("T", (DType.FLOAT32, DType.FLOAT64))
LEAVES = tuple(Read(name, (), T) for name in ("a", "b", "c"))
BINARY = ("add", "sub", "mul", "div")
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")


def constants() -> st.SearchStrategy[Expr]:
    return st.sampled_from([Const(v, Weak.INT) for v in (0, 1, -1, 2)] + [Const(v, Weak.FLOAT) for v in (-0.0, 0.5, 1.0)])


def typed(fn: str, *args: Expr) -> Expr:
    return scalar.raw(fn, *args)


def conditions(values: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    simple = st.builds(typed, st.sampled_from(COMPARE), values, values)
    joined = st.builds(typed, st.sampled_from(["and", "or"]), simple, simple)
    return st.one_of(simple, joined, simple.map(lambda c: typed("not", c)))


def select(cond: Expr, then: Expr, other: Expr) -> Expr:
    return Select(cond, then, other, scalar.joined(then.type, other.type))


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from(LEAVES), constants())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(typed, st.sampled_from(BINARY), inner, inner),
            inner.map(lambda e: typed("neg", e)),
            inner.map(lambda e: typed("pow", e, Const(1, Weak.INT))),
            st.builds(select, conditions(leaves), inner, inner),
        ),
        max_leaves=8,
    )


def bits(x: object) -> bytes:
    value = float(x)
    return b"nan" if math.isnan(value) else struct.pack("d", value)


VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, -3.5, math.inf, -math.inf, math.nan, 5e-324, 1.7e308])


def floats(e: Expr) -> Expr:
    """Make literals floats, as values in a computation are: Python's ints have no signed zero."""
    if isinstance(e, Const) and not isinstance(e.value, bool):
        return Const(float(e.value), Weak.FLOAT)
    if isinstance(e, Call):
        return Call(e.fn, tuple(floats(a) for a in e.args), e.type)
    if isinstance(e, Cast):
        return floats(e.arg)
    if isinstance(e, Select):
        return Select(floats(e.cond), floats(e.then), floats(e.other), e.type)
    return e


@settings(max_examples=examples(150, 500), deadline=None)
@given(expressions(), st.tuples(VALUES, VALUES, VALUES))
def test_simplify_is_exact(e: Expr, values: tuple[float, float, float]) -> None:
    point = Point(dict(zip("abc", values)), {})
    simple = simplify_expr(e)
    assert bits(point.value(floats(simple))) == bits(point.value(floats(e))), format_expr(simple)


def rebuilt(e: Expr) -> Expr:
    """Build an expression again with the simplifying constructors of derivatives."""
    match e:
        case Call():
            return algebra.call(e.fn, *(rebuilt(a) for a in e.args))
        case Select():
            return scalar.select(rebuilt(e.cond), rebuilt(e.then), rebuilt(e.other))
        case _:
            return e


RATIONALS = st.fractions(min_value=-5, max_value=5, max_denominator=7)


def rational(e: Expr) -> Expr:
    if isinstance(e, Const) and isinstance(e.value, float):
        return Const(int(2 * e.value), Weak.INT)
    if isinstance(e, Call):
        return Call(e.fn, tuple(rational(a) for a in e.args), e.type)
    if isinstance(e, Select):
        return Select(rational(e.cond), rational(e.then), rational(e.other), e.type)
    return e


@settings(max_examples=examples(150, 500), deadline=None)
@given(expressions(), st.tuples(RATIONALS, RATIONALS, RATIONALS))
def test_derivative_constructors_are_equal_as_real_numbers(e: Expr, values: tuple[Fraction, Fraction, Fraction]) -> None:
    e = rational(e)
    point = Point(dict(zip("abc", values)), {})
    try:
        expected = Fraction(point.value(e))
    except (ZeroDivisionError, ValueError, OverflowError):
        return
    found = point.value(rebuilt(e))
    assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12), format_expr(rebuilt(e))


a, b, c = LEAVES
positive = typed("gt", a, scalar.ZERO)


def text(e: Expr) -> str:
    return format_expr(e).replace("[()]", "")


def test_zero_is_symbolic() -> None:
    assert algebra.mul(scalar.ZERO, a) == scalar.ZERO
    assert algebra.add(a, scalar.ZERO) == a
    assert algebra.sub(scalar.ZERO, a) == typed("neg", a)


def test_a_product_goes_inside_a_conditional_that_stops_the_gradient() -> None:
    stop = scalar.select(positive, typed("log", a), scalar.ZERO)
    assert text(algebra.mul(typed("exp", b), stop)) == "exp(b) * log(a) if a > 0 else 0"
    keep = scalar.select(positive, scalar.ONE, b)
    assert text(algebra.mul(keep, c)) == "c if a > 0 else b * c"


def test_equal_terms_and_factors_are_collected() -> None:
    assert text(algebra.add(algebra.mul(a, b), algebra.mul(b, a))) == "2 * a * b"
    assert text(algebra.sub(algebra.mul(scalar.number(3), a), a)) == "2 * a"
    assert text(algebra.div(algebra.mul(algebra.mul(a, b), c), b)) == "a * c"
    assert text(algebra.add(algebra.neg(a), b)) == "b - a"


def test_conditions_known_inside_a_side_are_decided() -> None:
    inner = scalar.select(positive, b, c)
    assert text(scalar.select(positive, inner, inner)) == "b if a > 0 else c"
    both = scalar.conjunction(positive, typed("gt", b, scalar.ZERO))
    assert text(scalar.assume(Select(both, b, c, T), positive, True)) == "b if b > 0 else c"


def test_what_reads_nothing_is_asked_first() -> None:
    inside = typed("lt", IndexValue(Affine.of(Index("i"))), IndexValue(Affine.of(Dim("N"))))
    reads = typed("and", typed("gt", b, scalar.ZERO), positive)
    assert text(scalar.conjunction(positive, inside)) == "i < N and a > 0"
    assert (
        text(scalar.conjunction(typed("gt", c, scalar.ZERO), typed("and", inside, reads)))
        == "i < N and c > 0 and b > 0 and a > 0"
    )
    assert text(scalar.conjunction(inside, positive)) == "i < N and a > 0"


def test_comparisons_of_sizes_with_a_constant_difference_are_decided() -> None:
    n = Affine.of(Dim("N"))
    assert scalar.compare("lt", IndexValue(n), IndexValue(n + 1)) == scalar.TRUE
    assert scalar.compare("ge", IndexValue(n), IndexValue(n + 1)) == scalar.FALSE
    assert isinstance(scalar.compare("lt", IndexValue(n), IndexValue(n * 2)), Call)


def test_a_literal_of_another_type_does_not_replace_a_value() -> None:
    # 1 / 1 with weak operands is a fraction, not the integer 1.
    e = typed("div", Const(1, Weak.INT), Const(1, Weak.INT))
    assert simplify_expr(e).type == e.type


def test_what_may_refuse_a_call_is_asked_before_what_reads_nothing() -> None:
    """Under `p[i]` two conditionals become one; the index is asked at the last point too, where the inner condition fails."""
    head = "out_of_range: error\ninputs: {x: 'T[N]', ids: 'int64[N]', w: 'T[M]', p: 'bool[N]'}\noutputs: {y: 'T[N]'}\n"
    value = "((x[i] if i < 2 else 0) if w[ids[i]] > 0 and p[i] else 0) if p[i] else 2"
    op = compile_text(spec_text("f", f"{head}kernel: |\n  y[i] = {value}\n"), "f").forward
    operands = {"x": np.ones(3), "w": np.ones(2), "p": np.array([True, True, True])}
    assert evaluate(op, {**operands, "ids": np.array([0, 1, 1])}, {})["y"].value.tolist() == [1, 1, 0]
    with pytest.raises(DomainError):
        evaluate(op, {**operands, "ids": np.array([0, 1, 99])}, {})
