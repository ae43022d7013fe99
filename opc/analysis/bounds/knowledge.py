"""What the dimensions, requirements and checks of an op prove of sizes and indices.

A bool attribute is 1 or 0 in sizes; what holds it is proved for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from math import lcm, prod
from typing import TypeAlias

from opc.analysis.bounds.prover import Prover, cases_of, facts_of
from opc.analysis.bounds.quotients import divisions, quotient, with_remainders
from opc.ir.affine import (
    Affine,
    Atom,
    AttrInt,
    Dim,
    FloorDiv,
    Minimum,
    Mod,
    Symbol,
    count_flag_values,
    flag_values,
    maximum,
    parts_of,
)
from opc.ir.expr import NOTHING, Expr
from opc.ir.node import remembered
from opc.ir.op import Attribute, DimSpec, Op, Requirement

_MAX_VALUES = 16
"""How many cases of the values of bool and str attributes one proof tells apart: all of four bool attributes."""
_MAX_CASES = 8
"""How many cases of the conditions around a read one proof tells apart."""
_MAX_LENGTH = 600
"""Of how many sizes and attributes an expression is made, written out, in which proofs look at the rules of dimensions."""
_MAX_CASES_OF_MINIMA = 800
"""How many times one proof tells the two cases of a minimum of sizes apart."""


Conditions: TypeAlias = tuple[tuple[Expr, bool], ...]
"""Conditions that something stands under, with the value each must have."""

_Ranges: TypeAlias = tuple[tuple[str, Affine], ...]


@lru_cache(maxsize=16)
def _proofs(
    dims: _Ranges, require: tuple[Requirement, ...], attributes: tuple[Attribute, ...]
) -> dict[tuple[Affine, _Ranges, Conditions], bool]:
    """Return what has been proved of the sizes and attributes of an op, which are those of the ops derived from it too."""
    return {}


Rules: TypeAlias = tuple[_Ranges, tuple[Requirement, ...], tuple[Attribute, ...], frozenset[str]]
"""The rules of an op's dimensions, its requirements, its attributes, and which of the dimensions are the size of an axis."""

_NO_RULES: Rules = ((), (), (), NOTHING)


