"""From the body of an op to steps: every reduction a statement of its own, loops named by what they run over.

Two index variables with equal extents run over the same loop, so that `sum[k](e[*A, k, *B])` and `e[*A, n, *B] = ...` meet on one
axis. A body is *regular* when every access is a bare index in a place of its own, so that a step is a value at each point of a
set of loops; only regular bodies become steps. A value that is no reduction may use an index as a number: whole rows along the
loop of that index can compute it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from opc.ir.affine import Affine, Index
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Place,
    Read,
    Reduce,
    children,
    free_indices,
    reads,
    with_children,
)
from opc.ir.op import Assign, Group, Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, Reduction, Step
from opc.lower.rows.broadcast import broadcast_sizes, is_broadcast, joined

KINDS = ("sum", "prod", "max", "min", "any", "all")
"""The reductions a step can be; argmax and argmin need the loop nest."""


class IrregularError(Exception):
    """The body is not regular; the message says which access is not, and why."""


def flatten(op: Op, taken: Collection[str] = ()) -> tuple[Step, ...]:
    """Return the steps of a regular op in program order; a step the op has no name for gets one that is not in `taken`.

    Raises:
        IrregularError: when a statement is not regular.
    """
    flattener = _Flattener(op, taken)
    for assign in op.body:
        flattener.statement(assign)
    return tuple(flattener.steps)


class _Flattener:
    def __init__(self, op: Op, taken: Collection[str]) -> None:
        self.op = op
        self.steps: list[Step] = []
        self.shapes: dict[str, tuple[Loop, ...]] = {}
        self.sizes = broadcast_sizes(op)
        self.hoisted: dict[tuple[Expr, tuple[Loop, ...]], Read] = {}
        operands = (*op.inputs, *op.outputs, *op.temporaries)
        self.names = {*taken, *(o.name for o in operands), *(a.name for a in op.attributes), *(d for d, _ in op.dims)}
        for o in operands:
            self.shapes[o.name] = operand_loops(op, o.name)

    def statement(self, assign: Assign) -> None:
        """Append the steps of one statement."""
        loops: dict[str, Loop] = {}
        target: list[Loop] = []
        for index, loop in zip(assign.indices, self.shapes[assign.target], strict=True):
            if isinstance(loop, IndexLoop):
                loop = replace(loop, index=str(index))
                loops[str(index)] = loop
            target.append(loop)
        _distinct(target)
        own = next((loop.of for loop in target if isinstance(loop, GroupLoop) and loop.of is not None), None)
        if isinstance(assign.value, Reduce):
            self._reduce(assign.target, assign.value, tuple(target), loops, own, assign)
        else:
            value = self._value(assign.value, loops, own, assign)
            self.steps.append(Step(assign.target, assign.value.type, tuple(target), value, None, assign))

    def _reduce(
        self, name: str, e: Reduce, target: tuple[Loop, ...], loops: Mapping[str, Loop], own: str | None, source: Assign
    ) -> None:
        if e.kind not in KINDS:
            raise IrregularError(f"{e.kind} is a search")
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
                    broadcast = axis.operand
        _distinct([*target, *reduced])
        value = self._value(e.body, inner, None if broadcast is not None else own, source)
        if free_indices(value):
            raise IrregularError("a reduction uses the value of an index")
        self.steps.append(Step(name, e.type, target, value, Reduction(e.kind, tuple(reduced), broadcast), source))

    def _value(self, e: Expr, loops: Mapping[str, Loop], own: str | None, source: Assign) -> Expr:
        """Return `e` with indices dropped and reductions hoisted; `own` is the operand whose own group `...` stands for here."""
        match e:
            case Read():
                self._check_read(e, loops)
                return replace(e, indices=())
            case IndexValue():
                for name in e.value.indices():
                    loop = loops[name]
                    if not isinstance(loop, IndexLoop) or loop.along is not None:
                        raise IrregularError(f"the value of {name} is used, which runs along {loop}")
                return e
            case Place():
                raise IrregularError(f"the place in {GroupRef(e.group)} is used")
            case Reduce():
                return self._hoist(e, loops, own, source)
            case _:
                return with_children(e, tuple(self._value(c, loops, own, source) for c in children(e)))

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

    def _hoist(self, e: Reduce, loops: Mapping[str, Loop], own: str | None, source: Assign) -> Read:
        """Return a read of the temporary that holds the reduction `e`."""
        free = self._free_loops(e, loops, own, source)
        key = (e, free)
        if key not in self.hoisted:
            body = [r.operand for r in reads(e)]
            name = self._fresh(f"{e.kind}_{body[0]}" if isinstance(e.body, Read) else f"{source.target}_{e.kind}")
            # The loops must be those of this statement, under its names of the indices.
            self.shapes[name] = free
            self._reduce(name, e, free, loops, own, source)
            self.hoisted[key] = Read(name, (), e.type, span=e.span)
        return self.hoisted[key]

    def _free_loops(self, e: Reduce, loops: Mapping[str, Loop], own: str | None, source: Assign) -> tuple[Loop, ...]:
        """Return the loops the value of a reduction varies along: in the order in which the statement's target names them, then
        of the first access that does."""
        found: dict[Loop, None] = {}

        def visit(node: Expr, bound: frozenset[str], gone: frozenset[str], kept: Mapping[str, str]) -> None:
            if isinstance(node, Reduce):
                bound |= {a.index for a in node.axes if isinstance(a, Axis)}
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

        def place(loop: Loop) -> int:
            name = loop.name if isinstance(loop, GroupLoop) else loop.index
            return wanted.index(name) if name in wanted else len(wanted)

        return tuple(sorted(found, key=place))

    def _fresh(self, name: str) -> str:
        candidate, count = name, 2
        while candidate in self.names:
            candidate, count = f"{name}_{count}", count + 1
        self.names.add(candidate)
        return candidate


def counted(step: Step) -> frozenset[IndexLoop]:
    """Return the loops of a step whose index is used as a number."""
    names = free_indices(step.value)
    return frozenset(x for x in step.loops if isinstance(x, IndexLoop) and x.index in names)


def operand_loops(op: Op, name: str) -> tuple[Loop, ...]:
    """Return the loops of an operand's axes, its own where they are broadcast along others."""
    sizes = broadcast_sizes(op)
    return tuple(
        GroupLoop(d.name, d.of) if isinstance(d, Group) else IndexLoop(str(d), d, sizes.get(d)) for d in op.operand(name).dims
    )


def _distinct(loops: list[Loop]) -> None:
    """Refuse a statement that runs over one loop twice, such as a square matrix."""
    if len(set(loops)) != len(loops):
        raise IrregularError(f"two indices of one statement run over the same extent: {', '.join(str(x) for x in loops)}")
