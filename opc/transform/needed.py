"""Where a value is needed at all: at the points at which some conditional chooses it.

A gradient stays inside a conditional together with what it flows to: of `t = log(x); y = t if x > 0 else 0`, the gradient at 0
would otherwise be 0 * inf. Small temporaries are put back into the conditionals that read them (`normalize.sink`). One that is
large, or reads such, would be copied into each of its uses, those into theirs, and so on; it stays, and reverse mode counts for
each of its points the reads that are chosen. Where there is none, the point has no gradient. What steps is counted by a
recurrence that goes the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from opc.analysis.bounds.knowledge import Knowledge
from opc.ir.expr import Call, Cast, Expr, GroupRef, Read, Reduce, Select, conjuncts, operands_read, size, walk
from opc.ir.op import Assign, Op, Operand
from opc.ir.recurrence import recurrent
from opc.records import dataclass
from opc.transform import algebra, scalar
from opc.transform.domain import Domain
from opc.transform.indices import Namer, bare
from opc.transform.normalize import is_steep
from opc.transform.partials import Partials
from opc.transform.scalar import FALSE, TRUE, ZERO
from opc.transform.transpose import transpose

SMALL = 20
"""The number of nodes up to which a condition is written where it is asked, and not as a temporary."""


@dataclass(frozen=True, slots=True)
class ChosenRead:
    """A read, inside loops, of a temporary whose gradient has these indices, and the condition under which the read is chosen."""

    read: Read
    inside: Domain
    condition: Expr
    target: tuple[str | GroupRef, ...]


@dataclass(slots=True)
class Needed:
    """What reverse mode has learnt of where each temporary is needed, statement by statement from the last."""

    op: Op
    namer: Namer
    knowledge: Knowledge
    statements: list[Assign]
    fresh: list[Operand]
    asked: bool
    """Whether there is a temporary that is read inside a conditional and was not put there; otherwise nothing is counted."""
    chosen: dict[str, list[ChosenRead]] = field(default_factory=dict)
    everywhere: set[str] = field(init=False)
    counted: dict[str, str] = field(default_factory=dict)
    """The temporaries that count the reads of what goes from step to step: its uses are not all known when it is asked."""
    places: dict[str, int] = field(default_factory=dict)
    """Ahead of which statement each of these goes: behind all that asks for its target at the same step."""

    def __post_init__(self) -> None:
        # Of an input nobody asks.
        self.everywhere = {o.name for o in (*self.op.inputs, *self.op.outputs)}

    def step(self, statements: Sequence[Assign], partials_of: Callable[[Assign], Partials]) -> None:
        """Begin with the statements of a recurrence, the last one first, through which the gradient goes."""
        names, below = carried(self.op) & {s.target for s in statements}, set[str]()
        if not self.asked:
            return
        while below != self.everywhere:
            below = set(self.everywhere)
            for s in statements:
                if s.target in below:
                    self.everywhere |= {a.read.operand for a, factor in partials_of(s).items() if support(factor) == TRUE}
        for s in statements:
            if s.target in names - self.everywhere:
                self.counted[s.target] = self.namer.fresh(f"needed_{s.target}")

    def stepped(self, statements: Sequence[Assign]) -> None:
        """End with the statements of a recurrence: where a value is needed depends on where those of the steps behind it are, as
        a recurrence that goes the other way."""
        for s in reversed(statements):
            if s.target in self.counted:
                operand = self.op.operand(s.target)
                self.fresh.append(Operand(self.counted[s.target], operand.type, operand.dims))
                count = Assign(self.counted[s.target], s.indices, self._count(s))
                self.statements.insert(self.places[s.target], count)

    def where(self, s: Assign) -> Expr:
        """Return the condition, at a point of a statement's target, under which its value is needed."""
        operand = self.op.operand(s.target)
        if s.target in self.counted:
            self.places[s.target] = len(self.statements)
            return scalar.raw("gt", Read(self.counted[s.target], bare(s.indices), operand.type), ZERO)
        if s.target in self.everywhere or not self.chosen.get(s.target):
            return TRUE
        total = self._count(s)
        condition = _condition(total)
        if condition is not None:
            return condition
        name = self.namer.fresh(f"needed_{s.target}")
        self.fresh.append(Operand(name, operand.type, operand.dims))
        self.statements.append(Assign(name, s.indices, total))
        return scalar.raw("gt", Read(name, bare(s.indices), operand.type), ZERO)

    def _count(self, s: Assign) -> Expr:
        """Return how many of the reads of a statement's target are chosen, at each of its points."""
        operand = self.op.operand(s.target)
        one = scalar.cast_literal(operand.type, scalar.ONE)
        total: Expr = ZERO
        for part in self.chosen.get(s.target, ()):
            count = scalar.select(part.condition, one, ZERO)
            total = algebra.add(total, transpose(part.read, part.inside, count, part.target, operand.dims, self.knowledge))
        return total

    def read(self, read: Read, inside: Domain, need: Expr, factor: Expr, target: tuple[str | GroupRef, ...]) -> None:
        """Take down a read, under loops, of a statement that is needed under `need`, with its factor in the derivative."""
        if not self.asked or read.operand in self.everywhere:
            return
        condition = scalar.conjunction(need, support(factor))
        if condition == TRUE and read.operand not in self.counted:
            self.everywhere.add(read.operand)
            return
        self.chosen.setdefault(read.operand, []).append(ChosenRead(read, inside, condition, target))


