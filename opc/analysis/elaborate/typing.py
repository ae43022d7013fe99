"""Elaboration: a spec and its untyped bodies become typed ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from opc.analysis.bounds.access import check_inplace
from opc.analysis.bounds.checker import check_bounds
from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.value_range import without_needless_checks
from opc.analysis.elaborate.absence import check_sizes
from opc.analysis.elaborate.body import Body, BodyTyper
from opc.analysis.elaborate.examples import ExampleTyper
from opc.analysis.elaborate.explicit import explicit_backward
from opc.analysis.elaborate.expression import ExpressionTyper
from opc.analysis.elaborate.recurring import check_recurrences, with_known_places
from opc.analysis.elaborate.references import reference_for
from opc.analysis.elaborate.scope import Scope
from opc.analysis.elaborate.signature import Signature
from opc.analysis.elaborate.told_sizes import sizes_op
from opc.analysis.shapes.plan import symbols_of
from opc.diagnostics import Diagnostic, Diagnostics, SpecError
from opc.ir.affine import Affine, Dim, GroupSize, Symbol
from opc.ir.dtypes import Acc, TypeVar, ValueType
from opc.ir.expr import AttrRef, Cast, Expr, holds_back, walk
from opc.ir.op import AttributeKind, Example, Group, Op, Operand, Reference
from opc.ir.verify import verify
from opc.lang.parse import parse_expression
from opc.lang.tree import Tree
from opc.records import dataclass, replace
from opc.spec.loader import Spec
from opc.spec.text import SourceText


def elaborate(spec: Spec, diagnostics: Diagnostics | None = None) -> Op:
    """Return the typed op of a spec.

    Its examples and references are checked too. Warnings are recorded in `diagnostics` where one is given.

    Raises:
        SpecError: with every mistake found in the spec.
    """
    try:
        elaborated = _elaborate(spec)
    except SpecError as error:
        raise spec.told(error) from None
    if diagnostics is not None:
        diagnostics.extend(elaborated.warnings)
    return elaborated.op


def elaborate_gradient(spec: Spec, forward_op: Op, diagnostics: Diagnostics | None = None) -> Op:
    """Return the vjp that the spec's own gradient body states.

    Warnings are recorded in `diagnostics` where one is given.

    Raises:
        SpecError: with every mistake found in the body.
    """
    found = Diagnostics()
    try:
        backward = _stated(spec, forward_op, found)
    except SpecError as error:
        raise spec.told(error) from None
    if diagnostics is not None:
        diagnostics.extend(found.items)
    return without_needless_checks(backward)


def _stated(spec: Spec, forward_op: Op, found: Diagnostics) -> Op:
    """Return the vjp that a gradient body states, checked."""
    backward = explicit_backward(spec, forward_op, found)
    if backward is not None:
        backward = with_known_places(backward)
        check_recurrences(backward, found)
        found.raise_errors()
        verify(backward)
        check_bounds(backward, found)
    found.raise_errors()
    if backward is None:
        raise SpecError(found.items)
    return backward


def examples_of(spec: Spec) -> tuple[Example, ...]:
    """Return the examples of a spec, checked against its op; SpecError as `elaborate`."""
    return _elaborate(spec).examples


def reference_of(spec: Spec) -> Reference:
    """Return the references of a spec, checked against its op; SpecError as `elaborate`."""
    return _elaborate(spec).reference


def _rules(spec: Spec, dims: Sequence[tuple[str, Affine]]) -> tuple[tuple[str, str], ...]:
    """Return the text under `shape` of each derived dimension that has one."""
    return tuple((name, " ".join(spec.text("shape", name).value.split())) for name, _ in dims if name in spec.model.shape)


@dataclass(frozen=True, slots=True)
class _Elaborated:
    op: Op
    examples: tuple[Example, ...]
    reference: Reference
    warnings: tuple[Diagnostic, ...]


@lru_cache(maxsize=8)
def _elaborate(spec: Spec) -> _Elaborated:
    found = Diagnostics()
    found.extend(spec.mistakes)
    model = spec.model
    signature = Signature(spec, found)
    scope = signature.scope
    given = model.kernel is not None
    op = Op(
        name=model.op,
        domain=model.domain,
        version=model.version,
        doc=model.doc.strip(),
        types=tuple(scope.types.values()),
        inputs=tuple(signature.inputs),
        attributes=signature.attributes,
        outputs=tuple(signature.outputs),
        temporaries=(),
        dims=tuple(signature.dims),
        require=tuple(signature.require),
        body=(),
        broadcast=model.broadcast,
        rules=_rules(spec, signature.dims),
    )
    scope.at_most = knowledge_of(op).at_most
    body = BodyTyper(scope, signature.outputs, found).elaborate(spec.text("kernel")) if given else Body([], [])
    op = replace(op, temporaries=tuple(body.temporaries), body=tuple(body.assigns))
    reference = reference_for(spec, op, found)
    # What follows looks at the whole op, which is whole only without mistakes.
    found.raise_errors()
    pairs = [(y, x) for y, x in model.inplace.items() if check_inplace(op, y, x, spec.span("inplace", y), found)]
    for o in signature.inputs if given else ():
        if o.name not in scope.used and not _alone_gives_what_is_used(o, op):
            found.warning(f"the input '{o.name}' is not used", o.span)
    op = with_known_places(replace(op, inplace=tuple(pairs), stands_for=None if given else reference))
    check_recurrences(op, found)
    sizes = sizes_op(op, body, found)
    found.raise_errors()
    for whole in (op,) if sizes is None else (op, sizes):
        verify(whole)
        check_bounds(whole, found, {name: spec.span("shape", name) for name in model.shape})
        check_sizes(whole, found)
    op = op if sizes is None else replace(op, sizes=without_needless_checks(sizes))
    examples = ExampleTyper(spec, op, signature.attribute_typer, found).examples()
    if model.gradient.mode == "body":
        backward = explicit_backward(spec, op, found)
        if backward is not None:
            backward = with_known_places(backward)
            check_recurrences(backward, found)
            check_bounds(backward, found)
            scope.used |= {e.name for s in backward.body for e in walk(s.value) if isinstance(e, AttrRef)}
    elif model.gradient.surrogate and not any(holds_back(s.value) for s in op.body):
        hint = "y = stop_gradient(f) + (g - stop_gradient(g)) has the value of f and the gradient of g; or give a body"
        at = spec.key_span("gradient", "surrogate")
        found.error("the derived gradient is the derivative: nothing is held back from it", at, hint)
    for a in signature.attributes if given else ():
        if (
            a.name not in scope.used
            and a.kind not in (AttributeKind.AXIS, AttributeKind.DTYPE)
            and not (a.picks or a.keeps or a.permutes)
        ):
            found.warning(f"the attribute '{a.name}' is not used", a.span)
    found.raise_errors()
    return _Elaborated(without_needless_checks(op), examples, reference, tuple(found.items))


@lru_cache(maxsize=256)
def _parse_derivative(text: str) -> Tree:
    found = Diagnostics()
    tree = parse_expression(SourceText.of(text, "derivative"), found)
    found.raise_errors()
    if tree is None:  # pragma: no cover - a failed parse has recorded an error
        raise SpecError(found.items)
    return tree


def derivative_template(text: str) -> Callable[[Expr, Expr | None, Expr], Expr]:
    """Return a function that writes a derivative text of the function table over given arguments.

    The text is an expression of the body language over the arguments `x`, `y` and the result `r`. The function takes those (None
    for `y` of a function of one argument) and returns the typed expression.

    Raises:
        SpecError: when the text has a mistake, or does not fit the arguments' types.
    """
    tree = _parse_derivative(text)

    def write(x: Expr, y: Expr | None, r: Expr) -> Expr:
        found = Diagnostics()
        bound = {"x": x, "r": r} if y is None else {"x": x, "y": y, "r": r}
        result = ExpressionTyper(Scope(bound=bound), found).value(tree)
        if result is None:
            raise SpecError(found.items)
        return result

    return write


def _alone_gives_what_is_used(operand: Operand, op: Op) -> bool:
    """Whether this input and no other gives a size or a type that the op uses."""
    others = [o for o in op.inputs if o != operand]
    bound = {a.binds for a in op.attributes if a.binds is not None}
    types = _variables([operand.type]) - _variables(o.type for o in others) - bound
    values = [e for s in op.body for e in walk(s.value)]
    if types & _variables([*(o.type for o in op.outputs), *(e.type for e in values if isinstance(e, Cast))]):
        return True
    used = _sizes(op.outputs) | frozenset(s for e in values for s in symbols_of(e))
    for name, size in reversed(op.dims):
        # What a derived size is made of is used where that is.
        used = used | size.atoms() if Dim(name) in used else used
    groups = {Group(s.name) for s in used if isinstance(s, GroupSize)}
    return bool((_sizes([operand]) - _sizes(others)) & (used | groups))


def _variables(types: Iterable[ValueType]) -> set[str]:
    """Return the names of the type variables that types are made of."""
    parts = [t.of if isinstance(t, Acc) else t for t in types]
    return {t.name for t in parts if isinstance(t, TypeVar)}


def _sizes(operands: Iterable[Operand]) -> set[Group | Symbol]:
    """Return the groups and the dimensions that the shapes of operands are made of."""
    dims = [d for o in operands for d in o.dims]
    return {d for d in dims if isinstance(d, Group)} | {s for d in dims if isinstance(d, Affine) for s in d.atoms()}
