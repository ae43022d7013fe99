"""Containment: whatever members of the argument sets a float32 kernel is given, its answer is in the result's set."""

from __future__ import annotations

import numpy as np
import pytest

from opc.ir.dtypes import DType
from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.arithmetic import add, multiply, square
from opc.testing.oracle.bounds import PRECISIONS, Array, Bounds, choose, exact, union
from opc.testing.oracle.enclosures import binary, compare, numpy_function, unary
from opc.testing.oracle.reductions import reduce
from opc.testing.oracle.rounding import flushed, rounded

SINGLE = PRECISIONS[DType.FLOAT32]
INF = np.inf
SPECIAL = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1e-30, 0.5, -0.5, 1.0, -1.0, 3.0, 90.0, -90.0, 1e20, 3e38, -3e38, INF, -INF, np.nan]
)


def member_pairs(count: int = 4000) -> tuple[Bounds, Array, Bounds, Array]:
    """Sets from special and ordinary ends, some with NaN, and a float32 member of each."""
    rng = np.random.default_rng(5)

    def one() -> tuple[Bounds, Array]:
        ends = np.where(rng.random((2, count)) < 0.6, rng.choice(SPECIAL, (2, count)), rng.standard_normal((2, count)) * 3)
        ends = ends.astype(np.float32).astype(np.float64)
        point = rng.random(count) < 0.4
        first, last = ends[0], np.where(point, ends[0], ends[1])
        low, high = np.fmin(first, last), np.fmax(first, last)
        nan = np.isnan(first) | np.isnan(last)
        only = np.isnan(first) & np.isnan(last)
        zeros = (low == 0) & (high == 0) & (np.signbit(first) != np.signbit(last))
        low, high = np.where(zeros, -0.0, low), np.where(zeros, 0.0, high)
        low, high = np.where(only, INF, low), np.where(only, -INF, high)
        ends_of = [np.clip(v, -3.4e38, 3.4e38) / 2 for v in (low, high)]
        between = np.clip(ends_of[0] + ends_of[1], low, high)
        member = np.select([rng.random(count) < 0.3, rng.random(count) < 0.5], [low, high], between)
        member = np.where(nan & (only | (rng.random(count) < 0.5)), np.nan, member)
        # A zero end of one sign holds that sign only.
        member = np.where(member == 0, np.where(low == 0, low, np.where(high == 0, high, 0.0)), member)
        return Bounds(low, high, nan), member.astype(np.float32)

    a, x = one()
    b, y = one()
    return a, x, b, y


def inside(result: Bounds, got: Array) -> Array:
    value = got.astype(np.float64)
    signed = (result.low == 0) & (result.high == 0) & (np.signbit(result.low) == np.signbit(result.high))
    right = (value >= result.low) & (value <= result.high) & (~signed | (np.signbit(value) == np.signbit(result.low)))
    return np.where(np.isnan(value), result.nan, right)


def check(result: Bounds, got: Array, *given: Array) -> None:
    wrong = np.nonzero(~inside(result, got))[0]
    assert not wrong.size, [(tuple(g[i] for g in given), got[i], result.low[i], result.high[i], result.nan[i]) for i in wrong[:5]]


OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "pow": np.power,
    "floordiv": lambda x, y: np.floor(x / y),
    "mod": np.mod,
    "hypot": np.hypot,
    "atan2": np.arctan2,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    a, x, b, y = member_pairs()
    with np.errstate(all="ignore"):
        check(binary(name, a, b, SINGLE), np.asarray(OPERATORS[name](x, y)), x, y)


@pytest.mark.parametrize("name", [f.name for f in FUNCTIONS.values() if f.arity == 1 and f.types in ("float", "number")])
def test_functions(name: str) -> None:
    a, x, _, _ = member_pairs()
    with np.errstate(all="ignore"):
        got = numpy_function(FUNCTIONS[name].numpy)(x.astype(np.float64))
        check(unary(name, a, SINGLE), np.asarray(got).astype(np.float32), x)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(name: str) -> None:
    a, x, b, y = member_pairs()
    fn = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}[name]
    got, result = fn(x, y), compare(name, a, b)
    assert np.all((got >= result.low) & (got <= result.high))
    assert result.low.any()
    assert not result.high.all()


