"""The lines of a spec file: which of them are comments, how these are indented, and the order of the keys at the top."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opc.diagnostics import Diagnostic, Diagnostics, Source, SpecError
from opc.records import dataclass
from opc.spec.model import SpecModel
from opc.spec.text import span_at
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, parse_yaml

KEYS = tuple(SpecModel.model_fields)
"""The keys of a spec in the order they stand in."""


def tree(text: str, name: str = "<text>") -> MappingNode:
    """Return the tree of a spec's YAML.

    Raises:
        SpecError: when the text is no YAML, or no mapping.
    """
    source, found = Source(name, text), Diagnostics()
    root = parse_yaml(source, found)
    found.raise_errors()
    if not isinstance(root, MappingNode):
        hint = "begin with `op: NAME`"
        raise SpecError([Diagnostic("a spec is a mapping of keys to values", span_at(source, 0, 0), hint)])
    return root


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file.

    In `masked` every character of a scalar is a dot, so that a # is a comment. `inside` are the numbers, from 0, of the lines
    that a scalar of several lines goes through.
    """

    text: Sequence[str]
    masked: Sequence[str]
    inside: frozenset[int]

    @staticmethod
    def of(text: str) -> Lines:
        """Return the lines of a spec's text.

        Raises:
            SpecError: when the text is no YAML of a spec.
        """
        masked = list(text)
        inside: set[int] = set()
        for scalar in _scalars(tree(text)):
            if not scalar.text.positions:
                continue
            first, last = scalar.text.positions[0], scalar.text.positions[-1]
            masked[first : last + 1] = ("\n" if c == "\n" else "." for c in text[first : last + 1])
            if "\n" in text[first:last]:
                inside.update(range(text.count("\n", 0, first), text.count("\n", 0, last) + 1))
        return Lines(text.split("\n"), "".join(masked).split("\n"), frozenset(inside))

    def comments(self) -> Iterator[tuple[int, str]]:
        """Yield the number of the line, from 0, and the text of each comment; those of bodies are part of these."""
        yield from ((i, line[line.index("#") :].strip()) for i, line in enumerate(self.masked) if "#" in line)

    def is_free(self, i: int) -> bool:
        """Return whether a line holds nothing but a comment, or nothing at all."""
        return i not in self.inside and not self.masked[i].partition("#")[0].strip()

    def margin(self, i: int) -> int:
        """Return how far a line is indented."""
        return len(self.text[i]) - len(self.text[i].lstrip(" "))

    def is_on_what_is_above(self, i: int) -> bool:
        """Return whether a comment on a line of its own is indented more than what stands behind it."""
        below = next((j for j in range(i + 1, len(self.text)) if not self.is_free(j)), None)
        return self.margin(i) > (0 if below is None else self.margin(below))


def _scalars(root: Node) -> Iterator[Scalar]:
    waiting = [root]
    while waiting:
        match waiting.pop():
            case Scalar() as scalar:
                yield scalar
            case SequenceNode() as sequence:
                waiting += sequence.items
            case MappingNode() as mapping:
                waiting += (node for entry in mapping.entries for node in entry)


def tidied(text: str, source: str) -> str:
    """Return a text with at most one blank line between others, none at either end, and each comment where it belongs.

    A comment on a line of its own is indented as what stands behind it, or before it where it was indented more than that in the
    `source` that the text was made of; two blanks stand before one at the end of a line.
    """
    lines = Lines.of(text)
    old = lines if source == text else Lines.of(source)
    above: dict[str, list[bool]] = {}
    for i, comment in old.comments():
        if old.is_free(i):
            above.setdefault(comment, []).append(old.is_on_what_is_above(i))
    kept: list[str] = []
    margin = 0
    for i, line in enumerate(lines.text):
        if not lines.is_free(i):
            margin = margin if i in lines.inside else lines.margin(i)
            at = lines.masked[i].find("#")
            kept.append(line if at < 0 else f"{line[:at].rstrip()}  {line[at:].rstrip()}")
        elif comment := line.strip():
            below = next((lines.margin(j) for j in range(i + 1, len(lines.text)) if not lines.is_free(j)), 0)
            first = above.get(comment) or [False]
            kept.append(" " * (margin if first.pop(0) else below) + comment)
        elif kept and kept[-1].strip():
            kept.append("")
    while kept and not kept[-1] and len(lines.text) - 1 not in lines.inside:
        kept.pop()
    return "\n".join(kept) + "\n"


def unmarked(text: str) -> str:
    """Return a text without the marks --- and ... of where it begins and ends, which say nothing; comments beside them stay.

    That of a text with directives, such as %YAML, says where these end.
    """
    lines = Lines.of(text)
    held = [i for i in range(len(lines.text)) if not lines.is_free(i)]
    rows = [*lines.text]
    for i, mark in ((held[0], "---"), (held[-1], "...")):
        bare, _, comment = lines.masked[i].partition("#")
        if i not in lines.inside and bare.strip() == mark:
            rows[i] = f"#{comment}" if comment else ""
    return "\n".join(rows)


def outdented(text: str) -> str:
    """Return a text in which comments right behind a block of text stand as far left as what follows, where they are kept."""
    lines = Lines.of(text)
    rows, end = [*lines.text], len(lines.text)
    for start in (i for i in range(end) if _HEADER.search(lines.masked[i].partition("#")[0])):
        first = next((i for i in range(start + 1, end) if lines.masked[i].strip(" .")), end)
        behind = next((i for i in range(first, end) if not lines.is_free(i)), end)
        margin = " " * (lines.margin(behind) if behind < end else 0)
        rows[first:behind] = (f"{margin}{row.lstrip()}" if row.strip() else row for row in rows[first:behind])
    return "\n".join(rows)


_HEADER = re.compile(r"[|>][-+\d]*\s*$")


def in_order(text: str) -> str:
    """Return a text with its keys in the order of KEYS, unknown ones last, each with the comments right above it.

    Those that a file begins with are its own.
    """
    root = tree(text)
    lines = text.rstrip("\n").split("\n")
    starts = []
    for i, (key, _) in enumerate(root.entries):
        start = key.span.line - 1
        while start > 0 and lines[start - 1].startswith("#"):
            start -= 1
        # What the file begins with, without a blank line behind it, is the file's.
        starts.append(start if i or start else key.span.line - 1)
    # Comments at the end belong to no key.
    end = len(lines)
    while end > starts[-1] + 1 and (lines[end - 1].startswith("#") or not lines[end - 1]):
        end -= 1
    sections = [lines[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    names = [key.text.value for key, _ in root.entries]
    order = sorted(range(len(names)), key=lambda i: KEYS.index(names[i]) if names[i] in KEYS else len(KEYS))
    chosen = [lines[: starts[0]], *(sections[i] for i in order), lines[end:]]
    return "\n".join(line for section in chosen for line in section) + "\n"
