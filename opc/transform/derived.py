"""What reverse and forward mode share: who takes part, which forward values to recompute or save, and the finished op."""

from __future__ import annotations

from opc.analysis.shapes.plan import undetermined
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import ElementType, candidates, is_floating, is_integer
from opc.ir.expr import (
    Expr,
    GroupAxis,
    GroupRef,
    Read,
    Reduce,
    asked_for,
    children,
    has_reduction,
    own_affines,
    reads,
    rewrite,
)
from opc.ir.narrow import narrow
from opc.ir.node import remembered
from opc.ir.op import Assign, Derivation, Group, Op, Operand, Role
from opc.ir.recurrence import NotSteppingError, in_order, recurrences, recurrent, segments
from opc.records import dataclass, replace
from opc.transform.absent import presence_outside, seeds_of
from opc.transform.asked import asking_no_more
from opc.transform.decide import decide
from opc.transform.inline import inline, merge
from opc.transform.normalize import hoist, nest_products, prune, sink
from opc.transform.share import share
from opc.transform.simplify import simplify
from opc.transform.tape import tape


def floating(t: ElementType) -> bool:
    """Whether a type can be floating at all."""
    return any(d.is_floating for d in candidates(t))


def restrict(op: Op) -> Op:
    """Return the op with every type variable that can be floating restricted to its floating types.

    A derived op exists only for these: of an op over floating and integer types, only the floating ones have a gradient.
    """
    floats = {t.name: tuple(d for d in t.dtypes if d.is_floating) for t in op.types}
    return narrow(op, {t.name: floats[t.name] for t in op.types if 0 < len(floats[t.name]) < len(t.dtypes)})


@remembered("_sunken")
def sunken(op: Op) -> Op:
    """Return the op with floating types, and conditionals whole where that does not copy much."""
    return sink(restrict(op))


@remembered("_prepared")
def prepare(op: Op) -> Op:
    """Return what `sunken` returned in the form that is differentiated: every reduction a statement."""
    op = hoist(nest_products(op), every=True)
    # What steps together stands together: its adjoints do.
    op = op.with_body(tuple(s for _, statements in segments(op) for s in statements))
    return tape(op, lambda name: is_floating(op.operand(name).type))