def test_square_and_choice() -> None:
    a, x, b, y = member_pairs()
    with np.errstate(all="ignore"):
        check(square(a, SINGLE), x * x, x)
        cond = compare("lt", a, b)
        check(choose(cond, a, b), np.where(x < y, x, y), x, y)
        check(union(a, b), x, x, y)
        assert np.all(square(a, SINGLE).low >= 0)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_reductions_in_any_order(kind: str, n: int) -> None:
    a, x, _, _ = member_pairs(4000)
    sets = a.map(lambda v: v[: 4000 // n * n].reshape(-1, n))
    values = x[: 4000 // n * n].reshape(-1, n)
    fn = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    rng = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        result = reduce(kind, sets, (1,), DType.FLOAT32, SINGLE)
        for _ in range(4):
            order = rng.permutation(n)
            total = values[:, order[0]]
            for k in order[1:]:
                total = fn(total, values[:, k])
            check(result, total, values)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_positions(kind: str) -> None:
    a, x, _, _ = member_pairs(4000)
    sets = a.map(lambda v: v.reshape(-1, 4))
    result = reduce(kind, sets, (1,), DType.FLOAT32, SINGLE)
    got = getattr(np, kind)(x.reshape(-1, 4), axis=1)
    assert np.all((got >= result.low) & (got <= result.high))


def test_points_stay_narrow() -> None:
    """A set of one point grows by the operation's own error only: the enclosures are not merely wide."""
    x = exact(np.linspace(0.1, 2.0, 50).astype(np.float32))
    y = exact(np.linspace(1.0, 3.0, 50).astype(np.float32))
    for result in (add(x, y, SINGLE), multiply(x, y, SINGLE), binary("div", x, y, SINGLE)):
        assert np.all(result.high - result.low <= 2.001 * 2.0**-24 * result.high)
    for name in ("exp", "log1p", "tanh", "sin", "erf"):
        result = unary(name, x, SINGLE)
        limit = 2 * FUNCTIONS[name].ulp * 2 * 2.0**-24 * 1.001
        assert np.all(result.high - result.low <= limit * np.abs(result.high))


def test_rounding_to_half_types_is_monotone() -> None:
    values = np.linspace(-70000, 70000, 3001)
    for dtype in (DType.FLOAT16, DType.BFLOAT16):
        with np.errstate(over="ignore"):
            ends = rounded(Bounds(values, values + 3, np.zeros(values.shape, bool)), dtype)
        assert np.all(ends.low[1:] >= ends.low[:-1])
        assert np.all(ends.low <= ends.high)


def test_sums_that_flush_lose_no_more_than_denormals() -> None:
    tiny = float(np.finfo(np.float32).tiny)
    found = flushed(exact(np.array([0.0, 1e-39, -3.0])), DType.FLOAT32, 2)
    assert (found.low[0], found.high[0]) == (-3 * tiny, 3 * tiny)
    assert found.low[1] < 0 < found.high[1] < 4 * tiny
    assert found.low[2] == found.high[2] == -3.0
    assert flushed(exact(np.array([0.0])), DType.FLOAT64, 1).high[0] == 2 * np.finfo(np.float64).tiny


@np.errstate(all="ignore")
def test_sets_without_infinities_take_no_other_way() -> None:
    """Where all ends are finite and all conditions decided, less is computed; the sets are the same beside what is not."""
    a, _, b, _ = member_pairs()
    finite = np.isfinite(a.low) & np.isfinite(a.high) & np.isfinite(b.low) & np.isfinite(b.high)
    x, y = a.map(lambda v: v[finite]), b.map(lambda v: v[finite])
    decided = Bounds(x.low > 1, x.low > 1, np.zeros(x.low.shape, np.bool_))
    condition = Bounds(a.low > 1, (a.low > 1) | ~finite, np.zeros(a.low.shape, np.bool_))
    rows = Bounds(*(np.stack([v, w, v]) for v, w in zip((a.low, a.high, a.nan), (b.low, b.high, b.nan))))
    pairs = [
        (add(x, y, SINGLE), add(a, b, SINGLE)),
        (multiply(x, y, SINGLE), multiply(a, b, SINGLE)),
        (choose(decided, x, y), choose(condition, a, b)),
        (
            reduce("sum", rows.map(lambda v: v[:, finite]), (0,), DType.FLOAT32, SINGLE),
            reduce("sum", rows, (0,), DType.FLOAT32, SINGLE),
        ),
    ]
    for alone, among in pairs:
        for own, other in zip((alone.low, alone.high, alone.nan), (among.low, among.high, among.nan)):
            np.testing.assert_array_equal(own, other[finite])
            np.testing.assert_array_equal(np.signbit(own), np.signbit(other[finite]))


def test_sets_of_two_shapes() -> None:
    a, _, b, _ = member_pairs(12)
    row, column = a.map(lambda v: v.reshape(1, 12)), b.map(lambda v: v.reshape(12, 1))
    with np.errstate(all="ignore"):
        found = binary("hypot", row, column, SINGLE)
        one = binary("hypot", a.map(lambda v: v[:1]), b.map(lambda v: v[5:6]), SINGLE)
    assert found.low.shape == (12, 12)
    assert (found.low[5, 0], found.high[5, 0]) == (one.low[0], one.high[0])
