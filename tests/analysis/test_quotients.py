"""Quotients and remainders in proofs: what is proved of them holds at every point, and what ops with them need is proved."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.analysis.bounds.knowledge import Knowledge
from opc.analysis.bounds.quotients import cleared, parts_of_index, with_remainders
from opc.ir.affine import Affine, AttrInt, Dim, Index, Symbol
from tests.amounts import examples

I0, J0 = Affine.of(Index("i")), Affine.of(Index("j"))
N, M = Affine.of(Dim("N")), Affine.of(Dim("M"))
S, R = Affine.of(AttrInt("s")), Affine.of(AttrInt("r"))
ONE = Affine.of(1)
POSITIVE = S - 1


def divides(d: Affine | int, n: Affine) -> tuple[Affine, ...]:
    """What `n % d == 0` says."""
    whole = d * (n // d) if isinstance(d, Affine) else (n // d) * d
    return (n % d, -(n % d), whole - n)


def equal(a: Affine, b: Affine) -> tuple[Affine, ...]:
    return (a - b, b - a)


FACTS: list[tuple[Affine, ...]] = [
    divides(2, N),
    divides(3, N),
    divides(4, N),
    divides(6, N),
    divides(S, N),
    divides(S * 2, N),
    divides(S, N * M),
    divides(S, M),
    divides(2, S),
    divides(R, S),
    (R - 1, *divides(R, S)),
    equal(M, N // 2),
    equal(M, N // S),
    equal(M * 2, N),
    equal(M * S, N),
    equal(M, N * S),
    (N - M,),
    (M - N,),
    (N - M * 2,),
    (N // 2 - M,),
    (-(N % S) - N % 2,),
    (-(N % R) - N % 3,),
    (-(M % S) - N % S - N % 2,),
    (*equal(N % S, N % 2), *divides(2, N)),
    (*equal(N % S, M % R), *divides(R, M)),
    (*divides(S, N), *divides(2, N // S)),
    (-(N % S),),
]
CONDITIONS = [
    M * 2 - I0 - 1,
    M * S - I0 - 1,
    M - 1 - I0 // 2,
    M - 1 - I0 // S,
    N - 1 - I0 - J0,
    J0 - I0,
    I0 // 2 - J0,
    I0 % 2 - 1,
    -(I0 % S),
    I0 + J0 - N,
]
"""Expressions that are not negative where a read stands."""


def points(ranges: dict[str, Affine], facts: tuple[Affine, ...]) -> Iterator[dict[Symbol, int]]:
    """Yield every point of the ranges for small sizes and steps that meet the facts."""
    for n, m, s, r in itertools.product(range(7), range(5), range(1, 5), (-2, 1, 2)):
        base: dict[Symbol, int] = {Dim("N"): n, Dim("M"): m, AttrInt("s"): s, AttrInt("r"): r}
        if any(f.evaluate(base.__getitem__) < 0 for f in facts if not f.indices()):
            continue
        for i in range(ranges["i"].evaluate(base.__getitem__)):
            outer = {**base, Index("i"): i}
            for j in range(ranges["j"].evaluate(outer.__getitem__)):
                point = {**outer, Index("j"): j}
                if all(f.evaluate(point.__getitem__) >= 0 for f in facts):
                    yield point


numbers = st.integers(1, 4).map(Affine.of)
divisors = st.sampled_from([S, S * 2, Affine.of(2), Affine.of(3), Affine.of(4), S + 1])
numerators = st.sampled_from(
    [I0, I0, I0, I0 + 1, I0 + J0, I0 * 2 + 1, I0 * S + J0, N, N - 1, N * M, N - 1 - I0, I0 // 2, J0, I0 - 3, S]
)


@st.composite
def with_quotients(draw: st.DrawFn) -> Affine:
    """Return a sum of indices, sizes, and multiples of quotients and remainders."""
    total = draw(st.sampled_from([I0, -I0, N - 1 - I0, N - 1, M - 1, I0 + 1, Affine.of(0), M - 1 - J0, N - I0]))
    for _ in range(draw(st.integers(1, 2))):
        n, d = draw(numerators), draw(divisors)
        atom = n // d if draw(st.booleans()) else n % d
        times = draw(st.sampled_from([ONE, Affine.of(2), d, S, R]))
        total = total + atom * times * draw(st.sampled_from([1, -1]))
    return total + draw(st.integers(-1, 1))


extents = st.sampled_from([N, M, N * S, N // 2, N // S, N * M, M + 1, Affine.of(3), S])
inner = st.sampled_from([N, M, S, Affine.of(2), I0 + 1, N - I0, I0 // 2 + 1])
some_facts = st.lists(st.sampled_from(FACTS), max_size=3).map(lambda found: tuple(f for facts in found for f in facts))
some_conditions = st.lists(st.sampled_from(CONDITIONS), max_size=2)


@settings(max_examples=examples(60, 250), deadline=None)
@given(with_quotients(), extents, inner, some_facts, some_conditions)
def test_what_is_proved_holds_everywhere(
    f: Affine, first: Affine, second: Affine, facts: tuple[Affine, ...], conditions: list[Affine]
) -> None:
    ranges, sizes = {"i": first, "j": second}, (POSITIVE, *facts)
    knowledge = Knowledge(facts=sizes)
    prover = knowledge.prover(ranges)
    prover = type(prover)((*prover.facts, *map(knowledge.plain, conditions)), prover.ranges)
    if prover.nonnegative(knowledge.plain(f)):
        for point in points(ranges, (*sizes, *conditions)):
            assert f.evaluate(point.__getitem__) >= 0, (f, point)


@settings(max_examples=examples(60, 250), deadline=None)
@given(with_quotients(), extents, inner, some_facts)
def test_what_is_known_holds_everywhere(f: Affine, first: Affine, second: Affine, facts: tuple[Affine, ...]) -> None:
    """Of a size of several divisors too, of which each is tried."""
    ranges, sizes = {"i": first, "j": second}, (POSITIVE, *facts)
    knowledge = Knowledge(facts=sizes)
    quotients = {(n, d): q for n in (N, M) for d in (S, R, ONE * 2, S * 2) if (q := knowledge.exact_quotient(n, d)) is not None}
    if not quotients and not knowledge.nonnegative(f, ranges):
        return
    holds = knowledge.nonnegative(f, ranges)
    for point in points(ranges, sizes):
        assert not holds or f.evaluate(point.__getitem__) >= 0, (f, point)
        for (n, d), q in quotients.items():
            assert (q * d).evaluate(point.__getitem__) == n.evaluate(point.__getitem__), (n, d, point)


@pytest.mark.parametrize(
    "facts",
    [
        (*divides(S, N), *divides(R, N)),
        (*divides(R, N), *divides(S, N)),
        (-(N % S) - N % R,),
        (*equal(N % S, N % R), *divides(R, N)),
        (*divides(S, N), *divides(R, N // S)),
        (-(N % S), -(N % R)),
    ],
)
def test_each_divisor_of_a_size_counts(facts: tuple[Affine, ...]) -> None:
    knowledge = Knowledge(facts=with_remainders((POSITIVE, R - 1, *facts)))
    for d in (S, R):
        assert knowledge.exact_quotient(N, d) == N // d
        found = knowledge.quotient(N * M, d)
        assert found is not None
        assert knowledge.same(found, M * (N // d))
        assert found.atoms() <= {*N.atoms(), *M.atoms(), *S.atoms(), *R.atoms()}
        assert knowledge.same(N // d * d, N)
        assert knowledge.nonnegative(N // d - 1 - I0 // d, {"i": N})
        assert knowledge.nonnegative(N - 1 - (I0 // d * d + (d - 1 - I0 % d)), {"i": N})
    assert knowledge.exact_quotient(N, Affine.of(3)) is None


@settings(max_examples=examples(40, 120), deadline=None)
@given(with_quotients())
def test_a_form_without_quotient_is_negative_at_the_same_points(f: Affine) -> None:
    for g in cleared(f, lambda d: True):
        for point in points({"i": Affine.of(5), "j": Affine.of(4)}, ()):
            assert (f.evaluate(point.__getitem__) >= 0) == (g.evaluate(point.__getitem__) >= 0), (f, g, point)


@settings(max_examples=examples(40, 120), deadline=None)
@given(with_quotients())
def test_an_index_taken_apart_gives_the_same_values(f: Affine) -> None:
    parts = parts_of_index([f], {"i": N, "j": M}, lambda d: True)
    if parts is None:
        return
    apart = parts.apart(f)
    for point in points({"i": Affine.of(7), "j": Affine.of(4)}, ()):
        d, value = parts.divisor.evaluate(point.__getitem__), point[Index(parts.index)]
        inside = {**point, Index(parts.quotient): value // d, Index(parts.remainder): value % d}
        assert apart.evaluate(inside.__getitem__) == f.evaluate(point.__getitem__)
        # What a fact says of the quotient alone holds wherever the fact does.
        if apart.evaluate(inside.__getitem__) >= 0:
            ends = parts.ends_of_remainder(())
            assert parts.of_quotient(apart, *ends).evaluate(inside.__getitem__) >= 0


@pytest.mark.parametrize(
    ("f", "i", "facts"),
    [
        (N // 2 - 1 - I0 // 2, N, (*divides(2, N), *divides(S, N))),
        (N // S - 1 - I0 // S, N, (*divides(2, N), *divides(S, N))),
        (N // S - 1 - I0 // S, N, (*divides(S, N), *divides(4, N))),
        (N // 3 - 1 - I0 // 3, N, (*divides(2, N), *divides(6, N))),
        (N // 6 - 1 - I0 // 6, N, (*divides(2, N), *divides(3, N))),
        (N // S - 1 - I0 // S, N, (*divides(2, N), *divides(S * 2, N))),
        (M - 1 - I0 // S, N, (*divides(2, N), *equal(M * S, N))),
        (M - 1 - I0 // 2, N, equal(M * 2, N)),
        ((N * M) // S - 1 - I0 // S, N * M, divides(S, N * M)),
        (N - 1 - (I0 + 1 - (I0 % 2) * 2), N, divides(2, N)),
        (I0 + 1 - (I0 % 2) * 2, N, divides(2, N)),
        (N - 1 - (I0 + 2 - ((I0 // 2) % 2) * 4), N, divides(4, N)),
        (N - 1 - (I0 + S - ((I0 // S) % 2) * S * 2), N, divides(S * 2, N)),
        (N - 1 - (I0 // 4 * 4 + (I0 + 1) % 4), N, divides(4, N)),
        (N - 1 - (I0 // S * S + (S - 1 - I0 % S)), N, divides(S, N)),
        (S // R - 1 - I0 // R, S, (R - 1, *divides(R, S))),
        (S * (M // S) - 1 - I0, M, divides(S, M)),
        (N - 1 - I0, M, (N - M,)),
        (N // 2 - 1 - I0, M, (N - M * 2,)),
    ],
    ids=lambda v: str(v) if isinstance(v, Affine) else "",
)
def test_proves_what_sizes_that_are_divided_need(f: Affine, i: Affine, facts: tuple[Affine, ...]) -> None:
    assert Knowledge(facts=(POSITIVE, *facts)).nonnegative(f, {"i": i})
    assert not Knowledge(facts=(POSITIVE, *facts)).nonnegative(f - 4, {"i": i})


@pytest.mark.parametrize(
    ("f", "condition"),
    [
        (M - 1 - I0 // 2, M * 2 - I0 - 1),
        (M - 1 - I0 // S, M * S - I0 - 1),
        (M * 2 - 1 - I0, M - 1 - I0 // 2),
        (M * S - 1 - I0, M - 1 - I0 // S),
        (M - 1 - (I0 + 1) // 2, M * 2 - I0 - 2),
        (I0 // 2 - J0, I0 - J0 * 2),
        (M * 2 - 2 - (I0 // 2) * 2, M * 2 - I0 - 1),
        (M - 1 - (I0 // 2) // S, M * S * 2 - I0 - 1),
    ],
    ids=str,
)
def test_a_condition_bounds_the_quotients_of_its_index(f: Affine, condition: Affine) -> None:
    knowledge, ranges = Knowledge(facts=(POSITIVE,)), {"i": N, "j": M}
    prover = knowledge.prover(ranges)
    assert not prover.nonnegative(f)
    assert type(prover)((*prover.facts, condition), ranges).nonnegative(f)
