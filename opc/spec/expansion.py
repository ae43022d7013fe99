"""The texts of a spec of several ranks or counts, each written out as what stands there is."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opc.diagnostics import Diagnostics
from opc.records import dataclass, replace
from opc.spec.copies import Copies, tokens, words
from opc.spec.expander import Expander, Named
from opc.spec.text import SourceText


@dataclass(frozen=True, slots=True)
class Texts:
    """Writes texts out; mistakes are recorded."""

    copies: Copies
    found: Diagnostics

    def body(self, text: SourceText, outputs: Collection[str]) -> SourceText:
        """Return a body, which assigns these outputs. A statement that assigns another name, and has a group, a list,
        one of several operands or such a name beside all stars, is one of each."""
        several = frozenset[str]()
        while True:
            writer = Expander(text, replace(self.copies, temporaries=several), self.copies.indices, self.found, outputs=outputs)
            more = {writer.text_of(s.start) for s in writer.statements() if any(writer.is_bare(i) for i in s)}
            more -= {*outputs, *self.copies.packs}
            if more <= several:
                writer.refuse_assigned_groups()
                taken = {copy: name for name in several for copy in self.copies.each(name)}
                for start, name in words(text.value):
                    if name in taken:
                        span = text.span(start, start + len(name))
                        self.found.error(f"'{name}' is the '{taken[name]}' of an {self.copies.of}", span, "take another name")
                return _joined(text, writer.body())
            several |= more

    def shape(self, text: SourceText, copy: int | None = None, of: str = "") -> SourceText:
        """Return the type and shape of an operand, of which this is a copy where there are several; else it is called `of`."""
        return self._written(text, self.copies.sizes, copy, of)

    def sizes(self, text: SourceText) -> SourceText:
        """Return an expression of sizes and attributes."""
        return self._written(text, self.copies.sizes)

    def size(self, text: SourceText, copy: int) -> SourceText:
        """Return an expression of sizes and attributes for one axis, or one operand."""
        return self._written(text, self.copies.sizes, copy)

    def reference(self, text: SourceText) -> SourceText:
        """Return a call of something else, which has lists as Python does: `*padding` is its elements."""
        return self._written(text, None)

    def list_type(self, text: SourceText) -> SourceText:
        """Return the type of an attribute: `int[*S]` with the number of axes, `int[*x]` with that of operands."""
        cut = tokens(text.value)
        for star, name, close in zip(cut, cut[1:], cut[2:]):
            if star.text == "*" and self.copies.counts(name.text) and close.text == "]":
                return text.replace(star.start, name.end, str(self.copies.number))
        return text

    def is_several(self, text: str) -> bool:
        """Whether an expression names a group, a list or an operand of several beside any `*(...)`: it is one for each."""
        writer = Expander(SourceText.of(text, ""), self.copies, self.copies.sizes, Diagnostics())
        return any(writer.is_bare(i) for i in range(len(writer.tokens)))

    def listed(self, text: str) -> str | None:
        """Return a list or group that an expression names as a whole beside any `*(...)`; None where it names none."""
        writer = Expander(SourceText.of(text, ""), self.copies, self.copies.sizes, Diagnostics())
        names = (writer.text_of(i) for i in range(len(writer.tokens)) if writer.is_bare(i))
        return next((name for name in names if name in self.copies.lists or name in self.copies.groups), None)

    def count_axes(self, text: str) -> int | None:
        """Return how many axes an operand of this type has; None where that is the same for all ranks, or open."""
        if not self.copies.names_group(text):
            return None
        return count_axes(Texts(self.copies, Diagnostics()).shape(SourceText.of(text, "")).value)

    def _written(self, text: SourceText, named: Named | None, copy: int | None = None, of: str = "") -> SourceText:
        return _joined(text, Expander(text, self.copies, named, self.found, of=of).whole(copy))


def count_axes(kind: str) -> int | None:
    """Return how many axes an operand of a type that is written out has; None where it has groups of axes."""
    writer = Expander(SourceText.of(kind, ""), Copies(0), None, Diagnostics())
    inside = [i for i, opener in enumerate(writer.opener) if opener >= 0 and writer.opener[opener] < 0]
    if any(writer.is_star(i) or writer.text_of(i) == "." for i in inside):
        return None
    return 1 + sum(writer.text_of(i) == "," for i in inside) if inside else 0


def _joined(whole: SourceText, parts: Iterator[SourceText]) -> SourceText:
    made = list(parts)
    positions = tuple(p for part in made for p in part.positions)
    return SourceText("".join(part.value for part in made), whole.source, positions, whole.begin)
