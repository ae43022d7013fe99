"""The stable order of an axis, as an expression of index notation.

`argsort[k](x[k])[i]` is the position of the element that stands at place i of the sorted axis. There is no node for it: it is
the position whose count of elements ahead of it is i, so that all that is known of sums, comparisons and searches holds for it
too, on every target.

    rank[j] = sum[k:N](cast(int64, x[k] <= x[j] and (k < j or not x[j] <= x[k])))
    p[i] = argmax[j:N](cast(int64, rank[j] == i))

where `a <= b` holds for a NaN `b` as well: NaN stands last. Of a descending order both comparisons are turned round. Each of
these is exact, so that ranks are a permutation. A target that sorts finds the pair by `orderings`.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.diagnostics import Span
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType
from opc.ir.expr import (
    AttrRef,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    map_affine,
    operands_read,
    reads,
    rewrite,
    with_indices,
)
from opc.ir.node import memoised, remembered
from opc.ir.op import Assign, Op
from opc.ir.recurrence import recurrent
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Ordering:
    """What a statement orders: `key` along its index `along`, which runs below `extent`.

    The statement's value is the position of the element at the place `rank` of the order. `counts` names the temporary that holds
    the ranks, None where they stand in the statement itself.
    """

    key: Read
    along: str
    extent: Affine
    rank: Affine
    descending: bool | AttrRef
    counts: str | None = None


def at_index(key: Read, old: str, new: str) -> Read:
    """Return a read with another index variable in place of one."""
    to = Affine.of(Index(new))

    def moved(i: Affine | GroupRef | Expr) -> Affine | GroupRef | Expr:
        return i.at(old, to) if isinstance(i, Affine) else i

    return with_indices(key, tuple(moved(i) for i in key.indices))


def ahead(key: Read, k: str, j: str, descending: bool) -> Expr:
    """Return whether the element at `k` stands ahead of the one at `j`: it is less, or as large and first."""
    here, there = at_index(key, k, k), at_index(key, k, j)
    first, second = (there, here) if descending else (here, there)
    earlier = _logic("lt", IndexValue(Affine.of(Index(k)), key.span), IndexValue(Affine.of(Index(j)), key.span))
    return _logic("and", _up_to(first, second), _logic("or", earlier, _logic("not", _up_to(second, first))))


def _up_to(a: Read, b: Read) -> Expr:
    return _logic("or", _logic("le", a, b), _logic("ne", b, b))


def _logic(fn: str, *args: Expr) -> Expr:
    return Call(fn, args, DType.BOOL, args[0].span)


def position_of(place: Expr, condition: Expr, axis: Axis, other: Axis, span: Span) -> Reduce:
    """Return the position along `other` at the place of an order, where `condition` tells what along `axis` is ahead of it."""
    rank = Reduce("sum", (axis,), Cast(condition, DType.INT64, span), DType.INT64, span)
    return Reduce("argmax", (other,), Cast(_logic("eq", rank, place), DType.INT64, span), DType.INT64, span)


@remembered("_orderings")
def orderings(op: Op) -> Mapping[str, Ordering]:
    """Return what statements of an op order, by their targets."""
    stepping = recurrent(op)
    found = {s.target: _ordering(op, s) for s in op.body if s.target not in stepping}
    return {target: o for target, o in found.items() if o is not None}


def _ordering(op: Op, s: Assign) -> Ordering | None:
    e = search_of(s.value)
    return None if e is None else ordering_of(e, op)


def search_of(e: Expr) -> Reduce | None:
    """Return the search along one axis that an expression is, be it 0 where the axis is empty; else None."""
    match e:
        case Select(
            cond=Call(fn="gt", args=(IndexValue(value=size), Const(value=0))),
            then=Reduce(axes=(Axis(extent=extent),)) as search,
            other=Const(value=0),
        ) if size == extent:
            return search
        case Reduce():
            return e
        case _:
            return None


def ordering_of(e: Reduce, op: Op | None = None) -> Ordering | None:
    """Return what a search along one axis orders, None where it is none of an order; its ranks may be a temporary of an op."""
    match e:
        case Reduce(kind="argmax", axes=(Axis() as axis,), body=Cast(arg=Call(fn="eq", args=(a, b)))):
            pass
        case _:
            return None
    if isinstance(a, IndexValue | Const):
        a, b = b, a
    rank = Affine.of(int(b.value)) if isinstance(b, Const) else b.value if isinstance(b, IndexValue) else None
    if rank is None or axis.index in rank.indices():
        return None
    counts = None
    if isinstance(a, Read) and op is not None and a.operand in {t.name for t in op.temporaries}:
        counts, definition = a.operand, op.assignments[a.operand]
        moved = at_target(definition, a)
        if moved is None:
            return None
        a = moved
    found = _counted(a, axis)
    if found is None:
        return None
    key, along, descending = found
    return Ordering(key, along, axis.extent, rank, descending, counts)


def at_target(definition: Assign, read: Read) -> Expr | None:
    """Return the value of a temporary where it is read, at index variables that are all different."""
    new: dict[str, Affine] = {}
    for name, index in zip(definition.indices, read.indices, strict=True):
        if isinstance(name, str) and isinstance(index, Affine) and index.index is not None:
            new[name] = index
        elif name != index:
            return None
    if len({i.index for i in new.values()}) < len(new):
        return None
    bound = set(definition.value.extents) if isinstance(definition.value, Reduce) else set()
    if bound & {i.index for i in new.values()}:
        return None
    return map_affine(definition.value, lambda a: a.substitute(lambda s: new.get(s.name) if isinstance(s, Index) else None))


def _counted(e: Expr, axis: Axis) -> tuple[Read, str, bool | AttrRef] | None:
    """Return the key of which `e` counts the elements ahead of the one at an axis, its index, and whether that is descending."""
    match e:
        case Reduce(kind="sum", axes=(Axis(index=k, extent=extent),), body=Cast(type=DType.INT64, arg=condition)):
            pass
        case _:
            return None
    if extent != axis.extent or extent.indices():
        return None
    if isinstance(condition, Select):
        down, up = (_compared(side, k, axis.index) for side in (condition.then, condition.other))
        if down is None or up is None or not isinstance(condition.cond, AttrRef):
            return None
        return (up[0], k, condition.cond) if down == (up[0], True) and not up[1] else None
    found = _compared(condition, k, axis.index)
    return None if found is None else (found[0], k, found[1])


def _compared(condition: Expr, k: str, j: str) -> tuple[Read, bool] | None:
    """Return the key of which a condition tells whether the element at `k` is ahead of that at `j`, and if that is descending."""
    for key in reads(condition):
        plain = key.pad is None and not key.checked and all(isinstance(i, Affine | GroupRef) for i in key.indices)
        used = {n for i in key.indices if isinstance(i, Affine) for n in i.indices()}
        if plain and k in used and j not in used:
            return next(((key, d) for d in (False, True) if condition == ahead(key, k, j, d)), None)
    return None


@memoised
def compared_places(condition: Expr) -> tuple[Affine, Affine] | None:
    """Return the places `k` and `j` where a condition is whether the element at `k` stands ahead of the one at `j`; else None."""
    match condition:
        case Call(fn="and", args=(_, Call(fn="or", args=(Call(fn="lt", args=(IndexValue(value=k), IndexValue(value=j))), _)))):
            known = k.index is not None and j.index is not None and _compared(condition, k.index, j.index) is not None
            return (k, j) if known else None
        case _:
            return None


def with_whole_orders(op: Op) -> Op:
    """Return the op with the ranks of each order in the statement that looks for one, where nothing else reads them."""
    found = {target: o.counts for target, o in orderings(op).items() if o.counts and readers(op, o.counts) == [target]}
    if not found:
        return op
    body = tuple(with_ranks(op, s, found.get(s.target)) for s in op.body if s.target not in found.values())
    return replace(op, body=body, temporaries=tuple(t for t in op.temporaries if t.name not in found.values()))


def with_ranks(op: Op, s: Assign, counts: str | None) -> Assign:
    """Return a search for a rank with the ranks themselves in place of the temporary that holds them."""
    if counts is None:
        return s
    definition = op.assignments[counts]

    def rule(e: Expr) -> Expr:
        return (at_target(definition, e) or e) if isinstance(e, Read) and e.operand == counts else e

    return s.with_value(rewrite(s.value, rule))


def readers(op: Op, name: str) -> list[str]:
    """Return the targets of the statements that read an operand."""
    return [s.target for s in op.body if name in operands_read(s.value)]
