"""Index-set splitting: a loop over lanes whose body chooses becomes loops over the parts in which the choice is the same.

A condition that is affine in the vector axis splits the range, one that doesn't depend on it becomes a branch around the loop,
one that holds at a single lane is peeled, and what is left is tested lane by lane.
"""

from __future__ import annotations

from opc.analysis.patterns import conjunction
from opc.analysis.runs import Bound
from opc.analysis.value_types import presence
from opc.ir.affine import Affine, Index
from opc.ir.comparisons import said_by_attributes
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    reads,
    rewrite,
    walk,
)
from opc.ir.identity import is_identity
from opc.loops.nodes import Accumulate, Body, Do, How, If, Let, Loop, Search, Statement, Store, Var
from opc.loops.values import Construct, IntegerChoice, Local, call, compare, number, ref, variable
from opc.lower.alone import literals
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, LoopContext, VectorRange
from opc.lower.guards import Guard, bounded, guard_indices, guards, inside, is_known_inside, is_zero, one_index, replace_node
from opc.records import dataclass, replace

_MOST_SPLITS = 3
"""A range is split by so many conditions inside one another; further ones are tested lane by lane."""

_SHORT = 4
"""A range of so few lanes is not worth a loop for each of its parts."""

_MANY_SPLITS = 3
"""With so many reads that may fall outside, the part where none does gets a loop, and in the rest each is tested lane by lane."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A loop over the lanes of a range whose one statement computes a value, which may choose.

    Only the last value of a lane counts where that is stored. Where a store is `zeroed`, the memory holds zeros before.
    """

    how: How
    over: VectorRange
    take: Store | Accumulate | Search
    zeroed: bool = False

    @property
    def overwrites(self) -> bool:
        """Whether only the last value of a lane counts."""
        return isinstance(self.take, Store)

    @property
    def ordered(self) -> bool:
        """Whether the values of a lane before another's are to come before them: of equal ones, the first counts."""
        return isinstance(self.take, Search) and self.take.best.index is None

    def ignores(self, e: Expr) -> bool:
        """Whether a value changes nothing."""
        match self.take:
            case Store():
                return self.zeroed and is_zero(e)
            case Accumulate(kind=kind) | Search(kind=kind):
                return is_identity(kind, e)

    def at(self, value: Expr, over: VectorRange) -> Sweep:
        """Return the loop over another range that takes another value."""
        return replace(self, over=over, take=replace(self.take, value=value))


def split(known: LoopContext, sweep: Sweep) -> Body:
    """Return the loops that a sweep becomes."""
    extents = (x.constant for at, x in known.bounded.items() if sweep.over.vector_axis in at.indices())
    short = any(x is not None and x <= _SHORT for x in extents)
    return _IndexSetSplitter(known).write(sweep, 0 if short else _MOST_SPLITS)


def condition(known: LoopContext, found: tuple[Guard, ...]) -> Expr:
    """Return guards as one condition that is tested where it stands."""
    accesses = Accesses(known, NO_RANGE, lazy=True)
    tests = [as_condition(g) if isinstance(g, Affine) else accesses.value(g) for g in found]
    return conjunction(tests) if tests else Const(True, DType.BOOL)


def as_condition(g: Guard, cut: bool = True) -> Expr:
    """Return a guard as a condition, with what several attributes say cut to what is far, where integers have 64 bits."""
    if not isinstance(g, Affine):
        return g
    several = cut and len(said_by_attributes(g).terms) > 1
    return compare("ge", IndexValue(bounded(g) if several else g), number(0))


def narrow(known: LoopContext, found: tuple[Guard, ...], over: VectorRange, low: str, high: str) -> Body:
    """Return the declarations of the bounds of the part of a range where the guards hold."""
    clips = [clip(known, g, over.vector_axis, (ref(low), ref(high))) for g in found]
    return Var(low, Weak.INT, over.low), Var(high, Weak.INT, over.high), *clips


def clip(known: LoopContext, g: Guard, index: str, ends: tuple[Local, Local]) -> Statement:
    """Return the narrowing of a range of an index to where a guard holds; one that is no expression must not depend on it."""
    low, high = ends
    if not isinstance(g, Affine):
        never = Call("not", (condition(known, (g,)),), DType.BOOL)
        return If(never, (Store(high, low),))
    coefficient = g.coefficient(index)
    assert coefficient is not None, "a guard that narrows a range is affine in its index"
    rest = bounded(g, known.positive) - coefficient * Affine.of(Index(index))
    return Do(call("clip", low, high, IndexValue(coefficient), IndexValue(rest)))


