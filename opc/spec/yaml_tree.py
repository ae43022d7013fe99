"""YAML text -> a tree of nodes with places, without constructing any object that YAML asks for.

Scalars are read by the core schema of YAML 1.2, plus numbers as everybody writes them (`1e-5`). What YAML 1.1 and 1.2 read
differently (`no`, `on`, `010`, `1_000`) is refused with the spelling that all read alike. Aliases, tags, deep nesting and huge
files are refused: a spec needs none of them and each is a way to make a reader explode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import yaml

from opc.diagnostics import Diagnostics, Source, Span
from opc.records import dataclass
from opc.spec.text import SourceText, align, span_at

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 50_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar with its text; `plain` when it stands without quotes or block header, and so may be a number, bool or null."""

    text: SourceText
    plain: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A YAML sequence."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A YAML mapping; keys are scalars."""

    entries: tuple[tuple[Scalar, Node], ...]
    span: Span


Node: TypeAlias = Scalar | SequenceNode | MappingNode

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEX = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")
_AMBIGUOUS_WORD = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_AMBIGUOUS_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9]+_[0-9_]*|[0-9][0-9_]*(:[0-5]?[0-9])+)")
# What escapes in quotes can spell, and no string of C or file in UTF-8 can hold.
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")


def ambiguity(scalar: Scalar) -> tuple[str, str] | None:
    """Return the message and hint for a plain scalar that YAML versions read differently, else None."""
    value = scalar.text.value
    if not scalar.plain:
        return None
    if _AMBIGUOUS_WORD.fullmatch(value):
        truth = "true" if value.lower() in ("yes", "on") else "false"
        message = f"YAML 1.1 reads {value} as a boolean, YAML 1.2 as a text"
        return message, f"write '{value}' in quotes for the text, {truth} for the boolean"
    if _AMBIGUOUS_NUMBER.fullmatch(value):
        message = f"YAML 1.1 and YAML 1.2 read {value} differently"
        digits = value.replace("_", "").lstrip("+-0") or "0"
        return message, f"write '{value}' in quotes for the text" + (f", or {digits}" if digits.isdigit() else "")
    return None


def scalar_value(scalar: Scalar) -> str | int | float | bool | None:
    """Return the value of a scalar by the core schema; everything that is no number, bool or null is a string."""
    value = scalar.text.value
    if not scalar.plain:
        return value
    if value in ("", "~", "null", "Null", "NULL"):
        return None
    if value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return value.lower() == "true"
    # int() refuses more than 4300 digits, and nothing here needs more than int64's 19.
    if _INT.fullmatch(value):
        return int(value) if len(value) <= 100 else float(value)
    if _HEX.fullmatch(value):
        return int(value, 0)
    if _FLOAT.fullmatch(value):
        return float(value)
    if _INFINITE.fullmatch(value):
        return float(value.replace(".", ""))
    if _NAN.fullmatch(value):
        return float("nan")
    return value


