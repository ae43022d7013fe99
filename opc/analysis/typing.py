"""Elaboration: a spec and its untyped bodies become typed ops."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from opc.analysis.body import BodyTyper
from opc.analysis.expression import ExpressionTyper
from opc.analysis.scope import Scope
from opc.analysis.signature import Signature
from opc.diagnostics import Diagnostics, SpecError
from opc.ir.expr import Expr
from opc.ir.op import Op
from opc.lang.parse import parse_body, parse_expression
from opc.lang.tree import Tree
from opc.spec.loader import Spec
from opc.spec.text import Text


def elaborate(spec: Spec, diagnostics: Diagnostics | None = None) -> Op:
    """Return the typed op of a spec.

    Warnings are recorded in `diagnostics` where one is given.

    Raises:
        SpecError: with every mistake found in the signature and the body.
    """
    found = Diagnostics()
    signature = Signature(spec, found)
    scope = signature.scope
    statements = parse_body(spec.text("kernel"), found)
    typer = BodyTyper(scope, signature.outputs, found)
    body = typer.elaborate(statements)
    _unused_inputs(spec, signature, found)
    found.raise_errors()
    if diagnostics is not None:
        diagnostics.extend(found.items)
    model = spec.model
    return Op(
        name=model.op,
        domain=model.domain,
        version=model.version,
        doc=model.doc.strip(),
        types=tuple(scope.types.values()),
        inputs=tuple(signature.inputs),
        attributes=signature.attributes,
        outputs=tuple(signature.outputs),
        temporaries=tuple(body.temporaries),
        dims=tuple(signature.dims),
        require=tuple(signature.require),
        body=tuple(body.assigns),
        broadcast=model.broadcast,
    )


def _unused_inputs(spec: Spec, signature: Signature, found: Diagnostics) -> None:
    for o in signature.inputs:
        if o.name not in signature.scope.used:
            found.warning(f"the input '{o.name}' is not used", o.span)
    del spec


@lru_cache(maxsize=256)
def _parse_derivative(text: str) -> Tree:
    found = Diagnostics()
    tree = parse_expression(Text.of(text, "derivative"), found)
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
