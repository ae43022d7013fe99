"""Values that kernels are given: what a call computes of its attributes and sizes alone is computed by the host, once.

Attributes are computed with in double precision until they meet an element. Each thread would do that again, on units that most
GPUs have few of.
"""

from __future__ import annotations

from opc.emit.cpp.expressions import ExprText
from opc.emit.cpp.scalars import CppScalarText
from opc.ir.affine import Affine, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import CHOICE, AttrRef, Call, Cast, Const, Expr, IndexValue, Select, StrConst, children, traits
from opc.ir.op import AttributeKind, Op
from opc.records import replace

_LEAVES = (AttrRef, Const, StrConst)

_WHOLE = frozenset(("add", "sub", "mul", "neg", "abs", "sign", "minimum", "maximum"))
"""What whole numbers are computed by that have an answer for all of them."""

_MOST_CHOICES = 8


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
            return (e.type in (Weak.FLOAT, DType.BOOL) or (e.type is Weak.INT and e.fn in _WHOLE)) and all(
                map(_is_of_call, e.args)
            )
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


def chosen(e: Expr, wanted: ValueType) -> Select | None:
    """Return a value in double precision that differs from point to point by conditions alone, such as a sign times an attribute,
    as a choice of type `wanted` among values that are given. None of any other, and where there are many to choose from.
    """
    if e.type is not Weak.FLOAT or is_given(e) or not traits(e) & CHOICE:
        return None
    found = _spread(e)
    return _typed(found, wanted) if isinstance(found, Select) and _count(found) <= _MOST_CHOICES else None


def _spread(e: Expr) -> Expr | None:
    """Return a value with conditionals outermost, whose sides are the same at all points."""
    if _is_of_call(e):
        return e
    match e:
        case Select() if isinstance(e.type, Weak):
            then, other = _spread(e.then), _spread(e.other)
            return None if then is None or other is None else replace(e, then=then, other=other)
        case Call() if e.type is Weak.FLOAT or (e.type is Weak.INT and e.fn in _WHOLE):
            args = [a for a in map(_spread, e.args) if a is not None]
            if len(args) < len(e.args):
                return None
            n, choice = next((n, a) for n, a in enumerate(args) if isinstance(a, Select) and not _is_of_call(a))
            then, other = (_spread(replace(e, args=(*args[:n], side, *args[n + 1 :]))) for side in (choice.then, choice.other))
            return None if then is None or other is None else Select(choice.cond, then, other, e.type, e.span)
        case _:
            return None


def _count(e: Expr) -> int:
    return _count(e.then) + _count(e.other) if isinstance(e, Select) and not _is_of_call(e) else 1


def _typed(e: Select, wanted: ValueType) -> Select:
    then, other = (_typed(s, wanted) if isinstance(s, Select) and not _is_of_call(s) else s for s in (e.then, e.other))
    return replace(e, then=then, other=other, type=wanted)


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
