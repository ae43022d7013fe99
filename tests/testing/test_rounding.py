"""The quick ways of the oracle say what its general ways say, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Const
from opc.testing.oracle import arithmetic, reductions
from opc.testing.oracle.bounds import PRECISIONS, Array, Bounds, Precision, between, exact
from opc.testing.oracle.rounding import spread_any, spread_usual
from opc.testing.oracle.shared import literal

ORDINARY = [0.0, -0.0, 1.0, -3.0, 0.1, -1e-30, 2.0**40, -(2.0**-40)]
EXTREME = [*ORDINARY, 2.0**-149, -(2.0**-147), 2.0**127, -3e38, 5e-324, -1e308, np.inf, -np.inf]


def _same(a: tuple[Array, ...], b: tuple[Array, ...]) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) and np.array_equal(np.signbit(x), np.signbit(y)) for x, y in zip(a, b))


def _sets(rng: np.random.Generator, pool: list[float], shape: tuple[int, ...]) -> Bounds:
    first, last = (rng.choice(pool, shape) for _ in range(2))
    wide = between(np.where(first < last, first, last), np.where(first < last, last, first))
    return exact(first) if rng.random() < 0.4 else wide


@pytest.mark.parametrize("p", PRECISIONS.values(), ids=str)
@pytest.mark.parametrize("pool", [ORDINARY[2:], ORDINARY, EXTREME], ids=["numbers", "zeros", "extreme"])
def test_usual_ends_are_rounded_as_any_ends_are(p: Precision, pool: list[float]) -> None:
    rng, usual = np.random.default_rng(1), 0
    for _ in range(300):
        low, high = (v.astype(p.wide) for v in (lambda s: (s.low, s.high))(_sets(rng, pool, (3,))))
        for underflow in (True, False):
            for ulps in (0.5, 4.0, 0.3 / p.unit, 0.6 / p.unit):
                found = spread_usual(low, high, p, ulps, underflow=underflow)
                usual += found is not None
                assert found is None or _same(found, spread_any(low, high, p, ulps, underflow=underflow))
    assert usual > 100


@pytest.mark.parametrize("p", PRECISIONS.values(), ids=str)
@pytest.mark.parametrize("name", ["add", "multiply", "divide"])
def test_arithmetic_of_usual_sets_is_that_of_any_sets(p: Precision, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, operation = np.random.default_rng(2), getattr(arithmetic, name)
    pairs = [(_sets(rng, pool, (4,)), _sets(rng, pool, (4,))) for pool in (ORDINARY[2:], ORDINARY, EXTREME) for _ in range(100)]
    with np.errstate(all="ignore"):
        quick = [operation(a, b, p) for a, b in pairs]
        monkeypatch.setattr(arithmetic, "spread_usual", lambda *a, **k: None)
        monkeypatch.setattr(arithmetic, "_finite", lambda *a: False)
        monkeypatch.setattr(arithmetic, "spread", lambda *a, **k: spread_any(*a, **k))
        slow = [operation(a, b, p) for a, b in pairs]
    for (a, b), x, y in zip(pairs, quick, slow):
        assert _same((x.low, x.high, x.nan), (y.low, y.high, y.nan)), (a, b)


@pytest.mark.parametrize("p", PRECISIONS.values(), ids=str)
def test_small_sums_are_those_of_sums_that_may_overflow(p: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    bodies = [_sets(rng, pool, (2, 3)) for pool in (ORDINARY[2:], ORDINARY) for _ in range(100)]
    quick = [reductions.reduce("sum", body, (1,), p.dtype, p) for body in bodies]
    # Where no number counts as small, every sum goes the general way.
    monkeypatch.setattr(reductions, "every", lambda where: False)
    slow = [reductions.reduce("sum", body, (1,), p.dtype, p) for body in bodies]
    for x, y in zip(quick, slow, strict=True):
        assert _same((x.low, x.high, x.nan), (y.low, y.high, y.nan))


def test_nobody_writes_into_a_literal() -> None:
    values = literal(Const(0.1, Weak.FLOAT), float, 2, None, DType.FLOAT32).bounds
    assert values.low.shape == (1, 1)
    assert values.low < values.high
    for part in (values.low, values.high, values.nan):
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 1
