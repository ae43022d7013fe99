"""What a call of an op costs at least: arithmetic, memory traffic, and what is saved for the gradient.

FLOPs count every arithmetic operator and function of the body once at every point it is computed, and one operation a point for a
reduction; comparisons, selections, casts and index arithmetic are free, and of a selection the dearer side counts. A running sum
goes on from its neighbour, and a scatter adds each point once. Bytes are the least traffic there can be: every input the body
reads is read once, every output written once, temporaries stay in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from opc.analysis.shape import ShapeEnv
from opc.analysis.shape_plan import group_key
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Binding, is_integer, resolve
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    map_affine,
    reads,
    walk,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Group, Op, Operand, Role

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
    flops = 0.0
    while waiting:
        statement = assignments[waiting.pop()]
        flops += _Counter(op, env, statement).flops(statement.value, _points(env, op.operand(statement.target)))
        for read in reads(statement.value):
            used.add(read.operand)
            if read.operand in assignments and read.operand not in needed:
                needed.add(read.operand)
                waiting.append(read.operand)
    read_bytes = sum(nbytes(env, o, binding) for o in op.inputs if o.name in used and o.name in env.present)
    written = sum(nbytes(env, op.output(name), binding) for name in asked)
    return Cost(round(flops), read_bytes, written)


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


class _Counter:
    """Counts the operations of one statement; `ranges` holds the size of each loop it stands in, an average where it varies."""

    def __init__(self, op: Op, env: ShapeEnv, statement: Assign) -> None:
        self.op = op
        self.env = env
        shape = zip(statement.indices, op.operand(statement.target).dims, strict=True)
        self.ranges: dict[str, float] = {i: env.value(d) for i, d in shape if isinstance(i, str) and isinstance(d, Affine)}

    def flops(self, e: Expr, points: float) -> float:
        """Return the operations of `e` computed at so many points."""
        match e:
            case Reduce():
                before = dict(self.ranges)
                inner = points * self._extent(e)
                total = inner + self.flops(e.body, inner)
                self.ranges = before
                return total
            case Call():
                compares = FUNCTIONS[e.fn].types in ("compare", "logic", "test")
                free = e.fn in _FREE or compares or _is_index(e)
                # What whole numbers are compared for is index arithmetic.
                args = [a for a in e.args if not (compares and is_integer(a.type))]
                return (0 if free else points) + sum(self.flops(c, points) for c in args)
            case Select() if _is_static(e.cond):
                return self.flops(e.then if self.env.holds(e.cond) else e.other, points)
            case Select():
                chosen = max(self.flops(side, points) for side in (e.then, e.other))
                return self.flops(e.cond, points) + chosen
            case Read():
                # What stands inside a subscript is index arithmetic.
                return self.flops(e.pad, points) if e.pad is not None else 0
            case _:
                return sum(self.flops(c, points) for c in children(e))

    def _extent(self, e: Reduce) -> float:
        """Return how many points are added for each result: on average, and 1 for what goes on from its neighbour's result."""
        total = 1.0
        for axis in e.axes:
            match axis:
                case Axis():
                    self.ranges[axis.index] = self._size(axis.extent)
                    total *= 1 if _goes_on(axis, e.body) else self.ranges[axis.index]
                case GroupAxis():
                    total *= _size(self.env, Group(axis.name))
                case BroadcastAxis():
                    own = max(1, _size(self.env, _own_group(self.op, axis)))
                    total *= _size(self.env, Group(axis.name)) // own
        # Each point is added to the one result that its index names: a scatter.
        for index in _named_results(e):
            total /= max(1, self.ranges.get(index, 1))
        return total

    def _size(self, extent: Affine) -> float:
        """Return an extent's mean between its values at the two ends of the indices it depends on."""

        def at(end: Callable[[float], int]) -> int:
            return extent.evaluate(lambda s: end(self.ranges[s.name]) if isinstance(s, Index) else self.env.symbol(s))

        return max(0.0, (at(lambda size: 0) + at(lambda size: max(0, int(size) - 1))) / 2)


def _goes_on(axis: Axis, body: Expr) -> bool:
    """Whether a reduction goes on from the result beside it: `sum[k:i + 1](f(k))`, or `sum[k:N - i](f(i + k))` from the end."""
    slopes = {i: c.constant for i in axis.extent.indices() if (c := axis.extent.coefficient(i)) is not None}
    for index, slope in slopes.items():
        if slope not in (1, -1):
            continue
        shift = Affine.of(Index(axis.index)) - (Index(index) if slope == -1 else 0)
        if index not in free_indices(_moved(body, axis.index, shift)):
            return True
    return False


def _moved(body: Expr, index: str, to: Affine) -> Expr:
    return map_affine(body, lambda a: a.substitute(lambda s: to if s == Index(index) else None))


def _named_results(e: Reduce) -> Iterator[str]:
    """Yield the indices of the result that each point names: v of `sum[n](src[n] if ids[n] == v else 0)`."""
    loops = {a.index for a in e.axes if isinstance(a, Axis)}
    body = e.body
    while isinstance(body, Select) and isinstance(body.other, Const) and body.other.value == 0:
        for c in _conjuncts(body.cond):
            match c:
                case Call(fn="eq", args=(a, b)):
                    for side, other in ((a, b), (b, a)):
                        name = side.value.index if isinstance(side, IndexValue) else None
                        if name is not None and name not in loops and (any(reads(other)) or free_indices(other) & loops):
                            yield name
                            break
                case _:
                    pass
        body = body.then


def _conjuncts(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Call) and e.fn == "and":
        for a in e.args:
            yield from _conjuncts(a)
    else:
        yield e


def _is_static(e: Expr) -> bool:
    """Whether a condition is known when the op is called."""
    return not any(isinstance(n, Read | Reduce) or (isinstance(n, IndexValue) and n.value.indices()) for n in walk(e))


def _is_index(e: Expr) -> bool:
    """Whether an expression is made of sizes, indices and literals alone, and so is computed once."""
    return isinstance(e, IndexValue) or (not isinstance(e, Read) and bool(children(e)) and all(map(_is_index, children(e))))


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