def clip_by_data(known: LoopContext, found: tuple[Bound, ...], ends: tuple[Local, Local]) -> Body:
    """Return the narrowing of a range of an index to where it is as data says, which is looked up here."""
    low, high = ends
    body: list[Statement] = []
    for b in found:
        before, value = ahead(known, b.value)
        clips = "clip_from" if b.below else "clip_to"
        body += [*before, Do(call(clips, low, high, Construct(Weak.INT, value), IndexValue(b.rest)))]
    return tuple(body)


def is_solvable(known: LoopContext, g: Guard, vector_axis: str) -> bool:
    """Whether a guard is one of ranges of the vector axis, or doesn't depend on it and may be tested early."""
    if isinstance(g, Affine):
        return g.coefficient(vector_axis) is not None
    return vector_axis not in free_indices(g) and all(_stands(known, r, vector_axis) for r in reads(g))


def excluded(known: LoopContext, g: Guard, vector_axis: str) -> tuple[Body, str] | None:
    """Return the variable of the one lane at which a guard doesn't hold, and what computes it; None for other guards."""
    if not isinstance(g, Call) or g.fn not in ("not", "ne"):
        return None
    one = one_lane(known, g.args[0] if g.fn == "not" else replace(g, fn="eq"), vector_axis)
    if one is None:
        return None
    name = known.nest.fresh("but")
    return _place(known, name, one), name


def one_lane(known: LoopContext, cond: Expr, vector_axis: str) -> tuple[Affine, Expr] | None:
    """Return what a condition asks of the vector axis where one lane alone may hold it: the vector axis plus the first is the
    second."""

    def is_known(value: Expr) -> bool:
        if not isinstance(value, Read | Call) or vector_axis in free_indices(value):
            return False
        return not any(
            isinstance(e, Reduce) or (isinstance(e, Read) and not _is_known(known, e, vector_axis)) for e in walk(value)
        )

    return one_index(cond, vector_axis, is_known)


def is_mostly_zero(known: LoopContext, e: Expr, vector_axis: str) -> bool:
    """Whether a value is zero at all lanes but one."""
    return isinstance(e, Select) and is_zero(e.other) and one_lane(known, e.cond, vector_axis) is not None


def ahead(known: LoopContext, e: Expr) -> tuple[Body, Expr]:
    """Return what computes a value where it stands, and the value: its reads are carried out and tested."""
    accesses = Accesses(known, NO_RANGE)
    value = accesses.value(e)
    return tuple(accesses.before), value


def _place(known: LoopContext, name: str, one: tuple[Affine, Expr]) -> Body:
    """Return the declaration of the vector axis that is asked for."""
    before, value = ahead(known, one[1])
    at: Expr = Construct(Weak.INT, value)
    if one[0] != Affine.of(0):
        at = Call("sub", (at, IndexValue(one[0])), Weak.INT)
    return *before, Let(name, Weak.INT, at)


def _is_known(known: LoopContext, r: Read, vector_axis: str) -> bool:
    """Whether what a read finds is known ahead of the vector axis, wherever it stands."""
    return r.pad is None and _stands(known, r, vector_axis)


def _stands(known: LoopContext, r: Read, vector_axis: str) -> bool:
    """Whether a read may be carried out ahead of the loop over the vector axis."""
    if r.operand in known.locals:
        return not known.locals[r.operand].row
    return is_known_inside(r, known.nest.sizes(r.operand), known.bounded) and vector_axis not in free_indices(r)


