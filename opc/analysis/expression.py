"""Untyped expression trees -> typed IR expressions.

Every mistake is recorded and answered by None, the poison that makes the enclosing expression None too, so that each mistake is
told once and all are told.
"""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.ranges import infer_ranges
from opc.analysis.scope import CONSTANTS, FORMS, WORDS, Scope
from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.affine import Affine, AttrInt, Dim, Index
from opc.ir.dtypes import Acc, DType, ElementType, ValueType, Weak, candidates, is_bool, is_floating, is_integer
from opc.ir.expr import (
    REDUCTIONS,
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    StrConst,
)
from opc.ir.functions import CALLABLE, FUNCTIONS, join, result_type
from opc.ir.op import Attribute, AttributeKind, Operand
from opc.lang.tree import (
    Apply,
    Conditional,
    Dots,
    Item,
    Literal,
    Name,
    Operation,
    Range,
    Reduction,
    Star,
    Subscript,
    Tree,
)
from opc.spec.text import name_problem

_KIND_TYPE: dict[AttributeKind, ValueType] = {
    AttributeKind.INT: Weak.INT,
    AttributeKind.FLOAT: Weak.FLOAT,
    AttributeKind.BOOL: DType.BOOL,
    AttributeKind.STR: DType.BOOL,
}
# What people write from other languages, and what it is called here.
_INSTEAD = {
    "max": "maximum(a, b) compares two values; max[k](...) runs over an axis",
    "min": "minimum(a, b) compares two values; min[k](...) runs over an axis",
    "pow": "write x ** y",
    "power": "write x ** y",
    "where": "write a if condition else b",
    "select": "write a if condition else b",
    "clip": "write minimum(maximum(x, low), high)",
    "clamp": "write minimum(maximum(x, low), high)",
    "relu": "write maximum(x, 0)",
    "len": "the size of an axis is its dimension's name",
    "float": "write cast(float32, x)",
    "int": "write cast(int64, x)",
    "bool": "write x != 0",
    "ln": "write log(x)",
    "fabs": "write abs(x)",
    "arctan": "write atan(x)",
    "arcsin": "write asin(x)",
    "arccos": "write acos(x)",
}


def affine_of(e: Expr) -> Affine | None:
    """Return the integer expression that `e` is, when it is one over indices, dimensions and int attributes."""
    match e:
        case IndexValue():
            return e.value
        case Const(value=int() as value, type=Weak.INT):
            return Affine.of(value)
        case AttrRef(type=Weak.INT):
            return Affine.of(AttrInt(e.name, e.element))
        case _:
            return None


def presence(cond: Expr, holds: bool) -> frozenset[str]:
    """Return the optional operands that are given whenever `cond` is true (`holds`) or false."""
    match cond:
        case Present():
            return frozenset([cond.operand]) if holds else frozenset()
        case Call(fn="not"):
            return presence(cond.args[0], not holds)
        case Call(fn="and") if holds:
            return presence(cond.args[0], True) | presence(cond.args[1], True)
        case Call(fn="or") if not holds:
            return presence(cond.args[0], False) | presence(cond.args[1], False)
        case _:
            return frozenset()


def element_type(tree: Item, scope: Scope, found: Diagnostics) -> ElementType | None:
    """Return the element type a tree names: a dtype, a type variable, or acc(...) of one."""
    match tree:
        case Name():
            if tree.id in scope.types:
                return scope.types[tree.id]
            if tree.id in {d.value for d in DType}:
                return DType(tree.id)
            hint = did_you_mean(tree.id, [*scope.types, *(d.value for d in DType)])
            if tree.id in ("complex64", "complex128"):
                hint = "complex types are not part of version 1"
            elif hint is None and not scope.types:
                hint = f"declare it: types: {{{tree.id}: floating}}"
            found.error(f"unknown type '{tree.id}'", tree.span, hint)
            return None
        case Apply(fn=Name(id="acc"), args=(argument,)):
            of = element_type(argument, scope, found)
            if isinstance(of, Acc):
                return of
            return None if of is None else Acc(of)
        case _:
            found.error("expected a type", tree.span, "a type is a dtype, a type variable, or acc(T)")
            return None


