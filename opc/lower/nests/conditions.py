"""Conditions of a loop nest whose answer is known where they stand, and one condition asked for many.

What is known are the ranges of indices, requirements, and the conditions around: below `d < D // 2`, and with D even, a read at
`d + D // 2` is inside and needs no padding. Each condition that stays in a nest splits its loop, or is tested lane by lane; the
terms of a derived op often ask the same, each in words of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.knowledge import Conditions, knowledge_of
from opc.analysis.bounds.prover import facts_of
from opc.analysis.bounds.quotients import divisions
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType
from opc.ir.expr import (
    CHOICE,
    PADDING,
    READ,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    has_reduction,
    joined_conditions,
    traits,
    walk,
    with_children,
)
from opc.ir.op import Assign, Op
from opc.records import replace

_COMPARISONS = ("lt", "le", "gt", "ge")


def with_simplified_conditions(op: Op, assign: Assign) -> Assign:
    """Return a statement without conditions and paddings whose outcome is known, and with one condition for all that hang on
    it."""
    simplifier = _Simplifier(op, assign)
    value = simplifier.simplified(assign.value, simplifier.ranges, ())
    return replace(assign, value=simplifier.joined(value))


class _Simplifier:
    def __init__(self, op: Op, assign: Assign) -> None:
        self.op = op
        self.knowledge = knowledge_of(op)
        self.ranges: Mapping[str, Affine] = ranges_of(assign, op.operand(assign.target))

    def nonnegative(self, f: Affine, ranges: Mapping[str, Affine], facts: Conditions) -> bool:
        """Whether an expression is proved not negative in these ranges where the facts hold."""
        if any(d.numerator.indices() or d.denominator.indices() for d in divisions(f)):
            return False  # windows with strides: proofs of these take long and fail
        return self.knowledge.nonnegative(f, ranges, facts)

    def simplified(self, e: Expr, ranges: Mapping[str, Affine], facts: Conditions) -> Expr:
        """Return `e` at points of the ranges where the facts hold."""
        if not traits(e) & (CHOICE | PADDING):
            return e
        if isinstance(e, Select):
            cond = self._condition(e.cond, ranges, facts)
            if isinstance(cond, Const):
                return _typed(self.simplified(e.then if cond.value else e.other, ranges, facts), e)
            then = self.simplified(e.then, ranges, (*facts, *_parts(cond, True)))
            other = self.simplified(e.other, ranges, (*facts, *_parts(cond, False)))
            return e if (cond, then, other) == children(e) else replace(e, cond=cond, then=then, other=other)
        if isinstance(e, Reduce):
            # An index of the reduction hides one of its name outside.
            own = set(e.extents) | {a.name for a in e.axes if isinstance(a, GroupAxis)}
            ranges = {**{n: r for n, r in ranges.items() if n not in own}, **e.extents}
            facts = tuple((c, holds) for c, holds in facts if not own & free_indices(c))
        new = with_children(e, tuple(self.simplified(c, ranges, facts) for c in children(e)))
        if isinstance(new, Read) and new.pad is not None and self._is_inside(new, ranges, facts):
            return replace(new, pad=None)
        return new

    def joined(self, e: Expr) -> Expr:
        """Return `e` inside of one condition that implies the others or their opposites."""
        if has_reduction(e):
            return e
        before = _open(e)
        for c in dict.fromkeys(c for node in walk(e) for c in _comparisons(node)) if before > 1 else ():
            then, other = (self.simplified(e, self.ranges, ((c, holds),)) for holds in (True, False))
            # Where more is left on a side, the loop is better split in the part where all hold and the rest.
            if before > _open(then) + _open(other) and max(_open(then), _open(other)) <= 1:
                return Select(c, then, other, e.type, e.span)
        return e

    def _condition(self, c: Expr, ranges: Mapping[str, Affine], facts: Conditions) -> Expr:
        """Return a condition, True or False where that is known."""
        known = dict(facts).get(c)
        if known is not None:
            return Const(known, DType.BOOL, c.span)
        match c:
            case Call(fn="not", args=(inner,)):
                inner = self._condition(inner, ranges, facts)
                return Const(not inner.value, DType.BOOL, c.span) if isinstance(inner, Const) else with_children(c, (inner,))
            case Call(fn="and" | "or" as fn, args=(a, b)):
                goes_on = fn == "and"
                a = self._condition(a, ranges, facts)
                b = self._condition(b, ranges, (*facts, *_parts(a, goes_on)))
                return joined_conditions(replace(c, args=(a, b)))
            case _ if _is_comparison(c):
                for holds in (True, False):
                    if all(self.nonnegative(f, ranges, facts) for f in facts_of(c, holds)):
                        return Const(holds, DType.BOOL, c.span)
        return c

    def _is_inside(self, e: Read, ranges: Mapping[str, Affine], facts: Conditions) -> bool:
        """Whether a padded read never falls outside."""
        dims = self.op.operand(e.operand).dims
        for index, size in zip(e.indices, dims, strict=True):
            if isinstance(index, GroupRef):
                continue
            if not isinstance(index, Affine) or not isinstance(size, Affine):
                return False
            if not all(self.nonnegative(f, ranges, facts) for f in (index, size - 1 - index)):
                return False
        return True


def _parts(c: Expr, holds: bool) -> Conditions:
    """Return a condition of this value as the conditions it consists of."""
    match c:
        case Call(fn="and" | "or" as fn, args=(a, b)) if holds == (fn == "and"):
            return (*_parts(a, holds), *_parts(b, holds))
        case Const():
            return ()
        case _:
            return ((c, holds),)


def _typed(chosen: Expr, e: Select) -> Expr:
    """Return the chosen side of a conditional, whose literal takes the conditional's type."""
    return replace(chosen, type=e.type) if isinstance(chosen, Const) else chosen


def _is_comparison(c: Expr) -> bool:
    """Whether a condition compares integers known without reading an operand."""
    return isinstance(c, Call) and c.fn in _COMPARISONS and all(affine_of(a) is not None for a in c.args)


def _comparisons(e: Expr) -> Iterator[Expr]:
    """Yield every comparison of indices that a choice hangs on, then its whole condition where no element is read for it."""
    if isinstance(e, Select):
        found = [c for c in walk(e.cond) if _is_comparison(c) and free_indices(c)]
        yield from found
        if found and not traits(e.cond) & READ:
            yield e.cond


def _open(e: Expr) -> int:
    """Return by how many choices and paddings a loop over `e` is split."""
    if not traits(e) & (CHOICE | PADDING):
        return 0
    return sum(any(_comparisons(node)) or (isinstance(node, Read) and node.pad is not None) for node in walk(e))
