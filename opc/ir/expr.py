"""Typed scalar expressions of a kernel body in index notation: their nodes, which `expr_nodes` has, and what is asked of them.

An answer is kept in the node it is of: passes ask the same of one expression time and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opc.ir.affine import Affine
from opc.ir.dtypes import ValueType
from opc.ir.expr_nodes import (
    CHILDREN,
    ELLIPSIS,
    EXTREMES,
    NOTHING,
    REDUCTIONS,
    SEARCHES,
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    Extension,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    StrConst,
    TypeIs,
    children,
    is_same,
    is_same_value,
    parts_of,
    rewrite,
    walk,
    with_children,
    with_indices,
    with_parts,
)
from opc.ir.node import remembered

__all__ = [
    "ATTRIBUTE",
    "CHOICE",
    "CONDITION",
    "ELLIPSIS",
    "EXTREMES",
    "GROUP",
    "INDEX",
    "NOTHING",
    "NUMBER",
    "PADDING",
    "POSITION",
    "PRESENCE",
    "READ",
    "REDUCTION",
    "REDUCTIONS",
    "REFUSAL",
    "SEARCHES",
    "SPECULATION",
    "STATEMENTS",
    "TRUTH",
    "VARYING",
    "AttrRef",
    "Axis",
    "BroadcastAxis",
    "Call",
    "Cast",
    "Const",
    "Expr",
    "Extension",
    "GroupAxis",
    "GroupIndex",
    "GroupRef",
    "IndexValue",
    "Present",
    "Read",
    "Reduce",
    "ReduceAxis",
    "Select",
    "StrConst",
    "TypeIs",
    "affine_value",
    "affines",
    "asked_for",
    "children",
    "conjuncts",
    "free_groups",
    "free_indices",
    "free_names",
    "has_reduction",
    "holds_back",
    "is_same",
    "is_same_value",
    "joined_conditions",
    "map_affine",
    "may_refuse",
    "operands_read",
    "outermost",
    "own_affines",
    "parts_of",
    "reads",
    "reductions",
    "rewrite",
    "size",
    "traits",
    "types_in",
    "walk",
    "with_children",
    "with_indices",
    "with_parts",
]

READ, PADDING, REDUCTION, REFUSAL, INDEX, POSITION, GROUP = (1 << n for n in range(7))
PRESENCE, CHOICE, CONDITION, ATTRIBUTE, NUMBER, TRUTH, STATEMENTS, SPECULATION, TYPE = (1 << n for n in range(7, 16))
"""What may stand in an expression, bits of its `traits`: a read; a padded one; a reduction; what a call may be refused for (the
greatest of nothing, an index that is data); an index, or the position in a group, as a value; a group that is read, reduced or
counted; a question whether an operand is present; a conditional; a comparison or what joins them; an attribute; a literal; a
literal truth; and of a lower IR, statements in a block, and what may be computed speculatively;
and a question what a type variable stands for."""

VARYING = READ | REDUCTION | INDEX | POSITION
"""What makes an expression have other values at other points of a call."""

_CONDITIONS = frozenset(("and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge"))


def _own_of_read(e: Read) -> int:
    found = READ if e.pad is None else READ | PADDING
    if e.checked:
        found |= REFUSAL
    return found | GROUP if any(isinstance(i, GroupRef) for i in e.indices) else found


def _own_of_reduction(e: Reduce) -> int:
    found = REDUCTION | REFUSAL if e.kind in EXTREMES else REDUCTION
    return found | GROUP if any(isinstance(a, GroupAxis) for a in e.axes) else found


_OWN_TRAITS: dict[type, Callable[[Any], int]] = {
    Const: lambda e: NUMBER | TRUTH if isinstance(e.value, bool) else NUMBER,
    AttrRef: lambda e: ATTRIBUTE,
    Present: lambda e: PRESENCE,
    TypeIs: lambda e: TYPE,
    Select: lambda e: CHOICE,
    IndexValue: lambda e: INDEX if e.value.indices() else 0,
    GroupIndex: lambda e: POSITION | GROUP,
    Reduce: _own_of_reduction,
    Read: _own_of_read,
    Call: lambda e: CONDITION if e.fn in _CONDITIONS else 0,
}


@remembered("_traits", blank=True)
def traits(e: Expr) -> int:
    """Return what stands in `e`, itself included: one answer for all who look for one thing, and mostly for nothing."""
    own = _OWN_TRAITS.get(e.__class__)
    found = own(e) if own is not None else e.TRAITS if isinstance(e, Extension) else 0
    for c in CHILDREN[e.__class__](e):
        # Of what a node is made of this is mostly known.
        known: int | None = c._traits  # type: ignore[union-attr]  # it is a slot of all nodes
        found |= traits(c) if known is None else known
    return found


@remembered("_reads", blank=True)
def reads(e: Expr) -> tuple[Read, ...]:
    """Return every read in `e`, those around others first."""
    below = CHILDREN[e.__class__](e)
    if isinstance(e, Read):
        return (e, *[read for c in below for read in reads(c)]) if below else (e,)
    if len(below) == 1:
        return reads(below[0])
    return tuple([read for c in below for read in reads(c)]) if below else ()


@remembered("_types")
def types_in(e: Expr) -> frozenset[ValueType]:
    """Return the types of `e` and of all that stands in it."""
    return frozenset([n.type for n in walk(e)])


@remembered("_reductions")
def reductions(e: Expr) -> tuple[Reduce, ...]:
    """Return every reduction in `e`, those around others first."""
    if not traits(e) & REDUCTION:
        return ()
    below = [r for c in children(e) for r in reductions(c)]
    return (e, *below) if isinstance(e, Reduce) else tuple(below)


def outermost(e: Expr) -> Iterator[Reduce]:
    """Yield the reductions in `e` that stand in no other one."""
    if isinstance(e, Reduce):
        yield e
        return
    for c in children(e):
        yield from outermost(c)


@remembered("_operands")
def operands_read(e: Expr) -> frozenset[str]:
    """Return the names of the operands that `e` reads."""
    return frozenset([read.operand for read in reads(e)])


@remembered("_asked")
def asked_for(e: Expr) -> frozenset[str]:
    """Return the operands of which `e` asks whether they are present."""
    if not traits(e) & PRESENCE:
        return NOTHING
    return frozenset((e.operand,)) if isinstance(e, Present) else NOTHING.union(*map(asked_for, children(e)))


def holds_back(e: Expr) -> bool:
    """Whether a part of an expression passes no gradient on."""
    return any(isinstance(n, Call) and n.fn == "stop_gradient" for n in walk(e))


def has_reduction(e: Expr) -> bool:
    """Whether `e` holds a reduction."""
    return traits(e) & REDUCTION != 0


def conjuncts(e: Expr) -> list[Expr]:
    """Return the conditions that `and` joins, `e` alone where it joins none."""
    return [c for a in e.args for c in conjuncts(a)] if isinstance(e, Call) and e.fn == "and" else [e]


def affine_value(e: Expr) -> Affine | None:
    """Return the affine expression that the value of an index or a whole literal is, None for any other value."""
    match e:
        case IndexValue():
            return e.value
        case Const(value=int(value)):
            return Affine.of(value)
        case _:
            return None


def own_affines(e: Expr) -> tuple[Affine, ...]:
    """Return the affine expressions that stand in `e` itself: the value of an index, indices of a read, extents of axes."""
    match e:
        case IndexValue():
            return (e.value,)
        case Read():
            return tuple([i for i in e.indices if isinstance(i, Affine)])
        case Reduce():
            return tuple([a.extent for a in e.axes if isinstance(a, Axis)])
        case _:
            return ()


def affines(e: Expr) -> Iterator[Affine]:
    """Yield every affine expression in `e`: indices, values of indices, extents."""
    for node in walk(e):
        yield from own_affines(node)


def map_affine(e: Expr, change: Callable[[Affine], Affine]) -> Expr:
    """Return `e` with every affine expression (indices, extents, index values) replaced by `change` of it."""

    def rule(node: Expr) -> Expr:
        match node:
            case IndexValue():
                value = change(node.value)
                return node if value is node.value else IndexValue(value, node.span)
            case Read():
                return with_indices(node, tuple([change(i) if isinstance(i, Affine) else i for i in node.indices]))
            case Reduce():
                axes = tuple([Axis(a.index, change(a.extent)) if isinstance(a, Axis) else a for a in node.axes])
                return node if axes == node.axes else Reduce(node.kind, axes, node.body, node.type, node.span)
            case _:
                return node

    return rewrite(e, rule)


@remembered("_indices", blank=True)
def free_indices(e: Expr) -> frozenset[str]:
    """Return the index variables that `e` uses and does not bind by a reduction."""
    if isinstance(e, IndexValue):
        return e.value.indices()
    if isinstance(e, Read):
        found = [i.indices() if isinstance(i, Affine) else free_indices(i) for i in e.indices if not isinstance(i, GroupRef)]
        if e.pad is not None:
            found.append(free_indices(e.pad))
        return _union(found)
    if isinstance(e, Reduce):
        own = {a.index for a in e.axes if isinstance(a, Axis)}
        extents = {n for a in e.axes if isinstance(a, Axis) for n in a.extent.indices()}
        return (free_indices(e.body) - own) | extents
    return _union([free_indices(c) for c in CHILDREN[e.__class__](e)])


def _union(sets: list[frozenset[str]]) -> frozenset[str]:
    """Return the union of sets; one of them where the others hold no more."""
    if not sets:
        return NOTHING
    found = sets[0]
    for other in sets:
        if other is not found and not other <= found:
            found = found | other
    return found


@remembered("_groups")
def free_groups(e: Expr) -> frozenset[str]:
    """Return the axis groups that `e` uses and does not reduce away whole."""
    match e:
        case GroupIndex():
            return frozenset((e.group,))
        case Read():
            found = {i.name for i in e.indices if isinstance(i, GroupRef)}
            return NOTHING.union(found, *(free_groups(c) for c in children(e)))
        case Reduce():
            # What a sum over broadcast axes leaves of the group is the operand's own.
            left = {a.name for a in e.axes if isinstance(a, BroadcastAxis)}
            return (free_groups(e.body) - {a.name for a in e.axes if isinstance(a, GroupAxis)}) | left
        case _:
            return NOTHING.union(*(free_groups(c) for c in children(e)))


def free_names(e: Expr) -> frozenset[str]:
    """Return the index variables and the axis groups that `e` uses and does not reduce away."""
    return free_indices(e) | free_groups(e)


@remembered("_size", blank=True)
def size(e: Expr) -> int:
    """Return the number of nodes of `e`, as often as each stands in it."""
    return 1 + sum(map(size, CHILDREN[e.__class__](e)))


def may_refuse(e: Expr) -> bool:
    """Whether a call may be refused for a value: for the greatest of nothing, or an index that is data."""
    return traits(e) & REFUSAL != 0


def joined_conditions(e: Call) -> Expr:
    """Return `a and b` or `a or b` with what a literal among the two decides.

    The first is asked whatever the second is: where a call may be refused for it, it stays.
    """
    a, b = e.args
    goes_on = e.fn == "and"
    if isinstance(a, Const):
        return b if a.value == goes_on else a
    if isinstance(b, Const) and (b.value == goes_on or not may_refuse(a)):
        return a if b.value == goes_on else b
    return e
