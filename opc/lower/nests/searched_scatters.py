"""Searches in which a condition names the index of each term: two scatters, of the best terms and of the first places of these.

`y[k] = argmax[n](x[n] if c[n] == k else -inf)` looks at all terms for each k. In two passes over the terms it is

    best[k] = max[n](x[n] if c[n] == k else -inf)
    first[k] = min[n](n if c[n] == k and best[k] != -inf and x[n] == best[k] else inf)
    y[k] = first[k] if first[k] < N else 0

and so is the gradient of such a maximum, whose search `y` is. Where no term is better than what stands for those that don't
count, the first of all is found.
"""

from __future__ import annotations

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak, is_floating
from opc.ir.expr import (
    SEARCHES,
    Axis,
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_groups,
    free_indices,
    has_reduction,
    may_refuse,
    reads,
    with_children,
)
from opc.ir.identity import identity_of
from opc.ir.op import Assign, Op, Operand
from opc.lower.nests.scatter import is_scatter
from opc.lower.nests.terms import conditions_of
from opc.lower.rows.flatten import maybe_empty
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names
from opc.transform.scalar import ZERO, raw


def with_searched_scatters(op: Op) -> Op:
    """Return the op with such searches as scatters into temporaries."""
    namer = Namer(op_names(op) | index_names(op))
    statements: list[Assign] = []
    temporaries: list[Operand] = []
    for s in op.body:
        if not has_reduction(s.value):
            statements.append(s)
            continue
        found = _Searches(op, s, namer)
        s = s.with_value(found.value(s.value, False))
        statements += [*found.statements, s]
        temporaries += found.temporaries
    if not temporaries:
        return op
    return replace(op, body=tuple(statements), temporaries=(*op.temporaries, *temporaries))


class _Searches:
    """The rewriting of one statement."""

    def __init__(self, op: Op, s: Assign, namer: Namer) -> None:
        self.op, self.s, self.namer = op, s, namer
        self.statements: list[Assign] = []
        self.temporaries: list[Operand] = []

    def value(self, e: Expr, chosen: bool) -> Expr:
        """Return a value without such searches; where it is `chosen`, a condition decides whether it is asked for."""
        if not has_reduction(e):
            return e
        if isinstance(e, Reduce):
            return (self._search(e, chosen) if e.kind in SEARCHES else None) or e
        chosen = chosen or isinstance(e, Select) or (isinstance(e, Call) and e.fn in ("and", "or"))
        return with_children(e, tuple(self.value(c, chosen) for c in children(e)))

    def _search(self, e: Reduce, chosen: bool) -> Expr | None:
        of = e.body.type
        axes = [a for a in e.axes if isinstance(a, Axis)]
        own = {i for i in self.s.indices if isinstance(i, str)}
        if isinstance(of, Weak) or len(axes) < len(e.axes) or any(a.extent.indices() for a in axes) or free_groups(e):
            return None
        if has_reduction(e.body) or not free_indices(e) <= own:
            return None
        kind = e.kind.removeprefix("arg")
        best = replace(e, kind=kind, type=of)
        if not is_scatter(self.op, self.s, best):
            return None
        if chosen and (may_refuse(e.body) or self._reads_outside(best)):
            return None
        conditions, term = conditions_of(e.body, kind)
        knowledge = knowledge_of(self.op)
        some = [raw("gt", IndexValue(a.extent), ZERO) for a in axes if maybe_empty(knowledge, replace(e, axes=(a,)), {}, ())]
        most = self._stored("best", best, some)
        position, count = Affine.of(0), Affine.of(1)
        for a in axes:
            position, count = position * a.extent + Index(a.index), count * a.extent
        equal: Expr = raw("eq", term, most)
        if is_floating(of):
            equal = raw("or", equal, Call("isnan", (term,), DType.BOOL))
        asked = conjunction([*conditions, raw("ne", most, identity_of(kind, of)), equal])
        number = Call("add", (Const(0, DType.INT64), IndexValue(position)), DType.INT64)
        place = Select(asked, number, identity_of("min", DType.INT64), DType.INT64)
        first = self._stored("first", replace(e, kind="min", body=place, type=DType.INT64), some)
        inside = raw("minimum", raw("maximum", first, ZERO), IndexValue(count - 1))
        found: Expr = Select(raw("lt", first, IndexValue(count)), inside, ZERO, DType.INT64)
        if not some:
            return found
        # A search of nothing is refused as such.
        nothing = replace(e, body=Const(0, DType.INT64))
        return Select(conjunction(some), found, nothing, DType.INT64)

    def _reads_outside(self, e: Reduce) -> bool:
        """Whether a reduction may ask for what does not exist, were it asked for at all points."""
        probe = replace(self.op, temporaries=(*self.op.temporaries, self._temporary("#", e)))
        return any(r.checked for r in reads(e)) or any(ReadsInside(probe).outside(replace(self.s, target="#", value=e)))

    def _temporary(self, name: str, e: Reduce) -> Operand:
        assert not isinstance(e.type, Weak), "a reduction of weak numbers is left as it is"
        return replace(self.op.operand(self.s.target), name=name, type=e.type, optional=False, doc="")

    def _stored(self, word: str, e: Reduce, some: list[Expr]) -> Read:
        """Return the read of a temporary that holds a reduction at every point of the target."""
        name = self.namer.fresh(f"{self.s.target}_{word}")
        self.temporaries.append(self._temporary(name, e))
        value = Select(conjunction(some), e, identity_of(e.kind, e.type), e.type) if some else e
        self.statements.append(Assign(name, self.s.indices, value, self.s.span))
        return Read(name, bare(self.s.indices), e.type, span=self.s.span)
