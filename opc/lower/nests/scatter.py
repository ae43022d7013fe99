"""Reductions in which a condition names the index of each term: run as one pass over the terms instead of one for each index.

`y[v, d] = sum[n](src[n, d] if ids[n] == v else 0)` adds src[n, d] to y[ids[n], d] for each n in order; so maxima, minima,
products, `any` and `all` take their terms in. The counterpart of a sum, a sum
over indices of which one counts, is a read at that index: `sum[v](g[v, d] if ids[n] == v else 0)` is g[ids[n], d] where that
exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import takewhile

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.quotients import every_division
from opc.analysis.patterns import conjunction, with_digits
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, ElementType, ValueType, Weak, is_integer
from opc.ir.expr import (
    EXTREMES,
    SEARCHES,
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
    affines,
    children,
    free_groups,
    free_indices,
    has_reduction,
    may_refuse,
    reads,
    rewrite,
    walk,
    with_children,
)
from opc.ir.identity import IDENTITY, identity_of
from opc.ir.op import Assign, Op, Operand
from opc.ir.op import ScatterMode as AddOrder
from opc.ir.rules import converted
from opc.lower.alone import of_statement
from opc.lower.contractions.terms import is_invariant
from opc.lower.guards import Guard, disjuncts, guards
from opc.lower.nest_plans import Flat, ScatterPlan
from opc.lower.nests.flat import flat_statement, is_positive
from opc.lower.nests.runs import is_scatter_of_runs
from opc.lower.nests.terms import conditions_of, under_invariants, whole_reduction
from opc.lower.rows.flatten import maybe_empty
from opc.records import replace
from opc.transform.indices import Namer, bare, comparable, index_names, op_names, substitute
from opc.transform.scalar import COMPARES, negation


def scatter_plan(op: Op, assign: Assign) -> ScatterPlan | None:
    """Return how a statement whose whole value is such a reduction is run, else None."""
    return _scatter_plan(op, assign) if has_reduction(assign.value) else None


@of_statement
def _scatter_plan(op: Op, assign: Assign) -> ScatterPlan | None:
    flat = flat_statement(op, assign)
    return None if flat is None else flat_scatter(op, flat)


def flat_scatter(op: Op, flat: Flat) -> ScatterPlan | None:
    """Return how a flat statement whose whole value is such a reduction is run, else None."""
    whole = whole_reduction(op, flat)
    if whole is None:
        return None
    given, value = whole
    found = _places(op, value, dict(zip(flat.indices, flat.extents, strict=True)))
    if found is None:
        return None
    scatter_indices, rest, body = found
    if has_reduction(body) or any(not isinstance(g, Affine) and has_reduction(g) for g in rest):
        return None
    # Searches take the terms of an axis in rows; then the elements of the target are taken one by one.
    searched = [n for _, p in scatter_indices for n in walk(p) if isinstance(n, Reduce)]
    if any(n.kind not in SEARCHES or has_reduction(n.body) for n in searched):
        return None
    last = flat.indices[-1]
    fixed = last in dict(scatter_indices) or bool(searched)
    # Threads may take some of the terms each where their number is known.
    shared = (
        op.scatter is AddOrder.ATOMIC
        and value.kind == "sum"
        and not searched
        and not any(isinstance(a, Axis) and a.extent.indices() for a in value.axes)
    )
    return ScatterPlan(flat, value, scatter_indices, rest, body, None if fixed else last, given, shared=shared)


def _places(
    op: Op, e: Reduce, targets: Mapping[str, Affine]
) -> tuple[tuple[tuple[str, Expr], ...], tuple[Guard, ...], Expr] | None:
    """Return the computed index of each target index that conditions of a reduction fix, the other conditions, and the term."""
    conditions, body = conditions_of(e.body, e.kind)
    numbered = with_digits(conditions, targets)
    told = set[str]().union(*(free_indices(c) & targets.keys() for c in numbered if c not in conditions))
    own = set(e.extents)
    # Where other conditions say which terms may be at a point, as those of windows do, each point looks at these alone.
    if not any(told & free_indices(c) and own & free_indices(c) for c in conditions if c in numbered):
        conditions = numbered
    scatter_indices: dict[str, Expr] = {}
    rest: list[Expr] = []
    # What may refuse the call is asked before whatever follows it, for all indices.
    for n, c in enumerate(conditions):
        for index, position in equalities(c):
            if index in targets and index not in scatter_indices and free_indices(position) & own:
                scatter_indices[index] = position
                break
        else:
            if may_refuse(c):
                rest.append(conjunction(conditions[n:]))
                break
            rest.append(c)
    fixed = set(scatter_indices)
    if not any(_is_computed(p) for p in scatter_indices.values()) or any(
        free_indices(p) & fixed for p in scatter_indices.values()
    ):
        return None
    if any(isinstance(a, Axis) and a.extent.indices() & fixed for a in e.axes):
        return None
    found = tuple(g for c in rest for g in guards(c, lambda size: is_positive(op, size)))
    return tuple(scatter_indices.items()), found, body


def _is_computed(position: Expr) -> bool:
    """Whether an index is found by data, by a division, or by an expression that was not solved for a term (see `solved`)."""
    if any(isinstance(n, Read) for n in walk(position)) or any(True for a in affines(position) for _ in every_division(a)):
        return True
    affine = affine_of(position)
    return affine is not None and affine.index is None


def equalities(c: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield the ways in which a condition says that an index is the value of an expression of integers without it."""
    if not isinstance(c, Call) or c.fn != "eq":
        return
    for one, other in (c.args, c.args[::-1]):
        side = affine_of(one)
        if side is not None and side.index is not None and side.index not in free_indices(other) and is_integer(other.type):
            yield side.index, other


