"""Codelets: statements as loops over a box of their targets, which a vertex of Poplar's computes on its tile."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Dim, Index
from opc.ir.expr import Axis, Expr, IndexValue, Reduce, children, reads, with_children
from opc.ir.op import Assign, Op
from opc.ir.printer import format_assign
from opc.loops.conditions import propagate
from opc.loops.names import named
from opc.loops.nodes import Body, Comment, Do, Kernel, View
from opc.loops.values import Word, call, number
from opc.loops.verify import verify_kernel
from opc.lower.build.kernel import spec_names
from opc.lower.nest_plans import Flat, ScanPlan, ScatterPlan
from opc.lower.nests.scan import flat_scan
from opc.lower.nests.scatter import flat_scatter
from opc.lower.poplar.codelet_fields import RESERVED, fields_of, narrowed, nodes_of
from opc.lower.poplar.codelet_loops import CodeletLoops
from opc.lower.poplar.codelet_nodes import STATUS_OF_WORKER, CodeletOperand, CodeletStage
from opc.lower.poplar.codelet_sums import reduced_value
from opc.lower.poplar.entries import Entries, entries_of
from opc.lower.poplar.needs import Needs
from opc.records import replace
from opc.transform.indices import Namer, index_names, op_names, substitute

__all__ = ["CodeletStage", "codelet_stage"]


def codelet_stage(op: Op, assign: Assign, name: str) -> CodeletStage:
    """Return the codelet of a statement of an op, whose class is to be called `name`.

    Raises:
        UnsupportedForm: when the statement asks for what a codelet can't tell.
    """
    entries = _with_own_names(entries_of(op, assign))
    loops, own = CodeletLoops(op, entries, name), entries.assign
    plan = _plan(entries)
    if plan is not None:
        loops.split = ()
    body = _body(loops, plan)
    ends = (*loops.indices, *(a.index for a in loops.split))
    start: Body = (Do(call("report", Word(STATUS_OF_WORKER), number(0), number(0))),) if loops.refusals else ()
    body = narrowed(propagate((*start, *loops.share(), Comment(format_assign(assign)), *body)), own.value)
    namer = Namer(RESERVED | index_names(entries.op) | op_names(op) | op_names(entries.op))
    namer.taken |= {a.name for e in nodes_of(body) if isinstance(e, IndexValue) for a in e.value.atoms() if isinstance(a, Dim)}
    operands = {n: namer.fresh(f"{n}_part") if n in RESERVED else n for n in loops.nest.operands}
    fields = fields_of(op, body, ends, operands, namer)
    views = tuple(View(n, entries.op.operand(n).type, True, k) for k, n in enumerate(loops.nest.operands))
    kernel = Kernel("codelet", loops.nest.operands, loops.nest.types, body, views, span=assign.span)
    # The class of a codelet has fields, whose names are the operands', and no parameters.
    kernel = named(kernel, {f.name for f in fields} | set(operands.values()) | spec_names(op), frozenset())
    verify_kernel(kernel)
    found = [_operand(op, entries, n, operands[n]) for n in loops.nest.operands]
    whole = None if plan is not None else reduced_value(own.value)
    if isinstance(plan, ScatterPlan) or loops.split:
        found[-1] = replace(found[-1], kept=True)
    form = "scatter" if isinstance(plan, ScatterPlan) else "scan" if isinstance(plan, ScanPlan) else "points"
    return CodeletStage(
        name,
        form,
        assign,
        entries.op,
        found[-1],
        tuple(found[:-1]),
        tuple(zip(loops.indices, found[-1].extents, strict=True)),
        tuple(dict.fromkeys((a.index, a.extent) for _, axes in _reductions(own.value, ()) for a in axes)),
        tuple(_work(own.value, loops.indices, plan)),
        tuple((a.index, a.extent) for a in loops.split),
        whole.kind if loops.split and whole is not None else "",
        tuple(n for n, i in enumerate(loops.indices) if i in _serial(plan)),
        tuple(entries.parts.items()),
        fields,
        tuple(loops.refusals),
        tuple(loops.nonempty),
        Needs.outputs_behind(op, assign.target),
        kernel,
    )


def _plan(entries: Entries) -> ScatterPlan | ScanPlan | None:
    """Return how a statement is run in a number of steps that does not grow with the product of its target and its terms."""
    assign = entries.assign
    extents = tuple(d for d in entries.op.operand(assign.target).dims if isinstance(d, Affine))
    if not extents:
        return None
    flat = Flat(assign.target, tuple(map(str, assign.indices)), extents, assign.value)
    return flat_scatter(entries.op, flat) or flat_scan(entries.op, flat)


def _body(loops: CodeletLoops, plan: ScatterPlan | ScanPlan | None) -> Body:
    match plan:
        case ScatterPlan():
            return loops.scatter(plan)
        case ScanPlan():
            return loops.scan(plan)
        case None:
            return loops.points()


def _operand(op: Op, entries: Entries, name: str, field: str) -> CodeletOperand:
    declared = entries.op.operand(name)
    own = (r for r in reads(entries.assign.value) if r.operand == name)
    found = dict.fromkeys(tuple(i if isinstance(i, Affine) else None for i in r.indices) for r in own)
    extents = tuple(d for d in declared.dims if isinstance(d, Affine))
    kept = any(o.name == name for o in op.temporaries)
    optional = any(o.name == name and o.optional for o in op.inputs)
    return CodeletOperand(name, field, declared.type, entries.views[name], extents, tuple(found), kept, optional)


def _reductions(e: Expr, around: tuple[Axis, ...]) -> Iterator[tuple[tuple[Axis, ...], tuple[Axis, ...]]]:
    """Yield the axes around each reduction and its own, outer ones first."""
    if isinstance(e, Reduce):
        own = tuple(a for a in e.axes if isinstance(a, Axis))
        yield around, own
        around = (*around, *own)
    for c in children(e):
        yield from _reductions(c, around)


def _work(e: Expr, indices: tuple[str, ...], plan: ScatterPlan | ScanPlan | None) -> Iterator[tuple[str, ...]]:
    """Yield the indices of each nest of loops."""
    yield indices
    serial = _serial(plan)
    for around, own in _reductions(e, ()):
        yield (*(i for i in indices if i not in serial), *(a.index for a in (*around, *own)))


def _serial(plan: ScatterPlan | ScanPlan | None) -> tuple[str, ...]:
    """Return the target's indices along which the terms are not divided: each part of them goes through all."""
    match plan:
        case ScatterPlan():
            return tuple(i for i, _ in plan.scatter_indices)
        case ScanPlan():
            return (plan.index,)
        case None:
            return ()


def _with_own_names(entries: Entries) -> Entries:
    """Return a statement in which the axes of each reduction have names that no others have."""
    namer = Namer(op_names(entries.op) | {str(i) for i in entries.assign.indices})
    known: dict[Expr, Expr] = {}

    def renamed(e: Expr) -> Expr:
        if not isinstance(e, Reduce):
            return with_children(e, tuple(map(renamed, children(e))))
        if e not in known:
            own = [a for a in e.axes if isinstance(a, Axis)]
            names = {a.index: Affine.of(Index(namer.fresh(a.index))) for a in own}
            axes: list[Axis] = []
            for n, a in enumerate(own):
                extent = substitute(IndexValue(a.extent), {x.index: names[x.index] for x in own[:n]})
                assert isinstance(extent, IndexValue), "it stays one"
                axes.append(Axis(names[a.index].index or "", extent.value))
            known[e] = replace(e, axes=tuple(axes), body=renamed(substitute(e.body, names)))
        return known[e]

    assign = entries.assign.with_value(renamed(entries.assign.value))
    return replace(entries, op=entries.op.with_body((assign,)), assign=assign)
