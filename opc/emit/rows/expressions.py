"""Expressions of a row stage as C++."""

from __future__ import annotations

from collections.abc import Mapping

from opc.emit.cpp.expressions import ExprText, Text, c_compute, presences
from opc.ir.dtypes import is_floating
from opc.ir.expr import Call, Const, Expr, Read, Select, reads
from opc.lower.loop_ir import Fold


class RowExprText(ExprText):
    """Expressions of a row stage; those of a loop along the row compute both sides of a choice.

    A condition that is the same all along the row is a branch to the compiler, which moves loads under it and then leaves the
    loop scalar: such a choice is a blend by bits. Where it varies, clang++ moves them there too, and masks them.
    """

    varying: frozenset[str] | None = None
    """What varies along the row, in a loop along it."""

    maxima: Mapping[str, Expr] = {}
    """The values of the row that are the maximum of an expression along it."""

    kept: Mapping[str, Expr] = {}
    """The values of each point of the row that are kept."""

    exponential_sums: frozenset[str] = frozenset()
    """The values of the row that are sums of exponentials of what is never positive and once 0: they are at least 1."""

    inverses: Mapping[str, str] = {}
    """The C++ names of the inverses of such sums, in a loop along the row."""

    def expr(self, e: Expr) -> Text:
        """Return `e` in its own type."""
        if isinstance(e, Call) and e.fn == "exp" and is_floating(e.type) and never_positive(e.args[0], self.maxima):
            # What can't overflow needs no test of it.
            of = super().expr(e)
            return Text(of.text.replace("opc::exp(", "opc::exp_below(", 1), of.strength, of.type)
        divisor = self.inverted(e)
        if divisor is not None and divisor in self.inverses and isinstance(e, Call):
            args = ", ".join(self.convert(a, e.type).text for a in e.args)
            return Text(f"opc::quotient({args}, {self.inverses[divisor]})", 8, e.type)
        function = self._choice(e) if isinstance(e, Select) else None
        if not isinstance(e, Select) or function is None:
            return super().expr(e)
        cond, other = super().expr(e.cond), self.convert(e.other, e.type)
        before, self.given = self.given, self.given | presences(e.cond)
        then = self.convert(e.then, e.type)
        self.given = before
        kind = c_compute(e.type)
        return Text(f"opc::{function}<{kind}>({cond.text}, {then.text}, {other.text})", 8, e.type)

    def learn(self, f: Fold) -> None:
        """Take in what a reduction along the row tells."""
        value = self._exponential(f.value)
        if f.kind == "max":
            self.maxima = {**self.maxima, f.name: f.value}
        elif f.kind == "sum" and value is not None and _below_maximum(value.args[0], self.maxima):
            self.exponential_sums |= {f.name}

    def inverted(self, e: Expr) -> str | None:
        """Return the sum of exponentials by which an exponential is divided; None where that is not so.

        A product with the inverse of the sum is quicker. Since the sum is at least 1, it neither overflows nor loses small
        values, and its error, 1.5 ulp, takes no more than exp leaves of the error that the table of functions gives it.
        """
        match e:
            case Call(fn="div", args=(a, Read(operand=name))) if (
                name in self.exponential_sums and self._exponential(a) is not None
            ):
                return name
            case _:
                return None

    def _exponential(self, e: Expr) -> Call | None:
        value = self.kept.get(e.operand) if isinstance(e, Read) else e
        return value if isinstance(value, Call) and value.fn == "exp" and isinstance(value.args[0], Call) else None

    def _choice(self, e: Select) -> str | None:
        """Return the function that chooses; None where only one side may be computed: where one loads what is not floating."""
        if self.varying is None or not is_floating(e.type):
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
