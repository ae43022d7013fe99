"""Points of one statement that threads take several of at once: neighbours along an entry of the target, 16 bytes of an operand.

What is read along that entry is read so that neighbours lie together, as rows that a gather picks are; all else is the same for
them. A call decides by sizes, strides and addresses whether its points are taken in packs, or one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Call,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    Present,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    reads,
    walk,
)
from opc.ir.op import Group, Op
from opc.loops.nodes import Body, Do, How, If, Kernel, Let, Loop, Refuse, Statement, Store, Var
from opc.loops.packs import COUNT
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import (
    Address,
    Block,
    Construct,
    Load,
    Local,
    Member,
    Named,
    StoredType,
    Word,
    call,
    number,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.points import DevicePoints, is_uniform, point_kernel, used_places
from opc.lower.loop_ir import NestStage
from opc.records import replace


def packed_entry(nest: Nest) -> int | None:
    """Return the entry of a statement's target that threads take neighbours along, None where there is none.

    It is the last one, or where that is a group the index before it, which neighbours lie along where the group has one point.
    """
    value, indices = nest.stage.assign.value, nest.stage.assign.indices
    if not indices or any(isinstance(e, Reduce | GroupIndex) for e in walk(value)):
        return None
    last = len(indices) - 1
    entries = (
        [last - 1, last] if last > 0 and isinstance(indices[last], GroupRef) and isinstance(indices[last - 1], str) else [last]
    )
    return next((n for n in entries if _packs(nest, n)), None)


def along(nest: Nest, entry: int) -> tuple[str, ...]:
    """Return the operands that have neighbours along an entry of the target, the target among them."""
    found = (r.operand for r in reads(nest.stage.assign.value) if _own_place(nest, r, entry) is not None)
    return (*dict.fromkeys(found), nest.stage.assign.target)


def _packs(nest: Nest, entry: int) -> bool:
    """Whether all that is read along an entry is read in neighbours wherever the value is made; a copy has none to be made of."""
    return always_packed(nest, nest.stage.assign.value, entry)


def always_packed(nest: Nest, value: Expr, entry: int) -> bool:
    """Whether all that a value reads along an entry of the target is read in neighbours, wherever the value is made."""
    index = _name(nest, entry)
    unconditional = {id(r) for r in _always_read(value)}
    some = False
    for r in reads(value):
        own = _own_place(nest, r, entry)
        if own is None:
            if index in {name for i in r.indices for name in _names_in(i)}:
                return False
            continue
        others = (name for n, i in enumerate(r.indices) if n != own for name in _names_in(i))
        if r.pad is not None or own in r.checked or index in others or id(r) not in unconditional:
            return False
        some = True
    return some


def _always_read(e: Expr) -> Iterator[Read]:
    """Yield what is read wherever a value is made."""
    match e:
        case Read():
            yield e
        case Select(cond=cond, then=then, other=other) if is_uniform(cond):
            # Where it is the same for all points which side is taken, packs of the other are read all the same, or are zeros.
            yield from (r for side in (then, other) for r in _always_read(side) if not r.checked and _is_placed(r))
        case Select(cond=cond):
            yield from _always_read(cond)
        case Call(fn="and" | "or", args=(first, *_)):
            yield from _always_read(first)
        case _:
            for c in children(e):
                yield from _always_read(c)


def _guards(e: Expr, under: tuple[Expr, ...] = ()) -> Iterator[tuple[Read, tuple[Expr, ...]]]:
    """Yield what a value reads, with the uniform conditions under which it does: elsewhere it may lie outside."""
    if isinstance(e, Read):
        yield e, under
    if isinstance(e, Select) and is_uniform(e.cond):
        yield from _guards(e.then, (*under, e.cond))
        yield from _guards(e.other, (*under, Call("not", (e.cond,), DType.BOOL)))
        return
    for c in children(e):
        yield from _guards(c, under)


def _guard(value: Expr, read: Read) -> Expr | None:
    """Return the condition under which a value makes a read anywhere, None where it always does."""
    found = dict.fromkeys(tuple(dict.fromkeys(under)) for r, under in _guards(value) if r == read)
    if not found or () in found:
        return None
    either, *others = (_joined("and", under) for under in found)
    return _joined("or", (either, *others))


def _joined(fn: str, conditions: Sequence[Expr]) -> Expr:
    """Return conditions joined by `and` or `or`."""
    first, *rest = conditions
    for other in rest:
        first = Call(fn, (first, other), DType.BOOL)
    return first


def _is_placed(r: Read) -> bool:
    """Whether no data tell where a read is."""
    return all(isinstance(i, Affine | GroupRef) for i in r.indices)


def _name(nest: Nest, entry: int) -> str:
    index = nest.stage.assign.indices[entry]
    return index.name if isinstance(index, GroupRef) else str(index)


def _names_in(index: Affine | GroupRef | Expr) -> frozenset[str]:
    if isinstance(index, GroupRef):
        return frozenset((index.name,))
    if isinstance(index, Affine):
        return index.indices()
    groups = {i.name for r in reads(index) for i in r.indices if isinstance(i, GroupRef)}
    return free_indices(index) | groups


def _own_place(nest: Nest, r: Read, entry: int) -> int | None:
    """Return the place of a read's index that is the entry's own; behind it there may be those of entries behind."""
    index = nest.stage.assign.indices[entry]
    behind = nest.stage.assign.indices[entry + 1 :]
    place = len(r.indices) - 1 - len(behind)
    if place < 0 or tuple(r.indices[place + 1 :]) != behind:
        return None
    own, dim = r.indices[place], nest.op.operand(r.operand).dims[place]
    if isinstance(index, GroupRef):
        return place if own == index and isinstance(dim, Group) and dim.of is None else None
    return place if own == Affine.of(Index(index)) else None


def packed_kernel(op: Op, stage: NestStage, entry: int) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    nest, single = Nest(op, stage), point_kernel(op, stage)
    comment, loop = single.body
    assert isinstance(loop, Loop), "points are taken in a loop"
    packs = PackedPoints(nest, entry).loop()
    steps = (*single.schedule.steps, Transformation("pack", ("16 bytes", _name(nest, entry))))
    return replace(single, body=(comment, *packs, replace(loop, low=Member("@nest", "packed"))), schedule=Schedule(steps))


class PackedPoints(DevicePoints):
    """Makes the loop over packs of points."""

    def __init__(self, nest: Nest, entry: int) -> None:
        super().__init__(nest)
        self.entry = entry
        self.first, self.lane = nest.fresh("first"), nest.fresh("lane")
        self.index = _name(nest, entry)
        self.start = nest.fresh(self.index)
        """The place of a pack's first point along the entry."""
        self.ahead: list[Statement] = []
        self.packs: dict[Read, str] = {}

    def loop(self) -> Body:
        """Return how many points a pack has, and the loop."""
        places = self.starts()
        value = self.value(self.stage.assign.value)
        body: Body = (*self.ahead, *self.stored_pack(tuple(self.lines), value))
        packed = Member("@nest", "packed")
        return self.count(), Loop(How.GRID, self.first, number(0), packed, used_places(places, body), step=Word(COUNT))

    def starts(self) -> tuple[Let, ...]:
        """Return the places of a pack's first point along the target's entries."""
        entries = range(len(self.stage.assign.indices))
        found = self.places({n: call("entry_place", NEST, variable(self.first), number(n)) for n in entries})
        return tuple(replace(p, name=self.start) if p.name == self.index else p for p in found)

    def count(self) -> Let:
        """Return the number of points of a pack."""
        types = tuple(StoredType(self.op.operand(name).type, name) for name in along(self.nest, self.entry))
        return Let(f"@{COUNT}", Named("constexpr int"), call("count_packed", types=types))

    def stored_pack(self, lines: Body, value: Expr) -> Body:
        """Return what stores a pack, given the value of an element and the statements that it needs."""
        target = self.nest.declared
        made, at = self.nest.fresh(f"{target.name}_pack"), Address(target.name, variable(self.first))
        store = Store(Local(made, target.type, variable(self.lane)), Construct(target.type, value))
        return (
            Var(made, Named("auto"), call("new_points", at, types=(COUNT,))),
            self.each((*lines, store)),
            Do(call("store_points", at, Local(made, target.type), types=(COUNT,))),
        )

    def each(self, body: Body) -> Statement:
        """Return the loop over the points of a pack, which knows their places along the entry where it uses them."""
        own = Let(self.index, Weak.INT, sum_of([variable(self.start), variable(self.lane)]))
        return Loop(How.UNROLLED, self.lane, number(0), Word(COUNT), used_places((own,), body))

    def read(self, e: Read) -> Expr:
        """As `PointLoops` says: of what lies along the entry an element of a pack, which is read ahead of the lanes."""
        own = _own_place(self.nest, e, self.entry)
        if own is None:
            return super().read(e)
        if e not in self.packs:
            at = e
            if self.index in self.stage.assign.indices:
                at = replace(e, indices=tuple(Affine.of(Index(self.start)) if n == own else i for n, i in enumerate(e.indices)))
            lines, self.lines = self.lines, []
            given, self.given = self.given, self.given | {e.operand}
            load = super().read(at)
            self.given = given
            self.ahead += self.lines
            self.lines = lines
            self.packs[e] = self._pack(e, load)
        return Local(self.packs[e], e.type, variable(self.lane))

    def _pack(self, e: Read, load: Expr) -> str:
        """Return the variable of a pack, whose first element this loads; of one that lies outside its elements are 0."""
        inside: Expr | None = Present(e.operand) if self.nest.is_optional(e.operand) else None
        if (guard := _guard(self.stage.assign.value, e)) is not None:
            lines, self.lines = self.lines, []
            guard = self.value(guard)
            self.ahead += self.lines
            self.lines = lines
            inside = guard if inside is None else _joined("and", (inside, guard))
        if isinstance(load, Block):
            for s in load.body:
                if not isinstance(s, Refuse):
                    self.ahead.append(s)
                    continue
                name, before = self.nest.fresh("inside"), inside
                here: Expr = Call("not", (s.cond,), DType.BOOL)
                refused: Statement = If(s.cond, (Do(s.report),))
                if before is not None:
                    here, refused = Call("and", (before, here), DType.BOOL), If(before, (refused,))
                self.ahead += [refused, Let(name, DType.BOOL, here)]
                inside = Local(name, DType.BOOL)
            load = load.value
        assert isinstance(load, Load), "what may be absent is not read in packs"
        name = self.nest.fresh(f"{e.operand}_pack")
        where = Const(True, DType.BOOL) if inside is None else inside
        found = call("load_points", Address(e.operand, load.offset), where, types=(COUNT,))
        self.ahead.append(Let(name, Named("auto"), found))
        return name


__all__ = ["along", "always_packed", "packed_entry", "packed_kernel"]
