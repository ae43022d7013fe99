"""What a spec says of axes by a list of them: which group they are, which operands are arranged, and what may not be said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.expr import ELLIPSIS
from opc.ir.op import Attribute, Group, Operand
from opc.spec.loader import Spec
from opc.spec.model import AttributeModel


class Arranging:
    """Checks the attributes of type `axes` and the bool attributes that keep axes, with the operands of one spec."""

    def __init__(self, spec: Spec, inputs: Sequence[Operand], found: Diagnostics) -> None:
        self.spec, self.inputs, self.found = spec, inputs, found
        self.named: str | None = None
        """The attribute that lists axes, once one is read."""

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
        if spec.model.broadcast:
            error("an op whose operands broadcast has no attribute of axes", at, "write what broadcasts as operands of their own")
            return None
        if spec.model.native:
            error("an op with native code has no attribute of axes", at, "give the code a list, type: 'int[]'")
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

    def distinct(self, name: str, axes: Iterable[object], span: Span) -> None:
        """Record a default that names an axis twice."""
        listed = list(axes)
        if len(set(listed)) < len(listed):
            self.found.error(f"the default of '{name}' names an axis twice", span)

    def operands(self, attributes: Iterable[Attribute], outputs: Sequence[Operand]) -> None:
        """Check what keeps axes, and the operands that axes are found in."""
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
                self.found.error(f"'{keeping[0].name}' keeps '*{picked}' already", where)
        for o in (*self.inputs, *outputs):
            groups = {d.name for d in o.dims if isinstance(d, Group)}
            if {picked, rest} <= groups and len(o.dims) > 2:
                hint = f"write T[{_star(rest)}, {_star(picked)}], or two operands"
                self.found.error(f"'{o.name}' has axes beside those that '{axes.name}' lists and the others", o.span, hint)
            elif keeping and rest in groups and picked not in groups and len(o.dims) > 1:
                hint = f"write T[{_star(rest)}]"
                self.found.error(f"'{o.name}' has axes beside those between which '{keeping[0].name}' keeps others", o.span, hint)


def _star(group: str) -> str:
    return "..." if group == ELLIPSIS else f"*{group}"
