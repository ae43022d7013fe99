"""Statements that are no stage of rows, as steps on tensors where they can be.

That is so where each axis that is read lies along one loop: as it is, in steps, backwards, shifted, or repeated. Reductions
become steps of their own; one over a range that depends on an index runs over the whole axis, and what is beyond counts for
nothing.
"""

from __future__ import annotations

import math

from opc.ir.affine import Affine, Dim, FloorDiv, GroupSize, Index
from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import (
    SEARCHES,
    Axis,
    Call,
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
    free_groups,
    free_indices,
    has_reduction,
    reads,
    walk,
    with_children,
)
from opc.ir.identity import IDENTITY
from opc.ir.op import Group, Op
from opc.lower.build.context import UnsupportedForm
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, NestStage
from opc.lower.nest_plans import ScanPlan, ScatterPlan
from opc.lower.nests.flat import is_positive
from opc.lower.poplar.needs import Needs
from opc.lower.poplar.nodes import Along, Picked, Refuse, Step, Store, Taken, TensorStage, View
from opc.lower.poplar.nodes import Reduce as Reduced
from opc.lower.poplar.views import check_value
from opc.transform.indices import Namer, index_names, op_names, substitute


def nest_steps(op: Op, stage: NestStage, needs: Needs) -> TensorStage:
    """Return a statement as steps on tensors.

    Raises:
        UnsupportedForm: when it reads what is no view of a tensor, scatters, scans or searches.
    """
    if any(isinstance(p, ScatterPlan | ScanPlan) for p in stage.plans):
        raise UnsupportedForm("it scatters or scans")
    if stage.sum is not None:
        raise UnsupportedForm("it is summed over all points")
    return _Nest(op, stage, needs).steps()


