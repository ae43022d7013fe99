"""The oracle's sets hold what contractions compute: fused multiply and add, sums drawn together or taken apart, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.ir.expr import Axis, Expr, Reduce
from opc.ir.op import Assign, Op
from opc.pipeline import compile_text
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.terms import addends
from opc.testing.oracle.tolerance import compare
from tests.testing import ops
from tests.testing.ops import T, call, dim, operand, read

K = dim("K")
NAMES = ("a", "b", "c", "d")
A, B, C, D = (read(name, "k") for name in NAMES)
LARGE = [3e38, -3e38, 2e30, -1e30, 1.0, -2.5, 0.0, 1e-30]


def total(body: Expr) -> Reduce:
    return Reduce("sum", (Axis("k", K),), body, T)


def op_of(value: Expr) -> Op:
    return ops.make("dot", tuple(operand(n, K) for n in NAMES), (operand("y"),), (Assign("y", (), value),))


TOGETHER = op_of(total(call("add", call("mul", A, B), call("mul", C, D))))
APART = op_of(call("add", total(call("mul", A, B)), total(call("mul", C, D))))


def fused(start: np.float32, pairs: list[tuple[np.float32, np.float32]]) -> np.float32:
    """Multiply and add with one rounding; float64 holds the product of two float32 numbers."""
    for x, y in pairs:
        # Rounding twice differs from once only where float64 lies halfway, which these numbers avoid.
        start = np.float32(np.float64(x) * np.float64(y) + np.float64(start))
    return start


def plain(start: np.float32, pairs: list[tuple[np.float32, np.float32]]) -> np.float32:
    for x, y in pairs:
        start = np.float32(start + x * y)
    return start


def draw(seed: int, n: int, share: float) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    values = {}
    for name in NAMES:
        ordinary = rng.standard_normal(n).astype(np.float32)
        values[name] = np.where(rng.random(n) < share, rng.choice(np.array(LARGE, np.float32), n), ordinary)
    return values


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 12), st.sampled_from([0.0, 0.2, 0.8]))
def test_every_way_to_add_products_lies_within(seed: int, n: int, share: float) -> None:
    v = draw(seed, n, share)
    rng = np.random.default_rng(seed)
    left, right = list(zip(v["a"], v["b"])), list(zip(v["c"], v["d"]))
    every = left + right
    shuffled = [every[k] for k in rng.permutation(len(every))]
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        any_order = [step(zero, order) for step in (fused, plain) for order in (every, every[::-1], shuffled)]
        # Two sums added, and one that goes on where the other ended.
        one_by_one = [step(zero, left) + step(zero, right) for step in (fused, plain)]
        one_by_one += [step(step(zero, right), left) for step in (fused, plain)]
    for op, ways in ((TOGETHER, any_order + one_by_one), (APART, one_by_one)):
        want = evaluate(op, v)["y"]
        for got in ways:
            found = compare("y", np.asarray(got, np.float32), want)
            assert found.ok, found.message


def test_what_no_order_gives_is_caught() -> None:
    v = {name: np.array([1.0, 2.0, 4.0], np.float32) for name in NAMES}
    for op in (TOGETHER, APART):
        want = evaluate(op, v)["y"]
        assert compare("y", np.asarray(42, np.float32), want).ok
        assert not compare("y", np.asarray(42.001, np.float32), want).ok
        assert not compare("y", np.asarray(np.inf, np.float32), want).ok


def test_an_overflow_of_one_sign_stays_infinite() -> None:
    v = {name: np.array([3e38, 1.0], np.float32) for name in NAMES}
    want = evaluate(TOGETHER, v)["y"]
    assert compare("y", np.asarray(np.inf, np.float32), want).ok
    assert not compare("y", np.asarray(3e38, np.float32), want).ok
    assert not compare("y", np.asarray(np.nan, np.float32), want).ok


def test_only_products_are_taken_apart() -> None:
    product, difference = call("mul", A, B), call("sub", A, B)
    assert addends(call("sub", product, call("neg", product))) == [(product, False), (product, False)]
    assert addends(difference) == [(difference, False)]
    # The difference to a mean keeps its digits: 1e7 + 1 - 1e7 is 1 to the last place.
    values = {n: np.array([1e7], np.float32) for n in NAMES} | {"a": np.array([1e7 + 1], np.float32)}
    want = evaluate(op_of(total(difference)), values)["y"]
    assert abs(float(want.value) - 1) <= 2.0**-23
    assert float(want.error) <= 2.0**-23


def test_terms_of_two_sums_overflow_together() -> None:
    # -2e38 of each sum, taken together, overflow; beside an infinite term the total is then NaN, in another order infinite.
    one = np.ones(2, np.float32)
    a, c = np.array([np.inf, -2e38], np.float32), np.array([-2e38, 0], np.float32)
    found = evaluate(APART, {"a": a, "b": one, "c": c, "d": one})["y"].bounds
    assert found.nan
    assert found.high == np.inf
    alone = evaluate(APART, {"a": a, "b": one, "c": np.array([-1, 0], np.float32), "d": one})["y"].bounds
    assert not alone.nan
    assert alone.low == np.inf


def test_terms_that_are_taken_off_count_with_the_other_sign() -> None:
    one = np.ones(2, np.float32)
    a, c = np.array([np.inf, -2e38], np.float32), np.array([-2e38, 0], np.float32)
    apart = op_of(call("sub", total(call("mul", A, B)), total(call("mul", C, D))))
    assert not evaluate(apart, {"a": a, "b": one, "c": c, "d": one})["y"].bounds.nan
    assert evaluate(apart, {"a": a, "b": one, "c": -c, "d": one})["y"].bounds.nan


@pytest.mark.parametrize(("a", "c"), [(-1.0, 1.0), (1.0, -1.0)])
def test_terms_under_a_condition_are_taken_apart_too(a: float, c: float) -> None:
    """Of -2e38 + 1e38 - 2e38 the first and last alone overflow; what the condition leaves out does not count."""
    text = (
        "op: dot\ndomain: test\nversion: 1\ndoc: A sum of two products under a condition.\ntypes: {T: [float32]}\n"
        "inputs: {a: 'T[K]', b: 'T[K]', c: 'T[K]', d: 'T[K]'}\noutputs: {y: 'T[]'}\n"
        "kernel: |\n  y = sum[k](a[k]*b[k] + c[k]*d[k] if k < 2 else 0)\n"
    )
    one = np.ones(3, np.float32)
    values = {"a": np.full(3, 2e38 * a), "b": one, "c": np.array([1e38 * c, 0, 3e38]), "d": one}
    want = evaluate(compile_text(text, "dot").forward, {n: np.asarray(v, np.float32) for n, v in values.items()})["y"]
    for got, holds in ((3e38 * a, True), (np.inf * a, True), (0.0, False), (np.inf * c, False), (np.nan, False)):
        assert compare("y", np.asarray(got, np.float32), want).ok == holds, got