def parse_yaml(source: Source, found: Diagnostics) -> Node | None:
    """Return the root node of the only document in `source`; None, recorded, when there is none or it can't be read."""
    if len(source.text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        found.error(f"the file is larger than {MAX_BYTES >> 10} KiB", span_at(source, 0, 0), "split it: a spec holds one op")
        return None
    builder = _TreeBuilder(source, found)
    try:
        for event in _quick_events(source.text) or yaml.parse(source.text, Loader=yaml.SafeLoader):
            if not builder.take(event):
                return None
    except yaml.MarkedYAMLError as error:
        _syntax_error(error, source, found)
        return None
    except yaml.reader.ReaderError as error:
        at = span_at(source, int(error.position), int(error.position) + 1)
        found.error(
            f"a YAML file can't hold the character #x{int(error.character):04x}",
            at,
            'delete it, or write it with an escape in double quotes: "\\x07"',
        )
        return None
    except (ValueError, OverflowError, RecursionError) as error:
        # PyYAML lets some malformed escapes and directives out as plain exceptions.
        found.error(f"not valid YAML: {error}", span_at(source, 0, 0))
        return None
    if builder.root is None:
        found.error("the file is empty", span_at(source, 0, 0), "`opc new NAME` writes a spec to start from")
    return builder.root


def _quick_events(text: str) -> list[yaml.Event]:
    """Return the events of a text as libyaml reads it, in a twentieth of the time; none where PyYAML's own reader has to.

    It has to where libyaml is not there, finds a mistake, which it words otherwise, or reads otherwise: tabs inside of plain
    scalars, and question marks in those of flow collections.
    """
    if not yaml.__with_libyaml__ or "\t" in text:
        return []
    try:
        events: list[yaml.Event] = list(yaml.parse(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        return []
    if "?" in text:
        flow: list[bool] = []
        for event in events:
            if isinstance(event, yaml.CollectionStartEvent):
                flow.append(bool(event.flow_style))
            elif isinstance(event, yaml.CollectionEndEvent):
                flow.pop()
            elif isinstance(event, yaml.ScalarEvent) and not event.style and flow and flow[-1] and "?" in event.value:
                return []
    return events


def _syntax_error(error: yaml.MarkedYAMLError, source: Source, found: Diagnostics) -> None:
    mark = error.problem_mark or error.context_mark
    at = mark.index if mark is not None else 0
    problem = error.problem or "not valid YAML"
    here = source.text[at : at + 1]
    hint = None
    if here == "\t":
        hint = "indent with spaces: YAML does not allow tabs"
    elif here == "[" or source.text[:at].rstrip(" ").endswith("]"):
        hint = "inside { } a text with brackets stands in quotes: {x: 'T[...]'}"
    elif here == "?":
        hint = f"a key with a question mark stands in quotes: '{_word_ahead(source.text, at)}?'"
    elif "mapping values are not allowed" in problem:
        hint = "a text that holds ': ' stands in quotes"
    elif here in ("*", "&", "!", "%", "@", "`"):
        hint = f"a text that begins with {here} stands in quotes"
    context = f" ({error.context})" if error.context else ""
    found.error(f"not valid YAML: {problem}{context}", span_at(source, at, at + 1), hint)


def _word_ahead(text: str, at: int) -> str:
    """Return the word that ends at a place."""
    found = re.search(r"\w*$", text[:at])
    return found[0] if found is not None else ""


def _extent(event: yaml.Event) -> tuple[int, int]:
    start, end = event.start_mark, event.end_mark
    return (start.index if start is not None else 0, end.index if end is not None else 0)


class _TreeBuilder:
    """Builds the tree from parser events without recursion, counting depth and nodes."""

    def __init__(self, source: Source, found: Diagnostics) -> None:
        self.source = source
        self.found = found
        self.root: Node | None = None
        self.documents = 0
        self.nodes = 0
        # Each open collection: its start event and the nodes so far, keys and values in turn for a mapping.
        self.open: list[tuple[yaml.CollectionStartEvent, list[Node]]] = []

    def take(self, event: yaml.Event) -> bool:
        """Add one event; False when reading must stop."""
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                return self._stop("a spec file holds one document", event, "write one file for each op")
        elif isinstance(event, yaml.AliasEvent):
            return self._stop(f"aliases (*{event.anchor}) are not part of the spec language", event, "write the value out")
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self.nodes += 1
            if self.nodes > MAX_NODES:
                return self._stop(f"the file has more than {MAX_NODES} values", event, "split it: a spec holds one op")
            if event.tag is not None:
                return self._stop(f"tags ({event.tag}) are not part of the spec language", event, "leave the tag out")
            if isinstance(event, yaml.ScalarEvent):
                start, end = _extent(event)
                style = event.style or ""
                if bad := _NO_TEXT.search(event.value):
                    what = "no text can hold it" if bad[0] == "\0" else "it is half of a character"
                    return self._stop(f"a text can't hold the character #x{ord(bad[0]):04x}", event, f"leave it out: {what}")
                text = align(event.value, self.source, start, end, style)
                # A block scalar ends where the next token begins; its span is its header.
                shown = text.span(0, len(event.value)) if style in ("|", ">") and event.value.strip() else self._span(start, end)
                return self._add(Scalar(text, not style, shown), event)
            if len(self.open) >= MAX_DEPTH:
                return self._stop(f"nested more than {MAX_DEPTH} deep", event, "no key of a spec is as deep as that")
            self.open.append((event, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            start_event, children = self.open.pop()
            if start_event.flow_style and not self._whole(children):
                return False
            span = self._span(_extent(start_event)[0], _extent(event)[1])
            if isinstance(start_event, yaml.MappingStartEvent):
                return self._mapping(children, span, start_event)
            return self._add(SequenceNode(tuple(children), span), start_event)
        return True

    def _whole(self, children: list[Node]) -> bool:
        """Whether no text between braces is one that a comma in parentheses has cut in two."""
        for a, b in pairwise(children):
            if isinstance(a, Scalar) and isinstance(b, Scalar) and a.plain and b.plain:
                before, behind = a.text.value, b.text.value
                if before.count("(") > before.count(")") and behind.count(")") > behind.count("("):
                    hint = f"a text that holds a comma stands in quotes: '{before}, {behind}'"
                    self.found.error("inside { } and [ ] a comma ends a text", a.span.until(b.span), hint)
                    return False
        return True

    def _mapping(self, children: list[Node], span: Span, event: yaml.Event) -> bool:
        entries: list[tuple[Scalar, Node]] = []
        pairs: Iterator[Node] = iter(children)
        for key, value in zip(pairs, pairs, strict=True):
            if not isinstance(key, Scalar):
                self.found.error("a key is a single word", key.span, "a key that begins with [ or { stands in quotes")
                continue
            entries.append((key, value))
        return self._add(MappingNode(tuple(entries), span), event)

    def _add(self, node: Node, event: yaml.Event) -> bool:
        if self.open:
            self.open[-1][1].append(node)
        else:
            self.root = node if not (isinstance(node, Scalar) and scalar_value(node) is None) else None
        return True

    def _span(self, start: int, end: int) -> Span:
        text = self.source.text
        while end > start and text[end - 1 : end].isspace():
            end -= 1
        return span_at(self.source, start, end)

    def _stop(self, message: str, event: yaml.Event, hint: str | None = None) -> bool:
        self.found.error(message, self._span(*_extent(event)), hint)
        return False
