"""What a row of the function table says: the columns, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from opc.records import dataclass

Interval = tuple[float, float]
REALS: Interval = (-math.inf, math.inf)
SAMPLES: Interval = (-4.0, 4.0)

FREE, CHEAP, MODERATE, DEAR = range(4)
"""What a call costs: nothing (it is part of another instruction), an instruction, a division or root, more than a load."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator: what it is called, computes, costs and differentiates to on every target.

    Texts are over the arguments `{0}` and `{1}`. An operator's text gets them in parentheses where they need these; any other
    puts them in parentheses or calls itself, and binds as strongly as a call.
    """

    name: str
    arity: int
    types: str
    """"float" (floating arguments and result), "number" (floating or integer, result as the arguments), "integer" (integers,
    result as the arguments), "compare" (two numbers or bools, result bool), "logic" (bools, result bool) or "test" (floating
    argument, result bool)."""
    mp: str
    """The exact value, as an expression with mpmath as `mp`, NaN at poles; of integers one of Python's, before it wraps."""
    c: str
    """C++ expression over what `runtime/include/opc/core/math.h` includes, in namespace opc. CUDA uses the same."""
    numpy: str
    """NumPy expression with NumPy as `np`; what has no prefix lives in `opc.emit.numpy.helpers` or `opc.ir.scalar_functions`."""
    python: str
    """Expression of Python's own numbers; what has no prefix lives in `opc.ir.scalar_functions`."""
    onnx: str | None
    """Nested calls of standard ONNX operators over `x`, `y` and numbers, which have the type of `x`; lines `name = call` before
    it name what is used again.
    `Polynomial(x, c0, c1, ...)` is evaluated by Horner's rule. None where no operators are right to the last digits."""
    derivative: tuple[str, ...] | None
    """One text an argument, in the body language over the arguments `x`, `y` and the result `r`; "0" where the derivative is zero
    almost everywhere; None for functions whose result is bool, and where nothing is known."""
    ulp: float = 0.5
    """Bound on the error of the C++ text, in units in the last place of the result, over the whole domain."""
    absolute: float = 0.0
    """What the error may be beside that, in units in the last place of 1: near zeros of functions that have many."""
    exact: bool = False
    """Whether the result is never rounded."""
    numpy_ulp: float = 4.0
    """The same bound of the NumPy text, in units in the last place of the type that it is given, long double too."""
    numpy_in_double: bool = False
    """Whether the NumPy text computes in double whatever it is given; `numpy_ulp` is then in units of double."""
    domain: Interval = REALS
    """The closed interval in which a function of one argument has values; beyond, it is NaN."""
    samples: tuple[Interval, ...] = (SAMPLES,)
    """Per argument the interval samples are drawn from for the table's own test."""
    steady: Interval | None = None
    """An interval in which the function is monotone in each argument between its `turns`. What is not in there is
    enclosed by the derivative: the mean value form (Moore, Kearfott, Cloud, Introduction to Interval Analysis, 2009, 6.4)."""
    turns: tuple[float, ...] = ()
    """Where in `steady` the function turns or jumps, a minimum for example."""
    poles: str | None = None
    """NumPy expression that grows by 1 at each pole and is constant between: a set across one is enclosed by `range`."""
    range: Interval = REALS
    """What no result leaves."""
    finite: bool = True
    """Whether every finite argument has a finite result, but for overflow at the very end."""
    smooth: bool = False
    """Whether all derivatives at every finite argument are finite, but for overflow."""
    cost: int = DEAR
    """FREE, CHEAP, MODERATE or DEAR."""
    symbol: str | None = None
    """How the printer and the body language write an operator; None for a call."""
    whole: bool = False
    """Whether a function of floating arguments takes integers too, whose result is an integer: by the C++ text, and in other ways
    than by the texts of NumPy and ONNX."""
    hidden: bool = False
    """Whether only derivatives call it: bodies can't."""
    onnx_of: Mapping[str, str] = field(default_factory=dict)
    """The ONNX text for arguments that are "bool", "integer", "nonzero" integers in the second place, or may be "unsigned", where
    it is another."""

    def onnx_texts(self) -> Mapping[str, str]:
        """Return every ONNX text by a name for it: the function's, with the kind of arguments behind where it is of one kind."""
        own = {} if self.onnx is None else {self.name: self.onnx}
        return own | {f"{self.name}_{kind}": text for kind, text in self.onnx_of.items()}