def extract_scatters(op: Op) -> Op:
    """Return the op with each such sum as a statement of its own, and sums of which one term counts as reads."""
    op = op.with_body(tuple([_with_reads(op, s) for s in op.body]))
    namer = Namer(op_names(op) | index_names(op))
    statements: list[Assign] = []
    temporaries: list[Operand] = []
    for s in op.body:
        if _scatters(op, s):
            statements.append(s)
            continue

        def taken_out(e: Expr, under: tuple[Expr, ...] = (), s: Assign = s) -> Expr:
            if not has_reduction(e):
                return e
            own = _own_statement(op, s, e, under)
            if own is None:
                sides = [(*under, e.cond), (*under, negation(e.cond))] if isinstance(e, Select) else []
                kept = [under] * (len(children(e)) - len(sides))
                return with_children(e, tuple(taken_out(c, u, s) for c, u in zip(children(e), [*kept, *sides], strict=True)))
            value, stored, kind = own
            name = namer.fresh(f"{s.target}_{kind}")
            temporaries.append(replace(op.operand(s.target), name=name, type=stored, optional=False, doc=""))
            statements.append(Assign(name, s.indices, value, s.span))
            return Read(name, bare(s.indices), stored, span=s.span)

        statements.append(s.with_value(taken_out(s.value)))
    if not temporaries:
        return op
    return replace(op, body=tuple(statements), temporaries=(*op.temporaries, *temporaries))


def _scatters(op: Op, s: Assign) -> bool:
    """Whether a statement is a scatter to places, or to runs of places."""
    return scatter_plan(op, s) is not None or is_scatter_of_runs(op, s)


def _with_reads(op: Op, s: Assign) -> Assign:
    """Return a statement with sums of which one term counts as reads, where all of them are inside."""
    if not has_reduction(s.value):
        return s
    found = replace(s, value=rewrite(s.value, _as_read))
    return s if found.value is s.value or any(ReadsInside(op).outside(found)) else found


