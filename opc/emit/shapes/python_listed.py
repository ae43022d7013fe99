"""What a generated `shape.py` says of axes that an attribute lists; see `opc.ir.arrangement`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from opc.analysis.shapes.steps import Among, Around, Bound, MatchGroup, MatchOperand, ShapePlan, symbol_text
from opc.emit.python.layout import bracketed
from opc.emit.python.text import quoted
from opc.ir.arrangement import arrangement
from opc.ir.op import DimSpec, Group, Op, Operand
from opc.names import in_words


class ListedAxes(ABC):
    """The part of `ShapeFunctions` for an op with an attribute that lists axes."""

    op: Op
    plan: ShapePlan
    defined: set[str]
    own: str
    """The variable with what a call has told so far."""

    @abstractmethod
    def _call(self, method: str) -> str:
        """Return the begin of a call's method being called."""

    @abstractmethod
    def _entry(self, operand: Operand, i: int, dim: DimSpec) -> str:
        """Return the text of one entry of an output's shape."""

    @abstractmethod
    def _local(self, wanted: str) -> str:
        """Return the local variable of a symbol."""

    def begin_listed(self) -> None:
        """Find out what is known of listed axes from the start."""
        self.arrangement = arrangement(self.op)
        self.listed = self._local("listed") if self.arrangement is not None else "listed"
        """The local variable of the axes that an attribute lists."""
        self.told = self._first_told()

    def _first_told(self) -> Bound:
        """Return whether the first operand that tells where listed axes stand does so in all calls; NO where no input does."""
        for step in self.plan.steps:
            lengths = [a.length for a in step.axes if isinstance(a, MatchGroup)] if isinstance(step, MatchOperand) else []
            if any(isinstance(length, Among | Around) for length in lengths):
                sure = isinstance(step, MatchOperand) and not step.operand.optional and isinstance(lengths[0], Among)
                return Bound.YES if sure else Bound.MAYBE
        return Bound.NO if self.arrangement is None else Bound.MAYBE

    def _arranged(self, axis: MatchGroup, length: Among | Around, operand: Operand, margin: int, first: bool) -> Iterator[str]:
        """Yield what matches a group of a mixed or thinned operand."""
        text, of = said(symbol_text(axis.group)), operand.name
        if isinstance(length, Among):
            if first and self.arrangement is not None and not (self.arrangement.slots or self.arrangement.permutes):
                yield from self._list(of, f"len({of})", margin)
            sizes = f"{self._call('among')}{of}, {self.listed}, {length.listed})"
            if self.arrangement is not None and self.arrangement.permutes:
                sizes = f"{self._call('permuted')}{of}, {self.listed})"
            yield bracketed(self._call("group"), [text, said(of), sizes], indent=margin)
            return
        space = " " * margin
        yield f"{space}if {length.keeps}:"
        yield from self._list(of, f"len({of})", margin + 4)
        yield bracketed(f"{of} = {self._call('around')}", [said(of), of, self.listed], indent=margin + 4)
        yield bracketed(self._call("group"), [text, said(of), of], indent=margin)

    def _placed(self, step: MatchOperand, margin: int) -> Iterator[str]:
        """Yield what tells the axes that attributes place, or refuses a mixed operand of another rank than the one that told."""
        how, of = self.arrangement, step.operand.name
        if how is None or not (how.slots or how.permutes) or not how.is_mixed(step.operand):
            return
        yield from self._list(of, f"len({of})", margin)
        if any(isinstance(axis, MatchGroup) and axis.known is not Bound.NO for axis in step.axes):
            group = said(symbol_text((how.picked if how.permutes else how.rest, None)))
            yield bracketed(self._call("ranked"), [said(of), of, group, str(len(how.slots))], indent=margin)

    def _list(self, operand: str, rank: str, margin: int, given: str = "") -> Iterator[str]:
        """Yield what counts listed axes from the front, where that is not done, and `given` holds."""
        how = self.arrangement
        assert how is not None, "it has an attribute of axes"
        if self.listed in self.defined:
            return
        if self.told is Bound.YES:
            self.defined.add(self.listed)
        else:
            yield f"{' ' * margin}if {self.listed} is None{f' and {given}' if given else ''}:"
            margin += 4
        if how.slots:
            pairs = ", ".join(f"{said(name)}: {name}" for name in how.attributes)
            arguments = [f"{{{pairs}}}", said(operand), rank]
            yield bracketed(f"{self.listed} = {self._call('places')}", arguments, indent=margin)
            return
        arguments = [said(how.axes), how.axes, said(operand), rank]
        method = "permute" if how.permutes else "list"
        yield bracketed(f"{self.listed} = {self._call(method)}", arguments, indent=margin)

    def _lists(self, operand: str, given: str) -> Iterator[str]:
        """Yield what holds the number of listed axes to that of the group which stands there, where no input tells both."""
        how = self.arrangement
        if how is None or not how.is_untold(self.op):
            return
        if given:
            yield f"    if {given}:"
        arguments = [said(how.axes), self.listed, said(operand), said(f"*{how.picked}"), self._group(how.picked)]
        yield bracketed(self._call("lists"), arguments, indent=8 if given else 4)

    def arranged_rank(self) -> str:
        """Return the expression of the number of axes of mixed operands."""
        how = self.arrangement
        assert how is not None, "it has an attribute of axes"
        if how.slots:
            return f"len({self._group(how.rest)}) + {len(how.slots)}"
        names = (how.picked,) if how.permutes else (how.rest, how.picked)
        return " + ".join(f"len({self._group(name)})" for name in names)

    def _group(self, name: str) -> str:
        return f"{self.own}.groups[{said(symbol_text((name, None)))}]"

    def _mixed(self, operand: Operand) -> str | None:
        """Return the shape of a mixed or thinned output; None of any other."""
        how = self.arrangement
        if how is not None and how.permutes and operand.permuted:
            return f"{self._call('restored')}{self._group(how.picked)}, {self.listed})"
        if how is not None and how.is_mixed(operand):
            rest = self._group(how.rest)
            if how.slots:
                own = f"({', '.join(self._entry(operand, i, d) for i, d in enumerate(operand.dims) if not isinstance(d, Group))})"
            else:
                own = self._group(how.picked)
            return f"{self._call('mixed')}{rest}, {own}, {self.listed})"
        if how is not None and how.is_thinned(operand):
            rest = self._group(how.rest)
            return f"({self._call('spread')}{rest}, {self.listed}) if {how.keeps} else {rest})"
        return None


def said(text: str) -> str:
    """Return a part of a message as a string literal, with the names in it as the spec spells them."""
    return quoted(in_words(text))
