"""Sizes that data tells: the op that computes them, a slice of the kernel that makes what has these sizes.

The op itself takes each as an int attribute, so that shapes, gradients, lowering and static frameworks see nothing new. What
computes it is an op beside it, of the same inputs, which whoever has data calls first (program slicing: Weiser, 1981).
"""

from __future__ import annotations

from opc.analysis.elaborate.body import Body
from opc.analysis.shapes.plan import undetermined
from opc.diagnostics import Diagnostics, Span
from opc.ir.affine import Affine, AttrInt, Dim, Symbol
from opc.ir.dtypes import DType
from opc.ir.expr import AttrRef, Expr, operands_read, own_affines, walk
from opc.ir.op import Assign, Op, Operand, size_name
from opc.records import replace


def sizes_op(op: Op, body: Body, found: Diagnostics) -> Op | None:
    """Return the op that computes the sizes which data tells; None where there is none, or with a mistake that is recorded.

    Its outputs are int64 scalars, `size_of_<attribute>`. It has the inputs of `op`, its attributes, as all ops of a family have
    the same ones, and those of its derived dimensions and requirements that do not depend on such a size.
    """
    if not body.sizes:
        return None
    told = {s.target for s in body.sizes}
    derived = _made_of(op, told)
    statements = {s.target: s for s in op.body}
    needed, waiting = set[str](), [r for s in body.sizes for r in operands_read(s.value)]
    while waiting:
        name = waiting.pop()
        if name in statements and name not in needed:
            needed.add(name)
            waiting += operands_read(statements[name].value)
    kept = tuple(s for s in op.body if s.target in needed)
    if not all(_is_free(op, s, told, derived, found) for s in (*kept, *body.sizes)):
        return None
    names = {size_name(name) for name in told}
    for o in op.operands:
        if o.name in names:
            found.error(f"'{o.name}' is what the op of the sizes calls its output", o.span, "give the tensor another name")
            return None
    requirements = tuple(r for r in op.require if not _symbols(r.condition) & derived and not _names(r.condition) & told)
    attributes = [replace(a, required=False, default=0) if a.name in told else a for a in op.attributes]
    attributes = [
        a if a.check is None or not _names(a.check) & told else replace(a, check=None, check_text="") for a in attributes
    ]
    declared = [op.attribute(s.target) for s in body.sizes]
    whole = replace(
        op,
        name=f"{op.name}_sizes",
        doc=f"How many there are of what {op.class_name} makes, as data tells it.",
        attributes=tuple(attributes),
        outputs=tuple(Operand(size_name(a.name), DType.INT64, (), doc=a.doc, span=a.span) for a in declared),
        temporaries=tuple(replace(op.operand(s.target), optional=False) for s in kept),
        dims=tuple((name, size) for name, size in op.dims if Dim(name) not in derived),
        require=requirements,
        inplace=(),
        body=(*kept, *(replace(s, target=size_name(s.target)) for s in body.sizes)),
    )
    missing = undetermined(whole)
    if missing:
        message = f"nothing but an output tells '{missing[0]}', which the size is computed with"
        found.error(message, body.sizes[0].span, "a size that data tells is computed from inputs alone")
        return None
    return whole


def _made_of(op: Op, told: set[str]) -> set[Symbol]:
    """Return the symbols whose values depend on the sizes: their attributes, and the dimensions that are derived from these."""
    found: set[Symbol] = {AttrInt(name) for name in told}
    for name, size in op.dims:
        if size.atoms() & found:
            found.add(Dim(name))
    return found


def _is_free(op: Op, s: Assign, told: set[str], derived: set[Symbol], found: Diagnostics) -> bool:
    """Whether a statement that a size is computed from depends on none itself; otherwise that is recorded."""
    own = [] if s.target in told else [d for d in op.operand(s.target).dims if isinstance(d, Affine)]
    sizes = {a for size in own for a in size.atoms()} | _symbols(s.value)
    names = sorted({a.name for a in sizes & derived} | (_names(s.value) & told))
    if names:
        made = "is computed from itself" if names[0] == s.target else f"depends on '{names[0]}', which data tells"
        hint = "what a size is computed from has sizes that inputs and other attributes tell"
        found.error(f"'{s.target}' {made}", _place(s.value, names[0]) or s.span, hint)
    return not names


def _place(e: Expr, name: str) -> Span | None:
    return next((node.span for node in walk(e) if _own_names(node) & {name} and node.span.source is not None), None)


def _symbols(e: Expr) -> set[Symbol]:
    return {a for node in walk(e) for size in own_affines(node) for a in size.atoms()}


def _names(e: Expr) -> set[str]:
    """Return the names of the attributes whose values an expression has."""
    return {name for node in walk(e) for name in _own_names(node)}


def _own_names(node: Expr) -> set[str]:
    own = {node.name} if isinstance(node, AttrRef) else set()
    return own | {a.name for size in own_affines(node) for a in size.atoms() if isinstance(a, AttrInt | Dim)}
