"""The lines of a generated function over arrays: its local variables, and expressions that get names where they are long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opc.emit.arrays.frames import ATOM, LocalNames, PythonText

LIMIT = 60
"""The longest text of an expression; beyond it, subexpressions get names of their own."""

SHORT = 8
"""A text that gains nothing from a name."""


class Lines:
    """The lines of one function."""

    def __init__(self, reserved: Sequence[str]) -> None:
        self.names = LocalNames(reserved)
        self.lines: list[str] = []
        self.blocks: list[dict[object, str]] = [{}]
        self.uses: set[str] = set()
        """The functions and modules that the text names, which a generated module imports or carries along."""

    def using(self, name: str) -> str:
        """Return the name of a function or module, which the text needs from here on."""
        self.uses.add(name)
        return name

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        self.lines.append(text)

    def capture(self, write: Callable[[], PythonText]) -> tuple[list[str], PythonText]:
        """Return the lines that `write` adds, not added, and its result."""
        outer, self.lines = self.lines, []
        self.blocks.append({})
        try:
            result = write()
            return self.lines, result
        finally:
            self.lines = outer
            self.blocks.pop()

    def named(self, value: PythonText, wanted: str | None = None) -> PythonText:
        """Put a value into a local variable, unless it is one."""
        if wanted is None and value.text.isidentifier():
            return value
        name = self.names.fresh(wanted)
        self.line(f"{name} = {value.text}")
        return PythonText(name, ATOM, value.support)

    def named_once(self, text: str, wanted: str | None = None) -> str:
        """Put a text into a local variable, or return that which holds it already."""
        for block in self.blocks:
            if text in block:
                return block[text]
        self.blocks[-1][text] = self.named(PythonText(text), wanted).text
        return self.blocks[-1][text]

    def composed(self, parts: Sequence[PythonText], build: Callable[[Sequence[PythonText]], PythonText]) -> PythonText:
        """Return what `build` makes of some values, of which the longest are named until the result fits a line."""
        parts = list(parts)
        while True:
            lines, block = len(self.lines), dict(self.blocks[-1])
            result = build(parts)
            # A name gets no shorter by another name.
            left = [i for i, part in enumerate(parts) if len(part.text) > SHORT and not part.text.isidentifier()]
            if len(result.text) <= LIMIT or not left:
                return result
            # What a rejected text was built on is not needed.
            del self.lines[lines:]
            self.blocks[-1] = block
            longest = max(left, key=lambda i: len(parts[i].text))
            parts[longest] = self.named(parts[longest])

    def either(self, condition: str, then: tuple[list[str], PythonText], other: tuple[list[str], PythonText]) -> PythonText:
        """Write one or the other way to compute a value, as a condition says; return the variable that holds it."""
        name = self.names.fresh()
        for head, (lines, value) in ((f"if {condition}:", then), ("else:", other)):
            self.lines += [head, *(f"    {line}" for line in (*lines, f"{name} = {value.text}"))]
        return PythonText(name, ATOM, then[1].support & other[1].support)