class _Nest:
    def __init__(self, op: Op, stage: NestStage, needs: Needs) -> None:
        self.op, self.stage, self.assign = op, stage, stage.assign
        self.target = op.operand(stage.assign.target)
        self.needed = needs.of((self.target.name,))
        self.users = Needs.outputs_behind(op, self.target.name)
        self.namer = Namer(op_names(op) | index_names(op))
        self.loops: list[Loop] = []
        self.places: dict[str, int] = {}
        self.outer = 0
        self.views: dict[tuple[str, tuple[Along | Picked, ...]], View] = {}
        self.found: list[Step] = []
        for entry, dim in zip(self.assign.indices, self.target.dims, strict=True):
            if isinstance(dim, Group) and dim.of is not None:
                raise UnsupportedForm("its target has axes of its own")
            self._add(str(entry), GroupLoop(dim.name) if isinstance(dim, Group) else IndexLoop(str(entry), dim))
        self.outer = len(self.loops)

    def steps(self) -> TensorStage:
        """Return the stage."""
        value = self._value(self.assign.value, False)
        check_value(value)
        target = View(self.target.name, self.target.name, tuple(Along(n) for n in range(self.outer)))
        store = Store(target, self.target.type, value, self.assign, needed=self.needed)
        values = (value, *(s.value for s in self.found if isinstance(s, Reduced)))
        numbers = {i for v in values for i in _numbers(v)}
        indices = tuple((name, self.places[name]) for name in self.places if name in numbers)
        views = tuple(self.views.values())
        return TensorStage(self.stage.name, tuple(self.loops), views, indices, (*self.found, store))

    def _add(self, name: str, loop: Loop) -> int:
        """Return the position of a loop, which a reduction may share with an earlier one."""
        known = self.places.get(name)
        if known is not None:
            if known < self.outer or self.loops[known] != loop:
                raise UnsupportedForm(f"two loops over {name}")
            return known
        self.places[name] = len(self.loops)
        self.loops.append(loop)
        return self.places[name]

    def _value(self, e: Expr, conditional: bool) -> Expr:
        """Return a value with reads of views, and of the results of its reductions."""
        match e:
            case Read():
                return self._read(e)
            case Reduce():
                return self._reduce(e, conditional)
            case Select():
                cond = self._value(e.cond, conditional)
                return with_children(e, (cond, self._value(e.then, True), self._value(e.other, True)))
            case Call(fn="and" | "or"):
                first, second = e.args
                return with_children(e, (self._value(first, conditional), self._value(second, True)))
            case _:
                return with_children(e, tuple(self._value(c, conditional) for c in children(e)))

    # ---- reads ----

    def _read(self, e: Read) -> Read:
        if e.checked:
            raise UnsupportedForm(f"an index of {e.operand} is checked")
        fill = 0.0
        if e.pad is not None:
            if not isinstance(e.pad, Const) or len(e.indices) != sum(not isinstance(i, GroupRef) for i in e.indices):
                raise UnsupportedForm(f"{e.operand} is padded with what is no number")
            fill = float(e.pad.value)
        axes = tuple(
            self._axis(e, index, dim, fill) for index, dim in zip(e.indices, self.op.operand(e.operand).dims, strict=True)
        )
        if e.pad is not None and any(isinstance(a, Picked) for a in axes):
            raise UnsupportedForm(f"{e.operand} is padded along an axis of one element")
        along = [a.loop for a in axes if isinstance(a, Along)]
        if len(set(along)) < len(along):
            raise UnsupportedForm(f"{e.operand} is read along a diagonal")
        key = e.operand, axes
        if key not in self.views:
            taken = {v.name for v in self.views.values()}
            name = self.namer.fresh(e.operand) if e.operand in taken else e.operand
            self.views[key] = View(name, e.operand, axes)
        return Read(self.views[key].name, (), e.type)

    def _axis(self, e: Read, index: object, dim: Affine | Group, fill: float) -> Along | Picked:
        if isinstance(index, GroupRef):
            if not isinstance(dim, Group) or str(index) not in self.places:
                raise UnsupportedForm(f"{index} is no loop")
            return Along(self.places[str(index)], GroupLoop(dim.name, dim.of) if dim.of else None)
        if not isinstance(index, Affine) or isinstance(dim, Group):
            raise UnsupportedForm(f"{e.operand} is read at indices that are data")
        if not index.indices():
            return Picked(index)
        if index.index is not None and index.index in self.places:
            loop = self.loops[self.places[index.index]]
            assert isinstance(loop, IndexLoop), "indices run along single axes"
            if loop.extent == dim:
                return Along(self.places[index.index])
        return self._taken(e, index, fill)

    def _taken(self, e: Read, index: Affine, fill: float) -> Along:
        divisor, inside = Affine.of(1), index
        if isinstance(index.single, FloorDiv):
            divisor, inside = index.single.denominator, index.single.numerator
        names = inside.indices()
        if len(names) != 1 or divisor.indices():
            raise UnsupportedForm(f"{e.operand} is read in windows")
        (name,) = names
        step = inside.coefficient(name)
        if step is None or name not in self.places:
            raise UnsupportedForm(f"{e.operand} is read in steps")
        offset = inside - step * Affine.of(Index(name))
        return Along(self.places[name], taken=Taken(step, offset, divisor, fill))

    # ---- reductions ----

    def _reduce(self, e: Reduce, conditional: bool) -> Expr:
        if e.kind in SEARCHES or has_reduction(e.body):
            raise UnsupportedForm("it searches, or reduces what is reduced")
        body, over = e.body, list[int]()
        for axis in e.axes:
            match axis:
                case Axis():
                    body, place = self._along(e, axis, body, conditional)
                    over.append(place)
                case GroupAxis():
                    over.append(self._add(str(axis), GroupLoop(axis.name)))
                case _:
                    raise UnsupportedForm("a sum over the axes that an operand lacks")
        if e.kind in _EXTREMES:
            self._nonempty(e, tuple(over), conditional)
        self._covered(body)
        # What is asked for is asked for inside of the reduction alone.
        value = self._value(body, True)
        check_value(value)
        name = self.namer.fresh(f"{self.target.name}_{e.kind}")
        self.found.append(Reduced(name, e.type, e.kind, value, tuple(over), self.assign, self.needed))
        return Read(name, (), e.type)

    def _along(self, e: Reduce, axis: Axis, body: Expr, conditional: bool) -> tuple[Expr, int]:
        """Return what is reduced, and the position of the loop; beyond a range of the axis's own it counts for nothing."""
        index, extent, ragged = axis.index, axis.extent, bool(axis.extent.indices())
        if ragged:
            sizes = {
                dim
                for r in reads(body)
                for i, dim in zip(r.indices, self.op.operand(r.operand).dims, strict=True)
                if isinstance(i, Affine) and i.index == index and isinstance(dim, Affine)
            }
            if len(sizes) != 1 or e.kind not in _NUMBERS or not extent.indices() <= self.places.keys():
                raise UnsupportedForm("a range that depends on an index, and bounds no axis")
            if e.kind in _EXTREMES and (conditional or not _at_least_one(extent)):
                raise UnsupportedForm("a range that may be empty")
            extent = sizes.pop()
        known = self.places.get(index)
        if known is not None and (known < self.outer or self.loops[known] != IndexLoop(index, extent)):
            index = self.namer.fresh(index)
            body = substitute(body, {axis.index: Affine.of(Index(index))})
        place = self._add(index, IndexLoop(index, extent))
        if ragged:
            inside = Call("lt", (IndexValue(Affine.of(Index(index))), IndexValue(axis.extent)), DType.BOOL)
            body = Select(inside, body, Const(_identity(e.kind, e.body.type), e.body.type), e.body.type)
        return body, place

    def _nonempty(self, e: Reduce, over: tuple[int, ...], conditional: bool) -> None:
        """Refuse a call in which the greatest of nothing is asked for."""
        for axis, place in zip(e.axes, over, strict=True):
            if isinstance(axis, Axis) and (axis.extent.indices() or is_positive(self.op, axis.extent)):
                continue
            if conditional:
                raise UnsupportedForm("a range that may be empty is asked for at some points")
            name = axis.index if isinstance(axis, Axis) else str(axis)
            text = f"{self.op.name}: {e.kind} over {name} of nothing: its size is 0"
            self.found.append(Refuse(text, (place,), tuple(range(self.outer)), self.users))

    def _covered(self, body: Expr) -> None:
        """Refuse what would need more memory than all that it reads: a value at more points than any operand has."""
        own = free_indices(body) | {str(GroupRef(g)) for g in free_groups(body)}
        for r in reads(body):
            if own <= {n for i in r.indices for n in (i.indices() if isinstance(i, Affine) else (str(i),))}:
                return
        raise UnsupportedForm("a reduction over more points than an operand has")


_EXTREMES = ("max", "min")
_NUMBERS = ("sum", "prod", *_EXTREMES)


def _identity(kind: str, t: ValueType) -> int | float:
    """Return what a reduction of numbers starts with."""
    value = float(IDENTITY[kind])
    if t in (DType.FLOAT32, DType.FLOAT64) or not isinstance(t, DType | Weak):
        return value
    if math.isinf(value):
        raise UnsupportedForm("the greatest of whole numbers in a range of an index")
    return int(value)


def _at_least_one(extent: Affine) -> bool:
    """Whether a range of an index is never empty: one more than what is not negative."""
    rest = extent - 1
    sizes = all(isinstance(a, Index | Dim | GroupSize) for m, _ in rest.terms for a in m)
    return sizes and all(coefficient >= 0 for _, coefficient in rest.terms)


def _numbers(e: Expr) -> set[str]:
    """Return the loops whose index a value uses as a number."""
    found: set[str] = set()
    for n in walk(e):
        if isinstance(n, GroupIndex):
            found.add(str(GroupRef(n.group)))
        elif isinstance(n, IndexValue):
            found |= n.value.indices()
    return found
