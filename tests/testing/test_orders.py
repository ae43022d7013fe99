"""The oracle's sets hold what sums and products come to in every order, also where one overflows, and little else."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.ir.dtypes import DType
from opc.ir.expr import Axis, Cast, Expr, IndexValue, Read, Reduce
from opc.ir.op import Assign, Op
from opc.pipeline import compile_text
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.tolerance import compare
from tests.testing import ops
from tests.testing.ops import T, call, dim, num, operand, read

K = dim("K")
A, B, C, D = (read(name) for name in "abcd")
W = read("w", "k")
EXTREMES = [3e38, -3e38, 8.5e37, 1e30, -1e20, 7.0, 1.0, -0.5, 0.0, 1e-20, -1e-30, 1e-38, 1e-45, np.inf]


def total(body: Expr) -> Reduce:
    return Reduce("sum", (Axis("k", K),), body, T)


def op_of(*values: Expr) -> Op:
    """An op that computes temporaries t0, t1 and so on, then y."""
    names = [*(f"t{k}" for k in range(len(values) - 1)), "y"]
    inputs = (*(operand(n) for n in "abcd"), operand("w", K))
    body = tuple(Assign(n, (), v) for n, v in zip(names, values))
    return ops.make("order", inputs, (operand("y"),), body, temporaries=tuple(operand(n) for n in names[:-1]))


def allowed(op: Op, w: list[float] | None = None, dtype: type = np.float32, **values: float) -> Bounds:
    inputs: dict[str, Array] = {n: np.asarray(values.get(n, 1.0), dtype) for n in "abcd"}
    return evaluate(op, {**inputs, "w": np.array([1.0] if w is None else w, dtype)})["y"].bounds


def wanted(op: Op, w: list[float] | None = None, **values: float) -> Bounded:
    inputs: dict[str, Array] = {n: np.asarray(values.get(n, 1.0), np.float32) for n in "abcd"}
    return evaluate(op, {**inputs, "w": np.array([1.0] if w is None else w, np.float32)})["y"]


def holds(op: Op, answer: float, w: list[float] | None = None, **values: float) -> bool:
    return within(wanted(op, w, **values), answer)


def within(want: Bounded, answer: float) -> bool:
    # On the sign of a zero a sum has no say.
    return any(compare("y", np.asarray(a, np.float32), want).ok for a in ((0.0, -0.0) if answer == 0 else (answer,)))


THREE = op_of(call("mul", call("mul", A, B), C))
FOUR = op_of(call("mul", call("mul", A, B), call("mul", C, D)))
INSIDE, OUTSIDE = op_of(total(call("mul", A, W))), op_of(call("mul", A, total(W)))
THREE_WAYS = op_of(total(call("mul", call("mul", A, W), B))), op_of(call("mul", total(call("mul", A, W)), B))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(EXTREMES), min_size=4, max_size=4))
def test_every_order_of_factors_lies_within(values: list[float]) -> None:
    factors = dict(zip("abcd", np.array(values, np.float32)))
    inputs = {**{n: np.asarray(v) for n, v in factors.items()}, "w": np.ones(1, np.float32)}
    want = evaluate(FOUR, inputs)["y"]
    product = evaluate(PRODUCT, {"w": np.array(values, np.float32)})["y"]
    with np.errstate(all="ignore"):
        ways = [way for a, b, c, d in permutations(factors.values()) for way in (((a * b) * c) * d, (a * b) * (c * d))]
    for got in {w.tobytes(): w for w in np.array(ways, np.float32)}.values():
        for bound in (want, product):
            found = compare("y", np.asarray(got), bound)
            assert found.ok, found.message


PRODUCT = ops.make("p", (operand("w", K),), (operand("y"),), (Assign("y", (), Reduce("prod", (Axis("k", K),), W, T)),))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_product_that_overflows_in_the_order_written_is_zero_in_another(sign: float) -> None:
    large, small = [sign * 3e38, *[3e38] * 8], [1e-45] * 9
    for values in (large + small, small + large, [v for pair in zip(large, small) for v in pair]):
        want = evaluate(PRODUCT, {"w": np.array(values, np.float32)})["y"]
        for got in (sign * np.inf, sign * 0.0, np.nan):
            found = compare("y", np.asarray(got, np.float32), want)
            assert found.ok, found.message
        assert not compare("y", np.asarray(-sign, np.float32), want).ok
    endless = evaluate(PRODUCT, {"w": np.array([sign * np.inf, *large[1:], *small], np.float32)})["y"]
    assert not compare("y", np.asarray(sign * 0.0, np.float32), endless).ok


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.sampled_from(EXTREMES[:-1]), st.sampled_from(EXTREMES[:-1]), st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4)
)
def test_a_factor_inside_and_outside_a_sum_lies_within(a: float, b: float, w: list[float]) -> None:
    x, y, terms = np.float32(a), np.float32(b), np.array(w, np.float32)
    with np.errstate(all="ignore"):
        two_ways = (np.sum(x * terms), x * np.sum(terms), np.sum((x * terms)[::-1]))
        for op in (INSIDE, OUTSIDE):
            want = wanted(op, w, a=a)
            for got in two_ways:
                assert within(want, float(got)), (op, a, w, got)
        ways = (
            np.sum(x * terms * y),
            np.sum(terms * y) * x,
            np.sum(x * terms) * y,
            np.sum(terms) * (x * y),
            np.sum(terms) * x * y,
        )
        for op in THREE_WAYS:
            want = wanted(op, w, a=a, b=b)
            for got in ways:
                assert within(want, float(got)), (op, a, b, w, got)


def test_statements_are_no_boundary() -> None:
    # -2.25 * -3.4e38 overflows, -3.4e38 * -0.19 does not.
    weights = call("mul", num(-0.75), IndexValue(ops.Affine.of(ops.Index("k"))))
    op = op_of(call("mul", A, total(weights)), call("mul", read("t0"), B))
    largest = -3.4028235e38
    exact = -2.25 * largest * -0.1856603
    w = [0.0] * 3
    assert holds(op, exact, w, a=largest, b=-0.1856603)
    assert holds(op, -np.inf, w, a=largest, b=-0.1856603)
    for wrong in (-exact, 0.0, 0.99 * exact, np.inf, np.nan):
        assert not holds(op, wrong, w, a=largest, b=-0.1856603), wrong


def test_a_product_that_goes_into_a_sum_need_not_overflow() -> None:
    op = op_of(call("sub", call("mul", A, B), total(W)))
    w = [-8.5e37] * 6
    # -6.8e39 is -inf rounded, and meets inf: NaN; unrounded it leaves inf.
    for right in (np.inf, -np.inf, np.nan):
        assert holds(op, right, w, a=-8.5e37, b=80.0)
    for right, wrong in ((5e37 + 8.5e37, 5e37), (-5e37 + 8.5e37, -np.inf)):
        assert holds(op, right, [-8.5e37], a=right - 8.5e37, b=1.0)
        assert not holds(op, wrong, [-8.5e37], a=right - 8.5e37, b=1.0)


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 3e38), (np.float64, 1e308)])
def test_what_overflows_in_every_order_is_infinite(dtype: type, large: float) -> None:
    pair, double, square = op_of(call("mul", A, B)), op_of(call("add", A, B)), op_of(call("mul", A, A))
    for op, a, b in (
        (pair, large, -10),
        (double, -large, -large),
        # Of more factors float64 does not hold how far they go.
        (THREE if dtype is np.float32 else pair, large, -10),
        (op_of(call("neg", square.body[0].value)), large, 1),
    ):
        found = allowed(op, dtype=dtype, a=a, b=b)
        assert found.low == found.high == -np.inf
        assert not found.nan
    twice = allowed(op_of(call("mul", total(W), A)), [large, large], dtype, a=2)
    assert twice.low == twice.high == np.inf
    assert not twice.nan


def test_infinities_that_are_given_are_no_overflow() -> None:
    for op in (THREE, FOUR, INSIDE, OUTSIDE):
        for wrong in (1.0, 3.4e38, -np.inf, np.nan):
            assert not holds(op, wrong, [2.0, 5.0], a=np.inf, b=3.0, c=1e-3)
        assert holds(op, np.inf, [2.0, 5.0], a=np.inf, b=3.0, c=1e-3)
        # Zero times infinity is NaN in every order but of the sum, which leaves it finite.
        assert holds(op, np.nan, [0.0, 0.0], a=np.inf, b=0.0)
        assert not holds(op, 0.0, [0.0, 0.0], a=np.inf, b=0.0)


def test_far_from_overflow_nothing_is_wider() -> None:
    for op in (INSIDE, OUTSIDE):
        assert holds(op, 21.0, [2.0, 5.0], a=3.0)
        for wrong in (-21.0, 21.0 + 2e-5, np.inf, np.nan, 0.0):
            assert not holds(op, wrong, [2.0, 5.0], a=3.0)
    for wrong in (24.0 + 2e-5, -24.0, np.inf, np.nan):
        assert not holds(FOUR, wrong, a=1.0, b=2.0, c=3.0, d=4.0)
    # A large factor is small beside the others.
    assert not holds(FOUR, np.inf, a=1e30, b=1e-10, c=1e5, d=1e2)
    # Terms that are small as they come do not overflow.
    assert not holds(INSIDE, np.inf, [1e-3, 1e-3], a=3e38)
    assert not holds(OUTSIDE, np.inf, [1e-3, 1e-3], a=3e38)
    assert holds(THREE, 0.0, a=0.0, b=5.0, c=3.0)
    assert not holds(THREE, 1e-45, a=0.0, b=5.0, c=3.0)


def test_a_product_that_is_lost_on_the_way() -> None:
    # 1e-30 * 1e-30 is 0, 1e-30 * 1e30 is 1.
    for right in (0.0, 1e-30):
        assert holds(THREE, right, a=1e-30, b=1e-30, c=1e30)
    for wrong in (-1e-30, 1e-10, np.inf, np.nan):
        assert not holds(THREE, wrong, a=1e-30, b=1e-30, c=1e30)
    # 0 * inf is NaN, and 1 in another order.
    for right in (1.0, np.inf, 0.0, np.nan):
        assert holds(FOUR, right, a=1e-30, b=1e-30, c=1e30, d=1e30)
    assert not holds(FOUR, -1.0, a=1e-30, b=1e-30, c=1e30, d=1e30)


def test_what_is_read_at_a_place_that_is_computed_is_rearranged_too() -> None:
    # t[k] = w[k] * 10 overflows, b * w[k] does not.
    op = ops.make(
        "place",
        (*(operand(n) for n in "abcd"), operand("w", K)),
        (operand("y"),),
        (Assign("t", ("k",), call("mul", W, A)), Assign("y", (), call("mul", Read("t", (Cast(B, DType.INT64),), T), C))),
        temporaries=(operand("t", K),),
    )
    for right in (3e37, np.inf):
        assert holds(op, right, [1.0, 3e38], a=10.0, b=1.0, c=0.01)
        assert holds(op, 0.1, [1.0, 3e38], a=10.0, b=0.0, c=0.01)
    assert not holds(op, np.inf, [1.0, 3e38], a=10.0, b=0.0, c=0.01)


def test_terms_of_one_sign_overflow() -> None:
    op = op_of(call("sub", call("add", A, B), C))
    # 2e38 + 2e38 - 2e38 is infinite as written, finite in another order.
    for right in (2e38, np.inf):
        assert holds(op, right, a=2e38, b=2e38, c=2e38)
        assert holds(op, right, a=2e38, b=-2e38, c=-2e38)
        assert holds(op, right, a=2e38, b=1e38, c=1e38) is (right == 2e38)
    for wrong in (1e38, -np.inf, np.nan):
        assert not holds(op, wrong, a=2e38, b=2e38, c=2e38)


@pytest.mark.parametrize(
    ("body", "signs"),
    [
        (call("neg", call("add", call("mul", A, W), call("mul", B, W))), (False, True)),
        (call("sub", call("mul", C, W), call("add", call("mul", A, W), call("mul", B, W))), (False, True)),
        (call("sub", call("mul", A, W), call("mul", B, W)), (False,)),
        (call("add", call("mul", A, W), call("mul", B, W)), (False,)),
    ],
    ids=["minus a sum", "less a sum", "difference", "sum"],
)
def test_signs_of_zeros_that_are_added_up(body: Expr, signs: tuple[bool, ...]) -> None:
    """Minus a sum of zeros is not the sum of their negatives: here 0 + -0 is 0, minus that is -0, and -0 + 0 is 0."""
    values = {"a": 0.0, "b": -0.0 if len(signs) > 1 else 0.0, "c": -0.0, "d": 0.0}
    want = evaluate(op_of(total(body)), {"w": np.ones(2)} | {n: np.asarray(v) for n, v in values.items()})["y"]
    found = [np.signbit(v) for v in (0.0, -0.0) if compare("y", np.asarray(v), want).ok]
    assert tuple(map(bool, found)) == signs


def spec(inputs: str, outputs: str, value: str) -> Op:
    head = "op: probe\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float64]}\n"
    return compile_text(f"{head}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\nkernel: |\n  {value}\n", "probe").forward


def test_what_a_condition_leaves_out_comes_to_nothing() -> None:
    """The largest number is chosen at one element, what overflows at another, and left out at a third."""
    op = spec("x: 'T[N]', q: 'int64[N]'", "y: 'T[N]'", "y[i] = sum[k:1](x[i] if q[i] < 3 else cast(T, q[i]) * x[i])")
    most = np.finfo(np.float64).max
    want = evaluate(op, {"x": np.array([-most, -most, 1.0]), "q": np.array([-5, 5, 5])}, {})["y"]
    assert compare("y", np.array([-most, -np.inf, 5.0]), want).ok
    assert not compare("y", np.array([-np.inf, -np.inf, 5.0]), want).ok
    assert not compare("y", np.array([-most, -most, 5.0]), want).ok


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_number_where_a_condition_is_undecided(sign: int) -> None:
    """Twice the smallest number need not be greater, as far as bounds go: what overflows may come, and what does not."""
    op = spec("x: 'T[]', t: 'T[]'", "y: 'T[]'", "y = 2*t if x + x <= x else t")
    most, least = sign * np.finfo(np.float64).max, np.finfo(np.float64).smallest_subnormal
    want = evaluate(op, {"x": np.asarray(least), "t": np.asarray(most)}, {})["y"]
    assert compare("y", np.asarray(most), want).ok


def test_sums_beyond_the_type_they_are_bounded_in() -> None:
    """What is converted to float32 may be summed as it is, and the sum of two is beyond float64."""
    op = spec("x: 'float64[N]', t: 'T[]'", "y: 'float32[]', z: 'T[]'", "y = sum[k](cast(float32, x[k]))\n  z = t")
    for values, answers in (((1e308, 1e308), (np.inf,)), ((-1e308, -1e308), (-np.inf,)), ((1e308, -1e308), (np.nan, 0.0))):
        want = evaluate(op, {"x": np.array(values), "t": np.zeros(())}, {})["y"]
        assert all(compare("y", np.asarray(a, np.float32), want).ok for a in answers)
        assert compare("y", np.asarray(1.0, np.float32), want).ok == (len(answers) > 1)


def test_what_a_condition_leaves_out_is_no_zero_that_is_added() -> None:
    """Where the terms that count are all -0, so may the sum be; zeros that count make it 0."""
    op = spec("x: 'T[N, N]'", "y: 'T[]'", "y = sum[i:N, j:N](x[i, j] if i == j else 0)")
    want = evaluate(op, {"x": np.full((3, 3), -0.0)}, {})["y"]
    assert all(compare("y", np.asarray(zero), want).ok for zero in (0.0, -0.0))
    want = evaluate(op, {"x": np.diag([0.0, -0.0])}, {})["y"]
    assert not compare("y", np.asarray(-0.0), want).ok
    whole = spec("x: 'T[N, N]'", "y: 'T[]'", "y = sum[i:N, j:N](x[i, j])")
    want = evaluate(whole, {"x": np.diag([-0.0, -0.0])}, {})["y"]
    assert not compare("y", np.asarray(-0.0), want).ok


def test_a_zero_after_what_overflows_may_come_first() -> None:
    """Of float32 factors that overflow in float64 too, in which they are bounded."""
    reduced = ops.make("p", (operand("w", K),), (operand("y"),), (Assign("y", (), Reduce("prod", (Axis("k", K),), W, T)),))
    want = evaluate(reduced, {"w": np.array([3e38] * 40 + [0.0], np.float32)})["y"]
    assert all(compare("y", np.asarray(v, np.float32), want).ok for v in (0.0, np.nan))
    assert not any(compare("y", np.asarray(v, np.float32), want).ok for v in (1.0, np.inf))