def carried(op: Op) -> set[str]:
    """Return the targets in recurrences that a statement reads which does not stand below theirs."""
    circles, found, assigned = recurrent(op), set[str](), set[str]()
    for s in op.body:
        found |= (operands_read(s.value) & circles) - assigned
        assigned.add(s.target)
    return found


def chosen_alone(op: Op) -> frozenset[str]:
    """Return the temporaries that outputs need on sides of conditionals alone: a call may ask for none of their values."""
    asked = {o.name for o in op.outputs}
    waiting = list(asked)

    def visit(e: Expr) -> None:
        if isinstance(e, Read) and e.operand not in asked:
            asked.add(e.operand)
            waiting.append(e.operand)
        for part, conditions in scalar.conditioned(e):
            if not conditions:
                visit(part)

    while waiting:
        s = op.assignments.get(waiting.pop())
        if s is not None:
            visit(s.value)
    return frozenset(o.name for o in op.temporaries if o.name not in asked)


def guarded(part: Expr, need: Expr) -> Expr:
    """Return a part of a gradient as nothing where it is not needed, as far as it may be infinite there.

    What it chooses between is guarded by itself: a side that may not be infinite stays a product, which a sum may move out of.
    """
    if need == TRUE or not any(is_steep(e) for e in walk(part)):
        return part
    if isinstance(part, Select):
        return scalar.select(part.cond, guarded(part.then, need), guarded(part.other, need))
    return scalar.select(need, part, ZERO)


def support(e: Expr) -> Expr:
    """Return the condition under which `e` is chosen to be something: elsewhere it is the literal zero."""
    match e:
        case _ if scalar.is_zero(e):
            return FALSE
        case Select():
            then, other = support(e.then), support(e.other)
            return either(_both(e.cond, then), _both(scalar.negation(e.cond), other))
        case Call(fn="add" | "sub", args=(a, b)):
            return either(support(a), support(b))
        case Call(fn="mul", args=(a, b)):
            return _both(support(a), support(b))
        case Call(fn="div" | "neg", args=args):
            return support(args[0])
        case Cast():
            return support(e.arg)
        case _:
            return TRUE


def _both(a: Expr, b: Expr) -> Expr:
    """Return `a and b`, of which nothing is left to ask where one never holds: that a call is refused is for the value itself."""
    return FALSE if FALSE in (a, b) else scalar.conjunction(a, b)


def either(a: Expr, b: Expr) -> Expr:
    """Return `a or b`."""
    if a == TRUE or b == TRUE or a == scalar.negation(b):
        return TRUE
    if a in (FALSE, b):
        return b
    if b == FALSE:
        return a
    first, second = conjuncts(a), conjuncts(b)
    if all(c in second for c in first):
        return a
    if all(c in first for c in second):
        return b
    return _factored(a, b) or scalar.raw("or", a, b)


def _factored(a: Expr, b: Expr) -> Expr | None:
    """Return `c` for `c and d or c and not d`."""
    first, second = conjuncts(a), conjuncts(b)
    mine, theirs = [c for c in first if c not in second], [c for c in second if c not in first]
    if len(mine) == len(theirs) == 1 and mine[0] == scalar.negation(theirs[0]):
        found: Expr = TRUE
        for c in first:
            found = found if c is mine[0] else scalar.conjunction(found, c)
        return found
    return None


def _condition(total: Expr) -> Expr | None:
    """Return the condition under which a count is more than nothing, where that is short and asks no loop."""
    if any(isinstance(e, Reduce) for e in walk(total)):
        return None
    condition = support(total)
    return condition if size(condition) <= SMALL else None
