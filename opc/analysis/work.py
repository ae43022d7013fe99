"""Amounts of work as formulas over sizes: sums of products, such as `2*N*O*K + N*O`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from opc.ir.affine import Affine, AttrInt, Dim, GroupSize
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class SizeProduct:
    """A number times powers of sizes; a size that is a sum itself is one factor. Negative powers divide."""

    number: Fraction = Fraction(1)
    powers: tuple[tuple[Affine, int], ...] = ()

    def times(self, size: Affine, power: int = 1) -> SizeProduct:
        """Return the product times a size to some power."""
        number, powers = self.number, Counter(dict(self.powers))
        if len(size.terms) != 1:
            powers[size] += power
        else:
            atoms, coefficient = size.terms[0]
            number = number * Fraction(coefficient) ** power
            for atom in atoms:
                powers[Affine.of(atom)] += power
        return SizeProduct(number, tuple(sorted(((s, p) for s, p in powers.items() if p), key=lambda t: str(t[0]))))

    def scaled(self, number: Fraction | int) -> SizeProduct:
        """Return the product times a number."""
        return SizeProduct(self.number * number, self.powers)

    def value(self, size: Callable[[Affine], int]) -> float:
        """Return the value, given that of each size; what divides counts as at least 1."""
        total = float(self.number)
        for s, power in self.powers:
            n = max(0, size(s))
            total *= float(n) ** power if power > 0 else float(max(1, n)) ** power
        return total


@dataclass(frozen=True, slots=True)
class Work:
    """A sum of products."""

    terms: tuple[tuple[tuple[tuple[Affine, int], ...], Fraction], ...] = ()

    def __add__(self, other: Work | SizeProduct) -> Work:
        terms = dict(self.terms)
        added = ((other.powers, other.number),) if isinstance(other, SizeProduct) else other.terms
        for powers, number in added:
            terms[powers] = terms.get(powers, Fraction(0)) + number
        return Work(tuple((p, n) for p, n in terms.items() if n))

    def value(self, size: Callable[[Affine], int]) -> float:
        """Return the value, given that of each size."""
        return sum(SizeProduct(number, powers).value(size) for powers, number in self.terms)

    def __str__(self) -> str:
        ordered = sorted(self.terms, key=lambda t: -sum(p for _, p in t[0]))
        return " + ".join(_text(powers, number) for powers, number in ordered) or "0"


def _text(powers: tuple[tuple[Affine, int], ...], number: Fraction) -> str:
    above = [_power(s, p) for s, p in powers if p > 0]
    below = [_power(s, -p) for s, p in powers if p < 0]
    if number.numerator != 1 or not above:
        above.insert(0, str(number.numerator))
    if number.denominator != 1:
        below.insert(0, str(number.denominator))
    return "*".join(above) + "".join(f"/{b}" for b in below)


def _power(size: Affine, power: int) -> str:
    text = str(size) if isinstance(size.single, Dim | GroupSize | AttrInt) else f"({size})"
    return text if power == 1 else f"{text}**{power}"
