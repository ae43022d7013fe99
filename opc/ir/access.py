"""Reads with the loops and the conditions on indices around them, and what these say of an index expression."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.expr import Axis, Call, Const, Expr, IndexValue, Read, Reduce, Select, children
from opc.records import dataclass

OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "ne": "eq"}
"""The comparison that holds where another one does not; that of `eq` says nothing of what is greater."""


@dataclass(frozen=True, slots=True)
class Access:
    """A read, the loops around it from the outermost in, and what conditions around it say is not negative."""

    read: Read
    loops: tuple[Axis, ...] = ()
    known: tuple[Affine, ...] = ()

    def is_most(self, e: Affine, most: int) -> bool:
        """Whether `e` is at most `most` wherever the read takes place. The answer is True only where that is certain."""
        # Where f >= 0, e is at most e + f.
        return any(self._top(e + f) <= most for f in (Affine.of(0), *self.known))

    def _top(self, e: Affine) -> float:
        """Return a bound of an expression from its loops' ranges, infinity where they tell none."""
        for loop in reversed(self.loops):
            slope = e.coefficient(loop.index)
            if slope is not None and slope.constant is not None and slope.constant > 0:
                # A loop whose body runs has a last point.
                e = e + (loop.extent - 1 - Index(loop.index)) * slope
        constant = 0
        for monomial, c in e.terms:
            if not monomial:
                constant = c
            elif c > 0 or not all(isinstance(atom, Index | Dim | GroupSize) for atom in monomial):
                return float("inf")
        return constant


def accesses(e: Expr) -> Iterator[Access]:
    """Yield the reads in `e` from left to right, those in indices after what they are an index of."""
    yield from _accesses(e, (), ())


def _accesses(e: Expr, loops: tuple[Axis, ...], known: tuple[Affine, ...]) -> Iterator[Access]:
    match e:
        case Read():
            yield Access(e, loops, known)
        case Select():
            yield from _accesses(e.cond, loops, known)
            yield from _accesses(e.then, loops, (*known, *_said(e.cond, True)))
            yield from _accesses(e.other, loops, (*known, *_said(e.cond, False)))
            return
        case Call(fn="and" | "or", args=(a, b)):
            yield from _accesses(a, loops, known)
            yield from _accesses(b, loops, (*known, *_said(a, e.fn == "and")))
            return
        case Reduce():
            own = {a.index for a in e.axes if isinstance(a, Axis)}
            loops = (*(a for a in loops if a.index not in own), *(a for a in e.axes if isinstance(a, Axis)))
            known = tuple(f for f in known if not f.indices() & own)
    for c in children(e):
        yield from _accesses(c, loops, known)


def _said(cond: Expr, holds: bool) -> tuple[Affine, ...]:
    """Return what is not negative where a condition holds, or where it does not."""
    match cond:
        case Call(fn="and" | "or", args=(a, b)) if holds == (cond.fn == "and"):
            return (*_said(a, holds), *_said(b, holds))
        case Call(fn="not", args=(a,)):
            return _said(a, not holds)
        case Call(args=(IndexValue() | Const() as a, IndexValue() | Const() as b)):
            left, right = _whole(a), _whole(b)
            fn = cond.fn if holds else OPPOSITE.get(cond.fn)
            if left is None or right is None:
                return ()
            more = left - right
            found = {"ge": (more,), "gt": (more - 1,), "le": (-more,), "lt": (-more - 1,), "eq": (more, -more)}
            return found.get(fn or "", ())
        case _:
            return ()


def _whole(e: IndexValue | Const) -> Affine | None:
    if isinstance(e, IndexValue):
        return e.value
    return Affine.of(e.value) if isinstance(e.value, int) and not isinstance(e.value, bool) else None


__all__ = ["Access", "accesses"]
