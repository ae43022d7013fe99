"""Proves that integer polynomials over dimensions and attributes are not negative.

Index variables are replaced by the end of their range at which the polynomial is least; `n // d` is bounded by d * (n // d) in
[n - d + 1, n]; what is left is not negative when, written in each symbol's excess over its known lower bound, it has no negative
coefficient. Facts are expressions known not to be negative, from checks, requirements, and the conditions around a read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product

from opc.analysis.bounds.examples import Examples
from opc.analysis.bounds.quotients import Parts, cleared, divisions, every_division, factors, parts_of_index, quotient, split_off
from opc.analysis.value_types import affine_of, flag_of, presence
from opc.ir.affine import Affine, Atom, Dim, FloorDiv, GroupSize, Index, Minimum, Mod, Symbol, parts_of
from opc.ir.comparisons import OPPOSITE, told
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.node import memoised

_MAX_FACTS = 2
"""How many facts one proof may combine."""
_MAX_STEPS = 400
"""How many polynomials one proof may look at; a proof not found within them counts as none."""
_MAX_STEPS_MORE = 80
"""How many it may look at in each further form of what is to be proved."""


def _as_logic(condition: Expr) -> Expr:
    """Return a condition that is a choice with True or False on a side as what it says: `c if b else False` is `b and c`."""
    match condition:
        case Select(cond=cond, then=then, other=Const(value=bool() as value)):
            return Call("or", (_not(cond), then), DType.BOOL) if value else Call("and", (cond, then), DType.BOOL)
        case Select(cond=cond, then=Const(value=bool() as value), other=other):
            return Call("or", (cond, other), DType.BOOL) if value else Call("and", (_not(cond), other), DType.BOOL)
        case _:
            return condition


def _where_given(condition: Expr, names: frozenset[str]) -> Expr:
    """Return what a condition says where some optional operands are known to be given."""
    while isinstance(condition, Select) and isinstance(condition.cond, Present) and condition.cond.operand in names:
        condition = condition.then
    return condition


def _not(condition: Expr) -> Expr:
    return Call("not", (condition,), DType.BOOL)


@memoised
def facts_of(condition: Expr, holds: bool = True) -> tuple[Affine, ...]:
    """Return expressions that are not negative wherever `condition` holds, or where it does not."""
    match _as_logic(condition):
        case Call(fn="not", args=(inner,)):
            return facts_of(inner, not holds)
        case Call(fn="and" | "or" as fn, args=(first, second)) if holds == (fn == "and"):
            return facts_of(first, holds) + facts_of(_where_given(second, presence(first, holds)), holds)
        case Call(fn="and" | "or", args=(first, second)):
            # One of the two holds: of a bound that both give, the weaker.
            both = product(facts_of(first, holds), facts_of(second, holds))
            steps = ((one, other, (one - other).constant) for one, other in both)
            return tuple([one if more >= 0 else other for one, other, more in steps if more is not None])
        case Call(fn="lt" | "le" | "gt" | "ge" | "eq" | "ne" as fn, args=(left, right)) if not isinstance(right, StrConst):
            relation = fn if holds else OPPOSITE[fn]
            below = relation in ("lt", "le")
            pairs = product(_pieces(left, below), _pieces(right, not below)) if relation not in ("eq", "ne") else [(left, right)]
            sides = [(affine_of(one), affine_of(other)) for one, other in pairs]
            found = tuple(f for a, b in sides if a is not None and b is not None for f in told(relation, a, b))
            return found + tuple(g for f in found if (g := divisible(f)) is not None)
        case _:
            flag = flag_of(condition)
            return () if flag is None else (flag - 1,) if holds else (-flag,)


def _pieces(e: Expr, below: bool) -> list[Expr]:
    """Return what is below a bound wherever `e` is, or above it: `a` and `-a` for `abs(a)`."""
    match e:
        case Call(fn="abs", args=(arg,)) if below and (a := affine_of(arg)) is not None:
            return [IndexValue(a), IndexValue(-a)]
        case Call(fn="maximum" | "minimum" as fn, args=(first, second)) if below == (fn == "maximum"):
            return [*_pieces(first, below), *_pieces(second, below)]
        case _:
            return [e]


def cases_of(condition: Expr, holds: bool = True) -> list[tuple[Affine, ...]]:
    """Return tuples of expressions: wherever `condition` holds, or where it does not, those of one of them are not negative."""
    match _as_logic(condition):
        case Call(fn="not", args=(inner,)):
            return cases_of(inner, not holds)
        case Call(fn="and" | "or" as fn, args=(first, second)):
            one, two = cases_of(first, holds), cases_of(second, holds)
            return [a + b for a in one for b in two] if holds == (fn == "and") else one + two
        case Call(fn="eq" | "ne" as fn, args=(left, right)) if holds == (fn == "ne") and not isinstance(right, StrConst):
            a, b = affine_of(left), affine_of(right)
            return [()] if a is None or b is None else [told("lt", a, b), told("gt", a, b)]
        case _:
            return [facts_of(condition, holds)]


def divisible(fact: Affine) -> Affine | None:
    """Return what a fact that `n % d` is not positive says of the quotient: that `d * (n // d) - n` is not negative."""
    atom = (-fact).single
    return atom.denominator * (atom.numerator // atom.denominator) - atom.numerator if isinstance(atom, Mod) else None


@lru_cache(maxsize=4096)
def _answers(facts: tuple[Affine, ...], ranges: tuple[tuple[str, Affine], ...], most_steps: int) -> dict[Affine, bool]:
    """Return what has been asked before where the same is known: in other ops of a family, and in the cases of each."""
    return {}


@lru_cache(maxsize=4096)
def _examples(facts: tuple[Affine, ...], ranges: tuple[tuple[str, Affine], ...]) -> Examples:
    return Examples(facts, dict(ranges))


@dataclass
class Prover:
    """Proves that polynomials are not negative, given facts and the ranges of index variables (outermost first)."""

    facts: tuple[Affine, ...] = ()
    ranges: Mapping[str, Affine] = field(default_factory=dict)
    steps: int = 0
    most_steps: int = _MAX_STEPS

    def __post_init__(self) -> None:
        self._answers = _answers(self.facts, tuple(self.ranges.items()), self.most_steps)
        self._shown_without: dict[Affine, bool] = {}

    @cached_property
    def known(self) -> list[Affine]:
        """The facts, and that a loop that runs has at least one point; without those that are numbers."""
        return [f for f in (*self.facts, *[e - 1 for e in self.ranges.values()]) if f.constant is None]

    @cached_property
    def indexed(self) -> list[Affine]:
        """Those of the facts that hold an index variable."""
        return [f for f in self.known if f.indices()]

    @cached_property
    def sizes(self) -> list[Affine]:
        """Those of the facts that hold none."""
        return [f for f in self.known if not f.indices()]

    @cached_property
    def _size_factors(self) -> list[tuple[Affine, frozenset[Atom]]]:
        """These, each with its atoms."""
        return [(f, factors(f)) for f in self.sizes]

    @cached_property
    def excess(self) -> dict[Symbol, Affine]:
        """Each symbol that has another lower bound than 0, in terms of what it has beyond it."""
        return {symbol: Affine.of(symbol) + low for symbol, low in self.lower.items() if low}

    @cached_property
    def lower(self) -> dict[Symbol, int]:
        """A lower bound of each symbol that a fact gives one."""
        lower: dict[Symbol, int] = {}

        def at_least(symbol: Symbol, bound: int) -> None:
            lower[symbol] = max(lower.get(symbol, bound), bound)

        for fact in self.known:
            # A fact `symbol - c` is a lower bound of the symbol.
            rest = [(m, c) for m, c in fact.terms if m]
            if len(rest) == 1 and rest[0][1] == 1 and len(rest[0][0]) == 1:
                symbol = rest[0][0][0]
                if not isinstance(symbol, FloorDiv | Mod | Minimum):
                    at_least(symbol, -dict(fact.terms).get((), 0))
            elif len(rest) == 1 and rest[0][1] > 0 > dict(fact.terms).get((), 0):
                # A product that is positive has no factor that is zero.
                for atom in rest[0][0]:
                    if isinstance(atom, Dim | GroupSize):
                        at_least(atom, 1)
        for extent in self.ranges.values():
            # A product that is not zero has no factor that is zero.
            if len(extent.terms) == 1:
                for atom in extent.terms[0][0]:
                    if isinstance(atom, Dim | GroupSize):
                        at_least(atom, 1)
        for atom in self._equal_products(lower):
            at_least(atom, 1)
        return lower

    def _equal_products(self, lower: Mapping[Symbol, int]) -> Iterator[Symbol]:
        """Yield the sizes of products that are known to equal another one, of sizes that are not zero: they are not either."""
        for fact in self.sizes:
            if len(fact.terms) != 2 or sorted(c for _, c in fact.terms) != [-1, 1] or -fact not in self.facts:
                continue
            for (one, _), (other, _) in (fact.terms, fact.terms[::-1]):
                sizes = [a for a in one if isinstance(a, Dim | GroupSize) and lower.get(a, 0) >= 1]
                if len(sizes) == len(one):
                    yield from (a for a in other if isinstance(a, Dim | GroupSize))

    def nonnegative(self, f: Affine) -> bool:
        """Whether `f` is proved not negative at every point of the ranges where the facts hold."""
        answer = self._answers.get(f)
        if answer is None:
            answer = self._answers[f] = self._proved(f)
        return answer

    def _proved(self, f: Affine) -> bool:
        least = self.least(f)
        if least is not None and self._withoutdivisions(least):
            return True
        if _examples(self.facts, tuple(self.ranges.items())).refute(f):
            return False
        if self._with_facts(f):
            return True
        known = [f, *self.known]
        if not any(divisions(g) for g in known):
            return False
        return self._with_quotients(f) or self._in_parts(f)

    def _with_facts(self, f: Affine) -> bool:
        """Whether `f` is proved from its least value, less up to two facts about the indices."""
        self.steps = 0
        if self._shown(f):
            return True
        near = [g for g in self.indexed if _related(f, g)]
        if any(self._shown(f - g) for g in near):
            return True
        return any(self._shown(f - g - h) for g in near for h in self.indexed if _related(f - g, h))

    def _with_quotients(self, f: Affine) -> bool:
        """Whether `f` is proved in a form without quotients, the facts too: `n // d <= c` says just that `n < d * (c + 1)`."""
        plain = self._plain
        return any(plain._with_facts(g) for g in (f, *cleared(f, self.positive)) if plain.facts != self.facts or g != f)

    @cached_property
    def _plain(self) -> Prover:
        """The prover with what the facts say without quotients; it is the same whatever was proved before."""
        steps, self.steps = self.steps, 0
        facts = (*self.facts, *(g for fact in self.known for g in cleared(fact, self.positive)))
        self.steps = steps
        return Prover(facts, self.ranges, most_steps=_MAX_STEPS_MORE)

    def _in_parts(self, f: Affine) -> bool:
        """Whether `f` is proved with an index taken apart into the quotient and the remainder that it holds."""
        parts = parts_of_index([f], self.ranges, self.positive)
        if parts is None:
            # What is known of the quotient or the remainder of an index tells of the index: one that is odd is no less than 1.
            own = f.indices()
            near = [g for g in self.indexed if any(own & d.numerator.indices() for d in every_division(g))]
            parts = parts_of_index(near, self.ranges, self.positive)
        if parts is None:
            return False
        facts = [*map(parts.apart, self.facts), parts.extent - 1 - parts.whole]
        ranges = self._ranges_apart(parts)
        wanted = parts.apart(f)
        if Prover(tuple(facts), ranges, most_steps=_MAX_STEPS_MORE).nonnegative(wanted):
            return True
        ends = parts.ends_of_remainder(facts)
        told = [g for fact in facts if (g := parts.of_quotient(fact, *ends)) != fact]
        # What is told of the quotient comes first: few facts are combined, and it is the stronger one.
        return bool(told) and Prover((*told, *facts), ranges, most_steps=_MAX_STEPS_MORE).nonnegative(wanted)

    def _ranges_apart(self, parts: Parts) -> dict[str, Affine]:
        """Return the ranges with those of the quotient and the remainder in place of that of their index."""
        last = self._divided(parts.extent - 1, parts.divisor)
        assert last is not None
        ranges: dict[str, Affine] = {}
        for name, extent in self.ranges.items():
            if name == parts.index:
                ranges |= {parts.quotient: last + 1, parts.remainder: parts.divisor}
            else:
                ranges[name] = parts.apart(extent)
        return ranges

    def _shown(self, f: Affine) -> bool:
        least = self.least(f)
        return least is not None and self._closed(least, _MAX_FACTS)

    def least(self, f: Affine) -> Affine | None:
        """Return an expression without index variables that is no greater than `f` anywhere; None when none is found."""
        for name in reversed(list(self.ranges)):
            if name not in f.indices():
                continue
            reduced = self._eliminate(f, name)
            if reduced is None:
                return None
            f = reduced
        return f if not f.indices() else None

    def _eliminate(self, f: Affine, name: str) -> Affine | None:
        coefficient = f.coefficient(name)
        if coefficient is None:
            return self._eliminate_inside(f, name)
        end = self._end(coefficient, name)
        if end is None:
            return None
        ends: dict[Symbol, Affine] = {Index(name): end}
        return f.substitute(ends.get)

    def _end(self, coefficient: Affine, name: str) -> Affine | None:
        """Return the end of the index's range at which `coefficient * index` is least."""
        if self._sign(coefficient):
            return Affine.of(0)
        if self._sign(-coefficient):
            return self.ranges[name] - 1
        return None

    def _sign(self, f: Affine) -> bool:
        least = self.least(f)
        return least is not None and self._closed(least, 0)

    def _eliminate_inside(self, f: Affine, name: str) -> Affine | None:
        """Replace the divisions that hold an index by their bounds: `n // d` grows with n, and `n % d` is in [0, d - 1]."""
        for atom in divisions(f):
            if name not in atom.numerator.indices() | atom.denominator.indices():
                continue
            coefficient, rest = split_off(f, atom)
            if coefficient is None or not self.positive(atom.denominator):
                return None
            up = self._sign(coefficient)
            if not up and not self._sign(-coefficient):
                return None
            if isinstance(atom, Mod):
                bound: Affine | None = Affine.of(0) if up else atom.denominator - 1
            elif name in atom.denominator.indices():
                return None
            elif up:
                bound = self._divided(self.least(atom.numerator), atom.denominator)
            else:
                negative = self.least(-atom.numerator)
                bound = None if negative is None else self._divided(-negative, atom.denominator)
            if bound is None:
                return None
            f = rest + coefficient * bound
        return self._eliminate(f, name) if name in f.indices() and f.coefficient(name) is not None else f

    def _divided(self, n: Affine | None, d: Affine) -> Affine | None:
        """Return `n // d`, with multiples of `d` taken out of the division."""
        if n is None:
            return None
        whole, rest = Affine.of(0), Affine.of(0)
        for term in self._in_multiples(n, d).terms:
            times = quotient(Affine((term,)), d)
            if times is None:
                rest = rest + Affine((term,))
            else:
                whole = whole + times
        if rest.constant is not None and d.constant is None:
            if rest.constant == 0:
                return whole
            if rest.constant < 0 and self._closed(d + rest, 1):
                return whole - 1
            if rest.constant > 0 and self._closed(d - rest - 1, 1):
                return whole
        return whole + rest // d

    def _in_multiples(self, n: Affine, d: Affine) -> Affine:
        """Return `n` with each symbol that the facts know to be a multiple of `d` written as that: C is G * (C // G)."""
        if not isinstance(d.single, FloorDiv):
            return n
        whole, divisor = d.single.numerator, d.single.denominator
        if isinstance(whole.single, FloorDiv | Mod | None) or divisor * d - whole not in self.known:
            return n
        coefficient, rest = split_off(n, whole.single)
        return n if coefficient is None else rest + coefficient * divisor * d

    def positive(self, f: Affine) -> bool:
        """Whether `f` is proved greater than zero at every point."""
        if isinstance(f.single, FloorDiv):
            n, d = f.single.numerator, f.single.denominator
            # A divisor of something positive goes into it at least once.
            if d * f - n in self.known and self.positive(n) and self.positive(d):
                return True
        least = self.least(f - 1)
        return least is not None and self._closed(least, 1)

    def _closed(self, f: Affine, facts: int) -> bool:
        """Whether `f`, which holds no index variable, is not negative; up to `facts` facts may be used."""
        self.steps += 1
        if self.steps > self.most_steps:
            return False
        if self._withoutdivisions(f):
            return True
        if not facts:
            return False
        # What is divided takes part once the division is replaced by a bound.
        own = factors(f).union(*(factors(part) for d in divisions(f) for part in parts_of(d)))
        return any(self._closed(f - g, facts - 1) for g, of in self._size_factors if not of.isdisjoint(own))

    def _withoutdivisions(self, f: Affine) -> bool:
        shown = self._shown_without.get(f)
        if shown is None:
            shown = self._shown_without[f] = self._is_shown_without(f)
        return shown

    def _is_shown_without(self, f: Affine) -> bool:
        for atom in divisions(f):
            reduced = self._bounded(f, atom)
            return reduced is not None and self._withoutdivisions(reduced)
        return self._coefficients(f)

    def _bounded(self, f: Affine, atom: FloorDiv | Mod) -> Affine | None:
        """Return a lower bound of `f` without the division `atom`."""
        n, d = atom.numerator, atom.denominator
        if not self._coefficients(d - 1) and not self._positive_divisor(d):
            return None
        coefficient, rest = split_off(f, atom)
        if coefficient is None:
            return None
        up = self._coefficients(coefficient)
        if not up and not self._coefficients(-coefficient):
            return None
        if isinstance(atom, Mod):
            return rest if up else rest + coefficient * (d - 1)
        if d.constant is not None:
            # For whole numbers, f >= 0 holds just when d * f >= -(d - 1).
            scaled = rest * d + (d - 1)
            return scaled + coefficient * (n - d + 1 if up else n)
        times = quotient(coefficient, d)
        if times is not None:
            return rest + times * (n - d + 1 if up else n)
        if self._withoutdivisions(n):
            return rest if up else rest + coefficient * n
        # What is negative has a negative quotient, no less than itself.
        return (rest + coefficient * n if up else rest - coefficient) if self._withoutdivisions(-n - 1) else None

    def _positive_divisor(self, d: Affine) -> bool:
        return any(self._coefficients(d - 1 - g) for g in self.sizes)

    def _coefficients(self, f: Affine) -> bool:
        """Whether `f` has no negative coefficient in the excess of each symbol over its lower bound."""
        lower = self.lower
        if not all(isinstance(a, Dim | GroupSize) or a in lower for a in f.atoms()):
            return False
        degree = max([len(m) for m, _ in f.terms], default=0)
        if degree and any(c < 0 and len(m) == degree for m, c in f.terms) and not divisions(f):
            return False  # a bound changes no coefficient of the highest degree
        shifted = f.substitute(self.excess.get)
        return all(c >= 0 for _, c in shifted.terms) and not divisions(shifted) and not shifted.minima()


def _related(f: Affine, g: Affine) -> bool:
    """Whether two expressions have an atom in common."""
    return not factors(f).isdisjoint(factors(g))
