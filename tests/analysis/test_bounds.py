"""The prover proves nothing false, and proves what real ops need."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.analysis.bounds.knowledge import Knowledge
from opc.analysis.bounds.prover import Prover, facts_of
from opc.ir.affine import Affine, AttrInt, Dim, Index, Symbol, maximum, minimum
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Expr, IndexValue
from tests.amounts import examples

I0, J0 = Affine.of(Index("i")), Affine.of(Index("j"))
N, M = Affine.of(Dim("N")), Affine.of(Dim("M"))
S = Affine.of(AttrInt("s"))
FACTS = (S - 1,)
SIZES = range(0, 6)
STEPS = range(1, 4)


def points(ranges: dict[str, Affine]) -> Iterator[dict[Symbol, int]]:
    """Yield every point of the ranges for small sizes and steps."""
    for n, m, s in itertools.product(SIZES, SIZES, STEPS):
        base: dict[Symbol, int] = {Dim("N"): n, Dim("M"): m, AttrInt("s"): s}
        extents = {name: e.evaluate(base.__getitem__) for name, e in ranges.items()}
        for values in itertools.product(*(range(e) for e in extents.values())):
            yield {**base, **{Index(k): v for k, v in zip(extents, values)}}


atoms = st.sampled_from([I0, J0, N, M, S, Affine.of(1), Affine.of(2), Affine.of(-1)])


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Affine:
    """Return a quasi-affine expression whose divisors are positive."""
    if depth == 0 or draw(st.booleans()):
        return draw(atoms)
    a, b = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    match draw(st.integers(0, 4)):
        case 0:
            return a + b
        case 1:
            return a - b
        case 2:
            return a * draw(st.sampled_from([S, Affine.of(2), Affine.of(-1), N]))
        case 3:
            return a // draw(st.sampled_from([S, Affine.of(2), Affine.of(3)]))
        case _:
            return a % draw(st.sampled_from([S, Affine.of(2), Affine.of(3)]))


extents = st.sampled_from([N, M, N * S, N + 1, N - 1, (N - M) // S + 1, (N + 1) // 2, Affine.of(3)])


@settings(max_examples=examples(200, 1500), deadline=None)
@given(expressions(), extents, extents)
def test_what_is_proved_holds_everywhere(f: Affine, first: Affine, second: Affine) -> None:
    ranges = {"i": first, "j": second}
    if Prover(FACTS, ranges).nonnegative(f):
        for point in points(ranges):
            assert f.evaluate(point.__getitem__) >= 0, (f, point)


lesser = st.sampled_from([minimum(N, M), maximum(N, M), minimum(N * S, M + 1), maximum(N - M, Affine.of(0)), minimum(N // S, S)])


@settings(max_examples=examples(100, 500), deadline=None)
@given(expressions(), lesser, st.sampled_from([1, -1]), lesser, extents)
def test_what_is_proved_of_minima_holds_everywhere(f: Affine, size: Affine, sign: int, first: Affine, second: Affine) -> None:
    ranges = {"i": first, "j": second}
    f = f + size * sign
    if Knowledge(facts=FACTS).nonnegative(f, ranges):
        for point in points(ranges):
            assert f.evaluate(point.__getitem__) >= 0, (f, point)


@pytest.mark.parametrize(
    ("f", "i"),
    [
        (N - minimum(N, M), N),
        (maximum(N, M) - M, N),
        (N - 1 - I0, minimum(N, M)),
        (M - 1 - I0, minimum(N, M)),
        (N - minimum(N, M) + I0, minimum(N, M)),
        (maximum(N, M) - 1 - I0, M),
        (N - 1 - (M + I0), maximum(N - M, Affine.of(0))),
        (minimum(N, minimum(M, S)), N),
    ],
    ids=str,
)
def test_proves_what_sizes_with_minima_need(f: Affine, i: Affine) -> None:
    assert Knowledge(facts=FACTS).nonnegative(f, {"i": i})
    assert not Knowledge(facts=FACTS).nonnegative(f - 3, {"i": i})


@settings(max_examples=examples(100, 500), deadline=None)
@given(expressions(), extents, extents)
def test_the_least_value_is_no_greater_than_any(f: Affine, first: Affine, second: Affine) -> None:
    ranges = {"i": first, "j": second}
    least = Prover(FACTS, ranges).least(f)
    if least is not None:
        for point in points(ranges):
            assert least.evaluate(point.__getitem__) <= f.evaluate(point.__getitem__), (f, least, point)


@pytest.mark.parametrize(
    ("f", "i", "j"),
    [
        (I0, N, M),
        (N - 1 - I0, N, M),
        (N - 1 - (I0 * S + J0), (N - M) // S + 1, M),
        (N - 1 - I0 // S, N * S, M),
        (N - 1 - I0 % N, N * S, M),
        (N - 1 - (I0 * 2 + 1), N // 2, M),
        (N * S - 1 - (I0 * S + J0), N, S),
        (N - 1 - (N - 1 - I0), N, M),
        (N + M - 1 - (I0 + J0), N, M),
        ((N + 1) // 2 - 1 - I0 // 2, N, M),
    ],
    ids=str,
)
def test_proves_what_ops_read(f: Affine, i: Affine, j: Affine) -> None:
    assert Prover(FACTS, {"i": i, "j": j}).nonnegative(f)


@pytest.mark.parametrize("f", [N - 1, N - M, I0 - 1, N - 2 - I0, M - 1 - I0, -S, I0 - J0], ids=str)
def test_does_not_prove_what_is_false(f: Affine) -> None:
    assert not Prover(FACTS, {"i": N, "j": M}).nonnegative(f - 1)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> Expr:
    """Return a condition on the attribute s."""
    kind = draw(st.sampled_from(["and", "or", "not", "compare"])) if depth else "compare"
    if kind == "compare":
        fn = draw(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]))
        return Call(fn, (IndexValue(S), IndexValue(Affine.of(draw(st.integers(-3, 3))))), DType.BOOL)
    args = tuple(draw(conditions(depth=depth - 1)) for _ in range(1 if kind == "not" else 2))
    return Call(kind, args, DType.BOOL)


def holds(condition: Expr, s: int) -> bool:
    assert isinstance(condition, Call)
    if condition.fn in ("and", "or", "not"):
        sides = [holds(a, s) for a in condition.args]
        return not sides[0] if condition.fn == "not" else all(sides) if condition.fn == "and" else any(sides)
    left, right = (a.value.evaluate(lambda _: s) for a in condition.args if isinstance(a, IndexValue))
    return bool(getattr(operator, f"__{condition.fn}__")(left, right))


@settings(max_examples=examples(200, 2000), deadline=None)
@given(conditions())
def test_what_a_condition_tells_is_so_wherever_it_holds(condition: Expr) -> None:
    for s, value in itertools.product(range(-6, 7), (True, False)):
        if holds(condition, s) == value:
            assert all(f.evaluate(lambda _, s=s: s) >= 0 for f in facts_of(condition, value)), (s, value)


def test_one_of_several_values_is_as_great_as_the_least() -> None:
    sixteen, *others = (Call("eq", (IndexValue(S), IndexValue(Affine.of(n))), DType.BOOL) for n in (16, 4, 8))
    condition: Expr = sixteen
    for c in others:
        condition = Call("or", (condition, c), DType.BOOL)
    assert set(facts_of(condition)) >= {S - 4, Affine.of(16) - S}
