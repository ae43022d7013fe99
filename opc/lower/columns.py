"""Columns that a block of rows can leave out: a condition on the indices, such as `j <= i`, drops them in every row of the block.

A score is replaced with -inf there, its exponential is 0, and so is what it adds to sums. The rule looks at what statements say,
and asks for no op by name: a conditional whose other side is -inf, the maximum of a row, exponentials less a shift that this
maximum gives, and sums of these, alone or times an operand. Where an operand has an infinity or NaN, 0 times that is no 0: it is
looked for when the op runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.expr import Axis, Call, Const, Expr, IndexValue, Read, Reduce, Select, walk
from opc.ir.op import Assign, Op
from opc.lower.loop_ir import FusedRows, NeededColumns
from opc.records import dataclass

_MINUS_INFINITY = float("-inf")


def needed_columns(op: Op, rows: FusedRows) -> NeededColumns | None:
    """Return the columns that a block of rows needs, by sizes of the call in which the axis of `rows` has the block's rows.

    None where no condition drops any, or what is dropped would be missed. An op that counts the columns asks for their whole
    number: what it would count in a block are those that are left.
    """
    for s in op.body:
        found = _dropping(op, s, rows)
        if found is not None:
            dim, count = found
            if Dim(dim) in count.atoms():
                return None
            finite = _Dropped(op, dim, s.target).finite()
            return None if finite is None else NeededColumns(dim, count, finite)
    return None


def dropped_axis(op: Op, rows: FusedRows) -> str | None:
    """Return the axis, by its size, of which a condition may drop points in all rows of a block; None where there is none."""
    return next((found[0] for s in op.body if (found := _dropping(op, s, rows)) is not None), None)


def _dropping(op: Op, s: Assign, rows: FusedRows) -> tuple[str, Affine] | None:
    """Return the axis of which a statement drops points in all rows from some point on, by its size, and that point."""
    if not (isinstance(s.value, Select) and isinstance(s.value.other, Const) and s.value.other.value == _MINUS_INFINITY):
        return None
    row = s.indices[rows.at]
    f = gap(s.value.cond)
    if f is None or not isinstance(row, str):
        return None
    for index, size in zip(s.indices, op.operand(s.target).dims, strict=True):
        dim = size.single if isinstance(size, Affine) else None
        if not isinstance(index, str) or index == row or not isinstance(dim, Dim) or f.indices() != {index, row}:
            continue
        times = f.coefficient(row)
        rises = None if times is None else times.constant
        if rises is None or f.coefficient(index) != Affine.of(-1):
            return None
        last = Affine.of(Dim(rows.dim)) - 1 if rises > 0 else Affine.of(0)
        ends: Mapping[Symbol, Affine] = {Index(row): last, Index(index): Affine.of(0)}
        return dim.name, f.substitute(ends.get) + 1
    return None


def gap(condition: Expr) -> Affine | None:
    """Return f of a condition that says f >= 0 and nothing else."""
    if not (isinstance(condition, Call) and condition.fn in ("ge", "gt", "le", "lt")):
        return None
    sides = [a.value if isinstance(a, IndexValue) else _whole(a) for a in condition.args]
    if sides[0] is None or sides[1] is None:
        return None
    f = sides[0] - sides[1] if condition.fn in ("ge", "gt") else sides[1] - sides[0]
    return f - 1 if condition.fn in ("gt", "lt") else f


def _whole(e: Expr) -> Affine | None:
    return Affine.of(e.value) if isinstance(e, Const) and type(e.value) is int else None


@dataclass(slots=True)
class _Dropped:
    """What the statements of an op make of the points of an axis at which `least` is -inf."""

    op: Op
    dim: str
    least: str

    def finite(self) -> tuple[str, ...] | None:
        """Return the operands without which nothing is missed if they are finite, None where something is missed all the same."""
        size = Affine.of(Dim(self.dim))
        if any(size.atoms() & d.atoms() for o in self.op.outputs for d in o.dims if isinstance(d, Affine)):
            return None
        nothing: dict[str, None] = {}
        finite: dict[str, None] = {}
        for s in self.op.body:
            if not all(self._plain(s, e) for e in walk(s.value)):
                return None
            if self._vanishes(s.value):
                nothing[s.target] = None
            for e in walk(s.value):
                if isinstance(e, Reduce) and any(isinstance(a, Axis) and a.extent == size for a in e.axes):
                    factors = self._missed(e, nothing)
                    if factors is None:
                        return None
                    finite |= dict.fromkeys(factors)
        return tuple(finite)

    def _plain(self, s: Assign, e: Expr) -> bool:
        """Whether an expression does not count the points of the axis, and reads what has it by an index that runs over it."""
        size = Dim(self.dim)
        match e:
            case IndexValue():
                return size not in e.value.atoms()
            case Reduce():
                extents = [a.extent for a in e.axes if isinstance(a, Axis)]
                return all(x == Affine.of(size) or size not in x.atoms() for x in extents)
            case Read():
                over = self._over(s)
                pairs = zip(e.indices, self.op.operand(e.operand).dims, strict=True)
                places = [(i, d) for i, d in pairs if isinstance(d, Affine) and size in d.atoms()]
                counted = any(isinstance(i, Affine) and size in i.atoms() for i in e.indices)
                return not counted and all(d == Affine.of(size) and isinstance(i, Affine) and i in over for i, d in places)
            case _:
                return True

    def _over(self, s: Assign) -> list[Affine]:
        """Return the indices of a statement that run over the axis."""
        size = Affine.of(Dim(self.dim))
        names = [i for i, d in zip(s.indices, self.op.operand(s.target).dims, strict=True) if isinstance(i, str) and d == size]
        axes = (a for e in walk(s.value) if isinstance(e, Reduce) for a in e.axes)
        names += [a.index for a in axes if isinstance(a, Axis) and a.extent == size]
        return [Affine.of(Index(name)) for name in names]

    def _vanishes(self, value: Expr) -> bool:
        """Whether a value is 0 where the least is -inf: its exponential, less what the maximum of the row gives.

        Where that is NaN or infinite, the exponential is not 0 but NaN, and so it is at a column that is needed.
        """
        match value:
            case Call(fn="exp", args=(Call(fn="sub", args=(Read() as read, Read() as shift)),)):
                return read.operand == self.least and self._shifts(shift.operand)
            case _:
                return False

    def _shifts(self, name: str) -> bool:
        """Whether an operand is the maximum of the row, or that and a number where it is infinite."""
        value = next((s.value for s in self.op.body if s.target == name), None)
        match value:
            case Reduce(kind="max", axes=(Axis() as axis,), body=Read() as read):
                return read.operand == self.least and axis.extent == Affine.of(Dim(self.dim))
            case Select(cond=Call(fn="isinf", args=(Read() as asked,)), then=Const(), other=Read() as other):
                return asked.operand == other.operand and self._shifts(other.operand)
            case _:
                return False

    def _missed(self, e: Reduce, nothing: Mapping[str, None]) -> Iterator[str] | None:
        """Return the inputs that must be finite for a reduction over the axis to do without what is dropped; None if it can't."""
        if len(e.axes) != 1:
            return None
        match e.kind, e.body:
            case "max", Read() as read if read.operand == self.least:
                return iter(())
            case "sum", Read() as read if read.operand in nothing:
                return iter(())
            case "sum", Call(fn="mul", args=(Read() as a, Read() as b)):
                inputs = {o.name for o in self.op.inputs if not o.optional}
                for zero, other in ((a, b), (b, a)):
                    if zero.operand in nothing and other.operand in inputs:
                        return iter((other.operand,))
        return None
