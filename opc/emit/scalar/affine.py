"""Affine forms as text: a form is a sum of signed products, and a dialect says how these are written.

Python has operators and integers of any size; C++ has operators and no literal for the least int64; ONNX has calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from opc.ir.affine import Affine, Atom, FloorDiv, Mod, Monomial
from opc.ir.dtypes import INT64_MIN
from opc.ir.node import memoised
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class AffineTerm:
    """A product in a sum: whether it is subtracted, its literal (None for 1 beside atoms), and its atoms."""

    negative: bool
    literal: int | None
    atoms: tuple[Atom, ...]

    @property
    def is_product(self) -> bool:
        """Whether it has several factors."""
        return len(self.atoms) + (self.literal is not None) > 1

    @property
    def is_quotient(self) -> bool:
        """Whether it is a division or remainder alone, which binds no stronger than a product."""
        return not self.is_product and bool(self.atoms) and isinstance(self.atoms[0], FloorDiv | Mod)


@memoised
def terms_of(value: Affine) -> tuple[AffineTerm, ...]:
    """Return the terms of a form. The least int64 stays a literal with its sign: without it, it is no int64."""
    return tuple([_term(monomial, coefficient) for monomial, coefficient in value.terms])


def _term(monomial: Monomial, coefficient: int) -> AffineTerm:
    if coefficient == INT64_MIN:
        return AffineTerm(False, coefficient, monomial)
    return AffineTerm(coefficient < 0, None if abs(coefficient) == 1 and monomial else abs(coefficient), monomial)


@dataclass(frozen=True, slots=True)
class BoundText:
    """A text, and how strongly its outermost operator binds."""

    text: str
    strength: int

    def at(self, strength: int) -> str:
        """Return the text, in parentheses where it binds weaker."""
        return self.text if self.strength >= strength else f"({self.text})"


class AffineDialect(ABC):
    """How a target writes an affine form; sums and products have operators where it says nothing else."""

    literal_first: ClassVar[bool] = True
    """Whether a product has its literal in front: `2 * n`, not `n * 2`."""

    @abstractmethod
    def literal(self, value: int, alone: bool) -> str:
        """Return a literal: a term of its own, or a factor beside others."""

    @abstractmethod
    def atom(self, atom: Atom, factor: bool) -> str:
        """Return an atom; a `factor`, or what stands behind a sign, binds as strongly as a product needs."""

    def affine(self, value: Affine) -> str:
        """Return a form."""
        total: str | None = None
        for term in self.terms(value):
            if total is not None:
                total = self.joined(total, self.product(term, term.is_product), term.negative)
            else:
                # A sign binds tighter than a division.
                total = self.first(self.product(term, term.is_product or term.negative), term.negative)
        return self.literal(0, True) if total is None else total

    def terms(self, value: Affine) -> Sequence[AffineTerm]:
        """Return the terms of a form in the order in which they are written."""
        return terms_of(value)

    def product(self, term: AffineTerm, factor: bool) -> str:
        """Return a term without its sign."""
        atoms = [self.atom(a, factor) for a in term.atoms]
        if term.literal is not None:
            atoms.insert(0 if self.literal_first else len(atoms), self.literal(term.literal, not atoms))
        return reduce(self.times, atoms)

    def times(self, left: str, right: str) -> str:
        """Return a product."""
        return f"{left} * {right}"

    def first(self, term: str, negative: bool) -> str:
        """Return a sum that begins with a term."""
        return f"-{term}" if negative else term

    def joined(self, total: str, term: str, negative: bool) -> str:
        """Return a sum with one more term."""
        return f"{total} {'-' if negative else '+'} {term}"
