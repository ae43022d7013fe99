"""Columns that a block of rows can leave out: a condition on the indices, such as `j <= i`, drops them in every row of the block.

A score is replaced with -inf there, its exponential is 0, and so is what it adds to sums. The rule looks at what statements say,
and asks for no op by name: a conditional whose other side is -inf, the maximum of a row, exponentials less a shift that this
maximum gives, and sums of these, alone or times an operand. Where an operand has an infinity or NaN, 0 times that is no 0: it is
looked for when the op runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, Call, Const, Expr, IndexValue, Read, Reduce, Select, walk
from opc.ir.op import Assign, Op, Operand
from opc.lower.contractions.narrow import as_stored
from opc.lower.loop_ir import FusedRows, NeededColumns

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
            dropped = _Dropped(op, rows, dim, s)
            return NeededColumns(dim, count, tuple(dropped.finite), tuple(dropped.after)) if dropped.all_told() else None
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


class _Dropped:
    """What the statements of an op make of the points of an axis at which the target of one statement, `least`, is -inf.

    `finite` are the inputs and `after` the temporaries without which nothing is missed if they are finite.
    """

    def __init__(self, op: Op, rows: FusedRows, dim: str, least: Assign) -> None:
        self.op, self.rows, self.dim, self.least = op, rows, dim, least.target
        self.places = least.indices
        assert isinstance(least.value, Select), "a condition drops the points"
        self.kept = gap(least.value.cond)
        self.finite: dict[str, None] = {}
        self.after: dict[str, None] = {}

    def all_told(self) -> bool:
        """Whether nothing is missed where all these operands are finite."""
        size = Affine.of(Dim(self.dim))
        outputs = [o for o in self.op.outputs if any(size.atoms() & d.atoms() for d in o.dims if isinstance(d, Affine))]
        if not all(o.dims.count(size) == 1 and self._begins_with_columns(o, size) for o in outputs):
            return False
        nothing: dict[str, None] = {}
        for s in self.op.body:
            if not all(self._plain(s, e) for e in walk(s.value)):
                return False
            if self._vanishes(s):
                nothing[s.target] = None
            for e in walk(s.value):
                over = isinstance(e, Reduce) and any(isinstance(a, Axis) and a.extent == size for a in e.axes)
                if over and isinstance(e, Reduce) and not (self._missed(e, nothing) or self._kept_alone(s, e)):
                    return False
            if any(s.target == o.name for o in outputs) and not self._adds_nothing(s, nothing):
                return False
        return True

    def _begins_with_columns(self, o: Operand, size: Affine) -> bool:
        """Whether blocks add up an output of which they have a line of columns, with whatever is behind that."""
        if self.rows.places is None or self.rows.has(o.name):
            return False
        return set(range(o.dims.index(size))) <= self.rows.places.axes[o.name].keys()

    def _plain(self, s: Assign, e: Expr) -> bool:
        """Whether an expression does not count the points of the axis, and reads what has it by an index that runs over it."""
        size = Dim(self.dim)
        match e:
            case IndexValue():
                return size not in e.value.atoms()
            case Reduce():
                extents = e.extents.values()
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

    def _vanishes(self, s: Assign) -> bool:
        """Whether a value is 0 where the least is -inf: its exponential, less what the maximum of the row gives, or what the same
        condition makes 0.

        Where that maximum is NaN or infinite, the exponential is not 0 but NaN, and so it is at a column that is needed.
        """
        match s.value:
            case Call(fn="exp", args=(Call(fn="sub", args=(Read() as read, Read() as shift)),)):
                return read.operand == self.least and self._shifts(shift.operand)
            case Select(cond=cond, other=Const(value=0)):
                f, names = gap(cond), dict(zip(s.indices, self.places, strict=False))
                same = self.op.operand(s.target).dims == self.op.operand(self.least).dims
                return same and f is not None and f.rename({str(a): str(b) for a, b in names.items()}) == self.kept
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

    def _missed(self, e: Reduce, nothing: Mapping[str, None]) -> bool:
        """Whether a reduction over the axis can do without what is dropped, where all that must be is finite."""
        if len(e.axes) != 1:
            return False
        match e.kind, e.body:
            case "max", Read() as read if read.operand == self.least:
                return True
            case "sum", Read() as read if read.operand in nothing:
                return True
            case "sum", Call(fn="mul", args=(left, right)):
                a, b = as_stored(left), as_stored(right)
                return a is not None and b is not None and self._is_zero(a, b, nothing, inputs_alone=True)
        return False

    def _kept_alone(self, s: Assign, e: Reduce) -> bool:
        """Whether a statement is a sum over rows and columns that the same condition keeps."""
        if self.rows.has(s.target) or e is not s.value or e.kind != "sum":
            return False
        match e.body:
            case Select(cond=cond, other=Const(value=0)):
                dims = self.op.operand(self.least).dims
                sizes = {
                    Affine.of(Dim(self.rows.dim)): self.rows.at,
                    Affine.of(Dim(self.dim)): dims.index(Affine.of(Dim(self.dim))),
                }
                bound = [a for a in e.axes if isinstance(a, Axis) and a.extent in sizes]
                names = {a.index: str(self.places[sizes[a.extent]]) for a in bound}
                f = gap(cond)
                return len(bound) == len(sizes) and f is not None and f.rename(names) == self.kept
            case _:
                return False

    def _adds_nothing(self, s: Assign, nothing: Mapping[str, None]) -> bool:
        """Whether rows add 0 to a sum over them at the points that are dropped."""
        match s.value:
            case Reduce(kind="sum", body=Call(fn="mul", args=(left, right))):
                a, b = as_stored(left), as_stored(right)
                return a is not None and b is not None and self._is_zero(a, b, nothing, inputs_alone=False)
            case _:
                return False

    def _is_zero(self, a: Read, b: Read, nothing: Mapping[str, None], inputs_alone: bool) -> bool:
        """Whether a product is 0 where points are dropped: the other factor must be finite, an input or what has no such axis."""
        inputs = {o.name for o in self.op.inputs if not o.optional}
        for zero, other in ((a, b), (b, a)):
            if zero.operand not in nothing:
                continue
            if not is_floating(other.type):
                return True
            if other.operand in inputs:
                self.finite[other.operand] = None
                return True
            size, dims = Dim(self.dim), self.op.operand(other.operand).dims
            if not inputs_alone and not any(size in d.atoms() for d in dims if isinstance(d, Affine)):
                self.after[other.operand] = None
                return True
        return False
