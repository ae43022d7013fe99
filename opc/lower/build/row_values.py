"""Expressions of a row stage as values of the loop IR: facts about values, and choices that a vector loop computes both sides of.

A condition that is the same all along the row is a branch to the compiler, which moves loads under it and then leaves the loop
scalar: such a choice is a blend by bits. Where it varies, some compilers move loads there too, and mask them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from opc.analysis.value_types import presence
from opc.ir.dtypes import is_floating
from opc.ir.expr import Call, Const, Expr, Present, Read, Select, children, reads, with_children
from opc.ir.op import Op
from opc.loops.values import As, Local, call
from opc.lower.loop_ir import RowAccumulate
from opc.records import dataclass, replace


@dataclass(slots=True)
class Facts:
    """What is known of the values of a row.

    `maxima` are those that are the maximum of an expression along it, `kept` the values of each point that are kept;
    `exponential_sums` are sums of exponentials of what is never positive and once 0, which are at least 1.
    """

    maxima: dict[str, Expr] = field(default_factory=dict)
    kept: dict[str, Expr] = field(default_factory=dict)
    exponential_sums: set[str] = field(default_factory=set)

    def learn(self, f: RowAccumulate) -> None:
        """Take in what is known of the result of a reduction along the row."""
        value = self.exponential(f.value)
        if f.kind == "max":
            self.maxima[f.name] = f.value
        elif f.kind == "sum" and value is not None and _below_maximum(value.args[0], self.maxima):
            self.exponential_sums.add(f.name)

    def divisor(self, e: Expr) -> str | None:
        """Return the sum of exponentials by which an exponential is divided; None where that is not so.

        A product with the inverse of the sum is quicker. Since the sum is at least 1, it neither overflows nor loses small
        values, and its error, 1.5 ulp, takes no more than exp leaves of the error that the table of functions gives it.
        """
        match e:
            case Call(fn="div", args=(a, Read(operand=name))) if (
                name in self.exponential_sums and self.exponential(a) is not None
            ):
                return name
            case _:
                return None

    def exponential(self, e: Expr) -> Call | None:
        """Return a value as an exponential of a call, None where it is none."""
        value = self.kept.get(e.operand) if isinstance(e, Read) else e
        return value if isinstance(value, Call) and value.fn == "exp" and isinstance(value.args[0], Call) else None


class RowValues:
    """Turns expressions over operands and values of a row into values of the loop IR.

    `values` are the variables that stand for them; `varying` those that vary along the row, in a loop along it, else None. What
    runs on vectors computes both sides of a choice.
    """

    def __init__(self, op: Op, along_row: frozenset[str], facts: Facts, vectors: bool) -> None:
        self.op, self.along_row, self.facts, self.vectors = op, along_row, facts, vectors
        self.values: dict[str, Local] = {}
        self.inverses: Mapping[str, str] = {}
        self.varying: frozenset[str] | None = None
        self.given: frozenset[str] = frozenset()

    def value(self, e: Expr) -> Expr:
        """Return an expression as a value."""
        match e:
            case Read():
                return self._read(e)
            case Select():
                return self._choice(e)
            case Call(fn="and" | "or" as fn, args=(a, b)):
                first, before = self.value(a), self.given
                self.given = before | presence(a, fn == "and")
                second = self.value(b)
                self.given = before
                return with_children(e, (first, second))
            case Call(fn="exp") if is_floating(e.type) and never_positive(e.args[0], self.facts.maxima):
                # What can't overflow needs no test of it.
                return call("exp_below", As(self.value(e.args[0]), e.type), type=e.type)
            case Call(fn="div") if (name := self.facts.divisor(e)) in self.inverses:
                args = (As(self.value(a), e.type) for a in e.args)
                return call("quotient", *args, Local(self.inverses[str(name)], e.type), type=e.type)
            case _:
                return with_children(e, tuple(self.value(c) for c in children(e)))

    def _choice(self, e: Select) -> Expr:
        cond, before = self.value(e.cond), self.given
        self.given = before | presence(e.cond, False)
        other = self.value(e.other)
        self.given = before | presence(e.cond, True)
        then = self.value(e.then)
        self.given = before
        function = self._blended(e)
        if function is None:
            return replace(e, cond=cond, then=then, other=other)
        return call(function, cond, As(then, e.type), As(other, e.type), type=e.type, types=(e.type,))

    def _read(self, e: Read) -> Expr:
        value = self.values[e.operand]
        optional = any(i.name == e.operand and i.optional for i in self.op.inputs)
        if not optional or not self.vectors or e.operand in self.given or e.operand not in self.along_row:
            return value
        # A value computed ahead of the choice that asks for the operand: where it is absent, the value is not used.
        if is_floating(value.type):
            return call("blend", Present(e.operand), value, Const(0, value.type), type=value.type, types=(value.type,))
        return Select(Present(e.operand), value, Const(0, value.type), value.type)

    def _blended(self, e: Select) -> str | None:
        """Return the function that chooses; None where only one side may be computed: where one loads what is not floating."""
        if self.varying is None or not self.vectors or not is_floating(e.type):
            return None
        loaded = [r for side in (e.then, e.other) for r in reads(side) if r.operand in self.varying]
        if not loaded or not all(is_floating(r.type) for r in loaded):
            return None
        return "choose" if any(r.operand in self.varying for r in reads(e.cond)) else "blend"


def never_positive(e: Expr, maxima: Mapping[str, Expr]) -> bool:
    """Whether a floating value is never above 0, by its form alone: `maxima` are values that are maxima of expressions.

    A value less the maximum of such values is not, nor is the negative of a size or of a square; rounding keeps the order.
    """
    match e:
        case Call(fn="sub"):
            return _below_maximum(e, maxima)
        case Call(fn="neg", args=(a,)):
            return _never_negative(a)
        case Call(fn="minimum", args=args):
            return any(never_positive(a, maxima) for a in args)
        case Const(value=value):
            return value <= 0
        case _:
            return False


def _below_maximum(e: Expr, maxima: Mapping[str, Expr]) -> bool:
    """Whether this is a value less its maximum along the row, which is 0 at one point at least."""
    match e:
        case Call(fn="sub", args=(a, Read(operand=name))):
            return maxima.get(name) == a
        case _:
            return False


def _never_negative(e: Expr) -> bool:
    match e:
        case Call(fn="abs" | "exp"):
            return True
        case Call(fn="mul", args=(Call(fn="mul", args=(c, a)), b)) if a == b:
            return _never_negative(c)
        case Call(fn="mul", args=(a, b)):
            return a == b or (_never_negative(a) and _never_negative(b))
        case Call(fn="pow", args=(_, Const(value=power))):
            return power == 2
        case Const(value=value):
            return value >= 0
        case _:
            return False
