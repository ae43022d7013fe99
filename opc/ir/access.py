"""Reads with the loops and the conditions around them, and what these say of an index: how far behind another one it lies.

An index that is data is a number of which only conditions tell, and where it is the position of a maximum, the range searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import prod
from typing import TypeAlias

from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Symbol
from opc.ir.comparisons import OPPOSITE, told
from opc.ir.dtypes import DType, TypeVar, Weak, candidates, is_integer
from opc.ir.expr import (
    SEARCHES,
    AttrRef,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_groups,
    free_indices,
)
from opc.ir.op import Op
from opc.ir.printer import format_expr
from opc.records import dataclass

_WITHIN = frozenset((DType.INT32, DType.INT64))
"""Types whose numbers are the same as int64."""

_MOST_FACTS = 2
"""How many facts one answer may combine."""


@dataclass(frozen=True, slots=True)
class Access:
    """A read, the loops around it from the outermost in, and what the op and conditions around it say is not negative."""

    read: Read
    loops: tuple[Axis, ...] = ()
    known: tuple[Affine, ...] = ()

    def is_most(self, e: Affine, most: int) -> bool:
        """Whether `e` is at most `most` wherever the read takes place. The answer is True only where that is certain."""
        # Where f >= 0, e is at most e + f; and of whole numbers, e <= most holds just where 2*e <= 2*most + 1.
        sums = [sum(some, Affine.of(0)) for n in range(_MOST_FACTS + 1) for some in combinations(self.known, n)]
        if any(self._top(e * c + f) <= c * most + c - 1 for c in (1, 2) for f in sums):
            return True
        for form in (e, self._at_ends(e)):
            for atom in sorted((a for m, _ in form.terms for a in m if isinstance(a, FloorDiv)), key=str):
                # For d > 0, e <= most holds just where d*e <= d*most + d - 1; and n - d < d*(n // d) <= n.
                d, c = atom.denominator.constant, dict(form.terms).get((atom,), 0)
                if d is not None and d > 0 and c:
                    scaled = (form - Affine.of(atom) * c) * d + (atom.numerator if c > 0 else atom.numerator - d + 1) * c
                    return self.is_most(scaled, d * most + d - 1)
        return False

    def _at_ends(self, e: Affine) -> Affine:
        """Return an expression with the loops that it grows with at their last points: one whose body runs has a last point."""
        for loop in reversed(self.loops):
            slope = e.coefficient(loop.index)
            if slope is not None and slope.constant is not None and slope.constant > 0:
                e = e + (loop.extent - 1 - Index(loop.index)) * slope
        return e

    def _top(self, e: Affine) -> float:
        """Return a bound of an expression from its loops' ranges, infinity where they tell none."""
        constant = 0
        for monomial, c in self._at_ends(e).terms:
            least = [self._least(atom) for atom in monomial]
            if monomial and (c > 0 or any(low is None for low in least)):
                return float("inf")
            constant += c * prod(low for low in least if low is not None)
        return constant

    def _least(self, atom: Atom) -> int | None:
        """Return a lower bound of a size, an index or an attribute that is not negative, None where none is known."""
        bounds = [0] if isinstance(atom, Index | Dim | GroupSize) else []
        if isinstance(atom, AttrInt):
            bounds += [-c for f in self.known if (c := (f - Affine.of(atom)).constant) is not None and c <= 0]
        return max(bounds, default=None)


def accesses(op: Op, e: Expr) -> Iterator[Access]:
    """Yield the reads in `e` from left to right, those in indices after what they are an index of."""
    for read, loops, known in _accesses(op, e, (), _of_attributes(op)):
        yield Access(read, loops, _facts(known))


def place(index: Affine | GroupRef | Expr) -> Affine | None:
    """Return an index of a read, of which data are numbers that nothing is known of; None for a group, and what is no sum."""
    return index if isinstance(index, Affine) else None if isinstance(index, GroupRef) else _whole(index)


_Known: TypeAlias = "tuple[tuple[Affine, frozenset[str]], ...]"
"""What is not negative, each with the indices and groups that it is told of: where a loop rebinds these, it is told of others."""


def _facts(known: _Known) -> tuple[Affine, ...]:
    return tuple(f for f, _ in known)


def _of(e: Expr, facts: Iterable[Affine]) -> _Known:
    """Return facts that an expression tells."""
    names = free_indices(e) | free_groups(e)
    return tuple((f, names) for f in facts)


def _of_attributes(op: Op) -> _Known:
    """Return what is not negative by the checks of attributes, and by conditions on them that each call meets."""
    checks = tuple(found for a in op.attributes if a.check is not None for found in _of(a.check, _said(a.check, True)))
    met = ((f, names) for r in op.require for f, names in _of(r.condition, _said(r.condition, True)) if _has_attribute(f))
    return (*checks, *met)


def _has_attribute(e: Affine) -> bool:
    return any(isinstance(a, AttrInt) for a in e.atoms())


