"""Elaborates the body of an explicit gradient into an op of the form every derived vjp has."""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.body import BodyTyper
from opc.analysis.scope import Scope
from opc.diagnostics import Diagnostics, did_you_mean
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, GroupRef, IndexValue, Present, Read, Reduce, walk
from opc.ir.op import Derivation, Group, Op, Operand, Role
from opc.lang.parse import parse_body
from opc.spec.loader import Spec


def explicit_backward(spec: Spec, forward: Op, found: Diagnostics) -> Op | None:
    """Return the vjp that the spec's gradient body states; None, recorded, when it has mistakes.

    Its inputs are the forward inputs it reads or whose shapes it needs, the saved outputs it reads, and a cotangent `d_<output>`
    for each floating output; its outputs are `d_<input>` for each floating input.
    """
    saved = _saved(spec, forward, found)
    differentiable = [o for o in forward.inputs if is_floating(o.type)]
    floating = [o for o in forward.outputs if is_floating(o.type)]
    if not differentiable or not floating:
        found.error("nothing here can be differentiated: a gradient needs a floating input and output", spec.key_span("gradient"))
        return None
    cotangents = [replace(o, name=f"d_{o.name}", optional=len(floating) > 1) for o in floating]
    at = spec.key_span("gradient", "body")
    outputs = [Operand(f"d_{o.name}", o.type, o.dims, True, f"Gradient with respect to {o.name}.", at) for o in differentiable]
    scope = Scope(
        types={t.name: t for t in forward.types},
        operands={o.name: o for o in (*forward.inputs, *saved, *cotangents)},
        attributes={a.name: a for a in forward.attributes},
        dims=_dims(forward),
        groups={d.name: o.span for o in forward.inputs for d in o.dims if isinstance(d, Group)},
        absent_counts_as_zero=frozenset(o.name for o in cotangents),
        # The gradient of an optional input is asked for only when that input was given.
        broadcast=forward.broadcast,
        out_of_range=spec.model.out_of_range,
    )
    typer = BodyTyper(scope, outputs, found)
    body = typer.elaborate(parse_body(spec.text("gradient", "body"), found))
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
        body=tuple(body.assigns),
        broadcast=forward.broadcast,
    )
    chosen = _with_shapes(forward, draft, {o.name for o in draft.inputs})
    inputs = tuple(o for o in forward.inputs if o.name in chosen) + tuple(kept) + tuple(cotangents)
    roles = [
        *((Role.INPUT, o.name) for o in forward.inputs if o.name in chosen),
        *((Role.OUTPUT, o.name) for o in kept),
        *((Role.COTANGENT, o.name) for o in floating),
    ]
    require = tuple(r for r in forward.require if _present(r.condition) <= chosen)
    derivation = Derivation("vjp", forward.name, tuple(roles), tuple(o.name for o in differentiable))
    return replace(draft, inputs=inputs, require=require, derivation=derivation)


def _saved(spec: Spec, forward: Op, found: Diagnostics) -> list[Operand]:
    outputs = {o.name: o for o in forward.outputs}
    saved: list[Operand] = []
    for i, name in enumerate(spec.model.gradient.saves):
        if name not in outputs:
            found.error(
                f"'{name}' is no output, so it can't be saved", spec.span("gradient", "saves", i), did_you_mean(name, outputs)
            )
        elif outputs[name] in saved:
            found.error(f"'{name}' is saved twice", spec.span("gradient", "saves", i))
        else:
            saved.append(outputs[name])
    return [o for o in forward.outputs if o in saved]


def _dims(forward: Op) -> dict[str, Affine | None]:
    dims: dict[str, Affine | None] = {
        a.name: None for o in forward.inputs for d in o.dims if isinstance(d, Affine) for a in d.atoms() if isinstance(a, Dim)
    }
    return {**dims, **dict(forward.dims)}


def _present(condition: object) -> set[str]:
    return {e.operand for e in walk(condition) if isinstance(e, Present)}  # type: ignore[arg-type]


def _with_shapes(forward: Op, draft: Op, chosen: set[str]) -> set[str]:
    """Return `chosen` with the forward inputs added that bind dimensions and groups which nothing chosen binds."""
    needed = _sizes(draft)
    cotangents = [o for o in draft.inputs if o.name not in {i.name for i in forward.inputs}]
    chosen = {o.name for o in forward.inputs if o.name in chosen}

    def bound() -> set[object]:
        every = [*cotangents, *(o for o in forward.inputs if o.name in chosen)]
        # An optional operand binds nothing when it is absent.
        return {_binds(d) for o in every if not o.optional for d in o.dims} - {None}

    for o in forward.inputs:
        own = {_binds(d) for d in o.dims} - {None}
        if o.name not in chosen and not o.optional and (own & needed) - bound():
            chosen.add(o.name)
    for o in forward.inputs:
        # An optional input's own axes: its gradient is asked for only when it is given.
        own = {_binds(d) for d in o.dims} - {None}
        if o.name not in chosen and (own & needed) - bound():
            chosen.add(o.name)
    return chosen


def _binds(dim: Affine | Group) -> object:
    if isinstance(dim, Group):
        return dim
    return dim.single if isinstance(dim.single, Dim) else None


def _sizes(op: Op) -> set[object]:
    """Return every dimension and group whose size the op must know."""
    sizes: list[Affine] = [d for o in (*op.inputs, *op.outputs, *op.temporaries) for d in o.dims if isinstance(d, Affine)]
    groups: set[object] = {d for o in (*op.outputs, *op.temporaries) for d in o.dims if isinstance(d, Group)}
    for s in op.body:
        for e in walk(s.value):
            match e:
                case IndexValue():
                    sizes.append(e.value)
                case Reduce():
                    sizes += [a.extent for a in e.axes if isinstance(a, Axis)]
                case Read():
                    sizes += [i for i in e.indices if isinstance(i, Affine)]
                    groups |= {Group(i.name) for i in e.indices if isinstance(i, GroupRef)}
    derived = dict(op.dims)
    pending = [a for size in sizes for a in size.atoms()]
    found: set[object] = set()
    while pending:
        atom = pending.pop()
        if isinstance(atom, GroupSize):
            groups.add(Group(atom.name))
        elif isinstance(atom, Dim) and atom not in found:
            found.add(atom)
            if atom.name in derived:
                pending += list(derived[atom.name].atoms())
    return found | groups
