"""What a call of an op costs at least: arithmetic, memory traffic, and what is saved for the gradient.

FLOPs count every arithmetic operator and function of the body once at every point it is computed, and one operation a point for a
reduction; comparisons, selections, casts and index arithmetic are free, and of a selection the dearer side counts. A running sum
goes on from its neighbour, a scatter adds each point once, and an order takes `N*log2(N)` operations for a row of N. Bytes are
the least traffic there can be: every input the body reads is read once, every output written once, temporaries stay in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from fractions import Fraction
from math import ceil, log2, prod

from opc.analysis.shapes.inference import ShapeEnv
from opc.analysis.shapes.plan import group_key
from opc.analysis.work import SizeProduct, Work
from opc.ir.affine import Affine, Dim, GroupSize, Index, Symbol
from opc.ir.dtypes import Binding, is_integer, resolve
from opc.ir.expr import (
    VARYING,
    Axis,
    BroadcastAxis,
    Call,
    Expr,
    GroupAxis,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    free_indices,
    map_affine,
    reads,
    traits,
    walk,
)
from opc.ir.function import FREE
from opc.ir.functions import FUNCTIONS
from opc.ir.identity import is_identity
from opc.ir.narrow import settled
from opc.ir.op import Assign, Group, Op, Operand, Role
from opc.ir.ordering import Ordering, orderings
from opc.records import dataclass

_LOG = "log2"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call costs: floating (or integer) operations, and bytes read and written.

    `work` and `traffic` are the operations and the bytes as formulas over the sizes of the call; what an attribute or an absent
    operand decides is decided as in this call.
    """

    flops: int
    read: int
    written: int
    work: Work = field(default_factory=Work, compare=False)
    traffic: Work = field(default_factory=Work, compare=False)

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
    op = settled(op, binding)
    assignments = op.assignments
    asked = set(env.outputs) if wanted is None else set(wanted) & set(env.outputs)
    needed, waiting = set(asked), [name for name in env.outputs if name in asked]
    used: set[str] = set()
    work = Work()
    orders = orderings(op)
    while waiting:
        statement = assignments[waiting.pop()]
        if (order := orders.get(statement.target)) is not None:
            work = work + _comparisons(op, statement, order)
            used.add(order.key.operand)
            if order.key.operand in assignments and order.key.operand not in needed:
                needed.add(order.key.operand)
                waiting.append(order.key.operand)
            continue
        work = work + _Counter(op, env, statement).flops(statement.value, _points(op.operand(statement.target)))
        for read in reads(statement.value):
            used.add(read.operand)
            if read.operand in assignments and read.operand not in needed:
                needed.add(read.operand)
                waiting.append(read.operand)
    taken = [o for o in op.inputs if o.name in used and o.name in env.present]
    made = [op.output(name) for name in env.outputs if name in asked]
    traffic = Work()
    for o in (*taken, *made):
        traffic = traffic + _points(o).scaled(resolve(o.type, binding).itemsize)
    read_bytes, written = (sum(nbytes(env, o, binding) for o in some) for some in (taken, made))
    return Cost(round(work.value(_sizes(env, op))), read_bytes, written, work, traffic)


def _comparisons(op: Op, statement: Assign, order: Ordering) -> SizeProduct:
    """Return how many comparisons sort the rows that a statement orders."""
    total = SizeProduct()
    for i, d in zip(statement.indices, op.operand(statement.target).dims, strict=True):
        if i not in order.rank.indices():
            total = total.times(d if isinstance(d, Affine) else _group(d))
    return total.times(order.extent).times(Affine.of(Dim(f"{_LOG}({order.extent})")))


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


def scatters(op: Op) -> tuple[str, ...]:
    """Return the operands that are summed up by scattering: each point of the loops names the position it is added to."""
    return tuple(s.target for s in op.body if any(isinstance(e, Reduce) and any(named_results(e)) for e in walk(s.value)))


def nbytes(env: ShapeEnv, operand: Operand, binding: Binding) -> int:
    """Return the size of an operand in bytes."""
    return round(_points(operand).value(_sizes(env))) * resolve(operand.type, binding).itemsize


def _points(operand: Operand) -> SizeProduct:
    """Return the number of an operand's elements."""
    total = SizeProduct()
    for d in operand.dims:
        total = total.times(d if isinstance(d, Affine) else _group(d))
    return total


def _group(group: Group) -> Affine:
    """Return the number of a group's points; that of an operand's own group has its name behind an @."""
    return Affine.of(GroupSize(group.name if group.of is None else f"{group.name}@{group.of}"))


