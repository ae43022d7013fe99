"""Bad specs with marks around what each diagnostic must point at."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPEN, CLOSE = "⟦", "⟧"

BASE = {
    "op": "foo",
    "domain": "tests",
    "version": "1",
    "doc": "A test.",
    "types": "{T: floating}",
    "inputs": "{x: 'T[...]'}",
    "outputs": "{y: 'T[...]'}",
    "kernel": "y = x",
}


@dataclass(frozen=True)
class Case:
    """A spec whose marked stretches must each get a diagnostic with the message that stands beside it, and no other error."""

    text: str
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return re.sub(r"[^a-zA-Z0-9]+", "-", self.messages[0])[:70].strip("-")


def file(text: str, *messages: str) -> Case:
    """Return a whole file."""
    return Case(text, messages)


def case(fragment: str, *messages: str, without: tuple[str, ...] = ()) -> Case:
    """Return a spec of these lines, and of the base spec's lines for the keys that they lack."""
    present = re.findall(r"^⟦?([a-z_]+)⟧?:", fragment, re.MULTILINE)
    kept = [f"{key}: {value}" for key, value in BASE.items() if key not in present and key not in without]
    return Case("\n".join([*kept, fragment]) + "\n", messages)


def kernel(text: str, *messages: str, **sections: str) -> Case:
    """Return a spec with this kernel as a block scalar, and with other sections replaced."""
    block = "".join(f"\n  {line}" for line in text.split("\n"))
    return case("\n".join([*(f"{key}: {value}" for key, value in sections.items()), f"kernel: |{block}"]), *messages)


def unmark(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without marks, and the stretches that were marked, in order of their beginning."""
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    starts: list[int] = []
    for c in text:
        if c == OPEN:
            starts.append(len(plain))
        elif c == CLOSE:
            spans.append((starts.pop(), len(plain)))
        else:
            plain.append(c)
    return "".join(plain), sorted(spans)


def place(text: str, index: int) -> tuple[int, int]:
    """Return the 1-based line and column of an index."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
