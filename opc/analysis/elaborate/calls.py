"""Calls and reductions: the function table, cast, present, size, and what runs over axes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from opc.analysis.elaborate.foreign import INSTEAD
from opc.analysis.elaborate.ranges import infer_ranges
from opc.analysis.elaborate.scope import FORMS, WORDS, Scope
from opc.analysis.value_types import affine_of, element_type
from opc.analysis.wording import count, type_text
from opc.diagnostics import Span, did_you_mean, one_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak, is_bool, is_floating, is_integer
from opc.ir.expr import (
    REDUCTIONS,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Reduce,
    ReduceAxis,
    reads,
)
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.ir.printer import format_expr
from opc.ir.rules import reduction_type
from opc.lang.tree import ORDER, Apply, AxisRange, Dots, Item, Name, ReductionCall, Star, parts
from opc.spec.text import name_problem

if TYPE_CHECKING:
    from opc.analysis.elaborate.expression import ExpressionTyper

_WHOLE = "declare it as an int attribute or an integer input, or convert with cast(int64, ...)"
_NOTHING = {"sum": "0", "prod": "1", "max": "-inf", "min": "inf", "any": "False", "all": "True"}
"""What adds nothing to a reduction."""


class CallTyper:
    """The part of `ExpressionTyper` that knows what is called."""

    def __init__(self, typer: ExpressionTyper) -> None:
        self.typer = typer
        self.scope = typer.scope
        self.found = typer.found

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def apply(self, tree: Apply) -> Expr | None:
        """Return a function call as a typed expression."""
        name = tree.fn.id
        match name:
            case "cast":
                return self._cast(tree)
            case "present":
                return self._present(tree)
            case "pad":
                return self.typer.reads.pad(tree)
            case "size" | "position":
                return self._of_group(tree)
            case "random" | "random_bits" | "philox":
                return self._random(tree)
        # Derivatives are written over given expressions, and call hidden functions too.
        if name not in CALLABLE and not (self.scope.bound and name in FUNCTIONS and FUNCTIONS[name].hidden):
            for a in tree.args:
                if not isinstance(a, Dots | Star | AxisRange):
                    self.typer.value(a)
            self._unknown_function(tree.fn)
            return None
        arity = FUNCTIONS[name].arity
        if len(tree.args) != arity:
            self._error(
                f"{name} takes {count(arity, 'argument', 'arguments')}, not {len(tree.args)}",
                tree.span,
                f"write {name}({', '.join('xyz'[:arity])})",
            )
            return None
        args = [self.argument(a) for a in tree.args]
        known = tuple(a for a in args if a is not None)
        return self.typer.call(name, known, tree.span, name) if len(known) == arity else None

    def argument(self, item: Item) -> Expr | None:
        """Return an argument that must be an expression."""
        if isinstance(item, Dots | Star | AxisRange):
            self._error("an argument is an expression", item.span, "an axis group stands in brackets: x[*A, n]")
            return None
        return self.typer.value(item)

    def _unknown_function(self, fn: Name) -> None:
        if fn.id in INSTEAD:
            self._error(f"there is no function '{fn.id}' here", fn.span, INSTEAD[fn.id])
        elif fn.id == ORDER:
            hint = f"write {ORDER}[k](x[..., k])[i] with the axis, and the place that is asked for, in brackets"
            self._error(f"'{fn.id}' does not say what it orders", fn.span, hint)
        elif fn.id in REDUCTIONS:
            self._error(f"'{fn.id}' does not say what it runs over", fn.span, f"write {fn.id}[k](...) with the axis in brackets")
        elif self.scope.is_index(fn.id) or fn.id in (*self.scope.operands, *self.scope.attributes, *self.scope.dims):
            self._error(f"'{fn.id}' is no function", fn.span, "elements are written with brackets: x[i]")
        else:
            self._error(f"unknown function '{fn.id}'", fn.span, did_you_mean(fn.id, [*CALLABLE, *FORMS, *REDUCTIONS, ORDER]))

    def _cast(self, tree: Apply) -> Expr | None:
        if len(tree.args) != 2:
            self._error("cast takes a type and an expression", tree.span, "write cast(T, x)")
            return None
        kind = element_type(tree.args[0], self.scope, self.found)
        arg = self.argument(tree.args[1])
        if kind is None or arg is None or not self.typer.is_value(arg):
            return None
        return Cast(arg, kind, tree.span)

    def _present(self, tree: Apply) -> Expr | None:
        if len(tree.args) != 1 or not isinstance(tree.args[0], Name):
            self._error("present takes the name of an optional input", tree.span, "write present(b), where b? is an input")
            return None
        name = tree.args[0]
        operand = self.scope.operands.get(name.id)
        if operand is None and name.id in self.scope.poisoned:
            return None  # what is wrong is said where it is declared
        if operand is None and self.typer.sizes:
            self._error("whether an input is given decides no size", tree.span, "declare a bool attribute that says so")
            return None
        if operand is None:
            optional = [o.name for o in self.scope.operands.values() if o.optional]
            self._error(f"'{name.id}' is no input", name.span, one_of(name.id, optional, "optional inputs"))
            return None
        if not operand.optional:
            self._error(f"'{name.id}' is always present", name.span, f"declare it as {name.id}? to make it optional")
            return None
        self.scope.used.add(name.id)
        return Present(name.id, tree.span)

    def _of_group(self, tree: Apply) -> Expr | None:
        """Return the number of points of a group, or which of them this is."""
        form = tree.fn.id
        match tree.args:
            case (Dots(),):
                name = "..."
            case (Star(name=name),) | (Name(id=name),):
                pass
            case _:
                self._error(f"{form} takes an axis group", tree.span, f"write {form}(...) or {form}(*A)")
                return None
        if name not in self.scope.groups and not self.scope.lenient:
            self._error(f"there is no axis group {GroupRef(name)}", tree.span, "a dimension's size is its name")
        if name not in self.scope.groups:
            return None
        if form == "size":
            return IndexValue(self.scope.group_size(name), tree.span)
        if name not in self.scope.bound_groups and not self.scope.lenient:
            hint = f"{GroupRef(name)} stands on the left or under a reduction where its points are told apart"
            self._error(f"there are no points of {GroupRef(name)} here", tree.span, hint)
            return None
        return GroupIndex(name, tree.span)

    def _random(self, tree: Apply) -> Expr | None:
        """Return a random number: 32 bits that a seed and a counter tell, or those of them that a fraction of float32 holds."""
        form = tree.fn.id
        if len(tree.args) != 2:
            hint = f"write {form}(seed, i), or {form}(seed, position(...)) for one at each point"
            self._error(f"{form} takes a seed and a counter", tree.span, hint)
            return None
        args = [self.argument(a) for a in tree.args]
        for arg, what in zip(args, ("seed", "counter")):
            if arg is not None and self.typer.is_value(arg) and not is_integer(arg.type):
                self._error(f"the {what} of {form} is a whole number, not {type_text(arg.type)}", arg.span or tree.span, _WHOLE)
        known = [a for a in args if a is not None and is_integer(a.type)]
        if len(known) < 2:
            return None
        wide = tuple(a if a.type is DType.UINT64 else Cast(a, DType.UINT64, a.span) for a in known)
        bits = Call("philox", wide, DType.UINT64, tree.span)
        if form == "philox":
            return bits
        if form == "random_bits":
            return Cast(bits, DType.UINT32, tree.span)
        # A float32 holds 24 bits, and so does an int32, whose conversion processors have an instruction for.
        upper = Call("shift_right", (bits, Const(8, Weak.INT, tree.span)), DType.UINT64, tree.span)
        fraction = Cast(Cast(upper, DType.INT32, tree.span), DType.FLOAT32, tree.span)
        return Call("mul", (fraction, Const(2.0**-24, Weak.FLOAT, tree.span)), DType.FLOAT32, tree.span)

    # reductions

    def reduction(self, tree: ReductionCall) -> Expr | None:
        """Return a reduction as a typed expression; its indices are in scope in its body only."""
        kind = tree.kind.id
        if kind == ORDER:
            self.typer.orders.call(tree)
            return None
        if kind not in REDUCTIONS:
            self._error(f"unknown reduction '{kind}'", tree.kind.span, did_you_mean(kind, [*REDUCTIONS, ORDER]))
            return None
        axes: list[ReduceAxis | None] = []
        extents: dict[str, Affine | None] = {}
        groups: set[str] = set()
        for item in tree.axes:
            axes.append(self.axis(item, tree, extents, groups))
        if not tree.axes:
            self._error(f"{kind} runs over no axis", tree.span, f"write {kind}[k](...)")
        with self.scope.indices(extents, groups):
            body = self.typer.value(tree.body)
        known = tuple(a for a in axes if a is not None)
        if body is None or not tree.axes or len(known) < len(axes) or not self.typer.is_value(body):
            return None
        return self._reduce(kind, known, body, tree.span)

    def axis(self, item: Item, tree: ReductionCall, extents: dict[str, Affine | None], groups: set[str]) -> ReduceAxis | None:
        """Return an axis that a reduction runs over, and note its index or group in what it has by then."""
        scope = self.scope
        match item:
            case Dots() | Star():
                name = "..." if isinstance(item, Dots) else item.name
                if name not in scope.groups:
                    if not scope.lenient:
                        self._error(f"there is no axis group {GroupRef(name)}", item.span, groups_hint(scope))
                    return None
                if name in groups:
                    self._error(
                        f"the axis group {GroupRef(name)} stands twice in one reduction", item.span, "leave one of them out"
                    )
                    return None
                groups.add(name)
                return GroupAxis(name)
            case Apply(fn=Name(id="broadcast"), args=(Name(id=operand),)):
                if not scope.broadcast or operand not in scope.operands:
                    self._error(
                        "broadcast(x) names an input of an op with broadcast",
                        item.span,
                        "say broadcast: true, and name one of the inputs that have `...`",
                    )
                    return None
                return BroadcastAxis("...", operand)
            case Name() | AxisRange():
                name_tree = item if isinstance(item, Name) else item.name
                name = name_tree.id
                extent: Affine | None = None
                taken = dict(extents)
                if isinstance(item, AxisRange):
                    if self._holds_own(item, tree):
                        extents[name] = None
                        return None
                    hint = partial(self._extent_hint, tree.kind.id, name)
                    extent = self.typer.index(item.extent, "an index's range", hint)
                    extents[name] = extent
                if not self.index_name(name_tree, taken):
                    return None
                if isinstance(item, Name):
                    extent = infer_ranges(name_tree, [tree.body], scope, self.found, f"{tree.kind.id}[{{}}](...)")
                    extents[name] = extent
                return None if extent is None else Axis(name, extent)
            case _:
                self._error("an axis is a name, name:extent, ... or *A", item.span, f"write {tree.kind.id}[k](...)")
                return None

    def _holds_own(self, item: AxisRange, tree: ReductionCall) -> bool:
        """Whether the range of an index holds another of the same reduction, which is none around it; records that."""
        names = [a if isinstance(a, Name) else a.name for a in tree.axes if isinstance(a, Name | AxisRange)]
        own = {n.id for n in names if n.id != item.name.id and not self.scope.is_index(n.id)}
        inner = next((n for n in _names(item.extent) if n.id in own), None)
        if inner is not None:
            kind = tree.kind.id
            nested = f"{kind}[{inner.id}]({kind}[{item.name.id}:...](...))"
            hint = f"write one {kind} inside the other: {nested}" if kind in _NOTHING else None
            self._error(f"'{inner.id}' is an index of this {kind} too, on which no range in it depends", inner.span, hint)
        return inner is not None

    def _extent_hint(self, kind: str, index: str, e: Expr) -> str | None:
        """Return what to write in place of an extent that is data, or of the lesser or greater of two."""
        if any(reads(e)) and kind in _NOTHING:
            asked = f"{index} < {format_expr(e)} else {_NOTHING[kind]}"
            return f"a range that data tells is a condition: {kind}[{index}](... if {asked})"
        sizes = [affine_of(a) for a in e.args] if isinstance(e, Call) and e.fn in ("minimum", "maximum") else []
        known = sorted((s for s in sizes if s is not None), key=lambda s: bool(s.indices()))
        if not isinstance(e, Call) or len(known) < 2:
            return None
        bound, other = known
        if not other.indices():
            return f"give it a name under shape: {{M: {e.fn}({bound}, {other})}}"
        if e.fn == "maximum" or kind not in _NOTHING:
            return None
        chosen = f"... if {index} < {other} else {_NOTHING[kind]}"
        return f"let it run to one of the two and ask for the other: {kind}[{index}:{bound}]({chosen})"

    def index_name(self, tree: Name, taken: dict[str, Affine | None]) -> bool:
        """Whether a name can be a new index variable; records why not."""
        scope, name = self.scope, tree.id
        if name in taken or scope.is_index(name):
            self._error(f"the index '{name}' is in use already", tree.span, "choose another letter")
            return False
        for kind, names in (
            ("a dimension", scope.dims),
            ("an attribute", scope.attributes),
            ("a tensor", (*scope.operands, *scope.later, *scope.bound)),
            ("a type", scope.types),
            ("a word of the language", WORDS),
        ):
            if name in names:
                self._error(f"'{name}' is {kind}, so it can't name an index", tree.span, "choose another letter")
                return False
        problem = name_problem(name)
        if problem is not None:
            self._error(f"'{name}' can't name an index: {problem}", tree.span, "give it another name")
        return problem is None

    def _reduce(self, kind: str, axes: tuple[ReduceAxis, ...], body: Expr, span: Span) -> Expr | None:
        t = body.type
        if kind in ("any", "all") and not is_bool(t):
            self._error(f"{kind} needs booleans, not {type_text(t)}", body.span, "compare first: x != 0")
            return None
        if kind in ("max", "min", "argmax", "argmin", "sum", "prod", "mean") and is_bool(t):
            hint = "any[k] and all[k] run over booleans; sum[k](cast(int64, x)) counts"
            if kind in ("argmax", "argmin"):
                hint = f"the first that {'holds' if kind == 'argmax' else 'does not hold'} is {kind}[k](cast(int64, x))"
            self._error(f"{kind} needs numbers, not bool", body.span, hint)
            return None
        if kind == "mean":
            if not is_floating(t):
                self._error(f"mean needs a floating value, not {type_text(t)}", body.span, "convert with cast(float32, x)")
                return None
            count: Expr = IndexValue(Affine.of(1), span)
            for axis in axes:
                match axis:
                    case Axis():
                        count = _times(count, axis.extent, span)
                    case GroupAxis():
                        count = _times(count, self.scope.group_size(axis.name), span)
                    case BroadcastAxis():
                        self._error("mean does not run over broadcast axes", span, "sum there, and divide by a size")
                        return None
            return Call("div", (Reduce("sum", axes, body, t, span), count), t, span)
        result = reduction_type(kind, t)
        if result is None:
            return None
        return self.typer.widths.remember(
            Reduce(kind, axes, body, result, span), reduction_type(kind, self.typer.widths.own(body))
        )


def _names(tree: Item) -> Iterator[Name]:
    """Yield the names in an expression, in the order written."""
    if isinstance(tree, Name):
        yield tree
    for part in parts(tree):
        yield from _names(part)


def _times(count: Expr, extent: Affine, span: Span) -> Expr:
    """Return a product of extents, as it would be written: those that vary by point are no index value together."""
    if not isinstance(count, IndexValue) or (count.value.indices() and extent.indices()):
        return Call("mul", (count, IndexValue(extent, span)), count.type, span)
    return IndexValue(count.value * extent, span)


def groups_hint(scope: Scope) -> str | None:
    """Return a hint that names the axis groups there are."""
    return f"the groups are {', '.join(str(GroupRef(g)) for g in scope.groups)}" if scope.groups else None
