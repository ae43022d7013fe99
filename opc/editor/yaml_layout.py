"""Lines, brackets, folds and quotes of a spec's YAML, written by ruamel.yaml.

It reads a text into nodes and writes them again, with comments and the spelling of every scalar as they were: no value is ever
constructed. Before that each node is told how to be written.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.emitter import Indents, RoundTripEmitter
from ruamel.yaml.events import ScalarEvent
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from opc.editor.body_layout import laid_out as body_laid_out
from opc.records import dataclass

WIDTH = 130
"""Columns of a line, as far as what stands in it can be broken."""
BODIES = (("kernel",), ("gradient", "body"))
"""Where bodies stand in a spec."""
_UNBROKEN = 1 << 20


class _Folded(str):
    """The lines of a folded text as they stand in the file, which are written like those of a literal one."""


class _Indents(Indents):
    def seq_flow_align(self, seq_indent: int, column: int, pre_comment: bool | None = False) -> int:
        # Brackets behind a dash are not set in columns.
        return super().seq_flow_align(seq_indent, column, pre_comment) if pre_comment else 0


class _Emitter(RoundTripEmitter):
    """Writes nodes with every text on the lines it had, and numbers in lists on lines of at most WIDTH columns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.indents = _Indents()

    def write_folded(self, text: Any, comment: Any) -> None:
        if not isinstance(text, _Folded):
            super().write_folded(text, comment)
            return
        start = self.stream.tell()
        self.write_literal(text, comment)
        written = self.stream.getvalue()[start:]
        self.stream.seek(start)
        self.stream.write(written.replace("|", ">", 1))

    def write_plain(self, text: Any, split: Any = True) -> None:
        super().write_plain(text, False)

    def write_single_quoted(self, text: Any, split: Any = True) -> None:
        super().write_single_quoted(text, False)

    def write_double_quoted(self, text: Any, split: Any = True) -> None:
        super().write_double_quoted(text, False)

    def expect_block_sequence_item(self, first: bool = False) -> None:
        super().expect_block_sequence_item(first)
        # Left over from a comment between two items, it would join the first two lines of the next one.
        self.no_newline = False

    def expect_flow_sequence_item(self) -> None:
        event = self.event
        beyond = isinstance(event, ScalarEvent) and self.column + len(event.value) + 3 > WIDTH
        self.best_width = 0 if beyond else _UNBROKEN
        super().expect_flow_sequence_item()
        self.best_width = _UNBROKEN