class ExpressionTyper:
    """Types expressions in a scope; one instance serves one spec or text."""

    def __init__(self, scope: Scope, found: Diagnostics) -> None:
        self.scope = scope
        self.found = found

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def value(self, tree: Tree) -> Expr | None:
        """Return the typed expression, or None after recording why there is none."""
        match tree:
            case Literal():
                if isinstance(tree.value, str):
                    self._error("a text is only compared with a str attribute", tree.span, "write mode == 'name'")
                    return None
                kind: ValueType = Weak.FLOAT if isinstance(tree.value, float) else Weak.INT
                return Const(tree.value, DType.BOOL if isinstance(tree.value, bool) else kind, tree.span)
            case Name():
                return self._name(tree)
            case Operation():
                return self._operation(tree)
            case Conditional():
                return self._conditional(tree)
            case Subscript():
                return self._subscript(tree, None)
            case Apply():
                return self._apply(tree)
            case Reduction():
                return self._reduction(tree)

    def condition(self, tree: Tree) -> Expr | None:
        """Return the typed expression of a condition, which is a boolean."""
        cond = self.value(tree)
        if cond is None or not self.is_value(cond):
            return None
        if not is_bool(cond.type):
            self._error(f"a condition is a boolean; this is {cond.type}", tree.span, "compare it: x != 0")
            return None
        return cond

    def index(self, tree: Tree, what: str) -> Affine | None:
        """Return an integer expression over dimensions, attributes and index variables; `what` says what needs it."""
        e = self.value(tree)
        if e is None:
            return None
        value = affine_of(e)
        if value is None:
            hint = "`//` divides whole numbers" if any(isinstance(n, Operation) and n.op == "div" for n in [tree]) else None
            self._error(f"{what} is a whole number over dimensions and int attributes", tree.span, hint)
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
            return self._bare(scope.operands[name], tree.span)
        if name in scope.attributes:
            return self._attribute(scope.attributes[name], -1, tree.span)
        if name in scope.dims:
            return IndexValue(Affine.of(Dim(name)), tree.span)
        if name in CONSTANTS:
            return Const(CONSTANTS[name], Weak.FLOAT, tree.span)
        self._unknown(name, tree.span)
        return None

    def _unknown(self, name: str, span: Span) -> None:
        scope = self.scope
        if name in scope.poisoned:
            scope.used.add(name)
            return
        if name in scope.later:
            self._error(f"'{name}' is used before it is assigned", span, "a statement reads only what stands above it")
        elif name in scope.types or name in {d.value for d in DType}:
            self._error(f"'{name}' is a type, not a value", span, f"convert with cast({name}, x)")
        elif name in CALLABLE or name in FORMS:
            self._error(f"'{name}' is a function: call it", span, f"write {name}(x)")
        elif name in REDUCTIONS:
            self._error(f"'{name}' is a reduction", span, f"write {name}[k](...) to say which axis it runs over")
        elif name in ("true", "false"):
            self._error(f"unknown name '{name}'", span, f"write {name.capitalize()}")
        else:
            self._error(f"unknown name '{name}'", span, did_you_mean(name, scope.names()))

    def _attribute(self, a: Attribute, element: int, span: Span) -> Expr | None:
        self.scope.used.add(a.name)
        if a.kind not in _KIND_TYPE:
            use = "places its dimension" if a.kind is AttributeKind.AXIS else "chooses its type variable"
            self._error(f"'{a.name}' is {_a(a.kind.value)} attribute, which only {use}", span)
            return None
        if element < 0 and a.length is not None:
            self._error(f"'{a.name}' is a list; name the element, such as {a.name}[0]", span)
            return None
        return AttrRef(a.name, _KIND_TYPE[a.kind], element, span)

    def is_value(self, e: Expr) -> bool:
        """Whether `e` is a value; a str attribute is none, and this says so."""
        if isinstance(e, AttrRef) and e.name in self.scope.attributes:
            if self.scope.attributes[e.name].kind is AttributeKind.STR:
                self._error(f"'{e.name}' is a str attribute, which is only compared", e.span, f"write {e.name} == 'name'")
                return False
        return not isinstance(e, StrConst)

    # operators and conditionals

    def _operation(self, tree: Operation) -> Expr | None:
        if tree.op in ("eq", "ne") and any(self._is_str(a) for a in tree.args):
            return self._compare_str(tree)
        args = [self.value(a) for a in tree.args]
        known = tuple(a for a in args if a is not None)
        if len(known) < len(args):
            return None
        return self.call(tree.op, known, tree.span, f"`{tree.op_text}`")

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
            self._error("a text is only compared with a str attribute", right.span)
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
        return Call(tree.op, (reference, StrConst(right.value, right.span)), DType.BOOL, tree.span)

    def call(self, fn: str, args: tuple[Expr, ...], span: Span, what: str) -> Expr | None:
        """Return a function of the table applied to typed arguments; `what` names it in messages."""
        if not all([self.is_value(a) for a in args]):
            return None
        folded = self._fold(fn, args, span)
        if folded is not None:
            return folded
        row = FUNCTIONS[fn]
        result = result_type(row, tuple(a.type for a in args))
        # A type variable that may be bool is no number.
        if row.types == "number" and result is not None and not isinstance(result, Weak) and DType.BOOL in candidates(result):
            self._error(f"{what} needs numbers, and {_type_text(result)} may be bool", span, "convert with cast(...)")
            return None
        if result is None:
            self._mismatch(fn, args, span, what)
            return None
        return Call(fn, args, result, span)

    def _fold(self, fn: str, args: tuple[Expr, ...], span: Span) -> Expr | None:
        """Return integer arithmetic over indices, dimensions and attributes as one index value, where the notation holds it."""
        if fn == "neg":
            value = affine_of(args[0])
            return None if value is None else self._index_value(-value, span)
        if fn not in ("add", "sub", "mul", "floordiv", "mod"):
            return None
        a, b = affine_of(args[0]), affine_of(args[1])
        if a is None or b is None or (fn == "mul" and a.indices() and b.indices()) or (fn in ("floordiv", "mod") and b.indices()):
            return None
        match fn:
            case "add":
                return self._index_value(a + b, span)
            case "sub":
                return self._index_value(a - b, span)
            case "mul":
                return self._index_value(a * b, span)
            case _ if b.constant == 0:
                return None
            case "floordiv":
                return self._index_value(a // b, span)
            case _:
                return self._index_value(a % b, span)

    def _index_value(self, value: Affine, span: Span) -> Expr:
        constant = value.constant
        return IndexValue(value, span) if constant is None else Const(constant, Weak.INT, span)

    def _mismatch(self, fn: str, args: tuple[Expr, ...], span: Span, what: str) -> None:
        types = [a.type for a in args]
        row = FUNCTIONS[fn]
        names = " and ".join(dict.fromkeys(_type_text(t) for t in types))
        joined: ValueType | None = types[0]
        for t in types[1:]:
            joined = None if joined is None else join(joined, t)
        if row.types == "logic":
            self._error(f"{what} needs booleans, not {names}", span, "compare first: x != 0")
        elif joined is None and Weak.FLOAT in types and any(is_integer(t) for t in types):
            self._error(
                f"a fraction does not become {names.replace('weak float and ', '')}", span, "convert with cast(float32, x)"
            )
        elif joined is None:
            self._error(f"{what} mixes {names}", span, "convert one side with cast(T, x)")
        elif fn == "div" and not is_floating(joined):
            self._error(f"`/` needs floating values, not {names}", span, "`//` divides whole numbers; or cast to a floating type")
        elif row.types in ("float", "test"):
            self._error(f"{what} needs a floating value, not {names}", span, "convert with cast(float32, x)")
        else:
            self._error(f"{what} needs numbers, not {names}", span)

    def _conditional(self, tree: Conditional) -> Expr | None:
        cond = self.condition(tree.cond)
        with self.scope.knowing(presence(cond, True) if cond is not None else frozenset()):
            then = self.value(tree.then)
        with self.scope.knowing(presence(cond, False) if cond is not None else frozenset()):
            other = self.value(tree.other)
        if cond is None or then is None or other is None or not (self.is_value(then) and self.is_value(other)):
            return None
        result = join(then.type, other.type)
        if result is None:
            message = f"the two sides of `if` are {_type_text(then.type)} and {_type_text(other.type)}"
            self._error(message, tree.span, "convert one side with cast(T, x)")
            return None
        return Select(cond, then, other, result, tree.span)

    # reads

    def _bare(self, operand: Operand, span: Span) -> Expr | None:
        """Return the read that an operand's bare name means: each of its dimensions at the index that runs over it."""
        indices: list[Affine | GroupRef] = []
        free = dict(self.scope.extents)
        for dim in operand.dims:
            if not isinstance(dim, Affine):
                if dim.name not in self.scope.bound_groups:
                    self._unbound_group(dim.name, span)
                    return None
                indices.append(GroupRef(dim.name))
                continue
            if dim.constant == 1:
                indices.append(Affine.of(0))
                continue
            matching = [n for n, e in free.items() if self.scope.expand(e) == self.scope.expand(dim)]
            if not matching:
                if not self.scope.unranged:
                    message = f"no index here runs over {dim}, an axis of '{operand.name}'"
                    self._error(message, span, f"write the indices: {_indexed(operand)}")
                return None
            same = sum(1 for d in operand.dims if isinstance(d, Affine) and d == dim)
            if same != len(matching) and len([n for n in self.scope.extents if self.scope.extents[n] == dim]) > 1 and same < 2:
                message = f"'{operand.name}' could mean index {' or '.join(matching)} on its axis {dim}"
                self._error(message, span, f"write the indices: {_indexed(operand)}")
                return None
            indices.append(Affine.of(Index(matching[0])))
            if same > 1:
                del free[matching[0]]
        return self._guarded(operand, tuple(indices), None, span)

    def _unbound_group(self, name: str, span: Span) -> None:
        shown = str(GroupRef(name))
        self._error(f"nothing here runs over {shown}", span, f"index the target with {shown}, or reduce: sum[{shown}](...)")

    def _subscript(self, tree: Subscript, pad: Expr | None) -> Expr | None:
        if not isinstance(tree.base, Name):
            self._error("only operands and list attributes have elements", tree.base.span)
            return None
        name, scope = tree.base.id, self.scope
        if name in scope.attributes:
            return self._element(scope.attributes[name], tree)
        operand = scope.operands.get(name)
        if operand is None:
            if name in REDUCTIONS:
                self._error(f"'{name}[...]' lacks what it reduces", tree.span, f"write {name}[k](expression)")
            elif scope.is_index(name) or name in scope.dims or name in scope.bound:
                self._error(f"'{name}' has no elements", tree.base.span)
            else:
                self._unknown(name, tree.base.span)
            return None
        items = tree.items
        if len(items) != len(operand.dims):
            shape = ", ".join(str(d) for d in operand.dims)
            message = f"'{name}' has {_count(len(operand.dims), 'axis', 'axes')} [{_plain(shape)}], and {len(items)} given"
            self._error(message, tree.span, f"write {_indexed(operand)}")
            return None
        indices = [self._index_item(item, dim, operand) for item, dim in zip(items, operand.dims)]
        if any(i is None for i in indices):
            return None
        return self._guarded(operand, tuple(i for i in indices if i is not None), pad, tree.span)

    def _index_item(self, item: Item, dim: object, operand: Operand) -> Affine | GroupRef | Expr | None:
        if isinstance(item, Dots | Star):
            wanted = "..." if isinstance(item, Dots) else item.name
            if isinstance(dim, Affine) or getattr(dim, "name", None) != wanted:
                message = f"{GroupRef(wanted)} stands where '{operand.name}' has {_plain(str(dim))}"
                self._error(message, item.span, f"write {_indexed(operand)}")
                return None
            if wanted not in self.scope.bound_groups:
                self._unbound_group(wanted, item.span)
                return None
            return GroupRef(wanted)
        if isinstance(item, Range):
            self._error("a range stands in a reduction's axes only", item.span)
            return None
        if not isinstance(dim, Affine):
            group = GroupRef(getattr(dim, "name", ""))
            self._error(f"the axes {group} of '{operand.name}' have no single index", item.span, f"write {_indexed(operand)}")
            return None
        e = self.value(item)
        if e is None:
            return None
        value = affine_of(e)
        if value is not None:
            return value
        if isinstance(e.type, Weak):
            if e.type is Weak.FLOAT:
                self._error("an index is a whole number", item.span, "`//` divides whole numbers")
            else:
                self._error("an index is affine in the index variables", item.span, "such as x[2*i + 1] or x[i // 2]")
            return None
        if not is_integer(e.type):
            self._error(f"an index is a whole number; this is {_type_text(e.type)}", item.span)
            return None
        return e

    def _guarded(
        self, operand: Operand, indices: tuple[Affine | GroupRef | Expr, ...], pad: Expr | None, span: Span
    ) -> Expr | None:
        scope = self.scope
        scope.used.add(operand.name)
        if operand.optional and operand.name not in scope.present and operand.name not in scope.absent_counts_as_zero:
            name = operand.name
            self._error(f"'{name}' may be absent", span, f"write ... if present({name}) else ...")
            return None
        read: Expr = self._data_dependent(operand, indices, pad, span)
        if operand.name in scope.absent_counts_as_zero and operand.optional and operand.name not in scope.present:
            zero = Const(0, Weak.INT, span)
            return Select(Present(operand.name, span), read, zero, operand.type, span)
        return read

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
                    assert isinstance(dim, Affine) and not isinstance(index, Affine | GroupRef)
                    low = Call("maximum", (index, Const(0, Weak.INT, span)), index.type, span)
                    clamped[k] = Call("minimum", (low, self._index_value(dim - 1, span)), index.type, span)
                return Read(operand.name, tuple(clamped), operand.type, None, (), span)
            case _:
                return Read(operand.name, indices, operand.type, None, data, span)

    def _element(self, attribute: Attribute, tree: Subscript) -> Expr | None:
        position = tree.items[0] if len(tree.items) == 1 else None
        if attribute.length is None:
            self._error(f"'{attribute.name}' is no list", tree.span, f"write {attribute.name}")
            return None
        if attribute.length < 0:
            message = f"'{attribute.name}' has no fixed length, so its elements can't be named"
            self._error(message, tree.span, f"declare {attribute.kind.value}[2], say")
            return None
        if not isinstance(position, Literal) or isinstance(position.value, bool) or not isinstance(position.value, int):
            self._error(f"an element of '{attribute.name}' is named by a number", tree.span, f"write {attribute.name}[0]")
            return None
        if not 0 <= position.value < attribute.length:
            message = f"'{attribute.name}' has {_count(attribute.length, 'element', 'elements')}, numbered from 0"
            self._error(message, position.span)
            return None
        return self._attribute(attribute, position.value, tree.span)

    # calls

    def _apply(self, tree: Apply) -> Expr | None:
        name = tree.fn.id
        match name:
            case "cast":
                return self._cast(tree)
            case "present":
                return self._present(tree)
            case "pad":
                return self._pad(tree)
            case "size":
                return self._size(tree)
        if name not in CALLABLE:
            for a in tree.args:
                if not isinstance(a, Dots | Star | Range):
                    self.value(a)
            self._unknown_function(tree.fn)
            return None
        arity = FUNCTIONS[name].arity
        if len(tree.args) != arity:
            self._error(f"{name} takes {_count(arity, 'argument', 'arguments')}, not {len(tree.args)}", tree.span)
            return None
        args = [self._argument(a) for a in tree.args]
        known = tuple(a for a in args if a is not None)
        return self.call(name, known, tree.span, name) if len(known) == arity else None

    def _argument(self, item: Item) -> Expr | None:
        if isinstance(item, Dots | Star | Range):
            self._error("an argument is an expression", item.span)
            return None
        return self.value(item)

    def _unknown_function(self, fn: Name) -> None:
        if fn.id in _INSTEAD:
            self._error(f"there is no function '{fn.id}' here", fn.span, _INSTEAD[fn.id])
        elif fn.id in REDUCTIONS:
            self._error(f"'{fn.id}' does not say what it runs over", fn.span, f"write {fn.id}[k](...) with the axis in brackets")
        elif self.scope.is_index(fn.id) or fn.id in (*self.scope.operands, *self.scope.attributes, *self.scope.dims):
            self._error(f"'{fn.id}' is no function", fn.span, "elements are written with brackets: x[i]")
        else:
            self._error(f"unknown function '{fn.id}'", fn.span, did_you_mean(fn.id, [*CALLABLE, *FORMS, *REDUCTIONS]))

    def _cast(self, tree: Apply) -> Expr | None:
        if len(tree.args) != 2:
            self._error("cast takes a type and an expression", tree.span, "write cast(T, x)")
            return None
        kind = element_type(tree.args[0], self.scope, self.found)
        arg = self._argument(tree.args[1])
        if kind is None or arg is None or not self.is_value(arg):
            return None
        return Cast(arg, kind, tree.span)

    def _present(self, tree: Apply) -> Expr | None:
        if len(tree.args) != 1 or not isinstance(tree.args[0], Name):
            self._error("present takes the name of an optional input", tree.span)
            return None
        name = tree.args[0]
        operand = self.scope.operands.get(name.id)
        if operand is None:
            optional = [o.name for o in self.scope.operands.values() if o.optional]
            self._error(f"'{name.id}' is no input", name.span, did_you_mean(name.id, optional))
            return None
        if not operand.optional:
            self._error(f"'{name.id}' is always present", name.span, f"declare it as {name.id}? to make it optional")
            return None
        self.scope.used.add(name.id)
        return Present(name.id, tree.span)

    def _pad(self, tree: Apply) -> Expr | None:
        if len(tree.args) != 2:
            self._error("pad takes a read and a value", tree.span, "write pad(x[i + 1], 0)")
            return None
        read, fill = tree.args
        value = self._argument(fill)
        if not isinstance(read, Subscript):
            if not isinstance(read, Dots | Star | Range):
                self.value(read)
            self._error("pad takes a read with indices", read.span, "write pad(x[i + 1], 0)")
            return None
        if isinstance(read.base, Name) and read.base.id in self.scope.attributes:
            self._error("an attribute's element needs no pad", read.span)
            return None
        result = self._subscript(read, Const(0, Weak.INT, fill.span) if value is None else value)
        if result is None or value is None or not self.is_value(value):
            return None
        if not assignable(value.type, result.type):
            message = f"pad's value is {_type_text(value.type)} and the read is {_type_text(result.type)}"
            self._error(message, fill.span, "convert it with cast(T, x)")
            return None
        return replace(result, span=tree.span)

    def _size(self, tree: Apply) -> Expr | None:
        match tree.args:
            case (Dots(),):
                name = "..."
            case (Star(name=name),) | (Name(id=name),):
                pass
            case _:
                self._error("size takes an axis group", tree.span, "write size(...) or size(*A)")
                return None
        if name not in self.scope.groups:
            self._error(f"there is no axis group {GroupRef(name)}", tree.span, "a dimension's size is its name")
            return None
        return IndexValue(self.scope.group_size(name), tree.span)

    # reductions

    def _reduction(self, tree: Reduction) -> Expr | None:
        kind = tree.kind.id
        if kind not in REDUCTIONS:
            self._error(f"unknown reduction '{kind}'", tree.kind.span, did_you_mean(kind, REDUCTIONS))
            return None
        axes: list[ReduceAxis | None] = []
        extents: dict[str, Affine | None] = {}
        groups: set[str] = set()
        for item in tree.axes:
            axes.append(self._axis(item, tree, extents, groups))
        if not tree.axes:
            self._error(f"{kind} runs over no axis", tree.span, f"write {kind}[k](...)")
        with self.scope.indices(extents, groups):
            body = self.value(tree.body)
        known = tuple(a for a in axes if a is not None)
        if body is None or not tree.axes or len(known) < len(axes) or not self.is_value(body):
            return None
        return self._reduce(kind, known, body, tree.span)

    def _axis(self, item: Item, tree: Reduction, extents: dict[str, Affine | None], groups: set[str]) -> ReduceAxis | None:
        scope = self.scope
        match item:
            case Dots() | Star():
                name = "..." if isinstance(item, Dots) else item.name
                if name not in scope.groups:
                    self._error(f"there is no axis group {GroupRef(name)}", item.span, _groups_hint(scope))
                    return None
                groups.add(name)
                return GroupAxis(name)
            case Apply(fn=Name(id="broadcast"), args=(Name(id=operand),)):
                if not scope.broadcast or operand not in scope.operands:
                    self._error("broadcast(x) names an input of an op with broadcast", item.span)
                    return None
                return BroadcastAxis("...", operand)
            case Name() | Range():
                name_tree = item if isinstance(item, Name) else item.name
                name = name_tree.id
                extent: Affine | None = None
                if isinstance(item, Range):
                    extent = self.index(item.extent, "an index's range")
                    extents[name] = extent
                if not self.index_name(name_tree, extents if isinstance(item, Name) else {}):
                    return None
                if isinstance(item, Name):
                    extent = infer_ranges(name_tree, [tree.body], scope, self.found)
                    extents[name] = extent
                return None if extent is None else Axis(name, extent)
            case _:
                self._error("an axis is a name, name:extent, ... or *A", item.span, f"write {tree.kind.id}[k](...)")
                return None

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
            self._error(f"'{name}' can't name an index: {problem}", tree.span)
        return problem is None

    def _reduce(self, kind: str, axes: tuple[ReduceAxis, ...], body: Expr, span: Span) -> Expr | None:
        t = body.type
        if kind in ("any", "all"):
            if not is_bool(t):
                self._error(f"{kind} needs booleans, not {_type_text(t)}", body.span, "compare first: x != 0")
                return None
            return Reduce(kind, axes, body, DType.BOOL, span)
        if kind in ("argmax", "argmin"):
            return Reduce(kind, axes, body, DType.INT64, span)
        if kind in ("max", "min"):
            return Reduce(kind, axes, body, t, span)
        if kind == "mean":
            if not is_floating(t):
                self._error(f"mean needs a floating value, not {_type_text(t)}", body.span, "convert with cast(float32, x)")
                return None
            size = Affine.of(1)
            for axis in axes:
                match axis:
                    case Axis():
                        size = size * axis.extent
                    case GroupAxis():
                        size = size * self.scope.group_size(axis.name)
                    case BroadcastAxis():
                        self._error("mean does not run over broadcast axes", span)
                        return None
            return Call("div", (Reduce("sum", axes, body, t, span), self._index_value(size, span)), t, span)
        return Reduce(kind, axes, body, sum_type(t), span)


def sum_type(t: ValueType) -> ValueType:
    """Return the value type of a sum or product over a body of type `t`: acc(T) unless it is floating or weak."""
    if isinstance(t, Weak | Acc) or is_floating(t):
        return t
    return DType.INT64 if isinstance(t, DType) else Acc(t)


def assignable(value: ValueType, target: ValueType) -> bool:
    """Whether a value may be stored as `target` without a cast: equal, weak, or T and acc(T) of a floating T."""
    if isinstance(target, Weak):
        return isinstance(value, Weak)
    return join(value, target) is not None


def _type_text(t: ValueType) -> str:
    return {Weak.INT: "a whole number", Weak.FLOAT: "a fraction"}[t] if isinstance(t, Weak) else str(t)


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _plain(shape: str) -> str:
    # The owner of a broadcast group (`...@x`) is the IR's business, not the reader's.
    return shape.split("@")[0] if "@" in shape and "," not in shape else ", ".join(p.split("@")[0] for p in shape.split(", "))


def _indexed(operand: Operand) -> str:
    """Return an operand's read as an example: x[..., d]."""
    names: list[str] = []
    for dim in operand.dims:
        if not isinstance(dim, Affine):
            names.append(str(GroupRef(dim.name)))
            continue
        atom = dim.single
        name = atom.name.lower()[:1] if isinstance(atom, Dim) else "k"
        while name in names:
            name = chr(ord(name) + 1) if name < "z" else "a"
        names.append(name)
    return f"{operand.name}[{', '.join(names)}]"


def _groups_hint(scope: Scope) -> str | None:
    return f"the groups are {', '.join(str(GroupRef(g)) for g in scope.groups)}" if scope.groups else None