class Knowledge:
    """What is known of the sizes and attributes of an op: the rules of its dimensions, its checks and its requirements."""

    def __init__(self, rules: Rules = _NO_RULES, facts: Iterable[Affine] = (), turn: int = 0) -> None:
        facts = tuple(facts)
        dims, require, attributes, axes = rules
        self.rules = dict(dims)
        self.shapes: Mapping[str, tuple[DimSpec, ...]] = {}
        self._names: dict[Symbol, Affine] = {
            Dim(name): Affine.of(AttrInt(f"<{name}>")) for name in self.rules if name not in axes
        }
        """The dimensions by name: of the size of an axis alone it is known that it is not negative."""
        self._lengths: dict[str, int] = {}
        self._rules = self._names | {Dim(name): e for name, e in self.rules.items() if self._is_short(name, e)}
        conditions = [r.condition for r in require] + [a.check for a in attributes if a.check is not None]
        self._stated_facts = with_remainders((*facts, *(f for c in conditions for f in facts_of(c))))
        self.facts = with_remainders((*facts, *(self.expand(f) for c in conditions for f in facts_of(c))))
        self._plain: dict[Affine, Affine] = {}
        self._provers: dict[tuple[_Ranges, tuple[Affine, ...]], Prover] = {}
        self._proved = {} if facts else _proofs(dims, require, attributes)
        self.exact: dict[Symbol, Affine] = {}
        """The sizes and attributes that are known to be another expression."""
        self.quotients: dict[Symbol, Affine] = {}
        """The sizes of their own, with the quotients that they are."""
        self.divisors: dict[Symbol, tuple[Affine, ...]] = {}
        """What divides a size: numbers or products of which none is a multiple of another."""
        self._turn = turn
        for f in self.facts:
            self._learn_divisor(f)
        for f in tuple(self.facts):
            self._learn_exact(f)
            self._learn_equal(f)
        # A quotient may be a multiple of something too: `N // a % b == 0`.
        for f in self.facts:
            if (g := _replaced(f, self.exact)) != f:
                self._learn_divisor(g)
                self._learn_exact(g)
        most = max((len(found) for found in self.divisors.values()), default=1)
        self.others = () if turn else tuple([Knowledge(rules, facts, k) for k in range(1, most)])
        """The same, with a size of several divisors written as a multiple of another one."""

    def _learn_divisor(self, fact: Affine) -> None:
        """Of a fact that d divides a size, keep d, or what is a multiple of d and of another such divisor."""
        if (found := self._divided(fact)) is not None:
            size, d = found
            known = self.divisors.get(size, ())
            common = [(e, m) for e in known if (m := _common_multiple(e, d)) is not None]
            self.divisors[size] = tuple([common[0][1] if e == common[0][0] else e for e in known]) if common else (*known, d)

    def _learn_exact(self, fact: Affine) -> None:
        """Of a fact that something divides a size, keep that the size is its divisor times a size of its own."""
        if (found := self._divided(fact)) is not None:
            size = found[0]
            d = self.divisors[size][self._turn % len(self.divisors[size])]
            if size not in self.exact and not self._holds(d, size):
                whole = FloorDiv(Affine.of(size), d)
                self.exact[size] = d * Dim(f"({whole})")
                self.quotients[Dim(f"({whole})")] = Affine.of(whole)

    def _divided(self, fact: Affine) -> tuple[Dim | AttrInt, Affine] | None:
        """Return n and d of a fact that d divides n: a size, or an attribute that is no less than 0 while d is positive."""
        found = _divided_size(fact)
        if found is None or isinstance(found[0], Dim):
            return found
        size, d = found
        return found if self._stated(size, 0) and all(self._stated(a, 1) for a in d.atoms()) else None

    def _stated(self, of: Symbol, least: int) -> bool:
        """Whether a fact says that a symbol is no less than that."""
        return any((c := (f - Affine.of(of)).constant) is not None and -c >= least for f in self.facts)

    def _learn_equal(self, fact: Affine) -> None:
        """Of two facts that say that a size is an expression without it, keep that."""
        if -fact not in self.facts:
            return
        for monomial, c in fact.terms:
            size = monomial[0] if len(monomial) == 1 else None
            rest = (fact - Affine(((monomial, c),))) * -c
            if isinstance(size, Dim) and c in (1, -1) and size not in self.exact and not self._holds(rest, size):
                self.exact[size] = rest
                # The expression stands for the size, of which it was known that it is not negative.
                self.facts = (*self.facts, rest)
                return

    def _holds(self, e: Affine, size: Symbol) -> bool:
        """Whether an expression, with the sizes known so far put in, holds a size."""
        return any(a == size or (a in self.exact and self._holds(self.exact[a], size)) for a in e.atoms())

    def _is_short(self, name: str, rule: Affine) -> bool:
        """Whether proofs look at the rule of a dimension, and not at its name alone: it does not fill pages."""
        length = _length(rule, self._lengths)
        self._lengths[name] = length if length <= _MAX_LENGTH else 1
        return length <= _MAX_LENGTH

    def expand(self, f: Affine) -> Affine:
        """Return `f` with derived dimensions replaced by their rules, but by name where that would fill pages."""
        return _replaced(f, self._rules if _length(f, self._lengths) <= _MAX_LENGTH else self._names)

    def plain(self, f: Affine) -> Affine:
        """Return `f` for a proof: expanded, and with a size that another divides written as a multiple of it."""
        if f not in self._plain:
            self._plain[f] = _replaced(self.expand(f), self.exact)
        return self._plain[f]

    def unplain(self, f: Affine) -> Affine:
        """Return a plain expression with the quotients that stand for sizes of their own as quotients again."""
        return _replaced(f, self.quotients)

    def quotient(self, f: Affine, d: Affine) -> Affine | None:
        """Return f / d where d is known to divide every term: `n*(H // G)` for `n*H`, where G divides the size H. Else None."""
        for way in (self, *self.others):
            if (found := quotient(way.plain(f), way.plain(d))) is not None:
                return way.unplain(found)
        return None

    def exact_quotient(self, size: Affine, d: Affine) -> Affine | None:
        """Return size / d where d is known to divide the size, as it stands or as what its rule says; else None."""
        if all((way.plain(size) % way.plain(d)).constant != 0 for way in (self, *self.others)):
            return None
        direct = self.expand(size) // self.expand(d)
        return size // d if divisions(direct) else direct

    def same(self, a: Affine, b: Affine) -> bool:
        """Whether two sizes are known to be one number."""
        return any(way.plain(a) == way.plain(b) for way in (self, *self.others))

    def prover(self, ranges: Mapping[str, Affine], more: Iterable[Affine] = ()) -> Prover:
        """Return a prover for points in these ranges where further facts hold; it takes `plain` expressions."""
        return Prover(tuple(self.plain(f) for f in (*self.facts, *more)), {n: self.plain(e) for n, e in ranges.items()})

    def at_most(self, a: Affine, b: Affine) -> bool:
        """Whether one size is proved to be no greater than another."""
        return self.nonnegative(b - a, {})

    def nonnegative(self, f: Affine, ranges: Mapping[str, Affine], conditions: Iterable[tuple[Expr, bool]] = ()) -> bool:
        """Whether `f` is proved not negative at every point of the ranges where the conditions have the values given."""
        key = (f, tuple(ranges.items()), tuple(conditions))
        if key not in self._proved:
            self._proved[key] = any(way._nonnegative(f, ranges, key[2]) for way in (self, *self.others))
        return self._proved[key]

    def _nonnegative(self, f: Affine, ranges: Mapping[str, Affine], conditions: Conditions) -> bool:
        told = [g for cond, holds in conditions for g in facts_of(cond, holds)]
        if self._by_name(f, ranges, told) or self._with_facts(f, ranges, told):
            return True
        cases: list[tuple[Affine, ...]] = [()]
        split = False
        for cond, holds in conditions:
            found = cases_of(cond, holds)
            more = [case for case in found if not any(self._never(g, ranges) for g in case)]
            if len(cases) * len(more) <= _MAX_CASES:
                cases = [c for a in cases for b in more if not _is_impossible(c := a + b)]
                split |= len(found) > 1
        return split and all(self._with_facts(f, ranges, case) for case in cases)

    def _by_name(self, f: Affine, ranges: Mapping[str, Affine], facts: Iterable[Affine]) -> bool:
        """Whether `f` is proved from what is required of derived sizes by name, whatever their rules are."""
        atoms = {a for e in (f, *ranges.values()) for a in e.atoms()}
        own = {a for a in atoms if isinstance(a, Dim) and a.name in self.rules}
        if not any(own & fact.atoms() for fact in self._stated_facts):
            return False

        def named(e: Affine) -> Affine:
            return e.substitute(self._names.get)

        known = tuple(map(named, (*self._stated_facts, *facts)))
        return Prover(known, {n: named(e) for n, e in ranges.items()}).nonnegative(named(f))

    def _never(self, fact: Affine, ranges: Mapping[str, Affine]) -> bool:
        """Whether a fact holds at no point of the ranges: that `i - N` is not negative, where i is below N."""
        return fact.constant is None and self._with_facts(-fact - 1, ranges, ())

    def _with_facts(self, f: Affine, ranges: Mapping[str, Affine], facts: Iterable[Affine]) -> bool:
        """Whether `f` is proved not negative at every point of the ranges where further facts hold."""
        facts = tuple(facts)
        near = _near(f, ranges)
        # Each case of a size along one axis is one more for every axis: what other axes have is told apart last.
        if len(near) < len(ranges) and self._has_cases(ranges, near) and self._with_facts(f, near, _over(facts, near)):
            return True
        key, wanted = (tuple(ranges.items()), facts), self.plain(f)
        if key not in self._provers:
            self._provers[key] = self.prover(ranges, key[1])
        prover = self._provers[key]
        flags = sorted({a for e in (wanted, *prover.facts, *prover.ranges.values()) for a in _flags(e)})
        if not flags or count_flag_values(flags) > _MAX_VALUES:
            return _in_each_case(prover, wanted)
        for known in flag_values(flags):
            facts = tuple(f.substitute(known.get) for f in prover.facts)
            if any((f.constant or 0) < 0 for f in facts):
                continue  # no point has these values
            case = Prover(facts, {n: e.substitute(known.get) for n, e in prover.ranges.items()})
            if not _in_each_case(case, wanted.substitute(known.get)):
                return False
        return True

    def _has_cases(self, ranges: Mapping[str, Affine], near: Mapping[str, Affine]) -> bool:
        """Whether a range beside those that are near is of sizes of which a proof tells cases apart."""
        others = [self.plain(e) for n, e in ranges.items() if n not in near]
        return any(e.minima() or any(_flags(e)) for e in others)


