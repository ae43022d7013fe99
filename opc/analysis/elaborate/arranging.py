"""What a spec says of axes by a list of them: which group they are, which operands are arranged, and what may not be said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.affine import Affine, Dim
from opc.ir.expr import ELLIPSIS
from opc.ir.op import Attribute, Group, Operand
from opc.ir.placing import is_between, split_inputs
from opc.spec.loader import Spec
from opc.spec.model import AttributeModel


class Arranging:
    """Checks the attributes of type `axes` and the bool attributes that keep axes, with the operands of one spec."""

    def __init__(self, spec: Spec, inputs: Sequence[Operand], found: Diagnostics) -> None:
        self.spec, self.inputs, self.found = spec, inputs, found
        self.named: str | None = None
        """The attribute that lists axes, once one is read."""
        self.slots: dict[str, tuple[str, int]] = {}
        """Attributes that place dimensions among the axes of one group: this, and which of an operand's dimensions it is."""
        self.added: dict[str, str] = {}
        """Attributes of type axis that place a dimension which no input has between two groups, with the dimension."""
        self.permuted: str | None = None
        """The input whose axes a permutation lists."""

    def find_slots(self) -> None:
        """Find the attributes of type axis whose dimensions stand all beside one group, in an input that is always given."""
        entries = self.spec.model.attributes
        placed = {name: e.dim for name, e in entries.items() if e.type.strip() == "axis" and e.dim is not None}
        for o in self.inputs:
            groups = [d.name for d in o.dims if isinstance(d, Group)]
            dims = [str(d) for d in o.dims if not isinstance(d, Group)]
            at_an_end = isinstance(o.dims[0], Group) or isinstance(o.dims[-1], Group) if o.dims else False
            if len(dims) > 1 == len(groups) and at_an_end and not o.optional and sorted(dims) == sorted(placed.values()):
                self.slots = {name: (groups[0], dims.index(dim)) for name, dim in placed.items()}
                return

    def is_refused(self, name: str, what: str) -> bool:
        """Record that an op may not have such an attribute, where its operands broadcast or its code is native."""
        at = self.spec.key_span("attributes", name)
        if self.spec.model.broadcast:
            self.found.error(
                f"an op whose operands broadcast has no {what}", at, "write what broadcasts as operands of their own"
            )
        elif self.spec.model.native:
            self.found.error(f"an op with native code has no {what}", at, "give the code a list, type: 'int[]'")
        return bool(self.spec.model.broadcast or self.spec.model.native)

    def axes(self, name: str, entry: AttributeModel) -> tuple[str, str] | None:
        """Return the group whose axes an attribute lists and the group of the others; None, recorded, where it is wrong."""
        spec, error = self.spec, self.found.error
        at = spec.key_span("attributes", name)
        if self.named is not None:
            error(f"'{self.named}' lists axes already", at, "an op has one attribute of type axes")
            return None
        self.named = name
        if entry.group is None:
            error(f"'{name}' does not say which group its axes are", at, "add group: R, for an input T[*K, *R]")
            return None
        if self.slots:
            first = next(iter(self.slots))
            error(f"'{first}' places a dimension among the axes of a group", at, "an op lists axes, or places dimensions")
            return None
        if self.is_refused(name, "attribute of axes"):
            return None
        where = spec.span("attributes", name, "group")
        having = [o for o in self.inputs if Group(entry.group) in o.dims]
        if not having:
            groups = list(dict.fromkeys(d.name for o in self.inputs for d in o.dims if isinstance(d, Group)))
            hint = did_you_mean(entry.group, groups) or f"declare an input as T[*K, *{entry.group}]"
            error(f"no input has the axis group '*{entry.group}'", where, hint)
            return None
        others = list(dict.fromkeys(d.name for o in having for d in o.dims if isinstance(d, Group) and d.name != entry.group))
        if not any(len(o.dims) == 2 and not o.optional for o in having) or len(others) != 1:
            hint = f"declare an input that is always given as T[*K, *{entry.group}], and use no third group beside it"
            error(f"'*{entry.group}' does not stand beside one other group", where, hint)
            return None
        return entry.group, others[0]

    def permutation(self, name: str, entry: AttributeModel) -> str | None:
        """Return the group whose axes an attribute permutes, and keep of which input; None, recorded, where it is wrong."""
        spec, error = self.spec, self.found.error
        at = spec.key_span("attributes", name)
        types = {n: e.type.strip() for n, e in spec.model.attributes.items()}
        other = next((n for n, t in types.items() if n != name and t in ("axis", "axes", "permutation")), None)
        if other is not None:
            if types[other] != "permutation" or list(types).index(other) < list(types).index(name):
                error(f"'{other}' says where axes stand already", at, "an op with a permutation has no other attribute of axes")
            return None
        if entry.group is None:
            error(f"'{name}' does not say which group it permutes", at, "add group: R, for an input T[*R]")
            return None
        if entry.of is None:
            error(f"'{name}' does not say whose axes it lists", at, "add of: x, for an input x: T[*R]")
            return None
        if self.is_refused(name, "permutation"):
            return None
        group = Group(entry.group)
        having = {o.name: o for o in self.inputs if group in o.dims}
        if not having:
            groups = list(dict.fromkeys(d.name for o in self.inputs for d in o.dims if isinstance(d, Group)))
            hint = did_you_mean(entry.group, groups) or f"declare an input as T[{group}]"
            error(f"no input has the axis group '{group}'", spec.span("attributes", name, "group"), hint)
            return None
        where = spec.span("attributes", name, "of")
        own = having.get(entry.of)
        if own is None:
            names = ", ".join(having)
            error(
                f"no input '{entry.of}' has the axes of '{group}'",
                where,
                did_you_mean(entry.of, having) or f"name one of {names}",
            )
            return None
        if own.dims != (group,) or own.optional:
            what = "may be absent" if own.optional else f"has axes beside those of '{group}'"
            error(f"'{entry.of}' {what}", where, f"declare it as T[{group}], always given")
            return None
        self.permuted = entry.of
        return entry.group

    def new_axes(self, outputs: Sequence[Operand]) -> bool:
        """Return whether outputs have the new axes that attributes place, and inputs the axes beside them; record where not."""
        before = len(self.found.items)
        listing = next((n for n, e in self.spec.model.attributes.items() if e.type.strip() in ("axes", "permutation")), None)
        for name, dim in self.added.items():
            at = self.spec.span("attributes", name, "dim")
            whole = next((o for o in outputs if is_between(o.dims, dim)), None)
            split = split_inputs(dim, self.inputs, outputs)
            if whole is None:
                has = any(Affine.of(Dim(dim)) in o.dims for o in self.inputs)
                message = f"'{dim}' does not stand between two axis groups" if has else f"no input has the dimension '{dim}'"
                shape = f"T[*A, {dim}, *B]"
                self.found.error(message, at, f"declare an input as {shape}, or an output {shape} beside an input T[*A, *B]")
            elif not any(not place.operand.optional for place in split):
                rest = ", ".join(str(d) for d in whole.dims if d != Affine.of(Dim(dim)))
                message = f"no input that is always given has the axes of '{whole.name}' beside '{dim}'"
                self.found.error(message, at, f"declare one as T[{rest}]")
            elif listing is not None:
                self.found.error(f"'{listing}' says where axes stand already", at, "an op lists axes, or places a new one")
        return len(self.found.items) == before

    def is_split(self, o: Operand, outputs: Sequence[Operand]) -> bool:
        """Whether an attribute places a new axis between two groups of an input."""
        return any(split_inputs(dim, [o], outputs) for dim in self.added.values())

    def whole(self, name: str, axes: Sequence[object], span: Span) -> None:
        """Record a default that does not name each of so many axes once."""
        rank = len(axes)
        if sorted(a + rank if a < 0 else a for a in axes if isinstance(a, int)) != list(range(rank)):
            hint = f"name each of the axes 0 to {rank - 1} once" if rank > 1 else "write [], all axes in reverse"
            self.found.error(f"the default of '{name}' is no permutation of {rank} axes", span, hint)

    def distinct(self, name: str, axes: Iterable[object], span: Span) -> None:
        """Record a default that names an axis twice."""
        listed = list(axes)
        if len(set(listed)) < len(listed):
            self.found.error(f"the default of '{name}' names an axis twice", span, "name each axis once: [0, 1]")

    def operands(self, attributes: Iterable[Attribute], outputs: Sequence[Operand]) -> None:
        """Check what keeps axes, and the operands that axes are found in."""
        self._slot_operands(outputs)
        attributes, taken = list(attributes), set[object]()
        for a in attributes:
            if a.among is not None and a.default in taken:
                self.found.error(
                    f"the default of '{a.name}' is that of another",
                    self.spec.span("attributes", a.name, "default"),
                    "give each an axis of its own, or leave the default out",
                )
            taken |= {a.default} if a.among is not None and a.default is not None else set()
        axes = next((a for a in attributes if a.picks is not None), None)
        if axes is None or axes.picks is None:
            for a in attributes:
                if a.keeps is not None and self.named is None:
                    where = self.spec.span("attributes", a.name, "keeps")
                    self.found.error(f"no attribute lists the axes of '*{a.keeps}'", where, "add one: {type: axes, group: R}")
            return
        picked, rest = axes.picks
        keeping = [a for a in attributes if a.keeps is not None]
        for a in keeping:
            where = self.spec.span("attributes", a.name, "keeps")
            if a.keeps != picked:
                self.found.error(
                    f"'{axes.name}' lists the axes of '*{picked}', not of '*{a.keeps}'", where, f"write keeps: {picked}"
                )
            elif a is not keeping[0]:
                self.found.error(
                    f"'{keeping[0].name}' keeps '*{picked}' already", where, f"let '{keeping[0].name}' tell it alone"
                )
        for o in (*self.inputs, *outputs):
            groups = {d.name for d in o.dims if isinstance(d, Group)}
            if {picked, rest} <= groups and len(o.dims) > 2:
                hint = f"write T[{_star(rest)}, {_star(picked)}], or two operands"
                self.found.error(f"'{o.name}' has axes beside those that '{axes.name}' lists and the others", o.span, hint)
            elif keeping and rest in groups and picked not in groups and len(o.dims) > 1:
                hint = f"write T[{_star(rest)}]"
                self.found.error(f"'{o.name}' has axes beside those between which '{keeping[0].name}' keeps others", o.span, hint)

    def _slot_operands(self, outputs: Sequence[Operand]) -> None:
        """Check the operands with a dimension that is placed among the axes of a group."""
        if not self.slots:
            return
        (rest,) = {group for group, _ in self.slots.values()}
        placed = {e.dim for name, e in self.spec.model.attributes.items() if name in self.slots}
        for o in (*self.inputs, *outputs):
            own = [str(d) for d in o.dims if not isinstance(d, Group)]
            whole = sorted(own) == sorted(map(str, placed)) and len(own) == len(o.dims) - 1
            at_an_end = whole and Group(rest) in (o.dims[0], o.dims[-1])
            if Group(rest) in o.dims and placed & set(own) and not at_an_end:
                names = " and ".join(f"'{name}'" for name in self.slots)
                dims = ", ".join(e.dim or "" for name, e in self.spec.model.attributes.items() if name in self.slots)
                hint = f"write T[{_star(rest)}, {dims}], where any of these may stand in another's place"
                self.found.error(f"'{o.name}' has not just the axes that {names} place, and '{_star(rest)}'", o.span, hint)


def _star(group: str) -> str:
    return "..." if group == ELLIPSIS else f"*{group}"
