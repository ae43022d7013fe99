"""Untyped statements -> typed assignments: targets, index ranges, temporaries, and whether everything is assigned and used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from opc.analysis.elaborate.calls import groups_hint
from opc.analysis.elaborate.expression import ExpressionTyper
from opc.analysis.elaborate.foreign import in_place_of
from opc.analysis.elaborate.ranges import as_stated, bare_uses, infer_ranges
from opc.analysis.elaborate.recurring import Recurring
from opc.analysis.elaborate.scope import RESERVED, WORDS, Scope
from opc.analysis.elaborate.widths import misfit
from opc.analysis.wording import count, dim_text, indexed, shape_text, type_text
from opc.diagnostics import Diagnostics, Span, one_of
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import Expr, GroupRef
from opc.ir.op import Assign, DimSpec, Group, Operand
from opc.ir.rules import assignable
from opc.lang.parse import parse_body
from opc.lang.tree import Apply, AxisRange, Dots, Item, Name, Star, Statement, Subscript, Tree, parts
from opc.records import dataclass
from opc.spec.text import SourceText, name_problem

_LEFT = "an index on the left is a name, name:extent, ... or *A"
MAX_MISTAKES = 100
"""After how many mistakes the rest of a body is not looked at."""


@dataclass(slots=True)
class Body:
    """What elaborating a body gives: the assignments in order, and the temporaries they define."""

    assigns: list[Assign]
    temporaries: list[Operand]
    sizes: list[Assign] = field(default_factory=list)
    """What tells the attributes of type `size`."""


class BodyTyper:
    """Elaborates the statements of one body in `scope`, which it extends by every tensor assigned."""

    def __init__(self, scope: Scope, outputs: Sequence[Operand], found: Diagnostics, derived: bool = False) -> None:
        self.scope = scope
        self.derived = derived
        self.outputs = {o.name: o for o in outputs}
        self.found = found
        self.typer = ExpressionTyper(scope, found)
        self.body = Body([], [])
        self.failed: set[str] = set()
        self.assigned: dict[str, Span] = {}
        self.recurring = Recurring(self)

    def elaborate(self, text: SourceText) -> Body:
        """Return the typed body of a text. Every mistake is recorded; statements with one are left out."""
        before = len(self.found.items)
        self.scope.in_body = True
        statements = parse_body(text, self.found)
        self.scope.usual = lambda name: self._sizes_of(name, statements)
        whole = len(self.found.items) == before
        for name, o in self.outputs.items():
            self.scope.later[name] = o.span
        for s in statements:
            if s.target.id not in self.scope.sizes:  # known from the start, as attributes are
                self.scope.later.setdefault(s.target.id, s.target.span)
        self.recurring.find(statements)
        for s in statements:
            if len(self.found.items) - before >= MAX_MISTAKES:
                self._error("too many mistakes; those below are not shown", s.target_span, "mend those above first")
                whole = False
                break
            self.statement(s)
        self._unused(statements, whole)
        return self.body

    def _sizes_of(self, name: str, statements: Iterable[Statement]) -> Iterator[Affine]:
        """Yield the sizes of the axes on which an index stands bare: those of outputs that are written first."""
        for s in statements:
            output = self.outputs.get(s.target.id)
            for item, dim in zip(s.items or (), output.dims if output is not None else ()):
                if isinstance(item, Name) and item.id == name and isinstance(dim, Affine):
                    yield dim
        for s in statements:
            if s.value is not None:
                yield from (use.extent for use in bare_uses(name, s.value, self.scope))

    def _error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.found.error(message, span, hint)

    def statement(self, s: Statement) -> None:
        """Type a statement, and record what is wrong with it."""
        name = s.target.id
        output = self.outputs.get(name)
        if not self._may_assign(s.target, output):
            if name not in self.assigned:
                self.scope.later.pop(name, None)
                self.scope.poisoned.add(name)
            return
        self.assigned[name] = s.target.span
        if name in self.scope.sizes and not self.derived:
            self._told(s)
            return
        if s.value is None:
            assign = None
        elif name in self.scope.poisoned:
            self._poisoned_value(s, s.value)
            return
        elif s.items is None:
            assign = self._sugar(s, s.value, output)
        else:
            ahead = self.recurring.ahead(name)
            self.scope.operands |= ahead
            self.scope.poisoned |= self.recurring.untold(s)
            declared, value, items = output, s.value, s.items
            assign = self._temporary(s, value, items) if declared is None else self._declared(s, value, items, declared)
            for other in ahead:
                if other != name or assign is None:
                    del self.scope.operands[other]
        self.scope.later.pop(name, None)
        if assign is None:
            # The name is known from here on, only not what it is: poison, so that its uses say nothing more.
            if name in self.scope.bound:
                return
            self.failed.add(name)
            if output is not None:
                self.scope.operands[name] = output
            else:
                self.scope.poisoned.add(name)
            return
        self.body.assigns.append(assign)

    def _told(self, s: Statement) -> None:
        """Type what tells a size. The name stays the attribute's, whose value a caller may give."""
        name = s.target.id
        self.scope.later.pop(name, None)
        if s.items:
            self._error(f"'{name}' is one number", s.target_span, f"write {name} = ...")
        if s.value is None or s.items:
            return
        value = self._value(s.value, {}, set())
        size = Operand(name, DType.INT64, (), span=s.target.span)
        if value is not None and self._fits(value, size, s.value):
            self.body.sizes.append(Assign(name, (), self.typer.widths.stored(value, DType.INT64), s.span))

    def _may_assign(self, target: Name, output: Operand | None) -> bool:
        name, scope = target.id, self.scope
        if name in self.assigned:
            line = self.assigned[name].line
            hint = f"each tensor is assigned once, in all its elements: {name}[i] = a if i == 0 else b"
            self._error(f"'{name}' is assigned twice; first on line {line}", target.span, hint)
            return False
        if output is not None or name in self.scope.poisoned or (name in self.scope.sizes and not self.derived):
            return True
        for kind, names in (
            ("an input", scope.operands),
            ("an attribute", scope.attributes),
            ("a dimension", scope.dims),
            ("an axis group", scope.groups),
            ("a type", scope.types),
            ("a word of the language", RESERVED),
        ):
            if name in names:
                self._error(
                    f"'{name}' is {kind} and can't be assigned", target.span, "give what is computed here a name of its own"
                )
                return False
        problem = name_problem(name, self.derived)
        if problem is not None:
            self._error(f"'{name}' can't name a temporary: {problem}", target.span, "give it another name")
            return False
        return True

    # targets

    def _declared(self, s: Statement, tree: Tree, items: tuple[Item, ...], output: Operand) -> Assign | None:
        """Type `output[items] = value`, where each item stands on an axis of the declared output."""
        if len(items) != len(output.dims):
            axes = count(len(output.dims), "entry", "entries")
            message = f"the shape {shape_text(output.dims)} of '{output.name}' has {axes}, and {len(items)} given"
            self._error(message, s.target_span, f"write {indexed(output)}")
            self._poisoned_value(s, tree)
            return None
        targets: list[str | GroupRef] = []
        extents: dict[str, Affine | None] = {}
        good = True
        for item, dim in zip(items, output.dims):
            entry = self._target_item(item, dim, output.name, extents)
            if entry is None:
                good = False
                continue
            targets.append(entry)
            if isinstance(entry, str) and isinstance(dim, Affine) and isinstance(item, Name):
                extents[entry] = infer_ranges(item, [tree], self.scope, self.found, "", (dim, item.span))
        if not good:
            self._poisoned_value(s, tree)
            return None
        return self._assign(s, tree, output, targets, extents)

    def _target_item(self, item: Item, dim: DimSpec, owner: str, taken: dict[str, Affine | None]) -> str | GroupRef | None:
        match item:
            case Dots() | Star():
                wanted = "..." if isinstance(item, Dots) else item.name
                if isinstance(dim, Affine) or dim.name != wanted:
                    hint = f"write {indexed(self.outputs[owner])}"
                    self._error(f"{GroupRef(wanted)} stands where '{owner}' has {dim_text(dim)}", item.span, hint)
                    return None
                return GroupRef(wanted)
            case Name():
                if not isinstance(dim, Affine):
                    hint = f"write {indexed(self.outputs[owner])}"
                    self._error(f"the axes {GroupRef(dim.name)} of '{owner}' have no single index", item.span, hint)
                    return None
                return item.id if self.typer.calls.index_name(item, taken) else None
            case AxisRange():
                return self._stated(item, dim, owner, taken)
            case _:
                self._error(_LEFT, item.span, in_place_of(owner, item))
                return None

    def _stated(self, item: AxisRange, dim: DimSpec, owner: str, taken: dict[str, Affine | None]) -> str | None:
        """Return the index of `y[i:extent] = ...`, whose range must be the axis that the output declares."""
        extent = self.typer.index(item.extent, "an index's range")
        if extent is None or not self.typer.calls.index_name(item.name, taken):
            return None
        if not isinstance(dim, Affine) or self.scope.expand(dim) != self.scope.expand(extent):
            self._error(
                f"'{item.name.id}' runs over {extent}, and the axis of '{owner}' is {dim_text(dim)}",
                item.span,
                f"leave the range out: {item.name.id} runs over the whole axis",
            )
            return None
        taken[item.name.id] = dim
        return item.name.id

    def _temporary(self, s: Statement, tree: Tree, items: tuple[Item, ...]) -> Assign | None:
        targets: list[str | GroupRef] = []
        dims: list[DimSpec] = []
        extents: dict[str, Affine | None] = {}
        good = True
        for item in items:
            match item:
                case Dots() | Star():
                    name = "..." if isinstance(item, Dots) else item.name
                    if name not in self.scope.groups:
                        self._error(f"there is no axis group {GroupRef(name)}", item.span, groups_hint(self.scope))
                        good = False
                        continue
                    if GroupRef(name) in targets:
                        self._error(
                            f"the axis group {GroupRef(name)} stands twice in one shape",
                            item.span,
                            "each group stands for axes of its own: leave one out",
                        )
                        good = False
                        continue
                    targets.append(GroupRef(name))
                    dims.append(Group(name))
                case Name():
                    if not self.typer.calls.index_name(item, extents):
                        good = False
                        continue
                    extent = infer_ranges(item, [tree], self.scope, self.found, as_stated(s, item))
                    extents[item.id] = extent
                    targets.append(item.id)
                    if extent is not None:
                        dims.append(extent)
                case AxisRange():
                    extent = self.typer.index(item.extent, "an index's range")
                    if not self.typer.calls.index_name(item.name, extents):
                        good = False
                        continue
                    extents[item.name.id] = extent
                    targets.append(item.name.id)
                    if extent is not None:
                        dims.append(extent)
                case _:
                    self._error(_LEFT, item.span, in_place_of(s.target.id, item))
                    good = False
        if not good:
            self._poisoned_value(s, tree)
            return None
        value = self._value(tree, extents, {t.name for t in targets if isinstance(t, GroupRef)})
        if value is None or any(e is None for e in extents.values()):
            return None
        return self._define(s, tree, tuple(targets), tuple(dims), value)

    def _sugar(self, s: Statement, tree: Tree, output: Operand | None) -> Assign | None:
        """Type `y = f(x)`: bare operands are read where the target is written, on their own declared dimensions."""
        model = list(output.dims) if output is not None else self._common_dims(s, tree)
        if model is None:
            self._poisoned_value(s, tree)
            return None
        extents: dict[str, Affine | None] = {}
        targets: list[str | GroupRef] = []
        for dim in model:
            if isinstance(dim, Affine):
                name = self._fresh(dim, tree, extents)
                extents[name] = dim
                targets.append(name)
            else:
                targets.append(GroupRef(dim.name))
        if output is not None:
            return self._assign(s, tree, output, targets, extents)
        value = self._value(tree, extents, {t.name for t in targets if isinstance(t, GroupRef)})
        if value is None:
            return None
        return self._define(s, tree, tuple(targets), tuple(Group(d.name) if isinstance(d, Group) else d for d in model), value)

    def _common_dims(self, s: Statement, tree: Tree) -> list[DimSpec] | None:
        """Return the dimensions a temporary without indices has: those of the bare operand that covers all the others."""
        shapes: list[tuple[str, list[DimSpec]]] = []
        for name in _bare_names(tree, self.scope):
            o = self.scope.operands[name]
            shapes.append((name, [Group(d.name) if isinstance(d, Group) else d for d in o.dims]))
        if not shapes:
            return []
        widest = max(shapes, key=lambda shape: len(shape[1]))
        for name, dims in shapes:
            if any(d not in widest[1] for d in dims):
                message = f"the shape of '{s.target.id}' can't be told from '{widest[0]}' and '{name}'"
                self._error(message, s.target.span, f"write its indices: {s.target.id}[i, j] = ...")
                return None
        return widest[1]

    def _fresh(self, dim: Affine, tree: Tree, taken: dict[str, Affine | None]) -> str:
        atom = dim.single
        base = atom.name.lower() if isinstance(atom, Dim) else "i"
        scope = self.scope
        used = {*taken, *scope.operands, *scope.later, *scope.attributes, *scope.dims, *scope.types, *scope.bound, *WORDS}
        used |= set(_names(tree))
        name, count = base, 1
        while name in used or name_problem(name) is not None:
            count += 1
            name = f"{base[:40]}{count}" if name_problem(base[:40]) is None else f"i{count}"
        return name

    # values

    def _assign(
        self,
        s: Statement,
        tree: Tree,
        output: Operand,
        targets: list[str | GroupRef],
        extents: dict[str, Affine | None],
    ) -> Assign | None:
        value = self._value(tree, extents, {t.name for t in targets if isinstance(t, GroupRef)})
        if value is None or any(e is None for e in extents.values()):
            return None
        if not self._fits(value, output, tree):
            return None
        value = self.typer.widths.stored(value, output.type)
        self.scope.operands[output.name] = output
        return Assign(output.name, tuple(targets), value, s.span)

    def _value(self, tree: Tree, extents: dict[str, Affine | None], groups: set[str]) -> Expr | None:
        self.typer.whole = tree
        with self.scope.indices(extents, groups):
            return self.typer.value(tree)

    def _poisoned_value(self, s: Statement, tree: Tree) -> None:
        """Type the value for its own mistakes where the target's are such that nothing is known of its indices."""
        self.typer.whole = tree
        loose: dict[str, Affine | None] = dict.fromkeys(_loose_names(s, self.scope))
        with self.scope.leniently(), self.scope.indices(loose, set(self.scope.groups)):
            self.typer.value(tree)

    def _fits(self, value: Expr, output: Operand, tree: Tree) -> bool:
        if not self.typer.is_value(value):
            return False
        wrong = misfit(value, output.type)
        if wrong is not None:
            number, dtype = wrong
            what = f"'{output.name}' is {output.type}" + (f", which may be {dtype}" if dtype != str(output.type) else "")
            hint = f"write cast({output.type}, {number.value}) to have it wrap"
            self._error(f"{what}: {number.value} does not fit", number.span, hint)
            return False
        if assignable(value.type, output.type) or assignable(self.typer.widths.own(value), output.type):
            return True
        hint = "compare it: x != 0" if output.type is DType.BOOL else f"convert it: cast({output.type}, ...)"
        self._error(f"'{output.name}' is {output.type}, and its value is {type_text(value.type)}", tree.span, hint)
        return False

    def _define(
        self, s: Statement, tree: Tree, targets: tuple[str | GroupRef, ...], dims: tuple[DimSpec, ...], value: Expr
    ) -> Assign | None:
        name = s.target.id
        if not self.typer.is_value(value):
            return None
        kind: ValueType = value.type
        if isinstance(kind, Weak):
            if not targets:
                # A number without a type of its own: it has no storage either, and stands where its name stood.
                self.scope.bound[name] = value
                self.scope.used.discard(name)
                return None
            example = DType.INT64 if kind is Weak.INT else self.scope.floating()
            message = f"the type of '{name}' can't be told: its value is {type_text(kind)}, which has no type of its own"
            self._error(message, tree.span, f"say what it is stored as: cast({example}, ...)")
            return None
        operand = Operand(name, kind, dims, span=s.target.span)
        self.typer.widths.remember_temporary(name, value)
        self.body.temporaries.append(operand)
        self.scope.operands[name] = operand
        return Assign(name, targets, value, s.span)

    # what is left over

    def _unused(self, statements: Sequence[Statement], whole: bool) -> None:
        for name, output in self.outputs.items():
            # A statement that could not be parsed may have been the one.
            if whole and name not in self.assigned:
                targets = [s.target.id for s in statements]
                self._error(f"the output '{name}' is not assigned", output.span, one_of(name, targets, "targets here"))
        for name, at in self.scope.sizes.items() if not self.derived else ():
            if whole and name not in self.assigned:
                hint = f"say it in the kernel, such as {name} = sum[i](1 if x[i] != 0 else 0); or declare {name}: {{type: int}}"
                self._error(f"nothing tells the size '{name}'", at, hint)
        if self.found.has_errors:
            return  # what a broken statement would have used is not unused
        for s in statements:
            name = s.target.id
            spare = name in self.assigned and name not in self.scope.used and name not in self.failed
            if spare and name not in self.outputs and name not in self.scope.sizes:
                self.found.warning(f"the temporary '{name}' is not used", s.target.span)


def _names(tree: Item) -> Iterator[str]:
    if isinstance(tree, Name):
        yield tree.id
    for part in parts(tree):
        yield from _names(part)


def _bare_names(tree: Item, scope: Scope) -> Iterator[str]:
    """Yield the operands that stand without a subscript in `tree`."""
    if isinstance(tree, Name) and tree.id in scope.operands:
        yield tree.id
    if isinstance(tree, Apply) and tree.fn.id == "present":
        return
    inner: Iterable[Item] = tree.items if isinstance(tree, Subscript) else parts(tree)
    for part in inner:
        yield from _bare_names(part, scope)


def _loose_names(s: Statement, scope: Scope) -> Iterator[str]:
    """Yield the names in a statement that may be meant as index variables."""
    for item in s.items or ():
        names = _names(item.name if isinstance(item, AxisRange) else item)
        yield from (n for n in names if n not in scope.operands and n not in scope.dims and n not in scope.attributes)
