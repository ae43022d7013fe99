"""Gives statements to the intermediate values that derivatives need, so that derived ops grow with their source and not faster.

The derivative of a product holds its factors, that of a quotient the quotient, and so on. Written into one expression they would
be copied into every derivative of every order; as temporaries they are read. What stays small is left in place.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.ir.expr import (
    Call,
    Expr,
    IndexValue,
    Reduce,
    Select,
    children,
    conjuncts,
    free_indices,
    has_reduction,
    reads,
    size,
    with_children,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Op
from opc.records import replace
from opc.transform import scalar
from opc.transform.domain import Domain
from opc.transform.extract import Extractor
from opc.transform.indices import Namer, index_names, op_names, store_values
from opc.transform.partials import template
from opc.transform.share import NOUNS
from opc.transform.sums import solution

SMALL = 20
"""The number of nodes up to which an expression is copied rather than read back."""


def tape(op: Op, active: Callable[[str], bool]) -> Op:
    """Return the op with statements for the larger values that derivatives with respect to `active` operands hold.

    A value from inside a conditional keeps the condition: where it does not hold, the temporary is 0 and has no gradient.
    """
    extractor = Extractor(op, Namer(op_names(op) | index_names(op)))
    body: list[Assign] = []
    for s in op.body:
        taper = _Taper(extractor, active)
        value = taper.visit(s.value, Domain.of(s, op.operand(s.target)), (), True)
        body += [*extractor.statements, replace(s, value=value)]
        extractor.statements.clear()
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *extractor.temporaries))


class _Taper:
    def __init__(self, extractor: Extractor, active: Callable[[str], bool]) -> None:
        self.extractor = extractor
        self.active = active

    def visit(self, e: Expr, domain: Domain, guards: tuple[Expr, ...], root: bool) -> Expr:
        if not self._varies(e):
            return e
        match e:
            case Select():
                then = self.visit(e.then, domain, (*guards, e.cond), root)
                other = self.visit(e.other, domain, (*guards, scalar.negation(e.cond)), root)
                return replace(e, then=then, other=other)
            case Reduce() if len(scalar.still(guards, e)) == len(guards):
                return replace(e, body=self.visit(e.body, domain.inside(e.axes), guards, False))
            case Reduce():
                return e
            case Call():
                return self._call(e, domain, guards, root)
            case _:
                return with_children(e, tuple(self.visit(c, domain, guards, False) for c in children(e)))

    def _call(self, e: Call, domain: Domain, guards: tuple[Expr, ...], root: bool) -> Expr:
        needed = self._needed(e)
        args = []
        for name, a in zip("xy", e.args):
            a = self.visit(a, domain, guards, False)
            args.append(self._read_back(a, domain, guards) if name in needed else a)
        e = replace(e, args=tuple(args))
        return self._read_back(e, domain, guards) if "r" in needed and not root else e

    def _needed(self, e: Call) -> set[str]:
        """Return which of its arguments and its result the derivative of a call holds."""
        texts = FUNCTIONS[e.fn].derivative
        if texts is None:
            return set()
        types = e.args[0].type, e.args[1].type if len(e.args) > 1 else None, e.type
        used = (template(t, *types) for t, a in zip(texts, e.args) if self._varies(a))
        return {r.operand for d in used for r in reads(d)}

    def _varies(self, e: Expr) -> bool:
        fresh = {o.name for o in self.extractor.temporaries}
        return any(r.operand in fresh or self.active(r.operand) for r in reads(e))

    def _read_back(self, e: Expr, domain: Domain, guards: tuple[Expr, ...]) -> Expr:
        if size(e) <= SMALL or not self._varies(e) or any(r.checked for r in reads(e)):
            return e
        conditions, value = _at_data([c for guard in guards for c in conjuncts(guard)], e, domain)
        for g in reversed(conditions):
            if _places(g, value):
                continue
            if has_reduction(g):
                return e
            value = scalar.select(g, value, scalar.ZERO)
        first = reads(e)[0].operand
        name = f"{NOUNS.get(e.fn, e.fn)}_{first}" if isinstance(e, Call) else f"{first}_value"
        return self.extractor.extract(value, domain, name) or e


def _at_data(conditions: list[Expr], value: Expr, domain: Domain) -> tuple[list[Expr], Expr]:
    """Return a value and what it stands under, read where data says that it goes: `w[o[n]]` for `w[i]` under `i == o[n]`.

    So a temporary has a place for each term of a scatter, and not for each of them at each place it may go to.
    """
    for axis in domain.axes:
        if axis.extent.indices():
            continue
        for n, condition in enumerate(conditions):
            where = solution(axis, condition)
            if where is None or not scalar.any_reads(where) or not free_indices(where):
                continue
            ahead = [c for c in conditions[:n] if axis.index not in free_indices(c)]
            behind = [c for c in conditions[:n] if axis.index in free_indices(c)] + conditions[n + 1 :]
            if not any(axis.index in free_indices(e) for e in (*behind, value)):
                continue
            moved = [store_values(e, {axis.index: where}) for e in (*behind, value)]
            known = [e for e in moved if e is not None]
            if len(known) == len(moved):
                low = scalar.compare("ge", where, scalar.ZERO)
                high = scalar.compare("lt", where, scalar.index_value(axis.extent))
                return _at_data([*ahead, low, high, *known[:-1]], known[-1], domain)
    return conditions, value


def _places(guard: Expr, value: Expr) -> bool:
    """Whether a condition says where a value goes, by an index the value does not use: that of a scatter.

    A temporary that kept it would have a place for every such position, and all of them but one would be zero.
    """
    if not isinstance(guard, Call) or guard.fn != "eq":
        return False
    named = {a.value.index for a in guard.args if isinstance(a, IndexValue)} - {None}
    return bool(named - free_indices(value))
