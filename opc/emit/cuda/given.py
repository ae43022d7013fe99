"""Values that kernels are given: what a call computes of its attributes and sizes alone is computed by the host, once.

Attributes are computed with in double precision until they meet an element. Each thread would do that again, on units that most
GPUs have few of.
"""

from __future__ import annotations

from opc.emit.cpp.expressions import ExprText
from opc.emit.cpp.scalars import CppScalarText
from opc.ir.affine import Affine, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Select, StrConst, children
from opc.ir.op import AttributeKind, Op

_LEAVES = (AttrRef, Const, StrConst)

_WHOLE = frozenset(("add", "sub", "mul", "neg", "abs", "sign", "min", "max"))
"""What whole numbers are computed by that have an answer for all of them."""


def is_given(e: Expr) -> bool:
    """Whether a value is computed of attributes and sizes alone in double precision, or is a comparison of such ones.

    A plain attribute or number is none. Nor is what divides whole numbers by any but a literal: a condition may keep a call from
    that, and the host computes all.
    """
    if e.type is Weak.FLOAT:
        return isinstance(e, Call | Select | Cast) and _is_of_call(e)
    return e.type is DType.BOOL and isinstance(e, Call) and any(map(_has_floats, e.args)) and _is_of_call(e)


def _has_floats(e: Expr) -> bool:
    return e.type is Weak.FLOAT or any(map(_has_floats, children(e)))


def _is_of_call(e: Expr) -> bool:
    match e:
        case IndexValue(value=value):
            return _is_plain(value)
        case Call():
            return (e.type in (Weak.FLOAT, DType.BOOL) or (e.type is Weak.INT and e.fn in _WHOLE)) and all(map(_is_of_call, e.args))
        case Select() | Cast():
            return e.type in (Weak.FLOAT, Weak.INT, DType.BOOL) and all(map(_is_of_call, children(e)))
        case _:
            return isinstance(e, _LEAVES)


def _is_plain(value: Affine) -> bool:
    """Whether an integer is made of sizes and attributes, and of what is divided by literals."""
    for monomial, _ in value.terms:
        for atom in monomial:
            match atom:
                case Dim() | GroupSize() | AttrInt():
                    pass
                case FloorDiv() | Mod():
                    if not atom.denominator.constant or not _is_plain(atom.numerator):
                        return False
                case Minimum():
                    if not (_is_plain(atom.left) and _is_plain(atom.right)):
                        return False
                case _:
                    return False
    return True


class GivenText(ExprText):
    """Writes such values where an op's function starts its kernels."""

    def __init__(self, op: Op, scalar: CppScalarText) -> None:
        super().__init__(op)
        self.scalar = scalar

    def attribute(self, name: str, element: int, target: str) -> str:
        """As `ExprText.attribute` says."""
        place = f"attributes->{name}" + ("" if element < 0 else f"[{element}]")
        declared = self.op.attribute(name)
        is_text = declared.kind is AttributeKind.STR and not declared.values
        return place if is_text else f"{target or 'int64_t'}({place})"

    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """As `ExprText.symbol` says."""
        assert not isinstance(symbol, Index), "what is given is the same at all points"
        return self.scalar.number(Affine.of(symbol))

    def present(self, operand: str) -> str:
        """As `ExprText.present` says."""
        return f"(inputs[{[i.name for i in self.op.inputs].index(operand)}] != nullptr)"
