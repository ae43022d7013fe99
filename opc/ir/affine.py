"""Quasi-affine integer expressions: indices, extents, sizes.

An `Affine` is a sum of integer multiples of monomials over atoms. Atoms are index variables, dimensions, integer attributes, and
floor-divisions, remainders or minima of affine expressions; `i*stride[0] + p*dilation[0] - padding[0]` and `(i + 3) // s` are in
normal form. An expression is affine in the index variables with coefficients that are polynomials in dimensions and attributes.
Expressions that are equal in this normal form are one object, and sums, products and substitutions of them are remembered.

All arithmetic has Python's meaning: `//` and `%` round to minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import product as combinations
from math import prod
from operator import floordiv, mod
from typing import TypeAlias

from opc.ir.dtypes import INT64_MIN
from opc.ir.node import AffineNode, interned, memoised, remembered
from opc.records import dataclass


@interned
@dataclass(frozen=True, slots=True, order=True)
class Index(AffineNode):
    """An index variable of a statement or reduction."""

    name: str

    def __str__(self) -> str:
        return self.name


@interned
@dataclass(frozen=True, slots=True, order=True)
class Dim(AffineNode):
    """The size of a named dimension."""

    name: str

    def __str__(self) -> str:
        return self.name


@interned
@dataclass(frozen=True, slots=True, order=True)
class GroupSize(AffineNode):
    """The number of points of an axis group: the product of its sizes, 1 for an empty group."""

    name: str

    def __str__(self) -> str:
        return f"size({self.name})"


@interned
@dataclass(frozen=True, slots=True, order=True)
class AttrInt(AffineNode):
    """An integer attribute, one element of an integer list attribute, or as 1 or 0 a bool attribute.

    With a `text`, it is 1 where a str attribute has this value, 0 elsewhere.
    """

    name: str
    element: int = -1
    """Position in a list attribute; -1 for a scalar attribute."""
    flag: bool = False
    """Whether the attribute is a bool or a str, so that the value is 1 or 0."""
    text: str | None = None
    """The value of a str attribute that is asked for; None for other attributes."""

    def __str__(self) -> str:
        text = self.name if self.element < 0 else f"{self.name}[{self.element}]"
        text = f"{text} == {self.text!r}" if self.text is not None else text
        return f"(1 if {text} else 0)" if self.flag else text


@interned
@dataclass(frozen=True, slots=True)
class FloorDiv(AffineNode):
    """`numerator // denominator`."""

    numerator: Affine
    denominator: Affine

    @remembered("_text")
    def __str__(self) -> str:
        return f"{_factor(self.numerator)} // {_factor(self.denominator)}"


@interned
@dataclass(frozen=True, slots=True)
class Mod(AffineNode):
    """`numerator % denominator`."""

    numerator: Affine
    denominator: Affine

    @remembered("_text")
    def __str__(self) -> str:
        return f"{_factor(self.numerator)} % {_factor(self.denominator)}"


@interned
@dataclass(frozen=True, slots=True)
class Minimum(AffineNode):
    """The lesser of two sizes, neither of which holds an index variable. Build with `minimum` or `maximum`."""

    left: Affine
    right: Affine

    @remembered("_text")
    def __str__(self) -> str:
        return f"minimum({self.left}, {self.right})"


Symbol: TypeAlias = Index | Dim | GroupSize | AttrInt
Atom: TypeAlias = Symbol | FloorDiv | Mod | Minimum
Monomial: TypeAlias = tuple[Atom, ...]
"""A product of atoms, sorted; the empty tuple is 1."""


_OPERATIONS: Mapping[type, Callable[[int, int], int]] = {FloorDiv: floordiv, Mod: mod, Minimum: min}
"""The atoms that are made of two expressions, and what they compute of the values of these."""


def _factor(e: Affine) -> str:
    text = str(e)
    atomic = len(e.terms) <= 1 and "*" not in text and " " not in text and not text.startswith("-")
    return text if atomic else f"({text})"


@remembered("_order", often=True)
def _order(atom: Atom) -> tuple[int, str]:
    rank = {Index: 0, Dim: 1, GroupSize: 2, AttrInt: 3, FloorDiv: 4, Mod: 5, Minimum: 6}[type(atom)]
    return rank, str(atom)


def _place(term: tuple[Monomial, int]) -> tuple[bool, list[tuple[int, str]]]:
    """Return what terms are sorted by; the number comes last."""
    return not term[0], [_order(a) for a in term[0]]


def _excludes(a: AttrInt, b: Atom) -> bool:
    return isinstance(b, AttrInt) and a.name == b.name and a.text != b.text


def _product(a: Monomial, b: Monomial) -> Monomial | None:
    """Return a product; None where it is 0, as an attribute has one of its values."""
    if not a or not b:
        return a or b
    if any(isinstance(x, AttrInt) and x.text is not None and any(_excludes(x, y) for y in b) for x in a):
        return None
    # A flag is its own square.
    return tuple(sorted((*a, *(x for x in b if not (isinstance(x, AttrInt) and x.flag and x in a))), key=_order))


@interned
@dataclass(frozen=True, slots=True)
class Affine(AffineNode):
    """A sum of `coefficient * monomial`; `terms` is sorted, without zero coefficients. Build with the operators."""

    terms: tuple[tuple[Monomial, int], ...]
    constant: int | None = field(init=False, repr=False, compare=False)
    """The value, when it is a plain number, else None."""
    single: Atom | None = field(init=False, repr=False, compare=False)
    """The atom, when the expression is one atom with coefficient 1, else None."""
    index: str | None = field(init=False, repr=False, compare=False)
    """The name of the index variable, when the expression is one bare index variable, else None."""

    def __post_init__(self) -> None:
        constant, single = (None if self.terms else 0), None
        if len(self.terms) == 1:
            ((monomial, coefficient),) = self.terms
            if not monomial:
                constant = coefficient
            elif coefficient == 1 and len(monomial) == 1:
                single = monomial[0]
        object.__setattr__(self, "constant", constant)
        object.__setattr__(self, "single", single)
        object.__setattr__(self, "index", single.name if isinstance(single, Index) else None)

    @property
    def is_never_negative(self) -> bool:
        """Whether it is a sum of numbers, indices and sizes, and of their products, none with a coefficient below 0."""
        return all(c >= 0 and all(isinstance(a, Index | Dim | GroupSize) for a in m) for m, c in self.terms)

    @staticmethod
    @memoised
    def of(value: Affine | Atom | int) -> Affine:
        """Return `value` as an affine expression."""
        if isinstance(value, Affine):
            return value
        if isinstance(value, int):
            return Affine((((), value),)) if value else Affine(())
        return Affine((((value,), 1),))

    @staticmethod
    def _make(terms: Mapping[Monomial, int]) -> Affine:
        kept = [(m, c) for m, c in terms.items() if c]
        if len(kept) > 1:
            kept.sort(key=_place)
        return Affine(tuple(kept))

    @memoised
    def __add__(self, other: Affine | Atom | int) -> Affine:
        other = Affine.of(other)
        if not self.terms or not other.terms:
            return other if not self.terms else self
        terms = dict(self.terms)
        for m, c in other.terms:
            terms[m] = terms.get(m, 0) + c
        return Affine._make(terms)

    @memoised
    def __neg__(self) -> Affine:
        return Affine(tuple((m, -c) for m, c in self.terms))

    @memoised
    def __sub__(self, other: Affine | Atom | int) -> Affine:
        other = Affine.of(other)
        if not self.terms or not other.terms:
            return -other if not self.terms else self
        terms = dict(self.terms)
        for m, c in other.terms:
            terms[m] = terms.get(m, 0) - c
        return Affine._make(terms)

    @memoised
    def __mul__(self, other: Affine | Atom | int) -> Affine:
        other = Affine.of(other)
        for one, number in ((self, other.constant), (other, self.constant)):
            if number is not None:
                return one if number == 1 else Affine(tuple((m, c * number) for m, c in one.terms if number))
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                m = _product(m1, m2)
                if m is not None:
                    terms[m] = terms.get(m, 0) + c1 * c2
        return Affine._make(terms)

    @memoised
    def __floordiv__(self, other: Affine | Atom | int) -> Affine:
        """Return the quotient; multiples of the divisor stand outside the division: `(s*q + r) // s` is `q + r // s`.

        A divisor has a positive coefficient: `a // -s` is `-a // s`.
        """
        divisor = Affine.of(other)
        if divisor.constant == 0:
            raise ZeroDivisionError("division by a constant zero")
        if divisor.constant == 1:
            return self
        if divisor._is_turned(self):
            return -self // -divisor
        whole, rest = self._split(divisor)
        a, b = rest.constant, divisor.constant
        if a == 0:
            return whole
        return whole + (Affine.of(a // b) if a is not None and b is not None else Affine.of(FloorDiv(rest, divisor)))

    @memoised
    def __mod__(self, other: Affine | Atom | int) -> Affine:
        """Return the remainder, without multiples of the divisor: `(s*q + r) % s` is `r % s`, and `a % -s` is `-(-a % s)`."""
        divisor = Affine.of(other)
        if divisor.constant == 0:
            raise ZeroDivisionError("remainder by a constant zero")
        if divisor._is_turned(self):
            return -(-self % -divisor)
        _, rest = self._split(divisor)
        a, b = rest.constant, divisor.constant
        if a == 0:
            return rest
        return Affine.of(a % b) if a is not None and b is not None else Affine.of(Mod(rest, divisor))

    def _is_turned(self, numerator: Affine) -> bool:
        """Whether a divisor has negative coefficients alone; the least integer has no opposite."""
        return all(c < 0 for _, c in self.terms) and all(c != INT64_MIN for e in (self, numerator) for _, c in e.terms)

    def _split(self, divisor: Affine) -> tuple[Affine, Affine]:
        """Return q and r with `self == divisor*q + r`, where r holds no multiple of a divisor that is one product."""
        if len(divisor.terms) != 1:
            return Affine(()), self
        factors, scale = divisor.terms[0]
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            left = list(monomial)
            for atom in factors:
                if atom in left:
                    left.remove(atom)
            if len(left) + len(factors) == len(monomial) and coefficient % scale == 0:
                whole[tuple(left)] = coefficient // scale
            else:
                rest[monomial] = coefficient
        return Affine._make(whole), Affine._make(rest)

    @remembered("_atoms", often=True)
    def atoms(self) -> frozenset[Symbol]:
        """Return every symbol in the expression, those inside divisions included."""
        found: set[Symbol] = set()
        for m, _ in self.terms:
            for atom in m:
                if isinstance(atom, FloorDiv | Mod | Minimum):
                    found |= {a for part in parts_of(atom) for a in part.atoms()}
                else:
                    found.add(atom)
        return frozenset(found)

    @remembered("_indices", often=True)
    def indices(self) -> frozenset[str]:
        """Return the names of the index variables in the expression."""
        return frozenset(a.name for a in self.atoms() if isinstance(a, Index))

    @memoised
    def coefficient(self, index: str) -> Affine | None:
        """Return the coefficient of an index variable, or None when the expression is not affine in it."""
        terms: dict[Monomial, int] = {}
        for m, c in self.terms:
            count = sum(1 for a in m if a == Index(index))
            hidden = any(isinstance(a, FloorDiv | Mod) and index in a.numerator.indices() | a.denominator.indices() for a in m)
            if hidden or count > 1:
                return None
            if count == 1:
                rest = tuple(a for a in m if a != Index(index))
                terms[rest] = terms.get(rest, 0) + c
        return Affine._make(terms)

    @remembered("_minima", often=True)
    def minima(self) -> frozenset[Minimum]:
        """Return every minimum in the expression, those inside others included."""
        inner = [a for m, _ in self.terms for a in m if isinstance(a, FloorDiv | Mod | Minimum)]
        found = frozenset(a for a in inner if isinstance(a, Minimum))
        return found.union(*(part.minima() for a in inner for part in parts_of(a)))

    def substitute(
        self, replacement: Callable[[Symbol], Affine | None], decided: Mapping[Minimum, Affine] | None = None
    ) -> Affine:
        """Return the expression with each symbol for which `replacement` gives an expression replaced by it.

        `decided` says for some of the minima which of the two sizes they are.
        """
        if decided and self.minima():
            return self._substituted(replacement, decided)
        new = tuple([(a, e) for a in self.atoms() if (e := replacement(a)) is not None])
        return self._with(new) if new else self

    @memoised
    def _with(self, new: tuple[tuple[Symbol, Affine], ...]) -> Affine:
        """Return the expression with symbols replaced, given with what stands for each."""
        return self._substituted(dict(new).get, None)

    def _substituted(self, replacement: Callable[[Symbol], Affine | None], decided: Mapping[Minimum, Affine] | None) -> Affine:
        total = Affine.of(0)
        for m, c in self.terms:
            product = Affine.of(c)
            for atom in m:
                if isinstance(atom, Minimum) and decided is not None and atom in decided:
                    factor = decided[atom].substitute(replacement, decided)
                elif isinstance(atom, FloorDiv | Mod | Minimum):
                    factor = _apply(atom, *(part.substitute(replacement, decided) for part in parts_of(atom)))
                else:
                    new = replacement(atom)
                    factor = Affine.of(atom) if new is None else new
                product = product * factor
            total = total + product
        return total

    def at(self, index: str, value: Affine) -> Affine:
        """Return the expression with an index variable replaced."""
        return self.substitute(lambda s: value if isinstance(s, Index) and s.name == index else None)

    def map_atoms(self, change: Callable[[Atom], Affine]) -> Affine:
        """Return the expression with each atom that is a factor in it replaced by `change` of it."""
        total = Affine.of(0)
        for m, c in self.terms:
            total = total + product(map(change, m)) * c
        return total

    def rename(self, names: Mapping[str, str]) -> Affine:
        """Return the expression with index variables renamed."""
        new = tuple([(n, names[n]) for n in self.indices() if n in names and names[n] != n])
        return self._renamed(new) if new else self

    @memoised
    def _renamed(self, new: tuple[tuple[str, str], ...]) -> Affine:
        found: dict[Symbol, Affine] = {Index(n): Affine.of(Index(m)) for n, m in new}
        return self._substituted(found.get, None)

    def evaluate(self, value: Callable[[Symbol], int]) -> int:
        """Return the value of the expression, given the value of each symbol.

        Raises:
            ZeroDivisionError: when a divisor is zero.
        """
        total = 0
        for m, c in self.terms:
            product = c
            for atom in m:
                # Most atoms are symbols, of which there are as many classes as of others.
                if atom.__class__ in _OPERATIONS:
                    left, right = [part.evaluate(value) for part in parts_of(atom)]  # type: ignore[arg-type]  # it is an operation
                    product *= _OPERATIONS[atom.__class__](left, right)
                else:
                    product *= value(atom)  # type: ignore[arg-type]  # it is a symbol
            total += product
        return total

    @remembered("_text", often=True)
    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts: list[str] = []
        for m, c in self.terms:
            alone = len(m) == 1 and abs(c) == 1
            factors = [f"({a})" if isinstance(a, FloorDiv | Mod) and not (alone and not parts and c > 0) else str(a) for a in m]
            if abs(c) != 1 or not m:
                factors.append(str(abs(c)))
            sign = ("-" if c < 0 else "") if not parts else (" - " if c < 0 else " + ")
            parts.append(sign + "*".join(factors))
        return "".join(parts)


def flag_values(flags: Iterable[AttrInt]) -> Iterator[dict[Symbol, Affine]]:
    """Yield the values that flags have together: 0 or 1, and 1 of at most one for each str attribute."""
    zero, one = Affine.of(0), Affine.of(1)
    for chosen in combinations(*([None, *group] for group in _exclusive(flags))):
        yield {flag: one if flag in chosen else zero for flag in flags}


def count_flag_values(flags: Iterable[AttrInt]) -> int:
    """Return how many there are of what `flag_values` yields."""
    return prod(1 + len(group) for group in _exclusive(flags))


def _exclusive(flags: Iterable[AttrInt]) -> list[list[AttrInt]]:
    """Return flags in groups of which at most one is 1."""
    groups: dict[tuple[str, int], list[AttrInt]] = {}
    for flag in flags:
        groups.setdefault((flag.name, flag.element), []).append(flag)
    return list(groups.values())


def product(values: Iterable[Affine]) -> Affine:
    """Return the product of affine expressions, 1 for none."""
    total = Affine.of(1)
    for v in values:
        total = total * v
    return total


def minimum(a: Affine, b: Affine) -> Affine:
    """Return the lesser of two sizes: one of them where they differ by a number, else in an order of their own."""
    difference = (a - b).constant
    if difference is not None:
        return a if difference <= 0 else b
    return Affine.of(Minimum(*sorted((a, b), key=str)))


def maximum(a: Affine, b: Affine) -> Affine:
    """Return the greater of two sizes."""
    return a + b - minimum(a, b)


def parts_of(atom: FloorDiv | Mod | Minimum) -> tuple[Affine, Affine]:
    """Return the two expressions that an atom is made of."""
    return (atom.left, atom.right) if isinstance(atom, Minimum) else (atom.numerator, atom.denominator)


def _apply(atom: FloorDiv | Mod | Minimum, left: Affine, right: Affine) -> Affine:
    """Return the operation of an atom on two other expressions."""
    match atom:
        case FloorDiv():
            return left // right
        case Mod():
            return left % right
        case Minimum():
            return minimum(left, right)