@remembered("_knowledge")
def knowledge_of(op: Op) -> Knowledge:
    """Return what is known of an op, with what has been proved so far of any op with the same rules."""
    found = copy(_knowledge(rules_of(op)))
    found.shapes = {o.name: o.dims for o in op.operands}
    return found


@lru_cache(maxsize=64)
def _knowledge(rules: Rules) -> Knowledge:
    return Knowledge(rules)


def rules_of(op: Op) -> Rules:
    """Return what tells of an op's sizes and attributes."""
    if not op.dims:
        return op.dims, op.require, op.attributes, NOTHING
    axes = {d.single for o in op.operands for d in o.dims if isinstance(d, Affine)}
    return op.dims, op.require, op.attributes, frozenset([name for name, _ in op.dims if Dim(name) in axes])


def _length(e: Affine, lengths: Mapping[str, int]) -> int:
    """Return of how many sizes and attributes an expression is made, where each dimension is of as many as stands there."""

    def of(atom: Atom) -> int:
        if isinstance(atom, FloorDiv | Mod | Minimum):
            return sum(_length(part, lengths) for part in parts_of(atom))
        return lengths.get(atom.name, 1) if isinstance(atom, Dim) else 1

    return sum(prod(map(of, monomial)) for monomial, _ in e.terms)