def _own_statement(op: Op, s: Assign, e: Expr, under: tuple[Expr, ...]) -> tuple[Expr, ElementType, str] | None:
    """Return `e`, the type of a temporary for it and its kind when it is a scatter at every point of the statement's target.

    It stands under conditions: where these bound what it reads, or decide what is looked up, each of its terms has them.
    """
    _, inner = under_invariants(e)
    if not isinstance(inner, Reduce) or inner.kind not in IDENTITY or not isinstance(e, Reduce | Select):
        return None
    if inner.kind != "sum" and isinstance(e.type, Weak):
        return None
    own, groups = {i for i in s.indices if isinstance(i, str)}, {i.name for i in s.indices if isinstance(i, GroupRef)}
    if not free_indices(e) <= own or not free_groups(e) <= groups:
        return None  # it stands in another reduction
    stored: ElementType
    stored = (DType.INT64 if e.type is Weak.INT else DType.FLOAT64) if isinstance(e.type, Weak) else e.type
    typed: Expr = _typed(e, stored)
    target = replace(op.operand(s.target), name="#", type=stored)
    probe = replace(op, temporaries=(*op.temporaries, target))
    alone = replace(s, target="#", value=typed)
    if not _scatters(probe, alone):
        return None
    nothing = identity_of(inner.kind, typed.type)
    if under and inner.kind in EXTREMES and maybe_empty(knowledge_of(op), inner, {}, ()):
        # Conditions of the call must say that there are terms: what is computed for all points is refused where there are none.
        asked = tuple(c for c in under if is_invariant(c))
        if maybe_empty(knowledge_of(op), inner, {}, tuple((c, True) for c in asked)):
            return None
        typed = Select(conjunction(asked), typed, nothing, typed.type)
        alone = replace(alone, value=typed)
        if not _scatters(probe, alone):
            return None
    checked = any(r.checked for r in reads(typed))
    if under and (checked or any(ReadsInside(probe).outside(alone))):
        kept = tuple(c for c in under if free_indices(c) <= own and free_groups(c) <= groups)
        if not kept or (checked and len(kept) < len(under)):
            return None  # the reduction around it decides what is looked up
        typed = _with_conditions(typed, kept, nothing)
        alone = replace(alone, value=typed)
        if not _scatters(probe, alone) or any(ReadsInside(probe).outside(alone)):
            return None
    return typed, stored, inner.kind


def _with_conditions(e: Expr, conditions: tuple[Expr, ...], nothing: Const) -> Expr:
    """Return a scatter of which only the terms count that conditions on its target's indices leave."""
    if isinstance(e, Select):
        return replace(e, then=_with_conditions(e.then, conditions, nothing))
    assert isinstance(e, Reduce)
    return replace(e, body=Select(conjunction(conditions), e.body, replace(nothing, type=e.body.type), e.body.type))


def is_scatter(op: Op, s: Assign, e: Reduce) -> bool:
    """Whether a reduction in a statement is a scatter at every point of its target."""
    return _own_statement(op, s, e, ()) is not None


def _typed(e: Reduce | Select, stored: ElementType) -> Reduce | Select:
    """Return a scatter whose reduction has a type that can be stored."""
    if isinstance(e, Reduce):
        return replace(e, type=stored)
    assert isinstance(e.then, Reduce | Select), "a scatter under conditions is a choice of a reduction"
    return replace(e, then=_typed(e.then, stored), type=stored)


