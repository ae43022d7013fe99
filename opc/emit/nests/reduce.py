"""Reductions in the expressions of loop nests: each gets its loops, in the branch it counts in, and the rest reads its result."""

from __future__ import annotations

from dataclasses import replace

from opc.emit.nests.base import NestWriter, Unsupported
from opc.emit.nests.fold import OPERATOR, Fold
from opc.emit.nests.region import Local, Range, Regions
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType
from opc.ir.expr import (
    Call,
    Expr,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    with_children,
)
from opc.lower.guards import Guard, guard_indices, guards
from opc.lower.nests.flat import holds_reduction


class Reductions:
    """Writes the loops of the reductions in an expression and leaves the expression over their results."""

    def __init__(self, regions: Regions, over: Range) -> None:
        self.regions, self.over = regions, over
        self.writer: NestWriter = regions.writer
        self.declarations: list[str] = []

    def run(self, e: Expr) -> Expr:
        """Write the loops of the reductions in `e`, and return `e` with reads of their results."""
        w = self.writer
        lines, w.lines = w.lines, []
        rest = self.extract(e)
        body, w.lines = w.lines, lines
        # Results are declared here, whatever branch they are computed in.
        w.put(*self.declarations)
        w.lines += body
        return rest

    def extract(self, e: Expr, under: tuple[Guard, ...] = ()) -> Expr:
        """Do what `run` does for a part; `under` are the conditions that depend on the lane under which it counts."""
        if not holds_reduction(e):
            return e
        match e:
            case Reduce():
                return self._reduce(e, under)
            case Select():
                return self._choice(e, under)
            case Call(fn="and" | "or", args=(first, second)) if holds_reduction(second):
                left = self.extract(first, under)
                cond = first if e.fn == "and" else Call("not", (first,), DType.BOOL)
                if holds_reduction(first):
                    raise Unsupported("a reduction behind another in a condition")
                return replace(e, args=(left, self._side(second, cond, under)))
            case _:
                return with_children(e, tuple(self.extract(c, under) for c in children(e)))

    def _choice(self, e: Select, under: tuple[Guard, ...]) -> Expr:
        cond = self.extract(e.cond, under)
        if holds_reduction(e.cond) and (holds_reduction(e.then) or holds_reduction(e.other)):
            raise Unsupported("a choice by a reduction of reductions")
        opposite = Call("not", (e.cond,), DType.BOOL)
        return replace(e, cond=cond, then=self._side(e.then, e.cond, under), other=self._side(e.other, opposite, under))

    def _side(self, e: Expr, cond: Expr, under: tuple[Guard, ...]) -> Expr:
        """Extract what counts only where a condition holds: in a branch, or with the condition as a guard of each reduction."""
        if not holds_reduction(e):
            return e
        if self.over.lane and self.over.lane in free_indices(cond):
            return self.extract(e, (*under, *guards(cond, self.regions.positive)))
        with self.writer.block(f"if ({self.regions.condition(guards(cond, self.regions.positive))})"):
            return self.extract(e, under)

    def _reduce(self, e: Reduce, under: tuple[Guard, ...]) -> Read:
        """Write the loops of one reduction and return a read of its result."""
        if holds_reduction(e.body):
            raise Unsupported("a reduction in a reduction")
        if under and e.kind not in OPERATOR:
            raise Unsupported(f"a {e.kind} that counts only at some lanes")
        lane = self.over.lane
        row = bool(lane) and (lane in free_indices(e) or any(lane in guard_indices(g) for g in under))
        nest = Fold(self.regions, self.over, e, under, row)
        self.declarations += nest.declarations
        nest.write()
        name = f"#{nest.result}"
        self.regions.locals[name] = Local(f"{nest.result}.total()" if nest.products else nest.result, e.type, row)
        return Read(name, (Affine.of(Index(lane)),) if row else (), e.type)
