"""Sums in derivatives: `sum_over` writes the sum of an expression over loops with everything that does not vary outside it."""

from __future__ import annotations

import functools

from opc.analysis.patterns import with_digits
from opc.analysis.runs import bound_on
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.dtypes import ValueType, Weak, accumulated, is_bool, is_integer
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Present,
    Reduce,
    ReduceAxis,
    Select,
    conjuncts,
    free_groups,
    free_indices,
    may_refuse,
    reads,
    walk,
)
from opc.ir.functions import FUNCTIONS
from opc.transform import algebra, scalar
from opc.transform.indices import store_values, substitute
from opc.transform.scalar import any_reads


def varies(e: Expr, loops: tuple[ReduceAxis, ...]) -> bool:
    """Whether the value of `e` may differ between the points of these loops.

    Under a loop over the axes an operand was broadcast along, every operand counts as varying, and so does a place: what is read
    decides which axes there are.
    """
    indices, groups = free_indices(e), free_groups(e)
    for a in loops:
        match a:
            case Axis():
                if a.index in indices:
                    return True
            case GroupAxis():
                if a.name in groups:
                    return True
            case BroadcastAxis():
                if reads(e) or a.name in groups:
                    return True
    return False


def sum_over(loops: tuple[ReduceAxis, ...], body: Expr) -> Expr:
    """Return the sum of `body` over `loops`, outermost first, with factors, signs and conditions that do not vary outside.

    A sum over broadcast axes alone keeps factors and signs: of operands of one shape there is nothing to sum, and what stands
    outside would be a pass of its own.
    """
    if not loops or scalar.is_zero(body):
        return body
    body = _factored(body)
    picked = _picked(loops, body)
    if picked is not None:
        return sum_over(*picked)
    if isinstance(body, Select) and not varies(body.cond, loops):
        chosen = scalar.select(body.cond, sum_over(loops, body.then), sum_over(loops, body.other))
        return _where_some(loops, chosen, body.cond) if may_refuse(body.cond) else chosen
    if all(isinstance(a, BroadcastAxis) for a in loops):
        return Reduce("sum", loops, body, sum_type(body.type))
    match body:
        case Call(fn="neg", args=(inner,)):
            return algebra.neg(sum_over(loops, inner))
        case Call(fn="div", args=(numerator, denominator)) if not varies(denominator, loops):
            reciprocal = algebra.div(scalar.ONE, denominator)
            return _where_some(loops, algebra.div(sum_over(loops, numerator), denominator), reciprocal)
    indices = {a.index for a in loops if isinstance(a, Axis)}
    # The extent of a loop may depend on loops around its reduction, not on those beside it.
    sloped = tuple(a for a in loops if isinstance(a, Axis) and a.extent.indices() & indices)
    level = tuple(a for a in loops if a not in sloped)
    factors = algebra.product_factors(body)
    outside = [f for f in factors if not varies(f, loops)]
    inside = [f for f in factors if varies(f, loops)]
    if sloped and any(map(may_refuse, outside)):
        # Which points of the others have terms tells whether it is asked.
        return sum_over(level, sum_over(sloped, body))
    if outside and (inside or _counts(loops)):
        product = algebra.product(outside)
        return _where_some(
            loops, algebra.mul(product, sum_over(loops, algebra.product(inside)) if inside else _size(loops)), product
        )
    if sloped:
        body, loops = sum_over(sloped, body), level
    return Reduce("sum", loops, body, sum_type(body.type))


def _where_some(loops: tuple[ReduceAxis, ...], total: Expr, outside: Expr) -> Expr:
    """Return a sum whose terms have the factor or condition `outside`, 0 where it has no terms: there nothing is asked of it.

    What the terms read is inside, by their loops. Nor may a factor that is not finite make NaN of 0 at some of the points: a
    quotient by `N - k`, or what is read beside a range that is empty there, such as that of a sum over all that stands before.
    """
    own = {a.index for a in loops if isinstance(a, Axis)}
    indices = [i for r in reads(outside) for i in r.indices if not isinstance(i, GroupRef)]
    plain = all(isinstance(i, Affine) and i.index is not None for i in indices)
    sloped = any(a.extent.indices() - own for a in loops if isinstance(a, Axis))
    if plain and not may_refuse(outside) and not _may_not_be_finite(outside) and not (sloped and any_reads(outside)):
        return total
    some: Expr = scalar.TRUE
    for a in loops:
        if isinstance(a, BroadcastAxis):
            continue
        extent = a.size
        if not extent.indices() & own:
            some = scalar.conjunction(some, scalar.compare("gt", scalar.index_value(extent), scalar.ZERO))
    return scalar.select(some, total, scalar.ZERO)


