"""Sums of products that need nothing of a recurrence they stand in: computed ahead of its steps.

In `z[t, g] = sum[k](w[g, k] * x[t, k]) + sum[k](r[g, k] * h[t - 1, k])` the first sum is one matrix product of all steps, which
keeps w in the caches; step by step it would be as many products with a vector.
"""

from __future__ import annotations

from opc.ir.expr import Expr, Reduce, has_reduction, operands_read, reads, with_children
from opc.ir.op import Assign, Op
from opc.ir.recurrence import recurrent
from opc.records import replace
from opc.transform import scalar
from opc.transform.domain import Domain
from opc.transform.extract import Extractor
from opc.transform.indices import Namer, index_names, op_names


def with_sums_ahead(op: Op) -> Op:
    """Return the op with a statement for each sum of products in a recurrence that reads no value of a recurrence."""
    stepping = recurrent(op)
    # What a call must be refused for may be asked for at some steps only: such a sum stays where it is.
    extractor = Extractor(op, Namer(op_names(op) | index_names(op)), exact=True)
    body: list[Assign] = []
    for s in op.body:
        if s.target in stepping and has_reduction(s.value):
            s = s.with_value(_ahead(s.value, Domain.of(s, op.operand(s.target)), s.target, stepping, extractor, ()))
        body += [*extractor.statements, s]
        extractor.statements.clear()
    if not extractor.temporaries:
        return op
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *extractor.temporaries))


def _ahead(
    e: Expr, domain: Domain, target: str, stepping: frozenset[str], extractor: Extractor, around: tuple[Expr, ...]
) -> Expr:
    """Return `e`, which stands inside `domain` under conditions `around`, with reads for such sums."""
    if not has_reduction(e):
        return e
    if isinstance(e, Reduce):
        products = e.kind == "sum" and len(reads(e.body)) > 1 and not any(r.checked for r in reads(e))
        if products and not operands_read(e) & stepping and not scalar.unguarded(e) & extractor.optional:
            return extractor.extract(e, domain, f"{target}_sum", around) or e
        return e
    parts, left = scalar.conditioned(e), scalar.still(around, e)
    return with_children(e, tuple(_ahead(c, domain, target, stepping, extractor, (*left, *more)) for c, more in parts))
