"""Checks that every read stands inside its operand, from the ranges of the indices, checks and requirements.

A read on a side of a conditional is proved for the points where that side is chosen: the conditions around it are facts.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.access import Access, accesses
from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.prover import Prover
from opc.analysis.bounds.quotients import every_division
from opc.analysis.wording import dim_text
from opc.diagnostics import Diagnostics, Span
from opc.ir.affine import (
    Affine,
    AttrInt,
    Dim,
)
from opc.ir.expr import Axis, Expr, IndexValue, Reduce, children
from opc.ir.op import Assign, Group, Op, Operand
from opc.ir.ordering import ordering_of
from opc.ir.printer import format_expr
from opc.ir.recurrence import circles

_MAX_WORDS = 120
"""How many characters what an index runs over takes at most in a message, where the names of sizes are shorter."""


class BoundsChecker:
    """Checks the reads, divisors and sizes of one op."""

    def __init__(self, op: Op, found: Diagnostics, shape: Mapping[str, Span]) -> None:
        self.op = op
        self.found = found
        self.shape = shape
        self.knowledge = knowledge_of(op)
        self.facts, self.expand = self.knowledge.facts, self.knowledge.expand
        self.operands = {o.name: o for o in op.operands}
        self.stepping = {name: circle for circle in circles(op) for name in circle}

    def run(self) -> None:
        """Record every read that can't be proved inside, and every divisor that may be zero."""
        op = self.op
        for name, size in op.dims:
            self._divisors(size, {}, self.shape.get(name) or _span(op, name))
        for o in op.outputs:
            for d in o.dims:
                if isinstance(d, Affine):
                    self._divisors(d, {}, o.span)
        for s in op.body:
            ranges = ranges_of(s, self.operands[s.target])
            self._values(s.value, ranges)
            for access in accesses(s):
                self._access(access, {**ranges, **access.extents})

    def _values(self, e: Expr, ranges: dict[str, Affine]) -> None:
        """Check the divisors of integer expressions that are values or extents."""
        if isinstance(e, IndexValue):
            self._divisors(e.value, ranges, e.span)
        if isinstance(e, Reduce):
            for axis in e.axes:
                if isinstance(axis, Axis):
                    self._divisors(axis.extent, ranges, e.span)
            self._place(e, ranges)
            ranges = {**ranges, **e.extents}
        for child in children(e):
            self._values(child, ranges)

    def _place(self, e: Reduce, ranges: Mapping[str, Affine]) -> None:
        """Check that the place of an order that is asked for is one of those that there are."""
        order = ordering_of(e)
        if order is None:
            return
        rank, extent = order.rank, order.extent
        if all(self.knowledge.nonnegative(f, ranges) for f in (rank, extent - 1 - rank)):
            return
        known = f"[M <= {extent}] where M places are asked for" if rank.indices() else f"[{extent} > {rank}]"
        message = f"the place {rank} may be none of the {extent} that are ordered"
        self.found.error(message, e.span, f"state what is known under check or require: {known}")

    def _divisors(self, e: Affine, ranges: Mapping[str, Affine], span: Span) -> None:
        for atom in sorted(every_division(e), key=str):
            divisor = self.knowledge.plain(atom.denominator)
            if divisor.constant == 0 or (
                divisor.constant is None and not self.knowledge.nonnegative(atom.denominator - 1, ranges)
            ):
                text = str(atom.denominator)
                factors = [a for m, _ in atom.denominator.terms for a in m if isinstance(a, AttrInt)]
                names = sorted(str(a) for a in factors if not self.knowledge.nonnegative(Affine.of(a) - 1, ranges))
                hint = f"add the check {names[0]} > 0" if names else f"add require: [{text} > 0]"
                if names and self.knowledge.nonnegative(-atom.denominator - 1, ranges):
                    # `N // -step` is `-N // step`, and that step goes backwards.
                    hint = f"declare {names[0]} as a number above 0, and subtract it: x[start - i*{names[0]}]"
                self.found.error(f"the divisor {text} may be zero or negative", span, hint)

    def _access(self, access: Access, ranges: Mapping[str, Affine]) -> None:
        read = access.read
        operand = self.operands[read.operand]
        for index, dim in zip(read.indices, operand.dims):
            if not isinstance(index, Affine) or isinstance(dim, Group):
                continue
            self._divisors(index, ranges, read.span)
            if read.pad is not None:
                continue
            if all(self.knowledge.nonnegative(f, ranges, access.conditions) for f in (index, dim - 1 - index)):
                continue
            runs = " stands" if index.indices() == set() else self._runs(index, ranges)
            message = f"the read may fall outside '{operand.name}': {index}{runs} on an axis of size {dim_text(dim)}"
            hint = "write pad(..., value), or state what is known under check or require"
            if index.constant is not None and index.constant < 0:
                hint = f"{dim + index} is counted from the end, with require: [{dim} >= {-index}]"
            if read.operand in self.stepping.get(access.statement.target, ()):
                hint = f"say where '{read.operand}' starts: pad({format_expr(read)}, 0), or a value in place of 0"
            self.found.error(message, read.span, hint)

    def _runs(self, index: Affine, ranges: Mapping[str, Affine]) -> str:
        """Return what an index runs over in words: with the rules of sizes where these are short, else with their names."""
        expanded = {n: self.expand(e) for n, e in ranges.items()}
        for inside, around in ((self.expand(index), expanded), (index, ranges)):
            prover = Prover(self.facts, around)
            low, negative = prover.least(inside), prover.least(-inside)
            if low is None or negative is None:
                return " has no range that is known"
            runs = f" runs from {low} to {-negative}"
            if len(runs) <= _MAX_WORDS:
                break
        return runs


def ranges_of(statement: Assign, target: Operand) -> dict[str, Affine]:
    """Return the extent of each index that a statement's target is written with."""
    return {i: d for i, d in zip(statement.indices, target.dims) if isinstance(i, str) and isinstance(d, Affine)}


def _span(op: Op, name: str) -> Span:
    return next(
        (o.span for o in op.outputs for d in o.dims if isinstance(d, Affine) and Dim(name) in d.atoms()), op.outputs[0].span
    )


def check_bounds(op: Op, found: Diagnostics, shape: Mapping[str, Span] | None = None) -> None:
    """Record every read of `op` that can't be proved inside, and every divisor of an index or size that may be zero.

    `shape` tells where derived dimensions stand.
    """
    BoundsChecker(op, found, shape or {}).run()
