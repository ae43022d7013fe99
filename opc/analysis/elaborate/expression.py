"""Untyped expression trees -> typed IR expressions.

Every mistake is recorded and answered by None, the poison that makes the enclosing expression None too, so that each mistake is
told once and all are told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opc.analysis.elaborate.absence import conditional, told, where_present
from opc.analysis.elaborate.calls import CallTyper
from opc.analysis.elaborate.foreign import NUMBERS
from opc.analysis.elaborate.literals import INT64, UINT64, fold_bits, fraction_hint, is_beyond, whole_number
from opc.analysis.elaborate.ordering import OrderTyper
from opc.analysis.elaborate.reading import ReadTyper
from opc.analysis.elaborate.scope import CONSTANTS, DTYPE_NAMES, FORMS, Scope
from opc.analysis.elaborate.widths import Widths
from opc.analysis.value_types import affine_of, decided, presence, types_told, whole_of
from opc.analysis.wording import article, type_text
from opc.diagnostics import Diagnostics, Span, did_you_mean, one_of
from opc.ir.affine import Affine, Dim, Index, maximum, minimum
from opc.ir.dtypes import ELSEWHERE, TYPE_SETS, DType, ElementType, ValueType, Weak, candidates, is_bool, is_floating, is_integer
from opc.ir.expr import REDUCTIONS, AttrRef, Call, Cast, Const, Expr, IndexValue, Read, Select, StrConst, TypeIs, walk
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.ir.op import Attribute, AttributeKind
from opc.ir.precedence import COMPARISONS
from opc.ir.printer import format_expr
from opc.ir.promotion import join, result_type
from opc.ir.rules import converted
from opc.lang.tree import ORDER, Among, Apply, Conditional, Literal, Name, Operation, ReductionCall, Subscript, Tree

_KIND_TYPE: dict[AttributeKind, ValueType] = {
    AttributeKind.INT: Weak.INT,
    AttributeKind.FLOAT: Weak.FLOAT,
    AttributeKind.BOOL: DType.BOOL,
    AttributeKind.STR: DType.BOOL,
}
_MAX_TERMS = 256
"""How many terms a product of integer expressions may have to be written out; powers of sums would grow without bound."""
_INSTEAD = {
    "an output, which a gradient": "write saves: [{name}]",
    "a temporary of the kernel": "write what it is computed from",
    "an operand, and a check": "compare attributes with numbers and with one another",
    "a dimension, and a check": "write require: [...]",
    "an operand, and only": "make it an attribute, or the size of an axis",
    "derived here": "write the rule of '{name}' above this one, without this dimension in it",
}
"""What to write in place of a name that stands elsewhere, by how the message begins that says what it is."""

_OF_BOOLS = {"bit_and": "and", "bit_or": "or", "bit_xor": "ne", "bit_not": "not"}
"""What an operator on bits is on booleans."""


class ExpressionTyper:
    """Types expressions in a scope; one instance serves one spec or text."""

    def __init__(self, scope: Scope, found: Diagnostics) -> None:
        self.scope = scope
        self.found = found
        self.sizes = False
        """Whether what is typed is a size, in which the lesser of two sizes is a size."""
        self.widths = Widths()
        self.reads = ReadTyper(self)
        self.calls = CallTyper(self)
        self.orders = OrderTyper(self)
        self.whole: Tree | None = None
        """The right side of the statement that is typed."""

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def value(self, tree: Tree) -> Expr | None:
        """Return the typed expression, or None after recording why there is none."""
        e = self._value(tree)
        if e is None:
            return None
        # Where it is known what a type stands for, what is read has no more than that.
        known = self.scope.whole(e.type)
        return e if known == e.type else self.widths.remember(Cast(e, known, e.span), self.scope.whole(self.widths.own(e)))

    def _value(self, tree: Tree) -> Expr | None:
        match tree:
            case Literal():
                if isinstance(tree.value, str):
                    self._error("a text is only compared with a str attribute", tree.span, "write mode == 'name'")
                    return None
                if isinstance(tree.value, bool | float):
                    return Const(tree.value, DType.BOOL if isinstance(tree.value, bool) else Weak.FLOAT, tree.span)
                return whole_number(tree.value, tree.span)
            case Name():
                return self._name(tree)
            case Operation():
                return self._operation(tree)
            case Conditional():
                return self._conditional(tree)
            case Among():
                return self._among(tree)
            case Subscript(base=ReductionCall(kind=Name(id=kind)) as ordered) if kind == ORDER:
                return self.orders.subscript(tree, ordered)
            case Subscript():
                return self.reads.subscript(tree, None)
            case Apply():
                return self.calls.apply(tree)
            case ReductionCall():
                return self.calls.reduction(tree)

    def condition(self, tree: Tree) -> Expr | None:
        """Return the typed expression of a condition, which is a boolean."""
        cond = self.value(tree)
        if cond is None or not self.is_value(cond):
            return None
        if not is_bool(cond.type):
            self._error(f"a condition is a boolean; this is {type_text(cond.type)}", tree.span, "compare it: x != 0")
            return None
        return cond

    def index(self, tree: Tree, what: str, hint: Callable[[Expr], str | None] | None = None) -> Affine | None:
        """Return an integer expression over dimensions, attributes and index variables; `what` says what needs it.

        That of a reduction has a `hint`: what to write for another one.
        """
        e = self.value(tree)
        if e is None:
            return None
        value = whole_of(e, self.sizes and hint is None)
        condition = undecided(e) if value is None and hint is None else None
        if condition is not None:
            at = condition.span or tree.span
            text = next((e.name for c in walk(condition) if isinstance(c, Call) for e in _of_text(c)), None)
            hint_text = "write n if flag else m, where flag: bool is an attribute"
            if text is not None:
                hint_text = f"list what it may be: {text}: {{type: str, values: [...]}}"
            self._error(f"only numbers, bool attributes and str attributes with values decide {what}", at, hint_text)
        elif value is None:
            over = "dimensions and int attributes" if hint is None else "dimensions, int attributes and the indices around it"
            better = fraction_hint(tree)
            flags = (c.arg for c in walk(e) if isinstance(c, Cast) and isinstance(c.arg, AttrRef) and is_bool(c.arg.type))
            if (flag := next(flags, None)) is not None:
                better = f"write (1 if {format_expr(flag)} else 0)"
            if hint is None and any(isinstance(c, Read) for c in walk(e)):
                better = "a size that data tells is an attribute of type size"
            self._error(f"{what} is a whole number over {over}", tree.span, better or (hint and hint(e)))
        return value

    # names

    def _name(self, tree: Name) -> Expr | None:
        name, scope = tree.id, self.scope
        if name in scope.bound:
            scope.used.add(name)
            return scope.bound[name]
        if scope.is_index(name):
            return IndexValue(Affine.of(Index(name)), tree.span) if name in scope.extents else None
        if name in scope.operands:
            return self.reads.bare(scope.operands[name], tree.span)
        if name in scope.attributes:
            return self.attribute(scope.attributes[name], -1, tree.span)
        if name in scope.dims:
            return IndexValue(Affine.of(Dim(name)), tree.span)
        if name in CONSTANTS:
            return Const(CONSTANTS[name], Weak.FLOAT, tree.span)
        self.unknown(name, tree.span)
        return None

    def unknown(self, name: str, span: Span) -> None:
        """Record that a name means nothing here, with what was probably meant."""
        scope = self.scope
        if name in scope.poisoned:
            scope.used.add(name)
            return
        if scope.dims_unread and name[:1].isupper():
            return  # a dimension, by its look
        if name in scope.later:
            self._error(f"'{name}' is used before it is assigned", span, "a statement reads only what stands above it")
        elif name in scope.types or name in DTYPE_NAMES:
            self._error(f"'{name}' is a type, not a value", span, f"convert with cast({name}, x)")
        elif name in CALLABLE or name in FORMS:
            self._error(f"'{name}' is a function: call it", span, f"write {name}(x)")
        elif name == ORDER:
            self._error(f"'{name}' orders an axis", span, f"write {name}[k](x[..., k])[i]")
        elif name in REDUCTIONS:
            self._error(f"'{name}' is a reduction", span, f"write {name}[k](...) to say which axis it runs over")
        elif name in scope.elsewhere:
            hints = (hint for reason, hint in _INSTEAD.items() if scope.elsewhere[name].startswith(reason))
            self._error(f"'{name}' is {scope.elsewhere[name]}", span, next(hints, "").format(name=name) or None)
        elif name in NUMBERS:
            self._error(f"unknown name '{name}'", span, f"write {NUMBERS[name]}")
        elif name in ("true", "false"):
            self._error(f"unknown name '{name}'", span, f"write {name.capitalize()}")
        elif span.word != name and name.rstrip("0123456789") == span.word.lower():  # of a spec of several ranks
            message = f"nothing runs over '*{span.word}' here, and in *(...) it is the index along each axis"
            self._error(message, span, f"its size is size({span.word})")
        else:
            hint = did_you_mean(name, scope.names()) or (None if self.scope.bound else one_of(name, scope.names(), "names here"))
            if hint is None and len(name) <= 2 and (scope.extents or scope.unranged or scope.bound_groups):
                hint = f"an index stands on the left, t[{name}] = ..., or under a reduction, sum[{name}](...)"
            self._error(f"unknown name '{name}'", span, hint)

    def attribute(self, a: Attribute, element: int, span: Span) -> Expr | None:
        """Return the value of an attribute, or of its element where `element` >= 0."""
        self.scope.used.add(a.name)
        if a.kind not in _KIND_TYPE:
            use = "places its dimension" if a.kind is AttributeKind.AXIS else "chooses its type variable"
            self._error(
                f"'{a.name}' is {article(a.kind.value)} attribute, which only {use}",
                span,
                "a value is a float, int or bool attribute; the size of an axis is its dimension",
            )
            return None
        if element < 0 and a.length is not None:
            self._error(f"'{a.name}' is a list; name the element", span, f"such as {a.name}[0]")
            return None
        return AttrRef(a.name, _KIND_TYPE[a.kind], element, span)

    def is_value(self, e: Expr) -> bool:
        """Whether `e` is a value; a str attribute is none, and this says so."""
        attribute = self.scope.attributes.get(e.name) if isinstance(e, AttrRef) else None
        if attribute is not None and attribute.kind is AttributeKind.STR:
            self._error(
                f"'{attribute.name}' is a str attribute, which is only compared", e.span, f"write {attribute.name} == 'name'"
            )
            return False
        return not isinstance(e, StrConst)

    # operators and conditionals

    def _operation(self, tree: Operation) -> Expr | None:
        if tree.op in ("eq", "ne") and any(self._is_str(a) for a in tree.args):
            return self._compare_str(tree)
        first = self.value(tree.args[0])
        # The second side of `and` and `or` is read only where the first leaves it open.
        lazy = first is not None and tree.op in ("and", "or")
        given = presence(first, tree.op == "and") if first is not None and lazy else frozenset()
        with self.scope.among(types_told(first, tree.op == "and") if first is not None and lazy else ()):
            args = [first, *(self._given(a, given) for a in tree.args[1:])]
        known = tuple(a for a in args if a is not None)
        if len(known) < len(args):
            return None
        return self.call(tree.op, known, tree.span, f"`{tree.op_text}`")

    def _side(self, tree: Tree, cond: Expr | None, holds: bool) -> Expr | None:
        """Return a side of a conditional, which is asked for where the condition holds or where it does not."""
        if cond is None:
            return self.value(tree)
        with self.scope.knowing(told(cond, holds)), self.scope.among(types_told(cond, holds)):
            e = self._given(tree, presence(cond, holds))
        whole = None if e is None else self.scope.whole(e.type)
        if e is None or whole is None or isinstance(whole, Weak) or whole == e.type == self.widths.own(e):
            return e
        return self.widths.remember(converted(e, whole), self.scope.whole(self.widths.own(e)))

    def _among(self, tree: Among) -> Expr | None:
        """Return the question whether a type variable stands for one of some dtypes, which what is known here leaves open."""
        variable, name = self.scope.types.get(tree.variable.id), tree.variable.id
        if variable is None:
            among = "a dtype, not one of several: declare types: {T: [...]} and ask of T" if name in DTYPE_NAMES else None
            hint = among or "of values, write `a == b or a == c`"
            self._error(f"'{name}' is no type variable", tree.variable.span, did_you_mean(name, [*self.scope.types]) or hint)
            return None
        if not self.scope.in_body:
            self._error("only a body asks what a type stands for", tree.span, "list fewer dtypes under types")
            return None
        asked: list[DType] = []
        for d in tree.dtypes:
            if d.id not in TYPE_SETS and d.id not in DTYPE_NAMES:
                hint = (
                    ELSEWHERE.get(d.id.lower())
                    or did_you_mean(d.id, [*TYPE_SETS, *DTYPE_NAMES])
                    or f"the sets of dtypes are {', '.join(TYPE_SETS)}"
                )
                self._error(f"unknown dtype '{d.id}'", d.span, hint)
                return None
            asked += TYPE_SETS[d.id] if d.id in TYPE_SETS else (DType(d.id),)
        found = tuple(d for d in variable.dtypes if d in asked)
        if not 0 < len(found) < len(variable.dtypes):
            always = "always" if found else "never"
            hint = f"here it is one of {', '.join(map(str, variable.dtypes))}"
            self._error(f"'{name}' is {always} one of these", tree.span, hint)
            return None
        e = TypeIs(name, found, tree.span)
        return Call("not", (e,), DType.BOOL, tree.span) if tree.negated else e

    def _given(self, tree: Tree, names: frozenset[str]) -> Expr | None:
        """Return what is asked for only where some optional operands are given."""
        new = sorted(names - self.scope.present)
        with self.scope.knowing(names):
            e = self.value(tree)
        if e is None or not self.scope.operands.keys() >= set(new):
            return e
        return self.widths.remember(where_present(e, [self.scope.operands[n] for n in new]), self.widths.own(e))

    def _is_str(self, tree: Tree) -> bool:
        if isinstance(tree, Literal):
            return isinstance(tree.value, str)
        attribute = self.scope.attributes.get(tree.id) if isinstance(tree, Name) else None
        return attribute is not None and attribute.kind is AttributeKind.STR

    def _compare_str(self, tree: Operation) -> Expr | None:
        left, right = tree.args
        if isinstance(left, Literal):
            left, right = right, left
        attribute = self.scope.attributes.get(left.id) if isinstance(left, Name) else None
        if attribute is None or attribute.kind is not AttributeKind.STR:
            self._error("a text is only compared with a str attribute", right.span, "write mode == 'name'")
            return None
        if not isinstance(right, Literal) or not isinstance(right.value, str):
            self._error(f"'{attribute.name}' is a str attribute, which is compared with a text", right.span, "write it in quotes")
            return None
        self.scope.used.add(attribute.name)
        if attribute.values and right.value not in attribute.values:
            hint = did_you_mean(right.value, attribute.values) or f"its values are {', '.join(attribute.values)}"
            self._error(f"'{attribute.name}' is never '{right.value}'", right.span, hint)
            return None
        reference = AttrRef(attribute.name, DType.BOOL, -1, left.span)
        return Call(tree.op, (reference, StrConst(right.value, tuple(attribute.values or ()), right.span)), DType.BOOL, tree.span)

    def call(self, fn: str, args: tuple[Expr, ...], span: Span, what: str) -> Expr | None:
        """Return a function of the table applied to typed arguments; `what` names it in messages."""
        if sum(not self.is_value(a) for a in args):
            return None
        if fn in ("floordiv", "mod") and isinstance(args[1], Const) and args[1].value == 0 and not is_floating(args[0].type):
            self._error(
                "division by zero",
                span,
                "infinity is written inf; a divisor that a call says is an attribute with a check: n > 0",
            )
            return None
        if all(is_bool(a.type) for a in args):
            fn = _OF_BOOLS.get(fn, fn)
        if fn in COMPARISONS and all(whole_of(a) is not None for a in args):
            args = tuple(self._whole(a) for a in args)
        if fn in ("shift_left", "shift_right") and isinstance(args[1], Const) and args[1].value < 0:
            self._error("a shift by a negative number", args[1].span or span, "`>>` shifts the other way than `<<`")
            return None
        folded = self._fold(fn, args)
        if folded is not None:
            return self.widths.folded(self.index_value(folded, span), args)
        row = FUNCTIONS[fn]
        own = result_type(row, tuple(self.widths.own(a) for a in args))
        # A type variable that may be bool is no number.
        if row.types in ("number", "integer") and own is not None and not isinstance(own, Weak) and DType.BOOL in candidates(own):
            self._error(f"{what} needs numbers, and {type_text(own)} may be bool", span, "convert with cast(int64, ...)")
            return None
        args = self.widths.meet(args)
        if (
            fn == "pow"
            and is_integer(args[0].type)
            and args[0].type is not Weak.INT
            and isinstance(args[1], Const)
            and args[1].value < 0
        ):
            hint = f"convert it with cast({self.scope.floating()}, ...)"
            self._error("a whole number to a negative power is a fraction", span, hint)
            return None
        result = result_type(row, tuple(a.type for a in args))
        if result is None:
            self._mismatch(fn, args, span, what)
            return None
        made = Call(fn, args, result, span)
        if is_beyond(made):
            self._error("this number is beyond 1.8e308, the largest of float64", span, "infinity is written inf")
            return None
        return self.widths.remember(made, own)

    def _whole(self, e: Expr) -> Expr:
        """Return a whole number beside another that it is compared with, which may be a power of sizes."""
        value = whole_of(e) if e.type is Weak.FLOAT else None
        return e if value is None else self.index_value(value, e.span) or e

    def _fold(self, fn: str, args: tuple[Expr, ...]) -> Affine | None:
        """Return integer arithmetic over indices, dimensions and attributes as one expression, where the notation holds it."""
        a = affine_of(args[0])
        if fn in ("neg", "bit_not"):
            return None if a is None else -a if fn == "neg" else -a - 1
        b = affine_of(args[1]) if len(args) == 2 else None
        if a is None or b is None:
            return None
        match fn:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul" if not (a.indices() and b.indices()) and len(a.terms) * len(b.terms) <= _MAX_TERMS:
                return a * b
            case "floordiv" | "mod" if not b.indices() and b.constant != 0:
                return a // b if fn == "floordiv" else a % b
            case "minimum" | "maximum" if self.sizes and not a.indices() and not b.indices():
                return minimum(a, b) if fn == "minimum" else maximum(a, b)
            case _:
                return fold_bits(fn, a, b)

    def index_value(self, value: Affine, span: Span) -> Expr | None:
        """Return an integer expression as a value: a literal where it is a plain number."""
        constant = value.constant
        if constant is None and all(c in INT64 for _, c in value.terms):
            return IndexValue(value, span)
        if constant is None or (constant not in INT64 and constant not in UINT64):
            self._error(
                "this number does not fit in 64 bits", span, "convert a part to a floating type, or write it with a point: 1.0"
            )
            return None
        return whole_number(constant, span)

    def _mismatch(self, fn: str, args: tuple[Expr, ...], span: Span, what: str) -> None:
        types = [a.type for a in args]
        row = FUNCTIONS[fn]
        names = " and ".join(dict.fromkeys(type_text(t) for t in types))
        joined: ValueType | None = types[0]
        for t in types[1:]:
            joined = None if joined is None else join(joined, t)
        if row.types == "logic":
            self._error(f"{what} needs booleans, not {names}", span, "compare first: x != 0")
        elif row.types == "integer" and not all(is_integer(t) or is_bool(t) for t in types):
            hint = self._of_both(types, "integer") or "convert with cast(int64, ...)"
            if len(args) == 2 and not fn.startswith("shift"):
                hint += f"; {what} binds stronger than a comparison: (a > 0) {row.symbol} (b > 0)"
            if row.symbol == "^":
                hint = f"a power is x ** y; {hint}"
            self._error(f"{what} needs whole numbers, not {names}", span, hint)
        elif joined is None and Weak.FLOAT in types and any(is_integer(t) for t in types):
            whole = " and ".join(dict.fromkeys(type_text(t) for t in types if t is not Weak.FLOAT))
            hint = f"convert the whole number: cast({self.scope.floating()}, ...)"
            if any(map(_is_power_of_numbers, args)):
                hint = f"a power of numbers alone is a fraction: write its base as cast({whole}, ...)"
            self._error(f"a fraction does not become {whole}", span, hint)
        elif joined is None:
            flag = next((a for a in args if isinstance(a, AttrRef) and a.type is DType.BOOL), None)
            hint = _one_side(types) if flag is None else f"write (1 if {format_expr(flag)} else 0)"
            self._error(f"{what} mixes {names}", span, hint)
        elif fn == "div" and not is_floating(joined):
            hint = self._of_both(types, "floating") or "`//` divides whole numbers; or cast to a floating type"
            self._error(f"`/` needs floating values, not {names}", span, hint)
        elif row.types in ("float", "test"):
            hint = self._of_both(types, "floating") or f"convert with cast({self.scope.floating()}, ...)"
            self._error(f"{what} needs a floating value, not {names}", span, hint)
        else:
            self._error(f"{what} needs numbers, not {names}", span, "convert with cast(int64, ...)")

    def _of_both(self, types: Sequence[ValueType], wanted: str) -> str:
        """Return the hint at a type variable that stands for floating types and integers here, "" where there is none."""
        for t in types:
            whole = self.scope.whole(t)
            known = () if isinstance(whole, Weak) else candidates(whole)
            if any(d.is_floating for d in known) and any(d.is_integer for d in known):
                return f"{type_text(t)} is floating types and integers: write `... if {type_text(t)} in {wanted} else ...`"
        return ""

    def _conditional(self, tree: Conditional) -> Expr | None:
        cond = self.condition(tree.cond)
        then, other = (self._side(side, cond, holds) for side, holds in ((tree.then, True), (tree.other, False)))
        if cond is None or then is None or other is None or not (self.is_value(then) and self.is_value(other)):
            return None
        own = self.widths.common((then, other))
        then, other = self.widths.meet((then, other))
        result = join(then.type, other.type)
        if result is None:
            message = f"the two sides of `if` are {type_text(then.type)} and {type_text(other.type)}"
            self._error(message, tree.span, _one_side([then.type, other.type]))
            return None
        return self.widths.remember(conditional(cond, then, other, result, tree.span), own)


def _of_text(e: Call) -> Sequence[AttrRef]:
    """Return the attribute that a comparison with a text is of, none of another call."""
    return [a for a in e.args if isinstance(a, AttrRef)] if any(isinstance(a, StrConst) for a in e.args) else []


def undecided(e: Expr) -> Expr | None:
    """Return the first condition in `e` that chooses between whole numbers and decides no size, None where each may."""
    chosen = (part.cond for part in walk(e) if isinstance(part, Select) and is_integer(part.type))
    return next((cond for cond in chosen if decided(cond) is None), None)


def _is_power_of_numbers(e: Expr) -> bool:
    """Whether `e` is a power of whole numbers that are written down or indices, which has no type of its own."""
    return isinstance(e, Call) and e.fn == "pow" and e.type is Weak.FLOAT and all(a.type is Weak.INT for a in e.args)


def _one_side(types: Sequence[ValueType]) -> str:
    """Return the hint for types that don't mix: to convert to one that has all values of the others, else to the first."""
    named = [t for t in types if not isinstance(t, Weak) and t is not DType.BOOL]
    if DType.BOOL in types and any(DType.BOOL in candidates(t) for t in named):
        return "convert one side with cast(bool, ...)"
    wide = (t for t in named if all(_has_all(t, other) for other in named))
    return f"convert one side with cast({next(wide, named[0] if named else 'int64')}, ...)"


def _has_all(t: ElementType, other: ElementType) -> bool:
    """Whether a type has all numbers of another one, whichever of its candidates each is; a floating one stands for integers."""
    pairs = [(d, o) for d in candidates(t) for o in candidates(other) if o is not DType.BOOL]
    return t == other or all(
        d.bits >= o.bits
        if d.is_floating and o.is_floating
        else d.is_floating or (o.is_integer and d.holds(o.least) and d.holds(o.most))
        for d, o in pairs
    )