def _as_read(e: Expr) -> Expr:
    """Return a sum over an index that conditions fix as its terms that count: one, or one for each index of which any will do."""
    if not isinstance(e, Reduce) or e.kind != "sum":
        return e
    conditions, body = conditions_of(e.body)
    conditions = with_digits(conditions, {a.index: a.extent for a in e.axes if isinstance(a, Axis)})
    for axis in e.axes:
        if not isinstance(axis, Axis) or any(isinstance(a, Axis) and axis.index in a.extent.indices() for a in e.axes):
            continue
        bound = set(e.extents) - {axis.index}
        for n, c in enumerate(conditions):
            choices = disjuncts(c)
            # An index may be looked up only where the conditions before say so.
            first = list(takewhile(lambda x, own=axis.index: own not in free_indices(x), conditions[:n]))  # type: ignore[misc]  # a default binds the loop's value
            if any(map(may_refuse, conditions[len(first) : n])):
                continue  # asked for all of them
            rest = conditions[len(first) : n] + conditions[n + 1 :]
            terms = []
            for k, choice in enumerate(choices):
                earlier = [negation(other) for other in choices[:k]]
                terms.append(_term_at(axis, choice, first, [*earlier, *rest], body))
            found = [t for t in terms if t is not None]
            if len(found) < len(terms) or axis.extent.indices() & bound:
                continue
            term: Expr = found[0] if len(found) == 1 else _added(found, e.type)
            axes = tuple(a for a in e.axes if a is not axis)
            if axes:
                return _as_read(replace(e, axes=axes, body=term))
            total = replace(term, type=e.type) if isinstance(term, Select) else term
            return Call("add", (Const(0, Weak.INT), total), e.type)  # a sum is never -0
    return e


def _added(terms: list[Expr], t: ValueType) -> Expr:
    """Return the sum of terms in the type that they are summed in."""
    return reduce(lambda a, b: Call("add", (a, b), t), (x if x.type == t else Cast(x, t) for x in terms))


def _term_at(axis: Axis, choice: Expr, first: list[Expr], rest: list[Expr], body: Expr) -> Expr | None:
    """Return the term of a sum at the one index that `choice` names, 0 where `first` doesn't hold, it is outside, or `rest`
    doesn't hold. What may refuse the call is asked where there are terms."""
    position = next((p for i, p in equalities(choice) if i == axis.index), None)
    if position is None or any(not _replaceable(x, axis.index, position) for x in (*rest, body)):
        return None
    put_in = _substitution(axis.index, position)
    wide = position if isinstance(position.type, Weak) else converted(position, DType.INT64)
    some = Call("gt", (IndexValue(axis.extent), Const(0, Weak.INT)), DType.BOOL)
    inside = [
        *([some] if any(map(may_refuse, (*first, position))) else []),
        *first,
        Call("ge", (wide, Const(0, Weak.INT)), DType.BOOL),
        Call("lt", (wide, IndexValue(axis.extent)), DType.BOOL),
        *(put_in(x) for x in rest),
    ]
    return Select(conjunction(inside), put_in(body), Const(0, body.type), body.type)


def _replaceable(e: Expr, index: str, position: Expr) -> bool:
    """Whether an index can be replaced by an expression: it stands alone wherever it stands, or the expression is affine."""
    if affine_of(position) is not None:
        return True
    for node in walk(e):
        match node:
            case Read():
                if any(isinstance(i, Affine) and index in i.indices() and i.index != index for i in node.indices):
                    return False
            case IndexValue():
                if index in node.value.indices() and node.value.index != index:
                    return False
            case Reduce():
                if any(isinstance(a, Axis) and index in a.extent.indices() for a in node.axes):
                    return False
    return True


def place(e: Expr, index: str, position: Expr) -> Expr | None:
    """Return `e` with an expression for an index, None where it stands with others."""
    return _substitution(index, position)(e) if _replaceable(e, index, position) else None


def _substitution(index: str, position: Expr) -> Callable[[Expr], Expr]:
    affine = affine_of(position)
    if affine is not None:
        return lambda e: substitute(e, {index: affine})

    def rule(node: Expr) -> Expr:
        match node:
            case Read():
                indices = tuple(position if isinstance(i, Affine) and i.index == index else i for i in node.indices)
                return replace(node, indices=indices)
            case IndexValue() if node.value.index == index:
                return position
            case Call() if node.fn in COMPARES:
                return replace(node, args=comparable(node.args))
            case _:
                return node

    return lambda e: rewrite(e, rule)
