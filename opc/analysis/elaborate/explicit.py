"""Elaborates the body of an explicit gradient into an op of the form every derived vjp has."""

from __future__ import annotations

from collections.abc import Iterable

from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.elaborate.body import BodyTyper
from opc.analysis.elaborate.scope import Scope
from opc.analysis.shapes.plan import undetermined
from opc.diagnostics import Diagnostics, one_of
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import Acc, ElementType, TypeVar, is_floating
from opc.ir.expr import (
    BroadcastAxis,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    Present,
    Read,
    Reduce,
    own_affines,
    walk,
)
from opc.ir.op import Assign, Derivation, Group, Op, Operand, Role
from opc.ir.rules import reduction_type
from opc.records import replace
from opc.spec.loader import Spec


def explicit_backward(spec: Spec, forward: Op, found: Diagnostics) -> Op | None:
    """Return the vjp that the spec's gradient body states; None, recorded, when it has mistakes.

    Its inputs are the forward inputs it reads or whose shapes it needs, the saved outputs it reads, and a cotangent `d_<output>`
    for each floating output; its outputs are `d_<input>` for each floating input.
    """
    forward = _restricted(forward)
    saved = _saved(spec, forward, found)
    differentiable = [o for o in forward.inputs if is_floating(o.type)]
    floating = [o for o in forward.outputs if is_floating(o.type)]
    if not differentiable or not floating:
        found.error(
            "nothing here can be differentiated: a gradient needs a floating input and output",
            spec.key_span("gradient"),
            "write gradient: none",
        )
        return None
    cotangents = [replace(o, name=f"d_{o.name}", optional=len(floating) > 1) for o in floating]
    at = spec.key_span("gradient", "body")
    outputs = [
        Operand(f"d_{o.name}", o.type, o.dims, True, f"Gradient with respect to {o.name}.", at, permuted=o.permuted)
        for o in differentiable
    ]
    unsaved = dict.fromkeys((o.name for o in forward.outputs), "an output, which a gradient reads where `saves` lists it")
    gone = dict.fromkeys((o.name for o in forward.temporaries), "a temporary of the kernel: a gradient computes it itself")
    scope = Scope(
        types={t.name: t for t in forward.types},
        operands={o.name: o for o in (*forward.inputs, *saved, *cotangents)},
        elsewhere={**unsaved, **gone},
        attributes={a.name: a for a in forward.attributes},
        dims=_dims(forward),
        groups={d.name: o.span for o in forward.inputs for d in o.dims if isinstance(d, Group)},
        absent_counts_as_zero=frozenset(o.name for o in cotangents),
        # The gradient of an optional input is asked for only when that input was given.
        broadcast=forward.broadcast,
        out_of_range=spec.model.out_of_range,
        at_most=knowledge_of(forward).at_most,
    )
    typer = BodyTyper(scope, outputs, found, derived=True)
    body = typer.elaborate(spec.text("gradient", "body"))
    if found.has_errors:
        return None
    for o in saved:
        if o.name not in scope.used:
            found.warning(f"the saved output '{o.name}' is not used", at)
    kept = [o for o in saved if o.name in scope.used]
    draft = Op(
        name=f"{forward.name}_backward",
        domain=forward.domain,
        version=forward.version,
        doc=f"Gradient of {forward.class_name}.",
        types=forward.types,
        inputs=tuple(o for o in forward.inputs if o.name in scope.used) + tuple(kept) + tuple(cotangents),
        attributes=forward.attributes,
        outputs=tuple(outputs),
        temporaries=tuple(body.temporaries),
        dims=forward.dims,
        require=(),
        body=tuple(_summed(s, outputs) for s in body.assigns),
        broadcast=forward.broadcast,
        ties=forward.ties,
        rules=forward.rules,
    )
    chosen = _with_shapes(forward, draft, {o.name for o in draft.inputs} | forward.sharing)
    inputs = tuple(o for o in forward.inputs if o.name in chosen) + tuple(kept) + tuple(cotangents)
    roles = [
        *((Role.INPUT, o.name) for o in forward.inputs if o.name in chosen),
        *((Role.OUTPUT, o.name) for o in kept),
        *((Role.COTANGENT, o.name) for o in floating),
    ]
    derivation = Derivation("vjp", forward.name, tuple(roles), tuple(o.name for o in differentiable))
    backward = replace(draft, inputs=inputs, derivation=derivation)
    backward = replace(backward, dims=_known_dims(backward))
    # The forward op has checked its requirements; those are checked again whose operands and sizes are at hand.
    require = tuple(r for r in forward.require if not undetermined(replace(backward, require=(r,))))
    return replace(backward, require=tuple(r for r in require if _present(r.condition) <= chosen))


def _summed(s: Assign, outputs: Iterable[Operand]) -> Assign:
    """Return a statement about all points of the common shape as the sum along the axes that its input was broadcast along."""
    own = next((d for o in outputs if o.name == s.target for d in o.dims if isinstance(d, Group) and d.of is not None), None)
    summed = any(isinstance(a, BroadcastAxis) for e in walk(s.value) if isinstance(e, Reduce) for a in e.axes)
    if own is None or own.of is None or summed or (isinstance(s.value, Const) and s.value.value == 0):
        return s
    t = reduction_type("sum", s.value.type)
    assert t is not None, "a gradient is floating"
    return replace(s, value=Reduce("sum", (BroadcastAxis(own.name, own.of),), s.value, t))