def _accesses(op: Op, e: Expr, loops: tuple[Axis, ...], known: _Known) -> Iterator[tuple[Read, tuple[Axis, ...], _Known]]:
    match e:
        case Read():
            positions = [r for i in e.indices if isinstance(i, Expr) for r in _found(i)]
            yield e, loops, (*known, *(f for r in positions for f in _searched(op, r, known)))
        case Select():
            yield from _accesses(op, e.cond, loops, known)
            for side, holds in ((e.then, True), (e.other, False)):
                more = (*known, *_of(e.cond, _said(e.cond, holds)))
                more = (*more, *(f for r in _found(e.cond) for f in _searched(op, r, more)))
                yield from _accesses(op, side, loops, more)
            return
        case Call(fn="and" | "or", args=(a, b)):
            yield from _accesses(op, a, loops, known)
            yield from _accesses(op, b, loops, (*known, *_of(a, _said(a, e.fn == "and"))))
            return
        case Reduce():
            own = {a.index if isinstance(a, Axis) else a.name for a in e.axes}
            loops = (*(a for a in loops if a.index not in own), *(a for a in e.axes if isinstance(a, Axis)))
            known = tuple((f, names) for f, names in known if not names & own)
    for c in children(e):
        yield from _accesses(op, c, loops, known)


def _said(cond: Expr, holds: bool) -> tuple[Affine, ...]:
    """Return what is not negative where a condition holds, or where it does not."""
    match cond:
        case Call(fn="and" | "or", args=(a, b)) if holds == (cond.fn == "and"):
            return (*_said(a, holds), *_said(b, holds))
        case Call(fn="not", args=(a,)):
            return _said(a, not holds)
        case Call(args=(a, b)) if cond.fn in OPPOSITE:
            left, right = _whole(a), _whole(b)
            return () if left is None or right is None else told(cond.fn if holds else OPPOSITE[cond.fn], left, right)
        case _:
            return ()


def _whole(e: Expr) -> Affine | None:
    """Return a whole number as a sum; what is data is a symbol, named by what it is, that may have any value."""
    match e:
        case IndexValue():
            return e.value
        case Const(value=int() as value) if not isinstance(value, bool):
            return Affine.of(value)
        case AttrRef():
            return Affine.of(AttrInt(e.name, e.element)) if is_integer(e.type) else None
        case Call(fn="add" | "sub", args=(a, b)) if e.type in (DType.INT64, Weak.INT):  # narrower ones wrap around
            left, right = _whole(a), _whole(b)
            return None if left is None or right is None else left + right if e.fn == "add" else left - right
        case Cast(arg=Read(type=DType() | TypeVar() as kind) as arg, type=DType.INT64) if _WITHIN.issuperset(candidates(kind)):
            return _whole(arg)
        case Read() | Cast() | Call() | Select() if is_integer(e.type):
            return Affine.of(_symbol(e))
        case _:
            return None


def _symbol(e: Expr) -> Symbol:
    return AttrInt(f"<{format_expr(e)}>")


def _found(e: Expr) -> Iterator[Read]:
    """Yield the positions of maxima that may stand in an index or a condition: whole numbers that are read."""
    if isinstance(e, Read):
        if is_integer(e.type):
            yield e
        return
    for c in children(e):
        yield from _found(c)


def _searched(op: Op, read: Read, known: _Known) -> _Known:
    """Return that a number read of a temporary that holds the position of a maximum or minimum lies in the range searched."""
    found = _last(op, read)
    # Elsewhere it may be a number, which lies in that range too.
    if found is None or not all(Access(read, (), _facts(known)).is_most(Affine.of(n) - found[0], 0) for n in found[1]):
        return ()
    return _of(read, [found[0] - _symbol(read)])


def _last(op: Op, e: Expr, seen: frozenset[str] = frozenset()) -> tuple[Affine, tuple[int, ...]] | None:
    """Return the last place that a search may find, and the numbers that stand for none; None for what is no such place."""
    match e:
        case Reduce(axes=(Axis() as axis,)) if e.kind in SEARCHES:
            return axis.extent - 1, ()
        case Select():
            numbers = tuple(int(s.value) for s in (e.then, e.other) if isinstance(s, Const) and isinstance(s.value, int))
            places = [s for s in (e.then, e.other) if not isinstance(s, Const)]
            found = _last(op, places[0], seen) if len(places) == len(numbers) == 1 else None
            return None if found is None else (found[0], (*found[1], *numbers))
        case Read() if e.operand in op.assignments and e.operand not in seen:
            definition = op.assignments[e.operand]
            own = None if e.pad is not None else _last(op, definition.value, seen | {e.operand})
            names = {i: a for i, a in zip(definition.indices, e.indices) if isinstance(i, str) and isinstance(a, Affine)}
            if own is None or not own[0].indices() <= names.keys():
                return None
            return own[0].substitute(lambda s: names.get(s.name) if isinstance(s, Index) else None), own[1]
        case _:
            return None


__all__ = ["Access", "accesses", "place"]
