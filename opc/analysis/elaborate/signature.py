"""The signature of an op out of a spec: type variables, operands with shapes, attributes, derived dimensions, requirements."""

from __future__ import annotations

from opc.analysis.elaborate.attribute_types import AttributeTyper
from opc.analysis.elaborate.expression import ExpressionTyper
from opc.analysis.elaborate.scope import DTYPE_NAMES, RESERVED, WORDS, Scope
from opc.analysis.shapes.scalar import is_never
from opc.analysis.value_types import element_type
from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import ELSEWHERE, TYPE_SETS, Acc, DType, ElementType, TypeVar
from opc.ir.expr import ELLIPSIS
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Operand, Requirement
from opc.lang.parse import parse_expression
from opc.lang.tree import AxisRange, Dots, Item, Literal, Name, Star, Subscript, Tree
from opc.records import replace
from opc.spec.loader import Spec
from opc.spec.text import name_problem

_NO_OPERAND = "an operand, and only dimensions and attributes are known before its elements are"


_DERIVED_BELOW = "derived here or further down, and a dimension is derived from those above it"


class Signature:
    """Reads everything of a spec but its bodies into a `Scope` and the tuples an `Op` holds."""

    def __init__(self, spec: Spec, found: Diagnostics) -> None:
        self.spec = spec
        self.found = found
        self.scope = Scope(broadcast=spec.model.broadcast, out_of_range=spec.model.out_of_range)
        self.typer = ExpressionTyper(self.scope, found)
        self.inputs: list[Operand] = []
        self.outputs: list[Operand] = []
        self.dims: list[tuple[str, Affine]] = []
        self.require: list[Requirement] = []
        self.broken_types: set[str] = set()
        self.scope.poisoned |= spec.unread
        self.scope.unread = frozenset(spec.unread)
        self._names()
        self._types()
        self._inputs()
        self.attribute_typer = AttributeTyper(spec, self.scope, self.typer, self.inputs, found)
        self.attribute_typer.declare()
        self._permuted(self.attribute_typer.arranging.permuted)
        # What a broken input would have bound is not missing.
        whole = len(self.inputs) == len(spec.model.inputs) and len(self.attributes) == len(spec.model.attributes)
        self.scope.lenient = not whole or self.attribute_typer.misplaced or bool(spec.unread)
        self.scope.dims_unread = not whole or bool(spec.unread)
        self._shape()
        self.scope.lenient |= bool(self.scope.broken_dims)
        self.attribute_typer.checks()
        self._outputs()
        arranging = self.attribute_typer.arranging
        if len(self.outputs) < len(spec.model.outputs) or arranging.new_axes(self.outputs):
            arranging.operands(self.attributes, self.outputs)
        else:
            self.scope.lenient = True
        self._require()
        self._determined()

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes in the order of the spec."""
        return tuple(self.scope.attributes.values())

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def _names(self) -> None:
        model = self.spec.model
        for section in ("types", "inputs", "attributes", "outputs", "shape"):
            for key in getattr(model, section):
                name = key.removesuffix("?")
                if section == "types" and name in DTYPE_NAMES:
                    continue  # said where types are read
                if name in (WORDS if section == "shape" else RESERVED):
                    message = f"'{name}' is a word of the language, so nothing else can be called that"
                    self._error(message, self.spec.key_span(section, key), "give it another name")

    def _types(self) -> None:
        for name, members in self.spec.model.types.items():
            dtypes: list[DType] = []
            before = len(self.found.items)
            for i, member in enumerate(members):
                path = ("types", name, i)
                at = self.spec.span(*(path if path in self.spec.values else path[:2]))
                if member in TYPE_SETS:
                    dtypes += TYPE_SETS[member]
                elif member in DTYPE_NAMES:
                    dtypes.append(DType(member))
                else:
                    hint = ELSEWHERE.get(member.lower()) or did_you_mean(member, [*TYPE_SETS, *DTYPE_NAMES])
                    if member.startswith("complex"):
                        hint = "complex types are not part of version 1"
                    self._error(f"unknown dtype '{member}'", at, hint or f"the dtypes are {', '.join(DTYPE_NAMES)}")
            if not members:
                self._error(
                    f"the type '{name}' stands for no dtype",
                    self.spec.key_span("types", name),
                    "name some dtypes: [float32, float64], or a set of them: floating",
                )
            if name in DTYPE_NAMES or name in TYPE_SETS:
                self._error(
                    f"'{name}' is a dtype, so no type variable",
                    self.spec.key_span("types", name),
                    "give it another name, such as T",
                )
            # Even an empty set declares the name: one mistake is told once.
            if len(self.found.items) > before:
                self.broken_types.add(name)
            self.scope.types[name] = TypeVar(name, tuple(dict.fromkeys(dtypes)) or TYPE_SETS["any"])

    # operands

    def _inputs(self) -> None:
        for key in self.spec.model.inputs:
            operand = self._input(key)
            if operand is None:
                self.scope.poisoned.add(key.removesuffix("?"))
                continue
            self.inputs.append(operand)
            self.scope.operands[operand.name] = operand

    def _input(self, key: str) -> Operand | None:
        """Return an input; None, with a mistake recorded, where its type or its shape is none."""
        parsed = self._operand_type(("inputs", key))
        if parsed is None:
            return None
        kind, items, span = parsed
        name, optional = key.removesuffix("?"), key.endswith("?")
        dims = [self._input_dim(item, name) for item in items]
        known = tuple(d for d in dims if d is not None)
        if not self._one_group_each(known, span) or len(known) < len(dims):
            return None
        return Operand(name, kind, known, optional, self.spec.model.inputs[key].doc, self.spec.key_span("inputs", key))

    def _permuted(self, name: str | None) -> None:
        """Mark the input whose axes a permutation lists, if there is one."""
        for n, o in enumerate(self.inputs):
            if o.name == name:
                self.inputs[n] = self.scope.operands[name] = replace(o, permuted=True)

    def _operand_type(self, path: tuple[str, str]) -> tuple[ElementType, tuple[Item, ...], Span] | None:
        whole = path if path in self.spec.values and self.spec.keys.get((*path, "type")) is None else (*path, "type")
        text = self.spec.text(*whole)
        tree = parse_expression(text, self.found)
        if tree is None:
            return None
        if not isinstance(tree, Subscript):
            self._error("expected a type and a shape", tree.span, f"write {text.value.strip()}[...], or [] for rank 0")
            return None
        kind = element_type(tree.base, self.scope, self.found)
        return None if kind is None else (kind, tree.items, tree.span)

    def _input_dim(self, item: Item, owner: str) -> DimSpec | None:
        match item:
            case Dots():
                self.scope.groups.setdefault(ELLIPSIS, item.span)
                return Group(ELLIPSIS, owner if self.spec.model.broadcast else None)
            case Star():
                if self._dimension_name(item.name, item.span):
                    self.scope.groups.setdefault(item.name, item.span)
                    return Group(item.name)
            case Name():
                if self._dimension_name(item.id, item.span):
                    if item.id in self.scope.groups:
                        self._error(f"'{item.id}' is an axis group", item.span, f"write *{item.id}")
                        return None
                    self.scope.dims.setdefault(item.id, None)
                    return Affine.of(Dim(item.id))
            case Literal(value=int() as size) if not isinstance(size, bool) and 0 <= size < 2**63:
                return Affine.of(size)
            case _:
                message = "a dimension of an input is a name, a number, ... or *A"
                self._error(message, item.span, "sizes derived from others stand under shape or in an output")
        return None

    def _dimension_name(self, name: str, span: Span) -> bool:
        problem = name_problem(name)
        model = self.spec.model
        if problem is not None:
            self._error(f"'{name}' can't name a dimension: {problem}", span, "give it another name")
            return False
        if name in WORDS:
            self._error(f"'{name}' is a word of the language, so nothing else can be called that", span, "give it another name")
            return False
        for section, names in (
            ("an attribute", model.attributes),
            ("a type", model.types),
            ("an operand", [k.removesuffix("?") for k in (*model.inputs, *model.outputs)]),
        ):
            if name in names:
                hint = (
                    f"give it a name of its own, and its size under shape: {{N: {name}}}"
                    if section == "an attribute"
                    else "give it another name"
                )
                self._error(f"'{name}' is {section}, so it can't name a dimension", span, hint)
                return False
        return True

    def _one_group_each(self, dims: tuple[DimSpec, ...], span: Span) -> bool:
        names = [d.name for d in dims if isinstance(d, Group)]
        twice = sorted({n for n in names if names.count(n) > 1})
        for name in twice:
            self._error(f"the axis group {Group(name)} stands twice in one shape", span, "give one of them another name")
        return not twice

    def _outputs(self) -> None:
        for key in self.spec.model.outputs:
            operand = self._output(key)
            if operand is None:
                self.scope.poisoned.add(key)
            else:
                self.outputs.append(operand)

    def _output(self, key: str) -> Operand | None:
        """Return an output; None, with a mistake recorded, where its type or its shape is none."""
        parsed = self._operand_type(("outputs", key))
        if parsed is None:
            return None
        kind, items, span = parsed
        dims = [self._output_dim(item) for item in items]
        known = tuple(d for d in dims if d is not None)
        if not self._one_group_each(known, span) or len(known) < len(dims):
            return None
        return Operand(key, kind, known, False, self.spec.model.outputs[key].doc, self.spec.key_span("outputs", key))

    def _output_dim(self, item: Item) -> DimSpec | None:
        if isinstance(item, Dots | Star):
            name = ELLIPSIS if isinstance(item, Dots) else item.name
            if name not in self.scope.groups:
                if self.scope.lenient:
                    return None
                groups = ", ".join(str(Group(g)) for g in self.scope.groups)
                hint = f"the inputs' groups are {groups}" if groups else f"an input has it: T[{Group(name)}]"
                self._error(f"no input has the axis group {Group(name)}", item.span, hint)
                return None
            return Group(name)
        if isinstance(item, AxisRange):
            self._error("a range is no size", item.span, "a shape names sizes alone: T[N]")
            return None
        size = self._size(item, "the size of an axis")
        if size is not None and (size.constant or 0) < 0:
            self._error("the size of an axis is not negative", item.span, "sizes are whole numbers from 0 on")
            return None
        return size

    def _size(self, item: Tree, what: str) -> Affine | None:
        if isinstance(item, Name) and not any(
            item.id in known for known in (self.scope.dims, self.scope.attributes, self.scope.elsewhere)
        ):
            if self.scope.lenient:
                return None
            hint = did_you_mean(item.id, self.scope.dims) or "an input binds it, or an entry under shape derives it"
            self._error(f"unknown dimension '{item.id}'", item.span, hint)
            return None
        # Sizes are over dimensions and attributes: operands have no place in them.
        self.typer.sizes = True
        try:
            with self.scope.without(self._operand_names(), _NO_OPERAND):
                return self.typer.index(item, what)
        finally:
            self.typer.sizes = False

    def _operand_names(self) -> list[str]:
        model = self.spec.model
        return [k.removesuffix("?") for k in (*model.inputs, *model.outputs)]

    def _shape(self) -> None:
        below = set(self.spec.model.shape)
        for name in self.spec.model.shape:
            span = self.spec.key_span("shape", name)
            model = self.spec.model
            taken = (*model.attributes, *model.types, *model.outputs, *(k.removesuffix("?") for k in model.inputs))
            if name in taken or name == model.op:
                self._error(f"'{name}' has another meaning already", span, "give the dimension a name of its own")
            tree = parse_expression(self.spec.text("shape", name), self.found)
            # A size that an input has may be derived too, and so is not known here, or it could be derived from itself.
            with self.scope.without(below, _DERIVED_BELOW):
                value = None if tree is None else self._size(tree, "a dimension")
            if tree is not None and value is not None and (value.constant or 0) < 0:
                self._error(f"the size '{name}' is not negative", tree.span, "sizes are whole numbers from 0 on")
                value = None
            below.discard(name)
            if value is not None:
                self.dims.append((name, value))
            else:
                self.scope.broken_dims.add(name)
            # Declared in any case, so that its uses are not errors too; Dim(name) of an unknown value stands for itself.
            self.scope.dims[name] = value

    def _require(self) -> None:
        optional = {o.name: o for o in self.inputs if o.optional}
        with self.scope.without([n for n in self._operand_names() if n not in optional], _NO_OPERAND):
            for i, text in enumerate(self.spec.model.require):
                tree = parse_expression(self.spec.text("require", i), self.found)
                if tree is None:
                    continue
                condition = self.typer.condition(tree)
                if condition is not None:
                    if is_never(condition):
                        hint = "ask something of sizes or attributes"
                        self.found.warning("this never holds: every call is refused", tree.span, hint)
                    self.require.append(Requirement(condition, " ".join(text.split()), tree.span))

    # what a call determines

    def _determined(self) -> None:
        """Check that every type variable, axis group and dimension is known once the operands are given."""
        if self.scope.lenient:
            return  # an input or attribute with a mistake of its own may be the one that tells
        bound = {a.binds for a in self.scope.attributes.values() if a.binds}
        given = [o for o in self.inputs if not o.optional]
        for name in self.spec.model.types:
            holders = [o for o in given if _type_variable(o.type) == name and not isinstance(o.type, Acc)]
            if name not in bound and not holders and name not in self.broken_types:
                message = f"nothing determines the type '{name}'"
                hint = "give it to an input that is not optional, or add a dtype attribute that binds it"
                self._error(message, self.spec.key_span("types", name), hint)
        self._groups_determined()
        firm = {d.single.name for o in given for d in o.dims if isinstance(d, Affine) and isinstance(d.single, Dim)}
        loose = {n for n, value in self.scope.dims.items() if value is None} - firm
        sizes = [(o.span, d) for o in self.outputs for d in o.dims if isinstance(d, Affine)]
        sizes += [(self.spec.span("shape", n), v) for n, v in self.dims]
        for span, size in sizes:
            for atom in size.atoms():
                if isinstance(atom, Dim) and atom.name in loose:
                    teller = next(o.name for o in self.inputs if o.optional and Affine.of(atom) in o.dims)
                    hint = (
                        f"let '{teller}' always be given, with {atom.name} = 0 where there is nothing, or write a spec of its own"
                        f" without it; or an int attribute may say it: shape: {{{atom.name}: length}}"
                    )
                    self._error(f"'{atom.name}' is known only when an optional input is given", span, hint)

    def _groups_determined(self) -> None:
        placed = {a.dim for a in self.scope.attributes.values() if a.kind is AttributeKind.AXIS}
        picks = [set(a.picks) for a in self.scope.attributes.values() if a.picks is not None]
        known: set[str] = set()
        pending = [o for o in self.inputs if not o.optional]
        while True:
            before = len(known)
            for o in pending:
                groups = [d.name for d in o.dims if isinstance(d, Group)]
                open_groups = [g for g in groups if g not in known]
                split = any(isinstance(d, Affine) and isinstance(d.single, Dim) and d.single.name in placed for d in o.dims)
                split |= self.attribute_typer.arranging.is_split(o, self.outputs)
                if len(open_groups) == 1 or (len(open_groups) == 2 and (split or set(groups) in picks)):
                    known.update(open_groups)
            if len(known) == before:
                break
        for name, span in self.scope.groups.items():
            if name not in known:
                hint = "let an axis attribute place the dimension between two groups, or use the group alone in another input"
                self._error(f"how many axes {Group(name)} has can't be told", span, hint)


def _type_variable(t: ElementType) -> str | None:
    base = t.of if isinstance(t, Acc) else t
    return base.name if isinstance(base, TypeVar) else None