def _saved(spec: Spec, forward: Op, found: Diagnostics) -> list[Operand]:
    outputs = {o.name: o for o in forward.outputs}
    saved: list[Operand] = []
    for i, name in enumerate(spec.model.gradient.saves):
        if name not in outputs:
            found.error(
                f"'{name}' is no output, so it can't be saved",
                spec.span("gradient", "saves", i),
                one_of(name, outputs, "outputs"),
            )
        elif outputs[name] in saved:
            found.error(f"'{name}' is saved twice", spec.span("gradient", "saves", i), "name each output once")
        else:
            saved.append(outputs[name])
    return [o for o in forward.outputs if o in saved]


def _dims(forward: Op) -> dict[str, Affine | None]:
    dims: dict[str, Affine | None] = {
        a.name: None for o in forward.inputs for d in o.dims if isinstance(d, Affine) for a in d.atoms() if isinstance(a, Dim)
    }
    return {**dims, **dict(forward.dims)}


def _present(condition: Expr) -> set[str]:
    return {e.operand for e in walk(condition) if isinstance(e, Present)}


def _restricted(op: Op) -> Op:
    """Return the op's signature with type variables that may be floating restricted to their floating types.

    Of an op over floating and integer types, only the floating ones have a gradient.
    """
    floats = {t: tuple(d for d in t.dtypes if d.is_floating) for t in op.types}
    narrow = {t: TypeVar(t.name, dtypes) for t, dtypes in floats.items() if dtypes}

    def element(t: ElementType) -> ElementType:
        match t:
            case TypeVar():
                return narrow.get(t, t)
            case Acc(of=TypeVar() as of):
                return Acc(narrow.get(of, of))
            case _:
                return t

    def operands(group: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(o, type=element(o.type)) for o in group)

    types = tuple(narrow.get(t, t) for t in op.types)
    return replace(op, types=types, inputs=operands(op.inputs), outputs=operands(op.outputs))


def _with_shapes(forward: Op, draft: Op, chosen: set[str]) -> set[str]:
    """Return the names of the forward inputs to take: `chosen`, and those that bind sizes which nothing chosen binds."""
    names = {o.name for o in forward.inputs}
    others = [o for o in draft.inputs if o.name not in names]
    chosen = chosen & names
    # Optional inputs come last: they bind nothing when absent, and are needed only for their own gradients.
    for o in sorted(forward.inputs, key=lambda o: o.optional):
        have = _bound([*others, *(i for i in forward.inputs if i.name in chosen)])
        missing = _missing(draft, have)
        if o.name not in chosen and missing and len(_missing(draft, have | _bound([o], optional=True))) < len(missing):
            chosen.add(o.name)
    return chosen


def _bound(operands: Iterable[Operand], optional: bool = False) -> set[Dim | Group]:
    """Return the dimensions and groups that operands bind; an optional one binds nothing unless `optional` says to count it."""
    bound: set[Dim | Group] = set()
    for o in operands:
        for d in o.dims if optional or not o.optional else ():
            if isinstance(d, Group):
                bound.add(d)
            elif isinstance(d.single, Dim):
                bound.add(d.single)
    return bound


def _missing(op: Op, bound: set[Dim | Group]) -> set[Dim | Group]:
    """Return the dimensions and groups whose sizes the op needs and that neither `bound` nor a rule gives."""
    sizes: list[Affine] = [d for o in (*op.outputs, *op.temporaries) for d in o.dims if isinstance(d, Affine)]
    groups = {d for o in (*op.outputs, *op.temporaries) for d in o.dims if isinstance(d, Group)}
    for s in op.body:
        for e in walk(s.value):
            sizes += own_affines(e)
            match e:
                case GroupIndex():
                    groups.add(Group(e.group))
                case Read():
                    groups |= {Group(i.name) for i in e.indices if isinstance(i, GroupRef)}
    rules = dict(op.dims)
    pending = [a for size in sizes for a in size.atoms()]
    seen: set[Dim] = set()
    missing: set[Dim | Group] = set()
    while pending:
        atom = pending.pop()
        if isinstance(atom, GroupSize):
            groups.add(Group(atom.name))
        elif isinstance(atom, Dim) and atom not in seen and atom not in bound:
            seen.add(atom)
            if atom.name in rules:
                pending += list(rules[atom.name].atoms())
            else:
                missing.add(atom)
    # In an op with broadcast, the broadcast shape follows from every input's own group.
    return missing | {g for g in groups if g not in bound and not (op.broadcast and g.of is None)}


def _known_dims(op: Op) -> tuple[tuple[str, Affine], ...]:
    """Return the derived dimensions whose rules the inputs can carry out; the others are bound by an operand that has them."""
    bound = {d.name for d in _bound(op.inputs) if isinstance(d, Dim)} - {name for name, _ in op.dims}
    kept: list[tuple[str, Affine]] = []
    for name, size in op.dims:
        if all(a.name in bound for a in size.atoms() if isinstance(a, Dim)):
            kept.append((name, size))
            bound.add(name)
    return tuple(kept)
