"""The attributes of a spec: kinds, defaults, checks, and what axis and dtype attributes place and bind."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from opc.analysis.elaborate.arranging import Arranging
from opc.analysis.elaborate.expression import ExpressionTyper
from opc.analysis.elaborate.scope import Scope
from opc.analysis.shapes.scalar import evaluate
from opc.analysis.wording import count
from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.affine import Affine, AttrInt, Dim, Symbol
from opc.ir.dtypes import DTYPES, DType
from opc.ir.expr import AttrRef, Call, Expr, rewrite
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Group, Operand
from opc.lang.parse import parse_expression
from opc.records import replace
from opc.spec.loader import Spec
from opc.spec.model import AttributeModel
from opc.spec.text import SourceText

AXES = "axes"
"""The type of an attribute that lists axes: in the IR, ints with `picks`."""
PERMUTATION = "permutation"
"""The type of an attribute that lists all axes of a group in another order: in the IR, ints that `permutes` the group."""
SIZE = "size"
"""The type of an attribute that the kernel computes where a caller does not give it: in the IR, an int that `Op.sizes` tells."""
ATTRIBUTE_TYPES = (*(k.value for k in AttributeKind), AXES, PERMUTATION, SIZE)
_ATTRIBUTE_TYPE = re.compile(r"(int|float|bool|str|dtype|axis|axes|permutation|size)(?:\[([0-9]{0,4})\])?")
_MAX_LIST = 64
_EXPECTED = {
    AttributeKind.INT: "a whole number",
    AttributeKind.AXIS: "a whole number",
    AttributeKind.FLOAT: "a number",
    AttributeKind.BOOL: "true or false",
    AttributeKind.STR: "a text",
    AttributeKind.DTYPE: "the name of a dtype",
}
_INSTEAD = {
    AttributeKind.INT: "such as 1",
    AttributeKind.AXIS: "such as -1, the last axis",
    AttributeKind.FLOAT: "such as 0.5, without quotes",
    AttributeKind.BOOL: "without quotes",
    AttributeKind.STR: "write it in quotes",
    AttributeKind.DTYPE: "such as float32",
}
_INT64 = range(-(2**63), 2**63)

_OWNERS = {
    "values": ("str",),
    "dim": ("axis",),
    "binds": ("dtype",),
    "group": (AXES, PERMUTATION),
    "of": (PERMUTATION,),
    "keeps": ("bool",),
}
"""The types of attributes that a key belongs to."""

_NOT_IN_CHECKS = "an operand, and a check is over attributes alone"
_NO_DIMENSION = "a dimension, and a check is over attributes alone: state it under require"


class AttributeTyper:
    """Reads the attributes of a spec into a scope."""

    def __init__(self, spec: Spec, scope: Scope, typer: ExpressionTyper, inputs: Sequence[Operand], found: Diagnostics) -> None:
        self.spec = spec
        self.scope = scope
        self.typer = typer
        self.inputs = inputs
        self.found = found
        self.arranging = Arranging(spec, inputs, found)
        self.misplaced = False
        """Whether an attribute of axes has a mistake, so that what it would place is not known."""

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def declare(self) -> None:
        """Put the attributes in scope, without their checks, which may name any of them."""
        self.arranging.find_slots()
        for name, entry in self.spec.model.attributes.items():
            self.scope.poisoned.add(name)
            match = _ATTRIBUTE_TYPE.fullmatch(entry.type.strip())
            short = ("attributes", name, "type") not in self.spec.values
            at = self.spec.span("attributes", name, *(() if short else ("type",)))
            if match is None:
                known = ", ".join(ATTRIBUTE_TYPES)
                hint = did_you_mean(entry.type, ATTRIBUTE_TYPES) or f"the types are {known}; int[2] and float[] for lists"
                self._error(f"unknown attribute type '{entry.type}'", at, hint)
                continue
            if match[1] == SIZE:
                self._size_attribute(name, entry, at, match[2] is not None)
                continue
            if match[1] in (AXES, PERMUTATION) and match[2] is not None:
                several = AXES if match[1] == AXES else "permutations"
                self._error(f"there are no lists of {several}", at, f"an attribute of type {match[1]} is a list already")
                continue
            if match[1] in (AXES, PERMUTATION):
                self._attribute(name, entry, AttributeKind.INT, -1)
                continue
            kind = AttributeKind(match[1])
            length = None if match[2] is None else int(match[2]) if match[2] else -1
            if length is not None and kind not in (AttributeKind.INT, AttributeKind.FLOAT, AttributeKind.BOOL):
                self._error(f"there are no lists of {kind.value}", at, "lists hold int, float or bool")
                continue
            if length is not None and (length == 0 or length > _MAX_LIST):
                self._error(
                    f"a list has 1 to {_MAX_LIST} elements", at, "write int[2], or int[] where a call says how many there are"
                )
                continue
            self._attribute(name, entry, kind, length)

    def _size_attribute(self, name: str, entry: AttributeModel, at: Span, listed: bool) -> None:
        if listed:
            self._error("there are no lists of sizes", at, "declare an attribute for each")
        elif ("attributes", name, "default") in self.spec.keys:
            hint = f"assign it in the kernel, {name} = ...; or declare {name}: {{type: int}}"
            self._error(
                "a size has no default: data tells it where it is not given",
                self.spec.key_span("attributes", name, "default"),
                hint,
            )
        elif self.spec.model.kernel is None:
            self._error(f"nothing tells '{name}': there is no kernel", at, f"declare {name}: {{type: int}}")
        else:
            self.scope.sizes[name] = at
            self._attribute(name, entry, AttributeKind.INT, None)

    def _attribute(self, name: str, entry: AttributeModel, kind: AttributeKind, length: int | None) -> None:
        spec = self.spec
        values = tuple(entry.values or ())
        own = entry.type.strip() if entry.type.strip() in (AXES, PERMUTATION, SIZE) else kind.value
        for key, owners in _OWNERS.items():
            if getattr(entry, key) is not None and own not in owners:
                self._error(
                    f"'{key}' belongs to {' and '.join(owners)} attributes",
                    spec.key_span("attributes", name, key),
                    f"leave it out, or declare {name}: {{type: {owners[0]}}}",
                )
        if kind is AttributeKind.STR and len(set(values)) < len(values):
            self._error("a value stands twice", spec.span("attributes", name, "values"), "name each value once")
        if kind is AttributeKind.STR and entry.values is not None and not values:
            self._error(
                f"'{name}' admits no value",
                spec.span("attributes", name, "values"),
                "name what it may be, values: [mean, sum], or leave values out",
            )
        if kind is AttributeKind.AXIS:
            self._axis_attribute(name, entry)
        picks = self.arranging.axes(name, entry) if own == AXES else None
        permutes = self.arranging.permutation(name, entry) if own == PERMUTATION else None
        self.misplaced |= own in (AXES, PERMUTATION) and picks is None and permutes is None
        if kind is AttributeKind.DTYPE:
            self._dtype_attribute(name, entry)
        required = ("attributes", name, "default") not in spec.keys
        attribute = Attribute(
            name,
            kind,
            length,
            required,
            None,
            values,
            entry.dim,
            entry.binds,
            picks,
            entry.keeps if own == "bool" else None,
            self.arranging.slots.get(name),
            permutes,
            own == SIZE,
            doc=entry.doc,
            span=spec.key_span("attributes", name),
        )
        if not required:
            default = self.convert(attribute, entry.default, ("attributes", name, "default"), "the default")
            attribute = replace(attribute, default=default)
            if own == AXES and isinstance(default, tuple):
                self.arranging.distinct(name, default, spec.span("attributes", name, "default"))
            if own == PERMUTATION and isinstance(default, tuple):
                self.arranging.whole(name, default, spec.span("attributes", name, "default"))
        self.scope.attributes[name] = attribute
        self.scope.poisoned.discard(name)

    def _axis_attribute(self, name: str, entry: AttributeModel) -> None:
        if entry.dim is None:
            self._error(f"'{name}' does not say which dimension it places", self.spec.key_span("attributes", name), "add dim: N")
            self.misplaced = True
            return
        at = self.spec.span("attributes", name, "dim")
        owners = [o for o in self.inputs if any(isinstance(d, Affine) and d == Affine.of(Dim(entry.dim)) for d in o.dims)]
        alone = name not in self.arranging.slots and not any(
            len([d for d in o.dims if isinstance(d, Group)]) == 2 for o in owners
        )
        if alone and (owners or entry.dim in self.spec.model.shape):
            # Outputs are read later.
            self.arranging.added[name] = entry.dim
        elif not owners:
            if self.scope.dims:
                hint = did_you_mean(entry.dim, self.scope.dims) or f"the inputs' dimensions are {', '.join(self.scope.dims)}"
            else:
                hint = f"declare an input as T[*A, {entry.dim}, *B]"
            self._error(f"no input has the dimension '{entry.dim}'", at, hint)
            self.misplaced = True
        elif name in self.arranging.slots:
            self.misplaced |= self.arranging.is_refused(name, "axis attribute among the axes of one group")
        others = [a.name for a in self.scope.attributes.values() if a.kind is AttributeKind.AXIS and a.dim == entry.dim]
        if others:
            self._error(
                f"'{others[0]}' places '{entry.dim}' already",
                at,
                "one attribute tells where a dimension stands: leave the other out, or place another dimension",
            )

    def _dtype_attribute(self, name: str, entry: AttributeModel) -> None:
        if entry.binds is None:
            message = f"'{name}' does not say which type variable it chooses"
            self._error(message, self.spec.key_span("attributes", name), "add binds: U, and U under types")
        elif entry.binds not in self.scope.types:
            at = self.spec.span("attributes", name, "binds")
            hint = did_you_mean(entry.binds, self.scope.types) or f"declare it: types: {{{entry.binds}: floating}}"
            self._error(f"unknown type variable '{entry.binds}'", at, hint)

    def convert(self, a: Attribute, value: object, path: tuple[str | int, ...], what: str) -> AttributeValue:
        """Return a value of the attribute's own type; None, recorded, when it is of another.

        `path` leads to the value in the spec; `what` says what it is, such as "the default".
        """
        span = self.spec.span(*path)
        if a.length is None:
            return self._scalar(a, value, path, what)
        if not isinstance(value, list):
            one = a.length in (1, -1) and isinstance(value, int | float | bool)
            written = json.dumps([value] * (1 if one else max(a.length, 2))) if isinstance(value, int | float) else "[1, 1]"
            self._error(f"{what} of '{a.name}' must be a list", span, f"write {written}")
            return None
        if a.length >= 0 and len(value) != a.length:
            self._error(
                f"'{a.name}' has {count(a.length, 'element', 'elements')}, and {what} has {len(value)}",
                span,
                f"give {count(a.length, 'element', 'elements')}, or declare {a.kind.value}[{len(value)}]",
            )
            return None
        elements = [self._scalar(a, v, (*path, i), f"an element of {what}") for i, v in enumerate(value)]
        return None if any(e is None for e in elements) else tuple(elements)  # type: ignore[return-value]  # no element is None here

    def _scalar(self, a: Attribute, value: object, path: tuple[str | int, ...], what: str) -> AttributeValue:
        span = self.spec.span(*path)
        match a.kind, value:
            case AttributeKind.BOOL, bool():
                return value
            case ((AttributeKind.INT | AttributeKind.AXIS), int()) if not isinstance(value, bool):
                if value in _INT64:
                    return value
                self._error(f"{what} of '{a.name}' does not fit in 64 bits", span, "int attributes are from -2**63 to 2**63 - 1")
                return None
            case AttributeKind.FLOAT, int() | float() if not isinstance(value, bool):
                if self.spec.is_beyond_float64(value, *path):
                    self._error("this number is beyond 1.8e308, the largest of float64", span, "infinity is written .inf")
                    return None
                return float(value)
            case AttributeKind.STR, str():
                if a.values and value not in a.values:
                    hint = did_you_mean(value, a.values) or f"its values are {', '.join(a.values)}"
                    self._error(f"'{value}' is none of the values of '{a.name}'", span, hint)
                    return None
                return value
            case AttributeKind.DTYPE, str():
                members = self.scope.types[a.binds].dtypes if a.binds in self.scope.types else DTYPES
                if value not in {d.value for d in members}:
                    names = [d.value for d in members]
                    hint = did_you_mean(value, names) or f"the dtypes are {', '.join(names)}"
                    self._error(f"'{value}' is no dtype of '{a.binds or a.name}'", span, hint)
                    return None
                return value
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        hint = _INSTEAD[a.kind]
        if a.kind is AttributeKind.INT and isinstance(value, float):
            hint = f"write a whole number, or declare {a.name}: {{type: float}}"
        if a.kind is AttributeKind.FLOAT and isinstance(value, str) and value.lower().lstrip("+-") in ("inf", "infinity", "nan"):
            hint = "infinity is .inf and not-a-number .nan"
        self._error(f"{what} of '{a.name}' must be {_EXPECTED[a.kind]}, not {shown}", span, hint)
        return None

    def _meets_check(self, a: Attribute, check: Expr) -> None:
        """Record a default that its own check refuses, where the check is over attributes that have defaults."""

        def value(name: str, element: int) -> int | float | bool | str:
            default = self.scope.attributes[name].default
            found = default[element] if isinstance(default, tuple) else default
            if found is None:
                raise LookupError(name)
            return found

        def symbol(s: Symbol) -> int:
            if not isinstance(s, AttrInt):
                raise LookupError(str(s))
            found = value(s.name, s.element)
            return int(found == s.text if s.text is not None else found)

        try:
            holds = evaluate(check, symbol, value)
        except (LookupError, ZeroDivisionError, ArithmeticError):
            return
        if not holds:
            self._error(
                f"the default of '{a.name}' does not meet its check",
                self.spec.span("attributes", a.name, "default"),
                "change one of the two, or leave the default out: callers then say the value",
            )

    def checks(self) -> None:
        """Type each attribute's check, over the attributes alone; a list's bare name stands for each of its elements."""
        used = set(self.scope.used)
        operands = [k.removesuffix("?") for k in (*self.spec.model.inputs, *self.spec.model.outputs)]
        with self.scope.without(operands, _NOT_IN_CHECKS), self.scope.without(list(self.scope.dims), _NO_DIMENSION):
            self._checks()
        # Naming an attribute in its own check is no use of it.
        self.scope.used.intersection_update(used)

    def _checks(self) -> None:
        for name, entry in self.spec.model.attributes.items():
            attribute = self.scope.attributes.get(name)
            if attribute is None or entry.check is None:
                continue
            tree = parse_expression(self.spec.text("attributes", name, "check"), self.found)
            if tree is None:
                continue
            # Typed once for a list's element, then written for every element.
            self.scope.attributes[name] = replace(attribute, length=None)
            check = self.typer.condition(tree)
            self.scope.attributes[name] = attribute
            if check is None:
                continue
            if attribute.length is not None:
                check = self._each_element(attribute, check, tree.span)
            if check is not None:
                text = " ".join(entry.check.split())
                self.scope.attributes[name] = replace(attribute, check=check, check_text=text)
                if not attribute.required and attribute.default is not None:
                    self._meets_check(attribute, check)
        for name in self.scope.sizes:
            self._not_negative(name)

    def _not_negative(self, name: str) -> None:
        """Add to the check of a size that it is not negative."""
        attribute, text = self.scope.attributes[name], f"{name} >= 0"
        tree = parse_expression(SourceText.of(text, "check"), self.found)
        check = None if tree is None else self.typer.condition(tree)
        if check is not None:
            own = attribute.check
            check = check if own is None else Call("and", (check, own), DType.BOOL, own.span)
            text = text if own is None else f"{text} and {attribute.check_text}"
            self.scope.attributes[name] = replace(attribute, check=check, check_text=text)

    def _each_element(self, a: Attribute, check: Expr, span: Span) -> Expr | None:
        assert a.length is not None
        if a.length < 0:
            self._error(f"'{a.name}' has no fixed length, so it takes no check", span, f"declare {a.kind.value}[2], say")
            return None

        def at(k: int) -> Expr:
            return rewrite(check, lambda e: replace(e, element=k) if isinstance(e, AttrRef) and e.name == a.name else e)

        result = at(0)
        for k in range(1, a.length):
            result = Call("and", (result, at(k)), DType.BOOL, span)
        return result