def participants(op: Op) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Return the inputs and outputs that take part in differentiation."""
    return tuple(o for o in op.inputs if is_floating(o.type)), tuple(o for o in op.outputs if is_floating(o.type))


@dataclass(frozen=True, slots=True)
class Draft:
    """A derived op before its forward values are chosen.

    `statements` may read every operand of the original op; `fresh` are the new temporaries, `seeds` the cotangents or tangents
    with the operand each belongs to, `outputs` the results with theirs.
    """

    kind: str
    of: str
    name: str
    doc: str
    statements: tuple[Assign, ...]
    fresh: tuple[Operand, ...]
    seeds: tuple[tuple[Operand, str], ...]
    outputs: tuple[tuple[Operand, str], ...]


def finish(op: Op, draft: Draft) -> Op:
    """Return the derived op: forward values recomputed or saved, simplified, and taking only the inputs it needs.

    An output of the original op is saved where that spares computing a reduction anew; everything else is recomputed. Operands
    whose values are not needed stay inputs where nothing else tells the sizes; what operands share, only all of them tell.

    Raises:
        SpecError: where a recurrence of the op makes one of its derivative that nothing says an order of steps of.
    """
    try:
        derived = _finished(op, draft)
        recurrences(derived)
    except NotSteppingError as reason:
        s = next(s for s in op.body if s.target in recurrent(op))
        message = f"the derivative of this recurrence has no order that is known: {str(reason).partition(': ')[2]}"
        raise SpecError([Diagnostic(message, s.span, "use `gradient: none`, or give the gradient a body")]) from reason
    return derived


def _finished(op: Op, draft: Draft) -> Op:
    role = Role.COTANGENT if draft.kind == "vjp" else Role.TANGENT
    results = tuple(o for o, _ in draft.outputs)
    body = (*op.body, *draft.statements)
    whole = replace(
        op,
        name=draft.name,
        doc=draft.doc,
        inputs=(*op.inputs, *(o for o, _ in draft.seeds)),
        outputs=results,
        temporaries=(*op.temporaries, *op.outputs, *draft.fresh),
        body=body,
        require=op.require,
        inplace=(),
        sizes=None,
    )
    wanted = [o.name for o in results]
    whole = inline(simplify(prune(in_order(whole), wanted)), keep={o.name for o in op.outputs})
    saved = _saved(whole, op)
    whole = in_order(tidy(prune(replace(whole, body=tuple(s for s in whole.body if s.target not in saved)), wanted)))
    whole = replace(whole, require=())  # those whose sizes are known are kept in the end
    whole = presence_outside(asking_no_more(whole, op), seeds_of(op) | {o.name for o, _ in draft.seeds if o.optional})
    recomputed = {s.target for s in whole.body}
    used = _mentioned(whole) | op.sharing
    kept: list[tuple[Operand, tuple[Role, str]]] = [(o, (Role.INPUT, o.name)) for o in op.inputs if o.name in used]
    kept += [(replace(o, optional=False), (Role.OUTPUT, o.name)) for o in op.outputs if o.name in saved and o.name in used]
    kept += [(o, (role, of)) for o, of in draft.seeds]
    whole = replace(whole, temporaries=tuple(o for o in whole.temporaries if o.name in recomputed))
    derived = _with_inputs(whole, kept, draft)
    spare = [o for o in op.inputs if o.name not in used]
    # An optional input alone tells it. Mostly nothing is to spare, and then nobody asks.
    never = _unbound(replace(derived, inputs=(*derived.inputs, *spare))) if spare else set()
    # Of a gradient there is a gradient too, which takes what is like its results.
    further = tuple(replace(o, optional=True) for o in results) if draft.kind == "vjp" and op.derivation is None else ()

    def missing(*more: Operand) -> set[str]:
        known = replace(derived, inputs=(*derived.inputs, *more))
        later = replace(known, inputs=(*known.inputs, *further), outputs=(), temporaries=())
        return (_unbound(known) - never) | set(_missing(known)) | set(undetermined(later))

    def keep(o: Operand) -> Op:
        spare.remove(o)
        kept.append((o, (Role.INPUT, o.name)))
        order = {o.name: n for n, o in enumerate((*op.inputs, *op.outputs, *(o for o, _ in draft.seeds)))}
        kept.sort(key=lambda k: order[k[0].name])
        return _with_inputs(whole, kept, draft)

    while spare and (now := missing()):
        derived = keep(next((o for o in sorted(spare, key=lambda o: o.optional) if missing(o) < now), spare[0]))
    # What nothing tells in some calls, an optional operand may tell in most: who differentiates a gradient gave it a cotangent.
    for o in [o for o in spare if o.optional] if never else ():
        if (left := _unbound(derived)) and _unbound(
            replace(derived, inputs=(*derived.inputs, replace(o, optional=False)))
        ) < left:
            derived = keep(o)
    return _requirements(_checked(derived), op)


def _checked(derived: Op) -> Op:
    """Return the op with checks on the reads at saved indices: what a call passes for them need not be what was saved."""
    roles = () if derived.derivation is None else derived.derivation.inputs
    saved = {o.name for o, (role, _) in zip(derived.inputs, roles, strict=True) if role is Role.OUTPUT and is_integer(o.type)}

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.pad is not None:
            return e
        data = [(k, i) for k, i in enumerate(e.indices) if not isinstance(i, Affine | GroupRef)]
        unsure = {k for k, i in data if any(r.operand in saved for r in reads(i))}
        return replace(e, checked=tuple(sorted(unsure | set(e.checked))))

    if not saved:
        return derived
    return replace(derived, body=tuple(replace(s, value=rewrite(s.value, rule)) for s in derived.body))


def tidy(op: Op) -> Op:
    """Return the op simplified, with copies put in place, sums hoisted out of loops and expensive expressions shared."""
    op = inline(merge(simplify(decide(op))))
    op = merge(share(hoist(simplify(op))))
    return prune(simplify(inline(op)), {o.name for o in op.outputs})


def _unbound(op: Op) -> set[str]:
    """Return the sizes and types that the op uses and that some call does not determine.

    Such a call leaves out what it may: every optional input but one cotangent or tangent, where all of these are optional.
    """
    roles = {} if op.derivation is None else dict(zip((o.name for o in op.inputs), op.derivation.inputs, strict=False))
    firm = [o for o in op.inputs if not o.optional]
    seeds = [o for o in op.inputs if roles.get(o.name, (Role.INPUT,))[0] in (Role.COTANGENT, Role.TANGENT)]
    one_of = [None] if not seeds or any(o in firm for o in seeds) else seeds
    calls = [tuple(i for i in op.inputs if i in firm or i is o) for o in one_of]
    return {name for inputs in calls for name in _missing(replace(op, inputs=inputs))}


def _missing(op: Op) -> tuple[str, ...]:
    """Return the sizes and types that the op uses and its inputs do not determine."""
    used = frozenset[Dim | GroupSize]().union(*(_sizes_used(s.value) for s in op.body))
    bound: set[Dim | GroupSize] = {Dim(name) for name, _ in op.dims}
    for d in (d for o in op.inputs for d in o.dims):
        if isinstance(d, Group):
            bound.add(GroupSize(d.name))
        elif isinstance(d.single, Dim):
            bound.add(d.single)
    return (*undetermined(op), *sorted(a.name for a in used - bound))


@remembered("_sizes")
def _sizes_used(e: Expr) -> frozenset[Dim | GroupSize]:
    """Return the sizes that an expression uses."""
    own: set[Dim | GroupSize] = {a for size in own_affines(e) for a in size.atoms() if isinstance(a, Dim | GroupSize)}
    own |= {GroupSize(a.name) for a in e.axes if isinstance(a, GroupAxis)} if isinstance(e, Reduce) else set()
    return frozenset(own).union(*(_sizes_used(c) for c in children(e)))


def _with_inputs(whole: Op, kept: list[tuple[Operand, tuple[Role, str]]], draft: Draft) -> Op:
    inputs = tuple(o for o, _ in kept)
    names = {s.target for s in whole.body}
    order = 1 + (whole.derivation.order if whole.derivation is not None else 0)  # still that of the op it is derived from
    derivation = Derivation(draft.kind, draft.of, tuple(where for _, where in kept), tuple(of for _, of in draft.outputs), order)
    derived = replace(
        whole, inputs=inputs, temporaries=tuple(o for o in whole.temporaries if o.name in names), derivation=derivation
    )
    return _dims(derived)


def _dims(op: Op) -> Op:
    """Keep a derived dimension's rule only where its own symbols are bound; otherwise the inputs bind the dimension itself."""
    bound = {d.single.name for o in op.inputs for d in o.dims if isinstance(d, Affine) and isinstance(d.single, Dim)}
    kept: list[tuple[str, Affine]] = []
    derived = dict(op.dims)
    for name, size in op.dims:
        needs = {a.name for a in size.atoms() if isinstance(a, Dim)}
        if all(n in bound - derived.keys() or n in dict(kept) for n in needs):
            kept.append((name, size))
    return replace(op, dims=tuple(kept))


