"""Expressions of a row stage as C++."""

from __future__ import annotations

from collections.abc import Mapping

from opc.emit.c_expr import ExprText, Text, c_compute, presences
from opc.ir.dtypes import ValueType, is_floating
from opc.ir.expr import Call, Const, Expr, Read, Select, reads


class RowExprText(ExprText):
    """Expressions of a row stage; those of a loop along the row blend by conditions that are the same all along it.

    As a choice, such a condition is a branch to the compiler, which moves loads under it and then leaves the loop scalar.
    """

    varying: frozenset[str] | None = None
    """What varies along the row, in a loop along it."""

    maxima: Mapping[str, Expr] = {}
    """The values of the row that are the maximum of an expression along it."""

    def expr(self, e: Expr) -> Text:
        """Return `e` in its own type."""
        if isinstance(e, Call) and e.fn == "exp" and is_floating(e.type) and never_positive(e.args[0], self.maxima):
            # What can't overflow needs no test of it.
            of = super().expr(e)
            return Text(of.text.replace("opc::exp(", "opc::exp_below(", 1), of.strength, of.type)
        if not isinstance(e, Select) or not self._blends(e, e.type):
            return super().expr(e)
        cond, other = super().expr(e.cond), self.convert(e.other, e.type)
        before, self.given = self.given, self.given | presences(e.cond)
        then = self.convert(e.then, e.type)
        self.given = before
        kind = c_compute(e.type)
        return Text(f"opc::blend<{kind}>({cond.text}, {then.text}, {other.text})", 8, e.type)

    def _blends(self, e: Select, of: ValueType) -> bool:
        """Whether the condition is one of the row, and both sides may be computed: all they load are floating values."""
        if self.varying is None or not is_floating(of) or any(r.operand in self.varying for r in reads(e.cond)):
            return False
        loaded = [r for side in (e.then, e.other) for r in reads(side) if r.operand in self.varying]
        return bool(loaded) and all(is_floating(r.type) for r in loaded)


def never_positive(e: Expr, maxima: Mapping[str, Expr]) -> bool:
    """Whether a floating value is never above 0, by its form alone: `maxima` are values that are maxima of expressions.

    A value less the maximum of such values is not, nor is the negative of a size or of a square; rounding keeps the order.
    """
    match e:
        case Call(fn="sub", args=(a, Read(operand=name))):
            return maxima.get(name) == a
        case Call(fn="neg", args=(a,)):
            return _never_negative(a)
        case Call(fn="minimum", args=args):
            return any(never_positive(a, maxima) for a in args)
        case Const(value=value):
            return value <= 0
        case _:
            return False


def _never_negative(e: Expr) -> bool:
    match e:
        case Call(fn="abs" | "exp"):
            return True
        case Call(fn="mul", args=(a, b)):
            return a == b or (_never_negative(a) and _never_negative(b))
        case Call(fn="pow", args=(_, Const(value=power))):
            return power == 2
        case Const(value=value):
            return value >= 0
        case _:
            return False
