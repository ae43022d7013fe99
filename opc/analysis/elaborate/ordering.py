"""The stable order of an axis: `argsort[k](x[..., k])[i]` as what `opc.ir.ordering` makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opc.diagnostics import Span
from opc.ir.affine import Affine
from opc.ir.dtypes import is_bool
from opc.ir.expr import AttrRef, Axis, Const, Expr, GroupRef, IndexValue, Read, Select, free_groups, free_indices, walk
from opc.ir.ordering import ahead, position_of
from opc.lang.tree import ORDER, AxisRange, Dots, Item, Name, ReductionCall, Star, Subscript

if TYPE_CHECKING:
    from opc.analysis.elaborate.expression import ExpressionTyper

_FORM = f"write p[..., i] = {ORDER}[k](x[..., k])[i]"


class OrderTyper:
    """The part of `ExpressionTyper` that knows how an axis is ordered."""

    def __init__(self, typer: ExpressionTyper) -> None:
        self.typer = typer
        self.scope = typer.scope

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.typer.found.error(message, span, hint)

    def subscript(self, tree: Subscript, call: ReductionCall) -> Expr | None:
        """Return the position at a place of the order; None, recorded, where something is wrong with it."""
        if tree is not self.typer.whole:
            hint = f"write p[..., i] = {ORDER}[k](...)[i], and read p[..., i] here"
            self._error(f"{ORDER} is the whole right side of a statement", tree.span, hint)
        place = self._place(tree)
        extents: dict[str, Affine | None] = {}
        axis = self._axis(call, extents)
        with self.scope.indices(extents, set()):
            key = self.typer.value(call.body)
        descending = None if call.descending is None else self._descending(call.descending)
        if tree is not self.typer.whole or place is None or axis is None or key is None:
            return None
        if call.descending is not None and descending is None:
            return None
        if not self._is_key(key, axis.index):
            hint = f"give it a statement: t[..., k] = ..., and {ORDER}[k](t[..., k])[i]"
            self._error(f"{ORDER} orders the elements of one operand along '{axis.index}'", call.body.span, hint)
            return None
        assert isinstance(key, Read), "a key is read"
        other = self._other(axis.index)
        up, down = (ahead(key, axis.index, other, turned) for turned in (False, True))
        match descending:
            case None | Const(value=False):
                condition = up
            case Const():
                condition = down
            case _:
                condition = Select(descending, down, up, up.type, tree.span)
        return position_of(IndexValue(place, tree.span), condition, axis, Axis(other, axis.extent), tree.span)

    def call(self, tree: ReductionCall) -> None:
        """Record that the order of an axis is no value as a whole."""
        self._error(f"{ORDER}[...] lacks the place that is asked for", tree.span, _FORM)

    def _place(self, tree: Subscript) -> Affine | None:
        item = tree.items[0] if len(tree.items) == 1 else None
        if item is None or isinstance(item, Dots | Star | AxisRange):
            self._error(f"{ORDER} has one index, a place in the order", tree.span, _FORM)
            return None
        return self.typer.index(item, f"a place of {ORDER}", lambda e: None)

    def _axis(self, call: ReductionCall, extents: dict[str, Affine | None]) -> Axis | None:
        if len(call.axes) != 1 or not isinstance(call.axes[0], Name | AxisRange):
            self._error(f"{ORDER} orders one axis, which has a name", call.span, _FORM)
            for item in call.axes:
                self._forget(item, extents)
            return None
        axis = self.typer.calls.axis(call.axes[0], call, extents, set())
        if not isinstance(axis, Axis):
            self._forget(call.axes[0], extents)
            return None
        if axis.extent.indices():
            self._error(
                f"an axis that is ordered has one size, not {axis.extent}",
                call.axes[0].span,
                "order the whole axis, and give what does not count a key that comes last: x[k] if k < n else inf",
            )
            return None
        return axis

    @staticmethod
    def _forget(item: Item, extents: dict[str, Affine | None]) -> None:
        """Have an index without a range, so that its uses are no mistakes too."""
        if isinstance(item, Name | AxisRange):
            extents.setdefault(item.id if isinstance(item, Name) else item.name.id, None)

    def _descending(self, tree: Item) -> Expr | None:
        """Return whether the order is descending: a number or an attribute, the same at every point."""
        e = self.typer.calls.argument(tree)
        if e is None or not self.typer.is_value(e):
            return None
        varies = free_indices(e) or free_groups(e) or not all(isinstance(x, Const | AttrRef) or x is e for x in walk(e))
        if varies or not is_bool(e.type) or not isinstance(e, Const | AttrRef):
            self._error(
                f"whether {ORDER} is descending is True, False or a bool attribute", tree.span, "write argsort[k](x[k], True)[i]"
            )
            return None
        return e

    def _is_key(self, e: Expr, along: str) -> bool:
        """Whether an expression is one element of an operand at each value of an index, and nothing is computed of it."""
        if not isinstance(e, Read) or e.pad is not None or e.checked or along not in free_indices(e):
            return False
        return all(isinstance(i, Affine | GroupRef) for i in e.indices)

    def _other(self, index: str) -> str:
        taken = {*self.scope.names(), *self.scope.unranged, *self.scope.types}
        count = 2
        while f"{index}{count}" in taken:
            count += 1
        return f"{index}{count}"