def _requirements(derived: Op, op: Op) -> Op:
    """Keep the requirements whose sizes the derived op knows."""
    kept = []
    for r in op.require:
        trial = replace(derived, require=(r,))
        if not undetermined(trial):
            kept.append(r)
    return replace(derived, require=tuple(kept))


def _mentioned(op: Op) -> set[str]:
    """Return every operand that the body reads or asks the presence of."""
    return {name for s in op.body for name in (*(r.operand for r in reads(s.value)), *asked_for(s.value))}


def _saved(whole: Op, op: Op) -> set[str]:
    """Return the outputs of the original op to save: those without which the derived op would compute more reductions.

    Those of a derived op are none: each may be left out, and what calls it twice has them no more.
    """
    names = [o.name for o in op.outputs] if op.derivation is None else []
    saved = {n for n in names if n in {s.target for s in whole.body}}
    for name in names:
        if name in saved and _reductions(whole, saved - {name}) <= _reductions(whole, saved):
            saved.remove(name)
    return saved


def _reductions(whole: Op, saved: set[str]) -> int:
    """Return how many statements with a reduction remain when the operands `saved` are given."""
    left = prune(replace(whole, body=tuple(s for s in whole.body if s.target not in saved)), [o.name for o in whole.outputs])
    stepping = recurrent(left)
    return sum(has_reduction(s.value) or s.target in stepping for s in left.body)