class _IndexSetSplitter:
    def __init__(self, known: LoopContext) -> None:
        self.known, self.nest = known, known.nest

    def write(self, s: Sweep, splits: int) -> Body:
        """Return the loops of a sweep, which is split by so many conditions at most."""
        e, over = s.take.value, s.over
        if splits and isinstance(e, Select) and (one := one_lane(self.known, e.cond, over.vector_axis)) is not None:
            return self._peeled(s, e, one, splits)
        node = self._split(e, over.vector_axis, e) if splits else None
        if node is None or not self.nest.decisions.take("split"):
            return self._leaf(s)
        if splits == _MOST_SPLITS and (both := self._inside_or_not(s)) is not None:
            return both
        found = self._guards(node)
        then, other = (replace(node, pad=None), node.pad) if isinstance(node, Read) else (node.then, node.other)
        assert other is not None, "a node that splits a range has two sides"
        yes, no = replace_node(e, node, then), replace_node(e, node, other)
        if isinstance(node, Select):
            yes, no = _answered(yes, node.cond, True), _answered(no, node.cond, False)
        skip = s.ignores(no)
        if not any(over.vector_axis in guard_indices(g) for g in found):
            return self._unswitched(s, node, found, yes, None if skip else no, splits)
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        within = s.at(yes, VectorRange(over.vector_axis, variable(low), variable(high)))
        before = s.at(no, VectorRange(over.vector_axis, over.low, variable(low)))
        behind = s.at(no, VectorRange(over.vector_axis, variable(high), over.high))
        moves = _moved(found, over.vector_axis)
        rest = [] if skip else [part for part, end in ((before, "low"), (behind, "high")) if end in moves]
        # A chain of choices, each behind the last, becomes one loop for each.
        left = splits if node is e and len(rest) == 1 else splits - 1
        loops = [t for part in _in_order(within, rest, s) for t in self.write(part, splits - 1 if part is within else left)]
        return *narrow(self.known, found, over, low, high), *loops

    def _unswitched(
        self, s: Sweep, node: Select | Read, found: tuple[Guard, ...], yes: Expr, no: Expr | None, splits: int
    ) -> Body:
        """Return the loops for either answer to a condition that is the same at all lanes."""
        before = self.known.given
        then: Body = ()
        other: Body = ()
        holds = [presence(node.cond, h) if isinstance(node, Select) else frozenset[str]() for h in (True, False)]
        self.known.given = before | holds[0]
        then = self.write(s.at(yes, s.over), splits - 1)
        self.known.given = before | holds[1]
        if no is not None:
            other = self.write(s.at(no, s.over), splits - 1)
        self.known.given = before
        return (If(condition(self.known, found), then, other),)

    def _peeled(self, s: Sweep, e: Select, one: tuple[Affine, Expr], splits: int) -> Body:
        """Return a choice of one lane: that lane, and the loops before and behind it, which test nothing.

        Where all the others are alike, the whole range is filled, and then that lane.
        """
        over, known = s.over, self.known
        alike = over.vector_axis not in free_indices(e.other) and all(
            _is_known(known, r, over.vector_axis) for r in reads(e.other)
        )
        fills = s.overwrites and alike and not isinstance(e.other, Select)
        body: list[Statement] = []
        if fills and not s.ignores(e.other):
            body += self.write(s.at(e.other, over), splits - 1)
        at, low, high = (self.nest.fresh(n) for n in ("at_one", "low", "high"))
        body += _place(known, at, one)
        within = Call("and", (compare("ge", variable(at), over.low), compare("lt", variable(at), over.high)), DType.BOOL)
        body.append(Let(low, Weak.INT, IntegerChoice(within, variable(at), over.high)))
        end = IntegerChoice(compare("lt", variable(low), over.high), IndexValue(Affine.of(Index(low)) + 1), variable(low))
        body.append(Let(high, Weak.INT, end))
        peeled = s.at(e.then, VectorRange(over.vector_axis, variable(low), variable(high)))
        rest: list[Sweep] = []
        if not fills and not s.ignores(e.other):
            rest = [
                s.at(e.other, VectorRange(over.vector_axis, over.low, variable(low))),
                s.at(e.other, VectorRange(over.vector_axis, variable(high), over.high)),
            ]
        for part in _in_order(peeled, rest, s):
            body += self._leaf(part, short=True) if part is peeled else self.write(part, splits - 1)
        return tuple(body)

    def _inside_or_not(self, s: Sweep) -> Body | None:
        """Return one loop for where all of several reads are inside and one for the rest, None where the reads are few."""
        found: list[Guard] = []
        inner, count, vector_axis = s.take.value, 0, s.over.vector_axis
        while (node := self._split(inner, vector_axis, inner)) is not None:
            guard = self._guards(node)
            if not _is_inside(node, guard, vector_axis):
                return None  # the rest may be as long
            found += guard
            inner = replace_node(inner, node, replace(node, pad=None) if isinstance(node, Read) else node.then)
            count += 1
        if count < _MANY_SPLITS or s.ordered:
            return None
        low, high, side, begin, end = (self.nest.fresh(n) for n in ("low", "high", "side", "begin", "end"))
        first = compare("eq", variable(side), number(0))
        rest: Body = (
            Let(begin, Weak.INT, IntegerChoice(first, s.over.low, variable(high))),
            Let(end, Weak.INT, IntegerChoice(first, variable(low), s.over.high)),
            *self._leaf(s.at(s.take.value, VectorRange(vector_axis, variable(begin), variable(end))), short=True),
        )
        return (
            *narrow(self.known, _least(found), s.over, low, high),
            *self._leaf(s.at(inner, VectorRange(vector_axis, variable(low), variable(high)))),
            Loop(How.SERIAL, side, number(0), number(2), rest),
        )

    def _guards(self, node: Select | Read) -> tuple[Guard, ...]:
        if isinstance(node, Select):
            return guards(node.cond, self.known.positive)
        return inside(node, self.nest.sizes(node.operand), self.known.bounded)

    def _split(self, e: Expr, vector_axis: str, root: Expr) -> Select | Read | None:
        """Return the outermost part of `e` by whose condition the range can be split."""
        if isinstance(e, Select):
            found = self._guards(e)
            if all(is_solvable(self.known, g, vector_axis) for g in found) and (e is root or self._worth(e, vector_axis)):
                return e
            return self._split(e.cond, vector_axis, root) or self._given_or_not(e, vector_axis)
        if isinstance(e, Read) and e.pad is not None and e.operand not in self.known.locals:
            found = self._guards(e) if all(isinstance(i, Affine) for i in e.indices) else ()
            if found and all(is_solvable(self.known, g, vector_axis) for g in found):
                return e
        if isinstance(e, Call) and e.fn in ("and", "or"):
            return self._split(e.args[0], vector_axis, root)
        for c in children(e):
            node = self._split(c, vector_axis, root)
            if node is not None:
                return node
        return None

    def _given_or_not(self, e: Select, vector_axis: str) -> Select | None:
        """Return a choice inside a choice made lane by lane that hangs on whether an operand was given: it is made ahead."""
        inner = (s for side in (e.then, e.other) for s in walk(side) if isinstance(s, Select))
        return next((s for s in inner if _is_presence(s.cond) and self._worth(s, vector_axis)), None)

    def _worth(self, e: Select, vector_axis: str) -> bool:
        """Whether a choice inside an expression is worth a loop for each side: its sides read along the vector axis."""
        sides = (r for side in (e.then, e.other) for r in reads(side) if r.operand not in self.known.locals)
        return any(vector_axis in free_indices(r) for r in sides)

    def _leaf(self, s: Sweep, short: bool = False) -> Body:
        """Return the loop of a sweep that is split no further; a short one is not worth a copy for each step of its reads."""
        accesses = Accesses(self.known, s.over)
        take = replace(s.take, value=accesses.value(s.take.value))
        loop = Loop(s.how, s.over.vector_axis, s.over.low, s.over.high, (take,), short=short)
        return (If(compare("lt", s.over.low, s.over.high), (*accesses.before, loop)),)


