"""How wide integers are computed: a narrow operand beside a dimension, an index, an attribute or a literal that it does not hold.

Such values are whole numbers of 64 bits, and so is what they are combined with. A value that is int64 for that reason alone still
goes into an operand of its own narrower type, where integers wrap.
"""

from __future__ import annotations

from opc.ir.dtypes import ElementType, ValueType, Weak, candidates, is_bool
from opc.ir.expr import Const, Expr, Read, Select
from opc.ir.rules import common_type, converted, needs_width, wide, wide_type


class Widths:
    """Remembers of one body's expressions which types they have before anything widens them."""

    def __init__(self) -> None:
        # By identity: equal expressions may be written with a conversion, which is meant, and without.
        self._own: dict[int, tuple[Expr, ValueType]] = {}
        self._temporaries: dict[str, ValueType] = {}
        self._whole: dict[int, Expr] = {}

    def own(self, e: Expr) -> ValueType:
        """Return the type of a value as if every whole number in it had fitted."""
        if isinstance(e, Read) and e.operand in self._temporaries:
            return self._temporaries[e.operand]
        return self._own[id(e)][1] if id(e) in self._own else e.type

    def remember(self, e: Expr, own: ValueType | None) -> Expr:
        """Return `e`, whose own type this is."""
        if own is not None and own != e.type:
            self._own[id(e)] = (e, own)
        return e

    def remember_temporary(self, name: str, value: Expr) -> None:
        """Give a temporary the own type of its value."""
        if self.own(value) != value.type:
            self._temporaries[name] = self.own(value)

    def common(self, args: tuple[Expr, ...]) -> ValueType | None:
        """Return the own type of values together; None where they do not mix."""
        return common_type(tuple(self.own(a) for a in args))

    def folded(self, e: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
        """Return what arithmetic on `args` comes to. Sizes that cancel leave a number, which is no literal: it has 64 bits."""
        if isinstance(e, Const) and not all(isinstance(a, Const) and id(a) not in self._whole for a in args):
            self._whole[id(e)] = e
        return e

    def meet(self, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return values that are combined, converted where one of them is or needs to be wider than their own types."""
        own = self.common(args)
        if own is None or isinstance(own, Weak):
            return args
        wider = any(self.own(a) != a.type and a.type != own for a in args)
        whole = any(id(a) in self._whole for a in args) and wide_type(own) != own and not is_bool(own)
        if not wider and not whole and not needs_width(args, own):
            return args
        return wide(args, own)

    def stored(self, value: Expr, t: ElementType) -> Expr:
        """Return a value as it is stored in type `t`, which its own type mixes with."""
        weak = value.type is Weak.INT and needs_width((value,), t)
        own = self.own(value) != value.type and common_type((value.type, t)) is None
        return converted(value, t) if weak or own else value


def misfit(value: Expr, t: ElementType) -> tuple[Const, str] | None:
    """Return a literal that `value` is or chooses, and the integer type among those of `t` that does not hold it."""
    match value:
        case Select(then=then, other=other):
            return misfit(then, t) or misfit(other, t)
        case Const(value=int() as number, type=Weak.INT):
            wrong = next((d for d in candidates(t) if d.is_integer and not d.holds(number)), None)
            return None if wrong is None else (value, str(wrong))
        case _:
            return None