def written(text: str) -> str:
    """Return YAML text with the lines, brackets, folds and quotes that a spec has; blank lines and keys stay where they are.

    Raises:
        YAMLError: when ruamel.yaml can't read the text, or can't write it.
    """
    reader = YAML(typ="rt")
    reader.Emitter = _Emitter
    reader.width = _UNBROKEN
    reader.indent(mapping=2, sequence=4, offset=2)
    root = reader.compose(text)
    root.flow_style = False
    _Shaping(text.replace("\r\n", "\n").split("\n")).shape(root, (), 0, 0)
    out = io.StringIO()
    reader.serialize(root, out)
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class _Shaping:
    """Decides how each node is written: collections in brackets or on lines of their own, texts in quotes or folded."""

    lines: Sequence[str]

    def shape(self, node: Node, path: tuple[str, ...], indent: int, column: int) -> None:
        """Shape a node that begins in a column; what it holds, where on lines of its own, stands at `indent`."""
        match node:
            case ScalarNode():
                self.scalar(node, path, indent, column)
            case MappingNode():
                if self.on_lines(node, column):
                    for key, value in node.value:
                        self.quotes(key)
                        self.shape(value, (*path, key.value), indent + 2, indent + _length(key) + 2)
            case SequenceNode():
                if self.on_lines(node, column):
                    # A dash, and what stands behind it.
                    for item in node.value:
                        self.shape(item, (*path, "-"), indent + 2, indent + 2)

    def on_lines(self, node: CollectionNode, column: int) -> bool:
        """Return whether a collection stands on lines of its own; what it holds is shaped where it does not."""
        if node.flow_style and node.value and (_has_comments(node) or (column + _length(node) > WIDTH and not _is_numbers(node))):
            node.flow_style = False
        if node.flow_style:
            for inner in _inside(node):
                if isinstance(inner, ScalarNode):
                    self.quotes(inner)
        return not node.flow_style

    def scalar(self, node: ScalarNode, path: tuple[str, ...], indent: int, column: int) -> None:
        if node.style == "|":
            if path in BODIES:
                node.value = body_laid_out(node.value)
            return
        if node.style == ">":
            raw = self.raw(node)
            if raw is not None:
                node.value = _Folded(_filled(raw, WIDTH - indent) if path[-1:] == ("doc",) else raw)
            return
        self.quotes(node)
        text = node.value
        if path[-1:] != ("doc",) or column + _length(node) <= WIDTH or node.comment:
            return
        if " " in text and text == text.strip() and text.isprintable():
            node.style = ">"
            node.value = _Folded(_filled(text, WIDTH - indent))

    def quotes(self, node: Node) -> None:
        """Put a text into single quotes where its double ones are not needed."""
        if isinstance(node, ScalarNode) and node.style == '"':
            source = self.lines[node.start_mark.line][node.start_mark.column :]
            if source.startswith(f'"{node.value}"') and not {"'", "\\"} & set(node.value):
                node.style = "'"

    def raw(self, node: ScalarNode) -> str | None:
        """Return the lines of a folded text less their indentation; None where its header tells that."""
        header = self.lines[node.start_mark.line][node.start_mark.column :].partition("#")[0].strip()
        first = node.start_mark.line + 1
        if header not in (">", ">-", ">+"):
            return None
        found: list[str] = []
        margin: int | None = None
        for line in self.lines[first:]:
            inner = line.lstrip(" ")
            if inner and margin is None:
                margin = len(line) - len(inner)
            if inner and (margin == 0 or len(line) - len(inner) < (margin or 0)):
                break
            found.append(line[margin or 0 :])
        text = "\n".join(found)
        bare = text.rstrip("\n")
        return {">": bare + "\n", ">-": bare, ">+": text + "\n"}[header]


def _filled(text: str, width: int) -> str:
    """Return a folded text, of which paragraphs with lines beyond a width are broken anew; no blank but a single one is."""
    made: list[str] = []
    for lines in _paragraphs(text.split("\n")):
        if all(len(line) <= width for line in lines) or lines[0][:1].isspace():
            made += lines
            continue
        words = " ".join(lines).split(" ")
        current = words[0]
        for before, word in pairwise(words):
            if before and word and len(current) + 1 + len(word) > width:
                made.append(current)
                current = word
            else:
                current += f" {word}"
        made.append(current)
    return "\n".join(made)


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines that a folded text joins, and the others one by one."""
    current: list[str] = []
    for line in lines:
        if line and not line[0].isspace():
            current.append(line)
            continue
        if current:
            yield current
        current = []
        yield [line]
    if current:
        yield current


def _inside(node: Node) -> Iterator[Node]:
    """Yield the nodes inside of a collection, at any depth."""
    match node:
        case MappingNode():
            parts = [part for pair in node.value for part in pair]
        case SequenceNode():
            parts = node.value
        case _:
            return
    for part in parts:
        yield part
        yield from _inside(part)


def _has_comments(node: Node) -> bool:
    return any(inner.comment for inner in _inside(node))


def _is_numbers(node: Node) -> bool:
    """Return whether a node is a list of numbers or other words, which is broken into lines where it does not fit in one."""
    return isinstance(node, SequenceNode) and all(
        isinstance(item, ScalarNode) and not item.style and not any(map(str.isspace, item.value)) for item in node.value
    )


def _length(node: Node) -> int:
    """Return the length of a node that is written on one line."""
    match node:
        case MappingNode():
            return 2 + sum(_length(key) + 2 + _length(value) for key, value in node.value) + 2 * max(len(node.value) - 1, 0)
        case SequenceNode():
            return 2 + sum(_length(item) for item in node.value) + 2 * max(len(node.value) - 1, 0)
        case ScalarNode(style="'"):
            return len(node.value) + 2 + str(node.value).count("'")
        case ScalarNode(style='"'):
            return len(node.value) + 2 + str(node.value).count("\\")
        case _:
            return len(node.value)