def _in_order(within: Sweep, rest: list[Sweep], s: Sweep) -> list[Sweep]:
    """Return the part within a range, and those before and behind it, in the order in which they run."""
    ahead = [part for part in rest if s.ordered and part.over.low == s.over.low]
    return [*ahead, within, *(part for part in rest if part not in ahead)]


def _moved(found: tuple[Guard, ...], vector_axis: str) -> tuple[str, ...]:
    """Return which ends of a range guards may move, as `clip` does: an upper bound of the vector axis the high one alone."""
    slopes = [g.coefficient(vector_axis) if isinstance(g, Affine) else None for g in found]
    signs = {None if c is None or not c.constant else c.constant > 0 for c in slopes}
    return ("low",) if signs == {True} else ("high",) if signs == {False} else ("low", "high")


def _answered(e: Expr, cond: Expr, holds: bool) -> Expr:
    """Return a value where a condition holds, or does not: its other choices by this condition are made too."""
    numbers = literals(cond)

    def rule(x: Expr) -> Expr:
        if not isinstance(x, Select) or x.cond != cond or literals(x.cond) != numbers:
            return x
        side = x.then if holds else x.other
        return side if side.type == x.type else Cast(side, x.type, x.span)

    return rewrite(e, rule)


def _is_presence(cond: Expr) -> bool:
    """Whether a condition is that an operand was given, or was not."""
    return isinstance(cond, Present) or (isinstance(cond, Call) and cond.fn == "not" and _is_presence(cond.args[0]))


def _is_inside(node: Select | Read, found: tuple[Guard, ...], vector_axis: str) -> bool:
    """Whether a condition may be that a read is inside: it bounds the vector axis on both sides, if at all."""
    if isinstance(node, Select) and not isinstance(node.other, Const):
        return False
    bounds = [g for g in found if vector_axis in guard_indices(g)]
    return all(isinstance(g, Affine) for g in found) and len(bounds) != 1


def _least(found: list[Guard]) -> tuple[Guard, ...]:
    """Return guards without those that others imply: of those that differ by a number, the least."""
    kept: dict[Affine | Expr, Guard] = {}
    for g in found:
        if not isinstance(g, Affine):
            kept[g] = g
            continue
        moving = g - dict(g.terms).get((), 0)
        before = kept.get(moving)
        if not isinstance(before, Affine) or ((g - before).constant or 0) < 0:
            kept[moving] = g
    return tuple(kept.values())