def _may_not_be_finite(e: Expr) -> bool:
    """Whether a function in `e` may overflow or have no value for what an index is."""
    return any(
        isinstance(n, Call)
        and not FUNCTIONS[n.fn].finite
        and any(isinstance(m, IndexValue) and m.value.indices() for m in walk(n.args[-1]))
        for n in walk(e)
    )


def _factored(body: Expr) -> Expr:
    """Return a sum of terms with what all of them stand under outermost, if it tells where the sum goes: an equality, or a bound
    of a run."""
    if not isinstance(body, Call) or body.fn not in ("add", "sub"):
        return body
    common = _common(body)
    for c in filter(_tells_places, common):
        # Where one of the terms asks it, it may be asked for all of them.
        ways = [before for before in _before(body, c) if all(g in common for g in before)] if any_reads(c) else [[]]
        if ways:
            cond = functools.reduce(scalar.conjunction, [*min(ways, key=len), c])
            body = Select(cond, scalar.assume(body, cond, True), scalar.ZERO, body.type)
    return body


def _tells_places(c: Expr) -> bool:
    """Whether a condition is an equality, or compares an index with a whole number that is data."""
    return isinstance(c, Call) and (c.fn == "eq" or any(bound_on(c, index) is not None for index in free_indices(c)))


def _before(e: Expr, condition: Expr) -> list[list[Expr]]:
    """Return the conditions on indices that each term asks before one: they may tell that its reads are inside."""
    match e:
        case Call(fn="add" | "sub" | "neg"):
            return [before for a in e.args for before in _before(a, condition)]
        case Select():
            own = conjuncts(e.cond)
            inner = [[]] if condition in own else _before(e.then, condition)
            asked = own[: own.index(condition)] if condition in own else own
            used = free_indices(condition)
            ahead = [c for c in asked if not any_reads(c) and free_indices(c) & used]
            return [[*ahead, *before] for before in inner]
        case _:
            return []


def _common(e: Expr) -> list[Expr]:
    """Return the conditions without any of which `e` is zero, and which may be asked first."""
    match e:
        case Call(fn="add" | "sub", args=(a, b)):
            known = _common(b)
            return [c for c in _common(a) if c in known]
        case Call(fn="neg", args=(a,)):
            return _common(a)
        case Select() if scalar.is_zero(e.other):
            own = conjuncts(e.cond)
            asked = {c.operand for c in own if isinstance(c, Present)}
            inner = [c for c in _common(e.then) if not asked & {r.operand for r in reads(c)}]
            return [*(c for c in own if not asked & {r.operand for r in reads(c)}), *inner]
        case _:
            return []


