"""How strongly the operators of a language bind, and what that asks of their operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opc.records import dataclass

CONDITIONAL = 0
"""The strength of a conditional, which binds weaker than every operator."""
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


@dataclass(frozen=True, slots=True)
class Precedence:
    """The strengths of a language's operators, by their names in the function table, and which of them do not group to the left.

    Comparisons that are `chained` mean something else side by side, so both operands bind stronger; `right` operators group to
    the right, and of those that are `both` it does not matter. Operands of those that stand `apart` are in parentheses, unless
    they have no operator but a sign.
    """

    strength: Mapping[str, int]
    chained: Collection[str] = ()
    right: Collection[str] = ()
    both: Collection[str] = ()
    apart: Collection[str] = ()

    @classmethod
    def of(cls, *levels: tuple[str, ...], **others: Collection[str]) -> Precedence:
        """Return the precedence of operators given by levels, the weakest first."""
        return cls({fn: n for n, level in enumerate(levels, CONDITIONAL + 1) for fn in level}, **others)

    @property
    def atom(self) -> int:
        """The strength of what never needs parentheses."""
        return max(self.strength.values()) + 1

    def sides(self, fn: str) -> tuple[int, int]:
        """Return how strongly the left and the right operand of a binary operator must bind."""
        own = self.strength[fn]
        if fn in self.apart:
            return self.strength["neg"], self.strength["neg"]
        if fn in self.both:
            return own, own
        return own + (fn in self.chained or fn in self.right), own + (fn not in self.right)


_SUMS = ("add", "sub")
_BITS = ("bit_or", "bit_xor", "bit_and")
PYTHON = Precedence.of(
    ("or",), ("and",), ("not",), COMPARISONS, ("bit_or",), ("bit_xor",), ("bit_and",), ("shift_left", "shift_right"), _SUMS,
    ("mul", "div", "floordiv", "mod"), ("neg", "bit_not"), ("pow",), chained=COMPARISONS, right=("pow",),
)  # fmt: skip
"""Python's grammar, and that of bodies."""
NUMPY = Precedence.of(
    COMPARISONS, ("or", "bit_or"), ("bit_xor",), ("and", "bit_and"), _SUMS, ("mul", "div"), ("neg", "not", "bit_not"),
    chained=COMPARISONS, both=("and", "or"),
)  # fmt: skip
"""Python's grammar with the bitwise operators that NumPy has for bools."""
CPP = Precedence.of(
    ("or",), ("and",), ("bit_or",), ("bit_xor",), ("bit_and",), ("eq", "ne"), ("lt", "le", "gt", "ge"), _SUMS, ("mul", "div"),
    ("neg", "not", "bit_not"), apart=_BITS,
)  # fmt: skip
"""The grammar of C++. Compilers warn of an operator of bits whose operand has another operator without parentheses."""
