"""Ranges of integer values: what is known of an index that is data, before any data is seen.

`minimum(maximum(i, 0), N - 1)` lies in [0, N - 1], a remainder below its divisor, and an argmax inside what it runs over. So a
read at such an index needs no check when the op runs, and a condition on it may be known to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.knowledge import Conditions, knowledge_of
from opc.ir.affine import Affine, GroupSize
from opc.ir.dtypes import DType, Weak, is_integer, is_whole
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    with_children,
)
from opc.ir.op import Group, Op
from opc.records import dataclass, replace

_MAX_BOUNDS = 4
"""How many bounds of one value are kept."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Expressions over sizes, each no greater (`lows`) or no less (`highs`) than the value at every point."""

    lows: tuple[Affine, ...] = ()
    highs: tuple[Affine, ...] = ()

    def negated(self) -> ValueRange:
        """Return the range of the negative value."""
        return ValueRange(tuple(-h for h in self.highs), tuple(-a for a in self.lows))


class Values:
    """Tells the ranges of the integer expressions of one op."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.knowledge = knowledge_of(op)
        self.known: dict[str, ValueRange] = {}
        self.under: Conditions = ()
        """What holds, or does not, where the present value stands."""

    def within(self, e: Expr, size: Affine, ranges: Mapping[str, Affine]) -> bool:
        """Whether 0 <= e < size is proved at every point of the loops `ranges`."""
        return self.at_least(e, Affine.of(0), ranges) and self.below(e, size, ranges)

    def at_least(self, e: Expr, bound: Affine, ranges: Mapping[str, Affine]) -> bool:
        """Whether `e` >= bound is proved."""
        return any(self._holds(a - bound, ranges) for a in self.range(e, ranges).lows)

    def below(self, e: Expr, bound: Affine, ranges: Mapping[str, Affine]) -> bool:
        """Whether `e` < bound is proved."""
        return any(self._holds(bound - 1 - h, ranges) for h in self.range(e, ranges).highs)

    def _holds(self, f: Affine, ranges: Mapping[str, Affine]) -> bool:
        return self.knowledge.nonnegative(f, ranges, self.under)

    def range(self, e: Expr, ranges: Mapping[str, Affine]) -> ValueRange:
        """Return what is known of the value of `e` inside the loops `ranges`."""
        match e:
            case Const(type=Weak.INT):
                return ValueRange((Affine.of(int(e.value)),), (Affine.of(int(e.value)),))
            case IndexValue():
                return ValueRange((e.value,), (e.value,))
            case GroupIndex():
                return ValueRange((Affine.of(0),), (Affine.of(GroupSize(e.group)) - 1,))
            case Cast(type=DType.INT64) if is_whole(e.arg.type):
                return self.range(e.arg, ranges)
            case Select():
                sides = ((e.then, True), (e.other, False))
                then, other = (self._range_under((*self.under, (e.cond, holds)), x, ranges) for x, holds in sides)
                return ValueRange(self._least(then.lows, other.lows, ranges), self._greatest(then.highs, other.highs, ranges))
            case Reduce(kind="argmax" | "argmin"):
                return self._position(e)
            case Read(pad=None) if e.operand in self.op.assignments and is_integer(e.type):
                return self._defined(e.operand)
            case Call(fn=fn, args=(a, *rest)) if is_integer(e.type) or isinstance(e.type, Weak):
                return self._call(fn, self.range(a, ranges), rest, ranges)
            case _:
                return ValueRange()

    def _range_under(self, conditions: Conditions, e: Expr, ranges: Mapping[str, Affine]) -> ValueRange:
        """Return what is known of a value where these conditions hold, or do not."""
        around, self.under = self.under, conditions
        try:
            return self.range(e, ranges)
        finally:
            self.under = around

    def _call(self, fn: str, a: ValueRange, rest: list[Expr], ranges: Mapping[str, Affine]) -> ValueRange:
        b = self.range(rest[0], ranges) if rest else ValueRange()
        match fn:
            case "neg":
                return a.negated()
            case "add" | "sub":
                b = b.negated() if fn == "sub" else b
                return ValueRange(_sums(a.lows, b.lows), _sums(a.highs, b.highs))
            case "maximum":
                return ValueRange(_few((*a.lows, *b.lows)), self._greatest(a.highs, b.highs, ranges))
            case "minimum":
                return ValueRange(self._least(a.lows, b.lows, ranges), _few((*a.highs, *b.highs)))
            case "mod" if any(self._holds(d - 1, ranges) for d in b.lows):
                return ValueRange((Affine.of(0),), tuple(d - 1 for d in b.highs))
            case "floordiv" if isinstance(rest[0], IndexValue | Const) and len(b.lows) == 1 and not b.lows[0].indices():
                divisor = b.lows[0]
                if not self._holds(divisor - 1, ranges):
                    return ValueRange()
                return ValueRange(tuple(x // divisor for x in a.lows), tuple(x // divisor for x in a.highs))
            case "bit_not":
                return ValueRange(tuple(-h - 1 for h in a.highs), tuple(-x - 1 for x in a.lows))
            case "bit_and" | "bit_or" | "bit_xor" | "shift_right":
                return self._bits(fn, a, b, ranges)
            case _:
                return ValueRange()

    def _bits(self, fn: str, a: ValueRange, b: ValueRange, ranges: Mapping[str, Affine]) -> ValueRange:
        """Return the range of an operator on the bits of two values. One that may move out of 64 bits has none."""
        positive = [r for r in (a, b) if any(self._holds(x, ranges) for x in r.lows)]
        zero = (Affine.of(0),)
        match fn:
            case "bit_and" if positive:
                return ValueRange(zero, _few(h for r in positive for h in r.highs))
            case "bit_or" if len(positive) == 2:
                return ValueRange(_few((*a.lows, *b.lows)), _sums(a.highs, b.highs))
            case "bit_xor" if len(positive) == 2:
                return ValueRange(zero, _sums(a.highs, b.highs))
            case "shift_right" if b.lows == b.highs and len(b.lows) == 1 and b.lows[0].constant in range(63):
                by = 1 << (b.lows[0].constant or 0)
                most = (*(x // by for x in a.highs), *(a.highs if a in positive else ()))
                return ValueRange(tuple(x // by for x in a.lows), _few(most))
            case "shift_right" if a in positive:
                return ValueRange(zero, a.highs)
            case _:
                return ValueRange()

    def _position(self, e: Reduce) -> ValueRange:
        size = Affine.of(1)
        for axis in e.axes:
            match axis:
                case Axis() if not axis.extent.indices():
                    size = size * axis.extent
                case GroupAxis():
                    size = size * GroupSize(axis.name)
                case _:
                    return ValueRange((Affine.of(0),))
        return ValueRange((Affine.of(0),), (size - 1,))

    def _defined(self, name: str) -> ValueRange:
        """Return the range of the elements of a temporary or output: bounds without an index."""
        if name not in self.known:
            self.known[name] = ValueRange()
            statement = self.op.assignments[name]
            ranges = ranges_of(statement, self.op.operand(name))
            found = self._range_under((), statement.value, ranges)
            prover = self.knowledge.prover(ranges)
            lows = (prover.least(x) if x.indices() else x for x in found.lows)
            highs = (prover.least(-x) if x.indices() else -x for x in found.highs)
            self.known[name] = ValueRange(tuple(x for x in lows if x is not None), tuple(-x for x in highs if x is not None))
        return self.known[name]

    def _least(self, a: tuple[Affine, ...], b: tuple[Affine, ...], ranges: Mapping[str, Affine]) -> tuple[Affine, ...]:
        """Return the bounds among two sets of lower bounds that are lower bounds of both."""
        return self._beyond(a, b, lambda x, y: self._holds(y - x, ranges))

    def _greatest(self, a: tuple[Affine, ...], b: tuple[Affine, ...], ranges: Mapping[str, Affine]) -> tuple[Affine, ...]:
        return self._beyond(a, b, lambda x, y: self._holds(x - y, ranges))

    @staticmethod
    def _beyond(a: tuple[Affine, ...], b: tuple[Affine, ...], holds: Callable[[Affine, Affine], bool]) -> tuple[Affine, ...]:
        found = [x for x in a if any(holds(x, y) for y in b)] + [y for y in b if any(holds(y, x) for x in a)]
        return _few(found)


def _few(bounds: Iterable[Affine]) -> tuple[Affine, ...]:
    return tuple(dict.fromkeys(bounds))[:_MAX_BOUNDS]


def _sums(a: tuple[Affine, ...], b: tuple[Affine, ...]) -> tuple[Affine, ...]:
    return _few(x + y for x in a for y in b)


def without_needless_checks(op: Op) -> Op:
    """Return the op with reads at data-dependent indices unchecked where the index is proved inside."""
    values = Values(op)

    def visit(e: Expr, ranges: Mapping[str, Affine]) -> Expr:
        inner = ranges
        if isinstance(e, Reduce):
            inner = {**ranges, **e.extents}
        e = with_children(e, tuple(visit(c, inner) for c in children(e)))
        if not isinstance(e, Read) or not e.checked:
            return e
        dims = op.operand(e.operand).dims
        left = tuple(k for k in e.checked if not _inside(e.indices[k], dims[k], ranges))
        return replace(e, checked=left)

    def _inside(index: Affine | GroupRef | Expr, dim: Affine | Group, ranges: Mapping[str, Affine]) -> bool:
        known = not isinstance(index, Affine | GroupRef) and isinstance(dim, Affine)
        return known and values.within(index, dim, ranges)  # type: ignore[arg-type]  # `known` narrows both

    body = tuple(replace(s, value=visit(s.value, ranges_of(s, op.operand(s.target)))) for s in op.body)
    return replace(op, body=body)
