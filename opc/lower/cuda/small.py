"""What bounds the whole numbers of a statement, so that small calls compute them in 32 bits on a device.

A GPU multiplies and compares numbers of 64 bits piece by piece, and for windows it does little else. The bound is a polynomial in
sizes and in the magnitudes of attributes, of which each call finds the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from opc.ir.affine import Affine, Atom, AttrInt, FloorDiv, Index, Minimum, Mod, Monomial
from opc.ir.dtypes import Acc, TypeVar, ValueType, is_integer
from opc.ir.expr import (
    SEARCHES,
    AttrRef,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
)
from opc.ir.op import Assign, Op

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_ONE = Affine.of(1)


class _Unbounded(Exception):
    """A whole number depends on data, or on what isn't looked at here."""


def most_of(op: Op, assign: Assign) -> Affine | None:
    """Return what no whole number of a statement is greater than, where each size and attribute counts by its magnitude, of at
    least 1. None where there are axis groups, or numbers that data decide beside those that are only compared.
    """
    try:
        found = _Bounds({})
        for index, dim in zip(assign.indices, op.operand(assign.target).dims, strict=True):
            if not isinstance(index, str) or not isinstance(dim, Affine):
                return None
            found.extents[index] = found.affine(dim)
        found.value(assign.value)
    except _Unbounded:
        return None
    return _few_terms(found.most)


def most_among(numbers: Iterable[Affine], extents: Mapping[str, Affine]) -> Affine:
    """Return the same of numbers, where these are the extents of all indices."""
    found = _Bounds(extents)
    for number in numbers:
        found.affine(number)
    return _few_terms(found.most)


def _few_terms(most: Mapping[Monomial, int]) -> Affine:
    """Return the sum of products, each added to one that it divides where there is one."""
    kept: list[tuple[Monomial, Counter[Atom]]] = []
    times: Counter[Monomial] = Counter()
    for monomial in sorted(most, key=len, reverse=True):
        factors = Counter(monomial)
        of = next((m for m, other in kept if factors <= other), None)
        if of is None:
            kept.append((monomial, factors))
        times[monomial if of is None else of] += most[monomial]
    return sum((Affine(((monomial, times[monomial]),)) for monomial, _ in kept), Affine.of(0))


class _Bounds:
    """The bounds of some numbers, of which `most` has each product once, as often as it is added at most."""

    def __init__(self, extents: Mapping[str, Affine]) -> None:
        self.most: dict[Monomial, int] = {}
        self.extents: dict[str, Affine] = {}
        for index, extent in extents.items():
            self.extents[index] = self.affine(extent)

    def seen(self, bound: Affine) -> Affine:
        """Take a bound into the whole one, and return it."""
        for monomial, coefficient in bound.terms:
            self.most[monomial] = max(coefficient, self.most.get(monomial, 0))
        return bound

    def affine(self, e: Affine) -> Affine:
        """Return what an affine expression is not greater than."""
        total = Affine.of(0)
        for monomial, coefficient in e.terms:
            product = Affine.of(abs(coefficient))
            for atom in monomial:
                match atom:
                    case Index(name=name):
                        if name not in self.extents:
                            raise _Unbounded
                        product *= self.extents[name]
                    case FloorDiv():
                        self.affine(atom.denominator)
                        product *= self.affine(atom.numerator)
                    case Mod():
                        self.affine(atom.numerator)
                        product *= self.affine(atom.denominator)
                    case Minimum():
                        product *= self.affine(atom.left) + self.affine(atom.right)
                    case AttrInt(flag=True):
                        pass  # it is 1 at most
                    case _:
                        product *= Affine.of(atom)
            total += product
        return self.seen(total)

    def value(self, e: Expr) -> Affine:
        """Return what an expression is not greater than, nothing of one that is no whole number."""
        match e:
            case Const():
                return self.seen(Affine.of(abs(int(e.value)))) if _is_whole(e.type) else Affine.of(0)
            case AttrRef():
                return self.seen(Affine.of(AttrInt(e.name, e.element))) if _is_whole(e.type) else Affine.of(0)
            case IndexValue(value=value):
                return self.affine(value)
            case Present():
                return Affine.of(0)
            case Read():
                self._read(e)
                if _is_whole(e.type):
                    raise _Unbounded
                return Affine.of(0)
            case Reduce():
                return self._reduced(e)
            case Call() if e.fn in _COMPARISONS:
                for a in e.args:
                    self._read(a) if isinstance(a, Read) else self.value(a)
                return Affine.of(0)
            case Call():
                return self._call(e, [self.value(a) for a in e.args])
            case Select():
                self.value(e.cond)
                return self.seen(self.value(e.then) + self.value(e.other))
            case Cast():
                if _is_whole(e.type) and not _is_whole(e.arg.type):
                    raise _Unbounded
                return self.value(e.arg)
            case _:
                raise _Unbounded

    def _read(self, e: Read) -> None:
        if e.pad is not None:
            self.value(e.pad)
        for index in e.indices:
            if not isinstance(index, Affine):
                raise _Unbounded
            self.affine(index)

    def _reduced(self, e: Reduce) -> Affine:
        before, points = dict(self.extents), _ONE
        for axis in e.axes:
            if not isinstance(axis, Axis):
                raise _Unbounded
            self.extents[axis.index] = self.affine(axis.extent)
            points *= self.extents[axis.index]
        self.value(e.body)
        self.extents = before
        if e.kind in SEARCHES:
            return self.seen(points)
        if _is_whole(e.type):
            raise _Unbounded
        return Affine.of(0)

    def _call(self, e: Call, args: list[Affine]) -> Affine:
        if not _is_whole(e.type):
            return Affine.of(0)
        match e.fn:
            case "add" | "sub" | "minimum" | "maximum":
                return self.seen(args[0] + args[1])
            case "mul":
                return self.seen(args[0] * args[1])
            case "neg" | "floordiv":
                return args[0]
            case "mod":
                return args[1]
            case _:
                raise _Unbounded


def _is_whole(t: ValueType) -> bool:
    """Whether values are whole numbers other than those of a type variable, whose C++ type is its own."""
    of = t.of if isinstance(t, Acc) else t
    return not isinstance(of, TypeVar) and is_integer(of)
