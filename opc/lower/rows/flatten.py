"""From the body of an op to steps: every reduction a statement of its own, loops named by what they run over.

Two index variables with equal extents run over the same loop, so that `sum[k](e[*A, k, *B])` and `e[*A, n, *B] = ...` meet on one
axis. A body is *regular* when every access is a bare index in a place of its own, so that a step is a value at each point of a
set of loops; only regular bodies become steps. A value that is no reduction may use an index as a number: whole rows along the
loop of that index can compute it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.inside import parts
from opc.analysis.bounds.knowledge import Conditions, Knowledge, knowledge_of
from opc.ir.affine import Affine, Index
from opc.ir.expr import (
    EXTREMES,
    Axis,
    BroadcastAxis,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    children,
    free_groups,
    free_indices,
    reads,
    with_children,
)
from opc.ir.node import memoised
from opc.ir.op import Assign, DimSpec, Group, Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, Reduction, Step, loop_of
from opc.lower.rows.broadcast import broadcast_sizes, is_broadcast, joined
from opc.names import unused
from opc.records import dataclass, replace

KINDS = ("sum", "prod", "max", "min", "any", "all")
"""The reductions a step can be; argmax and argmin need the loop nest."""


class IrregularError(Exception):
    """The body is not regular; the message says which access is not, and why."""


class UnplacedError(IrregularError):
    """Steps fit no stage with what is left of the others; `targets` are theirs."""

    def __init__(self, message: str, targets: frozenset[str]) -> None:
        super().__init__(message)
        self.targets = targets


class OperandsError(IrregularError):
    """A stage would take more operands than one can have."""


def flatten(op: Op, taken: Collection[str] = (), lazy: bool = False) -> tuple[Step, ...]:
    """Return the steps of a regular op in program order; a step the op has no name for gets one that is not in `taken`.

    A step is computed at all points, also where a condition leaves it out. That refuses no call, unless the greatest or least of
    nothing is asked for, which has no value: of steps under conditions that is left open, or, if `lazy`, irregular.

    Raises:
        IrregularError: when a statement is not regular.
    """
    flattener = _Flattener(op, taken, lazy)
    for assign in op.body:
        flattener.statement(assign)
    return tuple(replace(s, asked=tuple(flattener.asked.get(s.target, ()))) for s in flattener.steps)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """Where an expression stands: the loops of its indices, all `points` at which it is asked for, and the conditions around it.

    `own` is the operand whose own group `...` stands for here.
    """

    source: Assign
    loops: Mapping[str, Loop]
    points: tuple[Loop, ...]
    own: str | None
    under: Conditions = ()

    def extents(self) -> dict[str, Affine]:
        return {name: loop.extent for name, loop in self.loops.items() if isinstance(loop, IndexLoop)}


class _Flattener:
    def __init__(self, op: Op, taken: Collection[str], lazy: bool) -> None:
        self.op, self.lazy = op, lazy
        self.steps: list[Step] = []
        self.asked: dict[str, dict[tuple[Loop, ...], None]] = {}
        self.shapes: dict[str, tuple[Loop, ...]] = {}
        self.sizes = broadcast_sizes(op)
        self.knowledge = knowledge_of(op)
        self.hoisted: dict[tuple[Expr, tuple[Loop, ...]], Read] = {}
        operands = op.operands
        self.names = {*taken, *(o.name for o in operands), *(a.name for a in op.attributes), *(d for d, _ in op.dims)}
        for o in operands:
            self.shapes[o.name] = operand_loops(op, o.name)

    def statement(self, assign: Assign) -> None:
        """Append the steps of one statement."""
        loops: dict[str, Loop] = {}
        target: list[Loop] = []
        for index, loop in zip(assign.indices, self.shapes[assign.target], strict=True):
            if isinstance(loop, IndexLoop):
                loop = IndexLoop(str(index), loop.extent, loop.along)
                loops[str(index)] = loop
            target.append(loop)
        _distinct(target)
        own = next((loop.of for loop in target if isinstance(loop, GroupLoop) and loop.of is not None), None)
        around = _Surroundings(assign, loops, tuple(target), own)
        if isinstance(assign.value, Reduce):
            self._ask(assign.target, assign.value, around)
            self._reduce(assign.target, assign.value, tuple(target), around)
        else:
            value = self._value(assign.value, around)
            self.steps.append(Step(assign.target, assign.value.type, tuple(target), value, None, assign))

    def _reduce(self, name: str, e: Reduce, target: tuple[Loop, ...], around: _Surroundings) -> None:
        if e.kind not in KINDS:
            raise IrregularError(f"{e.kind} is a search")
        loops, source = around.loops, around.source
        inner = dict(loops)
        reduced: list[Loop] = []
        broadcast: str | None = None
        found = joined(e, loops, self.names)
        if found is not None:
            e, along, broadcast = *found, str(found[1].extent)
            inner[along.index] = IndexLoop(along.index, along.extent)
        for axis in e.axes:
            match axis:
                case Axis() if found is not None and axis is found[1]:
                    pass  # summed by being broadcast
                case Axis():
                    if axis.extent.indices():
                        raise IrregularError(f"the extent of {axis.index} depends on an index")
                    inner[axis.index] = IndexLoop(axis.index, axis.extent, self.sizes.get(axis.extent))
                    reduced.append(inner[axis.index])
                case GroupAxis():
                    reduced.append(GroupLoop(axis.name))
                case BroadcastAxis():
                    if broadcast is not None:
                        raise IrregularError("two broadcast axes in one reduction")
                    if axis.name not in free_groups(e.body):
                        raise IrregularError(f"nothing in a sum to the shape of {axis.operand} runs along its axes")
                    broadcast = axis.operand
        _distinct([*target, *reduced])
        own = None if broadcast is not None else around.own
        value = self._value(e.body, replace(around, loops=inner, points=(*around.points, *reduced), own=own))
        if free_indices(value):
            raise IrregularError("a reduction uses the value of an index")
        self.steps.append(Step(name, e.type, target, value, Reduction(e.kind, tuple(reduced), broadcast), source))

    def _value(self, e: Expr, around: _Surroundings) -> Expr:
        """Return `e` with indices dropped and reductions hoisted."""
        match e:
            case Read():
                self._check_read(e, around.loops)
                return replace(e, indices=())
            case IndexValue():
                for name in e.value.indices():
                    loop = around.loops[name]
                    if not isinstance(loop, IndexLoop) or loop.along is not None:
                        raise IrregularError(f"the value of {name} is used, which runs along {loop}")
                return e
            case GroupIndex():
                raise IrregularError(f"the place in {GroupRef(e.group)} is used")
            case Reduce():
                return self._hoist(e, around)
            case _:
                found = [
                    self._value(c, around if under is around.under else replace(around, under=under))
                    for c, _, under in parts(e, {}, around.under)
                ]
                return with_children(e, tuple(found)) if found else e

    def _check_read(self, e: Read, loops: Mapping[str, Loop]) -> None:
        if e.pad is not None or e.checked:
            raise IrregularError(f"a read of {e.operand} may fall outside")
        for index, loop in zip(e.indices, self.shapes[e.operand], strict=True):
            match index:
                case GroupRef():
                    pass
                case Affine() if is_broadcast(index, loop, loops):
                    pass
                case Affine() if index.index is not None:
                    mine = loops[index.index]
                    if not isinstance(mine, IndexLoop) or mine != loop:
                        raise IrregularError(f"{index} runs over {mine} but indexes an axis of {e.operand} of size {loop}")
                case _:
                    raise IrregularError(f"{e.operand} is indexed by {index}")

    def _hoist(self, e: Reduce, around: _Surroundings) -> Read:
        """Return a read of the temporary that holds the reduction `e`."""
        free, source = self._free_loops(e, around), around.source
        key = (e, free)
        if key not in self.hoisted:
            body = [r.operand for r in reads(e)]
            name = self._fresh(f"{e.kind}_{body[0]}" if isinstance(e.body, Read) else f"{source.target}_{e.kind}")
            # The loops must be those of this statement, under its names of the indices.
            self.shapes[name] = free
            self._reduce(name, e, free, around)
            self.hoisted[key] = Read(name, (), e.type, span=e.span)
        self._ask(self.hoisted[key].operand, e, around)
        return self.hoisted[key]

    def _ask(self, name: str, e: Reduce, around: _Surroundings) -> None:
        """Note at which points the step that holds an extreme is asked for, whatever conditions say."""
        if e.kind not in EXTREMES:
            return
        if not around.under:
            self.asked.setdefault(name, {})[around.points] = None
        elif self.lazy and maybe_empty(self.knowledge, e, around.extents(), around.under):
            raise IrregularError(f"whether the {e.kind} of nothing is asked for is told point by point")

    def _free_loops(self, e: Reduce, around: _Surroundings) -> tuple[Loop, ...]:
        """Return the loops the value of a reduction varies along: in the order in which the statement's target names them, then
        of the first access that does."""
        loops, own, source = around.loops, around.own, around.source
        found: dict[Loop, None] = {}

        def visit(node: Expr, bound: frozenset[str], gone: frozenset[str], kept: Mapping[str, str]) -> None:
            if isinstance(node, Reduce):
                bound |= set(node.extents)
                gone |= {a.name for a in node.axes if isinstance(a, GroupAxis)}
                kept = {**{a.name: a.operand for a in node.axes if isinstance(a, BroadcastAxis)}, **kept}
            for index in node.indices if isinstance(node, Read) else ():
                if isinstance(index, GroupRef) and index.name not in gone:
                    found[GroupLoop(index.name, kept.get(index.name, own))] = None
                elif isinstance(index, Affine):
                    for atom in index.atoms():
                        if isinstance(atom, Index) and atom.name not in bound:
                            found[loops[atom.name]] = None
            for c in children(node):
                visit(c, bound, gone, kept)

        visit(e, frozenset(), frozenset(), {})
        wanted = [i.name if isinstance(i, GroupRef) else i for i in source.indices]

        def order(loop: Loop) -> int:
            name = loop.name if isinstance(loop, GroupLoop) else loop.index
            return wanted.index(name) if name in wanted else len(wanted)

        return tuple(sorted(found, key=order))

    def _fresh(self, name: str) -> str:
        found = unused(name, self.names)
        self.names.add(found)
        return found


def extents_under_conditions(op: Op, s: Assign) -> Iterator[Affine]:
    """Yield the sizes that may be nothing along which a statement asks for a maximum or minimum where a condition holds."""
    knowledge = knowledge_of(op)

    def visit(e: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Iterator[Affine]:
        if isinstance(e, Reduce) and e.kind in EXTREMES and under:
            yield from (x for x in maybe_empty(knowledge, e, ranges, under) if not x.indices())
        for part in parts(e, ranges, under):
            yield from visit(*part)

    return visit(s.value, ranges_of(s, op.operand(s.target)), ())


def maybe_empty(knowledge: Knowledge, e: Reduce, ranges: Mapping[str, Affine], under: Conditions) -> list[Affine]:
    """Return the extents of a reduction that nothing proves to be positive where it is asked for."""
    extents = [a.size for a in e.axes]
    return [x for x in extents if not knowledge.nonnegative(x - 1, ranges, under)]


def counted(step: Step) -> frozenset[IndexLoop]:
    """Return the loops of a step whose index is used as a number."""
    names = free_indices(step.value)
    return frozenset(x for x in step.loops if isinstance(x, IndexLoop) and x.index in names)


def operand_loops(op: Op, name: str) -> tuple[Loop, ...]:
    """Return the loops of an operand's axes, its own where they are broadcast along others."""
    sizes, dims = broadcast_sizes(op), op.operand(name).dims
    if not sizes:
        return _own_loops(dims)
    return tuple([GroupLoop(d.name, d.of) if isinstance(d, Group) else IndexLoop(str(d), d, sizes.get(d)) for d in dims])


@memoised
def _own_loops(dims: tuple[DimSpec, ...]) -> tuple[Loop, ...]:
    """Return the loops of axes that nothing is broadcast along."""
    return tuple(map(loop_of, dims))


def _distinct(loops: list[Loop]) -> None:
    """Refuse a statement that runs over one loop twice, such as a square matrix."""
    if len(set(loops)) != len(loops):
        raise IrregularError(f"two indices of one statement run over the same extent: {', '.join(str(x) for x in loops)}")
