"""Reads of operands: bare names, subscripts, padding, optional operands and data-dependent indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opc.analysis.elaborate.literals import fraction_hint
from opc.analysis.elaborate.pieces import MAX_PIECES, Piecewise, pieces, size
from opc.analysis.value_types import whole_of
from opc.analysis.wording import count, dim_text, indexed, shape_text, type_text
from opc.diagnostics import Span
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak, is_integer, is_whole
from opc.ir.expr import (
    ELLIPSIS,
    REDUCTIONS,
    Call,
    Cast,
    Const,
    Expr,
    Extension,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Select,
    walk,
)
from opc.ir.op import Attribute, AttributeKind, DimSpec, Operand
from opc.ir.promotion import join
from opc.ir.rules import converted, needs_width
from opc.lang.tree import ORDER, Apply, AxisRange, Dots, Item, Literal, Name, Star, Subscript, Tree
from opc.records import replace

if TYPE_CHECKING:
    from opc.analysis.elaborate.expression import ExpressionTyper


_AFFINE = "such as x[2*i + 1] or x[i // 2]; any other one is cast(int64, ...), and checked when the op runs"


class ReadTyper:
    """The part of `ExpressionTyper` that knows how operands are read."""

    def __init__(self, typer: ExpressionTyper) -> None:
        self.typer = typer
        self.scope = typer.scope
        self.found = typer.found

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def bare(self, operand: Operand, span: Span) -> Expr | None:
        """Return the read that an operand's bare name means: each of its axes at the index that runs over it."""
        scope = self.scope
        indices: list[Affine | GroupRef] = []
        seen: dict[Affine, int] = {}
        for dim in operand.dims:
            if not isinstance(dim, Affine):
                if dim.name not in scope.bound_groups:
                    self._unbound_group(dim.name, span)
                    return None
                indices.append(GroupRef(dim.name))
                continue
            size = scope.expand(dim)
            if size.constant == 1:
                indices.append(Affine.of(0))
                continue
            matching = [n for n, e in scope.extents.items() if scope.expand(e) == size]
            same = sum(1 for d in operand.dims if isinstance(d, Affine) and scope.expand(d) == size)
            position = seen.get(size, 0)
            seen[size] = position + 1
            if len(matching) < same:
                if not scope.unranged and not scope.lenient:
                    message = f"no index here runs over {dim}, an axis of '{operand.name}'"
                    self._error(message, span, f"write the indices: {indexed(operand)}")
                return None
            if len(matching) > same:
                message = f"'{operand.name}' could mean index {' or '.join(matching)} on its axis {dim}"
                self._error(message, span, f"write the indices: {indexed(operand)}")
                return None
            indices.append(Affine.of(Index(matching[position])))
        return self._guarded(operand, tuple(indices), None, span)

    def _unbound_group(self, name: str, span: Span) -> None:
        if self.scope.lenient:
            return
        shown = str(GroupRef(name))
        self._error(f"nothing here runs over {shown}", span, f"index the target with {shown}, or reduce: sum[{shown}](...)")

    def subscript(self, tree: Subscript, pad: Expr | None) -> Expr | None:
        """Return `x[...]` as a read, or an element of a list attribute; `pad` is the value outside, where there is one."""
        if not isinstance(tree.base, Name):
            hint = (
                "all indices stand in one pair of brackets: x[i, j]"
                if isinstance(tree.base, Subscript)
                else f"write {ORDER}[k](x[k])[i] with the axis in brackets"
                if isinstance(tree.base, Apply) and tree.base.fn.id == ORDER
                else "give it a name in a statement of its own, and read that"
            )
            self._error("only operands and list attributes have elements", tree.base.span, hint)
            return None
        name, scope = tree.base.id, self.scope
        operand = scope.operands.get(name)
        if operand is None and name in scope.attributes:
            return self._element(scope.attributes[name], tree)
        if operand is None:
            if name in REDUCTIONS:
                self._error(f"'{name}[...]' lacks what it reduces", tree.span, f"write {name}[k](expression)")
            elif name in scope.bound and not tree.items:
                return self.typer.value(tree.base)
            elif scope.is_index(name) or name in scope.dims or name in scope.bound:
                self._error(f"'{name}' has no elements", tree.base.span, f"it is a number: write {name}")
            else:
                self.typer.unknown(name, tree.base.span)
            return None
        items = tree.items
        if len(items) != len(operand.dims):
            axes = count(len(operand.dims), "entry", "entries")
            message = f"the shape {shape_text(operand.dims)} of '{name}' has {axes}, and {len(items)} given"
            self._error(message, tree.span, f"write {indexed(operand)}")
            return None
        indices = [self._index_item(item, dim, operand) for item, dim in zip(items, operand.dims)]
        known = tuple(i for i in indices if i is not None)
        return self._piecewise(operand, known, pad, tree.span) if len(known) == len(indices) else None

    def _piecewise(
        self, operand: Operand, indices: tuple[Affine | GroupRef | Piecewise | Expr, ...], pad: Expr | None, span: Span
    ) -> Expr | None:
        """Return the read; an index in pieces makes a read for each, under the pieces' conditions."""
        plain: list[Affine | GroupRef | Expr] = []
        for k, index in enumerate(indices):
            if isinstance(index, Piecewise):
                then, other = (
                    self._piecewise(operand, (*indices[:k], side, *indices[k + 1 :]), pad, span)
                    for side in (index.then, index.other)
                )
                if then is None or other is None:
                    return None
                return self.typer.widths.remember(Select(index.cond, then, other, then.type, span), operand.type)
            plain.append(index)
        return self._guarded(operand, tuple(plain), pad, span)

    def _index_item(self, item: Item, dim: DimSpec, operand: Operand) -> Affine | GroupRef | Piecewise | Expr | None:
        if isinstance(item, Dots | Star):
            wanted = ELLIPSIS if isinstance(item, Dots) else item.name
            if isinstance(dim, Affine) or dim.name != wanted:
                message = f"{GroupRef(wanted)} stands where '{operand.name}' has {dim_text(dim)}"
                self._error(message, item.span, f"write {indexed(operand)}")
                return None
            if wanted not in self.scope.bound_groups:
                self._unbound_group(wanted, item.span)
                return None
            return GroupRef(wanted)
        if isinstance(item, AxisRange):
            hint = f"write t[{item.name.id}:...] = ... or sum[{item.name.id}:...](...)"
            self._error("a range stands on the left and in a reduction's axes only", item.span, hint)
            return None
        if not isinstance(dim, Affine):
            message = f"the axes {dim_text(dim)} of '{operand.name}' have no single index"
            self._error(message, item.span, f"write {indexed(operand)}")
            return None
        e = self.typer.value(item)
        if e is None:
            return None
        value = whole_of(e)
        if value is not None:
            return value
        if isinstance(e.type, Weak):
            if e.type is Weak.FLOAT:
                self._error("an index is a whole number", item.span, fraction_hint(item) or "convert it with cast(int64, ...)")
                return None
            found = pieces(e)
            if found is None:
                self._error("an index is affine in the index variables", item.span, _AFFINE)
            elif size(found) > MAX_PIECES:
                self._error(f"an index has more than {MAX_PIECES} pieces", item.span, "write it with fewer conditions")
                return None
            return found
        if not is_integer(e.type):
            self._error(f"an index is a whole number; this is {type_text(e.type)}", item.span, "convert it: cast(int64, ...)")
            return None
        if not is_whole(e.type):
            what = f"an index is one of int64's numbers; {type_text(e.type)} has larger ones"
            self._error(what, item.span, "convert it: cast(int64, ...)")
            return None
        return e

    def _guarded(
        self, operand: Operand, indices: tuple[Affine | GroupRef | Expr, ...], pad: Expr | None, span: Span
    ) -> Expr | None:
        scope = self.scope
        read: Expr
        scope.used.add(operand.name)
        if operand.optional and operand.name not in scope.present and operand.name not in scope.absent_counts_as_zero:
            name = operand.name
            self._error(f"'{name}' may be absent", span, f"write ... if present({name}) else ...")
            return None
        if pad is not None and (any(isinstance(e, Read) for e in walk(pad)) or needs_width((pad,), operand.type)):
            read = self._padded(operand, indices, pad, span)
        else:
            read = self._data_dependent(operand, indices, pad, span)
        if operand.name in scope.absent_counts_as_zero and operand.optional and operand.name not in scope.present:
            zero = Const(0, Weak.INT, span)
            return Select(Present(operand.name, span), read, zero, operand.type, span)
        return read

    def _padded(self, operand: Operand, indices: tuple[Affine | GroupRef | Expr, ...], pad: Expr, span: Span) -> Expr:
        """Return a padded read as the conditional that it is.

        It is that where the value outside is read too, so that each side has its gradient, and where the operand's type may not
        hold it.
        """
        inside: Expr | None = None
        for index, dim in zip(indices, operand.dims, strict=True):
            if isinstance(index, GroupRef) or not isinstance(dim, Affine):
                continue
            place = IndexValue(index, span) if isinstance(index, Affine) else Cast(index, DType.INT64, span)
            for fn, bound in (("ge", Const(0, Weak.INT, span)), ("lt", IndexValue(dim, span))):
                holds = Call(fn, (place, bound), DType.BOOL, span)
                inside = holds if inside is None else Call("and", (inside, holds), DType.BOOL, span)
        affine = all(isinstance(i, Affine | GroupRef) for i in indices)
        zero = None if affine else Const(False, DType.BOOL, span) if operand.type is DType.BOOL else Const(0, Weak.INT, span)
        read: Expr = Read(operand.name, indices, operand.type, zero, (), span)
        if inside is None:
            return read
        # A mismatch of the two types is told where the pad is.
        widths = self.typer.widths
        own = widths.common((read, pad))
        read, pad = widths.meet((read, pad))
        return widths.remember(Select(inside, read, pad, join(read.type, pad.type) or operand.type, span), own)

    def _data_dependent(
        self, operand: Operand, indices: tuple[Affine | GroupRef | Expr, ...], pad: Expr | None, span: Span
    ) -> Read:
        """Return the read with what the spec's `out_of_range` says about indices that are data."""
        data = tuple(k for k, i in enumerate(indices) if not isinstance(i, Affine | GroupRef))
        if not data or pad is not None:
            return Read(operand.name, indices, operand.type, pad, (), span)
        match self.scope.out_of_range:
            case "zero":
                zero = Const(False, DType.BOOL, span) if operand.type is DType.BOOL else Const(0, Weak.INT, span)
                return Read(operand.name, indices, operand.type, zero, (), span)
            case "clamp":
                clamped = list(indices)
                for k in data:
                    dim, index = operand.dims[k], indices[k]
                    if not isinstance(dim, Affine) or isinstance(index, Affine | GroupRef):
                        continue
                    wide = converted(index, DType.INT64)
                    low = Call("maximum", (wide, Const(0, Weak.INT, span)), DType.INT64, span)
                    clamped[k] = Call("minimum", (low, IndexValue(dim - 1, span)), DType.INT64, span)
                return Read(operand.name, tuple(clamped), operand.type, None, (), span)
            case _:
                return Read(operand.name, indices, operand.type, None, data, span)

    def _element(self, attribute: Attribute, tree: Subscript) -> Expr | None:
        position = tree.items[0] if len(tree.items) == 1 else None
        dtype = {AttributeKind.INT: "int64", AttributeKind.BOOL: "bool"}.get(attribute.kind, self.scope.floating())
        as_input = f"make it an input, which an index reads: {attribute.name}: '{dtype}[K]'"
        if attribute.length is None:
            self._error(f"'{attribute.name}' is no list", tree.span, f"write {attribute.name}")
            return None
        if attribute.length < 0:
            message = f"'{attribute.name}' has no fixed length, so its elements can't be named"
            self._error(message, tree.span, f"declare {attribute.kind.value}[2], say, whose elements are numbered; or {as_input}")
            return None
        if not isinstance(position, Literal) or isinstance(position.value, bool) or not isinstance(position.value, int):
            self._error(
                f"an element of '{attribute.name}' is named by a number", tree.span, f"write {attribute.name}[0]; or {as_input}"
            )
            return None
        if not 0 <= position.value < attribute.length:
            message = f"'{attribute.name}' has {count(attribute.length, 'element', 'elements')}, numbered from 0"
            self._error(message, position.span, f"write {attribute.name}[0] to {attribute.name}[{attribute.length - 1}]")
            return None
        return self.typer.attribute(attribute, position.value, tree.span)

    # calls

    def pad(self, tree: Apply) -> Expr | None:
        """Return `pad(x[i], v)`: a read that may fall outside and then is v."""
        if len(tree.args) != 2:
            self._error("pad takes a read and a value", tree.span, "write pad(x[i + 1], 0)")
            return None
        read, fill = tree.args
        value = self.typer.calls.argument(fill)
        if not isinstance(read, Subscript):
            if not isinstance(read, Dots | Star | AxisRange):
                self.typer.value(read)
            self._error("pad takes a read with indices", read.span, "write pad(x[i + 1], 0)")
            return None
        if isinstance(read.base, Name) and read.base.id in self.scope.attributes:
            self._error("an attribute's element needs no pad", read.span, "write it without pad")
            return None
        if value is not None:
            value = self._as_declared(value, read.base)
        result = self.subscript(read, Const(0, Weak.INT, fill.span) if value is None else value)
        if result is None or value is None or not self.typer.is_value(value):
            return None
        if join(value.type, result.type) is None:
            message = f"pad's value is {type_text(value.type)} and the read is {type_text(result.type)}"
            self._error(message, fill.span, f"convert it with cast({type_text(result.type)}, ...)")
            return None
        assert not isinstance(result, Extension), "an expression of a spec"
        return self.typer.widths.remember(replace(result, span=tree.span), self.typer.widths.own(result))

    def _as_declared(self, value: Expr, base: Tree) -> Expr:
        """Return pad's value in the type of the operand where it fits that only as far as the type is known here."""
        operand = self.scope.operands.get(base.id) if isinstance(base, Name) else None
        if operand is None or join(value.type, operand.type) is not None:
            return value
        return value if join(value.type, self.scope.whole(operand.type)) is None else Cast(value, operand.type, value.span)
