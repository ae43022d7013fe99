"""Every place of a spec where a name stands, and what the name is: the base of hover, go to definition, rename and colours.

It is found in the text alone, so that it is there for a spec with mistakes too, and for a line that is half typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum

from opc.analysis.elaborate.scope import CONSTANTS, DTYPE_NAMES, FORMS
from opc.diagnostics import Diagnostics, Source
from opc.ir.dtypes import TYPE_SETS
from opc.ir.expr import REDUCTIONS
from opc.ir.functions import CALLABLE
from opc.lang.tree import ORDER
from opc.names import JOINED, LANGUAGE, OF_EACH
from opc.records import dataclass
from opc.spec.files import RANKS
from opc.spec.text import STRING, SourceText
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, parse_yaml


class Kind(Enum):
    """What a name is."""

    INPUT = "input"
    OUTPUT = "output"
    ATTRIBUTE = "attribute"
    TYPE = "type variable"
    DIMENSION = "dimension"
    GROUP = "group of axes"
    TEMPORARY = "temporary"
    INDEX = "index"
    FUNCTION = "function"
    REDUCTION = "reduction"
    FORM = "form"
    DTYPE = "dtype"
    CONSTANT = "constant"
    WORD = "word"
    UNKNOWN = "name"


OWN = frozenset((Kind.INPUT, Kind.OUTPUT, Kind.ATTRIBUTE, Kind.TYPE, Kind.DIMENSION, Kind.GROUP, Kind.TEMPORARY, Kind.INDEX))
"""What a spec names itself, and may name otherwise."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at the characters `start` to `end` (exclusive) of the file.

    `scope` is where the name means this: the statement of a body for an index, the body for a temporary, the spec for the rest.
    """

    name: str
    kind: Kind
    start: int
    end: int
    scope: str = ""
    declares: bool = False

    def is_same(self, other: Occurrence) -> bool:
        """Return whether another place names the same thing."""
        return (self.name, self.kind, self.scope) == (other.name, other.kind, other.scope)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a body: its characters of the file, and what it assigns."""

    start: int
    end: int
    target: str
    scope: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The names of a spec, in order, the statements of its bodies, and the bodies' texts by their scope."""

    occurrences: tuple[Occurrence, ...]
    statements: tuple[Statement, ...]
    bodies: Mapping[str, SourceText]

    def at(self, offset: int) -> Occurrence | None:
        """Return the name at a character, or right before it."""
        touching = [o for o in self.occurrences if o.start <= offset <= o.end]
        return touching[-1] if touching else None

    def same(self, occurrence: Occurrence) -> list[Occurrence]:
        """Return every place that names the same thing."""
        return [o for o in self.occurrences if o.is_same(occurrence)]

    def declaration(self, occurrence: Occurrence) -> Occurrence | None:
        """Return where a name is declared, or stands first."""
        places = self.same(occurrence) if occurrence.kind in OWN else []
        return next((o for o in places if o.declares), places[0] if places else None)


_MOST_LINES = 8
_JOINS = re.compile(r"\(\s*\*")
_WORD = re.compile(STRING + r"""|\#[^\n]*|(?<![\w.])([A-Za-z_]\w*)""")


def outline(text: str) -> Outline:
    """Return the names of a spec. Lines that make the text no YAML are passed over, up to a few."""
    root = _tree(text)
    return _Outliner(root).outline() if isinstance(root, MappingNode) else Outline((), (), {})


def _tree(text: str) -> Node | None:
    for _ in range(_MOST_LINES):
        found = Diagnostics()
        root = parse_yaml(Source("", text), found)
        if root is not None or not found.items:
            return root
        line = found.items[-1].span.line
        lines = text.split("\n")
        # The mistake may show one line further down than it is.
        rows = [i for i in (line - 1, line - 2) if 0 <= i < len(lines) and lines[i].strip(" ")]
        if not rows:
            return None
        lines[rows[0]] = " " * len(lines[rows[0]])
        text = "\n".join(lines)
    return None


