"""Brings an op's body into the form that array programs take: reductions over boxes.

`sum[k:i + 1](f(k))` runs over another range at each point. An array has one size an axis, so the reduction is said as one over
the largest range there is, of what is left out where `k < i + 1` does not hold: 0 for a sum, -inf for a maximum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.largest import largest
from opc.analysis.bounds.prover import Prover
from opc.analysis.patterns import conjunction, is_number
from opc.emit.arrays.frames import NotExpressible
from opc.ir.affine import Affine, AttrInt, FloorDiv, Index, count_flag_values, flag_values, maximum
from opc.ir.dtypes import DType, ValueType, Weak, is_bool, is_floating
from opc.ir.expr import Axis, Call, Cast, Const, Expr, IndexValue, Reduce, ReduceAxis, Select
from opc.ir.identity import IDENTITY
from opc.ir.op import Op
from opc.records import replace

_MOST_VALUES = 16
"""How many cases of the values of bool and str attributes are distinguished, as of four bool attributes. With more, what depends
on some is left undecided."""


def _flags(*expressions: Affine) -> list[AttrInt]:
    return sorted({a for f in expressions for a in f.atoms() if isinstance(a, AttrInt) and a.flag})


class Boxes:
    """What is known of one op's ranges: facts from its checks and requirements."""

    def __init__(self, op: Op) -> None:
        self.known = knowledge_of(op)
        self._differ: dict[Affine, bool] = {}
        self.sizes = {d for o in (*op.inputs, *op.outputs) for d in o.dims if isinstance(d, Affine)}

    def boxed(self, e: Reduce, ranges: Mapping[str, Affine]) -> Reduce:
        """Return a reduction over ranges that are the same at all points; `ranges` are those of the indices around it.

        Raises:
            NotExpressible: when the largest range of the reduction is not known.
        """
        axes, conditions, inner = list[ReduceAxis](), list[Expr](), dict(ranges)
        for axis in e.axes:
            if isinstance(axis, Axis):
                if axis.extent.indices():
                    index = IndexValue(Affine.of(Index(axis.index)))
                    conditions.append(Call("lt", (index, IndexValue(axis.extent)), DType.BOOL))
                    axis = replace(axis, extent=self.largest(axis.extent, inner))
                inner[axis.index] = axis.extent
            axes.append(axis)
        if not conditions:
            return e
        other = neutral_of(e.kind, e.body.type)
        return replace(e, axes=tuple(axes), body=Select(conjunction(conditions), e.body, other, e.body.type))

    def largest(self, extent: Affine, ranges: Mapping[str, Affine]) -> Affine:
        """Return a bound of an extent over the ranges of the indices in it.

        Raises:
            NotExpressible: when none is found.
        """
        bound = largest(self.known, extent, ranges)
        if bound is None:
            raise NotExpressible(f"the range of a reduction, {extent}, has no bound that is known")
        return bound

    def is_size(self, extent: Affine) -> bool:
        """Whether an extent that is the same at all points is not negative: an input or output has it, or it is proved."""
        return extent in self.sizes or self.known.nonnegative(extent, {})

    def is_divisor(self, value: Affine) -> bool:
        """Whether a divisor is not 0 even where nothing is computed. A size that an index runs over may be 0 there."""
        return self.known.nonnegative(value - 1, {}) or self.known.nonnegative(-value - 1, {})

    def is_downward(self, value: Affine) -> bool:
        """Whether a divisor is less than 0 where something is computed."""
        return self.known.nonnegative(-value, {})

    def scan_size(self, extent: Affine, size: Affine, ranges: Mapping[str, Affine]) -> Affine:
        """Return the number of elements to scan of which an extent uses the first: `size`, where these are enough.

        Raises:
            NotExpressible: when the largest range is not known.
        """
        if self.known.nonnegative(size - extent, ranges):
            return size
        largest = self.largest(extent, ranges)
        return largest if self.is_size(largest) else maximum(largest, Affine.of(0))

    def is_never_empty(self, extent: Affine, ranges: Mapping[str, Affine], guards: Iterable[Expr] = ()) -> bool:
        """Whether an extent is proved greater than 0 at every point of the ranges where the guards hold."""
        return self.known.nonnegative(extent - 1, ranges, [(g, True) for g in guards])

    def groups_of(self, extent: Affine, size: Affine) -> Affine | None:
        """Return how many groups of a size an extent is, None where the size is not known to divide it."""
        plain = self.known.plain
        inner = self.known.expand(size).single
        # Where there is nothing, the whole divided by the size is no such count: that is what it was divided by.
        counts = [inner.denominator] if isinstance(inner, FloorDiv) else []
        counts += [self.known.expand(extent) // size, extent // size]
        return next((c for c in counts if plain(c * size - extent) == Affine.of(0)), None)

    def is_equal(self, a: Affine, b: Affine) -> bool:
        """Whether two sizes are known to be the same."""
        return self.known.plain(a - b) == Affine.of(0)

    def differs(self, extent: Affine, dim: Affine) -> bool:
        """Whether an index may run over another number of places than an axis has.

        Of sizes that a flag decides, those that do not fit are not meant: with them the index would go past the end.
        """
        if extent == dim:
            return False
        difference = self.known.plain(extent - dim)
        if difference not in self._differ:
            self._differ[difference] = self._may_differ(difference)
        return self._differ[difference]

    def _may_differ(self, difference: Affine) -> bool:
        facts = self.known.prover({}).facts
        flags = _flags(difference, *facts)
        if count_flag_values(flags) > _MOST_VALUES:
            flags = _flags(difference)
            while count_flag_values(flags) > _MOST_VALUES:
                flags.pop()
        alike = False
        for known in flag_values(flags):
            decided = difference.substitute(known.get)
            case = Prover(tuple(f.substitute(known.get) for f in facts))
            shorter, longer = case.nonnegative(-decided), case.nonnegative(decided)
            if shorter and not longer:
                return True
            alike |= shorter and longer
        return not alike

    def is_inside(self, index: Affine, size: Affine, ranges: Mapping[str, Affine]) -> bool:
        """Whether an index is proved to stand inside an axis at every point of the ranges, whatever conditions stand around."""
        return self.known.nonnegative(index, ranges) and self.known.nonnegative(size - 1 - index, ranges)


def neutral_of(kind: str, body: ValueType) -> Const:
    """Return what an element that takes no part counts for."""
    value = IDENTITY[kind.removeprefix("arg")]
    if isinstance(value, bool):
        return Const(value, DType.BOOL)
    if isinstance(value, int):
        return Const(value, Weak.INT)
    if is_bool(body):
        return Const(value > 0, DType.BOOL)
    return Const(value, Weak.FLOAT if is_floating(body) else DType.INT64 if body is Weak.INT else body)


def extents_of(e: Reduce) -> list[Affine]:
    """Return the extent of each axis of a reduction, of a group its number of points."""
    return [a.size for a in e.axes]


def part_of_sum(e: Reduce, body: Expr) -> Expr:
    """Return a sum of some of its terms, in its type: numbers among them are summed in it too."""
    if is_number(body, 0):
        return body
    return replace(e, body=Cast(body, e.type) if isinstance(body.type, Weak) and not isinstance(e.type, Weak) else body)
