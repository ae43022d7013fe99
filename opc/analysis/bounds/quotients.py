"""Quotients and remainders in proofs: taken out of an inequality, and an index taken apart into its quotient and remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd

from opc.ir.affine import Affine, Atom, FloorDiv, Index, Minimum, Mod, Symbol, parts_of
from opc.ir.node import memoised, remembered
from opc.records import dataclass

_MAX_CLEARED = 3
"""How many quotients are taken out of one inequality."""


@remembered("_factors")
def factors(f: Affine) -> frozenset[Atom]:
    """Return the atoms that are factors of `f`, not those inside others."""
    return frozenset([a for m, _ in f.terms for a in m])


@memoised
def divisions(f: Affine) -> tuple[FloorDiv | Mod, ...]:
    """Return the quotients and remainders that are factors of `f`, not those inside others, in the order of their text."""
    return tuple(sorted((a for a in factors(f) if isinstance(a, FloorDiv | Mod)), key=str))


def every_division(f: Affine) -> Iterator[FloorDiv | Mod]:
    """Yield the quotients and remainders of `f`, those inside others too."""
    yield from divisions(f)
    for monomial, _ in f.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv | Mod | Minimum):
                for part in parts_of(atom):
                    yield from every_division(part)


@memoised
def split_off(f: Affine, atom: Atom) -> tuple[Affine | None, Affine]:
    """Return the coefficient of an atom (None when it stands in a power) and the terms without it."""
    coefficient, rest = Affine.of(0), Affine.of(0)
    for monomial, c in f.terms:
        count = monomial.count(atom)
        if count > 1:
            return None, f
        if count == 1:
            factors = list(monomial)
            factors.remove(atom)
            coefficient = coefficient + Affine(((tuple(factors), c),))
        else:
            rest = rest + Affine(((monomial, c),))
    return coefficient, rest


@memoised
def quotient(f: Affine, d: Affine) -> Affine | None:
    """Return f / d where d is one product that divides every term, else None."""
    if len(d.terms) != 1:
        return None
    divisor, number = d.terms[0]
    total = Affine.of(0)
    for monomial, c in f.terms:
        factors = list(monomial)
        for atom in divisor:
            if atom not in factors:
                return None
            factors.remove(atom)
        if c % number:
            return None
        total = total + Affine(((tuple(factors), c // number),))
    return total


def cleared(f: Affine, positive: Callable[[Affine], bool], left: int = _MAX_CLEARED) -> Iterator[Affine]:
    """Yield expressions that are not negative at just the points where `f` is not, each with a quotient less.

    For whole numbers and d > 0, `n // d <= c` holds just where `n <= d*c + d - 1`, and `n // d >= c` just where `n >= d*c`.
    """
    f = _primitive(f)
    for atom in divisions(f) if left else ():
        coefficient, rest = split_off(f, atom)
        sign = None if coefficient is None else coefficient.constant
        if isinstance(atom, Mod) or sign not in (1, -1) or not positive(atom.denominator):
            continue
        n, d = atom.numerator, atom.denominator
        g = d * rest + n if sign == 1 else d * rest + d - 1 - n
        yield g
        yield from cleared(g, positive, left - 1)


def _primitive(f: Affine) -> Affine:
    """Return the expression divided by what divides the coefficients of all its atoms: a*g + c >= 0 says that g + c // a >= 0."""
    common = gcd(*(c for m, c in f.terms if m))
    if common <= 1:
        return f
    return Affine(tuple((m, c // common) for m, c in f.terms if m)) + dict(f.terms).get((), 0) // common


def with_remainders(facts: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Return facts with what they say of remainders of which no sum is more than 0: that each of them is 0.

    `N % a + N % b == 0` says that of both, and `N % a == N % b == 0` of the first with the second left out. Divisors that are
    known to be positive have no negative remainders.
    """
    found, none = list(facts), set[Atom]()

    def is_positive(d: Affine) -> bool:
        least = [(f - d).constant for f in facts]
        return (d.constant or 0) > 0 or any(c is not None and -c >= 1 for c in least)

    again = True
    while again:
        again = False
        for fact in list(found):
            left = Affine(tuple((m, c) for m, c in fact.terms if not (len(m) == 1 and m[0] in none)))
            atoms = [m[0] for m, c in left.terms if len(m) == 1 and c < 0]
            if len(atoms) < len(left.terms) or not all(isinstance(a, Mod) and is_positive(a.denominator) for a in atoms):
                continue
            for a in atoms:
                if isinstance(a, Mod):
                    none.add(a)
                    more = (-Affine.of(a), a.denominator * (a.numerator // a.denominator) - a.numerator)
                    found += [f for f in more if f not in found]
                    again = True
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Parts:
    """An index of a range of `extent` as `divisor * quotient + remainder`, two indices in its place."""

    index: str
    extent: Affine
    divisor: Affine

    @property
    def quotient(self) -> str:
        """The name of the index that the quotient is."""
        return f"({self.index}) // ({self.divisor})"

    @property
    def remainder(self) -> str:
        """The name of the index that the remainder is."""
        return f"({self.index}) % ({self.divisor})"

    @property
    def whole(self) -> Affine:
        """The index in terms of both."""
        return self.divisor * Index(self.quotient) + Index(self.remainder)

    def apart(self, f: Affine) -> Affine:
        """Return an expression with the two in place of the index."""
        return self._within(f.at(self.index, self.whole))

    def ends_of_remainder(self, facts: Iterable[Affine]) -> tuple[Affine, Affine]:
        """Return the least and the greatest that the remainder may be where facts hold: `r - 1 >= 0` says that it is not 0."""
        r, least, most = Affine.of(Index(self.remainder)), 0, self.divisor - 1
        for f in facts:
            least = max(least, -c) if (c := (f - r).constant) is not None else least
            if (c := (f + r).constant) is not None and (most.constant is None or c < most.constant):
                most = Affine.of(c)
        return Affine.of(least), most

    def of_quotient(self, fact: Affine, least: Affine, most: Affine) -> Affine:
        """Return what a fact about both says of the quotient alone: of `2*n - 1 - 2*q - r`, that `n - 1 - q` is not negative.

        `least` and `most` are the ends of the remainder. It is the fact itself where it does not hold the remainder.
        """
        coefficient = fact.coefficient(self.remainder)
        sign = None if coefficient is None else coefficient.constant
        if not sign:
            return fact
        ends: dict[Symbol, Affine] = {Index(self.remainder): least if sign < 0 else most}
        told = fact.substitute(ends.get)
        constant = dict(told.terms).get((), 0)
        if quotient(told - constant, self.divisor) is None:
            return told
        if self.divisor.constant is not None:
            return _primitive(told - constant % self.divisor.constant)
        # A multiple of a divisor that is more than nothing is that divisor at least once.
        return told - constant - self.divisor if constant < 0 else told

    def _within(self, f: Affine) -> Affine:
        """Return `f` with the remainder, which is less than the divisor, taken out of quotients and remainders by it."""
        return f.map_atoms(self._reduced)

    def _reduced(self, atom: Atom) -> Affine:
        if not isinstance(atom, FloorDiv | Mod):
            return Affine.of(atom)
        n, d = self._within(atom.numerator), self._within(atom.denominator)
        if d == self.divisor and n == Affine.of(Index(self.remainder)):
            return n if isinstance(atom, Mod) else Affine.of(0)
        return n % d if isinstance(atom, Mod) else n // d


def parts_of_index(among: Iterable[Affine], ranges: Mapping[str, Affine], positive: Callable[[Affine], bool]) -> Parts | None:
    """Return how an index that is divided by one thing in some expressions is taken apart; None where there is none.

    Of several divisors of one index, the one that the others divide is taken: `i // 2 + i % 4` is that of `4*q + r`.
    """
    found: list[Parts] = []
    for atom in sorted((d for f in among for d in every_division(f)), key=str):
        name = atom.numerator.index
        if name is not None and name in ranges and not atom.denominator.indices() and positive(atom.denominator):
            found.append(Parts(name, ranges[name], atom.denominator))
    for parts in found:
        rivals = [other for other in found if other.index == parts.index and other.divisor != parts.divisor]
        if all(quotient(other.divisor, parts.divisor) is None for other in rivals):
            return parts
    return None