@dataclass(slots=True)
class _Outliner:
    root: MappingNode
    kinds: dict[str, Kind] = field(default_factory=dict)
    found: list[Occurrence] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    bodies: dict[str, SourceText] = field(default_factory=dict)
    declared: set[tuple[str, Kind]] = field(default_factory=set)

    def outline(self) -> Outline:
        sections = {key.text.value: node for key, node in self.root.entries}
        self.kinds.update((key.text.value, Kind.GROUP) for key, _ in _entries(sections.get(RANKS)))
        for section, kind in _DECLARING.items():
            for key, _ in _entries(sections.get(section)):
                self.kinds.setdefault(key.text.value.removesuffix("?"), kind)
        self.declared.update((key.text.value, Kind.DIMENSION) for key, _ in _entries(sections.get("shape")))
        for _, value in _entries(sections.get("inputs")):
            for text in _types(value):
                shape = text.value.find("[")
                for word in _WORD.finditer(text.value, shape + 1 if shape >= 0 else len(text.value)):
                    if word[1]:
                        starred = text.value[: word.start()].rstrip().endswith("*")
                        self.kinds.setdefault(word[1], Kind.GROUP if starred else Kind.DIMENSION)
        for key, node in self.root.entries:
            self.section(key.text.value, node)
        return Outline(tuple(sorted(set(self.found), key=lambda o: (o.start, o.end))), tuple(self.statements), self.bodies)

    def section(self, section: str, node: Node) -> None:
        match section:
            case "types" | "shape" | "inputs" | "outputs" | "attributes":
                for key, value in _entries(node):
                    name = key.text.value.removesuffix("?")
                    kind = self.kinds.get(name, _DECLARING[section])
                    self.put(key.text, 0, len(name), name, kind, declares=kind is not Kind.GROUP)
                    if section == "attributes":
                        for own, inner in _entries(value):
                            if own.text.value in ("check", "dim", "binds", "group", "of", "keeps"):
                                self.formulas(inner)
                        for text in _types(value):
                            if "*" in text.value:
                                self.formula(text)
                    elif section == "types" or section == "shape":
                        self.formulas(value)
                    else:
                        for text in _types(value):
                            self.formula(text, binds=section == "inputs")
            case "ranks":
                for key, value in _entries(node):
                    self.put(key.text, 0, len(key.text.value), key.text.value, Kind.GROUP, declares=True)
                    self.formulas(value)
            case "counts":
                for key, value in _entries(node):
                    self.formulas(key)
                    self.formulas(value)
            case "require":
                self.formulas(node)
            case "inplace":
                for key, value in _entries(node):
                    self.formulas(key)
                    self.formulas(value)
            case "kernel":
                self.body(node, section)
            case "gradient":
                for key, value in _entries(node):
                    if key.text.value == "body":
                        self.body(value, section)
                    elif key.text.value == "saves":
                        self.formulas(value)
            case "reference":
                for _, value in _entries(node):
                    self.formulas(value)
            case "examples":
                for item in node.items if isinstance(node, SequenceNode) else ():
                    for key, _ in _entries(item):
                        self.formulas(key)

    def put(self, text: SourceText, start: int, end: int, name: str, kind: Kind, scope: str = "", declares: bool = False) -> None:
        if end > start and end <= len(text.positions):
            place = text.positions[start]
            self.found.append(Occurrence(name, kind, place, text.positions[end - 1] + 1, scope, declares))

    def formulas(self, node: Node) -> None:
        match node:
            case Scalar():
                self.formula(node.text)
            case SequenceNode():
                for item in node.items:
                    self.formulas(item)
            case _:
                pass

    def formula(self, text: SourceText, binds: bool = False) -> None:
        """Find the names in an expression, or a type and shape; an input's binds the dimensions that it is the first to name."""
        for word in _WORD.finditer(text.value):
            if not (name := word[1]):
                continue
            behind = text.value[word.end() :].lstrip()
            if behind.startswith("=") and not behind.startswith("=="):
                continue  # the name of an argument in a reference
            kind = self.kind(name, behind)
            first = binds and kind in (Kind.DIMENSION, Kind.GROUP) and (name, kind) not in self.declared
            if first:
                self.declared.add((name, kind))
            self.put(text, word.start(1), word.end(1), name, kind, declares=first)

    def kind(self, name: str, behind: str) -> Kind:
        """Return what a name outside of bodies is, by what stands behind it."""
        if name in self.kinds and not behind.startswith("("):
            return self.kinds[name]
        if name in CALLABLE or name in FORMS or name in ("acc", *OF_EACH):
            return Kind.FUNCTION if name in CALLABLE else Kind.FORM
        if name in DTYPE_NAMES or name in TYPE_SETS:
            return Kind.DTYPE
        if name in LANGUAGE or name in CONSTANTS:
            return Kind.WORD if name in LANGUAGE else Kind.CONSTANT
        return Kind.UNKNOWN

    def body(self, node: Node, scope: str) -> None:
        if not isinstance(node, Scalar):
            return
        text = node.text
        self.bodies[scope] = text
        statements = list(_statements(text.value))
        targets = {target for _, _, target in statements}
        temporaries = {t for t in targets if t and self.kinds.get(self.plain(t)) is None}
        assigned: set[str] = set()
        for number, (start, end, target) in enumerate(statements):
            self.statements.append(Statement(text.positions[start], text.positions[end - 1] + 1, target, f"{scope} {number}"))
            own: set[str] = set()
            for word in _WORD.finditer(text.value, start, end):
                if name := word[1]:
                    self.word(text, word.start(1), word.end(1), name, scope, f"{scope} {number}", temporaries, assigned, own)

    def plain(self, name: str) -> str:
        """Return a name without what a gradient has before it, where that is an operand's."""
        return name[2:] if name.startswith("d_") and name not in self.kinds and name[2:] in self.kinds else name

    def word(
        self, text: SourceText, start: int, end: int, name: str, body: str, statement: str, temporaries: set[str],
        assigned: set[str], own: set[str],
    ) -> None:  # fmt: skip
        behind = text.value[end:].lstrip(" \t")
        plain = self.plain(name)
        # An operand or a temporary may have the name of a reduction: `mean[n] = mean[k](x[n, k])`.
        if name in (*REDUCTIONS, ORDER) and (_is_reduction(behind) or (name in JOINED and _JOINS.match(behind))):
            self.put(text, start, end, name, Kind.REDUCTION)
        elif plain in self.kinds and not (behind.startswith("(") and (name in CALLABLE or name in FORMS or name in OF_EACH)):
            self.put(text, end - len(plain), end, plain, self.kinds[plain])
        elif name in temporaries:
            self.put(
                text, start, end, name, Kind.TEMPORARY, body, declares=name not in assigned and _is_target(text.value, start)
            )
            assigned.add(name)
        elif name in TYPE_SETS and _ASKED.search(text.value, 0, start):
            self.put(text, start, end, name, Kind.DTYPE)
        elif behind.startswith("(") or name in LANGUAGE or name in CONSTANTS or name in DTYPE_NAMES:
            self.put(text, start, end, name, self.kind(name, behind))
        else:
            self.put(text, start, end, name, Kind.INDEX, statement, declares=name not in own)
            own.add(name)


