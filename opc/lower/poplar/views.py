"""Where the axes of a tensor lie among the loops of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, ElementType, ValueType, Weak, is_bool, is_floating
from opc.ir.expr import Call, Cast, Expr, Reduce, children, reads, walk
from opc.ir.op import Op
from opc.lower.build.context import UnsupportedForm
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, joint
from opc.lower.poplar.nodes import Along
from opc.lower.rows.flatten import operand_loops

FUNCTIONS = frozenset((
    "add", "sub", "mul", "div", "floordiv", "mod", "pow", "neg", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
    "maximum", "minimum", "abs", "sign", "sqrt", "rsqrt", "cbrt", "hypot", "exp", "expm1", "exp2", "log", "log1p", "log2",
    "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "sigmoid", "floor", "ceil", "trunc", "round", "stop_gradient", "isnan", "isinf",
))  # fmt: skip
"""The functions that expressions have, by popops or made of what it has; all others are left to codelets."""


_WRAPPING = frozenset(("add", "sub", "mul", "neg"))
"""What is the same modulo 2^32 whatever stands beyond these bits."""


def check_value(e: Expr) -> None:
    """Refuse a value that expressions on tensors can't compute.

    Raises:
        UnsupportedForm: when there is something of the kind.
    """
    for n in walk(e):
        if isinstance(n, Reduce):
            raise UnsupportedForm("it holds a reduction")
        if isinstance(n, Call) and n.fn not in FUNCTIONS:
            raise UnsupportedForm(f"popops has no {n.fn}")
        if isinstance(n, Call) and n.fn == "pow" and not is_floating(n.type):
            raise UnsupportedForm("popops has no power of whole numbers")
        if _needs_all_bits(n) and any(_may_exceed(c) for c in children(n)):
            raise UnsupportedForm("a whole number of more than 32 bits counts")


def _needs_all_bits(e: Expr) -> bool:
    """Whether the value hangs on more of a whole number than its last 32 bits."""
    if isinstance(e, Cast):
        return is_floating(e.type) or is_bool(e.type)
    return isinstance(e, Call) and e.fn not in _WRAPPING


def _may_exceed(e: Expr) -> bool:
    """Whether a value is an int64 made of data that may need more than 32 bits: expressions compute it in 32."""
    wide = e.type in (DType.INT64, Weak.INT)
    return wide and isinstance(e, Call) and e.fn in _WRAPPING and bool(reads(e))


def declared_loops(op: Op, name: str, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Return the loops of an operand's own axes; `loops` are those of a temporary that no statement of the op is for."""
    return operand_loops(op, name) if any(o.name == name for o in op.operands) else loops


def along(own: Iterable[Loop], loops: Sequence[Loop]) -> tuple[Along, ...]:
    """Return where axes lie in a stage, each along the loop that it is or is broadcast along."""
    found = []
    for loop in own:
        whole = loop if loop in loops else joint(loop)
        if whole not in loops:
            raise UnsupportedForm(f"{loop} is no loop of the stage")
        at = loops.index(whole)
        found.append(Along(at) if whole == loop else Along(at, _sizes(loop)))
    return tuple(found)


def _sizes(loop: Loop) -> GroupLoop | Affine:
    return loop.extent if isinstance(loop, IndexLoop) else loop


def element_type(t: ValueType) -> ElementType:
    """Return the type that a tensor of values is stored in: of numbers without a type, one that has them."""
    return {Weak.INT: DType.INT64, Weak.FLOAT: DType.FLOAT32}[t] if isinstance(t, Weak) else t


def multiplies(t: ValueType) -> bool:
    """Whether matrix products are taken of a type: a floating one in all that it may stand for."""
    return not isinstance(t, Weak) and is_floating(t)