def _sizes(env: ShapeEnv, op: Op | None = None) -> Callable[[Affine], int]:
    """Return what gives each size its value in a call; of an op with orders, the logarithms of sizes too."""
    logs = {f"{_LOG}({o.extent})": o.extent for o in orderings(op).values()} if op is not None else {}

    def symbol(s: Symbol) -> int:
        if isinstance(s, Dim) and s.name.startswith(f"{_LOG}("):
            return max(1, ceil(log2(max(1, logs[s.name].evaluate(symbol)))))
        if isinstance(s, GroupSize):
            name, _, of = s.name.partition("@")
            return prod(env.groups.get(group_key(Group(name, of or None)), ()))
        return env.symbol(s)

    return lambda size: size.evaluate(symbol)


class _Counter:
    """Counts the operations of one statement; `ranges` holds the size of each loop it stands in, an average where it varies."""

    def __init__(self, op: Op, env: ShapeEnv, statement: Assign) -> None:
        self.op = op
        self.env = env
        shape = zip(statement.indices, op.operand(statement.target).dims, strict=True)
        self.ranges = {i: SizeProduct().times(d) for i, d in shape if isinstance(i, str) and isinstance(d, Affine)}

    def flops(self, e: Expr, points: SizeProduct) -> Work:
        """Return the operations of `e` computed at so many points."""
        match e:
            case Reduce():
                before = dict(self.ranges)
                inner = self._reduced(e, points)
                total = self.flops(e.body, inner) + inner
                self.ranges = before
                return total
            case Call():
                compares = FUNCTIONS[e.fn].types in ("compare", "logic", "test")
                free = FUNCTIONS[e.fn].cost == FREE or _is_index(e)
                # What whole numbers are compared for is index arithmetic.
                args = [a for a in e.args if not (compares and is_integer(a.type))]
                own = Work() if free else Work() + points
                return sum((self.flops(c, points) for c in args), own)
            case Select() if _is_static(e.cond):
                return self.flops(e.then if self.env.holds(e.cond) else e.other, points)
            case Select():
                sides = [self.flops(side, points) for side in (e.then, e.other)]
                return self.flops(e.cond, points) + max(sides, key=lambda w: w.value(_sizes(self.env)))
            case Read():
                # What stands inside a subscript is index arithmetic.
                return self.flops(e.pad, points) if e.pad is not None else Work()
            case _:
                return sum((self.flops(c, points) for c in children(e)), Work())

    def _reduced(self, e: Reduce, points: SizeProduct) -> SizeProduct:
        """Return how many points are added: on average, and one a result for what goes on from its neighbour's result."""
        for axis in e.axes:
            match axis:
                case Axis():
                    self.ranges[axis.index] = self._size(axis.extent)
                    if not _goes_on(axis, e.body):
                        points = _joined(points, self.ranges[axis.index])
                case GroupAxis():
                    points = points.times(_group(Group(axis.name)))
                case BroadcastAxis():
                    points = points.times(_group(Group(axis.name))).times(_group(Group(axis.name, axis.operand)), -1)
        # Each point is added to the one result that its index names: a scatter.
        for index in named_results(e):
            if index in self.ranges:
                points = _joined(points, self.ranges[index], -1)
        return points

    def _size(self, extent: Affine) -> SizeProduct:
        """Return an extent's mean between its values at the two ends of the indices it depends on."""
        if not extent.indices():
            return SizeProduct().times(extent)
        first = extent.substitute(lambda s: Affine.of(0) if isinstance(s, Index) else None)
        last = extent.substitute(self._last)
        return SizeProduct().times(first + last).scaled(Fraction(1, 2))

    def _last(self, s: Symbol) -> Affine | None:
        if not isinstance(s, Index):
            return None
        size = Affine.of(1)
        for factor, power in self.ranges[s.name].powers:
            size = size * factor if power == 1 else size
        return size - 1


def _joined(a: SizeProduct, b: SizeProduct, power: int = 1) -> SizeProduct:
    total = a.scaled(b.number**power)
    for size, p in b.powers:
        total = total.times(size, p * power)
    return total


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
    return map_affine(body, lambda a: a.at(index, to))


def named_results(e: Reduce) -> Iterator[str]:
    """Yield the indices of the result that each point names: v of `sum[n](src[n] if ids[n] == v else 0)`, or of a maximum."""
    loops = set(e.extents)
    body = e.body
    while isinstance(body, Select) and is_identity(e.kind.removeprefix("arg"), body.other, body.type):
        for c in conjuncts(body.cond):
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


def _is_static(e: Expr) -> bool:
    """Whether a condition is known when the op is called."""
    return not traits(e) & VARYING


def _is_index(e: Expr) -> bool:
    """Whether an expression is made of sizes, indices and literals alone, and so is computed once."""
    return isinstance(e, IndexValue) or (not isinstance(e, Read) and bool(children(e)) and all(map(_is_index, children(e))))