_ASKED = re.compile(r"\bin\s*(\[[\w\s,]*)?\Z")
"""What stands before a dtype or a set of them in a question what a type is."""


def _is_reduction(behind: str) -> bool:
    """Whether indices in brackets and an argument in parentheses follow; where a text is not finished, whether indices do."""
    if not behind.startswith("["):
        return False
    depth = 0
    for at, character in enumerate(behind):
        depth += (character == "[") - (character == "]")
        if depth == 0:
            return behind[at + 1 :].lstrip().startswith("(")
    return True


_DECLARING = {
    "types": Kind.TYPE,
    "inputs": Kind.INPUT,
    "attributes": Kind.ATTRIBUTE,
    "outputs": Kind.OUTPUT,
    "shape": Kind.DIMENSION,
}


def _entries(node: Node | None) -> tuple[tuple[Scalar, Node], ...]:
    return node.entries if isinstance(node, MappingNode) else ()


def _types(node: Node) -> Iterator[SourceText]:
    """Yield the type and shape of an operand: the text itself, or what stands under `type`."""
    if isinstance(node, Scalar):
        yield node.text
    yield from (value.text for key, value in _entries(node) if key.text.value == "type" and isinstance(value, Scalar))


def _statements(body: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and target of each statement: what stands on lines of its own outside of brackets."""
    depth = 0
    start: int | None = None
    at = 0
    for line in body.splitlines(keepends=True):
        bare = re.sub(STRING + r"|\#.*", "", line)
        # A statement that is half typed ends where the next begins.
        begins = bool(re.match(r"[A-Za-z_]\w*\s*(\[[^=\n]*\])?\s*=(?!=)", line))
        if begins and start is not None:
            yield start, at, _target(body[start:])
            start, depth = None, 0
        if bare.strip() and start is None:
            start = at
        depth = max(depth + sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}")), 0)
        at += len(line)
        if start is not None and depth == 0:
            yield start, at, _target(body[start:])
            start = None
    if start is not None:
        yield start, at, _target(body[start:])


def _target(statement: str) -> str:
    found = re.match(r"\s*([A-Za-z_]\w*)\s*(\[[^=\n]*\])?\s*=(?!=)", statement)
    return found[1] if found else ""


def _is_target(body: str, start: int) -> bool:
    return not body[body.rfind("\n", 0, start) + 1 : start].strip()