def _picked(loops: tuple[ReduceAxis, ...], body: Expr) -> tuple[tuple[ReduceAxis, ...], Expr] | None:
    """Return `sum[v](f(v) if v == e else 0)`, with e the same at every v, as a read at e: `f(e) if 0 <= e < V else 0`.

    Other conditions may stand before this one, as `k > 0` before `v == o[k - 1]`: they are asked before e is read.
    """
    conditions, value = _stacked(body)
    conditions = with_digits(conditions, {a.index: a.extent for a in loops if isinstance(a, Axis)})
    ranks = {a.index: _rank(a) for a in loops if isinstance(a, Axis)}
    for axis in sorted(loops, key=lambda a: ranks[a.index] if isinstance(a, Axis) else 0):
        if not isinstance(axis, Axis) or any(isinstance(a, Axis) and axis.index in a.extent.indices() for a in loops):
            continue
        for n, condition in enumerate(conditions):
            where = solution(axis, condition)
            used = free_indices(condition)
            # A condition that names a position by longer loops is a scatter, and stays one.
            longer = any(ranks[i] < ranks[axis.index] for i in used & ranks.keys())
            if where is None or (longer and used - ranks.keys()):
                continue
            ahead = [c for c in conditions[:n] if axis.index not in free_indices(c)]
            behind = [c for i, c in enumerate(conditions) if i > n or (i < n and axis.index in free_indices(c))]
            moved = _at(_under(behind, value), axis.index, where)
            if moved is None:
                continue
            inside = scalar.conjunction(
                scalar.compare("ge", where, scalar.ZERO), scalar.compare("lt", where, scalar.index_value(axis.extent))
            )
            return tuple(a for a in loops if a is not axis), _under(ahead, scalar.select(inside, moved, scalar.ZERO))
    return None


def _stacked(body: Expr) -> tuple[list[Expr], Expr]:
    """Return the conditions without any of which `body` is zero, in the order they are asked in, and what it is under all."""
    conditions: list[Expr] = []
    while isinstance(body, Select) and scalar.is_zero(body.other):
        conditions += conjuncts(body.cond)
        body = body.then
    return conditions, body


def _under(conditions: list[Expr], value: Expr) -> Expr:
    """Return `value` where all the conditions hold, asked in this order, and 0 elsewhere."""
    guard: Expr = scalar.TRUE
    for c in conditions:
        guard = scalar.conjunction(guard, c)
    return scalar.select(guard, value, scalar.ZERO)


def _rank(axis: Axis) -> int:
    """Sort key, longest first: loops over a size, over an attribute, over a number."""
    atoms = axis.extent.atoms()
    return 0 if any(isinstance(a, Dim | GroupSize) for a in atoms) else 1 if atoms else 2


def solution(axis: Axis, condition: Expr) -> Expr | None:
    """Return e where a condition says that the index of `axis` is e."""
    if not isinstance(condition, Call) or condition.fn != "eq":
        return None
    for side, other in (condition.args, condition.args[::-1]):
        if not isinstance(side, IndexValue) or axis.index in free_indices(other):
            continue
        c = side.value.coefficient(axis.index)
        if c is None or c.constant not in (1, -1):
            continue
        rest = side.value - c * Index(axis.index)
        if isinstance(other, IndexValue | Const):
            right = affine_of(other)
            if right is None:
                continue
            return scalar.index_value((right - rest) * c)
        if not is_integer(other.type) or is_bool(other.type):
            continue
        if rest.constant == 0:
            return other if c.constant == 1 else scalar.raw("neg", other)
        moved = scalar.raw("sub", other, scalar.index_value(rest))
        return moved if c.constant == 1 else scalar.raw("sub", scalar.index_value(rest), other)
    return None


def _at(e: Expr, index: str, where: Expr) -> Expr | None:
    """Return `e` with an index put in."""
    if isinstance(where, IndexValue | Const):
        value = where.value if isinstance(where, IndexValue) else Affine.of(int(where.value))
        return substitute(e, {index: value})
    return store_values(e, {index: where})


def sum_type(t: ValueType) -> ValueType:
    """Return the type of a sum: that of the body, which may be weak, or the accumulator type of integers and bool."""
    return accumulated(t) if not isinstance(t, Weak) and (is_integer(t) or is_bool(t)) else t


def _counts(loops: tuple[ReduceAxis, ...]) -> bool:
    """Whether the number of points of the loops is an expression: no extent depends on another loop or may be negative."""
    plain = (a.extent.single is not None and not a.extent.indices() for a in loops if isinstance(a, Axis))
    return all(plain) and not any(isinstance(a, BroadcastAxis) for a in loops)


def _size(loops: tuple[ReduceAxis, ...]) -> Expr:
    total = Affine.of(1)
    for a in loops:
        if isinstance(a, Axis):
            total = total * a.extent
        elif isinstance(a, GroupAxis):
            total = total * GroupSize(a.name)
    return IndexValue(total) if total.constant is None else scalar.number(total.constant)
