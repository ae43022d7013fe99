"""What a call of an op costs at least: arithmetic, memory traffic, and what is saved for the gradient.

FLOPs count every arithmetic operator and function of the body once at every point it is computed, and one operation a point for a
reduction; comparisons, selections, casts and index arithmetic are free, and of a selection the dearer side counts. Bytes are the
least traffic there can be: every input the body reads is read once, every output written once, temporaries stay in registers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from opc.analysis.shape import ShapeEnv
from opc.analysis.shape_plan import group_key
from opc.ir.dtypes import Binding, resolve
from opc.ir.expr import Axis, BroadcastAxis, Call, Expr, GroupAxis, IndexValue, Read, Reduce, Select, children, reads, walk
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Group, Op, Operand, Role

_FREE = frozenset({"neg", "stop_gradient", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "isnan", "isinf"})


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs: floating (or integer) operations, and bytes read and written."""

    flops: int
    read: int
    written: int

    @property
    def bytes(self) -> int:
        """Bytes moved between memory and processor."""
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """FLOPs a byte; 0 for a call that moves nothing."""
        return self.flops / self.bytes if self.bytes else 0.0


def cost(op: Op, env: ShapeEnv, binding: Binding, wanted: Collection[str] | None = None) -> Cost:
    """Return the cost of the call that `env` describes, on dtypes bound by `binding`.

    `wanted` names the outputs that are asked for, all that can be computed by default; only what they need is counted.
    """
    assignments = op.assignments
    asked = set(env.outputs) if wanted is None else set(wanted) & set(env.outputs)
    needed, waiting = set(asked), list(asked)
    used: set[str] = set()
    flops = 0
    while waiting:
        statement = assignments[waiting.pop()]
        flops += _flops(op, env, statement.value, _points(env, op.operand(statement.target)))
        for read in reads(statement.value):
            used.add(read.operand)
            if read.operand in assignments and read.operand not in needed:
                needed.add(read.operand)
                waiting.append(read.operand)
    read_bytes = sum(nbytes(env, o, binding) for o in op.inputs if o.name in used and o.name in env.present)
    written = sum(nbytes(env, op.output(name), binding) for name in asked)
    return Cost(flops, read_bytes, written)


def saved(backward: Op) -> tuple[tuple[str, Role, Operand], ...]:
    """Return what a gradient op keeps from the forward call: the operand's name there, its role, and the input that takes it.

    Inputs that are kept for their shape alone cost no memory, and are not listed.
    """
    if backward.derivation is None:
        return ()
    used = {r.operand for s in backward.body for r in reads(s.value)}
    pairs = zip(backward.derivation.inputs, backward.inputs, strict=True)
    return tuple(
        (name, role, operand) for (role, name), operand in pairs if role in (Role.INPUT, Role.OUTPUT) and operand.name in used
    )


def nbytes(env: ShapeEnv, operand: Operand, binding: Binding) -> int:
    """Return the size of an operand in bytes."""
    return _points(env, operand) * resolve(operand.type, binding).itemsize


def _points(env: ShapeEnv, operand: Operand) -> int:
    total = 1
    for size in env.shape_of(operand):
        total *= size
    return total


def _flops(op: Op, env: ShapeEnv, e: Expr, points: int) -> int:
    """Return the operations of `e` computed at so many points."""
    match e:
        case Reduce():
            inner = points * _extent(op, env, e)
            return inner + _flops(op, env, e.body, inner)
        case Call():
            own = 0 if e.fn in _FREE or FUNCTIONS[e.fn].types in ("compare", "logic", "test") or _is_index(e) else points
            return own + sum(_flops(op, env, c, points) for c in e.args)
        case Select() if _is_static(e.cond):
            return _flops(op, env, e.then if env.holds(e.cond) else e.other, points)
        case Select():
            sides = (_flops(op, env, side, points) for side in (e.then, e.other))
            return _flops(op, env, e.cond, points) + max(sides)
        case Read():
            # What stands inside a subscript is index arithmetic.
            return _flops(op, env, e.pad, points) if e.pad is not None else 0
        case _:
            return sum(_flops(op, env, c, points) for c in children(e))


def _is_static(e: Expr) -> bool:
    """Whether a condition is known when the op is called."""
    return not any(isinstance(n, Read | Reduce) or (isinstance(n, IndexValue) and n.value.indices()) for n in walk(e))


def _is_index(e: Expr) -> bool:
    """Whether an expression is made of sizes, indices and literals alone, and so is computed once."""
    return isinstance(e, IndexValue) or (not isinstance(e, Read) and bool(children(e)) and all(map(_is_index, children(e))))


def _extent(op: Op, env: ShapeEnv, e: Reduce) -> int:
    total = 1
    for axis in e.axes:
        match axis:
            case Axis():
                total *= env.value(axis.extent)
            case GroupAxis():
                total *= _size(env, Group(axis.name))
            case BroadcastAxis():
                own = max(1, _size(env, _own_group(op, axis)))
                total *= _size(env, Group(axis.name)) // own
    return total


def _own_group(op: Op, axis: BroadcastAxis) -> Group:
    """Return the group of the operand itself that a broadcast axis leaves."""
    operand = next((o for o in (*op.inputs, *op.outputs) if o.name == axis.operand), None)
    groups = [d for d in operand.dims if isinstance(d, Group) and d.name == axis.name] if operand else []
    return groups[0] if groups else Group(axis.name, axis.operand)


def _size(env: ShapeEnv, group: Group) -> int:
    total = 1
    for size in env.groups.get(group_key(group), ()):
        total *= size
    return total
