"""Expressions that occur more than once, computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opc.analysis.runs import is_mostly_idle
from opc.ir.dtypes import Weak, is_bool, is_integer
from opc.ir.expr import (
    Call,
    Expr,
    Reduce,
    children,
    has_reduction,
    operands_read,
    reads,
    with_children,
)
from opc.ir.function import CHEAP
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, DimSpec, Op
from opc.ir.recurrence import NotSteppingError, circles, recurrences
from opc.records import replace
from opc.transform import scalar
from opc.transform.alike import canonical, form
from opc.transform.domain import Domain
from opc.transform.extract import Extractor, signature
from opc.transform.indices import Namer, index_names, op_names
from opc.transform.normalize import unshadow


def share(op: Op) -> Op:
    """Return the op with expensive expressions that occur more than once computed once."""
    op = unshadow(op)
    candidates = [found for s in op.body for found in _candidates(s, op)]
    if len(candidates) < 2:
        return op
    forms = Counter(form(e) for e, _ in candidates)
    counts: Counter[tuple[Expr, tuple[DimSpec, ...]]] = Counter()
    for e, domain in candidates:
        if forms[form(e)] > 1:
            indices, dims = signature(e, domain)
            counts[canonical(e, indices), dims] += 1
    if not any(count > 1 for count in counts.values()):
        return op
    namer = Namer(op_names(op) | index_names(op))
    extractor = Extractor(op, namer)
    body: list[Assign] = []
    for s in op.body:
        domain = Domain.of(s, op.operand(s.target))
        value = _shared(s.value, domain, True, (forms, counts), extractor)
        body += [*extractor.statements, s.with_value(value)]
        extractor.statements.clear()
    if not extractor.temporaries:
        return op.with_body(tuple(body))
    shared = replace(op, body=tuple(body), temporaries=(*op.temporaries, *extractor.temporaries))
    return _stepping(shared, {t.name for t in extractor.temporaries}) or op


def _stepping(op: Op, new: set[str]) -> Op | None:
    """Return the op with each of some values behind what it is made of where it steps with it, which may read it at steps before;
    None where they are in no such order."""
    if _steps(op):
        return op
    circles_of = {name: circle for circle in circles(op) for name in circle}
    body = list(op.body)
    for s in [s for s in op.body if s.target in new and s.target in circles_of]:
        made_of = operands_read(s.value) & set(circles_of[s.target])
        last = max((n for n, other in enumerate(body) if other.target in made_of), default=-1)
        n = body.index(s)
        if last > n:
            body.insert(last, body.pop(n))
    moved = op.with_body(tuple(body))
    return moved if _steps(moved) else None


def _steps(op: Op) -> bool:
    try:
        recurrences(op)
    except NotSteppingError:
        return False
    return True


def _candidates(s: Assign, op: Op) -> Iterator[tuple[Expr, Domain]]:
    def visit(e: Expr, domain: Domain) -> Iterator[tuple[Expr, Domain]]:
        if _expensive(e, op):
            yield e, domain
        inner = domain.inside(e.axes) if isinstance(e, Reduce) else domain
        for c in children(e):
            yield from visit(c, inner)

    return visit(s.value, Domain.of(s, op.operand(s.target)))


def _expensive(e: Expr, op: Op) -> bool:
    """Whether `e` may be computed at every point, and costs more than reading it back."""
    if not isinstance(e, Call) or FUNCTIONS[e.fn].cost <= CHEAP or isinstance(e.type, Weak) or has_reduction(e):
        return False
    if is_bool(e.type) or is_integer(e.type):
        return False
    found = list(reads(e))
    optional = {o.name for o in op.inputs if o.optional}
    return bool(found) and not any(r.checked for r in found) and not scalar.unguarded(e) & optional


NOUNS = {
    "div": "ratio",
    "pow": "power",
    "floordiv": "quotient",
    "mod": "rest",
    "mul": "product",
    "add": "sum",
    "sub": "difference",
    "neg": "minus",
}
"""What a temporary that holds the result of an operator is called after."""


def _shared(
    e: Expr,
    domain: Domain,
    root: bool,
    counted: tuple[Counter[int], Counter[tuple[Expr, tuple[DimSpec, ...]]]],
    extractor: Extractor,
    around: tuple[Expr, ...] = (),
) -> Expr:
    forms, counts = counted
    if _expensive(e, extractor.op) and forms[form(e)] > 1 and not is_mostly_idle(e, around):
        indices, dims = signature(e, domain)
        if counts[canonical(e, indices), dims] > 1:
            first = reads(e)[0].operand
            name = f"{NOUNS.get(e.fn, e.fn)}_{first}" if isinstance(e, Call) else first
            # Parts of a shared expression that occur elsewhere too are shared in their turn.
            kept = with_children(e, tuple(_shared(c, domain, False, counted, extractor, around) for c in children(e)))
            new = extractor.extract(kept, domain, name, around)
            if new is not None:
                return new
    inner = domain.inside(e.axes) if isinstance(e, Reduce) else domain
    parts, left = scalar.conditioned(e), scalar.still(around, e)
    return with_children(e, tuple(_shared(c, inner, False, counted, extractor, (*left, *more)) for c, more in parts))