def _divided_size(fact: Affine) -> tuple[Dim | AttrInt, Affine] | None:
    """Return n and d of a fact `d * (n // d) - n`, which says that d divides the size or attribute n."""
    for atom in divisions(fact):
        n, d = atom.numerator, atom.denominator
        if isinstance(atom, FloorDiv) and isinstance(n.single, Dim | AttrInt) and fact == d * Affine.of(atom) - n:
            return n.single, d
    return None


def _common_multiple(a: Affine, b: Affine) -> Affine | None:
    """Return what a size is a multiple of that is one of `a` and of `b`, where that is one number or product; else None."""
    if a.constant is not None and b.constant is not None:
        return Affine.of(lcm(a.constant, b.constant))
    return b if quotient(b, a) is not None else a if quotient(a, b) is not None else None


def _near(f: Affine, ranges: Mapping[str, Affine]) -> dict[str, Affine]:
    """Return the ranges of the indices that an expression holds, and of those that these ranges hold."""
    own = set(f.indices())
    while more := {i for n in own if n in ranges for i in ranges[n].indices()} - own:
        own |= more
    return {n: e for n, e in ranges.items() if n in own}


def _over(facts: Iterable[Affine], ranges: Mapping[str, Affine]) -> tuple[Affine, ...]:
    """Return the facts that hold no index but those of the ranges."""
    return tuple([f for f in facts if all(i in ranges for i in f.indices())])


def _flags(f: Affine) -> Iterator[AttrInt]:
    return (a for a in f.atoms() if isinstance(a, AttrInt) and a.flag)


def _in_each_case(prover: Prover, wanted: Affine) -> bool:
    """Whether `wanted` is proved not negative whichever size each minimum is: the one that is no greater than the other."""
    left = _MAX_CASES_OF_MINIMA

    def proved(prover: Prover, wanted: Affine) -> bool:
        nonlocal left
        minimum = _undecided(prover, wanted)
        if minimum is None or left == 0:
            return prover.nonnegative(wanted)
        left -= 1
        for value, fact in _values(minimum):
            decided = {minimum: value}

            def known(f: Affine, decided: Mapping[Minimum, Affine] = decided) -> Affine:
                return f.substitute(lambda s: None, decided)

            try:
                facts, rest = (*map(known, prover.facts), fact), known(wanted)
                case = Prover(facts, {n: known(e) for n, e in prover.ranges.items()})
            except ZeroDivisionError:  # what is divided by nothing has no value to prove anything of
                return False
            # Nothing is read where an index has no values.
            empty = any(e.constant is not None and e.constant <= 0 for e in case.ranges.values())
            if not empty and not _is_impossible(facts) and not proved(case, rest):
                return False
        return True

    return proved(prover, wanted)


def _undecided(prover: Prover, wanted: Affine) -> Minimum | None:
    """Return a minimum that a proof is to tell the cases of apart, of sizes that hold none: of what is wanted first."""
    for expressions in ((wanted,), prover.ranges.values(), prover.facts):
        minima = sorted({m for e in expressions for m in e.minima()}, key=str)
        for m in minima:
            a = _chosen_by(m)
            if not (m.left.minima() | m.right.minima() if a is None else a.minima()):
                return m
    return None


def _values(m: Minimum) -> list[tuple[Affine, Affine]]:
    """Return what a minimum may be, each with what is then not negative."""
    a = _chosen_by(m)
    if a is not None:
        return [(Affine.of(1), a - 1), (Affine.of(0), -a)]
    return [(m.left, m.right - m.left), (m.right, m.left - m.right)]


def _chosen_by(m: Minimum) -> Affine | None:
    """Return a of `minimum(maximum(a, 0), 1)`: 1 where a whole number is positive, 0 elsewhere."""
    for one, other in ((m.left, m.right), (m.right, m.left)):
        if one.constant == 1:
            for inner in other.minima():
                for a in (inner.left, inner.right):
                    if other == maximum(a, Affine.of(0)):
                        return a
    return None


def _is_impossible(facts: tuple[Affine, ...]) -> bool:
    """Whether two facts contradict each other, as `i - j` and `j - i - 1` do: not both are at least 0."""
    return any((c := (f + g).constant) is not None and c < 0 for n, f in enumerate(facts) for g in facts[n:])


def _replaced(f: Affine, rules: Mapping[Symbol, Affine]) -> Affine:
    try:
        return f.substitute(lambda s: _replaced(rules[s], rules) if s in rules else None)
    except ZeroDivisionError:
        return f  # reported where divisors are checked
